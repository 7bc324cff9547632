"""Semantic diff: what a change of the text does to what the functions compute.

    for change in diff(Source("a.py", old), Source("b.py", new)):
        change.verdict                    # identical, cosmetic, drift, unknown

identical   the same tokens, and everything they call means the same
cosmetic    the text differs, the canonical tensor IR is the same: the results cannot differ by a bit
drift       the IR differs: ops added, removed or changed, each with its place in both texts
unknown     one side could not be captured; the reason says why

Canonical IR is the captured function after all passes, each value known by what it computes (fingerprint.py).
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cuvil.source import Source, Span

from .changes import Change, changes
from .fingerprint import signature
from .tokens import tokens

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts, FunctionFacts
    from cuvil.ir.function import Function


@dataclass(frozen=True)
class FunctionDiff:
    """before, after: where the function is in each text, None when it is not there."""

    name: str
    verdict: str
    reason: str = ""
    added: tuple[Change, ...] = ()
    removed: tuple[Change, ...] = ()
    changed: tuple[Change, ...] = ()
    before: Span | None = None
    after: Span | None = None

    def to_json(self) -> dict:
        def place(span: Span | None) -> dict | None:
            return span and {"path": span.path, "range": span.to_json()}
        return {"name": self.name, "verdict": self.verdict, "reason": self.reason, "before": place(self.before), "after": place(self.after),
                "added": [c.to_json() for c in self.added], "removed": [c.to_json() for c in self.removed],
                "changed": [c.to_json() for c in self.changed]}


def diff(a: Source, b: Source, workspaces: tuple = (None, None)) -> list[FunctionDiff]:
    """All functions of both texts: those of b in its order, then those that are only in a."""
    from cuvil.frontends import python
    return compare(python.analyze(a, workspaces[0]), python.analyze(b, workspaces[1]))


def compare(a: FileFacts, b: FileFacts) -> list[FunctionDiff]:
    old = {f.name: f for f in a.functions}
    new = {f.name: f for f in b.functions}
    renamed = _renamed(a, b, [f for f in a.functions if f.name not in new], [f for f in b.functions if f.name not in old])
    found = []
    for name, function in new.items():
        if name in old:
            found.append(compare_functions(a, b, old[name], function))
        elif name in renamed:
            before = renamed[name]
            found.append(FunctionDiff(name, "cosmetic", f"renamed from {before.name}", before=before.span, after=function.span))
        else:
            found.append(FunctionDiff(name, "drift", "only in the new text", after=function.span))
    gone = {f.name for f in renamed.values()}
    found += [FunctionDiff(name, "drift", "only in the old text", before=function.span)
              for name, function in old.items() if name not in new and name not in gone]
    return found


def compare_functions(a: FileFacts, b: FileFacts, old: FunctionFacts, new: FunctionFacts) -> FunctionDiff:
    def verdict(word: str, reason: str = "", **parts) -> FunctionDiff:
        return FunctionDiff(new.name, word, reason, before=old.span, after=new.span, **parts)

    old, new = old.compiled, new.compiled
    same_text = tokens(a.source.slice(old.span)) == tokens(b.source.slice(new.span))
    for side, function in (("old", old), ("new", new)):
        if function.function is None or function.refusal is not None:
            if same_text and (old.function is None) == (new.function is None):
                return verdict("identical", "its own text is the same; what it computes was not captured")
            why = function.refusal.what.partition("\n")[0] if function.refusal else "it has no tensor code"
            return verdict("unknown", f"the {side} text was not captured: {why}")
    before, after = _canonical(old.function), _canonical(new.function)
    if signature(before) == signature(after):
        return verdict("identical") if same_text else verdict("cosmetic", "the text differs, the canonical IR is the same")
    added, removed, changed = changes(*_readable(old.function, new.function))
    if not (added or removed or changed):
        added, removed, changed = changes(before, after)
    reason = "something it calls or reads changed" if same_text else ""
    return verdict("drift", reason, added=added, removed=removed, changed=changed)


def _canonical(function: Function) -> Function:
    from cuvil import passes
    return passes.run(function).function


def _readable(old: Function, new: Function) -> tuple[Function, Function]:
    """The functions as people read them: cleaned up, with softmax still called softmax."""
    from cuvil import passes

    def cleaned(function: Function) -> Function:
        return dict(passes.run(function).history).get("dce", function)
    return cleaned(old), cleaned(new)


def _renamed(a: FileFacts, b: FileFacts, old: list[FunctionFacts], new: list[FunctionFacts]) -> dict[str, FunctionFacts]:
    """New name -> old function, where exactly one function of each side computes the same."""
    def by_meaning(functions: list[FunctionFacts]) -> dict[object, list[FunctionFacts]]:
        groups: dict[object, list[FunctionFacts]] = {}
        for function in (each.compiled for each in functions):
            if function.function is not None and function.refusal is None:
                groups.setdefault(signature(_canonical(function.function)), []).append(function)
        return groups
    if not old or not new:
        return {}
    before, after = by_meaning(old), by_meaning(new)
    return {after[key][0].name: before[key][0] for key in before.keys() & after.keys() if len(before[key]) == len(after[key]) == 1}


__all__ = ["Change", "FunctionDiff", "compare", "compare_functions", "diff"]
