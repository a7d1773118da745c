"""States of a model over time, and the poses of its frames, for plots and scenes."""

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
    """States of one model over time: any object with these attributes, of NumPy or JAX arrays."""

    @property
    def model(self) -> Model:
        """The model."""
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
    """Poses of all frames of a model over time, in the world.

    Attributes:
        time: Times, (times,), s.
        positions: Origins of the frames, (times, frames, 3), m.
        quaternions: Attitudes of the frames, (times, frames, 4), w first.
    """

    time: Float[np.ndarray, " times"]
    positions: Float[np.ndarray, "times frames 3"]
    quaternions: Float[np.ndarray, "times frames 4"]


def times(motion: MotionLike) -> Float[np.ndarray, " N"]:
    """Checked times of a motion, s.

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
    """Checked attribute of a motion.

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
    """Poses of all frames at some times, by geodesic interpolation of the configurations.

    Args:
        time: Times within those of the motion, s.

    Raises:
        ValueError: ``motion.q`` or ``motion.time`` is invalid, or q is not finite.
    """
    model, own = motion.model, times(motion)
    q = series(motion, "q", model.nq)
    if not np.all(np.isfinite(q)):
        first = int(np.argmin(np.all(np.isfinite(q), axis=1)))
        raise ValueError(
            f"motion.q: expected finite values, got others from row {first} on, t = {own[first]:g} s;"
            " truncate the motion before"
        )
    before = np.clip(np.searchsorted(own, time, side="right") - 1, 0, max(len(own) - 2, 0))
    after = np.minimum(before + 1, len(own) - 1)
    share = (time - own[before]) / np.where(after > before, own[after] - own[before], 1.0)
    start, end, part = (jnp.asarray(x, model.dtype) for x in (q[before], q[after], share[:, None]))
    return FramePoses(time, *(np.asarray(x, float) for x in _interpolated_poses(model, start, end, part)))


def frame_poses_at(model: Model, q: ArrayLike) -> FramePoses:
    """Poses of all frames in one configuration q (nq,), at time zero."""
    one = jnp.asarray(q, model.dtype)[None]
    found = _interpolated_poses(model, one, one, jnp.zeros_like(one[:, :1]))
    return FramePoses(np.zeros(1), *(np.asarray(x, float) for x in found))


@jax.jit
def _interpolated_poses(
    model: Model, start: Float[Array, "times nq"], end: Float[Array, "times nq"], share: Float[Array, "times 1"]
) -> tuple[Float[Array, "times frames 3"], Float[Array, "times frames 4"]]:
    """Positions and quaternions of all frames between two configurations."""
    T = forward_kinematics(model, model.interpolate(start, end, share))
    return T[..., :3, 3], quaternion_from_matrix(T[..., :3, :3])
