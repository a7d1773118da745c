"""Host calls from inside of a program: checks of the gradients in reverse mode, and warnings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from functools import cache, partial
from hashlib import sha256
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool

from lgsim._compile.xla.foreign import ffi_version, handler_call, handler_of, register_handler
from lgsim._compile.xla.jax_internals import define_primitive, is_symbolic_zero, register_lowering, symbolic_zero

Check = Callable[[Any, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""``check(place, gradient, step, t)`` returns the gradient, or raises."""


def probe_gradient(check: Check, place: Hashable, x: Array, step: Array, t: Array) -> Array:
    """x; in reverse mode ``check(place, gradient, step, t)`` is called on the host with the gradient with respect to x.

    Args:
        check: A module-level function: two calls share a program if it and the place are equal.
        place: A label of x for error messages.
        x: Any array.
        step: Index of a simulation step, passed to ``check``; in a batch that of the first entry if x is shared.
        t: Time of the step, likewise.
    """
    return _probe.bind(x, step, t, check=check, place=place)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _checked(check: Check, place: Hashable, gradient: Array, step: Array, t: Array) -> Array:
    # its result is passed on backward, so that the first fault is the first one reported
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


def _batch_probe(args: tuple, axes: tuple, **about: Any) -> tuple[Array, Any]:
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
    batching_rule=_batch_probe,
    batch_axes=None,
    computes=False,
    jvp_rule=_jvp,
    transpose_rule=_transpose,
    multiple_results=False,
)


def warn_where(condition: Bool[Array, ""], text: str, category: type[Warning]) -> Bool[Array, ""]:
    """False, after ``warnings.warn(text, category)`` if the condition is true, in a batch for any entry.

    The program's result must depend on it, or it is removed as dead code. On a CPU the call is a handler of XLA, not a
    callback of JAX, so that programs with it stay in the persistent compilation cache and their calls stay fast. If
    warnings are errors, running the program raises.
    """
    return _warn.bind(condition, text=text, category=category)


def _warned(text: str, category: type[Warning], condition: Any = True) -> np.ndarray:
    if condition:
        warnings.warn(text, category, stacklevel=1)
    return np.zeros((), bool)


def _by_callback(condition: Array, *, text: str, category: type[Warning]) -> Array:
    """The primitive by a JAX callback."""
    shape = jax.ShapeDtypeStruct((), bool)

    def call(condition: Array) -> Array:
        return jax.pure_callback(partial(_warned, text, category), shape, condition)

    return jax.lax.cond(condition, call, jnp.zeros_like, condition)


def _by_handler(condition: Array, *, text: str, category: type[Warning]) -> Array:
    """The primitive by an XLA handler."""
    name = _registered(text, category)
    if name is None:
        return _by_callback(condition, text=text, category=category)
    call = handler_call(name, [jax.ShapeDtypeStruct((), bool)])
    return jax.lax.cond(condition, lambda condition: call(condition)[0], jnp.zeros_like, condition)


_HANDLERS: list[Callable[..., Any]] = []
"""Registered handlers, which must stay alive."""


@cache
def _registered(text: str, category: type[Warning]) -> str | None:
    """The name of the handler that warns, or None if this version of XLA does not support it."""
    try:
        version = ffi_version()
    except RuntimeError:
        return None
    name = "lgsim_warn_" + sha256(f"{category.__name__} {text}".encode()).hexdigest()[:40]
    handler, address = handler_of(lambda: _warned(text, category).tobytes(), version)
    _HANDLERS.append(handler)
    register_handler(name, address)
    return name


def _batch_warning(operands: tuple, axes: tuple, **about: Any) -> tuple[Array, None]:
    # one warning for the whole batch
    return _warn.bind(jnp.any(operands[0], axis=axes[0]), **about), None


def _jvp_warning(primals: tuple, tangents: tuple, **about: Any) -> tuple[Array, Any]:
    warned = _warn.bind(*primals, **about)
    return warned, symbolic_zero(warned)


_warn = define_primitive(
    "lgsim_warn_where",
    impl=lambda condition, *, text, category: jnp.asarray(_warned(text, category, bool(condition))),
    abstract_eval=lambda condition, **about: condition,
    lowering=_by_callback,
    batching_rule=_batch_warning,
    batch_axes=None,
    computes=False,
    jvp_rule=_jvp_warning,
    multiple_results=False,
)
register_lowering(_warn, _by_callback, alone=True)
register_lowering(_warn, _by_handler, "cpu", alone=True)
