"""Score over the shared lint cases, where they are at hand: look-alikes must be silent; hits are counted and shown.

Nothing here is tuned to a case. A file is fed without its header, padded so that line numbers stay.
"""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from cuvil.frontends import python
from cuvil.source import Source
from cuvil_ide import lints

CASES = sorted((Path(__file__).parents[3] / "shared/cases/lint").glob("*.py"))
# The kinds that rules exist for; of these a missed expectation is shown.
KINDS = {rule.kind for rule in lints.RULES}
_EXPECT = re.compile(r"\{line: (\d+), kind: ([\w-]+), message_words: \[([^\]]*)\](?:, alt_lines: \[([^\]]*)\])?")


def read(file: Path) -> tuple[str, bool, list[tuple[set[int], str, list[str]]]]:
    text = file.read_text(encoding="utf-8")
    header, _, body = text.partition("# ---\n")[2].partition("# ---\n") if not text.startswith("# --- lint-case") else \
        text[len("# --- lint-case\n"):].partition("# ---\n")
    expected = [({int(line), *map(int, re.findall(r"\d+", alt or ""))}, kind, re.findall(r'"([^"]*)"', words))
                for line, kind, words, alt in _EXPECT.findall(header)]
    return "\n" * text[:len(text) - len(body)].count("\n") + body, "clean: true" in header, expected


def check(file: Path) -> tuple[list, bool, list]:
    text, clean, expected = read(file)
    return lints.check(python.analyze(Source(file.name, text))), clean, expected


@pytest.mark.skipif(not CASES, reason="the shared cases are not here")
def test_look_alikes_are_silent():
    noisy = {}
    for file in CASES:
        found, clean, _ = check(file)
        if clean and found:
            noisy[file.name] = [f"{d.span.line}: {d.name}: {d.message}" for d in found]
    assert noisy == {}


def score() -> str:
    hits, misses, extra, other = [], [], [], 0
    for file in CASES:
        found, _, expected = check(file)
        allowed = {line for lines, _, _ in expected for line in lines}
        extra += [f"{file.name}:{d.span.line} {d.name}: {d.message}" for d in found if not any(d.span.touches(line) for line in allowed)]
        for lines, kind, words in expected:
            hit = any(d.kind == kind and any(d.span.touches(line) for line in lines)
                      and any(w.lower() in d.message.lower() for w in words) for d in found)
            if hit:
                hits.append(f"{file.name} {kind}")
            elif kind in KINDS:
                misses.append(f"{file.name} {kind}")
            else:
                other += 1
    return f"{len(hits)} hits, {len(misses)} misses of kinds with a rule, {other} of kinds without one\n" + "\n".join(
        [f"  hit   {name}" for name in hits] + [f"  miss  {name}" for name in misses] + [f"  extra {line}" for line in extra])


if __name__ == "__main__":
    print(score())
