"""Functions of machine code in XLA's programs, by its foreign function interface."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

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
