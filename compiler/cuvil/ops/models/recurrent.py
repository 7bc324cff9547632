"""Recurrent layers and transformers of torch.nn: which parameters they have and the types that their forward gives."""
from __future__ import annotations

from typing import Any

from ...ir.dims import Dim, proved_different
from ...ir.function import Op
from ...ir.types import DType, TensorType
from ..builder import Builder
from ..definition import TypeRuleError, unsupported
from ..layers import MadeLayer, layer
from ..rules import shape_of
from .forms import need_rank


def _parameters(gates: int):
    def parameters(input_size, hidden_size, num_layers=1, bias=True, bidirectional=False, proj_size=0, dtype=None, **more) -> dict[str, TensorType]:
        found: dict[str, TensorType] = {}
        out = proj_size or hidden_size
        for n in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                width = input_size if n == 0 else out * (2 if bidirectional else 1)
                shapes = {"weight_ih": (gates * hidden_size, width), "weight_hh": (gates * hidden_size, out)}
                shapes |= {"bias_ih": (gates * hidden_size,), "bias_hh": (gates * hidden_size,)} if bias else {}
                shapes |= {"weight_hr": (proj_size, hidden_size)} if proj_size else {}
                found |= {f"{name}_l{n}{suffix}": TensorType(shape, dtype or DType.F32) for name, shape in shapes.items()}
        return found
    return parameters


def _last(what: str, x: Op, size: Dim, said: str) -> None:
    if x.type.shape and proved_different(x.type.shape[-1], size):
        raise TypeRuleError(f"{what} of {x.type}: the last axis has {x.type.shape[-1]} features, {said} is {size}", f"a last axis of {size}")


def _same_dtype(what: str, x: Op, weights: dict[str, Op]) -> DType | None:
    own = next((w.type.dtype for w in weights.values()), None)
    if None not in (own, x.type.dtype) and own != x.type.dtype:
        raise TypeRuleError(f"{what} of {x.type} with weights of {own.numpy}", "an input of the weights' element type", "dtype-mismatch")
    return x.type.dtype or own


def _forward(name: str):
    def forward(b: Builder, p, ctor, input, hx=None):
        """(output, hidden) or for an LSTM (output, (hidden, cell)). Without batch_first time comes first; hidden never changes places."""
        need_rank(input, name, 2, 3)
        _last(name, input, ctor["input_size"], "input_size")
        dtype = _same_dtype(name, input, p)
        own, ways, hidden = shape_of(input), 2 if ctor["bidirectional"] else 1, ctor["hidden_size"]
        out = ctor.get("proj_size") or hidden
        batch = own[:0] if len(own) == 2 else (own[0 if ctor["batch_first"] else 1],)
        state = TensorType((ways * ctor["num_layers"], *batch, out), dtype)
        cell = TensorType((*state.shape[:-1], hidden), dtype)
        given = hx if isinstance(hx, (tuple, list)) else (hx,)
        for one, wanted in zip(given, (state, cell)):
            if isinstance(one, Op) and one.type.shape is not None and (
                    len(one.type.shape) != len(wanted.shape) or any(map(proved_different, one.type.shape, wanted.shape))):
                raise TypeRuleError(f"{name} of {input.type} with a hidden state {one.type}", f"a hidden state {wanted}")
        output = TensorType((*own[:-1], ways * out), dtype)
        raise unsupported(name, "a loop over its cell", (output, (state, cell) if name == "LSTM" else state))
    return forward


layer("RNN", lambda input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0, bidirectional=False,
      device=None, dtype=None: None, _forward("RNN"), _parameters(1), typed=True)
layer("GRU", lambda input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
      device=None, dtype=None: None, _forward("GRU"), _parameters(3), typed=True)
layer("LSTM", lambda input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, proj_size=0,
      device=None, dtype=None: None, _forward("LSTM"), _parameters(4), typed=True)


def _cell_parameters(**c):
    h, kind = c["hidden_size"], c["dtype"] or DType.F32
    shapes = {"weight_ih": (h, c["input_size"]), "weight_hh": (h, h)} | ({"bias_ih": (h,), "bias_hh": (h,)} if c["bias"] else {})
    return {name: TensorType(shape, kind) for name, shape in shapes.items()}


def _cell(b: Builder, p, ctor, input, hx=None):
    need_rank(input, "RNNCell", 1, 2)
    _last("RNNCell", input, ctor["input_size"], "input_size")
    raise unsupported("RNNCell", "", (TensorType((*shape_of(input)[:-1], ctor["hidden_size"]), _same_dtype("RNNCell", input, p)),))


layer("RNNCell", lambda input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None: None, _cell, _cell_parameters, typed=True)


# --- transformers ---------------------------------------------------------------------------------------------------

def _block(d: Dim, feedforward: Dim, bias: bool, dtype: DType | None, attentions: tuple[str, ...]) -> dict[str, TensorType]:
    """The parameters of an encoder or decoder layer."""
    shapes: dict[str, tuple[Dim, ...]] = {}
    for name in attentions:
        shapes |= {f"{name}.in_proj_weight": (3 * d, d), f"{name}.in_proj_bias": (3 * d,), f"{name}.out_proj.weight": (d, d), f"{name}.out_proj.bias": (d,)}
    shapes |= {"linear1.weight": (feedforward, d), "linear1.bias": (feedforward,), "linear2.weight": (d, feedforward), "linear2.bias": (d,)}
    for n in range(len(attentions) + 1):
        shapes |= {f"norm{n + 1}.weight": (d,), f"norm{n + 1}.bias": (d,)}
    return {name: TensorType(shape, dtype or DType.F32) for name, shape in shapes.items() if bias or not name.endswith("bias")}


