"""Checks of the parameters of a system; values are checked only if they are known, not under a trace."""

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
    """``value`` as an array of the given shape and dtype (default: JAX's); ``name`` is the argument's name in errors.

    Raises:
        TypeError: the dtype is neither float32 nor float64.
        ValueError: the shape differs.
    """
    array = jnp.asarray(value, check.float_dtype(float if dtype is None else dtype))
    if array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
    return array


def positive(name: str, value: Numbers, dtype: Dtype | None, *shape: int) -> Float[Array, ...]:
    """``value`` as positive numbers, such as masses and lengths; see ``numbers``.

    Raises:
        ValueError: the shape differs, or a number is not positive.
    """
    array = numbers(name, value, dtype, *shape)
    if not is_traced(array) and not np.all(np.asarray(array) > 0):
        raise ValueError(f"{name}: expected numbers above zero, got {np.asarray(array)}")
    return array


def count(name: str, value: Numbers) -> int:
    """The length of a list of numbers, one for each part of a system.

    Raises:
        ValueError: it is not a list of one number or more.
    """
    shape = jnp.shape(jnp.asarray(value))
    if len(shape) != 1 or shape[0] < 1:
        raise ValueError(f"{name}: expected a list of one number or more, got shape {shape}")
    return shape[0]


def direction(name: str, value: Numbers, dtype: Dtype | None) -> Float[Array, " 3"]:
    """``value`` as a unit vector (3,).

    Raises:
        ValueError: its norm is not 1; the message gives the deviation.
    """
    array = numbers(name, value, dtype, 3)
    if not is_traced(array):
        gap = abs(float(np.linalg.norm(np.asarray(array))) - 1)
        limit = 10.0 ** (-0.5 * np.finfo(array.dtype).precision)
        if not gap <= limit:
            raise ValueError(
                f"{name}: expected a unit vector, but |{name}| = 1 fails by {gap:.3g}, where up to {limit:.1g} is "
                f"counts as rounding; {name} / norm({name}) is the nearest one"
            )
    return array


def point(name: str, value: Float[Array, "*shape"], action: Action) -> Float[Array, "*shape"]:
    """``value`` itself, a point of the manifold of ``action``.

    Raises:
        ValueError: it is off the manifold; the message gives the deviation.
    """
    action.check_point(value, name)
    return value


def attitude(name: str, value: Numbers | None, dtype: Dtype | None) -> Float[Array, "3 3"]:
    """``value`` as a rotation matrix (3, 3), by default the identity.

    Raises:
        ValueError: it is not a rotation.
    """
    return point(name, numbers(name, jnp.eye(3) if value is None else value, dtype, 3, 3), LeftTranslation(SO3))
