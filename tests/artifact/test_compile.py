"""cu.compile: the same values as eager, whatever library calls it; what cannot be right is refused with a reason."""
import threading
import time
import tracemalloc

import numpy as np
import pytest

import cuvil as cu

torch = pytest.importorskip("torch")

SOFTMAX = """
    @cu.compile
    def f(x):
        return torch.softmax(x * 2.0, dim=-1)
"""
NUMPY = """
    @cu.compile
    def f(x, y):
        return np.sqrt(np.abs(x)) + y
"""


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# torch in, torch out; NumPy in, NumPy out; a library for each shape.

def test_torch_in_torch_out(module):
    f = module(SOFTMAX).f
    x = torch.from_numpy(random(5, 33))
    y = f(x)
    assert isinstance(y, torch.Tensor) and y.dtype == torch.float32
    torch.testing.assert_close(y, torch.softmax(x * 2.0, -1), rtol=1e-6, atol=1e-7)


def test_numpy_in_numpy_out(module):
    f = module(NUMPY).f
    x, y = random(7, 9), random(9, seed=1)
    got = f(x, y)
    assert isinstance(got, np.ndarray)
    np.testing.assert_allclose(got, np.sqrt(np.abs(x)) + y, rtol=1e-6)


def test_each_shape_and_type_gets_its_own_library(module):
    f = module(NUMPY).f
    for shape, dtype in (((3,), np.float32), ((2, 5), np.float32), ((2, 5), np.float64)):
        x = np.ones(shape, dtype)
        got = f(x, x)
        assert got.dtype == dtype and got.shape == shape and (got == 2).all()
    assert repr(f).endswith("3 compiled>")


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float16", "float32"])
def test_plain_operators_follow_the_library_that_calls(module, dtype):
    """The same code and the same element types: halves of torch integers are float32, of NumPy's float64 (or float16 for 8 bits)."""
    f = module("""
        @cu.compile
        def f(x):
            return x / 2
    """).f
    for x in (np.arange(5, dtype=dtype), torch.arange(5, dtype=getattr(torch, dtype)), np.arange(5, dtype=dtype)):
        for _ in range(2):                             # the second call finds a library that is loaded
            got, expected = f(x), f.__wrapped__(x)
            assert type(got) is type(expected) and got.dtype == expected.dtype
            assert (got == expected).all()


def test_several_results_come_as_a_tuple(module):
    f = module("""
        @cu.compile
        def f(x):
            return x + 1, x.sum()
    """).f
    x = random(4)
    a, b = f(x)
    np.testing.assert_array_equal(a, x + 1)
    assert b.shape == () and b == pytest.approx(x.sum(), rel=1e-6)


def test_keywords_and_defaults_are_those_of_the_function(module):
    f = module("""
        @cu.compile
        def f(x, weight, eps=1e-6):
            return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * weight
    """).f
    x, w = torch.from_numpy(random(3, 8)), torch.ones(8)
    expected = f.__wrapped__(x, w)
    for got in (f(x, weight=w), f(weight=w, x=x), f(x, w, 1e-6)):
        torch.testing.assert_close(got, expected, rtol=1e-6, atol=1e-7)
    assert repr(f).endswith("1 compiled>")


def test_python_values_are_compiled_in(module):
    f = module("""
        @cu.compile
        def f(x, scale=1.0, flip=False, y=None):
            x = -x if flip else x
            return x * scale if y is None else x * scale + y
    """).f
    x, y = torch.from_numpy(random(4)), torch.ones(4)
    for arguments, keywords in (((x,), {}), ((x, 0.5), {}), ((x, 2.0, True), {}), ((x,), {"y": y}), ((x, 1.0, False, y), {}), ((x, 1.0), {}), ((x,), {})):
        assert torch.equal(f(*arguments, **keywords), f.__wrapped__(*arguments, **keywords)), (arguments, keywords)
    with pytest.raises(cu.CuvilError, match="argument scale is a list"):
        f(x, [1.0])


