"""What is known of the expression under the pointer: its type, the op it becomes, the kernel that op is in, and their cost."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cuvil.source import Span

from ..lookup import expression_at, fact_of, function_at
from ..stale import present
from .describe import brought_by, bytes_text, describe, flops_text

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import ExpressionFact, FileFacts, FunctionFacts
    from cuvil.ir.function import Function, Op
    from cuvil.ir.kernel import KernelGraph

    from ..session import Session


@dataclass(frozen=True)
class Hover:
    span: Span
    markdown: str


def hover(session: Session, path: str, line: int, column: int) -> Hover | None:
    """None where there is nothing tensor-like; other servers know more about the rest."""
    from cuvil.frontends.python.values import Tensor
    facts = session.shown(path)
    expression = expression_at(facts, line, column)
    known = describe(expression.value) if expression is not None else ""
    if not known and (expression := _call_named_at(facts, line, column)) is not None:
        known = describe(expression.value)
    definition = facts.module.definition_at(line)
    if not known or definition is not None and present(definition, expression.span) != expression.span:
        return None
    text, more, _ = facts.source.slice(expression.span).partition("\n")
    lines = [f"```python\n{text}{'…' if more else ''}: {known}\n```"]
    if reason := brought_by(expression):
        lines.append(f"*{reason}*")
    function = function_at(facts, line, column)
    if function is not None and isinstance(expression.value, Tensor) and function.function is not None:
        op = function.function.by_id.get(expression.value.op.id)
        if op is not None:
            lines += _op(function.function, op)
            lines += _kernel(session, path, function, op)
    if facts.stale and function is not None and function.name in facts.stale:
        lines.append("*from the last text that could be read*")
    return Hover(expression.span, "\n\n".join(lines))


def _call_named_at(facts: FileFacts, line: int, column: int) -> ExpressionFact | None:
    """On the name of what is called, `exp` in `torch.exp(x)`, people ask for what the call gives."""
    import libcst as cst
    name = facts.module.node_at(line, column)
    called, parent = name, facts.module.parent(name) if name is not None else None
    if isinstance(parent, cst.Attribute) and parent.attr is name:
        called, parent = parent, facts.module.parent(parent)
    if isinstance(name, cst.Name) and isinstance(parent, cst.Call) and parent.func is called:
        return fact_of(facts, facts.module.span(parent))
    return None


def _op(function: Function, op: Op) -> list[str]:
    from cuvil.cost import cost_of_op, example_sizes
    from cuvil.ops.definition import DEFINITIONS
    definition = DEFINITIONS.get(op.name)
    if op.name in ("input", "parameter") or definition is None:
        return []
    summary = f": {definition.summary}" if definition.summary else ""
    lines = [f"op `{op.name}`{summary}"]
    if op.type.complete and all(function.by_id[o].type.complete for o in op.operands):
        cost = cost_of_op(function, op)
        sizes = example_sizes(function.symbols)
        at = cost.at(sizes)
        lines.append(f"alone: {flops_text(at.flops)}, {bytes_text(at.bytes)}{_given(function, sizes)}" +
                     (f"  \nFLOPs `{cost.flops}`, bytes `{cost.bytes}`" if sizes else ""))
    return lines


def _kernel(session: Session, path: str, facts: FunctionFacts, op: Op) -> list[str]:
    from cuvil.cost import cost_of_kernel, example_sizes
    if op.name in ("input", "parameter") or not session.glance(path).complete or facts.compiled.refusal is not None:
        return []
    try:
        graph: KernelGraph = session.stages(path, facts.name).kernels
    except Exception:                          # refused, or a defect of ours in a later stage: the type is still right
        return []
    lines = []
    for kernel in graph.kernels:
        if any(origin in kernel.origins for origin in op.origins):
            sizes = example_sizes(graph.function.symbols)
            cost = cost_of_kernel(graph.function, kernel).at(sizes)
            intensity = f", {cost.intensity:.1f} FLOP/B" if cost.intensity is not None else ""
            lines.append(f"kernel `{kernel.name}` ({kernel.kind}, {len(kernel.ops)} ops): "
                         f"{flops_text(cost.flops)}, {bytes_text(cost.bytes)}{intensity}{_given(graph.function, sizes)}")
    return lines


def _given(function: Function, sizes: dict[str, int]) -> str:
    """For which sizes the numbers are, when the code leaves them open."""
    return f" at {', '.join(f'{name} = {size}' for name, size in sizes.items())}" if sizes else ""
