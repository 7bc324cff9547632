"""Text in, text out: a function as people write it, and the CIR or the refusal it becomes."""
import pytest
from snippets import source

from cuvil.diagnostics import CuvilError
from cuvil.frontends.python import Workspace, analyze, capture
from cuvil.ir.text import print_function
from cuvil.ir.types import TensorType
from cuvil.ir.verify import verify


@pytest.fixture
def ir():
    """The CIR text of a function for the given types (jaxtyping annotations serve as well), checked by the verifier."""
    def captured(code: str, name: str = "f", **types: str) -> str:
        function = capture(source(code), name, {k: TensorType.parse(v) for k, v in types.items()} or None, Workspace("."))
        verify(function)
        return print_function(function)
    return captured


@pytest.fixture
def refused():
    """The refusal of a function: its CuvilError, and the text it points at."""
    def refusal(code: str, name: str = "f", **types: str) -> tuple[CuvilError, str]:
        text = source(code)
        with pytest.raises(CuvilError) as raised:
            capture(text, name, {k: TensorType.parse(v) for k, v in types.items()} or None, Workspace("."))
        assert raised.value.span is not None
        return raised.value, text.slice(raised.value.span)
    return refusal


@pytest.fixture
def facts():
    def found(code: str):
        return analyze(source(code), Workspace("."))
    return found


@pytest.fixture
def types(facts):
    """The types of the values that lines of a function bind, by name."""
    def bound(code: str, name: str = "f") -> dict[str, str]:
        from cuvil.frontends.python.values import describe
        file = facts(code)
        return {file.source.slice(e.span): describe(e.value) for e in file.function(name).expressions if e.node == "Name"}
    return bound


@pytest.fixture
def bound(facts):
    """The values that a function binds to names, the last of each name; of the functions it calls too."""
    def found(code: str, name: str = "f"):
        return {fact.name: fact.value for fact in facts(code).function(name).assigns}
    return found
