"""Masks: where they are born, what the operations on them do to what they say, and silence about the rest."""


def masks(found: dict) -> dict[str, tuple | None]:
    return {name: None if value.mask is None else (value.mask.keep, value.mask.form, value.mask.origin) for name, value in found.items()
            if hasattr(value, "mask") and hasattr(value, "op")}


def test_births(bound):
    assert masks(bound("""
        def f(ids: Int[Tensor, "b t"], lengths: Int[Tensor, "b"], pad_id, other):
            a = ids != pad_id
            b = ids == self_pad
            c = ids.ne(config.pad_token_id)
            d = torch.arange(ids.size(1)) < lengths[:, None]
            e = lengths.unsqueeze(1) <= torch.arange(ids.size(1))
            g = torch.tril(torch.ones(4, 4, dtype=torch.bool))
            h = torch.triu(torch.ones(4, 4), diagonal=1)
            i = torch.triu(torch.full((4, 4), float("-inf")), diagonal=1)
            j = torch.arange(4)[:, None] >= torch.arange(4)
            k = ids != 0
            l = ids != other
            m = lengths != 3
            n = torch.triu(torch.ones(4, 4))
    """.replace("self_pad", "PAD").replace("def f(", "PAD = 0\n        config = load()\n        def f("))) == {
        "a": (True, "bool", "pad"), "b": (False, "bool", "pad"), "c": (True, "bool", "pad"), "d": (True, "bool", "length"), "e": (False, "bool", "length"),
        "g": (True, "bool", "causal"), "h": (False, "01", "causal"), "i": (True, "additive", "causal"), "j": (True, "bool", "causal"),
        "k": (True, "bool", "pad"), "l": None, "m": None, "n": (None, "01", "causal")}


def test_what_keeps_and_what_turns_a_mask(bound):
    found = masks(bound("""
        def f(ids: Int[Tensor, "b t"], pad_id: int = 0):
            m = ids != pad_id
            a = ~m
            b = m.logical_not()
            c = m.long()
            d = c == 0
            e = c != 0
            g = 1 - c
            h = c.to(torch.bool)
            i = m[:, None, None, :].expand(-1, 4, -1, -1)
            j = m.unsqueeze(1).float()
            k = c > 0
            l = c < 1
            n = ~c
            o = m.sum(1)
            p = m == False
    """))
    kept, turned = (True, "bool", "pad"), (False, "bool", "pad")
    assert found == {"m": kept, "a": turned, "b": turned, "c": (True, "01", "pad"), "d": turned, "e": kept, "g": (False, "01", "pad"), "h": kept, "i": kept,
                     "j": (True, "01", "pad"), "k": kept, "l": turned, "n": None, "o": None, "p": turned}


def test_additive_masks_say_whether_they_leave_out_the_right_side(bound):
    found = masks(bound("""
        def f(ids: Int[Tensor, "b t"], scores: Float[Tensor, "b t t"], pad_id: int = 0):
            m = ids != pad_id
            a = (1.0 - m.float()) * -1e9
            b = m.float() * -1e9
            c = (1 - m.float()) * torch.finfo(torch.float32).min
            d = torch.zeros(4, 4).masked_fill(~m[0, :4], float("-inf"))
            e = torch.where(m, 0.0, float("-inf"))
            g = torch.where(m, float("-inf"), 0.0)
            h = scores.masked_fill(~m[:, None], float("-inf"))
            i = a[:, None] + c[:, None]
            j = a == 0
    """))
    right, wrong = (True, "additive", "pad"), (False, "additive", "pad")
    assert {name: found[name] for name in "abcdeghij"} == {
        "a": right, "b": wrong, "c": right, "d": right, "e": right, "g": wrong, "h": None, "i": right, "j": (True, "bool", "pad")}


def test_masks_that_meet(bound):
    found = masks(bound("""
        from jaxtyping import Bool
        def f(ids: Int[Tensor, "b t"], other: Bool[Tensor, "b t"], pad_id: int = 0):
            m = ids != pad_id
            causal = torch.ones(4, 4, dtype=torch.bool).tril()
            a = m[:, None, :4] & causal
            b = ~m[:, None, :4] | ~causal
            c = m | other
            d = m[:, None, :4] & ~causal
            e = torch.cat([m.long(), torch.ones(2, 1, dtype=torch.long)], dim=1)
    """))
    assert {name: found[name] for name in "abcde"} == {
        "a": (True, "bool", "pad"), "b": (False, "bool", "pad"), "c": None, "d": None, "e": (True, "01", "pad")}


def test_masks_go_through_calls_buffers_and_tokenizers_and_a_name_alone_says_nothing(bound):
    code = """
        from transformers import AutoTokenizer
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("causal", torch.tril(torch.ones(4, 4)))
            def forward(self, x: Float[Tensor, "b 4"], attention_mask: Int[Tensor, "b 4"]):
                a = attention_mask.bool()
                b = self.causal == 0
                return a
        def f(texts, x: Float[Tensor, "b 4"]):
            tok = AutoTokenizer.from_pretrained("x", padding_side="left")
            batch = tok(texts, padding=True, return_tensors="pt").to("cuda")
            ids = batch["input_ids"]
            return Net()(x, batch.attention_mask)
    """
    assert masks(bound(code, "Net.forward")) == {"a": None, "b": (False, "bool", "causal")}
    found = bound(code)
    assert masks(found)["a"] == (True, "bool", "tokenizer")
    assert found["ids"].device.kind == "cuda" and set(found["ids"].marks) == {"padded-left"}
