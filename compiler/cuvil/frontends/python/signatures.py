"""What a function says of its parameters: annotations, defaults, and the shapes given to `@cu.compile`.

    x: Float[Tensor, "b t 64"]        f32[b, t, 64] (jaxtyping; also Int, Bool, Shaped, Float32 and np.ndarray inside)
    x: torch.Tensor, x: np.ndarray    a tensor of unknown shape; NDArray[np.uint8] gives the element type
    n: int = 4                        the number 4
    @cu.compile(input_shapes={"x": ("b", 3, 224)}, input_dtypes={"x": "float16"})
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import libcst as cst

from ...diagnostics import CuvilError
from ...ir.dims import Dim, Poly, parse_dim
from ...ir.types import DType, TensorType
from ...source import Span
from . import calls, joins, objects, scope
from .documented import documented
from .facts import Entry
from .libraries import library_of
from .library import dtype_named
from .values import CPU, Device, Library, Many, Mapping, Scalar, Sequence, Tensor, Unknown, Untyped, UserFunction, Value
from .walk import Frame, Walk
from .workspace import dotted, library

JAXTYPING: dict[str, DType | None] = {
    "Float": None, "Int": None, "UInt": None, "Integer": None, "Inexact": None, "Real": None, "Num": None, "Shaped": None, "Bool": DType.BOOL,
    "Float16": DType.F16, "BFloat16": DType.BF16, "Float32": DType.F32, "Float64": DType.F64, "Int8": DType.I8, "Int16": DType.I16,
    "Int32": DType.I32, "Int64": DType.I64, "UInt8": DType.U8}
MAY_BE_NONE = "parameter that may be None"
DEFAULTS = {"Float": DType.F32, "Int": DType.I64}          # what a plain Float or Int is taken as, where the compiler needs one
TENSORS = {"torch.Tensor": None, "torch.FloatTensor": DType.F32, "torch.LongTensor": DType.I64, "torch.BoolTensor": DType.BOOL,
           "torch.HalfTensor": DType.F16, "torch.IntTensor": DType.I32, "torch.nn.Parameter": None}
LISTS = ("builtins.list", "typing.List", "typing.Sequence", "collections.abc.Sequence")
ARRAYS = ("numpy.ndarray", "numpy.typing.NDArray", "numpy.typing.ArrayLike")


@dataclass(frozen=True)
class Declared:
    """A type that is written down. library: None when the annotation does not say."""

    type: TensorType
    library: str | None


def inputs_of(walk: Walk, function: UserFunction, entry: Entry | None, given: dict[str, TensorType] | None) -> dict[str, Value]:
    """Every parameter as a value; tensors become `input` ops, numbered by their place in the signature.

    given: types of tensors and values of other parameters; None when the function is walked for its facts, not for a call."""
    names: dict[str, Value] = {}
    shapes, dtypes = _options(entry)
    parameters = function.node.params
    listed = [*parameters.posonly_params, *parameters.params, *parameters.kwonly_params]
    skip = 1 if function.receiver is not None else 0
    written = documented(function.node, function.definition.text) if walk.assume and not walk.building and function.definition is not None else {}
    for index, parameter in enumerate(listed):
        name = parameter.name.value
        if index < skip:
            names[name] = function.receiver
            continue
        declared = declared_type(walk, parameter.annotation.annotation) if parameter.annotation is not None else None
        place = index - skip
        optional = parameter.default is not None and isinstance(parameter.default, cst.Name) and parameter.default.value == "None"
        if given is None and entry is None and optional and not walk.building and parameter.annotation is not None and name not in shapes:
            inner = declared if isinstance(declared, Declared) else optional_type(walk, parameter.annotation.annotation)
            if isinstance(inner, Declared) and (not walk.assume or name in written or inner.type.dtype is not None):
                names[name] = joins.optional(_input(walk, name, place, _known(walk, inner, name, place, written), inner, function))
                continue
        elif given is None and entry is None and written.get(name) is not None and not optional and not (
                isinstance(declared, Declared) and declared.type.shape is not None):
            inner = declared if isinstance(declared, Declared) else Declared(TensorType(None, None), None)
            names[name] = _input(walk, name, place, _known(walk, inner, name, place, written), inner, function)
            continue
        elif given is None and place in walk.types and not optional:
            inner = declared if isinstance(declared, Declared) else Declared(TensorType(None, None), None)
            names[name] = _input(walk, name, place, walk.types[place], inner, function)
            continue
        if given is not None and name in given and not isinstance(given[name], TensorType):
            names[name] = value_of(given[name])
        elif given is not None and name in given:
            names[name] = _input(walk, name, place, given[name], declared, function)
        elif name in shapes:
            dtype = dtypes.get(name) or (declared.type.dtype if declared is not None and isinstance(declared, Declared) else None) or DType.F32
            names[name] = _input(walk, name, place, TensorType(shapes[name], dtype), declared, function)
        elif isinstance(declared, Declared) and not (parameter.default is not None and given is not None):
            dtype = dtypes.get(name) or declared.type.dtype or walk.dtypes.get(place)
            names[name] = _input(walk, name, place, TensorType(declared.type.shape, dtype), declared, function)
        elif parameter.default is not None:
            value = calls.default_value(walk, function, parameter.default)
            optional = isinstance(value, Scalar) and value.value is None
            if optional and (walk.assume or walk.building):
                names[name] = value                           # as it is called by default
                continue
            names[name] = Unknown(MAY_BE_NONE, walk.span(parameter)) if optional and given is None and entry is None else value
        elif isinstance(declared, str):
            names[name] = Unknown(declared, walk.span(parameter))
        else:
            known = objects.of_class(_name(walk, parameter.annotation.annotation)) if parameter.annotation is not None else None
            if known is None and walk.assume and not walk.building and parameter.annotation is not None:
                known = _list_of_tensors(walk, name, place, parameter.annotation.annotation, function)
            names[name] = known or Untyped(name, place, walk.span(parameter))
    alone = walk.assume and not walk.building                # nothing more is given
    reason = calls.UNGIVEN if walk.building and given is None else "arguments that are not known one by one"
    if isinstance(parameters.star_arg, cst.Param):
        names[parameters.star_arg.name.value] = Sequence(()) if alone else Unknown(reason)
    if parameters.star_kwarg is not None:
        names[parameters.star_kwarg.name.value] = Mapping({}) if alone else Unknown(reason)
    return names


def _known(walk: Walk, declared: Declared, name: str, place: int, written: dict[str, tuple[int | None, DType | None]]) -> TensorType:
    """The declared type of an input, with what is documented or was found out by an earlier walk."""
    if place in walk.types:
        return walk.types[place]
    rank, dtype = written.get(name, (None, None))
    shape = declared.type.shape
    if shape is None and rank is not None:
        shape = tuple(walk.fresh_symbol(f"{name}{axis}") for axis in range(rank))
    return TensorType(shape, declared.type.dtype or walk.dtypes.get(place) or dtype)


def _list_of_tensors(walk: Walk, name: str, place: int, annotation: cst.BaseExpression, function: UserFunction) -> Many | None:
    """`list[Tensor]`: tensors of which nothing else is known."""
    if not isinstance(annotation, cst.Subscript) or _name(walk, annotation.value) not in LISTS or not isinstance(annotation.slice[0].slice, cst.Index):
        return None
    inner = declared_type(walk, annotation.slice[0].slice.value)
    if not isinstance(inner, Declared) or inner.library == "numpy":
        return None
    walk.builder.origins = (walk.parameter_origin(name),)
    return Many(walk.tensor(walk.builder.append("opaque", (), {"call": "an item of a list that is given"}, inner.type), "torch"))


def optional_type(walk: Walk, annotation: cst.BaseExpression) -> Declared | None:
    """The tensor type of `Tensor | None` and `Optional[Tensor]`."""
    parts: list[cst.BaseExpression] = []
    match annotation:
        case cst.SimpleString():
            try:
                return optional_type(walk, cst.parse_expression(annotation.evaluated_value))
            except (cst.ParserSyntaxError, TypeError):
                return None
        case cst.BinaryOperation(left=left, operator=cst.BitOr(), right=right):
            parts = [left, right]
        case cst.Subscript(value=of, slice=elements) if _name(walk, of) in ("typing.Optional", "typing.Union"):
            parts = [element.slice.value for element in elements if isinstance(element.slice, cst.Index)]
    found = [declared_type(walk, part) for part in parts if not (isinstance(part, cst.Name) and part.value == "None")]
    return found[0] if len(found) == 1 and isinstance(found[0], Declared) else None


def _input(walk: Walk, name: str, place: int, type: TensorType, declared: object, function: UserFunction) -> Tensor:
    at = library_of(walk, declared.library if isinstance(declared, Declared) else None)
    walk.symbols.update(type.symbols)
    walk.builder.origins = (walk.parameter_origin(name),)
    tensor = walk.own(replace(walk.tensor(walk.builder.input(name, place, type), at), device=Device(like=name) if at == "torch" else CPU, grad=None,
                              inference=False))
    walk.fixed[tensor.storage] = f"`{name}` is an input"
    return tensor


def declared_type(walk: Walk, annotation: cst.BaseExpression) -> Declared | str | None:
    """The tensor type an annotation states; a reason for other types; None when it is not understood."""
    if isinstance(annotation, cst.SimpleString):
        try:
            annotation = cst.parse_expression(annotation.evaluated_value)
        except (cst.ParserSyntaxError, TypeError):
            return None
    if isinstance(annotation, cst.BinaryOperation) and isinstance(annotation.operator, cst.BitOr):
        return None                                        # x: Tensor | None: it may be absent
    if isinstance(annotation, cst.Subscript):
        home = _name(walk, annotation.value)
        last = home.rpartition(".")[2]
        if home.startswith("jaxtyping.") and last in JAXTYPING:
            return _jaxtyping(walk, last, annotation)
        if home == "numpy.typing.NDArray":
            inner = _name(walk, annotation.slice[0].slice.value) if isinstance(annotation.slice[0].slice, cst.Index) else ""
            return Declared(TensorType(None, dtype_named(inner)), "numpy")
        return None
    name = _name(walk, annotation)
    if name in TENSORS:
        return Declared(TensorType(None, TENSORS[name]), "torch")
    if name in ARRAYS:
        return Declared(TensorType(None, None), "numpy")
    if name in ("builtins.int", "builtins.float", "builtins.bool", "builtins.str"):
        return "a Python parameter without a default"
    return None


def _jaxtyping(walk: Walk, kind: str, annotation: cst.Subscript) -> Declared | None:
    parts = [element.slice.value for element in annotation.slice if isinstance(element.slice, cst.Index)]
    if len(parts) != 2 or not isinstance(parts[1], cst.SimpleString):
        return None
    home = _name(walk, parts[0])
    at = "numpy" if home in ARRAYS else "torch" if home in TENSORS else None
    shape: list[Dim] | None = []
    for axis, word in enumerate(str(parts[1].evaluated_value).split()):
        word = word.partition("=")[2] or word
        if word == "..." or word.startswith("*"):
            return Declared(TensorType(None, JAXTYPING[kind] or DEFAULTS.get(kind)), at)
        if word.startswith("#") or word == "_" or word.startswith("_") or word.startswith("?"):
            shape.append(walk.fresh_symbol(f"axis{axis}"))
            continue
        try:
            shape.append(parse_dim(word))
        except ValueError:
            return Declared(TensorType(None, JAXTYPING[kind]), at)
    return Declared(TensorType(tuple(shape), JAXTYPING[kind] or DEFAULTS.get(kind)), at)


def _name(walk: Walk, node: cst.BaseExpression) -> str:
    """The full dotted name an annotation stands for."""
    first, _, rest = dotted(node).partition(".")
    if not first:
        return ""
    value = scope.global_value(walk, walk.frame.namespace, first, None)
    if isinstance(value, Library):
        return library(f"{value.name}.{rest}" if rest else value.name).name
    return ""


def entry_of(walk: Walk, frame: Frame, node: cst.FunctionDef) -> Entry | None:
    """The `@cu.compile` of a function, under any name it was imported by, with its keyword arguments worked out."""
    for decorator in node.decorators:
        if scope.decorator_name(walk, frame.namespace, decorator) == "cuvil.compile":
            options: dict[str, object] = {}
            if isinstance(decorator.decorator, cst.Call):
                for arg in decorator.decorator.args:
                    if arg.keyword is not None:
                        value: list[Value] = []
                        scope.run_apart(walk, Frame(frame.namespace, frame.definition), lambda a=arg: value.append(walk.evaluate(a.value)))
                        options[arg.keyword.value] = python_value(value[0])
            return Entry(frame.definition.span(decorator, frame.namespace.path), options)
    return None


def value_of(data: object) -> Value:
    """Plain Python data as a value: what an argument that is not a tensor is."""
    if isinstance(data, dict):
        return Mapping({key: value_of(item) for key, item in data.items()})
    if isinstance(data, (list, tuple)):
        items = [value_of(item) for item in data]
        return Sequence(items, "list") if isinstance(data, list) else Sequence(tuple(items))
    known = data is None or isinstance(data, (bool, int, float, str, DType, Poly))
    return Scalar(data) if known else Unknown("an argument that is not a tensor or a number")


def python_value(value: Value) -> object:
    """A value as plain Python data; None for what is not known."""
    match value:
        case Scalar():
            return value.value
        case Sequence(items=items):
            return tuple(python_value(item) for item in items)
        case Mapping(items=items):
            return {key: python_value(item) for key, item in items.items()}
        case Library(name=name):
            return dtype_named(name) or name
    return None


def _options(entry: Entry | None) -> tuple[dict[str, tuple[Dim, ...]], dict[str, DType]]:
    if entry is None:
        return {}, {}
    shapes, dtypes = entry.options.get("input_shapes"), entry.options.get("input_dtypes")
    return ({name: shape_of(name, shape, entry.span) for name, shape in shapes.items()} if isinstance(shapes, dict) else {},
            {name: _dtype(name, dtype, entry.span) for name, dtype in dtypes.items()} if isinstance(dtypes, dict) else {})


def shape_of(name: str, shape: object, span: Span | None = None) -> tuple[Dim, ...]:
    """("b", 3, "2*t") as dims. CuvilError when it is not a shape."""
    if not isinstance(shape, (tuple, list)):
        raise CuvilError(f"input_shapes[{name!r}] is {shape!r}", span, "a tuple of sizes: numbers, or names for sizes that vary",
                         f'input_shapes={{"{name}": ("batch", 3, 224)}}')
    dims: list[Dim] = []
    for size in shape:
        try:
            dim = parse_dim(size) if isinstance(size, str) else size
        except ValueError:
            dim = None
        if isinstance(dim, bool) or not isinstance(dim, int) and not (isinstance(size, str) and dim is not None) or isinstance(dim, int) and dim < 0:
            raise CuvilError(f"input_shapes[{name!r}] has the size {size!r}", span, "a number that is not negative, or a name such as \"batch\"")
        dims.append(dim)
    return tuple(dims)


def _dtype(name: str, dtype: object, span: Span) -> DType:
    if isinstance(dtype, DType):
        return dtype
    try:
        return DType.parse(str(dtype).rpartition(".")[2])
    except ValueError:
        raise CuvilError(f"input_dtypes[{name!r}] is {dtype!r}", span, "one of " + ", ".join(d.numpy for d in DType)) from None
