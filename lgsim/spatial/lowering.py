"""Hints to XLA's CPU back end, and sine with cosine; they change speed, never results.

On the CPU back end an operation with several consumers is computed again inside each of them, and
``lax.optimization_barrier`` does not stop that; a call that is not inlined does. The hint is an undocumented attribute:
a JAX that ignores it only loses the speed. On other back ends it is off.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial, reduce, wraps
from importlib.metadata import version
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.experimental.xla_metadata import set_xla_metadata

Tree = TypeVar("Tree")

# Before jaxlib 0.7.2 XLA ends the process where a marked call has a large batch and the machine several cores.
_SAFE = tuple(int(part) for part in version("jaxlib").split(".")[:3]) >= (0, 7, 2)

# LGSIM_LOWERING_HINTS=0 switches the hints off: to see what they give, or where a back end does not bear them.
_HINTS = _SAFE and os.environ.get("LGSIM_LOWERING_HINTS", "1") != "0"

_INLINE = 256
"""Entries up to which a constant is part of the code for sure."""


def compiler_options(platform: str | None = None) -> dict[str, str | bool]:
    """XLA's options for large batches: ``jax.jit(f, compiler_options=lgsim.compiler_options())``.

    On a CPU with AVX-512 XLA by itself takes vectors of half the width; programs that spend their time on products of
    small matrices gain a quarter by whole ones. Other CPUs are not concerned. An outermost ``jit`` alone takes options.

    Args:
        platform: Such as ``"cpu"``, by default the one that JAX uses; on others than the CPU there are no options.
    """
    return {"xla_cpu_prefer_vector_width": "512"} if (platform or jax.default_backend()) == "cpu" else {}


@jax.jit
def _identity(*leaves: Array) -> tuple[Array, ...]:
    return leaves


def cut(tree: Tree) -> Tree:
    """The same tree, as a fusion boundary on CPU: everything before it is computed once. Python numbers pass by."""
    if not _HINTS or jax.default_backend() != "cpu":
        return tree
    leaves, structure = jax.tree.flatten(tree)
    with set_xla_metadata(inlineable="false"):
        held = iter(_identity(*(leaf for leaf in leaves if not isinstance(leaf, int | float))))
    return jax.tree.unflatten(structure, [leaf if isinstance(leaf, int | float) else next(held) for leaf in leaves])


def kernel(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` as one native function on CPU, its loops included, without the cost of a call for each operation.

    Its derivative, of any order and mode, is that of ``f``. Inside, a sum over an axis and a product of matrices have
    to be written as loops or explicit sums: in a batch the back end refuses what it would give to its matrix library.
    """

    @partial(jax.jit, static_argnums=(0, 1))
    def compiled(structure: Any, empty: tuple, *leaves: Array) -> Any:
        held = iter(leaves)
        # the attributes of the call would hold for all calls inside; a loop's body that is a call of its own has its
        # slices of arrays copied
        with set_xla_metadata(inlineable="true"):
            out = f(*jax.tree.unflatten(structure, [next(held) if e is None else jnp.zeros(*e) for e in empty]))
        # XLA ends the process where such a call has an operand that it does not use: a result that all enter
        return out, sum(leaf.ravel()[0].astype(jnp.float32) for leaf in leaves)

    @jax.jit  # the attributes belong on a call inside a program, not on a program
    @wraps(f)
    def call(*args: Any) -> Any:
        if not _HINTS or jax.default_backend() != "cpu":
            return f(*args)
        leaves, structure = jax.tree.flatten(args)
        # nor may an operand be without entries
        empty = tuple(None if leaf.size else (leaf.shape, leaf.dtype) for leaf in leaves)
        # XLA ends the process where such a call has a constant for an operand that is too large to be part of the code
        held = [jax.lax.optimization_barrier(x) if x.size > _INLINE else x for x in leaves if x.size]
        with set_xla_metadata(inlineable="false", xla_cpu_small_call="true"):
            found = compiled(structure, empty, *held)
        # else the second result would go, and with it the use of an operand
        return jax.lax.optimization_barrier(found)[0]

    # a derivative would be calls with the same attributes, of functions that need not use all their operands
    @jax.custom_jvp
    def whole(*args: Any) -> Any:
        return call(*args)

    @whole.defjvp
    def _(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
        return jax.jvp(f, primals, tangents)

    return whole


# Polynomials of sin r = r + r^3 S(r^2) and cos r = 1 - r^2/2 + r^4 C(r^2) on |r| <= pi/4, and pi/2 in three pieces
# whose products with small integers are exact (Cody and Waite, Software Manual for the Elementary Functions, 1980).
# The coefficients are minimax fits: float64 from FDLIBM (k_sin.c, k_cos.c), float32 from Cephes (sinf.c).
_SIN = {
    8: (
        -1.66666666666666324348e-01,
        8.33333333332248946124e-03,
        -1.98412698298579493134e-04,
        2.75573137070700676789e-06,
        -2.50507602534068634195e-08,
        1.58969099521155010221e-10,
    ),
    4: (-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4),
}
_COS = {
    8: (
        4.16666666666666019037e-02,
        -1.38888888888741095749e-03,
        2.48015872894767294178e-05,
        -2.75573143513906633035e-07,
        2.08757232129817482790e-09,
        -1.13596475577881948265e-11,
    ),
    4: (4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5),
}
_HALF_PI = {
    8: (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21),
    4: (1.5703125, 4.837512969970703e-4, 7.549789948768648e-8),
}
_TWO_OVER_PI = 0.6366197723675814


@jax.custom_jvp
def sincos(angle: Array) -> tuple[Array, Array]:
    """Sine and cosine of an angle in radians, together and in vector instructions (4 to 8 times faster than two calls).

    Within 1.5 ulp for angles up to 1e6 (float64) or 1e3 (float32) rad; beyond, the error stays at the size that a
    rounding of the argument causes. Follows the dtype of ``angle``.
    """
    size = angle.dtype.itemsize
    quarter = jnp.round(angle * _TWO_OVER_PI)
    r = reduce(lambda rest, piece: rest - quarter * piece, _HALF_PI[size], angle)
    z = r * r
    sine = r + r * z * _horner(_SIN[size], z)
    cosine = 1 - 0.5 * z + z * z * _horner(_COS[size], z)
    turns = quarter * 0.25
    phase = turns - jnp.floor(turns)  # 0, 1/4, 1/2 or 3/4 of a turn
    odd = (phase == 0.25) | (phase == 0.75)
    sine, cosine = jnp.where(odd, cosine, sine), jnp.where(odd, sine, cosine)
    return jnp.where(phase >= 0.5, -sine, sine), jnp.where((phase == 0.25) | (phase == 0.5), -cosine, cosine)


@sincos.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    sine, cosine = sincos(*primals)
    return (sine, cosine), (cosine * tangents[0], -sine * tangents[0])


def _horner(coefficients: tuple[float, ...], z: Array) -> Array:
    return reduce(lambda tail, c: tail * z + c, reversed(coefficients[:-1]), jnp.full_like(z, coefficients[-1]))
