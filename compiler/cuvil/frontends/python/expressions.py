"""What each kind of expression means: its value, and the ops it becomes. The table is printed by `cuvil explain --mapping`."""
from __future__ import annotations

import ast as python_ast
from contextlib import contextmanager
from functools import lru_cache

import libcst as cst

from ...ir.types import TensorType
from . import attributes, calls, context, joins, layers, operators, records, scope, subscripts, traits
from .learn import unpacked_shape
from .narrow import narrow
from .tables import expression
from .values import OPEN, Either, Instance, Many, Mapping, Scalar, Sequence, Tensor, Unknown, UserFunction, Value
from .walk import UNROLL, Frame, Walk


@expression(cst.Name, form="the value the name is bound to; a parameter is an `input`")
def name(walk: Walk, node: cst.Name) -> Value:
    return lookup(walk, node.value, node)


def lookup(walk: Walk, word: str, node: cst.CSTNode) -> Value:
    frame = walk.frame
    for each in (frame, *frame.closure):
        if word in each.names:
            return walk.resolve(each.names[word])
    return walk.resolve(scope.global_value(walk, frame.namespace, word, node))


@expression(cst.Integer, cst.Float, form="a Python number; a `constant` of the other operand's dtype where it meets a tensor")
def number(walk: Walk, node: cst.Integer | cst.Float) -> Value:
    try:
        return Scalar(float(node.value) if isinstance(node, cst.Float) else int(node.value, 0))
    except ValueError:                                    # an integer beyond Python's limit of digits
        return walk.unknown("a number that is too long", node)


@expression(cst.Imaginary, form="refused: complex numbers are not compiled")
def imaginary(walk: Walk, node: cst.Imaginary) -> Value:
    return walk.unknown("complex numbers", node)


@expression(cst.SimpleString, cst.ConcatenatedString, form="a Python string (einsum equations, modes)")
def string(walk: Walk, node: cst.SimpleString | cst.ConcatenatedString) -> Value:
    parts, texts = [node], []
    while parts:
        part = parts.pop()
        if isinstance(part, cst.ConcatenatedString):
            parts += part.right, part.left
        elif isinstance(part, cst.FormattedString):
            formatted(walk, part)
            texts = None
        elif texts is not None:
            try:
                texts.append(_literal(part.value))
            except (ValueError, SyntaxError):
                texts = None
    if not texts:
        return walk.unknown("a formatted string", node)
    try:
        return Scalar(texts[0][:0].join(texts))
    except TypeError:
        return walk.unknown("a formatted string", node)


@lru_cache(4096)
def _literal(text: str) -> str | bytes:
    return python_ast.literal_eval(text)


@expression(cst.FormattedString, form="a Python string; its parts are evaluated, its text is known when they are")
def formatted(walk: Walk, node: cst.FormattedString) -> Value:
    text = ""
    for part in node.parts:
        if isinstance(part, cst.FormattedStringText):
            text = None if text is None else text + part.value
            continue
        value = walk.evaluate(part.expression)
        spec = ""
        for inner in part.format_spec or ():
            if isinstance(inner, cst.FormattedStringExpression):
                walk.evaluate(inner.expression)
            else:
                spec += inner.value
        if spec and not part.conversion:
            records.formatted(walk, value, spec, part)
        plain = isinstance(value, Scalar) and isinstance(value.value, (int, str)) and not part.format_spec and not part.conversion
        text = text + str(value.value) if plain and text is not None else None
    return walk.unknown("a formatted string", node) if text is None else Scalar(text)


@expression(cst.Ellipsis, form="`...`: all axes that are not named")
def ellipsis(walk: Walk, node: cst.Ellipsis) -> Value:
    return Scalar(...)


@expression(cst.Tuple, cst.List, form="several values; as a result, several results")
def sequence(walk: Walk, node: cst.Tuple | cst.List) -> Value:
    items: list[Value] = []
    for element in node.elements:
        value = walk.evaluate(element.value)
        if isinstance(element, cst.StarredElement):
            inner = iterate(walk, value)
            if inner is None:
                return walk.unknown("unpacking of a sequence that is not known", element)
            items += inner
        else:
            items.append(value)
    return Sequence(items, "list") if isinstance(node, cst.List) else Sequence(tuple(items))


