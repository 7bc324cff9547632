"""FLOPs and bytes of functions, against numbers worked out by hand beside each of them. f32 is 4 bytes."""
import pytest

from cuvil.cost import Cost, cost_by_line, cost_of_graph, cost_of_kernel, cost_of_op, example_sizes, free_symbols, number
from cuvil.cost.counts import unfused
from cuvil.ir.dims import symbol
from cuvil.ir.types import DType, TensorType
from cuvil.lineage import Origin
from cuvil.ops import Builder
from cuvil.ops.definition import FLOPS
from cuvil.passes import run
from cuvil.passes.fuse import fuse
from cuvil.source import Span

B, T = symbol("B"), symbol("T")


def build(make, *types: str, library="torch"):
    """The kernel graph of `make(b, x, ...)` on inputs of these types, each emit at a line of its own: 10, 11, ..."""
    b = Builder(library)
    inputs = [b.input(f"x{i}", i, TensorType.parse(t)) for i, t in enumerate(types)]
    emit, lines = b.emit, iter(range(10, 1000))

    def emit_at_next_line(name, *operands, **attrs):
        if b.origins:
            return emit(name, *operands, **attrs)
        line = next(lines)
        with b.at(Origin(Span("f.py", line, 4, line, 20), "Call")):
            return emit(name, *operands, **attrs)

    b.emit = emit_at_next_line
    result = make(b, *inputs)
    return fuse(run(b.function("f", [result])).function)


def cost(make, *types):
    return cost_of_graph(build(make, *types))


# One elementwise op: read twice, written once.
def test_add():
    c = cost(lambda b, x, y: b.emit("add", x, y), "f32[8, 16]", "f32[8, 16]")
    assert c == Cost(flops=128, read=2 * 512, written=512)
    assert c.intensity == pytest.approx(128 / 1536)


# A chain is one kernel: only its ends move. exp counts FLOPS["exp"] an element.
def test_chain_is_read_and_written_once():
    c = cost(lambda b, x: b.emit("exp", b.emit("neg", b.emit("abs", x))), "f32[100]")
    assert (c.read, c.written) == (400, 400)
    assert c.flops == 100 * (FLOPS.get("exp", 1) + 2)


# Broadcasting reads the small operand once.
def test_bias():
    assert cost(lambda b, x, y: b.emit("mul", x, y), "f32[32, 64]", "f32[64]") == Cost(2048, 8192 + 256, 8192)


# 2*m*n*k and the three matrices.
def test_matmul():
    c = cost(lambda b, x, y: b.emit("matmul", x, y), "f32[64, 128]", "f32[128, 32]")
    assert c == Cost(2 * 64 * 32 * 128, 4 * (64 * 128 + 128 * 32), 4 * 64 * 32)


def test_matmul_with_epilogue_moves_no_more_than_the_bias():
    plain = cost(lambda b, x, y: b.emit("matmul", x, y), "f32[64, 128]", "f32[128, 32]")
    with_bias = cost(lambda b, x, y, z: b.emit("add", b.emit("matmul", x, y), z), "f32[64, 128]", "f32[128, 32]", "f32[32]")
    assert with_bias.bytes - plain.bytes == 128
    assert with_bias.flops - plain.flops == 64 * 32


def test_batched_matmul():
    c = cost(lambda b, x, y: b.emit("matmul", x, y), "f32[4, 8, 16]", "f32[4, 16, 8]")
    assert c == Cost(4 * 2 * 8 * 8 * 16, 2 * 4 * 4 * 8 * 16, 4 * 4 * 8 * 8)


# A sum reads everything and writes one number a row.
def test_reduction():
    assert cost(lambda b, x: b.emit("reduce_sum", x, axes=(1,), keepdims=False), "f32[10, 50]") == Cost(500, 2000, 40)


# max, sub, exp, sum, div: four ops of one FLOP an element and one exp, in one pass over memory.
def test_softmax():
    c = cost(lambda b, x: b.emit("softmax", x, axis=1), "f32[16, 64]")
    assert (c.read, c.written) == (4096, 4096)
    assert c.flops == 1024 * (4 + FLOPS["exp"])


# Half precision halves the bytes and nothing else.
def test_half():
    assert cost(lambda b, x, y: b.emit("add", x, y), "f16[8, 16]", "f16[8, 16]") == Cost(128, 512, 256)


# Of a table only the rows that are taken are read: 4 rows of 32 floats, and 4 indices of 8 bytes.
def test_embedding_reads_only_its_rows():
    c = cost(lambda b, w, i: b.emit("take", w, i, axis=0, negative=False), "f32[50000, 32]", "i64[4]")
    assert c == Cost(0, 4 * 32 * 4 + 32, 4 * 32 * 4)


def test_slice_reads_only_its_part():
    c = cost(lambda b, x: b.emit("exp", b.emit("slice", x, starts=(0, 0), sizes=(2, 8), steps=(1, 1))), "f32[1000, 8]")
    assert (c.read, c.written) == (64, 64)


