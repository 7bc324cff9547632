"""Where tensors live: by what is said at their making, by moves, and by what they are computed from."""


def devices(found: dict) -> dict[str, str]:
    return {name: "" if value.device is None else f"{value.device.kind}{'*' if value.device.default else ''}" or f"like {value.device.like}"
            for name, value in found.items() if hasattr(value, "device") and hasattr(value, "op")}


def test_devices_of_new_tensors_and_of_what_is_computed_from_them(bound):
    assert devices(bound("""
        def f(x: Float[Tensor, "n 4"], device):
            a = torch.zeros(4)
            b = torch.zeros(3, device="cuda:1")
            c = torch.zeros(3, device=device)
            d = torch.zeros(3, device=x.device)
            e = torch.zeros_like(x)
            g = x + a
            h = b * 2.0
            i = torch.zeros((), device="cpu") + b
            j = x.new_zeros(3)
            k = torch.tensor([1, 2], device=torch.device("mps"))
    """)) == {"a": "cpu*", "b": "cuda", "c": "like device", "d": "like x", "e": "like x", "g": "like x", "h": "cuda", "i": "cuda", "j": "like x", "k": "mps"}


def test_moves(bound):
    assert devices(bound("""
        def f(x: Float[Tensor, "n 4"], device, dtype):
            a = x.to("cuda")
            b = a.cpu()
            c = x.to(device)
            d = x.to(a)
            e = x.to(torch.float16)
            g = a.to(device=DEVICE, dtype=torch.float16)
            h = x.cuda(non_blocking=True)
            i = x.to(dtype)
            j = a.numpy()
    """)) == {"a": "cuda", "b": "cpu", "c": "like device", "d": "cuda", "e": "like x", "g": "like DEVICE", "h": "cuda", "i": "", "j": "cpu"}


def test_a_default_device_makes_the_host_unknown(bound):
    assert devices(bound("""
        torch.set_default_device("cuda")
        def f():
            a = torch.zeros(3)
    """)) == {"a": ""}
    assert devices(bound("""
        def f():
            with torch.device("cuda"):
                a = torch.zeros(3)
            b = torch.zeros(3)
    """)) == {"a": "cuda", "b": "cpu*"}


NET = """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(4, 4)
                self.register_buffer("scale", torch.ones(4))
                self.table = torch.arange(4)
            def forward(self, x: Float[Tensor, "n 4"]):
                y = self.lin(x)
                z = self.scale * 2
                t = self.table + 1
                return y
        def f(x: Float[Tensor, "n 4"]):
            net = Net().to("cuda").eval()
            return net(x.cuda())
"""


def test_weights_live_with_their_module_and_plain_attributes_on_the_host(bound):
    assert devices(bound(NET, "Net.forward")) == {"y": "like x", "z": "like self", "t": "cpu*"}
    assert devices(bound(NET)) == {"y": "cuda", "z": "cuda", "t": "cpu*"}


def test_a_module_that_is_cast_has_other_weights(bound):
    found = bound(NET + """
        def g(x: Float16[Tensor, "n 4"]):
            net = Net().half()
            w = net.lin.weight
            return net(x)
    """, "g")
    assert str(found["w"].type) == "f16[4, 4]"


def test_an_asynchronous_copy_to_the_host_is_marked(bound):
    found = bound("""
        def f(x: Float[Tensor, "n 4"]):
            a = x.cuda()
            b = a.to("cpu", non_blocking=True)
            c = a.to("cpu")
            d = torch.zeros(3, pin_memory=True)
            e = torch.zeros(3).to("cpu", non_blocking=True)
    """)
    assert [set(found[name].marks) for name in "bcde"] == [{"pending"}, set(), {"pinned"}, set()]


def test_a_move_may_copy_so_it_is_not_the_same_memory_nor_free_to_write(bound, refused):
    found = bound("""
        def f(x: Float[Tensor, "n 4"], device):
            a = x.to(device)
            b = x.to(x.device)
    """)
    assert found["a"].storage != found["b"].storage
    error, text = refused("def f(x):\n    y = x.cpu()\n    y += 1\n    return y", x="f32[3]")
    assert text == "y += 1" and "may be the same memory" in error.what


def test_what_is_computed_from_something_unknown_may_be_anywhere(bound):
    assert devices(bound("""
        def f(query, x: Float[Tensor, "n 4"]):
            a = torch.zeros(4) * query
            b = x * query
            c = torch.einsum("bd,btd->bt", query, query)
    """)) == {"a": "", "b": "like x", "c": ""}
