"""Functions of machine code in XLA's programs, by its foreign function interface."""

from __future__ import annotations

import ctypes
import importlib
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.ffi
from jax import Array


def ffi_headers() -> str:
    """The folder of the headers of XLA's interface."""
    return jax.ffi.include_dir()


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
