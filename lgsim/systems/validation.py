"""Checks of the numbers from which a system is built; those that a program is still computing pass unseen."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.typing import ArrayLike

from lgsim.lie.action import Action, LeftTranslation
from lgsim.lie.group import SO3
from lgsim.support import check


def numbers(name: str, value: Any, dtype: Any, *shape: int) -> Array:
    """``value`` as an array of the given shape and dtype (None: JAX's default)."""
    array = jnp.asarray(value, check.float_dtype(float if dtype is None else dtype))
    if array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
    return array


def positive(name: str, value: Any, dtype: Any, *shape: int) -> Array:
    """``numbers`` that are all above zero, such as masses and lengths."""
    array = numbers(name, value, dtype, *shape)
    if not isinstance(array, Tracer) and not np.all(np.asarray(array) > 0):
        raise ValueError(f"{name}: expected numbers above zero, got {np.asarray(array)}")
    return array


def count(name: str, value: Any) -> int:
    """The length of a list of numbers, one for each part of a system."""
    shape = jnp.shape(jnp.asarray(value))
    if len(shape) != 1 or shape[0] < 1:
        raise ValueError(f"{name}: expected a list of one number or more, got shape {shape}")
    return shape[0]


def direction(name: str, value: Any, dtype: Any) -> Array:
    """A unit vector (3,); the error says by how much it is none."""
    array = numbers(name, value, dtype, 3)
    if not isinstance(array, Tracer):
        gap = abs(float(np.linalg.norm(np.asarray(array))) - 1)
        limit = 10.0 ** (-0.5 * np.finfo(array.dtype).precision)
        if not gap <= limit:
            raise ValueError(
                f"{name}: expected a unit vector, but |{name}| = 1 fails by {gap:.3g}, where up to {limit:.1g} is "
                f"taken for rounding; {name} / norm({name}) is the nearest one"
            )
    return array


def point(name: str, value: Array, action: Action) -> Array:
    """``value`` if it is a point of the manifold of ``action``; the error says by how much it is not."""
    action.check_point(value, name)
    return value


def attitude(name: str, value: ArrayLike | None, dtype: Any) -> Array:
    """A rotation matrix (3, 3); None is the identity."""
    return point(name, numbers(name, jnp.eye(3) if value is None else value, dtype, 3, 3), LeftTranslation(SO3))
