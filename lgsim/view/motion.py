"""What a picture is made of: a machine's states over time, and the poses that they mean."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.dynamics.kinematics import forward_kinematics
from lgsim.lie.conversions import quaternion_from_matrix
from lgsim.multibody.model import Model


@runtime_checkable
class MotionLike(Protocol):
    """States of one machine over time: any object with these attributes, of numpy or JAX arrays.

    Attributes:
        model: The machine.
        time: (N,), s, increasing.
        q: Configurations, (N, nq).
        v: Velocities, (N, nv).
        tau: Joint forces, (N, nv).
    """

    @property
    def model(self) -> Model:
        """The machine."""
        ...

    @property
    def time(self) -> Any:
        """(N,), s."""
        ...

    @property
    def q(self) -> Any:
        """(N, nq)."""
        ...

    @property
    def v(self) -> Any:
        """(N, nv)."""
        ...

    @property
    def tau(self) -> Any:
        """(N, nv)."""
        ...


class Places(NamedTuple):
    """Where frames are.

    Attributes:
        time: (F,), s.
        positions: Of all frames in the world, (F, frames, 3), m.
        quaternions: Their attitudes, (F, frames, 4), w first.
    """

    time: np.ndarray
    positions: np.ndarray
    quaternions: np.ndarray


def times(motion: MotionLike) -> np.ndarray:
    """The times of a motion, checked.

    Raises:
        ValueError: they do not increase, or are not finite, or there are none.
    """
    time = np.asarray(motion.time, float)
    if time.ndim != 1 or not len(time):
        raise ValueError(f"motion.time: expected an array (N,) of at least one time, got shape {time.shape}")
    if not np.all(np.isfinite(time)) or np.any(np.diff(time) <= 0):
        raise ValueError("motion.time: expected finite times that increase, in seconds")
    return time


def series(motion: MotionLike, name: str, width: int) -> np.ndarray:
    """An attribute of a motion (N, width), checked.

    Raises:
        ValueError: it has a wrong shape.
    """
    values = np.asarray(getattr(motion, name), float)
    expected = (len(times(motion)), width)
    if values.shape != expected:
        raise ValueError(f"motion.{name}: expected shape {expected}, one row for each time, got {values.shape}")
    return values


def places(motion: MotionLike, time: np.ndarray) -> Places:
    """The poses of all frames at some times, on the shortest way between the motion's configurations.

    Args:
        motion: The motion.
        time: Within the motion's own times, (F,), s.

    Raises:
        ValueError: ``motion.q`` or ``motion.time`` is not what it should be, or q is not finite.
    """
    model, own = motion.model, times(motion)
    q = series(motion, "q", model.nq)
    if not np.all(np.isfinite(q)):
        first = int(np.argmin(np.all(np.isfinite(q), axis=1)))
        raise ValueError(
            f"motion.q: expected finite numbers, got others from row {first} on, t = {own[first]:g} s;"
            " cut the motion before"
        )
    before = np.clip(np.searchsorted(own, time, side="right") - 1, 0, max(len(own) - 2, 0))
    after = np.minimum(before + 1, len(own) - 1)
    share = (time - own[before]) / np.where(after > before, own[after] - own[before], 1.0)
    start, end, part = (jnp.asarray(x, model.dtype) for x in (q[before], q[after], share[:, None]))
    return Places(time, *(np.asarray(x, float) for x in _places(model, start, end, part)))


def places_of(model: Model, q: Any) -> Places:
    """The poses of all frames in one configuration (nq,)."""
    one = jnp.asarray(q, model.dtype)[None]
    return Places(np.zeros(1), *(np.asarray(x, float) for x in _places(model, one, one, jnp.zeros_like(one[:, :1]))))


@jax.jit
def _places(model: Model, start: Array, end: Array, share: Array) -> tuple[Array, Array]:
    T = forward_kinematics(model, model.interpolate(start, end, share))
    return T[..., :3, 3], quaternion_from_matrix(T[..., :3, :3])
