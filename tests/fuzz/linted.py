"""What must hold of any text whatever: it is answered, in bounded time, with findings that stand in it and none about a fault of our own."""
from __future__ import annotations

from cuvil.frontends import python
from cuvil.source import Source, Span
from cuvil_ide import lints
from cuvil_ide.session import Session

OURS = {"CUV003", "CUV005"}                   # codes of findings that tell of a defect of Cuvil


def linted(text: str, path: str = "any.py") -> list:
    """The findings of a text, once they are seen to hold."""
    source = Source(path, text)
    facts = python.analyze(source)
    found = lints.check(facts)
    hold(source, found)
    return found


def hold(source: Source, found: list) -> None:
    """No finding is a fault of ours, and all places, also of evidence and fixes, are in the text; a syntax error may mark the end of its line."""
    def inside(span: Span, beyond: int) -> bool:
        return span.end_line <= len(source.index) and span.column <= len(source.line(span.line)) and span.end_column <= len(source.line(span.end_line)) + beyond

    for finding in found:
        assert finding.code not in OURS, f"{finding.code} {finding.message}\n{source.text}"
        spans = [finding.span, *(e.span for e in finding.evidence), *(e.span for e in (finding.fix.edits if finding.fix else ()))]
        for span in spans:
            if span.path == source.path:
                assert (1, 0) <= (span.line, span.column) <= (span.end_line, span.end_column), f"{finding.code} {span} is no place"
                assert inside(span, finding.code == "CUV010"), f"{finding.code} {span} {span.end_line}:{span.end_column + 1} is not in\n{source.text}"


def edited(texts: list[str], path: str = "any.py") -> None:
    """A session that saw the texts one after the other says of the last what one says that saw only it."""
    session, fresh = Session("."), Session(".")
    for text in texts[:-1]:
        session.update(path, text)
        hold(session.source(path), session.quick_diagnostics(path))
        hold(session.source(path), session.diagnostics(path))
    for each in (session, fresh):
        each.update(path, texts[-1])
    hold(session.source(path), session.quick_diagnostics(path))
    then, once = session.diagnostics(path), fresh.diagnostics(path)
    hold(fresh.source(path), once)
    if readable(texts[-1]):                    # else the session goes on from the last text that could be read
        assert then == once, "\n--- then\n".join(texts)


def readable(text: str) -> bool:
    import ast
    try:
        ast.parse(text)
        return True
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
