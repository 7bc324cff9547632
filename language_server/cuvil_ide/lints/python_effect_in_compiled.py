"""An effect outside the graph, in code that torch.compile reads.

What: `print`, logging, `time`, `random`, warnings or files in a function that is compiled or exported.
Why: a graph holds tensor operations only, so the compiler breaks it here (torch's GB0059 for built-ins, GB0291 for loggers, GB0007 for skipped
functions); with `fullgraph=True` it raises.
Example: `print(x.shape)` in a compiled `forward`
Instead: the effect before or after the compiled call, or under `if not torch.compiler.is_compiling():`
Fix: display: move it out.

Silent under a test of `is_compiling()`, when `reorderable_logging_functions` or `ignore_logger_methods` is set in the file, and about code that no
compiler reads.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Fix

from .compiled_code import compiled_calls
from .rule import Invalid, Rule
from .tensor_branch_in_compiled import evidence

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import logging\nimport random\nimport time\nimport torch\n\nlogger = logging.getLogger(__name__)\n\n"
_COMPILED = _START + "@torch.compile\ndef f(x: torch.Tensor):\n"
VALID = (
    _COMPILED + '    if not torch.compiler.is_compiling():\n        print("eager")\n    return x.relu()\n',
    _START + 'def f(x: torch.Tensor):\n    print("eager")\n    return x.relu()\n',
    _COMPILED + "    return x.relu() * torch.rand_like(x)\n",
    _START + '@torch.compile\ndef f(x: torch.Tensor):\n    return x.relu()\n\ndef main(x: torch.Tensor):\n    print(f(x))\n',
)
INVALID = (
    Invalid(_COMPILED + '    »print("shape", x.shape)«\n    return x.relu()\n', "GB0059"),
    Invalid(_COMPILED + '    »logger.info("shape")«\n    return x.relu()\n', "GB0291"),
    Invalid(_COMPILED + "    start = »time.time()«\n    return x.relu() + start\n", "GB0007"),
    Invalid(_COMPILED + "    return x * »random.random()«\n", "GB0007"),
    Invalid(_START + "def helper(x: torch.Tensor):\n    »print(x)«\n    return x\n\n@torch.compile\ndef f(x: torch.Tensor):\n    return helper(x).relu()\n", "print"),
)

# What is called, and the graph break that torch reports for it.
_EFFECTS = ((re.compile(r"builtins\.(?:print|open|input)$"), "GB0059"),
            (re.compile(r"logging\.(?:Logger\.|getLogger\.)?(?:debug|info|warning|error|critical|exception|log|warn)$"), "GB0291"),
            (re.compile(r"time\.(?:time|perf_counter|monotonic|sleep|time_ns|perf_counter_ns)$|warnings\.warn$|random\.\w+$|torch\.manual_seed$"), "GB0007"))
_LOGS = re.compile(r"\b_?log(?:ger|ging)?\.(?:debug|info|warning|error|critical|exception|log|warn)$", re.IGNORECASE)
_ALLOWED = re.compile(r"reorderable_logging_functions|ignore_logger_methods|ignore_logging_functions")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    if facts.module.mentions(_ALLOWED):
        return
    for call, region in compiled_calls(facts):
        text = facts.source.slice(call.span).partition("(")[0].strip()
        id = next((id for pattern, id in _EFFECTS if pattern.match(call.name)), "")
        if not id and not call.name.startswith("torch.") and _LOGS.search(text) and "logging" in facts.source.text:
            id = "GB0291"
        if id:
            yield RULE.finding(f"{text} is an effect outside the graph, and breaks the graph of compiled code here ({id}); "
                               "move it out, or put it under `if not torch.compiler.is_compiling()`", call.span, evidence(call.context.callers, region),
                               Fix("display", "call it before or after the compiled function"))


RULE = Rule("CUV404", "python-effect-in-compiled", kind="graph-break", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
