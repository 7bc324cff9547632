"""Scope chains and bindings, against Python's own symbol tables where they can be asked."""
import symtable

import pytest

from cuvil.cst import parse
from cuvil.frontends.python.facts import FileFacts, FunctionFacts
from cuvil.source import Source, Span
from cuvil_ide.views.scopes import scopes


def chains(text: str, function: str) -> dict[tuple[str, int], tuple[list[str], list[tuple[str, str, int]]]]:
    """(name, line) -> (chain, [(kind, scope, line of the binding)]); of several uses on a line the last."""
    source = Source("m.py", text)
    module = parse(source)
    definition = module.by_name[function]
    span = Span("m.py", definition.first, definition.indent, definition.last, 0)
    facts = FunctionFacts(function, span, span, None, None, None, (), ())
    found = scopes(FileFacts(source, module, (facts,), (), ()), facts)
    return {(name, span.line): (scope.chain, [(b.kind, b.scope, b.place.range.start.line if b.place else 0) for b in scope.bindings])
            for (span, name), scope in found.items()}


# The common case: a parameter, a local, an import, a builtin.
def test_plain_function():
    found = chains("import torch\ndef f(x):\n    y = torch.exp(x)\n    return len(y)\n", "f")
    assert found["x", 3] == (["f", "module", "builtins"], [("parameter", "f", 2)])
    assert found["y", 4] == (["f", "module", "builtins"], [("assignment", "f", 3)])
    assert found["torch", 3][1] == [("import", "module", 1)]
    assert found["len", 4][1] == [("builtin", "builtins", 0)]
    assert ("exp", 3) not in found          # an attribute is not a name in a scope


def test_rebinding_lists_every_place():
    found = chains("def f(x):\n    x = x + 1\n    for x in (x,):\n        pass\n    return x\n", "f")
    assert found["x", 5][1] == [("parameter", "f", 1), ("assignment", "f", 2), ("assignment", "f", 3)]


# A class body is not in the chain of its methods: `size` alone is not found, `self` is a parameter.
def test_method():
    found = chains("N = 2\nclass Block:\n    size = 4\n    def forward(self, x):\n        return x * size * N\n", "Block.forward")
    assert found["size", 5] == (["Block.forward", "module", "builtins"], [])
    assert found["N", 5][1] == [("assignment", "module", 1)]
    assert found["forward", 4] == (["Block", "module", "builtins"], [("function", "Block", 4)])


def test_nested_functions_lambdas_and_comprehensions():
    text = ("def f(x):\n    def g(y):\n        return x + y\n    h = lambda z: z + x\n    return [i + x for i in g(h(x))]\n")
    found = chains(text, "f")
    assert found["y", 3] == (["f.g", "f", "module", "builtins"], [("parameter", "f.g", 2)])
    assert found["x", 3][1] == [("parameter", "f", 1)]
    assert found["z", 4][0][0] == "f.<lambda>"
    assert found["i", 5] == (["f.<comprehension>", "f", "module", "builtins"], [("assignment", "f.<comprehension>", 5)])
    assert found["g", 2] == (["f", "module", "builtins"], [("function", "f", 2)])


# PEP 572: a walrus in a comprehension binds around it.
def test_walrus_in_a_comprehension():
    found = chains("def f(x):\n    a = [y := i for i in x]\n    return y\n", "f")
    assert found["y", 3][1] == [("assignment", "f", 2)]


def test_global():
    found = chains("N = 1\ndef f():\n    global N\n    N = 2\n    return N\n", "f")
    assert found["N", 5][1] == [("assignment", "module", 1)]


def test_imports_and_aliases():
    found = chains("import a.b\nimport c as d\nfrom e import g, h as i\ndef f():\n    return a, d, g, i\n", "f")
    assert {name: found[name, 5][1] for name in "adgi"} == {
        "a": [("import", "module", 1)], "d": [("import", "module", 2)], "g": [("import", "module", 3)], "i": [("import", "module", 3)]}


def test_keywords_are_not_names():
    found = chains("def f(x):\n    return g(x=None, y=True)\n", "f")
    assert set(found) == {("f", 1), ("x", 1), ("g", 2)}


# Which names are local is what the compiler says.
@pytest.mark.parametrize("body", [
    "a, (b, *c) = x", "for a, b in x:\n        pass", "with open('f') as h:\n        pass", "import p.q, r as s", "a: int = 1", "a += 1",
    "try:\n        pass\n    except E as e:\n        pass", "def g():\n        k = 1", "class C:\n        k = 1", "[i for i in x]", "(w := 1)",
])
def test_locals_agree_with_python(body):
    text = f"def f(x):\n    {body}\n"
    table = symtable.symtable(text, "m.py", "exec").get_children()[0]
    expected = {s.get_name() for s in table.get_symbols() if s.is_local()}
    found = {name for (name, _), (_, bindings) in chains(text, "f").items() for _, scope, _ in bindings if scope == "f"}
    assert found == expected