@expression(cst.Dict, form="a Python dict with known keys")
def mapping(walk: Walk, node: cst.Dict) -> Value:
    items: dict = {}
    known = True
    for element in node.elements:
        value = walk.evaluate(element.value)
        if isinstance(element, cst.StarredDictElement):
            known = known and isinstance(value, Mapping)
            items.update(value.items if isinstance(value, Mapping) else {})
            continue
        key = hashable(walk.evaluate(element.key))
        known = known and key is not None
        items[key[0] if key is not None else ("a key that is not known", len(items))] = value
    return Mapping(items) if known else Mapping(items, OPEN)      # only for what its values are


def hashable(value: Value) -> tuple | None:
    """(key,) of a value that can be a key, else None."""
    if isinstance(value, Scalar):
        return (value.value,)
    if isinstance(value, Sequence) and value.kind == "tuple":
        keys = [hashable(item) for item in value.items]
        return None if None in keys else (tuple(key[0] for key in keys),)
    return None


@expression(cst.Set, form="a Python set; only for membership tests")
def set_(walk: Walk, node: cst.Set) -> Value:
    return Sequence(tuple(walk.evaluate(element.value) for element in node.elements), "set")


@expression(cst.Attribute, form="a size, dtype or property of a tensor; a weight of a module (`parameter`); a name of a library")
def attribute(walk: Walk, node: cst.Attribute) -> Value:
    of = walk.evaluate(node.value)
    if walk.frame is walk.recording and isinstance(of, Instance) and isinstance(node.value, cst.Name) and node.value.value == "self":
        walk.reads[id(node)] = node.attr.value, walk.span(node)
    return walk.resolve(attributes.get(walk, of, node.attr.value, node))


@expression(cst.Subscript, form="`slice`, `reshape`, `gather`: basic indexing, and indexing by integer tensors")
def subscript(walk: Walk, node: cst.Subscript) -> Value:
    return subscripts.get(walk, walk.evaluate(node.value), subscripts.key(walk, node.slice), node)


@expression(cst.Call, form="the ops of the library function (`torch.softmax` is `softmax`); a function of the workspace is followed")
def call(walk: Walk, node: cst.Call) -> Value:
    chain = [node]                                        # a method chain of hundreds of calls is not hundreds of frames deep
    while isinstance(chain[-1].func, cst.Attribute) and isinstance(chain[-1].func.value, cst.Call):
        chain.append(chain[-1].func.value)
    value: Value | None = None
    for each in reversed(chain):
        if value is None:
            function = walk.evaluate(each.func)
        else:
            function = walk.resolve(attributes.get(walk, value, each.func.attr.value, each.func))
            walk.record(each.func, function)
        value = calls.call_node(walk, function, each)
        if each is not node:
            walk.record(each, value)
    return value


@expression(cst.BinaryOperation, form="`add`, `sub`, `mul`, `div`, `floordiv`, `mod`, `pow`, `matmul`, `and`, `or`, `xor`, `shl`, `shr`")
def binary(walk: Walk, node: cst.BinaryOperation) -> Value:
    chain = [node]                                        # a + b + c + ... nests to the left, thousands deep
    while isinstance(chain[-1].left, cst.BinaryOperation):
        chain.append(chain[-1].left)
    value = walk.evaluate(chain[-1].left)
    for each in reversed(chain):
        value = operators.binary(walk, type(each.operator).__name__, walk.resolve(value), walk.evaluate(each.right), each)
        if each is not node:
            walk.record(each, value)
    return value


