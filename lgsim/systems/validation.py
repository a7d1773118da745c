"""Checks of the numbers from which a system is built; values are checked where they are known, not under a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.lie.action import Action, LeftTranslation
from lgsim.lie.group import SO3
from lgsim.support import check
from lgsim.support.check import is_traced

Dtype = jnp.dtype | type
Numbers = Sequence[Any] | ArrayLike
"""Numbers or nested sequences of numbers."""


def numbers(name: str, value: Numbers, dtype: Dtype | None, *shape: int) -> Float[Array, ...]:
    """``value`` as an array of the given shape and dtype (None: JAX's default), the argument that errors call ``name``.

    Raises:
        TypeError: the dtype is neither float32 nor float64.
        ValueError: the shape is another one.
    """
    array = jnp.asarray(value, check.float_dtype(float if dtype is None else dtype))
    if array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
    return array


def positive(name: str, value: Numbers, dtype: Dtype | None, *shape: int) -> Float[Array, ...]:
    """``value`` as ``numbers`` gives it, which must be above zero, such as masses and lengths.

    Raises:
        ValueError: the shape is another one, or a number is not above zero.
    """
    array = numbers(name, value, dtype, *shape)
    if not is_traced(array) and not np.all(np.asarray(array) > 0):
        raise ValueError(f"{name}: expected numbers above zero, got {np.asarray(array)}")
    return array


def count(name: str, value: Numbers) -> int:
    """The length of a list of numbers, one for each part of a system.

    Raises:
        ValueError: it is no list of one number or more.
    """
    shape = jnp.shape(jnp.asarray(value))
    if len(shape) != 1 or shape[0] < 1:
        raise ValueError(f"{name}: expected a list of one number or more, got shape {shape}")
    return shape[0]


def direction(name: str, value: Numbers, dtype: Dtype | None) -> Float[Array, " 3"]:
    """``value`` as a unit vector (3,).

    Raises:
        ValueError: its norm is not 1; the message says by how much.
    """
    array = numbers(name, value, dtype, 3)
    if not is_traced(array):
        gap = abs(float(np.linalg.norm(np.asarray(array))) - 1)
        limit = 10.0 ** (-0.5 * np.finfo(array.dtype).precision)
        if not gap <= limit:
            raise ValueError(
                f"{name}: expected a unit vector, but |{name}| = 1 fails by {gap:.3g}, where up to {limit:.1g} is "
                f"taken for rounding; {name} / norm({name}) is the nearest one"
            )
    return array


def point(name: str, value: Float[Array, "*shape"], action: Action) -> Float[Array, "*shape"]:
    """``value`` itself, a point of the manifold of ``action``.

    Raises:
        ValueError: it is off the manifold; the message says by how much.
    """
    action.check_point(value, name)
    return value


def attitude(name: str, value: Numbers | None, dtype: Dtype | None) -> Float[Array, "3 3"]:
    """``value`` as a rotation matrix (3, 3), the identity where it is None.

    Raises:
        ValueError: it is no rotation.
    """
    return point(name, numbers(name, jnp.eye(3) if value is None else value, dtype, 3, 3), LeftTranslation(SO3))
