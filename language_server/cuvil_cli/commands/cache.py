"""Show or clear the cache of compiled objects and lint results. Everything in it can be made again; it also empties itself above a size bound."""
from __future__ import annotations

import argparse
import json

from ..terminal import plural


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("show", "clear", "path"), default="show")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    from cuvil.artifact import cache
    found = list(cache.entries())
    state = {"version": 1, "path": str(cache.folder()), "files": len(found), "bytes": sum(status.st_size for _, status in found), "limit": cache.LIMIT}
    if args.action == "clear":
        state["cleared"] = cache.clear()
    if args.format == "json":
        print(json.dumps(state))
    elif args.action == "path":
        print(state["path"])
    elif args.action == "clear":
        print(f"{state['path']}: {plural(state['files'], 'file')} deleted, {state['cleared'] / 1e6:.1f} MB freed")
    else:
        print(f"{state['path']}: {plural(state['files'], 'file')}, {state['bytes'] / 1e6:.1f} MB of at most {state['limit'] / 1e6:.0f} MB")
    return 0
