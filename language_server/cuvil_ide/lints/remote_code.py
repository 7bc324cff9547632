"""Code from a model repository runs here, whatever it becomes.

What: `from_pretrained(..., trust_remote_code=True)` without `revision=`.
Why: it downloads Python files from the repository and runs them; without a pinned revision tomorrow's run executes what
somebody pushed tonight.
Example: `AutoModel.from_pretrained(name, trust_remote_code=True)`
Instead: `AutoModel.from_pretrained(name, trust_remote_code=True, revision="<commit>")`
Fix: display: which commit was read only the author knows.

Silent with a revision, and where the value is a variable: then somebody else decides.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix

from ..syntax import last_name, nodes
from .literal import string
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "from transformers import AutoModel\n\ndef load(name, flag):\n"
VALID = (
    _START + "    return AutoModel.from_pretrained(name)\n",
    _START + "    return AutoModel.from_pretrained(name, trust_remote_code=flag)\n",
    _START + "    return AutoModel.from_pretrained(name, trust_remote_code=True, revision='8d4e1f0')\n",
    _START + "    return AutoModel.from_pretrained('./checkpoints/ours', trust_remote_code=True)\n",
    _START + "    return AutoModel.from_pretrained(name, trust_remote_code=True, **load.options)\n",
    _START + "    return dict(trust_remote_code=True)\n",
)
INVALID = (
    Invalid(_START + "    return AutoModel.from_pretrained(name, »trust_remote_code=True«)\n", "runs code from the repository"),
)

_LOADERS = {"from_pretrained", "from_config", "pipeline", "load_dataset", "SentenceTransformer", "LLM", "snapshot_download"}
_WHERE = re.compile(r"trust_remote_code\s*=\s*True")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for call in nodes(facts, _WHERE, cst.Call):
        given = {arg.keyword.value: arg for arg in call.args if arg.keyword is not None}
        asked = given.get("trust_remote_code")
        if last_name(call.func) not in _LOADERS or asked is None or not isinstance(asked.value, cst.Name) or asked.value.value != "True" or {"revision", "code_revision", "local_files_only"} & given.keys():
            continue
        first = string(call.args[0].value) if call.args and call.args[0].keyword is None else None
        if any(arg.star == "**" for arg in call.args) or (first or "").startswith((".", "/", "~")):
            continue
        yield RULE.finding("trust_remote_code=True runs code from the repository, and no revision pins which: name the commit that was read",
                           facts.module.span(asked), fix=Fix("display", 'revision="<commit>"'))


RULE = Rule("CUV902", "remote-code", kind="unsafe-load", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