# Constants stand in the code.
def test_constants_do_not_move():
    c = cost(lambda b, x: b.emit("add", x, b.constant(1.0, DType.F32)), "f32[10]")
    assert c == Cost(10, 40, 40)


# Sizes stay symbols until someone gives them.
def test_symbolic():
    c = cost(lambda b, x, y: b.emit("matmul", x, y), "f32[B, T, 64]", "f32[B, 64, T]")
    assert c.flops == 128 * B * T * T
    assert c.bytes == 512 * B * T + 4 * B * T * T
    assert c.intensity is None
    assert c.at({"B": 2, "T": 10}) == Cost(25600, 10240, 800)


# A size that stands in no input is found too: without a number for it nothing can be compiled.
def test_free_symbols():
    graph = build(lambda b, x: b.emit("broadcast", b.emit("exp", x), shape=(symbol("heads"), T)), "f32[T]")
    assert graph.function.symbols == ("T",)
    assert free_symbols(graph.function) == ("T", "heads")


def test_fusion_saves_exactly_the_values_in_between():
    graph = build(lambda b, x, y: b.emit("exp", b.emit("add", x, y)), "f32[100]", "f32[100]")
    assert unfused(graph.function).bytes - cost_of_graph(graph).bytes == 2 * 400
    assert unfused(graph.function).flops == cost_of_graph(graph).flops


def test_op_by_itself():
    graph = build(lambda b, x, y: b.emit("exp", b.emit("add", x, y)), "f32[100]", "f32[100]")
    add = next(op for op in graph.function.body if op.name == "add")
    assert cost_of_op(graph.function, add) == Cost(100, 800, 400)
    assert cost_of_op(graph.function, graph.function.inputs[0]) == Cost()


@pytest.mark.parametrize("make, types", [
    (lambda b, x: b.emit("softmax", x, axis=1), ["f32[16, 64]"]),
    (lambda b, x, y, z: b.emit("gelu", b.emit("add", b.emit("matmul", x, y), z), approximate="none"), ["f32[B, 128]", "f32[128, 32]", "f32[32]"]),
    (lambda b, x, y: b.emit("add", b.emit("exp", x), b.emit("exp", y)), ["f32[T]", "f32[T]"]),
])
def test_lines_add_up_to_the_function(make, types):
    graph = build(make, *types)
    sizes = example_sizes(graph.function.symbols)
    whole, lines = cost_of_graph(graph).at(sizes), cost_by_line(graph, None, sizes)
    assert sum(c.flops for c in lines.values()) == pytest.approx(whole.flops)
    assert sum(c.bytes for c in lines.values()) == pytest.approx(whole.bytes)
    assert 0 not in lines


# A fused line computes and moves nothing of its own.
def test_a_line_in_the_middle_has_no_traffic():
    graph = build(lambda b, x: b.emit("sqrt", b.emit("exp", b.emit("neg", x))), "f32[10]")
    lines = cost_by_line(graph, None, {})
    assert lines[10].bytes == 40 and lines[11].bytes == 0 and lines[12].bytes == 40
    assert lines[11].intensity is None and lines[11].flops > 0


# Work done in a helper is the line that called it; what has no place at all is line 0.
def test_inlined_work_belongs_to_the_caller():
    b = Builder()
    x = b.input("x", 0, TensorType.parse("f32[10]"))
    helper, caller = Span("other.py", 3, 0, 3, 9), Span("f.py", 7, 4, 7, 20)
    with b.at(Origin(helper, "Call", (caller,))):
        y = b.emit("exp", x)
    with b.at():
        z = b.emit("neg", y)
    graph = fuse(b.function("f", [z]))
    lines = cost_by_line(graph, Span("f.py", 5, 0, 9, 0), {})
    assert set(lines) == {0, 7}
    assert lines[0].flops == 10


def test_kernels_add_up_to_the_graph():
    graph = build(lambda b, x, y: b.emit("matmul", b.emit("softmax", b.emit("matmul", x, y), axis=1), y), "f32[32, 32]", "f32[32, 32]")
    parts = [cost_of_kernel(graph.function, k) for k in graph.kernels]
    assert len(parts) > 1
    assert sum((p for p in parts), Cost()) == cost_of_graph(graph)


# Examples are by name, and a given size wins.
def test_example_sizes():
    assert example_sizes(["B", "T", "head_dim", "whatever"]) == {"B": 8, "T": 128, "head_dim": 64, "whatever": 128}
    assert example_sizes(["B"], {"B": 7}) == {"B": 7}
    assert example_sizes(["b", "h", "t"])["h"] == 4 and example_sizes(["b", "h", "w"]) == {"b": 8, "h": 256, "w": 256}
    assert number(3 * B * T + 1, {"T": 5}) == 121
    assert number(42, {}) == 42
