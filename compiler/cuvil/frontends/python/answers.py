"""What a function or a constructor of the workspace gives for plain arguments, kept from one walk to the next.

`get_padding(3, 1, 1)` and `ConvNormAct(64, 64, 3)` are asked for by every model of a package. An answer is kept when it hangs on nothing but
the arguments and the text: no tensor is in it, nothing was learnt, nothing was cut short. It stands as long as all that was looked at stays.
Sizes that nobody gave are symbols; each time the answer is given they are new ones, but for those of the walk's own arguments.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...ir.dims import Dim, Poly
from ...ir.types import DType
from ...source import Span
from .values import (
    NONE,
    Either,
    Instance,
    Library,
    Many,
    Mapping,
    Partial,
    Scalar,
    Sequence,
    Shape,
    Tensor,
    Unknown,
    Untyped,
    UserClass,
    UserFunction,
    UserModule,
    Value,
)

if TYPE_CHECKING:
    from .walk import Walk
    from .workspace import Used

WORTH = 20                                     # steps below which working it out again is as cheap
MOST = 20_000                                  # answers of one workspace


class Alive(Exception):
    """A value that may change, or that is of one walk."""


@dataclass(slots=True)
class Kept:
    """value: of what was asked, which stands in `path`; symbols: of sizes that are unknown in it, members: those that stand for arguments, as in Walk.members, open: those
    of which nothing is known at all; looks: when `used` was last found unchanged."""

    value: Value
    used: Used
    symbols: tuple[str, ...]
    members: dict[tuple[str, Span | None], str]
    open: frozenset[str]
    path: str
    looks: int


def key(walk: Walk, what: Any, args: list[Value], keywords: dict[str, Value]) -> Any:
    """What an answer is kept under; None when it has to be worked out. Only to be asked where no facts are kept of what is walked."""
    if walk.everywhere is not None:
        return None
    try:
        return (what, walk.facts_only, walk.building > 0, walk.host, walk.context.grad, tuple([form(arg) for arg in args]),
                tuple([(name, form(value)) for name, value in keywords.items()]))
    except (Alive, TypeError):
        return None


def form(value: Value) -> Any:
    """A plain value as a part of a key: values that are not told apart by it are the same for all purposes."""
    match value:
        case Scalar(value=inner):
            kind = type(inner)
            if inner is None or kind in _PLAIN:
                return kind, inner
        case Sequence(items=tuple() as items, kind=kind):
            return kind, tuple([form(item) for item in items])
        case Mapping(items=items, kind=kind):
            return kind, tuple([(name, form(item)) for name, item in items.items()])
        case Library(name=name, receiver=None):
            return "library", name
        case UserClass(node=node):
            return node
        case UserFunction(node=node, receiver=None, closure=(), regions=()):
            return node
        case UserModule(namespace=namespace):
            return "module", namespace.path
        case Unknown(reason=reason, span=span):
            return "unknown", reason, getattr(span, "node", span)
        case Untyped(name=name, index=index, span=span):
            return "untyped", name, index, getattr(span, "node", span)
        case Partial(function=function, args=args, keywords=keywords):
            return "partial", form(function), tuple([form(arg) for arg in args]), tuple([(name, form(item)) for name, item in keywords])
        case Either(options=options):
            return "either", tuple([form(option) for option in options])
    raise Alive


_PLAIN = frozenset((bool, int, float, str, Poly, DType))


def answered(walk: Walk, asked: Any, home: tuple[Any, str], args: list[Value], keywords: dict[str, Value], work: Callable[[], Value]) -> Value:
    """What was kept under the key of these arguments, else what `work` gives. home: the namespace, and the name there, of what is asked."""
    answers, looks = walk.workspace.answers, walk.workspace.looks
    known = answers.get(asked)
    if known is not None and (known.looks == looks or walk.workspace.unchanged(known.used)):
        known.looks = looks
        walk.used.update(known.used)
        return copy(walk, known.value, _sizes(walk, known))
    namespace, name = home
    stands = namespace.find(name)
    if not stands:                             # a class inside a function: it may read the names around it
        return work()
    steps, before, objects, made = walk.steps, _state(walk), walk.created, len(walk.created)
    symbols, members, open_sizes, ops, storage, changed = set(walk.symbols), set(walk.members), set(walk.open_sizes), len(walk.builder.ops), walk._storage, \
        set(walk.changed)
    used, walk.used = walk.used, {(namespace.path, name): stands}
    walk.answering += 1
    try:
        value = work()
    finally:
        walk.answering -= 1
        used.update(walk.used)
        own, walk.used = walk.used, used
    if steps - walk.steps < WORTH or _state(walk) != before or key(walk, asked[0], args, keywords) != asked:      # a dict may have been changed
        return value
    if any(each <= storage for each in walk.changed.keys() - changed) or (_holds_a_tensor(value) if walk.building else len(walk.builder.ops) > ops):
        return value
    of_this_class = isinstance(value, Instance) and isinstance(value.of, UserClass) and value.of.node is asked[0]
    if of_this_class or _of_itself(value, set(map(id, walk.created[made if walk.created is objects else 0:]))):
        if len(answers) >= MOST:
            answers.clear()
        new = {key: str(walk.members[key].value) for key in walk.members.keys() - members}
        answers[asked] = Kept(copy(walk, value, counts=False), own, tuple(sorted(walk.symbols - symbols)), new,
                              frozenset(map(str, walk.open_sizes - open_sizes)), namespace.path, looks)
    return value


def _sizes(walk: Walk, known: Kept) -> dict[str, Dim]:
    """What the symbols of an answer are in this walk."""
    sizes: dict[str, Dim] = {}
    for key, name in known.members.items():
        if key not in walk.members:
            walk.members[key] = Scalar(walk.fresh_symbol(_word(name)))
        sizes[name] = walk.members[key].value
    for name in known.symbols:
        if name not in sizes:
            sizes[name] = walk.fresh_symbol(_word(name))
            if name in known.open:
                walk.open_sizes.add(sizes[name])
    return sizes


def _word(symbol: str) -> str:
    """A symbol without the number that tells it from others of its name."""
    return symbol.rstrip("0123456789") or symbol


def _holds_a_tensor(value: Value) -> bool:
    """In itself or in what it holds."""
    todo, seen = [value], set()
    while todo:
        at = todo.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        match at:
            case Tensor() | Shape():
                return True
            case Instance() if at.looked_at:
                todo += at.attributes.values()
            case Sequence(items=items):
                todo += items
            case Mapping(items=items):
                todo += items.values()
            case Many(item=item):
                todo.append(item)
            case Either(options=options):
                todo += options
            case Partial(function=function, args=args, keywords=keywords):
                todo += (function, *args, *(item for _, item in keywords))
            case UserFunction(receiver=receiver, closure=closure):
                if closure:
                    return True
                todo += [receiver] if receiver is not None else []
            case Library(receiver=receiver):
                todo += [receiver] if receiver is not None else []
    return False


def copy(walk: Walk, value: Value, sizes: dict[str, Dim] | None = None, counts: bool = True) -> Value:
    """A value whose objects, lists and dicts are its own. sizes: of symbols in it; counts: its objects are among those that the walk makes."""
    if isinstance(value, (Scalar, Library, UserClass, UserFunction, Unknown)) and not sizes:
        return value
    from . import prototypes
    return prototypes.copy(Instance(NONE, {"": value}), walk.created if counts and walk.building else None, sizes, late=counts).attributes[""]


def _state(walk: Walk) -> tuple:
    """What a walk has besides the value: while this stays the same, the value says all."""
    return id(walk.builder), walk.refusal, len(walk.problems), len(walk.sizes), len(walk.learned), len(walk.dtypes), walk.cuts


def _of_itself(value: Value, made: set[int]) -> bool:
    """It holds plain values, and objects that were made for it."""
    match value:
        case Instance():
            return id(value) in made or value.owner is None and isinstance(value.of, Library)       # a layer that hangs nowhere yet
        case Sequence(items=items):
            return all([_of_itself(item, made) for item in items])
        case Mapping(items=items):
            return all([_of_itself(item, made) for item in items.values()])
        case Many(item=item):
            return _of_itself(item, made)
        case Either(options=options):
            return all([_of_itself(option, made) for option in options])
    try:
        form(value)
    except Alive:
        return False
    return True
