"""What is kept of each motion: functions of a ``Flight``; any function of it that JAX traces will do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.dynamics.frame_distance import Capsule, frame_distance
from lgsim.dynamics.kinematics import forward_kinematics, frame_index
from lgsim.lie import conversions
from lgsim.lie.group import norm
from lgsim.montecarlo.rollout import SampledMotion
from lgsim.simulation import sensors


def final_q(flight: SampledMotion) -> Array:
    """The configuration at the end, (nq,)."""
    return flight.q[-1]


def final_v(flight: SampledMotion) -> Array:
    """The velocity at the end, (nv,)."""
    return flight.v[-1]


def peak_torque(flight: SampledMotion) -> Array:
    """The largest ``|tau|`` of each degree of freedom at the saved states, (nv,), N m or N."""
    return jnp.max(jnp.abs(flight.tau), axis=0)


def peak_speed(flight: SampledMotion) -> Array:
    """The largest ``|v|`` of each degree of freedom at the saved states, (nv,)."""
    return jnp.max(jnp.abs(flight.v), axis=0)


class MinimumClearance(eqx.Module):
    """The smallest distance of each pair of capsules at the saved states, (pairs,), m; see ``frame_distance``.

    Attributes:
        pairs: Of ``lgsim.dynamics.Capsule``.
    """

    pairs: Sequence[tuple[Capsule, Capsule]]

    def __call__(self, flight: SampledMotion) -> Array:
        """The distances' minimum."""
        return jnp.min(frame_distance(flight.model, flight.q, self.pairs), axis=0)


class FinalPose(eqx.Module):
    """The pose of a frame at the end, (4, 4).

    Attributes:
        frame: Name of the frame.
    """

    frame: str = eqx.field(static=True)

    def __call__(self, flight: SampledMotion) -> Array:
        """The pose."""
        return sensors.frame_pose(flight.model, self.frame, flight.q[-1])


class FinalAttitude(eqx.Module):
    """The attitude of a frame at the end as a unit quaternion, (4,).

    Attributes:
        frame: Name of the frame.
    """

    frame: str = eqx.field(static=True)

    def __call__(self, flight: SampledMotion) -> Array:
        """The quaternion (w, x, y, z)."""
        return conversions.quaternion_from_matrix(FinalPose(self.frame)(flight)[:3, :3])


class FinalPosition(eqx.Module):
    """The position of a frame's origin at the end, (3,), m.

    Attributes:
        frame: Name of the frame.
    """

    frame: str = eqx.field(static=True)

    def __call__(self, flight: SampledMotion) -> Array:
        """The position in the world."""
        return FinalPose(self.frame)(flight)[:3, 3]


class FinalDistance(eqx.Module):
    """How far a frame's origin is from a point at the end, m.

    Attributes:
        frame: Name of the frame.
        point: In the world, (3,), m.
    """

    frame: str = eqx.field(static=True)
    point: Any

    def __call__(self, flight: SampledMotion) -> Array:
        """The distance."""
        return norm(FinalPosition(self.frame)(flight) - self.point)


class LargestDistance(eqx.Module):
    """How far a frame's origin is from a point at most, of all saved states, m.

    Attributes:
        frame: Name of the frame.
        point: In the world, (3,), m.
    """

    frame: str = eqx.field(static=True)
    point: Any

    def __call__(self, flight: SampledMotion) -> Array:
        """The distance."""
        index = frame_index(flight.model.topology, self.frame)
        places = forward_kinematics(flight.model, flight.q)[:, index, :3, 3]
        return jnp.max(norm(places - jnp.asarray(self.point)[None, :]))


class Subsampled(eqx.Module):
    """The motion at some of the saved states, (count, nq + nv): q and v beside each other.

    Attributes:
        count: How many states, evenly spread, the first and the last among them.
    """

    count: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.count < 2:
            raise ValueError(f"count: expected at least 2 states, got {self.count}")

    def __call__(self, flight: SampledMotion) -> Array:
        """The states."""
        places = np.round(np.linspace(0, flight.q.shape[0] - 1, self.count)).astype(int)
        return jnp.concatenate([flight.q[places], flight.v[places]], axis=1)


class OutOfBounds(eqx.Module):
    """Whether an output leaves an interval: a failure of a study.

    Attributes:
        output: Its name.
        entry: Which of its numbers, counted flat; None for any of them.
        low, high: What lies below or above has failed.
    """

    output: str = eqx.field(static=True)
    entry: int | None = eqx.field(static=True, default=None)
    low: Any = -np.inf
    high: Any = np.inf

    def __call__(self, columns: dict[str, Array]) -> Array:
        """Whether it failed."""
        x = columns[self.output].ravel()
        x = x if self.entry is None else x[self.entry]
        return jnp.any((x < self.low) | (x > self.high))


def named(outputs: Any) -> dict[str, Any]:
    """Outputs by name; a single function and a sequence of them go by their own names.

    Raises:
        TypeError: one is no function.
    """
    given = outputs if isinstance(outputs, dict) else {getattr(f, "__name__", type(f).__name__): f for f in outputs}
    for name, f in given.items():
        if not callable(f):
            raise TypeError(f"outputs: expected functions of a motion, got {f!r} for {name!r}")
    return dict(given)
