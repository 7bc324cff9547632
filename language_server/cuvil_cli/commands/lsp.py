"""Run the language server on standard input and output. Editors start it; a person at a terminal will see nothing."""
from __future__ import annotations

import argparse
from importlib import import_module

from cuvil.diagnostics import CuvilError

from ..terminal import interactive


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--stdio", action="store_true", help="the only transport, and the default")


def run(args: argparse.Namespace) -> int:
    import sys
    if interactive(sys.stdin):
        print("cuvil lsp: waiting for a language client on standard input (Ctrl+C ends it)", file=sys.stderr)
    try:
        server = import_module("cuvil_lsp.server")       # by name: this package does not know that one
    except ModuleNotFoundError as error:
        raise CuvilError(f"the language server needs the package {error.name}", hint="pip install cuvil") from None
    return server.main() or 0
