"""Numbers drawn from a generator that the program's seed does not reach.

What: a program seeds one library (`torch.manual_seed(0)`) and draws from another one's global generator (`np.random.choice`, `random.sample`), which nothing seeds.
Why: the seed is there so that two runs give the same; each library has a generator of its own, so what is drawn from the others differs from run to run.
Example: `torch.manual_seed(0)` in main, `np.random.permutation(n)` in the function that picks the samples
Instead: `rng = np.random.default_rng(0)` and `rng.permutation(n)`, or `np.random.seed(0)` beside the other seed
Fix: none; a generator that is passed along and a second seed are both right.

Silent where the library's own generator is seeded, under a test of training, where everything is (`set_seed`, `seed_everything`), where a generator is passed, and in programs without a seed.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence

from ..syntax import nodes
from .recorded import around
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import random\nimport numpy as np\nimport torch\n\n"
_PICK = "def pick(n: int):\n    return {}\n\n"
_MAIN = "def main():\n    torch.manual_seed(0)\n    return pick(8)\n"
VALID = (
    _START + _PICK.format("np.random.permutation(n)") + "def main():\n    return pick(8)\n",
    _START + _PICK.format("torch.randperm(n)") + _MAIN,
    _START + _PICK.format("np.random.permutation(n)") + _MAIN.replace("    return", "    np.random.seed(0)\n    return"),
    _START + "def drop(self, n: int):\n    if self.training:\n        return torch.rand(n)\n\n" + _MAIN.replace("torch.manual_seed(0)", "np.random.seed(0)").replace("pick(8)", "drop(8, 8)"),
    _START + _PICK.format("np.random.default_rng(0).permutation(n)") + _MAIN,
    "from transformers import set_seed\n" + _START + _PICK.format("random.sample(range(n), 3)") + "def main():\n    set_seed(0)\n    torch.manual_seed(1)\n    return pick(8)\n",
)
INVALID = (
    Invalid(_START + _PICK.format("»np.random.permutation(n)«") + _MAIN, "NumPy"),
    Invalid(_START + _PICK.format("»random.sample(range(n), 3)«") + _MAIN, "random"),
    Invalid(_START + _PICK.format("»torch.multinomial(torch.ones(n), 3)«") + _MAIN.replace("torch.manual_seed(0)", "np.random.seed(0)"), "PyTorch"),
)

_WHERE = re.compile(r"\brandom\b|manual_seed|\bseed|\btorch\.(?:rand|multinomial|bernoulli|normal)")
_ALL = re.compile(r"\b(?:set_seed|seed_everything|seed_all|set_all_seeds|fix_seed|set_random_seed|seed_everything_default|setup_seed)\b")
_SEEDS = {"PyTorch": re.compile(r"torch\.(?:cuda\.)?manual_seed(?:_all)?|torch\.seed|torch\.random\.manual_seed"), "NumPy": re.compile(r"(?:np|numpy)\.random\.seed"),
          "random": re.compile(r"random\.seed")}
_DRAWS = {"PyTorch": re.compile(r"torch\.(?:randn?|randint|randperm|multinomial|bernoulli|normal|randn?_like)"),
          "NumPy": re.compile(r"(?:np|numpy)\.random\.(?:randn?|random|randint|choice|permutation|shuffle|uniform|normal|standard_normal|random_sample|beta|binomial|poisson|default_rng)"),
          "random": re.compile(r"random\.(?:random|randint|choice|choices|sample|shuffle|uniform|gauss|randrange|normalvariate)")}
_SPECIAL = {"NumPy": "np.random.seed", "random": "random.seed", "PyTorch": "torch.manual_seed"}


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    text = facts.source.text
    if "seed" not in text or _ALL.search(text):
        return
    calls = [(facts.module.code(call.func), call) for call in nodes(facts, _WHERE, cst.Call) if isinstance(call.func, cst.Attribute)]
    seeded = {library: call for library, pattern in _SEEDS.items() for name, call in calls if pattern.fullmatch(name)}
    for name, call in calls if seeded else ():
        library = next((library for library, pattern in _DRAWS.items() if pattern.fullmatch(name)), None)
        if library is None or library in seeded or around(facts, call, cst.FunctionDef) is None or "generator" in facts.module.code(call):
            continue
        test = around(facts, call, cst.If)
        if test is not None and "training" in facts.module.code(test.test):                # what training draws is the trainer's to seed
            continue
        if name.endswith("default_rng") and call.args or library == "random" and not re.search(r"^\s*import random\b", text, re.MULTILINE):
            continue
        other, seed = next(iter(seeded.items()))
        yield RULE.finding(f"this draws from the generator of {library}, and the program seeds that of {other} only: two runs differ; pass a generator, or {_SPECIAL[library]} "
                           f"beside the other seed", facts.module.span(call), (Evidence(facts.module.span(seed), f"seeds {other}"),))


RULE = Rule("CUV913", "unseeded-sampling", kind="nondeterministic-order", severity="info", certainty="hint", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID, needs="text")
