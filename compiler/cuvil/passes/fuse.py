"""Kernels out of ops: which values pass through memory and which do not, each decision with its reason.

Reductions, contractions, convolutions and windows open kernels. Elementwise ops on their results join them: the epilogue of
a matmul, the second half of a softmax. All other elementwise and movement ops float: they are computed where they are read,
unless that would cost more than memory does; then they get a kernel of their own.

What loops/ may rely on, for a kernel k, with `element(v, index)` the value of v at an index:
  * v in k.inputs is read from memory; any other v is a member and is made from its operands as its definition says.
  * Members of a contraction, convolution or window kernel after the root are elementwise and of the root's shape; the one
    output is the last. The root's operands are memory, or views (transpose, reshape, broadcast, slice) of memory.
  * All reductions of a reduction kernel reduce the same axes of operands of one shape S. What reads a reduction in the
    kernel has the shape of the reduced value or, if rows are short, S. It may have several outputs, of these two shapes.
  * An elementwise or movement kernel has one output, its root.

Acyclic by construction: kernels are numbered as they open, an op joins only the newest kernel that it depends on, so every
dependence goes from a lower number to a higher one.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from ..ir.dims import exact_quotient
from ..ir.function import Function, Op
from ..ir.kernel import Kernel, KernelGraph
from ..lineage import merge_origins
from ..ops.definition import CONTRACTION, CONVOLUTION, DEFINITIONS, ELEMENTWISE, MOVEMENT, REDUCTION, WINDOW
from .decisions import PACKED, decisions, is_number, title

OPENS = frozenset((REDUCTION, CONTRACTION, CONVOLUTION, WINDOW))
VIEWS = frozenset(("transpose", "reshape", "broadcast", "slice"))
CHEAP = frozenset(("add", "sub", "mul", "neg", "abs", "not", "and", "or", "xor", "shl", "shr", "maximum", "minimum", "cast",
                   "floor", "ceil", "round", "trunc", "isnan", "isinf", "sign", "eq", "ne", "lt", "le", "gt", "ge", "select"))

# A row that several passes of one kernel go over should stay in a core's second-level cache: 64 Ki elements are 256 KiB of f32.
ROW_LIMIT = 1 << 16
# One row alone is the work of one thread. Up to so many elements, of some thirty operations each, that is less than threads are worth
# waking for (parallel_from in targets/).
ALONE_LIMIT = 1 << 12
# When the last axis is kept, this many neighbouring rows are worked on at once.
STRIP = 16
# How many ops may be computed again in each further kernel that reads their value.
RECOMPUTED_LIMIT = 6
# Through how many different index maps a kernel may compute one cheap value: each is code of its own.
PLACES_LIMIT = 8


def fuse(function: Function, opt_level: int = 2, composites: dict | None = None) -> KernelGraph:
    """Kernels of a function of primitives, in the order they run.

    opt_level   0: every op is a kernel, 1: no epilogues after contractions, convolutions and windows, 2: all
    composites  op id -> Composite (passes.decompose): names kernels as people wrote them
    """
    return Fusion(function, opt_level, composites or {}).graph()


@dataclass
class _Group:
    """A kernel in the making. number: creation order; every value it reads was made by a lower number."""

    number: int
    root: Op
    members: list[int] = field(default_factory=list)


class Fusion:
    """One function's values on their way to kernels.

    home      value -> the kernel that computes it into memory or for its own members (a group's number)
    after     floating value -> the highest group whose finished results it reads, -1 if none
    kernels   floating value that is computed where it is read -> numbers of the kernels that do so
    rows      (shape, axes) -> the newest reduction kernel over such rows
    reasons   (producer, consumer) -> why not fused
    """

    def __init__(self, function: Function, opt_level: int, composites: dict) -> None:
        self.function = function
        self.level = opt_level
        self.composites = composites
        self.groups: list[_Group] = []
        self.home: dict[int, int] = {}
        self.after: dict[int, int] = {}
        self.kernels: dict[int, frozenset[int]] = {}
        self.rows: dict[tuple, int] = {}
        self.reasons: dict[tuple[int, int], str] = {}
        self.results = frozenset(function.results)
        self.kind = {op.id: DEFINITIONS[op.name].kind for op in function.ops}
        self.position = {op.id: i for i, op in enumerate(function.ops)}

    def graph(self) -> KernelGraph:
        for op in self.function.body:
            self._place(op)
        for group in [g for g in self.groups if self.kind[g.root.id] in PACKED]:
            self._one_output(group)
        self._settle_floating()
        return self._emit()

    # Forwards: where each op is computed.

    def _place(self, op: Op) -> None:
        kind = self.kind[op.id]
        operands = dict.fromkeys(op.operands)
        newest = max((self._depth(o) for o in operands), default=-1)
        if kind in OPENS:
            row = self._joinable_row(op, newest) if kind == REDUCTION and self.level > 0 else None
            if row is None:
                self._open(op)
                if kind == REDUCTION:
                    self.rows[self._row_key(op)] = self.groups[-1].number
            else:
                self._join(op, self.groups[row])
        elif kind == ELEMENTWISE and self.level > 0 and newest >= 0 and self._may_join(op, self.groups[newest]):
            self._join(op, self.groups[newest])
        else:
            self.after[op.id] = newest

    def _depth(self, id: int) -> int:
        return self.home.get(id, self.after.get(id, -1))

    def _open(self, op: Op) -> None:
        self.groups.append(_Group(len(self.groups), op))
        self._join(op, self.groups[-1])

    def _join(self, op: Op, group: _Group) -> None:
        group.members.append(op.id)
        self.home[op.id] = group.number

    def _row_key(self, op: Op) -> tuple:
        return self.function.by_id[op.operands[0]].type.shape, op.attr("axes")

    def _joinable_row(self, op: Op, newest: int) -> int | None:
        """The row kernel that this reduction can be part of: the same rows, and nothing it reads is finished later."""
        number = self.rows.get(self._row_key(op))
        if number is None or newest > number or len(op.operands) != 1:
            return None
        group = self.groups[number]
        operand = op.operands[0]
        if newest == number:
            # It depends on this kernel: only through a value that the kernel has at hand in the row it works on.
            return number if self.home.get(operand) == number and self._rows_stay(group) else None
        shared = self.function.by_id[group.root.id].operands[0] == operand     # two sums over one tensor: read it once
        return number if shared and self._rows_stay(group) else None

    def _may_join(self, op: Op, group: _Group) -> bool:
        inside = [o for o in dict.fromkeys(op.operands) if self.home.get(o) == group.number]
        outside = [o for o in dict.fromkeys(op.operands) if self.home.get(o) != group.number]
        if not inside:
            return False                     # it reads finished results of the group through a float
        reason = self._why_not_join(op, group)
        if not reason and any(self._depth(o) == group.number for o in outside):
            reason = "reads a rearranged copy of the kernel's own result"
        if reason:
            for o in inside:
                self.reasons[o, op.id] = reason
        return not reason

    def _why_not_join(self, op: Op, group: _Group) -> str:
        root = group.root
        shape = op.type.shape
        if self.kind[root.id] in PACKED:
            if self.level < 2:
                return f"epilogues are off at opt_level {self.level}"
            return "" if shape == root.type.shape else f"broadcasts {root.type} to {op.type}"
        if shape == root.type.shape and all(self._is_row_value(o, group) for o in op.operands if self.home.get(o) == group.number):
            return ""                        # on the reduced values themselves
        full = self._row_key(root)[0]
        operands = [self.function.by_id[o].type.shape for o in op.operands if self.home.get(o) == group.number]
        if shape != full or any(s not in (full, root.type.shape) for s in operands):
            return f"{op.type} is neither a row nor the reduced value of the kernel"
        if not root.attr("keepdims", False):
            return "the reduced axes are dropped, so the value does not line up with the rows"
        if not self._rows_stay(group):
            return "one long row: each pass over it is shared among threads" if self._is_one_row(root) else \
                "the rows do not stay in cache between two passes over them"
        return ""

    def _is_row_value(self, id: int, group: _Group) -> bool:
        return self.function.by_id[id].type.shape == group.root.type.shape

    def _rows_stay(self, group: _Group) -> bool:
        """Rows of unknown length are taken as short: those of transformers and images are."""
        source, axes = self.function.by_id[group.root.operands[0]].type, group.root.attr("axes")
        if not axes:
            return False
        row = exact_quotient(source.numel, group.root.type.numel) if group.root.type.numel != 0 else 0
        if self._is_one_row(group.root):
            return not isinstance(row, int) or row <= ALONE_LIMIT
        neighbours = 1 if len(source.shape) - 1 in axes else STRIP
        return not isinstance(row, int) or row * neighbours <= ROW_LIMIT

    def _is_one_row(self, root: Op) -> bool:
        """There is nothing to share among threads but the row itself."""
        shape = self.function.by_id[root.operands[0]].type.shape
        return all(dim == 1 for axis, dim in enumerate(shape) if axis not in root.attr("axes"))

    def _one_output(self, group: _Group) -> None:
        """The longest run of members of which only one value is read outside; the members after it float."""
        members = set(group.members)
        last_reader = {m: max((self.position[u.id] for u in self.function.users[m] if u.id in members), default=-1)
                       for m in group.members}
        leaks = {m for m in group.members if m in self.results or any(u.id not in members for u in self.function.users[m])}
        alive: set[int] = set()              # members of the run that something after the run reads
        best = 1
        for count, member in enumerate(group.members, 1):
            for operand in dict.fromkeys(self.function.by_id[member].operands):
                if operand in alive and operand not in leaks and last_reader[operand] <= self.position[member]:
                    alive.discard(operand)
            alive.add(member)
            if alive == {member}:
                best = count
        for member in group.members[best:]:
            del self.home[member]
            self.after[member] = group.number
            for operand in self.function.by_id[member].operands:
                if self.home.get(operand) == group.number:
                    self.reasons[operand, member] = "the kernel would have to write two values"
        del group.members[best:]

    # Backwards: which floating values are computed where they are read, and which once, into memory.

    def _settle_floating(self) -> None:
        self.opened = len(self.groups)       # kernels of materialised values come after these
        weight: dict[int, int] = {}          # ops computed to get one element; capped, it is only compared
        for op in self.function.body:
            if op.id in self.after and not is_number(op):
                weight[op.id] = min(1 + sum(weight.get(o, 0) for o in dict.fromkeys(op.operands)), 1000)
        packed: dict[int, str] = {}          # values that must be memory or a view of it, and for which kind of reader
        spread: set[int] = set()             # values that a reader would compute more than once for each element
        places: dict[int, frozenset] = {}    # for a floating value the index maps it is read through, the kernel's own included
        for op in reversed(tuple(self.function.body)):
            if op.id not in self.after:
                if self.kind[op.id] in PACKED:
                    for o in op.operands:
                        packed.setdefault(o, self.kind[op.id])
                continue
            users = self.function.users[op.id]
            if is_number(op) and op.id not in self.results:
                self.kernels[op.id] = frozenset()
                continue
            read_in = frozenset().union(*(self.kernels[u.id] if u.id in self.kernels else (self.home[u.id],) for u in users))
            seen = frozenset().union(*(self._places(u, places) for u in users))
            repeated = op.id in spread or any(self._repeats(u, op) for u in users)
            reason = self._why_memory(op, read_in, seen, repeated, packed, weight)
            if reason is not None:
                self._materialise(op, users, reason)
                continue
            self.kernels[op.id] = read_in
            places[op.id] = seen
            for o in op.operands:
                if op.id in packed:
                    packed.setdefault(o, packed[op.id])
                if repeated:
                    spread.add(o)

    def _places(self, user: Op, places: dict[int, frozenset]) -> frozenset:
        """The index maps that a reader hands on: an elementwise op reads where it is read, a movement somewhere else."""
        own = places[user.id] if user.id in places else frozenset((("kernel", self.home[user.id]),))
        return frozenset((user.id, hash(p)) for p in own) if self.kind[user.id] == MOVEMENT else own

    def _repeats(self, user: Op, op: Op) -> bool:
        """The user reads an element of the value more than once."""
        if op.type.shape == () or user.name in ("slice", "concat", "pad") or self.kind[user.id] not in (ELEMENTWISE, MOVEMENT):
            return False
        return user.type.numel != op.type.numel

    def _why_memory(self, op: Op, read_in: frozenset, seen: frozenset, repeated: bool, packed: dict[int, str],
                    weight: dict[int, int]) -> str | None:
        """None when the value is computed where it is read; else why it goes through memory."""
        if op.id in self.results:
            return "result of the function"
        if self.level == 0:
            return "fusion is off at opt_level 0"
        if op.id in packed and op.name not in VIEWS:
            return f"{packed[op.id]} needs packed operands: it reads each element many times"
        if self.kind[op.id] == MOVEMENT and op.name in VIEWS:
            return f"read at {len(seen)} places" if len(seen) > PLACES_LIMIT else None
        cheap = self._cheap_chain(op, weight)
        if len(read_in) > 1 and not cheap:
            return f"read by {len(read_in)} kernels"
        if repeated and self.kind[op.id] == ELEMENTWISE and op.name not in CHEAP:
            return "broadcast: each element would be computed many times"
        if len(seen) > (PLACES_LIMIT if cheap else 1):
            return f"read at {len(seen)} places"
        return None

    def _cheap_chain(self, op: Op, weight: dict[int, int]) -> bool:
        """Computing it again costs no more than reading it: few simple ops over at most one value of its own size."""
        if (op.name not in CHEAP and self.kind[op.id] == ELEMENTWISE) or weight[op.id] > RECOMPUTED_LIMIT:
            return False
        operands = [self.function.by_id[o] for o in dict.fromkeys(op.operands)]
        large = sum(1 for o in operands if not is_number(o) and o.type.numel == op.type.numel)
        return large <= 1 and all(self._cheap_chain(o, weight) for o in operands if o.id in weight and o.id in self.after)

    def _materialise(self, op: Op, users: tuple[Op, ...], reason: str) -> None:
        for user in users:
            self.reasons[op.id, user.id] = reason
        owner = self._row_owner(op, users)
        if owner is None:
            self._open(op)
        else:
            self._join(op, owner)
        del self.after[op.id]

    def _row_owner(self, op: Op, users: tuple[Op, ...]) -> _Group | None:
        """The row kernel that reads the value first, element by element, and can write it as well."""
        homes = [self.home.get(user.id) for user in users]
        if self.level == 0 or self.kind[op.id] != ELEMENTWISE or not homes or None in homes or max(homes) >= self.opened:
            return None
        group = self.groups[min(homes)]
        fits = (self.kind[group.root.id] == REDUCTION and self._row_key(group.root)[0] == op.type.shape
                and self._rows_stay(group) and self.after[op.id] < group.number)
        return group if fits else None

    # Out: the kernels in an order in which each reads only what earlier ones wrote.

    def _emit(self) -> KernelGraph:
        members, inputs = {}, {}
        for group in self.groups:
            members[group.number], inputs[group.number] = self._collect(group)
        read = {id for ids in inputs.values() for id in ids} | self.results
        order = self._order(inputs)
        kernels = []
        for number in order:
            group = self.groups[number]
            outputs = tuple(m for m in sorted(group.members, key=self.position.__getitem__) if m in read)
            if not outputs:
                continue
            ops = [self.function.by_id[m] for m in members[number]]
            kernels.append(Kernel(
                name=f"k{len(kernels)}_{title(self, ops)}", kind=self.kind[group.root.id], root=group.root.id,
                ops=tuple(members[number]), inputs=tuple(inputs[number]), outputs=outputs,
                origins=merge_origins(*(op.origins for op in ops))))
        return KernelGraph(self.function, tuple(kernels), tuple(decisions(self, kernels)))

    def _collect(self, group: _Group) -> tuple[list[int], list[int]]:
        """Members, with the floating values computed in it, and the values it reads from memory, in the function's order."""
        found: set[int] = set(group.members)
        read: set[int] = set()
        todo = list(group.members)
        while todo:
            for operand in self.function.by_id[todo.pop()].operands:
                if operand in found or operand in read:
                    continue
                if operand in self.kernels:
                    found.add(operand)
                    todo.append(operand)
                else:
                    read.add(operand)
        return sorted(found, key=self.position.__getitem__), sorted(read, key=self.position.__getitem__)

    def _order(self, inputs: dict[int, list[int]]) -> list[int]:
        """By dependence, and among those that could run by the place of their roots."""
        waiting = {n: {self.home[i] for i in ids if i in self.home} - {n} for n, ids in inputs.items()}
        following: dict[int, list[int]] = {}
        for number, needed in waiting.items():
            for other in needed:
                following.setdefault(other, []).append(number)
        ready = [(self.position[self.groups[n].root.id], n) for n, needed in waiting.items() if not needed]
        heapify(ready)
        order = []
        while ready:
            _, number = heappop(ready)
            order.append(number)
            for other in following.get(number, ()):
                waiting[other].discard(number)
                if not waiting[other]:
                    heappush(ready, (self.position[self.groups[other].root.id], other))
        if len(order) != len(self.groups):
            raise AssertionError(f"kernels of {self.function.name} wait for each other")
        return order
