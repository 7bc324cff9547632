"""The order of files in a folder decides what number they get.

What: the result of `glob`, `listdir`, `iterdir` or `scandir` is numbered or sliced without being sorted: `enumerate(os.listdir(d))` that
becomes ids, `files[rank::world]` that becomes a shard, `files[:n]` that becomes a split.
Why: the order is the file system's: it differs between machines and after a copy, so ids no longer match trained weights, and shards overlap.
Example: `ids = {name: i for i, name in enumerate(os.listdir(root))}`
Instead: `enumerate(sorted(os.listdir(root)))`
Fix: unsafe: sorted(...) is put around the call; ids that were trained with the old order change once.

Silent for sorted results, and where the order reaches nothing: sums, sets, lookups, plain loops.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit

from ..syntax import by_type, definitions
from .numbered import Numbered, numbered
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import glob\nimport os\nfrom pathlib import Path\n\ndef f(root, rank, world):\n"
VALID = (
    _START + "    return {name: i for i, name in enumerate(sorted(os.listdir(root)))}\n",
    _START + "    files = sorted(glob.glob(root + '/*.png'))\n    return {f: i for i, f in enumerate(files)}\n",
    _START + "    files = glob.glob(root + '/*.png')\n    files.sort()\n    return {f: i for i, f in enumerate(files)}\n",
    _START + "    return {os.path.getsize(f) for f in glob.glob(root + '/*')}\n",
    _START + "    for i, f in enumerate(os.listdir(root)):\n        print(i, f)\n",
    _START + "    return len(os.listdir(root)), sum(1 for _ in Path(root).iterdir())\n",
)
INVALID = (
    Invalid(_START + "    return {name: i for i, name in enumerate(»os.listdir(root)«)}\n", "os.listdir gives files in the order of the file system",
            _START + "    return {name: i for i, name in enumerate(sorted(os.listdir(root)))}\n"),
    Invalid(_START + "    folders = »glob.glob(os.path.join(root, '*', ''))«\n    return {os.path.basename(f): i for i, f in enumerate(folders)}\n", "glob.glob",
            _START + "    folders = sorted(glob.glob(os.path.join(root, '*', '')))\n    return {os.path.basename(f): i for i, f in enumerate(folders)}\n"),
    Invalid(_START + "    ids = {}\n    for i, p in enumerate(»Path(root).iterdir()«):\n        ids[p.name] = i\n    return ids\n", "iterdir",
            _START + "    ids = {}\n    for i, p in enumerate(sorted(Path(root).iterdir())):\n        ids[p.name] = i\n    return ids\n"),
    Invalid(_START + "    shards = »glob.glob(root + '/*.tar')«\n    return shards[rank::world]\n", "sliced",
            _START + "    shards = sorted(glob.glob(root + '/*.tar'))\n    return shards[rank::world]\n"),
)

_LISTINGS = {"listdir", "glob", "iglob", "rglob", "iterdir", "scandir"}
_WHERE = re.compile(rf"\b(?:{'|'.join(sorted(_LISTINGS))})\s*\(")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for definition in definitions(facts, _WHERE):
        for use in numbered(facts, definition.tree, by_type(definition.tree), _is_listing):
            yield _finding(facts, use)


def _finding(facts: FileFacts, use: Numbered) -> Diagnostic:
    where = facts.module.span(use.made)
    shown = facts.source.slice(facts.module.span(use.made.func))
    shown = shown if shown.count(".") <= 1 and "(" not in shown else shown.rpartition(".")[2]
    fix = None if shown.endswith("scandir") else Fix("unsafe", "Sort the files", (Edit(where, f"sorted({facts.source.slice(where)})"),))
    return RULE.finding(f"{shown} gives files in the order of the file system, and here they are {use.how}: sort them with sorted(...)", where,
                        () if use.at is use.made else (Evidence(facts.module.span(use.at), f"{use.how} here"),), fix)


def _is_listing(node: cst.BaseExpression) -> bool:
    if not isinstance(node, cst.Call):
        return False
    match node.func:
        case cst.Attribute(value=cst.Name(value="os"), attr=cst.Name(value="listdir" | "scandir")):
            return True
        case cst.Attribute(value=cst.Name(value="glob"), attr=cst.Name(value="glob" | "iglob")):
            return True
        case cst.Attribute(attr=cst.Name(value="iterdir")):
            return not node.args
        case cst.Attribute(attr=cst.Name(value="glob" | "rglob")):
            return len(node.args) == 1
        case cst.Name(value="glob" | "listdir"):
            return len(node.args) >= 1
    return False


RULE = Rule("CUV912", "unsorted-directory", kind="nondeterministic-order", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
