"""What is kept of each motion: functions of a ``SampledMotion``; any function of it that JAX traces will do."""

from __future__ import annotations

from collections.abc import Mapping

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


def final_q(motion: SampledMotion) -> Float[Array, " nq"]:
    """The configuration at the end."""
    return motion.q[-1]


def final_v(motion: SampledMotion) -> Float[Array, " nv"]:
    """The velocity at the end, rad/s or m/s."""
    return motion.v[-1]


def peak_torque(motion: SampledMotion) -> Float[Array, " nv"]:
    """The largest ``|tau|`` of each degree of freedom at the saved states, N m or N."""
    return jnp.max(jnp.abs(motion.tau), axis=0)


def peak_speed(motion: SampledMotion) -> Float[Array, " nv"]:
    """The largest ``|v|`` of each degree of freedom at the saved states, rad/s or m/s."""
    return jnp.max(jnp.abs(motion.v), axis=0)


class LeastClearance(eqx.Module):
    """The least distance of solids at the saved states, m, and the first time of it, s.

    Attributes:
        pairs: Names of solids and names of the others, see ``lgsim.distance``; by default all of
            ``model.solid_pairs()``.
    """

    pairs: tuple[tuple[str, ...], tuple[str, ...]] | None = eqx.field(static=True, default=None)

    def __call__(self, motion: SampledMotion) -> Float[Array, 2]:
        """(the least distance, its time)."""
        pairs = motion.model.solid_pairs() if self.pairs is None else self.pairs
        least = jnp.min(distance(motion.model, motion.q, *pairs), axis=1)
        at = jnp.argmin(least)
        return jnp.stack([least[at], motion.time[at]])


class FinalPose(eqx.Module):
    """The pose of a frame at the end, in the world."""

    frame: str = eqx.field(static=True)

    def __call__(self, motion: SampledMotion) -> Float[Array, "4 4"]:
        """The pose."""
        return sensors.frame_pose(motion.model, self.frame, motion.q[-1])


class FinalAttitude(eqx.Module):
    """The attitude of a frame at the end, in the world, as a unit quaternion."""

    frame: str = eqx.field(static=True)

    def __call__(self, motion: SampledMotion) -> Float[Array, " 4"]:
        """The quaternion (w, x, y, z)."""
        return conversions.quaternion_from_matrix(FinalPose(self.frame)(motion)[:3, :3])


class FinalPosition(eqx.Module):
    """The position of a frame's origin at the end, in the world, m."""

    frame: str = eqx.field(static=True)

    def __call__(self, motion: SampledMotion) -> Float[Array, " 3"]:
        """The position, m."""
        return FinalPose(self.frame)(motion)[:3, 3]


class FinalDistance(eqx.Module):
    """The distance of a frame's origin from a point at the end, m.

    Attributes:
        point: The point in the world, (3,), m.
    """

    frame: str = eqx.field(static=True)
    point: ArrayLike

    def __call__(self, motion: SampledMotion) -> Float[Array, ""]:
        """The distance, m."""
        return norm(FinalPosition(self.frame)(motion) - self.point)


class LargestDistance(eqx.Module):
    """The largest distance of a frame's origin from a point at the saved states, m.

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
    """The motion at evenly spaced saved states, the first and the last among them.

    Attributes:
        count: The number of states.
    """

    count: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.count < 2:
            raise ValueError(f"count: expected at least 2 states, got {self.count}")

    def __call__(self, motion: SampledMotion) -> Float[Array, "count nq_nv"]:
        """The states: q and v beside each other."""
        indices = np.round(np.linspace(0, motion.q.shape[0] - 1, self.count)).astype(int)
        return jnp.concatenate([motion.q[indices], motion.v[indices]], axis=1)


class OutOfBounds(eqx.Module):
    """Whether an output leaves an interval: a failure of a study.

    Attributes:
        entry: The index, counted flat, of the one of its numbers that counts; None where any of them does.
        low: Numbers below it have failed.
        high: Numbers above it have failed.
    """

    output: str = eqx.field(static=True)
    entry: int | None = eqx.field(static=True, default=None)
    low: ArrayLike = -np.inf
    high: ArrayLike = np.inf

    def __call__(self, columns: Mapping[str, Shaped[Array, " ..."]]) -> Bool[Array, ""]:
        """Whether the sample of these outputs failed."""
        x = columns[self.output].ravel()
        x = x if self.entry is None else x[self.entry]
        return jnp.any((x < self.low) | (x > self.high))
