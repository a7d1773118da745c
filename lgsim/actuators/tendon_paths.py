"""Tendons that run through points of a model and wrap around spheres and cylinders."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.actuators.tendon_wraps import distance, wrapped_length
from lgsim.dynamics.jacobians import frame_jacobian
from lgsim.dynamics.kinematics import forward_kinematics, frame_index
from lgsim.multibody.model import Model
from lgsim.multibody.topology import ROOT


class Segment(NamedTuple):
    """A part of a tendon between two points.

    Attributes:
        tendon: Index of the tendon.
        start: Index of its first point.
        end: Index of its second point.
        wrap: Index of the shape that it may wrap around, or None.
    """

    tendon: int
    start: int
    end: int
    wrap: int | None = None


class TendonPaths(eqx.Module):
    """The paths of tendons: ``L(q)``, the weighted sum of the lengths of their segments.

    Attributes:
        segments: The segments of all tendons; static.
        shares: Weight of each segment in its tendon's length (segments,): 1, behind a pulley 1/divisor.
        point_frames: Name of the frame of each point, or "world"; static.
        points: The points in their frames (points, 3), m.
        wrap_frames: Name of the frame of each shape; static.
        wrap_poses: Poses of the shapes in their frames (wraps, 4, 4); a cylinder is along its z axis.
        radii: Radii of the shapes (wraps,), m.
        sides: A point of each shape's frame of reference on the side where tendons pass (wraps, 3), m.
        cylinders: True for each shape that is a cylinder, False for a sphere; static.
        sided: True for each shape with a side; static.
        inside: True for each shape that tendons pass through, touching it from inside; static.
        count: Number of tendons; static.

    Source: MuJoCo's documentation, chapter "Modeling", section "Tendons".
    """

    segments: tuple[Segment, ...] = eqx.field(static=True)
    shares: Float[Array, " segments"]
    point_frames: tuple[str, ...] = eqx.field(static=True)
    points: Float[Array, "points 3"]
    wrap_frames: tuple[str, ...] = eqx.field(static=True)
    wrap_poses: Float[Array, "wraps 4 4"]
    radii: Float[Array, " wraps"]
    sides: Float[Array, "wraps 3"]
    cylinders: tuple[bool, ...] = eqx.field(static=True)
    sided: tuple[bool, ...] = eqx.field(static=True)
    inside: tuple[bool, ...] = eqx.field(static=True)
    count: int = eqx.field(static=True)

    def lengths(self, model: Model, q: Float[Array, " nq"]) -> Float[Array, " count"]:
        """Lengths of the tendons, m."""
        return self.lengths_and_moments(model, q)[0]

    def lengths_and_moments(
        self, model: Model, q: Float[Array, " nq"]
    ) -> tuple[Float[Array, " count"], Float[Array, "count nv"]]:
        """(lengths of the tendons, m, moments M with ``L' = M v``, m/rad or 1)."""
        names = tuple(name for name in dict.fromkeys((*self.point_frames, *self.wrap_frames)) if name != ROOT)
        place = {ROOT: 0} | {name: i for i, name in enumerate(names, 1)}
        poses = forward_kinematics(model, q)[np.array([frame_index(model.topology, name) for name in names], int)]
        poses = jnp.concatenate([jnp.eye(4, dtype=poses.dtype)[None], poses])
        jacobians = jnp.zeros((1, 6, model.nv), poses.dtype)
        jacobians = jnp.concatenate([jacobians, *(frame_jacobian(model, q, name)[None] for name in names)])
        lengths = jnp.zeros(self.count, poses.dtype)
        # the wrench of a unit force along each tendon on each frame
        wrenches = jnp.zeros((self.count, len(poses), 6), poses.dtype)
        for bends in (False, True):
            part = [Segment(*segment) for segment in self.segments]
            rows = np.array([i for i, segment in enumerate(part) if (segment.wrap is not None) == bends], int)
            if not len(rows):
                continue
            part = [part[i] for i in rows]
            start, end = (np.array([getattr(s, key) for s in part]) for key in ("start", "end"))
            where = [[self.point_frames[s.start] for s in part], [self.point_frames[s.end] for s in part]]
            given = [self.points[start], self.points[end]]
            if bends:
                wrap = np.array([s.wrap for s in part])
                where.append([self.wrap_frames[i] for i in wrap])
                flags = (jnp.asarray(np.array(x)[wrap]) for x in (self.cylinders, self.sided, self.inside))
                given += [self.wrap_poses[wrap], self.radii[wrap], self.sides[wrap], *flags]
            frames = np.array([[place[name] for name in names] for names in where], int).T
            tendon = np.array([s.tendon for s in part])
            measured = _bent if bends else _straight
            still = jnp.zeros((*frames.shape, 6), poses.dtype)
            found, slopes = jax.vmap(jax.value_and_grad(measured))(still, poses[frames], *given)
            share = self.shares[rows]
            lengths = lengths.at[tendon].add(share * found)
            wrenches = wrenches.at[tendon[:, None], frames].add(share[:, None, None] * slopes)
        return lengths, jnp.einsum("tfi,fin->tn", wrenches, jacobians)


def _moved(twist: Float[Array, " 6"], T: Float[Array, "4 4"], p: Float[Array, " 3"]) -> Float[Array, " 3"]:
    """A point of a frame in the world, after a small twist of the frame."""
    return T[:3, :3] @ (p + twist[:3] + jnp.cross(twist[3:], p)) + T[:3, 3]


def _straight(
    twists: Float[Array, "2 6"], T: Float[Array, "2 4 4"], a: Float[Array, " 3"], b: Float[Array, " 3"]
) -> Float[Array, ""]:
    return distance(_moved(twists[0], T[0], a), _moved(twists[1], T[1], b))


def _bent(
    twists: Float[Array, "3 6"],
    T: Float[Array, "3 4 4"],
    a: Float[Array, " 3"],
    b: Float[Array, " 3"],
    pose: Float[Array, "4 4"],
    radius: Float[Array, ""],
    side: Float[Array, " 3"],
    *flags: Array,
) -> Float[Array, ""]:
    is_cylinder, has_side, is_inside = flags

    def at_shape(k: int, point: Float[Array, " 3"]) -> Float[Array, " 3"]:
        x = T[2, :3, :3].T @ (_moved(twists[k], T[k], point) - T[2, :3, 3])
        # the frame of the shape moves by its twist, the point of the world does not
        return pose[:3, :3].T @ (x - twists[2, :3] - jnp.cross(twists[2, 3:], x) - pose[:3, 3])

    return wrapped_length(at_shape(0, a), at_shape(1, b), radius, is_cylinder, side, has_side, is_inside)
