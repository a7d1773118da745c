"""Math functions as arithmetic programs, for targets whose library takes one number at a time.

With vectors of eight numbers, library calls for each of them would dominate the time of a step.
"""

from __future__ import annotations

import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.programs.program import Program
from lgsim._compile.programs.read import read

# ln 2 in two parts; the first has so few bits that its product with an integer of eleven bits is exact
_HIGH = {"float64": 6.93147180369123816490e-01, "float32": 0.693359375}
_LOW = {"float64": 1.90821492927058770002e-10, "float32": -2.12194440e-4}
_DEGREE = {"float64": 13, "float32": 7}
"""Degree of the Taylor polynomial of ``exp`` up to ln 2 / 2, with a remainder below half of the last digit."""


def _reduced(x: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """(k, ``exp(r) - 1``) with ``x = k ln 2 + r``, k an integer and r at most half of ln 2."""
    kind = x.dtype.name
    k = jnp.round(x * (1 / math.log(2)))
    r = (x - k * _HIGH[kind]) - k * _LOW[kind]
    tail = jnp.asarray(1 / math.factorial(_DEGREE[kind]), x.dtype)
    for i in range(_DEGREE[kind] - 1, 1, -1):
        tail = tail * r + 1 / math.factorial(i)
    return k, r + r * (r * tail)


def _power_of_two(k: Float[Array, ""]) -> Float[Array, ""]:
    """2^k for integer k, by the bits of the exponent."""
    integer, places, bias = (np.int64, 52, 1023) if k.dtype == np.float64 else (np.int32, 23, 127)
    bits = jax.lax.shift_left(k.astype(integer) + integer(bias), integer(places))
    return jax.lax.bitcast_convert_type(bits, k.dtype)


def exp(x: Float[Array, ""]) -> Float[Array, ""]:
    """``e^x`` to 1.1 units in the last place, with overflow to infinity and underflow to zero."""
    low, high = (-746.0, 710.0) if x.dtype == np.float64 else (-104.0, 89.0)
    k, more = _reduced(jnp.where(x < low, low, jnp.where(x > high, high, x)))
    half = jnp.floor(k / 2)  # two factors: a single one would exceed the exponent range
    return (1 + more) * _power_of_two(half) * _power_of_two(k - half)


def tanh(x: Float[Array, ""]) -> Float[Array, ""]:
    """``tanh x = e / (e + 2)`` with ``e = exp(2 |x|) - 1``, to 3 units in the last place."""
    size = jnp.abs(x)
    k, more = _reduced(2 * jnp.where(size > 22, jnp.asarray(22, x.dtype), size))
    scale = _power_of_two(k)
    e = scale * more + (scale - 1)
    found = e / (e + 2)
    return jnp.where(x < 0, -found, found)


_ALL = {"exp": exp, "tanh": tanh}


@cache
def function_program(op: str, kind: str) -> Program | None:
    """The program of a function of one number of a kind, or None if the library must compute it.

    Args:
        op: One of the functions of ``program.FUNCTIONS``.
        kind: "float32" or "float64".
    """
    f = _ALL.get(op)
    if f is None:
        return None
    return read(f, jax.ShapeDtypeStruct((), np.dtype(kind)))
