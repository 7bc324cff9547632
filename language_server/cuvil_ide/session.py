"""The state of a workspace: texts as they are in the editor, and everything known about them, each thing computed once.

    session = Session("/path/to/project")
    session.update("model.py", text, version=3)      # an editor's text; files that are not open are read from disk
    session.facts("model.py"), session.diagnostics("model.py"), session.stages("model.py", "Block.forward")

`update` only notes the text and returns at once; work happens in the call that asks, always on the newest text, under one
lock, so any thread may ask. Code that cannot be analysed leaves a diagnostic and the last good result, never an exception
from the analysis itself; a file that cannot be read, or a function that cannot be compiled, is a CuvilError.

While someone types, `glance` and `quick_diagnostics` answer from what the last keystroke changed and `settled` says whether that is
all there is. Work on a text that is no longer the newest ends with Interrupted; whoever asked asks again.
"""
from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cuvil.diagnostics import CuvilError, Diagnostic
from cuvil.interrupted import Interrupted
from cuvil.source import Source, Span

from . import config as settings

if TYPE_CHECKING:
    from cuvil.frontends.python import Glance
    from cuvil.frontends.python.facts import FileFacts, FunctionFacts
    from cuvil.frontends.python.targets import Targets
    from cuvil.frontends.python.workspace import Workspace
    from cuvil.pipeline import Stages

    from .assists.actions import Action
    from .assists.hints import Hint
    from .assists.hover import Hover
    from .assists.lenses import Lens
    from .assists.symbols import Symbol
    from .lints import Findings

FIRST_LOOK = 0.15                             # seconds for a text that was just opened, or changed in many places


@dataclass(frozen=True)
class Brought:
    """The functions of an analysis that callers and documentation say more of, by their facts as they stand alone."""

    facts: FileFacts
    functions: dict[int, FunctionFacts]
    shown: tuple[FileFacts, FileFacts]        # of the text that was asked for last: without and with what is brought


@dataclass(frozen=True)
class Analysis:
    """What was computed for one text. failure: set when the facts are those of an older text, or empty."""

    source: Source
    facts: FileFacts
    failure: Diagnostic | None = None


