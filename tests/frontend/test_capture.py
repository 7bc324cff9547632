"""From a function as people write it to its CIR, common things first."""
import pytest


def check(ir, code: str, expected: str, name: str = "f", **types: str) -> None:
    import textwrap
    assert ir(code, name, **types).strip() == textwrap.dedent(expected).strip()


def test_operators_names_and_the_result(ir):
    check(ir, """
        def f(a: Float[Tensor, "n 4"], b: Float[Tensor, "n 4"], c: Float[Tensor, "n 4"]):
            h = a + b * c
            return h
    """, """
        func @f(%0: f32[n, 4] "a", %1: f32[n, 4] "b", %2: f32[n, 4] "c") -> tensor {
          %3 = mul %1, %2 : f32[n, 4]
          %4 "h" = add %0, %3 : f32[n, 4]
          return %4
        }
    """)


def test_sizes_are_named_by_the_users_own_words_and_computed_with(ir):
    check(ir, """
        def f(x: torch.Tensor):
            B, T, C = x.shape
            return x.view(B, T, 4, C // 4).transpose(1, 2), x.reshape(B * T, -1)
    """, """
        func @f(%0: f32[2, 3, 8] "x") -> tuple {
          %1 = reshape %0 {shape = (2, 3, 4, 2)} : f32[2, 3, 4, 2]
          %2 = transpose %1 {axes = (0, 2, 1, 3)} : f32[2, 4, 3, 2]
          %3 = reshape %0 {shape = (6, 8)} : f32[6, 8]
          return %2, %3
        }
    """, x="f32[2, 3, 8]")


def test_a_decorator_gives_the_shapes(ir):
    check(ir, """
        WIDTH = 3
        @cu.compile(input_shapes={"x": ("b", WIDTH, "2*t")}, input_dtypes={"x": torch.float16})
        def f(x):
            return x.amax(-1)
    """, """
        func @f(%0: f16[b, 3, 2*t] "x") -> tensor {
          %1 = reduce_max %0 {axes = (2,), keepdims = false} : f16[b, 3]
          return %1
        }
    """)


def test_unpacking_with_a_star(ir):
    check(ir, """
        def f(x: Float[Tensor, "n 4"]):
            a, *rest = x.split(1, dim=1)
            (b, c), d = (rest[0], rest[1]), rest[-1]
            return a + b, c * d
    """, """
        func @f(%0: f32[n, 4] "x") -> tuple {
          %1 "a" = slice %0 {sizes = (n, 1), starts = (0, 0), steps = (1, 1)} : f32[n, 1]
          %2 "b" = slice %0 {sizes = (n, 1), starts = (0, 1), steps = (1, 1)} : f32[n, 1]
          %3 "c" = slice %0 {sizes = (n, 1), starts = (0, 2), steps = (1, 1)} : f32[n, 1]
          %4 "d" = slice %0 {sizes = (n, 1), starts = (0, 3), steps = (1, 1)} : f32[n, 1]
          %5 = add %1, %2 : f32[n, 1]
          %6 = mul %3, %4 : f32[n, 1]
          return %5, %6
        }
    """)


def test_helpers_are_followed_with_all_kinds_of_arguments(ir):
    check(ir, """
        def g(x, *more, scale=2.0, **options):
            return x * scale + options.get("shift", 0) + len(more)
        def f(x: Float[Tensor, "n"]):
            args, named = (1, 2), {"shift": 3.0}
            return g(x, *args, **named)
    """, """
        func @f(%0: f32[n] "x") -> tensor {
          %1 = constant {dtype = f32, value = 2.0} : f32[]
          %2 = mul %0, %1 : f32[n]
          %3 = constant {dtype = f32, value = 3.0} : f32[]
          %4 = add %2, %3 : f32[n]
          %5 = constant {dtype = f32, value = 2.0} : f32[]
          %6 = add %4, %5 : f32[n]
          return %6
        }
    """)


def test_closures_and_lambdas(ir):
    check(ir, """
        def f(x: Float[Tensor, "n"], power: int = 2):
            def raised(y):
                return y ** power
            double = lambda t, k=2: t * k
            return double(raised(x))
    """, """
        func @f(%0: f32[n] "x") -> tensor {
          %1 = mul %0, %0 : f32[n]
          %2 = constant {dtype = f32, value = 2.0} : f32[]
          %3 = mul %1, %2 : f32[n]
          return %3
        }
    """)


def test_branches_with_a_known_test(ir):
    check(ir, """
        def f(x: Float[Tensor, "n 8"], bias=None, mode="mean"):
            if bias is not None:
                x = x + bias
            if mode == "sum":
                return x.sum(-1)
            elif mode == "mean" and x.ndim == 2 and x.shape[1] % 4 == 0 and isinstance(x, torch.Tensor):
                return x.mean(-1) if x.dtype == torch.float32 else x
            raise ValueError(mode)
    """, """
        func @f(%0: f32[n, 8] "x") -> tensor {
          %1 = mean %0 {axes = (1,), keepdims = false} : f32[n]
          return %1
        }
    """)


def test_loops_are_unrolled(ir):
    check(ir, """
        def f(x: Float[Tensor, "n"]):
            total, i = x, 0
            while True:
                i += 1
                if i == 2:
                    continue
                if i > 3:
                    break
                total = total + i
            for a, b in zip((1, 2), [x, total]):
                total = total * a - b
            else:
                total = -total
            return total
    """, """
        func @f(%0: f32[n] "x") -> tensor {
          %1 = constant {dtype = f32, value = 1.0} : f32[]
          %2 "total" = add %0, %1 : f32[n]
          %3 = constant {dtype = f32, value = 3.0} : f32[]
          %4 "total" = add %2, %3 : f32[n]
          %5 = constant {dtype = f32, value = 1.0} : f32[]
          %6 = mul %4, %5 : f32[n]
          %7 "total" = sub %6, %0 : f32[n]
          %8 = constant {dtype = f32, value = 2.0} : f32[]
          %9 = mul %7, %8 : f32[n]
          %10 "total" = sub %9, %4 : f32[n]
          %11 "total" = neg %10 : f32[n]
          return %11
        }
    """)


