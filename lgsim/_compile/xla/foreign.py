"""Functions of machine code in XLA's programs, by its foreign function interface."""

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
    """Version of XLA's interface.

    Raises:
        RuntimeError: jaxlib's headers do not say it, or it is another one than the handlers are written for.
    """
    text = (Path(ffi_headers()) / "xla" / "ffi" / "api" / "c_api.h").read_text(encoding="utf-8")
    found = [re.search(rf"#define XLA_FFI_API_{part} (\d+)", text) for part in ("MAJOR", "MINOR")]
    if None in found or int(found[0][1]) != 0:  # type: ignore[index]
        raise RuntimeError("does not know this version of XLA's foreign function interface")
    return int(found[0][1]), int(found[1][1])  # type: ignore[index]


def register_handler(name: str, address: int) -> None:
    """Make a handler of XLA's interface known under a name, for programs of the CPU in this process.

    Args:
        name: The name; no other function may have it.
        address: Where the function is, ``XLA_FFI_Error* (XLA_FFI_CallFrame*)``; it has to stay there.
    """
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(ctypes.c_void_p(address)), platform="cpu")


def handler_call(name: str, results: Sequence[jax.ShapeDtypeStruct]) -> Callable[..., list[Array]]:
    """The function of arrays that a registered handler is, in row-major order."""
    return lambda *operands: list(jax.ffi.ffi_call(name, list(results))(*operands))


_Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_METADATA = 1
"""The type of the extension by which XLA asks a handler for its version."""
_INTERNAL_ERROR = 13


class _ErrorText(ctypes.Structure):
    """XLA_FFI_Error_Create_Args."""

    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("text", ctypes.c_char_p),
                ("code", ctypes.c_int)]  # fmt: skip


def handler_of(f: Callable[[], bytes], version: tuple[int, int]) -> tuple[Callable[..., Any], int]:
    """(a handler that calls a function of Python's, which has to be kept, its address).

    Args:
        f: Called without the operands; it returns the bytes of the one result. What it raises ends the program.
        version: That of the interface, by ``ffi_version``.
    """

    def pointer(address: int, offset: int) -> int:
        return ctypes.c_void_p.from_address(address + offset).value or 0

    # XLA_FFI_CallFrame and what hangs on it: xla/ffi/api/c_api.h, version 0
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
    """Whether jaxlib, with its plugin for CUDA, has the custom call that launches a kernel of Triton as here."""
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
    """What the custom call is told: the kernel, its blocks and its arguments."""
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
    """The function of arrays that a kernel is; its arguments are the operands, the results, numbers, that of states.

    Args:
        name: Name of the kernel.
        block: Threads of a block, a multiple of 32.
        capability: Ten times the compute capability.
        states: The number of states, a thread each.
        results: Shapes and dtypes.
        rows: Of each operand and result, whether its last axis stands first in memory: XLA then moves nothing where
            a batch came first.
        numbers: Whole numbers, such as that of the steps.
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
