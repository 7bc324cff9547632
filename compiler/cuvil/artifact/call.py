"""Calls of a loaded library from Python, made for one signature when it is loaded: little work is left for each call.

NumPy in gives NumPy out, torch in gives torch out. Contiguous CPU tensors are handed over as they are; others are copied
first. The GIL is free while kernels run, since ctypes releases it. What is not of the signature's type is not converted: it
is NotImplemented, and the caller decides.
"""
from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..diagnostics import CuvilError
from ..ir.types import DType
from .abi import DIRECT_LIMIT
from .signature import Signature, Slot

Call = Callable[[Sequence[Any]], Any]
# The start of a writable contiguous buffer, as ctypes passes it: the quickest way from an array to its address.
_Start = ctypes.c_char * 0


def caller(signature: Signature, library: ctypes.CDLL, model: int, only: str | None = None) -> Call:
    """A function of the positional arguments; gives the results, or NotImplemented when an argument is of another type.

    only   "numpy" or "torch": what it was compiled for; the other's values are of another type, whose rules may differ"""
    run = _runner(signature, library, model)
    of_arrays = _numpy_caller(signature, run) if only != "torch" else _declined
    of_tensors: Call | None = _declined if only == "numpy" else None

    def call(arguments: Sequence[Any]) -> Any:
        nonlocal of_tensors
        for argument in arguments:
            if type(argument) is not np.ndarray and not is_array(argument):
                break
        else:
            return of_arrays(arguments)
        if of_tensors is None:
            if not _has_torch(arguments):
                return NotImplemented
            of_tensors = _torch_caller(signature, run)
        return of_tensors(arguments)

    return call


def _declined(arguments: Sequence[Any]) -> Any:
    return NotImplemented


def _runner(signature: Signature, library: ctypes.CDLL, model: int) -> Callable[..., None]:
    """Runs the kernels on pointers, inputs first; CuvilError when they say a value is out of range."""
    count = len(signature.inputs) + len(signature.outputs)
    last_error = library.cuvil_last_error
    handle = ctypes.c_void_p(model)
    if count <= DIRECT_LIMIT:
        direct = library.cuvil_direct
        direct.argtypes, direct.restype = [ctypes.c_void_p] * (count + 1), ctypes.c_int32

        def run(*pointers: Any) -> None:
            if direct(handle, *pointers):
                raise CuvilError(last_error().decode("utf-8", "replace"), code="CUV020")
        return run

    call, inputs = library.cuvil_call, len(signature.inputs)
    Ins, Outs = ctypes.c_void_p * inputs, ctypes.c_void_p * len(signature.outputs)
    call.argtypes, call.restype = [ctypes.c_void_p, Ins, Outs], ctypes.c_int32

    def run_arrays(*pointers: Any) -> None:
        found = [p if isinstance(p, int) else ctypes.addressof(p) for p in pointers]
        if call(handle, Ins(*found[:inputs]), Outs(*found[inputs:])):
            raise CuvilError(last_error().decode("utf-8", "replace"), code="CUV020")
    return run_arrays


def _numpy_caller(signature: Signature, run: Callable[..., None]) -> Call:
    if any(slot.type.dtype == DType.BF16 for slot in (*signature.inputs, *signature.outputs)):
        return lambda arguments: NotImplemented          # NumPy has no bfloat16
    wanted = [(np.dtype(slot.type.dtype.numpy), slot.type.shape) for slot in signature.inputs]
    made = [(slot.type.shape, np.dtype(slot.type.dtype.numpy)) for slot in signature.outputs]
    count, start, empty = len(wanted), _Start.from_buffer, np.empty
    bare = signature.returns == "tensor" and made[0][0] != () and 0 not in made[0][0]

    def call(arguments: Sequence[Any]) -> Any:
        if len(arguments) != count:
            return NotImplemented
        pointers, kept = [], []
        for argument, (dtype, shape) in zip(arguments, wanted):
            if argument.dtype != dtype or argument.shape != shape:
                return NotImplemented
            try:
                pointer = start(argument)
                usable = argument.flags.aligned
            except (TypeError, ValueError, BufferError):     # read-only, not contiguous, empty or a scalar
                usable = False
            if not usable:
                argument = np.require(argument, None, ("C_CONTIGUOUS", "ALIGNED"))
                kept.append(argument)
                pointer = argument.ctypes.data
            pointers.append(pointer)
        if bare:
            result = empty(*made[0])
            run(*pointers, start(result))
            return result
        results = [empty(shape, dtype) for shape, dtype in made]
        run(*pointers, *[start(r) if r.size else r.ctypes.data for r in results])
        results = [r if r.shape else r[()] for r in results]         # NumPy gives scalars for 0-d results
        return results[0] if signature.returns == "tensor" else tuple(results)

    return call


