"""Explain a rule (by code or name), or list all of them. What is printed is the rule file's own manual."""
from __future__ import annotations

import argparse
import json
from difflib import get_close_matches

from cuvil.diagnostics import CuvilError

from ..terminal import table


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rule", nargs="?", metavar="CODE", help="CUV108 or outer-broadcast")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    from cuvil_ide.lints import RULES
    if args.rule is None:
        print(_listing(RULES) if args.format == "text" else json.dumps({"version": 1, "rules": [_entry(r) for r in RULES]}, indent=2))
        return 0
    rule = next((r for r in RULES if args.rule.lower() in (r.code.lower(), r.name)), None)
    if rule is None:
        close = get_close_matches(args.rule, [n for r in RULES for n in (r.code, r.name)], 3)
        raise CuvilError(f"there is no rule {args.rule}", expected="a code or name that `cuvil rule` lists",
                         hint=f"cuvil rule {close[0]}" if close else "cuvil rule")
    print(_page(rule) if args.format == "text" else json.dumps(_entry(rule), indent=2))
    return 0


def _listing(rules) -> str:
    rows = [(r.code, r.name, r.severity, r.certainty, r.fix or "-", r.summary) for r in rules]
    return table(rows, ("code", "name", "severity", "certainty", "fix", "what it finds"))


def _page(rule) -> str:
    bad = rule.invalid[0].code.replace("»", "").replace("«", "").strip("\n") if rule.invalid else ""
    example = "\n\nreported:\n" + "\n".join(f"    {line}" for line in bad.splitlines()) if bad else ""
    fixed = rule.invalid[0].fixed.strip("\n") if rule.invalid else ""
    after = "\n\nafter the fix:\n" + "\n".join(f"    {line}" for line in fixed.splitlines()) if fixed else ""
    return (f"{rule.code}  {rule.name}  ({rule.severity}, {rule.certainty})\n\n{rule.manual.strip()}{example}{after}\n\n"
            f"silence it: # noqa: {rule.code}   or   # cuvil: ignore[{rule.name}]")


def _entry(rule) -> dict:
    return {"code": rule.code, "name": rule.name, "kind": rule.kind, "severity": rule.severity, "certainty": rule.certainty,
            "fix": rule.fix, "summary": rule.summary, "manual": rule.manual.strip()}
