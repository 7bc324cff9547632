"""The one idea: every element of every layer remembers which elements of the layer before it came from.

    characters -> CST node -> IR op -> kernel -> loop statement -> LLVM instruction -> machine instruction

An Origin is the first edge, from an op to the text (with the calls through which it was inlined). A Lineage is the
whole graph for one function: elements with stable ids, and N:M edges that always point towards the source. Drilldown
walks it, heatmaps sum along it, evidence and line tables are edges of it.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from .source import Span

LAYERS = ("source", "cst", "ir", "kernel", "loop", "llvm", "asm")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an op came from: the text, the kind of its CST node, and the chain of calls that led there (innermost first)."""

    span: Span
    node: str = ""
    callers: tuple[Span, ...] = ()


def merge_origins(*groups: Iterable[Origin]) -> tuple[Origin, ...]:
    """All origins in their first order, each once: what a pass gives an op that stands for several."""
    return tuple(dict.fromkeys(origin for group in groups for origin in group))


@dataclass(frozen=True, slots=True)
class Element:
    """One thing a layer is made of.

    id      stable and unique in the function: "ir:%3", "loop:k0.2", "asm:17"
    text    the line people see
    parent  the element that encloses it in the same layer (a loop, a CST node), for indentation and folding
    span    its place in the user's files; on the source and cst layers only
    note    why it has no origin, if it has none ("register spill", "function prologue")
    """

    id: str
    layer: str
    text: str
    parent: str | None = None
    span: Span | None = None
    note: str = ""


@dataclass(frozen=True)
class Coverage:
    mapped: int
    total: int


@dataclass(frozen=True)
class Lineage:
    """Elements in reading order, layer by layer, and for each the ids it came from."""

    elements: tuple[Element, ...]
    origins: dict[str, tuple[str, ...]]

    @cached_property
    def by_id(self) -> dict[str, Element]:
        return {element.id: element for element in self.elements}

    @cached_property
    def derived(self) -> dict[str, tuple[str, ...]]:
        """The edges turned round: for each element, what was made from it."""
        turned: dict[str, list[str]] = {}
        for element, sources in self.origins.items():
            for source in sources:
                turned.setdefault(source, []).append(element)
        return {key: tuple(value) for key, value in turned.items()}

    def layer(self, name: str) -> Iterator[Element]:
        return (element for element in self.elements if element.layer == name)

    def trace(self, id: str) -> frozenset[str]:
        """Everything the element came from and everything that was made from it, itself included."""
        return frozenset({id} | self._reach(id, self.origins) | self._reach(id, self.derived))

    def _reach(self, id: str, edges: dict[str, tuple[str, ...]]) -> set[str]:
        seen: set[str] = set()
        todo = [id]
        while todo:
            for following in edges.get(todo.pop(), ()):
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
        return seen

    def coverage(self, layer: str) -> Coverage:
        elements = list(self.layer(layer))
        return Coverage(sum(1 for e in elements if self.origins.get(e.id)), len(elements))
