"""Cells of recurrent networks: one step of a GRU or an LSTM, as torch's cells compute it."""
from __future__ import annotations

from .builder import Builder
from .create import filled
from .definition import example, spelled
from .joining import chunk
from .linear import linear
from .rules import dtype_of, shape_of

_CELL = dict(x="f32[2, 3]", h="f32[2, 4]")


@spelled("torch.gru_cell", examples=[example("torch.gru_cell(x, h, wi, wh, bi, bh)", **_CELL, wi="f32[12, 3]", wh="f32[12, 4]", bi="f32[12]", bh="f32[12]"),
                                     example("torch.gru_cell(x, h, wi, wh)", **_CELL, wi="f32[12, 3]", wh="f32[12, 4]")])
def gru_cell(b: Builder, input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """h' = n + z (h - n), with the reset gate on the hidden part after its matmul and bias. Source: torch.nn.GRUCell."""
    hx = _hidden(b, input, hx, w_hh)
    given, kept = linear(b, input, w_ih, b_ih), linear(b, hx, w_hh, b_hh)
    (ri, zi, ni), (rh, zh, nh) = chunk(b, given, 3, -1), chunk(b, kept, 3, -1)
    r = b.emit("sigmoid", b.emit("add", ri, rh))
    z = b.emit("sigmoid", b.emit("add", zi, zh))
    n = b.emit("tanh", b.emit("add", ni, b.emit("mul", r, nh)))
    return b.emit("add", n, b.emit("mul", z, b.emit("sub", hx, n)))


@spelled("torch.lstm_cell",
         examples=[example("torch.lstm_cell(x, (h, h * 2), wi, wh, bi, bh)[1]", **_CELL, wi="f32[16, 3]", wh="f32[16, 4]", bi="f32[16]", bh="f32[16]")])
def lstm_cell(b: Builder, input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """c' = f c + i g, h' = o tanh(c'). Source: torch.nn.LSTMCell."""
    h, c = hx if hx is not None else (_hidden(b, input, None, w_hh),) * 2
    gates = b.emit("add", linear(b, input, w_ih, b_ih), linear(b, h, w_hh, b_hh))
    i, f, g, o = chunk(b, gates, 4, -1)
    i, f, o = (b.emit("sigmoid", gate) for gate in (i, f, o))
    cell = b.emit("add", b.emit("mul", f, c), b.emit("mul", i, b.emit("tanh", g)))
    return b.emit("mul", o, b.emit("tanh", cell)), cell


def _hidden(b: Builder, input, hx, w_hh):
    return filled(b, (*shape_of(input)[:-1], shape_of(w_hh)[1]), 0, dtype_of(input)) if hx is None else hx
