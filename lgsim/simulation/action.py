"""The configuration space of a machine times its velocities, as a manifold that a group moves."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from lgsim.lie.action import Action
from lgsim.lie.phi import DEXPINV, on_motion
from lgsim.multibody import configuration
from lgsim.multibody.joint import GroupJoint, Joint
from lgsim.multibody.topology import Topology
from lgsim.spatial import Motion, check


class Motions(Action):
    """States (q, v) of a machine in one array: q moves on its group from the right, v adds up.

    The algebra vector is (velocity, derivative of v), (2 nv,). One array, because the cost of a step on CPU grows with
    their number.
    """

    topology: Topology = eqx.field(static=True)

    @property
    def dim(self) -> int:
        """Twice the degrees of freedom."""
        return 2 * self.topology.nv

    @property
    def length(self) -> int:
        """Numbers in a state."""
        return self.topology.nq + self.topology.nv

    def move(self, xi: Array, y: Array) -> Array:
        """``retract`` of q, the sum of v."""
        tree = self.topology
        xi, y = check.arguments(xi=(xi, (self.dim,)), y=(y, (self.length,)))
        if not tree.groups:
            return y + xi
        q = configuration.retract(tree, y[..., : tree.nq], xi[..., : tree.nv])
        return jnp.concatenate([q, y[..., tree.nq :] + xi[..., tree.nv :]], axis=-1)

    def dexpinv(self, sigma: Array, xi: Array) -> Array:
        """At ``-sigma`` in the algebra of each joint that is a group: velocities move it from the right."""
        return self._on_groups(sigma, xi, lambda s, x: on_motion(DEXPINV, -s, x), lambda s, x: x)

    def bracket(self, a: Array, b: Array) -> Array:
        """Minus the bracket of each joint that is a group."""
        return self._on_groups(a, b, lambda a, b: -a.cross(b), lambda a, b: jnp.zeros_like(b))

    def difference(self, y0: Array, y1: Array) -> Array:
        """The smallest xi with ``move(xi, y0) = y1``."""
        tree = self.topology
        y0, y1 = check.arguments(y0=(y0, (self.length,)), y1=(y1, (self.length,)))
        along = configuration.difference(tree, y0[..., : tree.nq], y1[..., : tree.nq])
        return jnp.concatenate([along, y1[..., tree.nq :] - y0[..., tree.nq :]], axis=-1)

    def sizes(self, y: Array) -> Array:
        """1 rad or 1 m for the configuration, v itself for v."""
        return jnp.concatenate([jnp.ones(self.topology.nv, y.dtype), y[self.topology.nq :]])

    def _on_groups(
        self, a: Array, b: Array, twists: Callable[[Motion, Motion], Motion], plain: Callable[[Array, Array], Array]
    ) -> Array:
        """A bilinear map of the algebra: ``twists`` on se(3) for joints that are groups, ``plain`` for all else."""
        tree = self.topology
        a, b = check.arguments(a=(a, (self.dim,)), b=(b, (self.dim,)))
        if not tree.groups:
            return plain(a, b)

        def each(joint: Joint, a: list[Array], b: list[Array]) -> list[Array]:
            if not isinstance(joint, GroupJoint):
                return [plain(x, y) for x, y in zip(a, b, strict=True)]
            return joint.rates(twists(joint.twist(a), joint.twist(b)))

        along = configuration.by_joint(tree, each, a=(a[..., : tree.nv], "v"), b=(b[..., : tree.nv], "v"))
        return jnp.concatenate([along, plain(a[..., tree.nv :], b[..., tree.nv :])], axis=-1)
