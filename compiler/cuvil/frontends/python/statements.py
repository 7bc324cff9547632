"""What each kind of statement does: names, branches, loops. The table is printed by `cuvil explain --mapping`.

A statement's meaning returns how it was left: None at its end, "return", "raise", "break" or "continue". Branches with a
known test and loops over known sequences are followed as Python would; where the test is not known both branches are
walked and joined, for facts, and the function is refused.
"""
from __future__ import annotations

from dataclasses import replace
from operator import is_

import libcst as cst

from . import context, joins, learn, mutation, operators, records, scope, subscripts
from .expressions import assign, assign_unknown, iterate, one_of
from .narrow import narrow
from .tables import statement
from .values import NONE, RAISES, Either, Many, Mapping, Sequence, Tensor, Unknown, UserFunction, Value
from .walk import UNROLL, Walk
from .workspace import bindings


@statement(cst.IndentedBlock, cst.SimpleStatementLine, cst.SimpleStatementSuite, cst.Else, cst.Finally, form="its statements, in order")
def block(walk: Walk, node) -> str | None:
    body = node.body if type(node) not in _AROUND_A_BLOCK else (node.body,)
    for each in body:
        left = walk.execute(each)
        if left is not None:
            return left
    return None


_AROUND_A_BLOCK = frozenset((cst.Else, cst.Finally))


@statement(cst.Expr, form="evaluated for its ops; a string is documentation")
def expression_statement(walk: Walk, node: cst.Expr) -> None:
    if type(node.value) not in _STRINGS and not (walk.naming and walk.frame.function is None):
        walk.statement = node.value
        walk.evaluate(node.value)


_STRINGS = frozenset((cst.SimpleString, cst.ConcatenatedString))


@statement(cst.Pass, cst.Del, cst.TypeAlias, form="nothing")
def nothing(walk: Walk, node) -> None:
    for target in [node.target] if isinstance(node, cst.Del) else []:
        names = [element.value for element in target.elements] if isinstance(target, cst.Tuple) else [target]
        for each in names:
            if isinstance(each, cst.Name):
                walk.frame.names.pop(each.value, None)


@statement(cst.Global, cst.Nonlocal, form="assigning to the names is refused")
def foreign(walk: Walk, node) -> None:
    walk.frame.foreign.update(item.name.value for item in node.names)


@statement(cst.Import, cst.ImportFrom, form="names of libraries, and functions of the workspace that are followed")
def import_(walk: Walk, node) -> None:
    of_a_module = walk.frame.function is None and walk.frame.definition is not None and not walk.frame.definition.owner
    if not of_a_module:
        walk.frame.names.update(scope.import_names(walk, node))
    elif walk.naming is not None:                         # a package's imports reach all of its files: only what is asked for is looked at
        walk.frame.names.update(scope.import_names(walk, node, walk.naming))


@statement(cst.Assign, form="names the value: its op takes the name as label")
def assignment(walk: Walk, node: cst.Assign) -> str | None:
    if walk.naming and walk.frame.function is None and all(isinstance(target.target, (cst.Subscript, cst.Attribute)) for target in node.targets):
        return None
    value = walk.evaluate(node.value)
    if walk.assume and value == RAISES:
        return "raise"
    for target in node.targets:
        assign(walk, target.target, value)
    return None


@statement(cst.AnnAssign, form="names the value; the annotation says nothing that the value does not")
def annotated(walk: Walk, node: cst.AnnAssign) -> None:
    if node.value is not None:
        assign(walk, node.target, walk.evaluate(node.value))


@statement(cst.AugAssign, form="the operator's op; the name, and every other name of that tensor, means the new value")
def augmented(walk: Walk, node: cst.AugAssign) -> None:
    kind = type(node.operator).__name__.removesuffix("Assign")
    name, sign, _ = operators.BINARY[kind]
    target, right = walk.evaluate(node.target), walk.evaluate(node.value)
    if isinstance(target, Tensor):
        value = mutation.augmented(walk, target, name, sign, right, node)
        if isinstance(node.target, cst.Subscript):        # x[i] += y writes into x as well
            container = walk.evaluate(node.target.value)
            if isinstance(container, Tensor):
                subscripts.set(walk, container, Unknown("an index"), value, node)
                return
    elif isinstance(target, Sequence) and target.kind == "list" and kind == "Add":
        items = iterate(walk, right)
        target.items.extend(items if items is not None else [walk.unknown("a sequence that is not known", node)])
        value = target
    else:
        value = operators.binary(walk, kind, target, right, node)
        records.written(walk, target, sign + "=", value, node)
    assign(walk, node.target, value)