def _torch_caller(signature: Signature, run: Callable[..., None]) -> Call:
    import torch
    wanted = [(getattr(torch, slot.type.dtype.numpy), slot.type.shape) for slot in signature.inputs]
    made = [(slot.type.shape, getattr(torch, slot.type.dtype.numpy)) for slot in signature.outputs]
    count, empty, Tensor, Plain, recording = len(wanted), torch.empty, torch.Tensor, plain_tensors(), torch.is_grad_enabled
    single = signature.returns == "tensor"

    def call(arguments: Sequence[Any]) -> Any:
        if len(arguments) != count:
            return NotImplemented
        pointers, kept = [], []
        for argument, (dtype, shape) in zip(arguments, wanted):
            if type(argument) is not Tensor and not isinstance(argument, Plain):
                if not is_array(argument):
                    return NotImplemented
                argument = torch.from_numpy(np.array(argument))
                kept.append(argument)
            if argument.dtype is not dtype or argument.shape != shape or not argument.is_cpu:
                return NotImplemented
            if argument.requires_grad and recording():
                raise CuvilError("an input requires grad, and compiled functions compute no gradients",
                                 hint="call it under torch.inference_mode() or torch.no_grad()", code="CUV021")
            if not argument.is_contiguous() or argument.is_neg():
                argument = argument.contiguous().resolve_neg()
                kept.append(argument)
            pointers.append(argument.data_ptr())
        results = [empty(shape, dtype=dtype) for shape, dtype in made]
        run(*pointers, *[r.data_ptr() for r in results])
        return results[0] if single else tuple(results)

    return call


def is_array(argument: Any) -> bool:
    """A NumPy array or scalar and nothing more: masked arrays and other subclasses mean something else by their elements."""
    return type(argument) in (np.ndarray, np.memmap) or isinstance(argument, np.generic)


def plain_tensors() -> tuple[type, ...]:
    """The tensor types whose elements are just their memory; other subclasses may change what an operation does."""
    import torch
    return torch.nn.Parameter, torch.nn.Buffer


def is_tensor(argument: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and (type(argument) is torch.Tensor or isinstance(argument, plain_tensors()))


def _has_torch(arguments: Sequence[Any]) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and any(isinstance(argument, torch.Tensor) for argument in arguments)


def mismatch(signature: Signature, arguments: Sequence[Any]) -> CuvilError:
    """What is wrong with the arguments of a call."""
    if len(arguments) != len(signature.inputs):
        names = ", ".join(slot.name for slot in signature.inputs)
        return CuvilError(f"{signature.name} was called with {len(arguments)} tensors", expected=f"{len(signature.inputs)}: {names}")
    for argument, slot in zip(arguments, signature.inputs):
        found = described(argument)
        if found != _text(slot):
            return CuvilError(f"argument {slot.name} of {signature.name} is {found}", expected=_text(slot))
    return CuvilError(f"the arguments of {signature.name} are not all torch CPU tensors or NumPy arrays",
                      expected=", ".join(f"{slot.name}: {_text(slot)}" for slot in signature.inputs))


def described(argument: Any) -> str:
    """`float32[2, 3]`, with the device if it is not the CPU; the type's name for what is no tensor."""
    dtype, shape = getattr(argument, "dtype", None), getattr(argument, "shape", None)
    if dtype is None or shape is None:
        return type(argument).__name__
    device = str(getattr(argument, "device", "cpu"))
    return f"{str(dtype).removeprefix('torch.')}{list(shape)}" + (f" on {device}" if device != "cpu" else "")


def _text(slot: Slot) -> str:
    return f"{slot.type.dtype.numpy}{list(slot.type.shape)}"
