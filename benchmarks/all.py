"""Runs every benchmark of this folder, one after the other; --json gives one object with a list of rows for each."""
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BENCHMARKS = sorted(f for f in HERE.glob("*.py") if f.name not in ("all.py", "report.py", "messages.py"))


def main() -> int:
    as_json, failed, found = "--json" in sys.argv[1:], [], {}
    for file in BENCHMARKS:
        command = [sys.executable, str(file), *(["--json"] if as_json else [])]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=HERE.parent)
        if done.returncode:
            failed.append(file.name)
        elif as_json:
            found[file.stem] = json.loads(done.stdout)
        else:
            print(done.stdout)
    if as_json:
        print(json.dumps(found, indent=1))
    if failed:
        print("failed:", ", ".join(failed), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
