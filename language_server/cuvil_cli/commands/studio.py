"""Open the panels in a browser, without an editor. Serves this machine only; Ctrl+C ends it."""
from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", default=".", metavar="PATH", help="a folder or a Python file (default: .)")
    parser.add_argument("--port", type=_port, default=0, help="default: any free port")
    parser.add_argument("--no-open", action="store_true", help="only print the address, do not open a browser")


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is no port: a number from 0 to 65535")
    return int(text)


def run(args: argparse.Namespace) -> int:
    from ..server import Studio, serve
    server = serve(Studio(args.path), args.port)
    print(server.url, flush=True)
    if not args.no_open:
        import webbrowser
        webbrowser.open(server.url)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    return 0
