"""`cuvil COMMAND ...`: finds the command, runs it, and turns whatever goes wrong into one message and an exit code.

No traceback reaches a user; CUVIL_DEBUG=1 shows it. Exit codes: 0 fine, 1 findings or a failed check, 2 usage or internal error.
"""
from __future__ import annotations

import gc
import os
import sys

from .commands import COMMANDS
from .garbage import collect_seldom


def main(argv: list[str] | None = None) -> int:
    collect_seldom()                         # 85,000 objects for `lint`: looking them over takes a tenth of the start
    code = _guarded(sys.argv[1:] if argv is None else argv)
    if argv is None:
        gc.freeze()                          # what is left goes with the process
    return code


def _guarded(arguments: list[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):   # a terminal that cannot show a character gets an escape, not a crash
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:                  # `cuvil ... | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        return _failed(error, arguments)


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_help())
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        print(f"cuvil {version()}")
        return 0
    name = arguments[0]
    if name not in COMMANDS:
        from difflib import get_close_matches
        close = get_close_matches(name, COMMANDS, 1)
        print(f"cuvil: there is no command {name!r}" + (f"; did you mean `cuvil {close[0]}`?" if close else "") + "\n  try: cuvil --help",
              file=sys.stderr)
        return 2
    from argparse import ArgumentParser, RawDescriptionHelpFormatter
    from importlib import import_module
    command = import_module(f".commands.{name}", __package__)
    parser = ArgumentParser(f"cuvil {name}", description=command.__doc__, formatter_class=RawDescriptionHelpFormatter)
    command.arguments(parser)
    return command.run(parser.parse_args(arguments[1:]))


def _help() -> str:
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items())
    return ("usage: cuvil COMMAND [options]\n\nSee Python inference code as a compiler sees it.\n\n"
            f"commands:\n{commands}\n\n`cuvil COMMAND --help` explains one. Exit codes: 0 fine, 1 findings, 2 usage or internal error.")


def version() -> str:
    from importlib.metadata import PackageNotFoundError, version
    try:
        return version("cuvil")
    except PackageNotFoundError:
        return "unknown"


def _failed(error: Exception, arguments: list[str]) -> int:
    if os.environ.get("CUVIL_DEBUG"):
        import traceback
        traceback.print_exc()
    from cuvil.diagnostics import CuvilError
    if isinstance(error, CuvilError):        # a refusal; one without a place, or of a file that cannot be read, is about the command line
        print(f"cuvil: {error}", file=sys.stderr)
        return 1 if error.span and error.code != "CUV004" else 2
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        print(f"cuvil: {place}{error.strerror or error}", file=sys.stderr)
        return 2
    name = type(error).__name__
    detail = " ".join(str(error).split())[:200]
    command = " ".join(["cuvil", *arguments[:1]])
    print(f"cuvil: internal error in `{command}`: {name}{': ' + detail if detail else ''}\n"
          "  try: the same command with CUVIL_DEBUG=1, and report what it prints", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