def test_comprehensions_and_dicts(ir):
    check(ir, """
        def f(x: Float[Tensor, "n 6"]):
            heads = {i: x[:, 2 * i:2 * i + 2] for i in range(3) if i != 1}
            return torch.cat([h.exp() for h in heads.values()], dim=-1)
    """, """
        func @f(%0: f32[n, 6] "x") -> tensor {
          %1 "h" = slice %0 {sizes = (n, 2), starts = (0, 0), steps = (1, 1)} : f32[n, 2]
          %2 "h" = slice %0 {sizes = (n, 2), starts = (0, 4), steps = (1, 1)} : f32[n, 2]
          %3 = exp %1 : f32[n, 2]
          %4 = exp %2 : f32[n, 2]
          %5 = concat %3, %4 {axis = 1} : f32[n, 4]
          return %5
        }
    """)


def test_a_change_in_place_is_seen_under_every_name(ir):
    check(ir, """
        def f(x: Float[Tensor, "n"]):
            y = x.exp()
            kept = [y]
            z = y
            y += 1
            y.mul_(2)
            F.relu(y, inplace=True)
            return z, kept[0]
    """, """
        func @f(%0: f32[n] "x") -> tuple {
          %1 "y" = exp %0 : f32[n]
          %2 = constant {dtype = f32, value = 1.0} : f32[]
          %3 "y" = add %1, %2 : f32[n]
          %4 = constant {dtype = f32, value = 2.0} : f32[]
          %5 = mul %3, %4 : f32[n]
          %6 = relu %5 : f32[n]
          return %6, %6
        }
    """)


def test_a_float_computed_from_symbolic_sizes_is_a_double_as_in_python(ir):
    check(ir, """
        def f(x: Float[Tensor, "n d"]):
            return x / math.sqrt(x.shape[-1])
    """, """
        func @f(%0: f32[n, d] "x") -> tensor {
          %1 = constant {dtype = i64, value = d} : i64[]
          %2 = cast %1 {dtype = f64} : f64[]
          %3 = sqrt %2 : f64[]
          %4 = cast %3 {dtype = f32} : f32[]
          %5 = div %0, %4 : f32[n, d]
          return %5
        }
    """)


def test_numpy_style(ir):
    check(ir, """
        def f(x: np.ndarray, w: np.ndarray):
            y = np.maximum(x @ w, 0)
            y -= y.mean(axis=-1, keepdims=True)
            return y.astype(np.float64)
    """, """
        func @f(%0: f32[2, 4] "x", %1: f32[4, 3] "w") -> tensor {
          %2 = matmul %0, %1 : f32[2, 3]
          %3 = constant {dtype = f32, value = 0.0} : f32[]
          %4 "y" = maximum %2, %3 : f32[2, 3]
          %5 = mean %4 {axes = (1,), keepdims = true} : f32[2, 1]
          %6 "y" = sub %4, %5 : f32[2, 3]
          %7 = cast %6 {dtype = f64} : f64[2, 3]
          return %7
        }
    """, x="f32[2, 4]", w="f32[4, 3]")


def test_contexts_checks_and_prints_leave_no_op(ir):
    check(ir, """
        @torch.inference_mode()
        def f(x: Float[Tensor, "n"]):
            with torch.no_grad(), torch.inference_mode():
                try:
                    y = x + 1
                finally:
                    print(f"{x.shape} {y.mean():.3f}")
            if x.shape[0] < 1:
                raise ValueError("empty")
            assert (n := x.shape[0]) > 0
            return y
    """, """
        func @f(%0: f32[n] "x") -> tensor {
          %1 = constant {dtype = f32, value = 1.0} : f32[]
          %2 "y" = add %0, %1 : f32[n]
          %3 = mean %2 {axes = (0,), keepdims = false} : f32[]
          return %2
        }
    """)


def test_a_long_sum_is_walked_without_depth(ir):
    text = ir("def f(x: Float[Tensor, '3']):\n    return x" + " + x" * 1000 + "\n")
    assert text.count(" add ") == 1000


def test_every_op_has_the_place_of_its_own_expression_and_the_calls_that_led_there():
    from snippets import source

    from cuvil.frontends.python import capture
    code = source("""
        def square(y):
            return y * y
        def twice(y):
            return square(y) + 1
        def f(x: Float[Tensor, "n"]):
            return twice(x)
    """)
    function = capture(code, "f")
    multiply = next(op for op in function.ops if op.name == "mul")
    (origin,) = multiply.origins
    assert code.slice(origin.span) == "y * y" and origin.node == "BinaryOperation"
    assert [code.slice(caller) for caller in origin.callers] == ["square(y)", "twice(x)"]
    assert code.slice(function.origin.span) == "f"


@pytest.mark.parametrize("file", ["attention", "mlp", "convnet", "decoder_block", "numpy_pipeline"])
def test_the_examples_are_captured_and_remember_their_source(file):
    from pathlib import Path

    from cuvil.frontends.python import Workspace
    from cuvil.frontends.python.fidelity import check as fidelity
    from cuvil.source import Source
    root = Path(__file__).parents[2]
    path = root / "examples" / f"{file}.py"
    report = fidelity(Source(str(path), path.read_text("utf-8")), Workspace(root))
    assert report.lost == () and report.functions and report.ops >= 10
