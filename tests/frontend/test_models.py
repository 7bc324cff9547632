"""Calls that are understood and not compiled, through the front end: types go on behind them, and what torch would refuse is found."""
import pytest

from cuvil.frontends.python import Workspace, understood
from cuvil.frontends.python.targets import Targets
from cuvil.frontends.python.values import Tensor, describe
from cuvil.source import Source

HEADER = "import numpy as np\nimport torch\nimport torch.nn as nn\n"
CASES = [
    ("torch.topk(torch.zeros(2, 9), 3).indices", "i64[2, 3]"), ("torch.linalg.svd(torch.zeros(4, 3))[1]", "f32[3]"),
    ("torch.linalg.svd(torch.zeros(4, 3), full_matrices=False).Vh", "f32[3, 3]"), ("torch.zeros(5).sort(descending=True).values", "f32[5]"),
    ("nn.LSTM(3, 4, batch_first=True)(torch.zeros(2, 5, 3))[0]", "f32[2, 5, 4]"), ("nn.LSTM(3, 4)(torch.zeros(5, 2, 3))[1][1]", "f32[1, 2, 4]"),
    ("nn.MultiheadAttention(8, 2)(*[torch.zeros(5, 2, 8)] * 3)[1]", "f32[2, 5, 5]"),
    ("nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 2)(torch.zeros(5, 2, 8))", "f32[5, 2, 8]"),
    ("np.median(np.zeros((2, 3), np.float32), axis=0)", "f32[3]"), ("torch.nn.functional.pad(torch.zeros(1, 3, 4, 4), (1, 1), mode='reflect')", "f32[1, 3, 4, 6]"),
]
CASES += [("nn.utils.parametrizations.weight_norm(nn.Conv1d(3, 4, 3))(torch.zeros(2, 3, 9))", "f32[2, 4, 7]"),
          ("nn.utils.remove_weight_norm(nn.utils.weight_norm(nn.Linear(3, 4)))(torch.zeros(2, 3))", "f32[2, 4]")]
WRONG = [("nn.LSTM(3, 4)(torch.zeros(5, 2, 7))", "the last axis has 7 features, input_size is 3"), ("torch.linalg.inv(torch.zeros(2, 3))", "2 rows and 3 columns"),
         ("torch.topk(torch.zeros(4), 5)", "topk of 5 elements on axis -1 of f32[4], which has 4"), ("torch.zeros(4)[torch.zeros(2)]", "an index of f32[2]"),
         ("nn.MultiheadAttention(8, 2)(torch.zeros(5, 2, 8), torch.zeros(6, 3, 8), torch.zeros(6, 3, 8))", "the batches have sizes 2 and 3 on axis 1")]


def facts(expression: str, targets: Targets = Targets()):
    source = Source("file.py", f"{HEADER}def f():\n    return {expression}\n")
    found, = understood(source, Workspace(targets=targets)).functions
    return found


@pytest.mark.parametrize("expression, type", CASES)
def test_types_go_on(expression, type):
    values = [e.value for e in facts(expression).expressions if e.span.line == 5 and isinstance(e.value, Tensor)]
    assert describe(values[-1]) == type


@pytest.mark.parametrize("expression, words", WRONG)
def test_what_torch_refuses_is_found(expression, words):
    assert words in " ".join(problem.what for problem in facts(expression).problems)


def test_promotion_is_that_of_the_numpy_that_code_is_checked_for():
    before, after = (facts("np.zeros(3, np.int8) + 200", Targets(numpy=version)) for version in ((1, 26), (2, 1)))
    assert describe([e.value for e in before.expressions if isinstance(e.value, Tensor)][-1]) == "i16[3]" and not before.problems
    assert [problem.kind for problem in after.problems] == ["argument"]         # an OverflowError since NEP 50
