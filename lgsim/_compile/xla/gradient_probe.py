"""The identity, whose reverse mode shows the gradient that it passes back to a function of the host."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.xla.jax_internals import define_primitive, is_symbolic_zero

Check = Callable[[Any, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""``check(place, gradient, step, t)`` returns the gradient, or raises."""


def probe_gradient(check: Check, place: Hashable, x: Array, step: Array, t: Array) -> Array:
    """x; in reverse mode ``check(place, gradient, step, t)`` is called on the host with the gradient with respect to x.

    Args:
        check: A function of a module: two calls share a program where it and the place are equal.
        place: What x is, for the words of an error.
        x: Any array.
        step: The number of a simulation's step, handed on to ``check``; in a batch that of its first entry if x is
            shared.
        t: Its time, likewise.
    """
    return _probe.bind(x, step, t, check=check, place=place)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _checked(check: Check, place: Hashable, gradient: Array, step: Array, t: Array) -> Array:
    # its result is what goes on backwards, so that the first fault is the first to be found
    shape = jax.ShapeDtypeStruct(gradient.shape, gradient.dtype)
    return jax.pure_callback(partial(check, place), shape, gradient, step, t, vmap_method="broadcast_all")


@_checked.defjvp
def _(check: Check, place: Hashable, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    return _checked(check, place, *primals), tangents[0]


def _jvp(primals: tuple, tangents: tuple, **about: Any) -> tuple[Array, Any]:
    x, step, t = primals
    moved = tangents[0]
    out = _probe.bind(x, step, t, **about)
    return out, moved if is_symbolic_zero(moved) else _probe.bind(moved, step, t, **about)


def _transpose(gradient: Any, x: Any, step: Array, t: Array, *, check: Check, place: Hashable) -> list[Any]:
    return [gradient if is_symbolic_zero(gradient) else _checked(check, place, gradient, step, t), None, None]


def _batch(args: tuple, axes: tuple, **about: Any) -> tuple[Array, Any]:
    x, step, t = args
    if axes[0] is None:
        return _probe.bind(x, *(jnp.ravel(a)[0] for a in (step, t)), **about), axes[0]
    x = jnp.moveaxis(x, axes[0], 0)
    first = [a if axis is None else jnp.ravel(a)[0] for a, axis in zip((step, t), axes[1:], strict=True)]
    return _probe.bind(x, *first, **about), 0


_probe = define_primitive(
    "lgsim_probe_gradient",
    impl=lambda x, step, t, **about: x,
    abstract_eval=lambda x, step, t, **about: x,
    lowering=lambda x, step, t, **about: x,
    batching_rule=_batch,
    batch_axes=None,
    computes=False,
    jvp_rule=_jvp,
    transpose_rule=_transpose,
    multiple_results=False,
)
