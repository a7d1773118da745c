"""Functions of machine code in XLA programs, by XLA's foreign function interface."""

from __future__ import annotations

import ctypes
import importlib
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.ffi
from jax import Array


def ffi_headers() -> str:
    """The folder of the headers of XLA's interface."""
    return jax.ffi.include_dir()


def ffi_version() -> tuple[int, int]:
    """The version of XLA's interface.

    Raises:
        RuntimeError: jaxlib's headers do not define it, or the handlers do not support it.
    """
    text = (Path(ffi_headers()) / "xla" / "ffi" / "api" / "c_api.h").read_text(encoding="utf-8")
    found = [re.search(rf"#define XLA_FFI_API_{part} (\d+)", text) for part in ("MAJOR", "MINOR")]
    if None in found or int(found[0][1]) != 0:  # type: ignore[index]
        raise RuntimeError("does not know this version of XLA's foreign function interface")
    return int(found[0][1]), int(found[1][1])  # type: ignore[index]


def register_handler(name: str, address: int) -> None:
    """Register a handler of XLA's interface under a name, for programs of the CPU in this process.

    Args:
        name: A unique name.
        address: Address of the function ``XLA_FFI_Error* (XLA_FFI_CallFrame*)``, which must stay valid.
    """
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(ctypes.c_void_p(address)), platform="cpu")


def handler_call(name: str, results: Sequence[jax.ShapeDtypeStruct]) -> Callable[..., list[Array]]:
    """A registered handler as a function of arrays in row-major order."""
    return lambda *operands: list(jax.ffi.ffi_call(name, list(results))(*operands))


_Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_METADATA = 1
"""The type of the extension by which XLA queries the version of a handler."""
_INTERNAL_ERROR = 13


class _ErrorText(ctypes.Structure):
    """XLA_FFI_Error_Create_Args."""

    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("text", ctypes.c_char_p),
                ("code", ctypes.c_int)]  # fmt: skip


def handler_of(f: Callable[[], bytes], version: tuple[int, int]) -> tuple[Callable[..., Any], int]:
    """(a handler that calls a Python function and must be kept alive, its address).

    Args:
        f: A function without arguments that returns the bytes of the single result. An error in it ends the program.
        version: Version of the interface, from ``ffi_version``.
    """

    def pointer(address: int, offset: int) -> int:
        return ctypes.c_void_p.from_address(address + offset).value or 0

    # XLA_FFI_CallFrame and its members: xla/ffi/api/c_api.h, version 0
    def call(frame: int) -> int | None:
        extension = pointer(frame, 8)
        while extension:
            if ctypes.c_int32.from_address(extension + 8).value == _METADATA:
                about = pointer(extension, 24)
                for offset, number in zip((24, 28, 32), (*version, 0), strict=True):
                    ctypes.c_int32.from_address(about + offset).value = number
                return None
            extension = pointer(extension, 16)
        try:
            found = f()
        except Exception as error:
            text = _ErrorText(
                ctypes.sizeof(_ErrorText), None, f"{type(error).__name__}: {error}".encode(), _INTERNAL_ERROR
            )
            return _Handler(pointer(pointer(frame, 16), 48))(ctypes.addressof(text))
        ctypes.memmove(pointer(pointer(pointer(frame, 112), 0), 24), found, len(found))
        return None

    handler = _Handler(call)
    return handler, ctypes.cast(handler, ctypes.c_void_p).value or 0


def launches_kernels() -> bool:
    """True if jaxlib, with its plugin for CUDA, has the custom call for Triton kernels in the form used here."""
    triton = importlib.import_module("jaxlib.gpu_triton")
    plugin = getattr(triton, "_cuda_triton", None)
    if KERNEL_LAUNCH not in getattr(plugin, "registrations", dict)():
        return False
    try:
        _launch(triton, "kernel", "", 128, 90, 1, 1)
    except TypeError:
        return False
    return True


KERNEL_LAUNCH = "triton_kernel_call_ffi"
"""The custom call of jaxlib that launches a kernel."""


def _launch(
    triton: Any, name: str, ptx: str, block: int, capability: int, states: int, arrays: int, numbers: Sequence[int] = ()
) -> bytes:
    """The configuration of the custom call: the kernel, its blocks and its arguments."""
    kernel = triton.TritonKernel(name, block // 32, 1, 0, ptx, "", capability)
    given = [triton.create_array_parameter(0, 1)] * arrays
    given += [triton.create_scalar_parameter(number, "i32") for number in (*numbers, states)]
    launch = triton.TritonKernelCall(kernel, -(-states // block), 1, 1, given)
    return zlib.compress(launch.to_proto(name, b""))


def cuda_kernel_call(
    name: str,
    ptx: str,
    block: int,
    capability: int,
    states: int,
    results: Sequence[jax.ShapeDtypeStruct],
    rows: Sequence[bool],
    numbers: Sequence[int] = (),
) -> Callable[..., list[Array]]:
    """A kernel as a function of arrays; its arguments are the operands, the results, numbers, and the state count.

    Args:
        name: Name of the kernel.
        block: Threads per block, a multiple of 32.
        capability: Ten times the compute capability.
        states: The number of states, one thread each.
        results: Shapes and dtypes.
        rows: Flags of the operands and results whose last axis is first in memory: XLA then needs no transpose of a
            leading batch axis.
        numbers: Integers, such as the number of steps.
    """
    triton = importlib.import_module("jaxlib.gpu_triton")

    def call(*operands: Array) -> list[Array]:
        text = _launch(triton, name, ptx, block, capability, states, len(operands) + len(results), numbers)
        orders = [
            (x.ndim - 1, *range(x.ndim - 1)) if row else None
            for x, row in zip([*operands, *results], rows, strict=True)
        ]
        made = jax.ffi.ffi_call(
            KERNEL_LAUNCH, list(results), input_layouts=orders[: len(operands)], output_layouts=orders[len(operands) :]
        )
        return list(made(*operands, name=name, opaque=text))

    return call
