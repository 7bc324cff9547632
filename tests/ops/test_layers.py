"""Every layer of torch.nn that is captured, with its real parameters, against the real layer in inference mode."""
from __future__ import annotations

import numpy as np
import pytest
import torch

from cuvil.ir.interpret import run
from cuvil.ir.types import DType, TensorType
from cuvil.ir.verify import verify
from cuvil.ops.builder import Builder
from cuvil.ops.layers import LAYERS

CASES = [
    ("Linear", (3, 4), {}, (2, 3)), ("Linear", (3, 4), {"bias": False}, (5, 2, 3)),
    ("Conv2d", (4, 6, 3), {"padding": 1, "groups": 2, "stride": 2}, (2, 4, 7, 5)), ("Conv2d", (2, 3, (1, 2)), {"padding": "same", "bias": False}, (1, 2, 4, 4)),
    ("Conv1d", (2, 3, 3), {"dilation": 2}, (2, 2, 9)),
    ("LayerNorm", (5,), {}, (2, 5)), ("LayerNorm", ((2, 5),), {"elementwise_affine": False}, (3, 2, 5)), ("LayerNorm", (5,), {"bias": False}, (2, 5)),
    ("RMSNorm", (5,), {}, (2, 5)), ("RMSNorm", (5,), {"eps": 1e-6}, (2, 5)), ("GroupNorm", (2, 4), {}, (2, 4, 3, 3)),
    ("BatchNorm1d", (3,), {}, (4, 3)), ("BatchNorm2d", (3,), {"eps": 1e-3}, (2, 3, 4, 4)), ("BatchNorm2d", (3,), {"affine": False}, (2, 3, 4, 4)),
    ("Dropout", (0.3,), {}, (2, 3)), ("Identity", (), {}, (2,)), ("ReLU", (), {}, (4,)), ("ReLU6", (), {}, (4,)), ("GELU", (), {"approximate": "tanh"}, (4,)),
    ("SiLU", (), {"inplace": True}, (4,)), ("Sigmoid", (), {}, (4,)), ("Tanh", (), {}, (4,)), ("ELU", (0.5,), {}, (4,)), ("LeakyReLU", (), {}, (4,)),
    ("Softplus", (), {}, (4,)), ("Mish", (), {}, (4,)), ("Hardswish", (), {}, (4,)), ("Hardsigmoid", (), {}, (4,)), ("LogSigmoid", (), {}, (4,)),
    ("Softmax", (), {"dim": 1}, (2, 3)), ("LogSoftmax", (-1,), {}, (2, 3)), ("Hardtanh", (), {}, (4,)), ("GLU", (), {}, (2, 6)),
    ("MaxPool2d", (2,), {}, (1, 2, 6, 6)), ("MaxPool2d", (3, 2), {"padding": 1, "ceil_mode": True}, (1, 2, 6, 7)), ("MaxPool1d", (2,), {}, (1, 2, 6)),
    ("AvgPool2d", (2,), {"padding": 1}, (1, 2, 6, 6)), ("AvgPool1d", (2,), {}, (1, 2, 6)), ("AdaptiveAvgPool2d", ((1, 1),), {}, (2, 3, 4, 5)),
    ("AdaptiveAvgPool2d", (2,), {}, (2, 3, 4, 6)), ("Flatten", (), {}, (2, 3, 4)), ("Unflatten", (1, (2, 3)), {}, (2, 6)),
    ("ConvTranspose2d", (4, 2, 3), {"stride": 2, "output_padding": 1, "groups": 2}, (1, 4, 3, 5)), ("ConvTranspose1d", (2, 3, 2), {"padding": 1}, (2, 2, 5)),
    ("PReLU", (3,), {}, (2, 3, 4)), ("GRUCell", (3, 4), {}, (2, 3)), ("LSTMCell", (3, 4), {"bias": False}, (2, 3)),
    ("Upsample", (), {"scale_factor": 2}, (1, 2, 3, 3)), ("ZeroPad2d", ((1, 0, 2, 1),), {}, (1, 1, 3, 3)),
    ("BatchNorm3d", (3,), {}, (2, 3, 2, 4, 4)), ("SELU", (), {}, (4,)), ("Softsign", (), {}, (4,)), ("Tanhshrink", (), {}, (4,)),
    ("Threshold", (0.1, -2.0), {}, (4,)), ("Softmin", (1,), {}, (2, 3)), ("Softmax2d", (), {}, (2, 3, 2, 2)), ("PixelShuffle", (2,), {}, (1, 8, 2, 3)),
    ("UpsamplingNearest2d", (), {"scale_factor": 2}, (1, 2, 3, 3)), ("UpsamplingBilinear2d", ((5, 4),), {}, (1, 2, 3, 3)),
    ("ZeroPad1d", (2,), {}, (1, 2, 3)), ("ZeroPad3d", (1,), {}, (1, 2, 3, 2, 2)), ("ConstantPad1d", ((1, 2), 0.5), {}, (1, 2, 3)),
    ("ConstantPad2d", (1, 2.0), {}, (1, 2, 3, 3)), ("ConstantPad3d", (1, -1.0), {}, (1, 2, 3, 2, 2)),
]

LOSSES = ["KLDivLoss", "MSELoss", "L1Loss", "SmoothL1Loss", "BCEWithLogitsLoss", "NLLLoss", "CrossEntropyLoss"]


