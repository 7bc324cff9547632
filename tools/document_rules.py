"""Writes docs/rules/: one page per lint rule, and their list, from the rule files themselves. `--check` says what is stale.

A page holds nothing that the rule does not: its manual, whether it fixes, and the examples that its test runs.
"""
import sys
from pathlib import Path

from cuvil_ide.lints import RULES
from cuvil_ide.lints.rule import Rule

FOLDER = Path(__file__).parents[1] / "docs/rules"
FIXES = {"safe": "safe", "unsafe": "unsafe, on request", "display": "shown, not applied", "none": "none", "": "none"}


def main() -> int:
    pages = {f"{rule.name}.md": page(rule) for rule in RULES} | {"README.md": listing()}
    if "--check" in sys.argv[1:]:
        stale = [name for name, text in pages.items() if not (FOLDER / name).exists() or (FOLDER / name).read_text("utf-8") != text]
        stale += [file.name for file in FOLDER.glob("*.md") if file.name not in pages]
        if stale:
            print(f"docs/rules is not what the rules say: {', '.join(sorted(stale))}\n  try: python tools/document_rules.py")
        return 1 if stale else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file in FOLDER.glob("*.md"):
        file.unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text, "utf-8")
    return 0


def page(rule: Rule) -> str:
    summary, _, manual = rule.manual.strip().partition("\n")
    parts = [f"# {rule.code} {rule.name}", summary,
             f"Severity: {rule.severity} · certainty: {rule.certainty} · fix: {FIXES[rule.fix]} · kind: `{rule.kind}`",
             "\n".join(_paragraph(line) for line in manual.strip().splitlines())]
    if rule.invalid:
        parts.append("## Reported")
        for example in rule.invalid:
            parts.append(_code(example.code.replace("»", "").replace("«", "")))
            if example.fixed:
                parts += ["after the fix:", _code(example.fixed)]
    if rule.valid:
        parts += ["## Silent", *map(_code, rule.valid)]
    return "\n\n".join(part for part in parts if part) + "\n"


def listing() -> str:
    rows = [f"| [{rule.code}]({rule.name}.md) | {rule.name} | {rule.summary} | {rule.certainty} | {FIXES[rule.fix]} |"
            for rule in sorted(RULES, key=lambda rule: rule.code)]
    return "\n".join([
        "# Rules", "",
        "Made from the rule files by `python tools/document_rules.py`; `cuvil rule CODE` prints a page.", "",
        "| code | name | what it finds | certainty | fix |", "|---|---|---|---|---|", *rows]) + "\n"


def _paragraph(line: str) -> str:
    """`What: ...` lines of a manual become short paragraphs of their own."""
    head, colon, rest = line.partition(": ")
    return f"\n**{head}** {rest}" if colon and head in ("What", "Why", "Example", "Instead", "Fix") else line


def _code(text: str) -> str:
    return f"```python\n{text.strip()}\n```"


if __name__ == "__main__":
    sys.exit(main())
