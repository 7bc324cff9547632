"""What a view is about: one function of one file, its stages as far as they can be made, and the sizes its numbers are for."""
from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from cuvil.diagnostics import CuvilError
from cuvil.source import Span

from ..lookup import function_at
from ..protocol import Place, Position, Range, ViewRequest

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts, FunctionFacts
    from cuvil.ir.function import Function
    from cuvil.ir.kernel import KernelGraph
    from cuvil.pipeline import Stages

    from ..session import Session


@dataclass(frozen=True)
class Subject:
    """stages: None when the function cannot be compiled, and then `refusal` says why. functions: all that can be shown.
    payloads: of the panels that were asked for, by panel."""

    path: str
    facts: FileFacts
    function: FunctionFacts
    stages: Stages | None
    refusal: CuvilError | None
    stale: bool
    payloads: dict[str, object] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def functions(self) -> list[str]:
        return [f.name for f in shown(self.facts)]

    @cached_property
    def version(self) -> str:
        """Changes with the text that this was made from."""
        return version(self.facts.source.text)

    @cached_property
    def dims(self) -> dict[str, int]:
        """Example sizes for the symbols that the code leaves open."""
        function = self.stages.function if self.stages else self.function.function
        return sizes(function) if function else {}

    @cached_property
    def concrete(self) -> Stages | None:
        """The stages at these sizes: loops, LLVM and assembly exist only for numbers, so all layers are shown for them.
        The symbolic ones when the sizes do not fit the code; `misfit` says why."""
        return self.stages if self.stages is None or not self.dims or self.misfit else self._sized

    @cached_property
    def misfit(self) -> CuvilError | None:
        """Why the function cannot be shown for the example sizes: a layer behind it may want one size and no other."""
        if self.stages is None or not self.dims:
            return None
        try:
            _ = self._sized.kernels
            return None
        except Exception as error:
            return failed(error, self.function)

    @cached_property
    def _sized(self) -> Stages:
        return self.stages.at(**self.dims)

    @cached_property
    def symbolic(self) -> KernelGraph | None:
        """The kernels with the user's symbols in their types, if they are the same kernels of the same ops; else those at example sizes."""
        if self.stages is None:
            return None
        open_, closed = self.stages.kernels, self.concrete.kernels
        same = [(op.id, op.name, op.operands) for op in open_.function.ops] == [(op.id, op.name, op.operands) for op in closed.function.ops]
        return open_ if same and [(k.name, k.ops) for k in open_.kernels] == [(k.name, k.ops) for k in closed.kernels] else closed


def subject(session: Session, request: ViewRequest) -> Subject:
    analysis = session.analysis(request.path)
    facts = analysis.facts
    function = _chosen(facts, request)
    stages, refusal = None, None
    try:
        stages = session.stages(request.path, function.name)
        _ = stages.kernels                   # what cannot be lowered is refused here, once for all views
    except CuvilError as error:
        stages, refusal = None, error
    except Exception as error:               # a defect of ours: the text layers are still worth showing
        stages, refusal = None, failed(error, function)
    stale = analysis.failure is not None or function.name in facts.stale
    return _keep(session, Subject(request.path, facts, function, stages, refusal, stale))


# Panels ask again on every move of the cursor and every save; what did not change is not made again.
KEPT = 16
_kept: WeakKeyDictionary[Session, OrderedDict[tuple[str, str], Subject]] = WeakKeyDictionary()
_lock = Lock()


def _keep(session: Session, new: Subject) -> Subject:
    """The kept subject if the file is as it was; else the new one, with the native code of the kept one if the function is as it was."""
    with _lock:
        kept = _kept.setdefault(session, OrderedDict())
        old = kept.pop((new.path, new.name), None)
        if old is not None and old.facts is new.facts and old.stages is new.stages and old.stale == new.stale:
            new = old
        elif old is not None and new.stages is not None and old.stages is new.stages and "_sized" in old.__dict__:
            new.__dict__["_sized"] = old.__dict__["_sized"]
        kept[new.path, new.name] = new
        while len(kept) > KEPT:
            kept.popitem(last=False)
    return new


def shown(facts: FileFacts) -> list[FunctionFacts]:
    """Functions that a panel has something to say of: entry points, and those with tensor code."""
    return [f for f in facts.functions if f.entry is not None or f.function is not None]


def _chosen(facts: FileFacts, request: ViewRequest) -> FunctionFacts:
    """The named function, else the one at the position, else the first that can be shown."""
    if request.function:
        found = facts.function(request.function)
        if found is None:
            known = ", ".join(f.name for f in facts.functions) or "none"
            raise CuvilError(f"there is no function {request.function} in {request.path}", expected=f"one of: {known}")
        return found
    if request.position is not None:
        found = function_at(facts, request.position.line, max(request.position.column - 1, 0))
        if found is not None:
            return found
    candidates = [f for f in shown(facts) if f.entry is not None] or shown(facts)
    if not candidates:
        raise CuvilError(f"{request.path} has no function to show", Span(request.path, 1, 0, 1, 0),
                         "a function that computes with tensors", "decorate one with @cu.compile, or annotate its parameters")
    return candidates[0]


def sizes(function: Function) -> dict[str, int]:
    """An example size for every symbol of a function."""
    from cuvil.cost import example_sizes, free_symbols
    return example_sizes(free_symbols(function))


def failed(error: Exception, function: FunctionFacts) -> CuvilError:
    """What went wrong as the sentence that stands in place of what could not be made: a refusal as it is, a defect of ours as one."""
    if isinstance(error, CuvilError):
        return error
    return CuvilError(f"Cuvil failed here: {type(error).__name__}: {error}", function.header, hint="please report this with the function's code")


def version(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def place(span: Span | None) -> Place | None:
    """A span as panels count: from 1."""
    if span is None:
        return None
    return Place(span.path, Range(Position(span.line, span.column + 1), Position(span.end_line, span.end_column + 1)))