@expression(cst.UnaryOperation, form="`neg`, `not`; of a Python value, its value")
def unary(walk: Walk, node: cst.UnaryOperation) -> Value:
    if not isinstance(node.operator, cst.Not):
        return operators.unary(walk, type(node.operator).__name__, walk.evaluate(node.expression), node)
    walk.asked = node.expression
    value = walk.evaluate(node.expression)
    records.branch(walk, "not", value, node.expression)
    return operators.unary(walk, "Not", value, node)


@expression(cst.Comparison, form="`eq`, `ne`, `lt`, `le`, `gt`, `ge`; of Python values and sizes, decided while compiling")
def comparison(walk: Walk, node: cst.Comparison) -> Value:
    left, result = walk.evaluate(node.left), None
    for target in node.comparisons:
        right = walk.evaluate(target.comparator)
        part = operators.compare(walk, type(target.operator).__name__, left, right, node)
        if result is None:
            result = part
        else:
            known = operators.truth(walk, result)
            result = result if known is False else part if known else walk.unknown("a chain of comparisons of tensors", node)
        left = right
    return result


@expression(cst.BooleanOperation, form="decided while compiling; the truth of a tensor is refused")
def boolean(walk: Walk, node: cst.BooleanOperation) -> Value:
    decides, kind = walk.asked is node, "and" if isinstance(node.operator, cst.And) else "or"
    walk.asked = node.left
    left = walk.evaluate(node.left)
    records.branch(walk, kind, left, node.left)
    known = operators.truth(walk, left)
    stops = kind == "or"
    if known is stops:
        return left
    if decides:                                           # the truth of the right side is asked only where that of the whole is
        walk.asked = node.right
    if known is None:
        with context.tested(walk, node.left, not stops), narrowed(walk, node.left, not stops):
            right = walk.evaluate(node.right)
    else:
        right = walk.evaluate(node.right)
    if decides:
        records.branch(walk, kind, right, node.right)
    if known is None:
        other = operators.truth(walk, right)
        if decides and other is stops:                    # x and False is falsy whatever x is; as a value it may be x
            return Scalar(stops)
        refused = walk.undecided(left, node.left, "an operand of `and` or `or`")
        kept = joins.without(left, lambda option: operators.truth(walk, option) is (not stops))
        return refused if isinstance(left, Unknown) else walk.join(kept, right)
    return right


@expression(cst.IfExp, form="the branch whose test is known; a test on tensor data is refused")
def conditional(walk: Walk, node: cst.IfExp) -> Value:
    walk.asked = node.test
    test = walk.evaluate(node.test)
    records.branch(walk, "ternary", test, node.test)
    known = operators.truth(walk, test)
    if known is None:
        walk.undecided(test, node.test, "the test of a conditional expression")
        with context.tested(walk, node.test, True), narrowed(walk, node.test, True):
            a = walk.evaluate(node.body)
        with context.tested(walk, node.test, False), narrowed(walk, node.test, False):
            b = walk.evaluate(node.orelse)
        return walk.join(a, b)
    return walk.evaluate(node.body if known else node.orelse)


@expression(cst.NamedExpr, form="names its value, which stays the value of the expression")
def walrus(walk: Walk, node: cst.NamedExpr) -> Value:
    value = walk.evaluate(node.value)
    return walk.place(node.target.value, value) if isinstance(node.target, cst.Name) else value


@expression(cst.Lambda, form="a function that is followed where it is called")
def lambda_(walk: Walk, node: cst.Lambda) -> Value:
    frame = walk.frame
    return UserFunction("lambda", node, frame.namespace, closure=(frame, *frame.closure), definition=frame.definition)


@expression(cst.ListComp, cst.GeneratorExp, cst.SetComp, form="the element for each item of a sequence that is known")
def comprehension(walk: Walk, node: cst.ListComp | cst.GeneratorExp | cst.SetComp) -> Value:
    found, whole = _comprehend(walk, node.for_in, lambda: walk.evaluate(node.elt))
    if not whole:
        item = joins.all_of(walk, found)
        return walk.unknown("a comprehension over a sequence that is not known", node) if isinstance(item, Unknown) or isinstance(node, cst.SetComp) \
            else Many(item, "list" if isinstance(node, cst.ListComp) else "tuple")
    return Sequence(found, "list") if isinstance(node, cst.ListComp) else Sequence(tuple(found), "set" if isinstance(node, cst.SetComp) else "tuple")


