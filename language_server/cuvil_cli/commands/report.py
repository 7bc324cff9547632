"""Write the panels of a file as one HTML page that works offline: the same panels, with their payloads inside.

The page loads nothing and sends nothing; a policy in it forbids both."""
from __future__ import annotations

import argparse
import json
import sys

from cuvil.diagnostics import CuvilError

from .. import files, page
from ..target import chosen, opened, parse
from ..terminal import Progress, plural

LIMIT = 24 << 20                             # bytes of payloads; a page larger than this is slow to open anywhere


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="FILE[:function]")
    parser.add_argument("--output", "-o", default="report.html", metavar="FILE")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how to say what was written")


def run(args: argparse.Namespace) -> int:
    target = parse(args.source)
    data, omitted = payloads(target)
    html = page.report(f"Cuvil: {target.path}", "drilldown", target.path, data["request"]["function"], data)
    files.write(args.output, html)
    shown = sorted({p["function"] for p in data["payloads"].values()})
    if args.format == "json":
        print(json.dumps({"version": 1, "output": args.output, "bytes": len(html.encode("utf-8")), "functions": shown, "omitted": omitted}))
    else:
        print(f"{args.output}: {plural(len(shown), 'function')}, {len(html) / 1e6:.1f} MB")
    if omitted:
        print(f"left out to keep the page under {LIMIT >> 20} MiB: {', '.join(omitted)}", file=sys.stderr)
    return 0


def payloads(target) -> tuple[dict, list[str]]:
    """What the report's host reads: {"version", "panels", "request", "payloads": {"panel:function": payload}}, and what did not fit."""
    from cuvil_ide import views
    from cuvil_ide.protocol import VERSION, ViewRequest, to_json
    session = opened(target)
    functions = [f.name for f in chosen(session.facts(target.path), target)]
    if not functions:
        raise CuvilError(f"{target.path} has no function to show", expected="a function that computes with tensors")
    made, omitted, size = {}, [], 0
    with Progress("drawing", len(functions)) as progress:
        for function in functions:
            progress.step(function)
            drawn = {f"{panel.INFO.id}:{function}": to_json(views.view(session, ViewRequest(panel.INFO.id, target.path, None, function)))
                     for panel in views.PANELS}
            weight = sum(len(json.dumps(p, ensure_ascii=False)) for p in drawn.values())
            if made and size + weight > LIMIT:
                omitted.append(function)
                continue
            size += weight
            made |= drawn
    kept = [f for f in functions if f not in omitted]
    for payload in made.values():            # a page can offer only what is in it
        payload["functions"] = kept
    request = to_json(ViewRequest("drilldown", target.path, None, functions[0]))
    return {"version": VERSION, "panels": to_json([panel.INFO for panel in views.PANELS]), "request": request, "payloads": made}, omitted