def test_options_come_with_the_decorator_or_the_call(module):
    made = module("""
        def f(x):
            return torch.relu(x)
        @cu.compile(opt_level=0, input_shapes={"x": ("b", 4)})
        def g(x):
            return torch.relu(x) + 1
    """)
    x = torch.from_numpy(random(2, 4))
    assert torch.equal(cu.compile(made.f)(x), torch.relu(x))
    assert torch.equal(made.g(x), torch.relu(x) + 1)
    assert made.g.manifest["opt_level"] == 0
    with pytest.raises(cu.CuvilError, match="argument x of g is f32"):
        made.g(torch.zeros(2, 5))


# Odd memory: read-only, strided, transposed, misaligned, empty, 0-d.

@pytest.mark.parametrize("odd", [
    lambda a: a[::2], lambda a: a.T.copy().T, lambda a: np.broadcast_to(a[:1], a.shape), lambda a: a[:0], lambda a: a[:, ::-1],
    lambda a: np.frombuffer(b"\0" + a.tobytes(), np.uint8)[1:].view(np.float32).reshape(a.shape),
])
def test_any_numpy_array_is_taken(module, odd):
    f = module(NUMPY).f
    x = odd(random(6, 4))
    np.testing.assert_allclose(f(x, np.float32(1)), np.sqrt(np.abs(x)) + np.float32(1), rtol=1e-6)


def test_any_cpu_tensor_is_taken(module):
    f = module(SOFTMAX).f
    for x in (torch.from_numpy(random(6, 8)).t(), torch.from_numpy(random(4, 8))[:, ::2], torch.zeros(0, 3)):
        torch.testing.assert_close(f(x), torch.softmax(x * 2.0, -1), rtol=1e-6, atol=1e-7)


def test_a_scalar_result_is_a_scalar(module):
    f = module("""
        @cu.compile
        def f(x):
            return np.sum(x)
    """).f
    assert isinstance(f(random(5)), np.float32)


# Refusals: located, with a reason; or eager, once warned.

def test_a_refused_function_says_where_and_why(module):
    made = module("""
        @cu.compile
        def f(x):
            return torch.linalg.svd(x)[0]
    """)
    with pytest.raises(cu.CuvilError) as caught:
        made.f(torch.zeros(3, 3))
    assert caught.value.span.line == 10 and made.__file__ in str(caught.value)


def test_fallback_eager_warns_once_and_runs(module):
    f = module("""
        @cu.compile(fallback="eager")
        def f(x):
            return torch.linalg.inv(x)
    """).f
    x = torch.eye(3) * 2
    with pytest.warns(RuntimeWarning, match="f runs uncompiled"):
        assert torch.equal(f(x), torch.linalg.inv(x))
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(x)


@pytest.mark.parametrize("options, says", [
    ({"enable_fp16": True}, "enable_fp16 cannot be honoured"), ({"opt_level": 3}, "opt_level is 3"), ({"fallback": "maybe"}, "fallback is 'maybe'"),
    ({"frontend": "onnx"}, "frontend is 'onnx'")])
def test_options_that_cannot_be_honoured(options, says):
    with pytest.raises(cu.CuvilError, match=says):
        cu.compile(test_options_that_cannot_be_honoured, **options)


def test_what_is_no_function_of_a_file():
    with pytest.raises(cu.CuvilError, match="defined inside a function"):
        cu.compile(lambda x: x)(np.zeros(3))
    with pytest.raises(cu.CuvilError, match="only Python source is read"):
        cu.compile("model.onnx")
    with pytest.raises(cu.CuvilError, match="cannot be compiled"):
        cu.compile(3)


def test_a_file_that_changed_since_its_import(module):
    made = module(SOFTMAX)
    with open(made.__file__, "r+") as file:
        text = file.read().replace("2.0", "3.0 + 0.0 * 1")
        file.seek(0)
        file.write(text.replace("x *", "x -"))
        file.truncate()
    with pytest.raises(cu.CuvilError, match="has changed since f was imported"):
        made.f(torch.zeros(2, 2))


