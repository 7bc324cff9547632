"""A Python function that is compiled when it is first called with arguments of some types.

The function's source is captured, its code is not run. Each combination of element types and shapes gets a library of its
own, kept by content in the cache; a function keeps the last few at hand. What cannot be compiled right is refused with its
reason, or runs as it is with fallback="eager" after one warning.
"""
from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..diagnostics import CuvilError
from .arguments import check_settings, check_shapes, key_of, library_of, same, type_of, type_of_argument
from .options import Options
from .source import source_of

if TYPE_CHECKING:
    from ..artifact.build import Built
    from ..artifact.device import DeviceCode
    from ..artifact.load import Library
    from ..ir.function import Function
    from ..pipeline import Stages

KEPT = 32                                    # libraries one function keeps open


class Compiled:
    """A function that compiles itself for the types it is called with. `__wrapped__` is the Python function."""

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        self.options = options
        self._lock = threading.RLock()
        self._libraries: OrderedDict[tuple, Library] = OrderedDict()
        self._built: dict[tuple, Built | DeviceCode] = {}
        self._calls: tuple[Callable[[Sequence[Any]], Any], ...] = ()
        self._refused: dict[tuple, CuvilError] = {}
        self._warned = False
        functools.update_wrapper(self, function)

    # Calls

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        if not keywords:
            for call in self._calls:
                result = call(arguments)
                if result is not NotImplemented:
                    return result
        return self._first_call(arguments, keywords)

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is not None:
            raise CuvilError(f"{self.__qualname__} is a method", expected="a function, or an nn.Module instance given to cu.compile",
                             hint="cu.compile(model) compiles the forward of a module with its weights")
        return self

    def _first_call(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        try:
            given = self._given(arguments, keywords)
            library = self._compile({name: type_of_argument(name, value) for name, value in given.items()}, library_of(given.values()))
        except CuvilError as error:
            if self.options.fallback != "eager":
                raise
            if not self._warned:
                self._warned = True
                warnings.warn(f"{self.__qualname__} runs uncompiled: {error}", RuntimeWarning, stacklevel=3)
            return self.__wrapped__(*arguments, **keywords)
        return library(*(given[slot.name] for slot in library.signature.inputs))

    def _given(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by parameter name, defaults left out: tensors, and Python values, which are compiled in."""
        signature = inspect.signature(self.__wrapped__)
        try:
            bound = signature.bind(*arguments, **keywords)
        except TypeError as error:
            raise CuvilError(f"{self.__qualname__}: {error}", expected=f"{self.__name__}{signature}") from None
        for name in bound.arguments:
            if signature.parameters[name].kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                raise CuvilError(f"{self.__qualname__} takes *{name}", expected="parameters that are named one by one")
        return {name: value for name, value in bound.arguments.items() if not same(value, signature.parameters[name].default)}

    # Compiling

    def _compile(self, types: Mapping[str, Any], library: str | None = None) -> Library:
        from ..artifact.load import load_built
        if self._is_for_a_device:
            raise CuvilError(f"{self.__qualname__} is compiled for {self.options.target}, which cannot be called from Python",
                             expected='target="cpu"', hint=f"{self.__name__}.save(...) writes the device code")
        key = key_of(types, library)
        with self._lock:
            if key in self._libraries:
                return self._libraries[key]
            check_settings()
            if key in self._refused:
                raise self._refused[key]
            try:
                built = self._build(self._stages(types, library))
                loaded = load_built(built, library)
            except CuvilError as error:
                self._refused[key] = error
                raise
            self._libraries[key], self._built[key] = loaded, built
            while len(self._libraries) > KEPT:
                oldest, _ = self._libraries.popitem(last=False)
                del self._built[oldest]
            self._calls = tuple(kept.call for key, kept in reversed(self._libraries.items()) if self._called_by_position(key, kept))
            return loaded

    def _called_by_position(self, key: tuple, library: Library) -> bool:
        """Its tensors are the first parameters and everything else is the default, so types alone tell that a call is for it."""
        names = [slot.name for slot in library.signature.inputs]
        return names == list(inspect.signature(self.__wrapped__).parameters)[:len(names)] and all(not isinstance(each, str) for _, each in key[1:])

    def _build(self, stages: Stages) -> Built:
        from ..artifact.build import build
        return build(stages)

    def stages(self, shapes: Mapping[str, Any] | None = None) -> Stages:
        """The stages of the function, for given shapes (tuples, or types such as "f32[2, 3]"), or symbolic as it declares them."""
        return self._stages(None if shapes is None else self._types_of(shapes))

    def _stages(self, types: Mapping[str, Any] | None, library: str | None = None) -> Stages:
        from ..artifact.build import relative_to
        from ..pipeline import Stages
        function, text = self._capture(types, library)
        path = function.origin.span.path if function.origin else ""
        return Stages.of(relative_to(function, str(Path(path).parent)), self.options.target, self.options.opt_level,
                         sources={Path(path).name: text})

    def _capture(self, types: Mapping[str, Any] | None, library: str | None = None) -> tuple[Function, str]:
        from ..frontends.python import Workspace, capture
        source = source_of(self.__wrapped__)
        if types is None and self.options.input_shapes:
            types = self._types_of(self.options.input_shapes)
        elif types is not None:
            check_shapes(self.__qualname__, self.options.input_shapes, types)
        inputs, workspace = dict(types) if types is not None else None, Workspace(Path(source.path).parent)
        return capture(source, self.__qualname__, inputs, workspace, library), source.text

    def _types_of(self, shapes: Mapping[str, Any]) -> dict[str, Any]:
        """Shapes as types; numbers and None are values of parameters that are no tensors."""
        return {name: shape if shape is None or isinstance(shape, (bool, int, float)) else
                type_of(name, shape, self.options.input_dtypes.get(name)) for name, shape in shapes.items()}

    # What was compiled

    def save(self, path: str | Path, shapes: Mapping[str, Any] | None = None) -> tuple[Path, ...]:
        """Write the library with its header and manifest, all or none; the paths, the library first.

        shapes    name -> sizes; by default those of input_shapes when all are numbers, else those of the last call"""
        return self._of(shapes).write(Path(path).absolute())

    @property
    def manifest(self) -> dict[str, Any]:
        """Of what was compiled last."""
        return self._of(None).manifest

    def explain(self, shapes: Mapping[str, Any] | None = None) -> str:
        """Kernels, sizes and costs, as text."""
        from ..artifact.explain import explain
        return explain(self._of(shapes).manifest)

    def _of(self, shapes: Mapping[str, Any] | None) -> Built | DeviceCode:
        declared = self._types_of(self.options.input_shapes)
        if shapes is not None:
            types = self._types_of(shapes)
        elif self._built:
            return self._built[next(reversed(self._libraries or self._built))]
        elif declared and not any(type.symbols for type in declared.values()):
            types = declared
        else:
            raise CuvilError(f"{self.__qualname__} has no sizes yet", expected="a call, input_shapes of numbers, or shapes",
                             hint='save("libf.so", shapes={"x": (2, 3)})')
        key = key_of(types)
        if key not in self._built:
            if self._is_for_a_device:
                from ..artifact.device import build_device
                self._built[key] = build_device(self._stages(types))
            else:
                self._compile(types)
        return self._built[key]

    @property
    def _is_for_a_device(self) -> bool:
        from ..targets import CPUS
        return self.options.target not in ("cpu", *CPUS)

    def __repr__(self) -> str:
        return f"<cu.compile {self.__qualname__}: {len(self._libraries)} compiled>"