def _encoder_layer(**c):
    return _block(c["d_model"], c["dim_feedforward"], c["bias"], c["dtype"], ("self_attn",))


def _decoder_layer(**c):
    return _block(c["d_model"], c["dim_feedforward"], c["bias"], c["dtype"], ("self_attn", "multihead_attn"))


def _through(name: str, ctor: dict[str, Any], src: Op, *others: Op) -> TensorType:
    """A transformer's output is like its first input; masks of padding are (batch, length)."""
    need_rank(src, name, 2, 3)
    for x in (src, *others):
        _last(name, x, ctor["d_model"], "d_model")
    own = shape_of(src)
    for x in others:
        at = 0 if ctor["batch_first"] else 1
        if len(own) == 3 and x.type.rank == 3 and proved_different(own[at], x.type.shape[at]):
            raise TypeRuleError(f"{name} of {src.type} with {x.type}: the batches have sizes {own[at]} and {x.type.shape[at]} on axis {at}",
                                "one batch size; batch_first=True when the batch comes first")
    return src.type


def _padding(name: str, ctor: dict[str, Any], x: Op, mask) -> None:
    if isinstance(mask, Op) and x.type.rank == 3 and mask.type.rank == 2:
        batch, length = (x.type.shape[0], x.type.shape[1]) if ctor["batch_first"] else (x.type.shape[1], x.type.shape[0])
        if proved_different(mask.type.shape[0], batch) or proved_different(mask.type.shape[1], length):
            raise TypeRuleError(f"{name} of {x.type} with a key_padding_mask {mask.type}", f"a mask of {TensorType((batch, length), mask.type.dtype)}")


def _encode(b: Builder, p, ctor, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
    result = _through("TransformerEncoderLayer", ctor, src)
    _padding("TransformerEncoderLayer", ctor, src, src_key_padding_mask)
    _same_dtype("TransformerEncoderLayer", src, p)
    raise unsupported("TransformerEncoderLayer", "", (result,))


def _decode(b: Builder, p, ctor, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
            tgt_is_causal=False, memory_is_causal=False):
    result = _through("TransformerDecoderLayer", ctor, tgt, memory)
    _padding("TransformerDecoderLayer", ctor, tgt, tgt_key_padding_mask)
    _padding("TransformerDecoderLayer", ctor, memory, memory_key_padding_mask)
    _same_dtype("TransformerDecoderLayer", tgt, p)
    raise unsupported("TransformerDecoderLayer", "", (result,))


for _name, _call, _weights in (("TransformerEncoderLayer", _encode, _encoder_layer), ("TransformerDecoderLayer", _decode, _decoder_layer)):
    layer(_name, lambda d_model, nhead, dim_feedforward=2048, dropout=0.1, activation="relu", layer_norm_eps=1e-05, batch_first=False, norm_first=False,
          bias=True, device=None, dtype=None: None, _call, _weights, typed=True)


def _stacked(made: str, count: str, norm: str):
    def parameters(**c) -> dict[str, TensorType]:
        found = {}
        for n in range(c[count]):
            found |= {f"layers.{n}.{name}": type for name, type in c[made].parameters.items()}
        return found | ({f"norm.{name}": type for name, type in c[norm].parameters.items()} if isinstance(c[norm], MadeLayer) else {})
    return parameters


def _inner(ctor: dict[str, Any], name: str) -> dict[str, Any]:
    if not isinstance(ctor[name], MadeLayer):
        raise unsupported("a transformer of layers that are not torch's")
    return ctor[name].constructor


def _encoder(b: Builder, p, ctor, src, mask=None, src_key_padding_mask=None, is_causal=None):
    _encode(b, p, _inner(ctor, "encoder_layer"), src, mask, src_key_padding_mask)


def _decoder(b: Builder, p, ctor, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
             tgt_is_causal=None, memory_is_causal=False):
    _decode(b, p, _inner(ctor, "decoder_layer"), tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)


layer("TransformerEncoder", lambda encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True: None, _encoder,
      _stacked("encoder_layer", "num_layers", "norm"), typed=True)
layer("TransformerDecoder", lambda decoder_layer, num_layers, norm=None: None, _decoder, _stacked("decoder_layer", "num_layers", "norm"), typed=True)


def _transformer_parameters(**c) -> dict[str, TensorType]:
    d, found = c["d_model"], {}
    for side, count, weights in (("encoder", "num_encoder_layers", _encoder_layer), ("decoder", "num_decoder_layers", _decoder_layer)):
        for n in range(c[count]):
            found |= {f"{side}.layers.{n}.{name}": type for name, type in weights(**c).items()}
        found |= {f"{side}.norm.{name}": TensorType((d,), c["dtype"] or DType.F32) for name in (("weight", "bias") if c["bias"] else ("weight",))}
    return found


def _transform(b: Builder, p, ctor, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None, tgt_key_padding_mask=None,
               memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None, memory_is_causal=False):
    result = _through("Transformer", ctor, tgt, src)
    _padding("Transformer", ctor, src, src_key_padding_mask)
    _padding("Transformer", ctor, tgt, tgt_key_padding_mask)
    raise unsupported("Transformer", "", (result,))


layer("Transformer", lambda d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1, activation="relu",
      custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-05, batch_first=False, norm_first=False, bias=True, device=None, dtype=None: None,
      _transform, _transformer_parameters, typed=True)