@statement(cst.Return, form="the function's result")
def return_(walk: Walk, node: cst.Return) -> str:
    value = walk.evaluate(node.value) if node.value is not None else NONE
    walk.frame.returns.append((value, walk.span(node)))
    return "return"


@statement(cst.Raise, form="a path that gives no result; what its test says of shapes is learnt")
def raise_(walk: Walk, node: cst.Raise) -> str:
    return "raise"


@statement(cst.Assert, form="shapes and sizes are learnt from it; a test on tensor data is left out")
def assert_(walk: Walk, node: cst.Assert) -> None:
    value = asked(walk, "assert", node.test)
    if operators.truth(walk, value) is None and not isinstance(value, Tensor):
        learn.holds(walk, node.test)


def asked(walk: Walk, kind: str, test: cst.BaseExpression) -> Value:
    """The value of a test, whose truth decides the way."""
    walk.asked = test
    value = walk.evaluate(test)
    records.branch(walk, kind, value, test)
    return value


@statement(cst.Break, form="ends an unrolled loop")
def break_(walk: Walk, node) -> str:
    return "break"


@statement(cst.Continue, form="goes on with the next round of an unrolled loop")
def continue_(walk: Walk, node) -> str:
    return "continue"


@statement(cst.If, form="the branch whose test is known; a test on tensor data is refused")
def if_(walk: Walk, node: cst.If) -> str | None:
    while True:
        test = asked(walk, "if", node.test)
        known = operators.truth(walk, test)
        if known:
            return walk.execute(node.body)
        if known is None:
            return _undecided(walk, node, test)
        if node.orelse is None:
            return None
        if not isinstance(node.orelse, cst.If):           # a chain of elif is a loop here, not a recursion
            return walk.execute(node.orelse)
        node = node.orelse


def _undecided(walk: Walk, node: cst.If, test: Value) -> str | None:
    """Both branches, joined. A branch that only raises is a guard: the other one goes on with what the guard says."""
    if _only_raises(node.body):
        if isinstance(test, Tensor):
            walk.undecided(test, node.test, "the test of an `if`")
        learn.fails(walk, node.test)
        context.passed(walk, node.test, False)
        narrow(walk, node.test, False)
        return walk.execute(node.orelse) if node.orelse is not None else None
    walk.undecided(test, node.test, "the test of an `if`")
    saved = snapshot(walk.frame.names)
    with walk.unsure(), context.tested(walk, node.test, True):
        narrow(walk, node.test, True)
        left = walk.execute(node.body)
    after = walk.frame.names
    walk.frame.names = saved
    with walk.unsure(), context.tested(walk, node.test, False):
        narrow(walk, node.test, False)
        other = walk.execute(node.orelse) if node.orelse is not None else None
    if walk.leaving is not None:
        walk.leaving += [names for names, how in ((after, left), (walk.frame.names, other)) if how in ("break", "continue")]
    if left in ("return", "raise", "break", "continue"):
        if other is None:
            context.passed(walk, node.test, False)
            return None
        return left if left == other else other if left == "raise" else left if other == "raise" else None
    if other is not None:
        walk.frame.names = after
        context.passed(walk, node.test, True)
        return None
    names = walk.frame.names
    for name in {*after, *names}:
        a, b = after.get(name), names.get(name)
        if a is not None and b is not None:
            names[name] = walk.join(walk.resolve(a), walk.resolve(b))
        else:                                             # read without being bound it would raise
            names[name] = a if a is not None else b
    return None


def _only_raises(body) -> bool:
    statements = list(body.body)
    last = statements[-1] if statements else None
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1] if last.body else None
    return isinstance(last, cst.Raise) and len(statements) <= 3


