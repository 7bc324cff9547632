"""The printed table of syntax and IR forms is the table the interpreter runs by."""
import libcst

from cuvil.frontends.python.mapping import MAPPING
from cuvil.frontends.python.tables import EXPRESSIONS, STATEMENTS


def test_every_kind_is_a_libcst_node_with_a_form():
    assert all(hasattr(libcst, row.node) and row.form for row in MAPPING)
    assert len({row.node for row in MAPPING}) == len(MAPPING)


def test_every_expression_and_statement_of_python_has_a_row():
    def leaves(kind: type) -> set[str]:
        return {kind.__name__} if not kind.__subclasses__() else set().union(*map(leaves, kind.__subclasses__()))

    rows = {row.node for row in MAPPING}
    assert leaves(libcst.BaseSmallStatement) | leaves(libcst.BaseCompoundStatement) <= rows | {"LazyImport", "LazyImportFrom"}
    assert leaves(libcst.BaseExpression) <= rows | {"From", "TemplatedString", "StarredDictComp"}
    assert rows >= {k.__name__ for k in (*EXPRESSIONS, *STATEMENTS)}
