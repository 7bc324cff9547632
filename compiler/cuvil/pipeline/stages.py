"""One function's stages, each made on first use and kept. What a stage refuses is its CuvilError, raised where it is asked for."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ..diagnostics import CuvilError
from ..ir.function import Function
from ..lineage import Lineage

if TYPE_CHECKING:
    from ..ir.kernel import KernelGraph
    from ..llvm import Line, LlvmModule
    from ..loops.memory import Program
    from ..loops.nest import Nest
    from ..passes import Optimized
    from ..targets import Target


@dataclass(frozen=True)
class Stages:
    """One function on its way to one target. Immutable: other options make another object.

    function   as captured, its symbols replaced by `dims` where they were given
    sources    path -> text of the files that origins point into, for the source layer; read from disk where missing
    """

    function: Function
    target: str = "cpu"
    opt_level: int = 2
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, function: Function, target: str = "cpu", opt_level: int = 2, dims: Mapping[str, int] | None = None,
           sources: Mapping[str, str] | None = None) -> Stages:
        if opt_level not in (0, 1, 2):
            raise CuvilError(f"opt_level is {opt_level!r}", expected="0 (no fusion), 1 (no epilogues) or 2 (all)")
        return cls(sized(function, dims) if dims else function, target, opt_level, sources or {})

    def at(self, **dims: int) -> Stages:
        """The same function for given sizes."""
        return replace(self, function=sized(self.function, dims))

    @cached_property
    def optimized(self) -> Optimized:
        from .. import passes
        return passes.run(self.function)

    @cached_property
    def kernels(self) -> KernelGraph:
        from ..passes.fuse import fuse
        return fuse(self.optimized.function, self.opt_level, self.optimized.composites)

    @cached_property
    def machine(self) -> Target:
        """The target as data; CuvilError when there is none of that name."""
        from .. import llvm
        try:
            return llvm.target(self.target)
        except ValueError as error:
            raise CuvilError(str(error), code="CUV004") from None

    @cached_property
    def program(self) -> Program:
        """Loop nests and the memory plan; sizes must be numbers by now."""
        from .. import loops
        self._all_sizes_known()
        return loops.program(self.kernels, self.machine)

    @property
    def nests(self) -> tuple[Nest, ...]:
        return self.program.nests

    @cached_property
    def llvm(self) -> LlvmModule:
        from .. import llvm
        return llvm.emit(self.program)

    @cached_property
    def assembly(self) -> tuple[Line, ...]:
        return tuple(self.llvm.assembly())

    @cached_property
    def object(self) -> bytes:
        return self.llvm.object()

    @cached_property
    def lineage(self) -> Lineage:
        """All layers; those that cannot be made (symbolic sizes, a refused op) are left out, `problems` says why."""
        from .layers import lineage
        return lineage(self)

    @cached_property
    def problems(self) -> dict[str, CuvilError]:
        """Layer -> why it cannot be made."""
        found: dict[str, CuvilError] = {}
        for layer, make in (("kernel", "kernels"), ("loop", "nests"), ("llvm", "llvm"), ("asm", "assembly")):
            try:
                getattr(self, make)
            except CuvilError as error:
                found[layer] = error
        return found

    def _all_sizes_known(self) -> None:
        from ..cost import free_symbols
        symbols = free_symbols(self.function)
        if symbols:
            names = ", ".join(symbols)
            raise CuvilError(f"{self.function.name} has no sizes for {names}", self.function.origin and self.function.origin.span,
                             "a number for each symbolic size", f"give shapes: input_shapes={{...}} or --shape; sizes needed: {names}",
                             code="CUV003")


def sized(function: Function, dims: Mapping[str, int]) -> Function:
    """The function for given sizes. CuvilError when its operations cannot have them: open sizes may be less open than they look."""
    from ..ir.verify import verify
    try:
        return verify(function.substitute(dims))
    except CuvilError as error:
        shown = ", ".join(f"{name} = {size}" for name, size in dims.items())
        raise CuvilError(f"{function.name} cannot have the sizes {shown}: {error.what.partition('`: ')[2] or error.what}", error.span,
                         "sizes that all its operations can have", "@cu.compile(input_shapes=...), or --shape and --dim on the command line") from None