class Session:
    """trusted: whether code of the project (plugins) may be run."""

    def __init__(self, root: str | Path = ".", trusted: bool = False) -> None:
        self.root = str(Path(root).absolute())
        self.trusted = trusted
        self._texts: dict[str, tuple[str, int | None]] = {}       # open documents
        self._sources: dict[str, Source] = {}                     # the newest text of each, with its line index
        self._texts_lock = threading.Lock()                       # held for moments only
        self._work = threading.RLock()                            # held while analysing
        self._analyses: dict[str, Analysis] = {}
        self._diagnostics: dict[str, tuple[Analysis, settings.Config, list[Diagnostic]]] = {}
        self._glances: dict[str, tuple[Source, Glance]] = {}
        self._brought: dict[str, Brought] = {}
        self._findings: dict[str, Findings] = {}                  # of the newest text that was looked at, whole or at a glance
        self._stages: dict[tuple[str, str], tuple[FunctionFacts, Stages]] = {}
        self._configs: dict[str, settings.Config] = {}
        self._settings: dict[str, settings.Config | None] = {}    # by the folder they stand in
        self._plugins: dict[str, tuple[list, list[Diagnostic]]] = {}
        self._workspaces: dict[Targets, Workspace] = {}            # of each set of versions that the code is for
        self._targets: dict[str, Targets] = {}
        self._versions: dict = {}

    # Texts

    def update(self, path: str, text: str, version: int | None = None) -> None:
        """The editor's text of a file. Cheap: nothing is analysed here."""
        with self._texts_lock:
            self._texts[path] = text, version
            self._sources.pop(path, None)

    def close(self, path: str) -> None:
        """From now on the file is what is on disk."""
        with self._texts_lock:
            self._texts.pop(path, None)
            self._sources.pop(path, None)
        self._brought.pop(path, None)
        for workspace in self._workspaces.values():
            workspace.close(path)

    def forget(self, path: str) -> None:
        """Nobody will ask about the file again: what is known of it goes, except what its names mean to other files."""
        self.close(path)
        for known in (self._analyses, self._glances, self._diagnostics, self._findings):
            known.pop(path, None)
        for workspace in self._workspaces.values():
            workspace.forget(path)

    def version(self, path: str) -> int | None:
        with self._texts_lock:
            return self._texts.get(path, ("", None))[1]

    def is_open(self, path: str) -> bool:
        with self._texts_lock:
            return path in self._texts

    def source(self, path: str) -> Source:
        """The newest text; CuvilError if there is none to read."""
        with self._texts_lock:
            if (source := self._sources.get(path)) is not None and path in self._texts:
                return source
            if path in self._texts:
                source = self._sources[path] = Source(path, self._texts[path][0])
                return source
        return Source(path, read(path))

    def forget_settings(self) -> None:
        """Settings or files beside the open ones changed: read them again on the next question."""
        with self._work:
            for known in (self._configs, self._settings, self._targets, self._versions, self._plugins, self._diagnostics):
                known.clear()

    def config(self, path: str) -> settings.Config:
        folder = os.path.dirname(os.path.abspath(path))
        if folder not in self._configs:
            self._configs[folder] = self._nearest(folder)
        return self._configs[folder]

    def _nearest(self, folder: str) -> settings.Config:
        while True:
            if folder not in self._settings:
                self._settings[folder] = settings.settings(folder)
            if (found := self._settings[folder]) is not None:
                return found
            if (above := os.path.dirname(folder)) == folder:
                return settings.Config()
            folder = above

    def targets(self, path: str) -> Targets:
        """The versions that a file is for."""
        from .targets import targets
        folder = os.path.dirname(os.path.abspath(path))
        if folder not in self._targets:
            self._targets[folder] = targets(folder, dict(self.config(path).targets), self._versions)
        return self._targets[folder]

    def declared(self, path: str) -> dict:
        """What the project says of these versions, as targets.declared; asking costs no front end."""
        from .targets import declared
        return declared(os.path.dirname(os.path.abspath(path)), dict(self.config(path).targets), self._versions)

    # Facts and findings

    def analysis(self, path: str) -> Analysis:
        with self._work:
            source = self.source(path)
            last = self._analyses.get(path)
            if last is not None and last.source.text == source.text and last.facts.targets == self.targets(path):
                return last
            analysis = self._analyse(source, last)
            self._analyses[path] = analysis
            self._glances.pop(path, None)
            return analysis

    def settled(self, path: str) -> bool:
        """The newest text is analysed, and its findings are all there."""
        source, kept = self.source(path), self._diagnostics.get(path)
        return kept is not None and kept[0].source.text == source.text and kept[0] is self._analyses.get(path)

    def glance(self, path: str) -> Glance:
        """What is known of the newest text at once; frontends.python.glance. What it does not know waits for `facts`."""
        from cuvil.frontends import python
        with self._work:
            source, known, whole = self.source(path), self._glances.get(path), self._analyses.get(path)
            if whole is not None and whole.source.text == source.text:
                return python.Glance(whole.facts, (), True)
            if known is None or known[0].text != source.text:
                end = time.monotonic() + FIRST_LOOK
                known = source, python.glance(source, self.workspace(path), lambda: time.monotonic() > end)
                self._glances[path] = known
            return known[1]

    def quick_diagnostics(self, path: str) -> list[Diagnostic]:
        """Findings of the newest text at a glance; glance.py. Those of `diagnostics` when they are there already."""
        from . import lints
        from .glance import at_a_glance
        with self._work:
            if not self.settled(path):
                config, last = self.config(path), self._findings.get(path)
                if last is None or last.source.text != self.source(path).text:
                    rules = lints.enabled(path, config, self._load_plugins(config)[0])
                    last = self._findings[path] = at_a_glance(last, self.glance(path), rules)
                return last.shown(config)
            return self.diagnostics(path)

    def facts(self, path: str) -> FileFacts:
        return self.analysis(path).facts

    def bring(self, path: str) -> bool:
        """One walk of those that find out what callers bring to the functions of a file, for `shown`. Whether there are no more."""
        from cuvil.frontends import python
        with self._work:
            facts, known = self.facts(path), self._brought.get(path)
            if known is not None and known.facts is facts:
                return True
            walks, workspace = iter((False,)), self.workspace(path)      # the second one is asked for again
            workspace.stop = self._outdated(facts.source)
            try:
                more = python.brought(facts, workspace, lambda: next(walks, True))
            except Interrupted:
                return False
            finally:
                workspace.stop = bool
            changed = {id(a): b for a, b in zip(facts.functions, more.functions) if a is not b}
            self._brought[path] = Brought(facts, changed, (facts, more))
            return True

    def whole(self, path: str) -> FileFacts:
        """The facts, with all that callers bring."""
        with self._work:
            while not self.bring(path):
                pass
            return self._brought[path].shown[1]

    def shown(self, path: str) -> FileFacts:
        """The facts at a glance, for people: with what callers brought, as far as that is known. No finding rests on them."""
        facts, known = self.glance(path).facts, self._brought.get(path)
        if known is None or not known.functions:
            return facts
        if known.shown[0] is not facts:
            functions = tuple(known.functions.get(id(function), function) for function in facts.functions)
            known = self._brought[path] = replace(known, shown=(facts, replace(facts, functions=functions)))
        return known.shown[1]

    def brings(self, path: str) -> bool:
        """Whether `shown` says more than the facts."""
        known = self._brought.get(path)
        return known is not None and bool(known.functions)

    def diagnostics(self, path: str) -> list[Diagnostic]:
        """Findings of the rules, settings applied; refusals are not among them."""
        from . import lints
        with self._work:
            analysis, config = self.analysis(path), self.config(path)
            kept = self._diagnostics.get(path)
            if kept is not None and kept[0] is analysis and kept[1] is config:
                return kept[2]
            plugins, notes = self._load_plugins(config)
            found = lints.findings(analysis.facts, config, plugins, self._outdated(analysis.source))
            self._findings[path] = found
            found = found.shown(config) + ([analysis.failure] if analysis.failure else []) + notes
            self._diagnostics[path] = analysis, config, found
            return found

    def stages(self, path: str, function: str) -> Stages:
        """The stages of a function, made as far as they are asked for; CuvilError if it is not there or cannot be compiled."""
        from cuvil.pipeline import Stages
        with self._work:
            facts = self.function(path, function).compiled
            kept = self._stages.get((path, function))
            if kept is not None and kept[0] is facts:
                return kept[1]
            if facts.refusal is not None:
                raise facts.refusal
            if facts.function is None:
                raise CuvilError(f"{function} has no tensor code", facts.header, "a function that computes with tensors")
            stages = Stages.of(facts.function, sources={path: self.source(path).text})
            self._stages[path, function] = facts, stages
            return stages

    def function(self, path: str, name: str) -> FunctionFacts:
        facts = self.facts(path)
        found = facts.function(name)
        if found is None:
            known = ", ".join(f.name for f in facts.functions) or "none"
            raise CuvilError(f"there is no function {name} in {path}", expected=f"one of: {known}")
        return found

    # Editor features, each in its own file

    def hover(self, path: str, line: int, column: int) -> Hover | None:
        from .assists import hover
        with self._work:
            return hover.hover(self, path, line, column)

    def hints(self, path: str, first: int = 1, last: int | None = None) -> list[Hint]:
        from .assists import hints
        with self._work:
            return hints.hints(self.shown(path), first, last)

    def lenses(self, path: str) -> list[Lens]:
        from .assists import lenses
        return lenses.lenses(self.facts(path))

    def resolve_lens(self, path: str, lens: Lens) -> Lens:
        from .assists import lenses
        with self._work:
            return lenses.resolve(self, path, lens)

    def actions(self, path: str, span: Span) -> list[Action]:
        from .assists import actions
        return actions.actions(self.source(path), self.quick_diagnostics(path), span)

    def symbols(self, path: str) -> list[Symbol]:
        from .assists import symbols
        return symbols.symbols(self.facts(path))

    def document(self, uri: str) -> str:
        from .assists import documents
        with self._work:
            return documents.document(self, uri)

    # How an analysis is made

    def _analyse(self, source: Source, last: Analysis | None) -> Analysis:
        from cuvil.frontends import python
        try:
            return Analysis(source, python.analyze(source, self.workspace(source.path), self._outdated(source)))
        except Interrupted:
            raise
        except CuvilError as error:
            failure = error.to_diagnostic(source.path)
        except Exception as error:                 # a defect of ours; the user's work goes on with what was known before
            failure = Diagnostic("CUV003", "analysis-failed", "internal",
                                 f"Cuvil could not analyse this text ({type(error).__name__}: {error}); "
                                 "what it shows is from an earlier one. Please report this.",
                                 Span(source.path, 1, 0, 1, 0), "proved", "info")
        if last is not None:
            return Analysis(source, last.facts, failure)
        return Analysis(source, python.analyze(Source(source.path, ""), self.workspace(source.path)), failure)

    def _outdated(self, source: Source) -> Callable[[], bool]:
        """Whether an open text is no longer the newest."""
        return lambda: (newest := self._texts.get(source.path)) is not None and newest[0] is not source.text

    def workspace(self, path: str) -> Workspace:
        """The front end's view of the files around one, for its versions."""
        targets = self.targets(path)
        if targets not in self._workspaces:
            from cuvil.frontends.python.workspace import Workspace
            self._workspaces[targets] = Workspace(self.root, targets)
        return self._workspaces[targets]

    def _load_plugins(self, config: settings.Config) -> tuple[list, list[Diagnostic]]:
        if not config.plugins:
            return [], []
        if config.root not in self._plugins:
            from .plugins import load_plugins
            self._plugins[config.root] = load_plugins(config, self.trusted)
        return self._plugins[config.root]


def read(path: str) -> str:
    """A file's text, decoded as Python does (UTF-8, or its coding line); CuvilError when it cannot be."""
    import tokenize
    try:
        with tokenize.open(path) as file:
            return file.read()
    except OSError as error:
        raise CuvilError(f"cannot read {path}: {error.strerror or error}", expected="a readable file") from None
    except (SyntaxError, LookupError, ValueError) as error:      # also of a coding line that names no encoding of text, as rot13
        raise CuvilError(f"cannot decode {path}: {error}", expected="UTF-8, or a coding line that says what else",
                         hint="save the file as UTF-8") from None
