"""From syntax to IR and through every pass, nothing forgets where it came from: checked on the examples, function by function."""
import ast
from pathlib import Path

import pytest

from cuvil import passes
from cuvil.frontends.python import analyze, capture
from cuvil.ir.function import Function
from cuvil.ir.types import TensorType
from cuvil.source import Source

ROOT = Path(__file__).parents[2]
EXAMPLES = ["attention", "mlp", "convnet", "numpy_pipeline", "decoder_block"]


def read(name: str) -> Source:
    file = ROOT / f"examples/{name}.py"
    return Source(str(file), file.read_text("utf-8"))


def functions(name: str) -> dict[str, Function]:
    return {f.name: f.function for f in analyze(read(name)).functions if f.function is not None and f.refusal is None}


def test_each_operation_has_its_own_span_and_an_assignment_names_its_value():
    source = Source("f.py", "def f(a, b, c):\n    y = a + b * c\n    return y\n")
    vector = TensorType.parse("f32[8]")
    function = capture(source, "f", {"a": vector, "b": vector, "c": vector})
    multiply, add = function.body
    assert (multiply.name, source.slice(multiply.origins[0].span), multiply.label) == ("mul", "b * c", "")
    assert (add.name, source.slice(add.origins[0].span), add.label) == ("add", "a + b * c", "y")
    assert multiply.origins[0].node == add.origins[0].node == "BinaryOperation"
    assert [source.slice(op.origins[0].span) for op in function.inputs] == ["a", "b", "c"]
    assert function.results == (add.id,)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_op_of_the_examples_points_at_an_expression(name: str):
    found = functions(name)
    assert found, f"nothing in examples/{name}.py was understood"
    source = read(name)
    for function in found.values():
        for op in function.body:
            assert op.origins, f"{function.name}: %{op.id} {op.name} came from nowhere"
            for origin in op.origins:
                text = source.slice(origin.span)
                assert ast.parse(f"(\n{text}\n)" if origin.node not in ("FunctionDef", "AugAssign", "Assign", "Return") else text.strip())


@pytest.mark.parametrize("name", EXAMPLES)
def test_places_and_names_survive_every_pass(name: str):
    for function in functions(name).values():
        places = {origin for op in function.ops for origin in op.origins}
        optimized = passes.run(function)
        assert [step for step, _ in optimized.history][-1:] and optimized.function == optimized.history[-1][1]
        for step, after in optimized.history:
            for op in after.body:
                assert op.origins, f"{function.name} after {step}: %{op.id} {op.name} lost its origin"
                assert set(op.origins) <= places, f"{function.name} after {step}: %{op.id} {op.name} has a place that was never captured"
        assert [op.label for op in optimized.function.inputs] == [op.label for op in function.inputs]
        kept = {op.label for op in optimized.function.ops}
        assert {function.by_id[r].label for r in function.results} <= kept
