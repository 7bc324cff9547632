"""What is printed for a person at a terminal and only there: colours and progress. In CI and in pipes there is neither."""
from __future__ import annotations

import os
import sys
from types import TracebackType

CODES = {"bold": "1", "red": "1;31", "green": "32", "yellow": "33", "magenta": "35", "cyan": "36", "dim": "2"}


def colourful(stream=None) -> bool:
    """Whether to colour: a terminal, and neither NO_COLOR (https://no-color.org) nor TERM=dumb; FORCE_COLOR decides otherwise."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return interactive(stream or sys.stdout) and os.environ.get("TERM") != "dumb"


def interactive(stream) -> bool:
    return hasattr(stream, "isatty") and stream.isatty() and not os.environ.get("CI")


def paint(text: str, tint: str, colour: bool) -> str:
    return f"\x1b[{CODES[tint]}m{text}\x1b[0m" if colour else text


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def table(rows: list[tuple[str, ...]], header: tuple[str, ...] = (), right: frozenset[int] = frozenset()) -> str:
    """Columns of text, two spaces apart; the columns in `right` are numbers."""
    lines = [header, *rows] if header else rows
    widths = [max(len(row[i]) for row in lines) for i in range(len(lines[0]))] if lines else []
    return "\n".join("  ".join(cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths))).rstrip()
                     for row in lines)


class Progress:
    """One line on the terminal that says what is going on, gone when the work is done.

        with Progress("checking", len(paths)) as progress:
            progress.step(path)
    """

    def __init__(self, verb: str, total: int, stream=None) -> None:
        self.verb, self.total, self.done = verb, total, 0
        self.stream = stream or sys.stderr
        self.shown = interactive(self.stream)

    def __enter__(self) -> Progress:
        return self

    def step(self, what: str) -> None:
        self.done += 1
        if self.shown:
            self.stream.write(f"\r\x1b[K{self.verb} {self.done}/{self.total} {what[-60:]}")
            self.stream.flush()

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.shown and self.done:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