@pytest.mark.parametrize("name, args, keywords, shape", CASES, ids=[f"{n}{a}{k}" for n, a, k, _ in CASES])
def test_layer(name, args, keywords, shape):
    torch.manual_seed(0)
    real = getattr(torch.nn, name)(*args, **keywords).eval()
    randomise(real)
    x = torch.randn(shape)
    expected = real(x.clone())
    check(f"torch.nn.{name}", args, keywords, real, [x], expected[0] if isinstance(expected, tuple) else expected)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("masks", ["none", "padding", "causal", "both", "additive"])
def test_multihead_attention(masks, batch_first):
    torch.manual_seed(0)
    real = torch.nn.MultiheadAttention(8, 2, batch_first=batch_first).eval()
    randomise(real)
    x = torch.randn((2, 4, 8) if batch_first else (4, 2, 8))
    causal = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
    given = {"padding": ("padding", "both"), "causal": ("causal", "both")}
    padding = torch.tensor([[False] * 4, [False, False, True, True]]) if masks in given["padding"] else None
    mask = causal if masks in given["causal"] else torch.randn(4, 4) if masks == "additive" else None
    more = {"key_padding_mask": padding, "attn_mask": mask}
    expected = real(x, x, x, need_weights=False, **more)[0]
    check("torch.nn.MultiheadAttention", (8, 2), {"batch_first": batch_first}, real, [x, x, x], expected, {"need_weights": False}, more)


def test_every_layer_is_tested():
    assert {f"torch.nn.{n}" for n in (*LOSSES, *(c[0] for c in CASES))} | {"torch.nn.MultiheadAttention", "torch.nn.Embedding", "torch.nn.CosineSimilarity"} >= {n for n, each in LAYERS.items() if not each.typed} - {
        *(f"torch.nn.{n}" for n in ("Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "SyncBatchNorm"))}


def test_embedding():
    real = torch.nn.Embedding(5, 3, padding_idx=1)
    x = torch.tensor([[0, 4], [1, 2]])
    check("torch.nn.Embedding", (5, 3), {"padding_idx": 1}, real, [x], real(x))


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    torch.manual_seed(0)
    target = torch.tensor([1, 0, 3]) if name in ("NLLLoss", "CrossEntropyLoss") else torch.rand(3, 4)
    real, x = getattr(torch.nn, name)(), torch.randn(3, 4)
    check(f"torch.nn.{name}", (), {}, real, [x, target], real(x, target))


def randomise(module):
    with torch.no_grad():
        for value in (*module.parameters(), *module.buffers()):
            if value.is_floating_point():
                value.copy_(torch.rand(value.shape) + 0.1)


def check(name, args, keywords, real, inputs, expected, options=None, tensors=None):
    layer = LAYERS[name]
    ctor = layer.arguments(args, keywords)
    state = {k: v for k, v in real.state_dict().items() if v.is_floating_point()}
    types = layer.parameters(**ctor)
    assert {k: v.shape for k, v in types.items()} == {k: tuple(v.shape) for k, v in state.items()}
    b = Builder()
    everything = [*inputs, *(t for t in (tensors or {}).values() if t is not None)]
    values = [b.input(f"x{i}", i, TensorType(tuple(x.shape), DType.parse(str(x.dtype)[6:]))) for i, x in enumerate(everything)]
    parameters = {k: b.parameter(k, t) for k, t in types.items()}
    rest = iter(values[len(inputs):])
    named = {k: None if t is None else next(rest) for k, t in (tensors or {}).items()}
    result = layer.forward(b, parameters, ctor, *values[:len(inputs)], **(options or {}), **named)
    result = result[0] if isinstance(result, tuple) else result
    function = verify(b.function("layer", [result]))
    [value] = run(function, [x.numpy() for x in everything], {k: v.numpy() for k, v in state.items()})
    assert function.by_id[result.id].type.shape == tuple(expected.shape)
    np.testing.assert_allclose(value, expected.detach().numpy(), rtol=1e-5, atol=2e-6)


def test_cosine_similarity():
    torch.manual_seed(0)
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    check("torch.nn.CosineSimilarity", (), {"dim": -1}, torch.nn.CosineSimilarity(dim=-1), [x, y], torch.nn.CosineSimilarity(dim=-1)(x, y))


@pytest.mark.parametrize("name, args, keywords", [
    ("LSTM", (3, 4, 2), {"bidirectional": True, "proj_size": 2}), ("GRU", (3, 4), {"bias": False}), ("RNN", (3, 4), {}), ("RNNCell", (3, 4), {}),
    ("TransformerEncoderLayer", (8, 2, 16), {}), ("TransformerDecoderLayer", (8, 2, 16), {"bias": False}), ("Transformer", (8, 2, 1, 2, 16), {}),
    ("Conv3d", (4, 6, 3), {"groups": 2}), ("ConvTranspose3d", (4, 6, (1, 2, 3)), {"groups": 2, "bias": False}), ("Bilinear", (2, 3, 4), {}),
    ("InstanceNorm2d", (3,), {"affine": True, "track_running_stats": True}), ("EmbeddingBag", (5, 3), {}),
    ("MultiheadAttention", (8, 2), {"kdim": 4, "vdim": 6, "add_bias_kv": True})])
def test_parameters_of_layers_that_are_only_typed(name, args, keywords):
    state = getattr(torch.nn, name)(*args, **keywords).state_dict()
    layer = LAYERS[f"torch.nn.{name}"]
    types = layer.parameters(**layer.arguments(args, keywords))
    assert {k: t.shape for k, t in types.items()} == {k: tuple(v.shape) for k, v in state.items() if v.is_floating_point()}
