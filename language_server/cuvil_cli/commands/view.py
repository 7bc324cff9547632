"""Print the payload of a panel as JSON: what the editor's panel would draw, for scripts and tests.

examples:
  cuvil view drilldown model.py:Block.forward
  cuvil view heatmap model.py --line 40"""
from __future__ import annotations

import argparse
import json

from ..target import opened, parse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("panel", help="drilldown, heatmap, ...; `list` prints all")
    parser.add_argument("source", nargs="?", metavar="FILE[:function]")
    parser.add_argument("--line", type=int, help="the function at this line")
    parser.add_argument("--column", type=int, default=1)
    parser.add_argument("--format", choices=("json",), default="json")


def run(args: argparse.Namespace) -> int:
    from cuvil.diagnostics import CuvilError
    from cuvil_ide import views
    from cuvil_ide.protocol import Position, ViewRequest, to_json
    if args.panel == "list":
        print(json.dumps(to_json([panel.INFO for panel in views.PANELS]), indent=2))
        return 0
    if not args.source:
        raise CuvilError("no file to view", expected="FILE or FILE:function", hint="cuvil view drilldown model.py")
    target = parse(args.source)
    session = opened(target)
    position = Position(args.line, args.column) if args.line else None
    print(json.dumps(to_json(views.view(session, ViewRequest(args.panel, target.path, position, target.function))), indent=1))
    return 0