def snapshot(names: dict[str, Value]) -> dict[str, Value]:
    """Names with lists, dicts and objects copied, so that one branch does not see what the other does to them."""
    copies: dict[int, Value] = {}

    def copy(value: Value, depth: int = 0) -> Value:
        kind = type(value)
        if kind not in _HOLD or depth > 6:
            return value
        if kind is Either:
            options = tuple([copy(option, depth + 1) for option in value.options])
            return value if all(map(is_, options, value.options)) else Either(options)
        if id(value) not in copies:
            if kind is Many:
                copies[id(value)] = Many(copy(value.item, depth + 1), value.kind)
            elif isinstance(value, Mapping):
                copies[id(value)] = made = Mapping({}, value.kind)
                made.items.update({key: copy(item, depth + 1) for key, item in value.items.items()})
            elif value.kind == "list":
                copies[id(value)] = made = Sequence([], "list")
                made.items.extend(copy(item, depth + 1) for item in value.items)
            else:
                items = tuple([copy(item, depth + 1) if type(item) in _HOLD else item for item in value.items])
                copies[id(value)] = value if all(map(is_, items, value.items)) else Sequence(items, value.kind)
        return copies[id(value)]

    return {name: copy(value) if type(value) in _HOLD else value for name, value in names.items()}


_HOLD = frozenset((Either, Sequence, Mapping, Many))      # values that others stand in


@statement(cst.For, form="unrolled over a sequence that is known, up to 256 rounds")
def for_(walk: Walk, node: cst.For) -> str | None:
    value = walk.evaluate(node.iter)
    records.branch(walk, "for", value, node.iter)
    items = iterate(walk, value)
    if node.asynchronous is not None:
        walk.refuse("an asynchronous loop is not compiled", node)
        items = None
    if items is None or len(items) > UNROLL:
        reason = f"a loop of {len(items)} rounds" if items is not None else f"a loop over {getattr(value, 'reason', 'a sequence that is not known')}"
        walk.refuse(f"{reason} is not compiled", node.iter, f"a sequence that is known while compiling, of at most {UNROLL} items",
                    "operate on the whole tensor at once")
        with context.loop(walk, node, len(items) if items is not None else None):
            _unknown_loop(walk, node.body, node.target, one_of(walk, value))
        return None
    for item in items:
        with context.loop(walk, node, len(items)):
            assign(walk, node.target, item)
            left = walk.execute(node.body)
        if left == "break":
            return None
        if left in ("return", "raise"):
            return left
    return walk.execute(node.orelse) if node.orelse is not None else None


@statement(cst.While, form="unrolled while its test is known, up to 256 rounds")
def while_(walk: Walk, node: cst.While) -> str | None:
    for _ in range(UNROLL):
        test = asked(walk, "while", node.test)
        known = operators.truth(walk, test)
        if known is None:
            walk.undecided(test, node.test, "the test of a `while`")
            with context.loop(walk, node, None):
                _unknown_loop(walk, node.body, None)
            return None
        if not known:
            return walk.execute(node.orelse) if node.orelse is not None else None
        with context.loop(walk, node, None):
            left = walk.execute(node.body)
        if left == "break":
            return None
        if left in ("return", "raise"):
            return left
    walk.refuse(f"a loop of more than {UNROLL} rounds is not compiled", node.test)
    _unknown_loop(walk, node.body, None)
    return None


ROUNDS = 3                                            # after that many a loop is no longer looked at: what still changes is not known


def _unknown_loop(walk: Walk, body, target, item: Value | None = None) -> None:
    """A loop of an unknown number of rounds, for facts: what holds before each round is joined with what holds after one, until a
    round brings nothing new. item: what the target is bound to in each round, None when that is not known."""
    outer = walk.leaving
    with walk.unsure():
        for _ in range(ROUNDS):
            start = snapshot(walk.frame.names)
            walk.leaving = []
            _bind(walk, target, item)
            walk.execute(body)
            ends = [walk.frame.names, *walk.leaving]
            news = {name: value for end in ends for name, value in end.items() if name not in start}
            settled = all(joins.wide(walk, walk.resolve(value), walk.resolve(end.get(name, value))) for end in ends for name, value in start.items())
            names = {name: _around(walk, value, [end.get(name, value) for end in ends]) for name, value in start.items()}
            walk.frame.names = {**names, **news}
            if settled:
                break
            for name in news:
                walk.frame.names.pop(name)
        else:
            _bind(walk, target, item)
            _forget(walk, body, "bound in a loop that is not unrolled")
            walk.execute(body)
            _forget(walk, body, "bound in a loop that is not unrolled")
    walk.leaving = outer


