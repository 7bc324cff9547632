"""Explain a rule (by code or name), list all of them, or start one of your own.

examples:
  cuvil rule                        all rules
  cuvil rule CUV108                 the manual of one, with its examples
  cuvil rule new my-finding         writes my_finding.py here: a rule with its manual and examples, for `[tool.cuvil] plugins`
  cuvil rule test my_finding.py     runs the examples of a rule file of yours (and with them its code)"""
from __future__ import annotations

import argparse
import json
import os
import re
from difflib import get_close_matches

from cuvil.diagnostics import CuvilError

from .. import files
from ..terminal import table


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rule", nargs="?", metavar="CODE", help="CUV108 or outer-broadcast; `new` to start one, `test` to run its examples")
    parser.add_argument("name", nargs="?", metavar="NAME", help="with new: the name of the pattern, as in my-finding; with test: the file")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    if args.rule == "new":
        return _new(args.name)
    if args.rule == "test":
        return _test(args.name)
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


def _new(name: str | None) -> int:
    if not name or not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise CuvilError(f"cuvil rule new {name or ''}".rstrip(), expected="a name for the bad pattern in words joined by -, as in print-left")
    path = name.replace("-", "_") + ".py"
    if os.path.exists(path):
        raise CuvilError(f"{path} is there already", expected="a name that is not taken; nothing is ever overwritten")
    files.write(path, TEMPLATE.replace("<name>", name))
    print(f'{path}: a rule that finds `x.cpu()` in a loop, to be made yours.\n  run its examples:  cuvil rule test {path}\n'
          f'  use it:            [tool.cuvil] plugins = ["{path[:-3]}"] in pyproject.toml, then cuvil lint --trusted')
    return 0


def _test(path: str | None) -> int:
    """Runs the examples of a rule file as Cuvil's own tests run those of its rules."""
    from cuvil_ide.examples import failures
    from cuvil_ide.plugins import load_file
    if not path or not os.path.isfile(path):
        raise CuvilError(f"cuvil rule test {path or ''}".rstrip(), expected="the file of a rule")
    try:
        rules = load_file(path)
    except Exception as error:               # the user's module may raise anything
        raise CuvilError(f"{path} cannot be used: {type(error).__name__}: {error}") from None
    failed = [f"{rule.name}: {failure}" for rule in rules for failure in failures(rule)]
    print("\n\n".join(failed) or "\n".join(f"{rule.code} {rule.name}: {len(rule.valid)} silent and {len(rule.invalid)} reported, as the examples say"
                                           for rule in rules))
    return 1 if failed else 0


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


TEMPLATE = '''"""A tensor that is copied to the host in a loop.

What: a call of `.cpu()` in the body of a loop.
Why: each copy waits for all work that was queued before it.
Example: `for x in batches: results.append(model(x).cpu())`
Instead: collect on the device, and copy once after the loop.
Fix: none.
"""
from __future__ import annotations

from collections.abc import Iterator

from cuvil.diagnostics import Diagnostic
from cuvil_ide.lints.rule import Invalid, Rule

_START = "import torch\\n\\ndef f(x: torch.Tensor):\\n    found = []\\n    for i in range(9):\\n"
# Code in which nothing may be found: write the look-alikes here first.
VALID = (
    _START + "        found.append(x * i)\\n    return torch.stack(found).cpu()\\n",
)
# Code in which the text between the marks must be found, with these words in the message, and what a fix makes of it, if there is one.
INVALID = (
    Invalid(_START + "        found.append(»(x * i).cpu()«)\\n    return found\\n", "in a loop"),
)


def check(facts) -> Iterator[Diagnostic]:
    """facts: cuvil.frontends.python.facts.FileFacts. What is unknown is never a finding."""
    for function in facts.functions:
        for call in function.calls:
            if call.name == "torch.Tensor.cpu" and call.context.loops and not call.context.callers:
                yield RULE.finding("this copy to the host is made in a loop", call.span)


RULE = Rule("MY001", "<name>", kind="host-sync-in-loop", severity="performance", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
'''
