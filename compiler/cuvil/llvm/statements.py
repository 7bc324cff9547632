"""Loop statements as LLVM instructions: one function for each phase of a nest.

Every phase is `void phase(ptr context, i64 begin, i64 end, i64 thread)` over a part of its parallel loop; context is a table
of pointers: the error word, then one for each value in memory. Inside a vector loop an expression is
uniform (a scalar) or has a lane for each element; loads are plain, masked, broadcast or gathered by how their offset
changes with the loop variable. The last, partial step of a vector loop runs the same instructions under a mask.
"""
from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..ir.scalar import Apply, Const, Expr, Index
from ..ir.types import DType
from ..loops.index import Affine, affine
from ..loops.nest import Accumulator, Buffer, Check, Fold, Let, Load, Local, Loop, Statement, Store, Tile, Total
from ..targets import Target
from . import arithmetic
from .arithmetic import from_memory, to_memory
from .tile import write_tile
from .writer import MEMORY, REGISTER, Value, Writer, constant, suffix, vector

ERROR, FIRST_VALUE = 0, 1                                # slots of the context


@dataclass
class Lanes:
    """The vector loop being written: its variable starts a step at `start`; mask is None while all lanes are in range."""

    var: str
    start: Value
    width: int
    mask: Value | None


@dataclass
class Phase:
    """Writes one phase.

    slots      (op id, role of the buffer) -> slot of its pointer in the context
    locate     sets the writer's debug location for a statement
    check      message -> error code
    """

    w: Writer
    target: Target
    slots: dict[tuple[int, str], int]
    locate: Callable[[Statement], None]
    check: Callable[[str], int]
    variables: dict[str, Value] = field(default_factory=dict)
    locals: dict[str, Value] = field(default_factory=dict)
    accumulators: dict[str, tuple[str, Accumulator, int]] = field(default_factory=dict)
    pointers: dict[tuple[int, str], str] = field(default_factory=dict)
    lanes: Lanes | None = None

    def lanes_of(self, bytes: int) -> int:
        """Elements of this size in one register."""
        return self.target.lanes(bytes)

    # --- statements -------------------------------------------------------------------------------------------------

    def write(self, statements: tuple[Statement, ...]) -> None:
        for statement in statements:
            self.locate(statement)
            match statement:
                case Let():
                    self.locals[statement.name] = self.value(statement.value)
                case Store():
                    self.store(statement.buffer, statement.offset, self.value(statement.value))
                case Check():
                    self._check(statement)
                case Accumulator():
                    self._declare(statement)
                case Fold():
                    self._fold(statement)
                case Total():
                    self.locals[statement.let] = self._total(statement)
                case Loop(kind="vector"):
                    self._vector(statement)
                case Loop():
                    self._serial(statement)
                case Tile():
                    write_tile(self, statement)

    def phase(self, statement: Statement) -> None:
        """A statement at the top of a nest; a parallel loop runs from begin to end."""
        self.locate(statement)
        if isinstance(statement, Loop) and statement.kind == "parallel":
            with self.loop(Value("%begin", "i64"), Value("%end", "i64"), 1) as index:
                self.variables[statement.var] = index
                self.write(statement.body)
        else:
            self.write((statement,))

    def _serial(self, loop: Loop) -> None:
        extent = self.value(loop.extent)
        if extent.text == "0":
            return
        if extent.text == "1":
            self.variables[loop.var] = constant(0, "i64")
            self.write(loop.body)
            return
        with self.loop(constant(0, "i64"), extent, 1) as index:
            self.variables[loop.var] = index
            self.write(loop.body)

    def _vector(self, loop: Loop) -> None:
        extent, width = self.value(loop.extent), loop.width
        if extent.text == "0":
            return
        if not extent.text.startswith("%"):
            size = int(extent.text)
            whole, rest = constant(size // width * width, "i64"), size % width
            mask = Value("<" + ", ".join(f"i1 {'true' if i < rest else 'false'}" for i in range(width)) + ">", "i1", width)
            if size >= width:
                self._steps(loop, whole)
            if rest:
                self._step(loop, whole, mask)
            return
        whole = self.w.op("sub", extent, self.w.op("urem", extent, width))
        self._steps(loop, whole)
        some, after = self.w.label("tail"), self.w.label("after")
        self.locate(loop)
        rest = self.w.op("sub", extent, whole)
        self.w.branch(self.w.compare("sgt", rest, 0), some, after)
        self.w.start(some)
        count = self.w.splat(self.w.convert("trunc", rest, "i32"), width)
        self._step(loop, whole, self.w.compare("slt", self.w.iota("i32", width), count))
        self.w.jump(after)
        self.w.start(after)

    def _steps(self, loop: Loop, whole: Value) -> None:
        if whole.text == str(loop.width):
            self._step(loop, constant(0, "i64"), None)
            return
        with self.loop(constant(0, "i64"), whole, loop.width) as start:
            self._step(loop, start, None)

    def _step(self, loop: Loop, start: Value, mask: Value | None) -> None:
        before, known = self.lanes, dict(self.locals)
        self.variables[loop.var] = start
        if loop.width > 1:
            self.lanes = Lanes(loop.var, start, loop.width, mask)
        self.write(loop.body)
        self.lanes, self.locals = before, known

    @contextmanager
    def loop(self, begin: Value, end: Value, step: int):
        """A counted loop around what is written inside; gives its counter. Values made inside are not known after it."""
        w = self.w
        head, body, latch, done = (w.label(hint) for hint in ("loop", "body", "next", "done"))
        before, following = w.block, w.name()
        w.jump(head)
        w.start(head)
        index = w.phi(begin, before, following, latch)
        w.branch(w.compare("slt", index, end), body, done)
        w.start(body)
        location, known = w.location, dict(self.locals)
        yield index
        w.location, self.locals = location, known
        w.jump(latch)
        w.start(latch)
        w.put(f"{following} = add nsw {index}, {step}")
        w.jump(head)
        w.start(done)

    def _check(self, statement: Check) -> None:
        w = self.w
        wrong = w.op("xor", self.value(statement.condition), True)
        if wrong.lanes and self.lanes and self.lanes.mask is not None:
            wrong = w.op("and", wrong, self.lanes.mask)
        failed, after = w.label("failed"), w.label("checked")
        w.branch(w.any(wrong), failed, after)
        w.start(failed)
        w.put(f"store atomic i32 {self.check(statement.what)}, ptr {self.pointer_at(ERROR)} monotonic, align 4")
        w.jump(after)
        w.start(after)

    # --- folds ------------------------------------------------------------------------------------------------------

    def _declare(self, statement: Accumulator) -> None:
        lanes = statement.lanes if statement.lanes > 1 else 0
        if not statement.lanes and self.lanes:
            lanes = self.lanes.width
        start = constant(statement.identity, REGISTER[statement.dtype], lanes)
        pointer = self.w.alloca(start.type)
        self.w.put(f"store {start}, ptr {pointer}")
        self.accumulators[statement.name] = pointer, statement, lanes

    def _fold(self, statement: Fold) -> None:
        pointer, declared, lanes = self.accumulators[statement.name]
        w, dtype = self.w, declared.dtype
        before = w.make(f"load {vector(REGISTER[dtype], lanes)}, ptr {pointer}", REGISTER[dtype], lanes)
        value = w.splat(self.value(statement.value), lanes)
        after = arithmetic.apply(w, declared.combine, [before, value], [dtype, dtype], dtype)
        if self.lanes and self.lanes.mask is not None and lanes:
            after = w.select(self.lanes.mask, after, before)
        w.put(f"store {after}, ptr {pointer}")

    def _total(self, statement: Total) -> Value:
        pointer, declared, lanes = self.accumulators[statement.name]
        w, dtype = self.w, declared.dtype
        value = w.make(f"load {vector(REGISTER[dtype], lanes)}, ptr {pointer}", REGISTER[dtype], lanes)
        if not declared.lanes or not statement.join:
            return value
        while value.lanes > 1:
            low, high = w.half(value, False), w.half(value, True)
            value = arithmetic.apply(w, declared.combine, [low, high], [dtype, dtype], dtype)
        return w.lane(value, 0) if value.lanes else value

    # --- expressions ------------------------------------------------------------------------------------------------

    def value(self, expression: Expr) -> Value:
        match expression:
            case Const(value, dtype):
                return constant(value, REGISTER[dtype])
            case Local(name):
                return self.locals[name]
            case Load():
                return self.load(expression)
            case Index():
                return self._index(Affine(0, {expression: 1}))
            case Apply(primitive, arguments, dtype):
                if dtype == DType.I64 and primitive in ("add", "sub", "mul") and self._moves(expression):
                    return self._index(affine(expression, {}))
                values = [self.value(a) for a in arguments]
                return arithmetic.apply(self.w, primitive, values, [a.dtype for a in arguments], dtype)
        raise TypeError(expression)

    def _moves(self, expression: Expr) -> bool:
        """It is position arithmetic on loop variables, which cannot wrap, so it may be put in canonical form."""
        match expression:
            case Const() | Index():
                return True
            case Apply("add" | "sub" | "mul", arguments):
                return all(self._moves(a) for a in arguments)
        return False

    def _index(self, form: Affine) -> Value:
        """A position: scalar, or counted up along the lanes."""
        if self.lanes is None:
            return self._scalar(form)
        step = form.coefficient(self.lanes.var)
        rest = form.without(self.lanes.var)
        if not step:
            return self._scalar(rest)
        base = self._scalar(rest + Affine(0, {Index(self.lanes.var): step}))
        along = Value("<" + ", ".join(f"i64 {step * i}" for i in range(self.lanes.width)) + ">", "i64", self.lanes.width)
        return self.w.op("add", self.w.splat(base, self.lanes.width), along)

    def _scalar(self, form: Affine) -> Value:
        """The sum of terms; vector atoms give a vector."""
        total: Value | None = None
        for atom, coefficient in form.terms.items():
            value = self._variable(atom.name) if isinstance(atom, Index) else self.value(atom)
            if coefficient != 1:
                value = self.w.op("mul", value, coefficient)
            total = value if total is None else self.w.op("add", total, value)
        if total is None:
            return constant(form.constant, "i64")
        return self.w.op("add", total, form.constant) if form.constant else total

    def _variable(self, name: str) -> Value:
        """A loop variable, also one taken out of a joint counter by a Let."""
        return self.variables[name] if name in self.variables else self.locals[name]

    def _varies(self, expression: Expr) -> bool:
        match expression:
            case Index(name):
                return self.lanes is not None and name == self.lanes.var
            case Local(name):
                return name in self.locals and self.locals[name].lanes > 0
            case Load():
                return self._varies(expression.offset)
            case Apply(_, arguments):
                return any(self._varies(a) for a in arguments)
        return False

    # --- memory -----------------------------------------------------------------------------------------------------

    def pointer_at(self, slot: int) -> str:
        name = self.w.name()
        place = self.w.name()
        self.w.put(f"{place} = getelementptr inbounds ptr, ptr %context, i64 {slot}")
        self.w.put(f"{name} = load ptr, ptr {place}, align 8")
        return name

    def pointer(self, buffer: Buffer) -> str:
        """The start of a buffer; looked up once, at the entry of the function."""
        key = buffer.value, buffer.role
        if key not in self.pointers:
            if buffer.role == "stack":
                self.pointers[key] = self.w.alloca(MEMORY[buffer.dtype], buffer.numel)
            elif buffer.role == "panel":
                self.pointers[key] = self._thread_memory(buffer)
            else:
                name, place = self.w.name(), self.w.name()
                self.w.entry += [f"  {place} = getelementptr inbounds ptr, ptr %context, i64 {self.slots[key]}{self.w.location}",
                                   f"  {name} = load ptr, ptr {place}, align 8{self.w.location}"]
                self.pointers[key] = name
        return self.pointers[key]

    def _thread_memory(self, buffer: Buffer) -> str:
        """The thread's own block, at the entry of the function; without memory the whole call fails."""
        w = self.w
        memory, missing = w.name(), w.name()
        failed, fine = w.label("no_memory"), w.label("memory")
        w.declares["@cuvil_thread_memory"] = "declare hidden ptr @cuvil_thread_memory(i64)"
        w.entry += [f"  {memory} = call ptr @cuvil_thread_memory(i64 {buffer.numel * buffer.dtype.size}){w.location}",
                      f"  {missing} = icmp eq ptr {memory}, null{w.location}",
                      f"  br i1 {missing}, label %{failed}, label %{fine}{w.location}", f"{failed}:"]
        error, place = w.name(), w.name()
        code = self.check(f"there is no memory for a panel of {buffer.name}")
        at = w.location
        w.entry += [f"  {place} = getelementptr inbounds ptr, ptr %context, i64 {ERROR}{at}", f"  {error} = load ptr, ptr {place}, align 8{at}",
                      f"  store atomic i32 {code}, ptr {error} monotonic, align 4{at}", f"  ret void{at}", f"{fine}:"]
        return memory

    def _split(self, offset: Expr) -> tuple[int | None, Affine]:
        """How the offset grows by lane, and its value at the first one; None: it is different for each lane."""
        form = affine(offset, {})
        if self.lanes is None:
            return 0, form
        rest = form.without(self.lanes.var)
        if any(self._varies(atom) for atom in rest.terms):
            return None, form
        return form.coefficient(self.lanes.var), form

    def _start(self, form: Affine) -> Value:
        return self._scalar(form)                        # the loop variable stands for the first lane

    def _mask(self, guard: Value | None) -> Value | None:
        """Which lanes may touch memory; None: all."""
        own = self.lanes.mask if self.lanes else None
        if guard is None:
            return own
        guard = self.w.splat(guard, self.lanes.width)
        return guard if own is None else self.w.op("and", own, guard)

    def load(self, load: Load) -> Value:
        w, dtype = self.w, load.dtype
        element, size = MEMORY[dtype], dtype.size
        step, form = self._split(load.offset)
        guard = None if load.guard is None else self.value(load.guard)
        if not load.buffer.numel:
            return constant(0, REGISTER[dtype])
        base = self.pointer(load.buffer)
        if step == 0:
            start = self._start(form)
            if guard is not None:                        # elsewhere the buffer's first element is read instead
                start = w.select(w.any(guard), start, constant(0, "i64"))
            address = w.address(base, element, start, self.w.memory)
            return from_memory(w, w.make(f"load {element}, {self.w.memory} {address}, align {size}", element), dtype)
        lanes = self.lanes.width
        mask = self._mask(guard)
        if step == 1:
            address = w.address(base, element, self._start(form))
            type = vector(element, lanes)
            if mask is None:
                return from_memory(w, w.make(f"load {type}, ptr {address}, align {size}", element, lanes), dtype)
            name = f"@llvm.masked.load.{suffix(element, lanes)}.p0"
            w.declares[name] = f"declare {type} {name}(ptr, i32, <{lanes} x i1>, {type})"
            return from_memory(w, w.make(f"call {type} {name}(ptr {address}, i32 {size}, {mask}, {type} zeroinitializer)", element, lanes), dtype)
        addresses = self._addresses(base, element, step, form)
        mask = mask or constant(True, "i1", lanes)
        type = vector(element, lanes)
        name = f"@llvm.masked.gather.{suffix(element, lanes)}.v{lanes}p0"
        w.declares[name] = f"declare {type} {name}(<{lanes} x ptr>, i32, <{lanes} x i1>, {type})"
        return from_memory(w, w.make(f"call {type} {name}({addresses}, i32 {size}, {mask}, {type} zeroinitializer)", element, lanes), dtype)

    def store(self, buffer: Buffer, offset: Expr, value: Value) -> None:
        w, dtype = self.w, buffer.dtype
        element, size = MEMORY[dtype], dtype.size
        step, form = self._split(offset)
        base = self.pointer(buffer)
        if step == 0:
            value = to_memory(w, value if not value.lanes else w.lane(value, 0), dtype)
            address = w.address(base, element, self._start(form), self.w.memory)
            w.put(f"store {value}, {self.w.memory} {address}, align {size}")
            return
        lanes = self.lanes.width
        value = to_memory(w, w.splat(value, lanes), dtype)
        mask = self._mask(None)
        if step == 1:
            address = w.address(base, element, self._start(form))
            if mask is None:
                w.put(f"store {value}, ptr {address}, align {size}")
                return
            name = f"@llvm.masked.store.{suffix(element, lanes)}.p0"
            w.declares[name] = f"declare void {name}({value.type}, ptr, i32, <{lanes} x i1>)"
            w.put(f"call void {name}({value}, ptr {address}, i32 {size}, {mask})")
            return
        addresses = self._addresses(base, element, step, form)
        name = f"@llvm.masked.scatter.{suffix(element, lanes)}.v{lanes}p0"
        w.declares[name] = f"declare void {name}({value.type}, <{lanes} x ptr>, i32, <{lanes} x i1>)"
        w.put(f"call void {name}({value}, {addresses}, i32 {size}, {mask or constant(True, 'i1', lanes)})")

    def _addresses(self, base: str, element: str, step: int | None, form: Affine) -> Value:
        w, lanes = self.w, self.lanes.width
        if step is not None:
            start = w.address(base, element, self._start(form))
            along = Value("<" + ", ".join(f"i64 {step * i}" for i in range(lanes)) + ">", "i64", lanes)
            return w.make(f"getelementptr inbounds {element}, ptr {start}, {along}", "ptr", lanes)
        offsets = w.splat(self._index(form), lanes)
        return w.make(f"getelementptr inbounds {element}, ptr {base}, {offsets}", "ptr", lanes)

