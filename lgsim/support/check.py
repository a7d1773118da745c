"""Checks of arguments, with messages that say which argument, what was expected and what came."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike


def floating(name: str, value: ArrayLike, *trailing: int) -> Array:
    """``value`` as an array of shape (..., *trailing) and of type float32 or float64.

    Raises:
        TypeError: the entries are not float32 or float64.
        ValueError: the last axes are not ``trailing``.
    """
    array = jnp.asarray(value)
    if array.dtype not in (jnp.float32, jnp.float64):
        raise TypeError(
            f"{name}: expected an array of float32 or float64, got {array.dtype}; convert it, e.g. {name}.astype(float)"
        )
    if array.ndim < len(trailing) or array.shape[array.ndim - len(trailing) :] != trailing:
        wanted = ", ".join(["...", *map(str, trailing)])
        raise ValueError(f"{name}: expected shape ({wanted}), got {array.shape}")
    return array


def float_dtype(dtype: jnp.dtype | type) -> jnp.dtype:
    """``dtype`` as JAX will use it; TypeError unless it is float32 or float64."""
    found = jnp.zeros((), dtype).dtype
    if found not in (jnp.float32, jnp.float64):
        raise TypeError(f"dtype: expected float32 or float64, got {found}")
    return found


def arguments(**named: tuple[ArrayLike, tuple[int, ...]]) -> tuple[Array, ...]:
    """Several arrays, given as ``name=(value, trailing axes)``, of one dtype and with leading axes that broadcast.

    They come back with leading axes of equal rank, so that their components combine without rank promotion.

    Raises:
        TypeError: an array is not float32 or float64, or the dtypes differ.
        ValueError: trailing axes are wrong, or leading axes do not broadcast.
    """
    arrays = {name: floating(name, value, *trailing) for name, (value, trailing) in named.items()}
    if len({a.dtype for a in arrays.values()}) > 1:
        kinds = ", ".join(f"{name} is {a.dtype}" for name, a in arrays.items())
        raise TypeError(f"{' and '.join(arrays)}: expected one dtype, but {kinds}; convert one with .astype")
    batches = {name: a.shape[: a.ndim - len(named[name][1])] for name, a in arrays.items()}
    try:
        rank = len(jnp.broadcast_shapes(*batches.values()))
    except ValueError:
        shapes = ", ".join(f"{name} has {shape}" for name, shape in batches.items())
        raise ValueError(f"{' and '.join(arrays)}: leading axes must broadcast, but {shapes}") from None
    return tuple(a.reshape((1,) * (rank - len(batches[name])) + a.shape) for name, a in arrays.items())


def unknown_name(what: str, name: str, names: Sequence[str]) -> ValueError:
    """The nearest of the names, or else all.

    Args:
        what: Who takes the name and what it should be.
        name: What came.
        names: What there is.
    """
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(names)}"
    return ValueError(f"{what}, got {name!r}; {hint}")
