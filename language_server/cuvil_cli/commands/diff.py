"""Compare what two versions of a file compute: identical, cosmetic (only the text differs), drift, or unknown with a reason.

examples:
  cuvil diff old.py new.py
  cuvil diff HEAD:model.py model.py       a git revision, path relative to the current folder
  cuvil diff v1.0:model.py v2.0:model.py --format json

Exit code 1 when a function drifted; with --strict also when one is unknown."""
from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections import Counter

from cuvil.diagnostics import CuvilError
from cuvil.source import Source

from .. import files
from ..terminal import colourful, paint, plural

TINTS = {"identical": "dim", "cosmetic": "green", "drift": "red", "unknown": "yellow"}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="A", help="FILE or REVISION:FILE")
    parser.add_argument("after", metavar="B", help="FILE or REVISION:FILE")
    parser.add_argument("--strict", action="store_true", help="unknown fails as well")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    from cuvil_ide.diff import diff
    found = diff(load(args.before), load(args.after))
    counts = Counter(f.verdict for f in found)
    if args.format == "json":
        print(json.dumps({"version": 1, "before": args.before, "after": args.after, "functions": [f.to_json() for f in found],
                          "summary": {verdict: counts[verdict] for verdict in TINTS}}, indent=2))
    else:
        print(text(found, colourful()))
    return 1 if counts["drift"] or (args.strict and counts["unknown"]) else 0


def load(name: str) -> Source:
    """A file, or a file of a git revision when no file has that name."""
    revision, colon, path = name.partition(":")
    if os.path.exists(name) or not colon or not revision or not path or (os.name == "nt" and len(revision) == 1):
        return files.read(name).source
    place = path if path.startswith(("./", "/")) else f"./{path}"
    try:
        done = subprocess.run(["git", "show", f"{revision}:{place}"], capture_output=True, timeout=60)
    except FileNotFoundError:
        raise CuvilError(f"{name}: git is not installed", expected="a file, or git to read a revision") from None
    except subprocess.TimeoutExpired:
        raise CuvilError(f"{name}: git did not answer within a minute") from None
    if done.returncode:
        why = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0].removeprefix("fatal: ")
        raise CuvilError(f"{name}: {why}", expected="FILE, or REVISION:FILE with the path relative to the current folder",
                         hint="git log --oneline -- " + path)
    return files.decode(name, done.stdout).source


def text(found, colour: bool = False) -> str:
    width = max((len(f.name) for f in found), default=0)
    lines = []
    for f in found:
        lines.append(f"{paint(f'{f.verdict:<9}', TINTS[f.verdict], colour)}  {f.name:<{width}}  {f.reason}".rstrip())
        for sign, changes in (("+", f.added), ("-", f.removed), ("~", f.changed)):
            lines += [f"  {sign} {_change(c)}" for c in changes]
    counts = Counter(f.verdict for f in found)
    parts = [f"{counts[v]} {v}" for v in TINTS if counts[v]]
    return "\n".join([*lines, f"{plural(len(found), 'function')}" + (f": {', '.join(parts)}" if parts else "")])


def _change(change) -> str:
    """One changed op: what it was, what it is, where in both texts."""
    sides = " → ".join(dict.fromkeys(text for text in (change.before, change.after) if text))
    places = " → ".join(str(span) for span in (change.before_span, change.after_span) if span)
    return " ".join(part for part in (sides, f"[{change.what}]" if change.what else "", f"({places})" if places else "") if part)