@expression(cst.DictComp, form="an item for each item of a sequence that is known")
def dict_comprehension(walk: Walk, node: cst.DictComp) -> Value:
    found, whole = _comprehend(walk, node.for_in, lambda: (walk.evaluate(node.key), walk.evaluate(node.value)))
    keys = None if not whole else [hashable(key) for key, _ in found]
    if keys is None or None in keys:
        return walk.unknown("a comprehension over a sequence that is not known", node)
    return Mapping({key[0]: value for key, (_, value) in zip(keys, found)})


def _comprehend(walk: Walk, clause: cst.CompFor, element) -> tuple[list, bool]:
    """The elements, and whether these are all; where the sequence or a test is not known, each is like one of them."""
    outer, found = walk.frame, []
    walk.frame = inner = Frame(outer.namespace, outer.definition, closure=(outer, *outer.closure), callers=outer.callers,
                               function=outer.function, chain=outer.chain)
    if walk.recording is outer:
        walk.recording = inner

    def run(clause: cst.CompFor) -> bool:
        over = walk.evaluate(clause.iter)
        items = iterate(walk, over)
        known = items is not None and len(items) <= UNROLL
        whole = known
        with context.loop(walk, clause, len(items) if items is not None else None, comprehension=True):
            for item in items if known else [one_of(walk, over)]:
                assign_unknown(walk, clause.target) if item is None else assign(walk, clause.target, item)
                tests = [operators.truth(walk, walk.evaluate(test.test)) for test in clause.ifs]
                if False in tests:
                    continue
                for test in clause.ifs:
                    narrow(walk, test.test, True)
                if known and None not in tests:
                    whole = inside(clause) and whole
                else:
                    whole = False
                    with walk.unsure():
                        inside(clause)
        return whole

    def inside(clause: cst.CompFor) -> bool:
        if clause.inner_for_in is not None:
            return run(clause.inner_for_in)
        found.append(element())
        return True

    try:
        whole = run(clause)
        return found, whole
    finally:
        walk.frame = outer
        if walk.recording is inner:
            walk.recording = outer


@expression(cst.StarredElement, form="the items of a sequence that is known, one by one")
def starred(walk: Walk, node: cst.StarredElement) -> Value:
    return walk.evaluate(node.value)


@expression(cst.Await, cst.Yield, form="refused: coroutines and generators are not compiled")
def suspended(walk: Walk, node: cst.Await | cst.Yield) -> Value:
    inner = node.expression if isinstance(node, cst.Await) else node.value
    if isinstance(inner, cst.BaseExpression):
        walk.evaluate(inner)
    return walk.refuse("a coroutine or generator is not compiled", node, hint="return the values as a tuple or list")


# --- shared by statements -------------------------------------------------------------------------------------------

def iterate(walk: Walk, value: Value) -> list[Value] | None:
    """The items of a value one by one, or None when they are not known."""
    value = walk.resolve(value)
    match value:
        case Sequence(kind="set"):
            return None
        case Sequence(items=items):
            return [walk.resolve(item) for item in items]
        case Mapping(items=items, kind=kind):
            return [_key(key) for key in items] if kind != OPEN else None
        case Scalar(value=str() as text):
            return [Scalar(character) for character in text]
        case Scalar(value=range() as numbers) if len(numbers) <= UNROLL * 4:
            return [Scalar(number) for number in numbers]
        case Tensor() if value.type.shape and isinstance(value.type.shape[0], int) and value.type.shape[0] <= UNROLL:
            return [subscripts.item(walk, value, index) for index in range(value.type.shape[0])]
    return layers.items(walk, value)


