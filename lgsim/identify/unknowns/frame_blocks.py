"""Unknown frames: placements of joints and the direction of gravity; and blocks with shared coordinates."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int

from lgsim.identify.unknowns.block import Block, select_names
from lgsim.identify.unknowns.plant import NumbersLike, Plant
from lgsim.lie import se3, so3
from lgsim.multibody.model import Model


class Placements(Block):
    """Poses of joints in their parents, as twists (v, w) from the prior poses in the joint frames, m and rad.

    Attributes:
        joints: Names of the joints, by default all.
    """

    joints: Sequence[str] | None = eqx.field(static=True, default=None)
    prior_deviation: NumbersLike | None = None

    def indices(self, model: Model) -> Int[np.ndarray, " joints"]:
        """Indices of the joints in the model; raises ValueError for an unknown one."""
        return np.array([model.joint_names.index(n) for n in select_names("joints", self.joints, model.joint_names)])

    def labels(self, plant: Plant) -> list[str]:
        names = select_names("joints", self.joints, plant.model.joint_names)
        return [f"{c} of the placement of {name}" for name in names for c in ("x", "y", "z", "rx", "ry", "rz")]

    def apply(self, plant: Plant, x: Float[Array, " size"]) -> Plant:
        at = self.indices(plant.model)
        moved = plant.model.placements[at] @ se3.exp(x.reshape(-1, 6))
        return eqx.tree_at(lambda p: p.model.placements, plant, plant.model.placements.at[at].set(moved))

    def values(self, plant: Plant) -> dict[str, Float[Array, ""]]:
        names = select_names("joints", self.joints, plant.model.joint_names)
        origins = plant.model.placements[self.indices(plant.model), :3, 3]
        return {f"{c} of {n}, m": origins[i, k] for i, n in enumerate(names) for k, c in enumerate("xyz")}


class GravityDirection(Block):
    """The direction of gravity of known magnitude: rotation angles about two axes normal to it, rad."""

    prior_deviation: NumbersLike | None = None

    def labels(self, plant: Plant) -> list[str]:
        return ["first tilt of gravity", "second tilt of gravity"]

    def apply(self, plant: Plant, x: Float[Array, " 2"]) -> Plant:
        g = plant.model.gravity
        least = jnp.eye(3, dtype=g.dtype)[jnp.argmin(jnp.abs(g))]
        first = jnp.cross(g, least)
        second = jnp.cross(g, first)
        axes = jnp.stack([first / jnp.linalg.norm(first), second / jnp.linalg.norm(second)], axis=1)
        return eqx.tree_at(lambda p: p.model.gravity, plant, so3.exp(axes @ x) @ g)

    def values(self, plant: Plant) -> dict[str, Float[Array, ""]]:
        return {f"gravity along {c}, m/s^2": plant.model.gravity[k] for k, c in enumerate("xyz")}


class SharedBlock(Block):
    """A block whose bodies or joints share the same coordinates, for example left and right legs.

    Attributes:
        block: A block of at least two bodies or joints.
        members: Number of the bodies or joints.
        signs: +1 or -1 for each coordinate (members, size), for mirrored bodies; by default +1.
    """

    block: Block
    members: int = eqx.field(static=True)
    signs: NumbersLike
    prior_deviation: NumbersLike | None

    def __init__(
        self,
        block: Block,
        members: int = 2,
        signs: NumbersLike = 1.0,
        prior_deviation: NumbersLike | None = None,
    ) -> None:
        """By default there is no prior, except for speeds of dry friction, which keep that of the block."""
        if prior_deviation is None and block.has_speeds:
            prior_deviation = block.prior_deviation
        self.block, self.members, self.signs, self.prior_deviation = block, members, signs, prior_deviation

    def labels(self, plant: Plant) -> list[str]:
        own = self.block.labels(plant)
        if self.members < 1 or len(own) % self.members:
            raise ValueError(f"members: expected a divisor of the block's {len(own)} coordinates, got {self.members}")
        each = len(own) // self.members
        return [" and ".join(own[i::each]) for i in range(each)]

    def apply(self, plant: Plant, x: Float[Array, " size"]) -> Plant:
        every = jnp.broadcast_to(x[None], (self.members, x.size)) * jnp.asarray(self.signs, x.dtype)
        return self.block.apply(plant, every.reshape(-1))

    @property
    def of_friction(self) -> bool:
        return self.block.of_friction

    @property
    def has_speeds(self) -> bool:
        return self.block.has_speeds

    def within_speeds(
        self, plant: Plant, lowest: Float[Array, " nv"], highest: Float[Array, " nv"]
    ) -> tuple[Plant, SharedBlock]:
        # members that share a speed need a common interval
        low, high = (jnp.full_like(lowest, x) for x in (jnp.min(lowest), jnp.max(highest)))
        plant, block = self.block.within_speeds(plant, low, high)
        return plant, SharedBlock(block, self.members, self.signs, self.prior_deviation)

    def value_limits(self, plant: Plant) -> dict[str, tuple[float, float]]:
        return self.block.value_limits(plant)

    def straight(self, x: Float[Array, " size"], dx: Float[Array, " size"]) -> Float[Array, " size"]:
        s = self._first_signs(x)
        return s * self.block.straight(s * x, s * dx)

    def reach(self, x: Float[Array, " size"], dx: Float[Array, " size"]) -> Float[Array, ""]:
        s = self._first_signs(x)
        return self.block.reach(s * x, s * dx)

    @property
    def has_edge(self) -> bool:
        return self.block.has_edge

    def barrier(self, x: Float[Array, " size"]) -> Float[Array, ""]:
        return self.block.barrier(self._first_signs(x) * x)

    def outer_map(self, x: Float[Array, " size"]) -> Float[Array, "size size"]:
        s = self._first_signs(x)
        return s[:, None] * self.block.outer_map(s * x) * s[None, :]

    def linear(self, x: Float[np.ndarray, " size"]) -> Float[np.ndarray, " size"]:
        s = np.broadcast_to(np.asarray(self.signs), (self.members, x.size))[0]
        return s * self.block.linear(s * x)

    def from_linear(self, y: Float[np.ndarray, " size"]) -> Float[np.ndarray, " size"]:
        s = np.broadcast_to(np.asarray(self.signs), (self.members, y.size))[0]
        return s * self.block.from_linear(s * y)

    def pencils(self, size: int) -> Float[np.ndarray, "bodies n n k"]:
        own = self.block.pencils(size)
        s = np.broadcast_to(np.asarray(self.signs), (self.members, size))[0]
        return own * s.reshape(len(own), 1, 1, -1) if len(own) else own

    def edges(
        self, plant: Plant, x: Float[np.ndarray, " size"], covariance: Float[np.ndarray, "size size"]
    ) -> list[str]:
        signs = np.broadcast_to(np.asarray(self.signs), (self.members, x.size))
        every = (signs * x[None]).reshape(-1)
        spread = np.kron(np.eye(self.members, dtype=x.dtype), np.ones_like(covariance))
        return self.block.edges(plant, every, spread * np.tile(covariance, (self.members, self.members)) * (
            signs.reshape(-1)[:, None] * signs.reshape(-1)[None, :]
        ))  # fmt: skip

    def _first_signs(self, x: Float[Array, " size"]) -> Float[Array, " size"]:
        """The signs of the first member."""
        return jnp.broadcast_to(jnp.asarray(self.signs, x.dtype), (self.members, x.size))[0]

    def value_array(self, plant: Plant) -> Float[Array, " values"]:
        return self.block.value_array(plant)

    def values(self, plant: Plant) -> dict[str, Float[Array, ""]]:
        return self.block.values(plant)

    def affine_indices(self, model: Model) -> Int[np.ndarray, " moved"] | None:
        return self.block.affine_indices(model)

    def bounds(self, plant: Plant) -> tuple[ArrayLike, ArrayLike]:
        size = len(self.block.labels(plant))
        own = (jnp.broadcast_to(jnp.asarray(b), (size,)) for b in self.block.bounds(plant))
        low, high = (b.reshape(self.members, -1) for b in own)
        signs = jnp.broadcast_to(jnp.asarray(self.signs), low.shape)
        low, high = jnp.where(signs > 0, low, -high), jnp.where(signs > 0, high, -low)
        return jnp.max(low, axis=0), jnp.min(high, axis=0)