def test_tensors_that_mean_more_than_their_memory(module):
    f = module(SOFTMAX).f
    f(np.ones((2, 2), np.float32))

    class Tagged(torch.Tensor):
        pass

    for odd in (np.ma.masked_array(np.ones((2, 2), np.float32), mask=True), torch.ones(2, 2).as_subclass(Tagged), torch.ones(2, 2, device="meta")):
        with pytest.raises(cu.CuvilError, match="argument x is"):
            f(odd)
    assert torch.equal(f(torch.nn.Parameter(torch.ones(2, 2), requires_grad=False)), torch.full((2, 2), 0.5))


def test_settings_that_change_what_code_means(module):
    f = module(SOFTMAX).f
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(cu.CuvilError, match="autocast is on"):
        f(torch.zeros(2, 2))
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(cu.CuvilError, match="default dtype is torch.float64"):
            f(torch.zeros(2, 2))
    finally:
        torch.set_default_dtype(torch.float32)


def test_another_decorator_in_between(module):
    made = module("""
        @cu.compile
        @torch.no_grad()
        def f(x):
            return torch.relu(x)
    """)
    with pytest.raises(cu.CuvilError, match="wrapped by another decorator"):
        made.f(torch.zeros(2))


def test_a_constant_that_was_changed_after_the_import(module):
    made = module("""
        SCALE = 2.0
        @cu.compile
        def f(x):
            return x * SCALE
    """)
    x = torch.ones(3)
    assert torch.equal(made.f(x), x * 2)
    made.SCALE = 3.0
    with pytest.raises(cu.CuvilError, match="SCALE is 3.0, and 2.0 in the source of f"):
        made.f(torch.ones(4))


def test_gradients_are_not_dropped_in_silence(module):
    f = module(SOFTMAX).f
    x = torch.zeros(2, 2, requires_grad=True)
    with pytest.raises(cu.CuvilError, match="compute no gradients"):
        f(x)
    with torch.inference_mode():
        f(x)


def test_wrong_arguments(module):
    f = module(SOFTMAX).f
    for arguments in ((), (torch.zeros(2, 2),) * 2, ([1, 2],), (None,)):
        with pytest.raises(cu.CuvilError):
            f(*arguments)


def test_an_index_out_of_range_is_an_error_not_a_crash(module):
    f = module("""
        @cu.compile
        def f(table, ids):
            return table[ids]
    """).f
    table = torch.from_numpy(random(4, 3))
    ids = torch.tensor([0, 3, 1])
    assert torch.equal(f(table, ids), table[ids])
    with pytest.raises(cu.CuvilError, match="outside|range"):
        f(table, torch.tensor([0, 4, 1]))


# Calls copy nothing and hold no lock.

def test_contiguous_inputs_are_not_copied(module):
    f = module("""
        @cu.compile
        def f(x):
            return np.sum(x, axis=1)
    """).f
    x = random(256, 4096)
    f(x)
    tracemalloc.start()
    f(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000 < x.nbytes


def test_the_kernel_reads_the_caller_s_memory(module):
    """A view over the same bytes, changed between two calls, is seen: nothing was kept either."""
    f = module(NUMPY).f
    x = np.zeros((4, 4), np.float32)
    assert (f(x, x) == 0).all()
    x += 1
    assert (f(x, x) == 2).all()


def test_another_thread_runs_python_while_a_kernel_runs(module):
    f = module("""
        @cu.compile
        def f(x):
            return np.exp(np.sin(np.tanh(np.exp(np.sin(np.tanh(x))))))
    """).f
    x = random(2048, 2048)
    f(x)
    inside, ticks, done = [], [], threading.Event()

    def work():
        for _ in range(5):
            start = time.perf_counter()
            f(x)
            inside.append((start, time.perf_counter()))
        done.set()

    worker = threading.Thread(target=work)
    worker.start()
    while not done.is_set():
        ticks.append(time.perf_counter())
        time.sleep(0)
    worker.join()
    during = sum(start + 0.1 * (end - start) < tick < end - 0.1 * (end - start) for start, end in inside for tick in ticks)
    assert during > 50              # with the lock held for the call there would be none


def test_two_threads_compile_and_call_at_once(module):
    f = module(SOFTMAX).f
    x = torch.from_numpy(random(16, 16))
    expected = torch.softmax(x * 2.0, -1)
    wrong = []

    def work():
        for _ in range(50):
            if not torch.allclose(f(x), expected, atol=1e-6):
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
