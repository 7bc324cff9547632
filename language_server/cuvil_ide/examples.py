"""Runs the examples of a rule: what must be silent, what must be reported where and how, and what its fix makes of it."""
from __future__ import annotations

from collections.abc import Iterator

from cuvil.source import Source, apply_edits

from .lints.rule import Invalid, Rule


def failures(rule: Rule) -> Iterator[str]:
    """What does not hold, one message for each example; nothing when all is well. A rule without examples fails."""
    if not rule.valid or not rule.invalid:
        yield "expected examples of code that is silent (valid) and of code that is reported (invalid)"
    for code in rule.valid:
        found = [d for d in _findings(code, rule)[1]]
        if found:
            yield f"must be silent, but says {found[0].message!r} at {found[0].span}:\n{_indented(code)}"
    for example in rule.invalid:
        if problem := _problem(example, rule):
            yield f"{problem}:\n{_indented(example.code)}"


def _problem(example: Invalid, rule: Rule) -> str:
    if example.code.count("»") != 1 or example.code.count("«") != 1:
        return "the reported text must stand between one » and one «"
    expected = example.code.partition("»")[2].partition("«")[0]
    source, found = _findings(example.code.replace("»", "").replace("«", ""), rule)
    if [source.slice(d.span) for d in found] != [expected]:
        return f"reports {[source.slice(d.span) for d in found]}, expected one finding at {expected!r}"
    if example.words not in found[0].message:
        return f"says {found[0].message!r}, expected the words {example.words!r}"
    fix = found[0].fix
    after = apply_edits(source, fix.edits) if fix and fix.edits else ""
    if after != example.fixed:
        return f"the fix gives {after!r}, expected {example.fixed!r}"
    if after and fix.applicability != rule.fix:
        return f"the fix is {fix.applicability}, and the manual says {rule.fix or 'none'}"
    return ""


def _findings(code: str, rule: Rule):
    from cuvil.frontends import python
    source = Source("example.py", code)
    return source, list(rule.check(python.analyze(source)))


def _indented(code: str) -> str:
    return "\n".join(f"    {line}" for line in code.splitlines())
