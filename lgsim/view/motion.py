"""What a picture is made of: a machine's states over time, and the poses of its frames."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.dynamics.kinematics import forward_kinematics
from lgsim.lie.conversions import quaternion_from_matrix
from lgsim.multibody.model import Model


@runtime_checkable
class MotionLike(Protocol):
    """States of one machine over time: any object with these attributes, of numpy or JAX arrays."""

    @property
    def model(self) -> Model:
        """The machine."""
        ...

    @property
    def time(self) -> ArrayLike:
        """Times of the states, (N,), s, increasing."""
        ...

    @property
    def q(self) -> ArrayLike:
        """Configurations, (N, nq)."""
        ...

    @property
    def v(self) -> ArrayLike:
        """Velocities, (N, nv), rad/s or m/s."""
        ...

    @property
    def tau(self) -> ArrayLike:
        """Joint forces, (N, nv), N m or N."""
        ...


class FramePoses(NamedTuple):
    """The poses of all frames of a machine over time, in the world.

    Attributes:
        time: The times, (times,), s.
        positions: The frames' origins, (times, frames, 3), m.
        quaternions: The frames' attitudes, (times, frames, 4), w first.
    """

    time: Float[np.ndarray, " times"]
    positions: Float[np.ndarray, "times frames 3"]
    quaternions: Float[np.ndarray, "times frames 4"]


def times(motion: MotionLike) -> Float[np.ndarray, " N"]:
    """The times of a motion, s, checked.

    Raises:
        ValueError: they do not increase, or are not finite, or there are none.
    """
    time = np.asarray(motion.time, float)
    if time.ndim != 1 or not len(time):
        raise ValueError(f"motion.time: expected an array (N,) of at least one time, got shape {time.shape}")
    if not np.all(np.isfinite(time)) or np.any(np.diff(time) <= 0):
        raise ValueError("motion.time: expected finite times that increase, in seconds")
    return time


def series(motion: MotionLike, name: str, width: int) -> Float[np.ndarray, "N width"]:
    """An attribute of a motion, checked.

    Args:
        name: Name of the attribute, such as "q".
        width: Length of its rows.

    Raises:
        ValueError: the attribute has a wrong shape, or the times are wrong.
    """
    values = np.asarray(getattr(motion, name), float)
    expected = (len(times(motion)), width)
    if values.shape != expected:
        raise ValueError(f"motion.{name}: expected shape {expected}, one row for each time, got {values.shape}")
    return values


def frame_poses(motion: MotionLike, time: Float[np.ndarray, " times"]) -> FramePoses:
    """The poses of all frames at some times, on the shortest way between the motion's configurations.

    Args:
        time: Times within the motion's own, s.

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
    return FramePoses(time, *(np.asarray(x, float) for x in _interpolated_poses(model, start, end, part)))


def frame_poses_at(model: Model, q: ArrayLike) -> FramePoses:
    """The poses of all frames in one configuration q (nq,), at time zero."""
    one = jnp.asarray(q, model.dtype)[None]
    found = _interpolated_poses(model, one, one, jnp.zeros_like(one[:, :1]))
    return FramePoses(np.zeros(1), *(np.asarray(x, float) for x in found))


@jax.jit
def _interpolated_poses(
    model: Model, start: Float[Array, "times nq"], end: Float[Array, "times nq"], share: Float[Array, "times 1"]
) -> tuple[Float[Array, "times frames 3"], Float[Array, "times frames 4"]]:
    """(positions, quaternions) of all frames at shares of the ways from configurations to others."""
    T = forward_kinematics(model, model.interpolate(start, end, share))
    return T[..., :3, 3], quaternion_from_matrix(T[..., :3, :3])
