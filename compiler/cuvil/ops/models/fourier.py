"""Discrete Fourier transforms. Complex element types have no name here: the shape is known, the element type is not."""
from __future__ import annotations

from ...ir.dims import floordiv
from ...ir.types import DType, TensorType
from ..builder import Builder
from ..definition import typed
from ..rules import shape_of
from .forms import floats, together


def _resized(b: Builder, x, sizes, axes, real: bool) -> TensorType:
    """Given sizes replace those of the axes; of a real transform the last axis keeps half and one."""
    own = list(shape_of(x))
    if axes is None:
        axes = range(len(own) - len(sizes), len(own)) if sizes is not None else range(len(own))
    axes = [b.axis(a, x) for a in axes]
    for axis, size in zip(axes, sizes or []):
        if size != -1:
            own[axis] = size
    if real:
        own[axes[-1]] = floordiv(own[axes[-1]], 2) + 1
    return TensorType(tuple(own), None)


def _back(b: Builder, x, sizes, axes) -> TensorType:
    """The real result of a half spectrum: 2 (n - 1) unless its size is given."""
    given = _resized(b, x, sizes, axes, False).shape
    last = b.axis(axes[-1] if axes is not None else -1, x)
    size = sizes[-1] if sizes is not None and sizes[-1] != -1 else 2 * (shape_of(x)[last] - 1)
    return TensorType(tuple(size if a == last else d for a, d in enumerate(given)), _real(b, x))


def _real(b: Builder, x) -> DType | None:
    """Unknown is what a complex operand looks like, so only a known float says more."""
    return None if x.type.dtype is None else DType.F64 if b.library == "numpy" and x.type.dtype not in (DType.F32, DType.F16) else floats(b, x)


def _one(n, dim):
    return (-1 if n is None else n,), (dim,)


for _library in ("torch", "numpy"):
    for _name in ("fft", "ifft"):
        typed(f"{_library}.fft.{_name}")(lambda b, input, n=None, dim=-1, norm=None, axis=None: _resized(
            b, input, *_one(n, dim if axis is None else axis), False))
    typed(f"{_library}.fft.rfft")(lambda b, input, n=None, dim=-1, norm=None, axis=None: _resized(b, input, *_one(n, dim if axis is None else axis), True))
    typed(f"{_library}.fft.irfft")(lambda b, input, n=None, dim=-1, norm=None, axis=None: _back(b, input, *_one(n, dim if axis is None else axis)))
    for _name in ("fft2", "ifft2"):
        typed(f"{_library}.fft.{_name}")(lambda b, input, s=None, dim=(-2, -1), norm=None, axes=None: _resized(b, input, s, axes or dim, False))
    for _name in ("fftn", "ifftn"):
        typed(f"{_library}.fft.{_name}")(lambda b, input, s=None, dim=None, norm=None, axes=None: _resized(b, input, s, axes or dim, False))
    typed(f"{_library}.fft.rfft2")(lambda b, input, s=None, dim=(-2, -1), norm=None, axes=None: _resized(b, input, s, axes or dim, True))
    typed(f"{_library}.fft.rfftn")(lambda b, input, s=None, dim=None, norm=None, axes=None: _resized(b, input, s, axes or dim, True))
    typed(f"{_library}.fft.irfft2")(lambda b, input, s=None, dim=(-2, -1), norm=None, axes=None: _back(b, input, s, axes or dim))
    typed(f"{_library}.fft.irfftn")(lambda b, input, s=None, dim=None, norm=None, axes=None: _back(b, input, s, axes or dim))
    typed(f"{_library}.fft.fftshift", f"{_library}.fft.ifftshift")(lambda b, input, dim=None, axes=None: input.type)


@typed("torch.fft.fftfreq")
def fftfreq(b: Builder, n, d=1.0, *, dtype=None, device=None, layout=None, requires_grad=False):
    return TensorType((n,), dtype or DType.F32)


@typed("torch.fft.rfftfreq")
def rfftfreq(b: Builder, n, d=1.0, *, dtype=None, device=None, layout=None, requires_grad=False):
    return TensorType((floordiv(n, 2) + 1,), dtype or DType.F32)


@typed("numpy.fft.fftfreq")
def numpy_fftfreq(b: Builder, n, d=1.0):
    return TensorType((n,), DType.F64)


@typed("numpy.fft.rfftfreq")
def numpy_rfftfreq(b: Builder, n, d=1.0):
    return TensorType((floordiv(n, 2) + 1,), DType.F64)


@typed("torch.stft", "torch.Tensor.stft")
def stft(b: Builder, input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=None,
         return_complex=None, align_to_window=None):
    """(batch, frequencies, frames), of real results with a last axis of 2."""
    own = shape_of(input)
    hop = floordiv(n_fft, 4) if hop_length is None else hop_length
    length = own[-1] + 2 * floordiv(n_fft, 2) if center else own[-1]
    frames = floordiv(length - n_fft, hop) + 1
    shape = (*own[:-1], n_fft if onesided is False else floordiv(n_fft, 2) + 1, frames)
    return TensorType(shape, None) if return_complex else TensorType((*shape, 2), input.type.dtype)


# --- complex numbers ------------------------------------------------------------------------------------------------

@typed("torch.view_as_complex")
def view_as_complex(b: Builder, input):
    return TensorType(shape_of(input)[:-1], None)


@typed("torch.view_as_real")
def view_as_real(b: Builder, input):
    return TensorType((*shape_of(input), 2), None)


@typed("torch.complex")
def complex(b: Builder, real, imag):
    return together("complex", real, imag)


@typed("torch.polar")
def polar(b: Builder, abs, angle):
    return together("polar", abs, angle)


@typed("torch.conj", "torch.Tensor.conj", "torch.conj_physical", "torch.resolve_conj", "numpy.conj", "numpy.conjugate")
def conj(b: Builder, input):
    return input.type


@typed("torch.angle", "torch.Tensor.angle", "numpy.angle")
def angle(b: Builder, input):
    return TensorType(input.type.shape, floats(b, input))


@typed("torch.real", "torch.Tensor.real", "numpy.real", "numpy.imag", "numpy.ndarray.real", "numpy.ndarray.imag")
def real(b: Builder, input):
    return input.type