def _around(walk: Walk, value: Value, ends: list[Value]) -> Value:
    value = walk.resolve(value)
    for end in ends:
        end = walk.resolve(end)
        if not joins.wide(walk, value, end):
            value = walk.join(value, end)
        elif isinstance(value, Tensor) and isinstance(end, Tensor) and value.storage != end.storage:
            value = joins.tensors(walk, value, end, wide=True)             # its type holds on; what it came from does not
    return value


def _bind(walk: Walk, target, item: Value | None) -> None:
    if target is not None:
        assign_unknown(walk, target, "bound in a loop that is not unrolled") if item is None else assign(walk, target, item)


def _forget(walk: Walk, body, reason: str) -> None:
    for name in bindings([body]):
        old = walk.frame.names.get(name)
        if isinstance(old, Tensor):
            walk.changed[old.storage] = Unknown(reason)
        walk.frame.names[name] = Unknown(reason)


@statement(cst.With, form="no_grad and inference_mode change nothing in inference; its body")
def with_(walk: Walk, node: cst.With) -> str | None:
    with context.within(walk):
        for item in node.items:
            value = walk.evaluate(item.item)
            if item.asname is not None:
                assign(walk, item.asname.name, value)
            changes = context.entered(walk, value)
            if changes:
                walk.context = replace(walk.context, **changes)
            if isinstance(value, Unknown) or "autocast" in changes:
                walk.refuse("a `with` block whose context is not known", item, "torch.no_grad() or torch.inference_mode()")
        return walk.execute(node.body)


@statement(cst.Try, cst.TryStar, form="its body, when it cannot be told that it fails")
def try_(walk: Walk, node) -> str | None:
    before = snapshot(walk.frame.names)
    with context.within(walk, caught=(*context.caught(node), *walk.context.caught)):
        left = walk.execute(node.body)
    if left == "raise":
        walk.frame.names = before
        left = None
    if left is None and node.orelse is not None:
        left = walk.execute(node.orelse)
    if node.finalbody is not None:
        left = walk.execute(node.finalbody) or left
    return left


@statement(cst.FunctionDef, form="a function that is followed where it is called")
def function_definition(walk: Walk, node: cst.FunctionDef) -> None:
    frame = walk.frame
    known = all(scope.transparent(walk, frame.namespace, decorator) for decorator in node.decorators)
    frame.names[node.name.value] = UserFunction(node.name.value, node, frame.namespace, closure=(frame, *frame.closure),
                                                definition=frame.definition) if known else Unknown("a function with an unknown decorator")


@statement(cst.ClassDef, form="a class inside a function is not followed")
def class_definition(walk: Walk, node: cst.ClassDef) -> None:
    walk.frame.names[node.name.value] = walk.unknown("a class inside a function", node)


@statement(cst.Match, form="refused: match statements are not compiled")
def match_(walk: Walk, node: cst.Match) -> None:
    walk.evaluate(node.subject)
    walk.refuse("a match statement is not compiled", node, hint="write it with if and elif")
    before = snapshot(walk.frame.names)
    ends = [before]
    for case in node.cases:
        walk.frame.names = snapshot(before)
        with walk.unsure():
            for name in _captured(case.pattern):
                walk.frame.names[name] = Unknown("bound in a match statement")
            left = walk.execute(case.body)
        if left is None:
            ends.append(walk.frame.names)
        elif left in ("break", "continue") and walk.leaving is not None:
            walk.leaving.append(walk.frame.names)
    walk.frame.names = {name: joins.all_of(walk, [walk.resolve(end[name]) for end in ends if name in end]) for end in ends for name in end}


def _captured(pattern: cst.CSTNode) -> list[str]:
    """Names that a pattern binds."""
    found, todo = [], [pattern]
    while todo:
        node = todo.pop()
        if isinstance(node, (cst.MatchAs, cst.MatchStar)) and node.name is not None:
            found.append(node.name.value)
        todo += [child for child in node.children if not isinstance(child, cst.BaseExpression)]
    return found
