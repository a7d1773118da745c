"""Outputs of a study: functions of a ``SampledMotion``; any function of it that JAX can trace is an output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Shaped

from lgsim.dynamics.distances.distance import distance
from lgsim.dynamics.kinematics import forward_kinematics, frame_index
from lgsim.lie import conversions
from lgsim.lie.group import norm
from lgsim.montecarlo.rollout import SampledMotion
from lgsim.simulation import sensors
from lgsim.simulation.between_states import Quantity, States, extreme, first_crossing


def final_q(motion: SampledMotion) -> Float[Array, " nq"]:
    """The final configuration."""
    return motion.q[-1]


def final_v(motion: SampledMotion) -> Float[Array, " nv"]:
    """The final velocity, rad/s or m/s."""
    return motion.v[-1]


def peak_torque(motion: SampledMotion) -> Float[Array, " nv"]:
    """The largest ``|tau|`` of each degree of freedom over the saved states, N m or N."""
    return jnp.max(jnp.abs(motion.tau), axis=0)


def peak_speed(motion: SampledMotion) -> Float[Array, " nv"]:
    """The largest ``|v|`` of each degree of freedom over the saved states, rad/s or m/s."""
    return jnp.max(jnp.abs(motion.v), axis=0)


def _every_step(motion: SampledMotion) -> States:
    """The states at all steps; the saved ones if an output was called outside of a study."""
    return States(motion.time, motion.q, motion.v) if motion.steps is None else motion.steps


class Extreme(eqx.Module):
    """The largest or smallest value of a quantity over the motion, see ``maximum`` and ``minimum``.

    Attributes:
        sign: 1 for the largest value, -1 for the smallest.
    """

    quantity: Quantity
    sign: int = eqx.field(static=True)
    uses_all_steps: ClassVar[bool] = True

    def __call__(self, motion: SampledMotion) -> Float[Array, ""]:
        """The value, in the quantity's unit."""
        return extreme(self.quantity, self.sign, motion.model, _every_step(motion))[0]


class CrossingTime(eqx.Module):
    """The first time at which a quantity crosses a value, see ``time_of``."""

    quantity: Quantity
    value: ArrayLike
    rising: bool | None = eqx.field(static=True)
    uses_all_steps: ClassVar[bool] = True

    def __call__(self, motion: SampledMotion) -> Float[Array, ""]:
        """The time, s."""
        value = jnp.asarray(self.value, motion.q.dtype)
        return first_crossing(self.quantity, value, self.rising, motion.model, _every_step(motion))


def maximum(quantity: Quantity) -> Extreme:
    """The output with the largest value of a quantity over the motion: at all steps, and interpolated between them.

    It does not depend on ``save_every``. The interpolation on the group has an error O(dt^4), of velocities O(dt^3),
    which is part of the study's integration error.

    Args:
        quantity: ``quantity(t, q, v, model)``, a scalar that JAX can trace, such as ``lambda t, q, v, model: q[0]``.
    """
    return Extreme(quantity, 1)


def minimum(quantity: Quantity) -> Extreme:
    """The output with the smallest value of a quantity over the motion, see ``maximum``."""
    return Extreme(quantity, -1)


def time_of(quantity: Quantity, value: ArrayLike = 0.0, *, rising: bool | None = None) -> CrossingTime:
    """The output with the first time at which a quantity crosses a value, s; infinite if it does not.

    A motion that starts at the value crosses it when it returns. See ``maximum``.

    Args:
        value: The value, in the quantity's unit.
        rising: True for upward crossings only, False for downward ones only, None for both.
    """
    return CrossingTime(quantity, value, rising)


class LeastClearance(eqx.Module):
    """The minimum clearance of geometry pairs over the saved states, m, and its first time, s.

    Attributes:
        pairs: Names of geometries and names of the others, see ``lgsim.distance``; by default all of
            ``model.solid_pairs()``.
    """

    pairs: tuple[tuple[str, ...], tuple[str, ...]] | None = eqx.field(static=True, default=None)

    def __call__(self, motion: SampledMotion) -> Float[Array, 2]:
        """(minimum clearance, its time)."""
        pairs = motion.model.solid_pairs() if self.pairs is None else self.pairs
        least = jnp.min(distance(motion.model, motion.q, *pairs), axis=1)
        at = jnp.argmin(least)
        return jnp.stack([least[at], motion.time[at]])


class FinalPose(eqx.Module):
    """The final pose of a frame in the world."""

    frame: str = eqx.field(static=True)

    def __call__(self, motion: SampledMotion) -> Float[Array, "4 4"]:
        """The pose."""
        return sensors.frame_pose(motion.model, self.frame, motion.q[-1])


class FinalAttitude(eqx.Module):
    """The final attitude of a frame in the world, as a unit quaternion."""

    frame: str = eqx.field(static=True)

    def __call__(self, motion: SampledMotion) -> Float[Array, " 4"]:
        """The quaternion (w, x, y, z)."""
        return conversions.quaternion_from_matrix(FinalPose(self.frame)(motion)[:3, :3])


class FinalPosition(eqx.Module):
    """The final position of a frame's origin in the world, m."""

    frame: str = eqx.field(static=True)

    def __call__(self, motion: SampledMotion) -> Float[Array, " 3"]:
        """The position, m."""
        return FinalPose(self.frame)(motion)[:3, 3]


class FinalDistance(eqx.Module):
    """The final distance of a frame's origin from a point, m.

    Attributes:
        point: The point in the world, (3,), m.
    """

    frame: str = eqx.field(static=True)
    point: ArrayLike

    def __call__(self, motion: SampledMotion) -> Float[Array, ""]:
        """The distance, m."""
        return norm(FinalPosition(self.frame)(motion) - self.point)


class LargestDistance(eqx.Module):
    """The largest distance of a frame's origin from a point over the saved states, m.

    Attributes:
        point: The point in the world, (3,), m.
    """

    frame: str = eqx.field(static=True)
    point: ArrayLike

    def __call__(self, motion: SampledMotion) -> Float[Array, ""]:
        """The distance, m."""
        index = frame_index(motion.model.topology, self.frame)
        positions = forward_kinematics(motion.model, motion.q)[:, index, :3, 3]
        return jnp.max(norm(positions - jnp.asarray(self.point)[None, :]))


class Subsampled(eqx.Module):
    """The motion at uniformly spaced saved states, including the first and the last one.

    Attributes:
        count: The number of states.
    """

    count: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.count < 2:
            raise ValueError(f"count: expected at least 2 states, got {self.count}")

    def __call__(self, motion: SampledMotion) -> Float[Array, "count nq_nv"]:
        """The states: q and v concatenated."""
        indices = np.round(np.linspace(0, motion.q.shape[0] - 1, self.count)).astype(int)
        return jnp.concatenate([motion.q[indices], motion.v[indices]], axis=1)


class OutOfBounds(eqx.Module):
    """A failure criterion: an output leaves an interval.

    Attributes:
        entry: The flat index of the entry that is compared; None for any entry.
        low: Values below it are failures.
        high: Values above it are failures.
    """

    output: str = eqx.field(static=True)
    entry: int | None = eqx.field(static=True, default=None)
    low: ArrayLike = -np.inf
    high: ArrayLike = np.inf

    def __call__(self, columns: Mapping[str, Shaped[Array, " ..."]]) -> Bool[Array, ""]:
        """True if a sample with these outputs failed."""
        x = columns[self.output].ravel()
        x = x if self.entry is None else x[self.entry]
        return jnp.any((x < self.low) | (x > self.high))