def one_of(walk: Walk, value: Value) -> Value | None:
    """What each item of a value is like, whose number is not known; None when that is not known either."""
    value = joins.given(walk.resolve(value))
    match value:
        case Many(item=item):
            return walk.resolve(item)
        case Sequence(items=items) if items:
            return joins.all_of(walk, [walk.resolve(item) for item in items])
        case Either(options=options):
            inner = [one_of(walk, option) for option in options if not operators.is_none(option)]
            return None if None in inner else joins.all_of(walk, inner)
        case Tensor() if value.type.shape != ():
            row = TensorType(None if value.type.shape is None else value.type.shape[1:], value.type.dtype)
            return traits.view(walk, walk.builder.append("opaque", (value.op.id,), {"call": "builtins.iter"}, row), "operator.getitem", value)
        case Instance():
            return layers.one_of(walk, value)
        case Scalar(value=range() as numbers) if numbers and numbers[0] >= 0 and numbers[-1] >= 0:      # symbols are at least 1, an index is at least 0
            return Scalar(walk.fresh_symbol("i") - 1)
    return None


@contextmanager
def narrowed(walk: Walk, test: cst.BaseExpression, outcome: bool):
    """Inside, the names of a test are what they are when it has this outcome."""
    frame = walk.frame
    before = dict(frame.names)
    narrow(walk, test, outcome)
    changed = {name: value for name, value in frame.names.items() if before.get(name) is not value}
    try:
        yield
    finally:
        for name, value in changed.items():
            if frame.names.get(name) is value and name in before:
                frame.names[name] = before[name]


def _key(key) -> Value:
    return Sequence(tuple(map(_key, key))) if isinstance(key, tuple) else Scalar(key)


def assign(walk: Walk, target: cst.BaseExpression, value: Value) -> None:
    """Bind a target: a name, an attribute, an item, or a tuple of these."""
    match target:
        case cst.Name(value=word):
            if word in walk.frame.foreign:
                walk.refuse("a name outside the function is changed", target, hint="return the value instead")
            walk.place(word, value)
            walk.record(target, walk.frame.names[word])
            records.assigned(walk, target, walk.frame.names[word])
        case cst.Tuple() | cst.List():
            unpack(walk, target, value)
        case cst.StarredElement(value=inner):
            assign(walk, inner, value)
        case cst.Attribute():
            records.assigned(walk, target, value)
            attributes.set(walk, walk.evaluate(target.value), target.attr.value, value, target)
        case cst.Subscript():
            subscripts.set(walk, walk.evaluate(target.value), subscripts.key(walk, target.slice), value, target)


def unpack(walk: Walk, target: cst.Tuple | cst.List, value: Value) -> None:
    parts = [element.value for element in target.elements]
    star = next((i for i, e in enumerate(target.elements) if isinstance(e, cst.StarredElement)), None)
    value = joins.given(unpacked_shape(walk, value, parts, star))
    items = [value.item] * len(parts) if isinstance(value, Many) and star is None else iterate(walk, value)
    fits = items is not None and (len(items) == len(parts) if star is None else len(items) >= len(parts) - 1)
    if items is not None and not fits:
        walk.problem("unpack-mismatch", f"{len(items)} values are unpacked into {len(parts)} names", f"{len(items)} names", target)
    if not fits:
        reason = value.reason if isinstance(value, Unknown) else "unpacking of a sequence that is not known"
        for part in parts:
            assign(walk, part, walk.unknown(reason, target))
        return
    if star is not None:
        after = len(parts) - star - 1
        middle = items[star:len(items) - after]
        items = [*items[:star], Sequence(middle, "list"), *items[len(items) - after:]]
    for part, item in zip(parts, items):
        assign(walk, part, item)


def assign_unknown(walk: Walk, target: cst.BaseExpression, reason: str = "a loop over a sequence that is not known") -> None:
    todo = [target]
    while todo:
        node = todo.pop()
        if isinstance(node, cst.Name):
            walk.frame.names[node.value] = walk.unknown(reason, node)
        elif isinstance(node, (cst.Tuple, cst.List)):
            todo += [element.value for element in node.elements]
        elif isinstance(node, cst.StarredElement):
            todo.append(node.value)
