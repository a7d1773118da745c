"""The state space of a model, configurations times velocities, as a manifold with a group action."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import native_with_derivatives
from lgsim.dynamics.loops.restoration import restored
from lgsim.lie.action import Action
from lgsim.lie.ad_functions import DEXPINV, on_motion
from lgsim.multibody import block_diagonal, configuration
from lgsim.multibody.joint import GroupJoint, Joint
from lgsim.multibody.topology import Topology
from lgsim.simulation.variational.machine_method import MachineField
from lgsim.support import check


class StateSpace(Action):
    """States (q, v, z) of a model in one array: q is moved by its group from the right, v and z by addition.

    The algebra vector is (velocity, derivative of v, derivative of z), (2 nv + further,). A single array is used since
    the cost of a step on CPU grows with the number of arrays.

    Attributes:
        further: The length of z, the number of actuator states.
    """

    topology: Topology = eqx.field(static=True)
    further: int = eqx.field(static=True, default=0)

    @property
    def dim(self) -> int:
        """The length of an algebra vector: twice the degrees of freedom plus ``further``."""
        return 2 * self.topology.nv + self.further

    @property
    def length(self) -> int:
        """The length of a state."""
        return self.topology.nq + self.topology.nv + self.further

    def move(
        self, xi: Float[Array, "*#batch algebra"], y: Float[Array, "*#batch state"]
    ) -> Float[Array, "*batch state"]:
        """The state with q retracted by xi, and with xi added to v and z."""
        tree = self.topology
        xi, y = check.arguments(xi=(xi, (self.dim,)), y=(y, (self.length,)))
        if not tree.groups:
            return y + xi
        q = configuration.retract(tree, y[..., : tree.nq], xi[..., : tree.nv])
        return jnp.concatenate([q, y[..., tree.nq :] + xi[..., tree.nv :]], axis=-1)

    def dexpinv(
        self, sigma: Float[Array, "*#batch algebra"], xi: Float[Array, "*#batch algebra"]
    ) -> Float[Array, "*batch algebra"]:
        """``dexpinv`` of each joint that is a group, at ``-sigma``, since velocities move it from the right."""
        return self._on_groups(_dexpinv, sigma, xi)

    def bracket(
        self, a: Float[Array, "*#batch algebra"], b: Float[Array, "*#batch algebra"]
    ) -> Float[Array, "*batch algebra"]:
        """Minus the bracket of each joint that is a group; zero in a vector space."""
        return self._on_groups(_bracket, a, b)

    def difference(
        self, y0: Float[Array, "*#batch state"], y1: Float[Array, "*#batch state"]
    ) -> Float[Array, "*batch algebra"]:
        """The smallest xi with ``move(xi, y0) = y1``."""
        tree = self.topology
        y0, y1 = check.arguments(y0=(y0, (self.length,)), y1=(y1, (self.length,)))
        dq = configuration.difference(tree, y0[..., : tree.nq], y1[..., : tree.nq])
        return jnp.concatenate([dq, y1[..., tree.nq :] - y0[..., tree.nq :]], axis=-1)

    def difference_jacobian(
        self, y0: Float[Array, " state"], y: Float[Array, " state"]
    ) -> tuple[Float[Array, " algebra"], Float[Array, "nv nv"]]:
        """The difference r from y0 to y, and the Jacobian of its configuration part, ``dexpinv`` joint by joint."""
        r = self.difference(y0, y)
        return r, _joint_dexpinv(self.topology)(r[: self.topology.nv])

    def restore(self, field: Any, y: Float[Array, " state"], args: Any) -> Float[Array, " state"]:
        """The state projected onto closed loops and consistent velocities, if the field is that of a model."""
        tree = self.topology
        if not tree.loops or not isinstance(field, MachineField):
            return y
        (model, *_), _ = field.machine(args)
        end = tree.nq + tree.nv
        return jnp.concatenate([*restored(model, y[: tree.nq], y[tree.nq : end]), y[end:]])

    def sizes(self, y: Float[Array, " state"]) -> Float[Array, " algebra"]:
        """The sizes of the algebra's components: 1 rad or 1 m for the configuration, v and z themselves otherwise."""
        return jnp.concatenate([jnp.ones(self.topology.nv, y.dtype), y[self.topology.nq :]])

    def _on_groups(
        self, f: Callable[..., list[Array]], a: Float[Array, "*#batch algebra"], b: Float[Array, "*#batch algebra"]
    ) -> Float[Array, "*batch algebra"]:
        """``f`` applied joint by joint, or to the whole vector at once if the algebra is a vector space."""
        tree = self.topology
        a, b = check.arguments(a=(a, (self.dim,)), b=(b, (self.dim,)))
        if not tree.groups:
            return f(None, [a], [b])[0]
        groups = configuration.by_group(tree, f, "v", a=(a[..., : tree.nv], "v"), b=(b[..., : tree.nv], "v"))
        return jnp.concatenate([groups, f(None, [a[..., tree.nv :]], [b[..., tree.nv :]])[0]], axis=-1)


@cache
def _joint_dexpinv(topology: Topology) -> Callable[[Float[Array, " nv"]], Float[Array, "nv nv"]]:
    """The function of a difference of configurations that returns the block diagonal matrix of ``dexpinv``."""
    return native_with_derivatives(
        lambda s: block_diagonal.matrix(topology, block_diagonal.of_ad(topology, DEXPINV, s), s)
    )


def _dexpinv(joint: Joint | None, s: list[Array], x: list[Array]) -> list[Array]:
    if isinstance(joint, GroupJoint):
        return joint.rates(on_motion(DEXPINV, -joint.twist(s), joint.twist(x)))
    return x


def _bracket(joint: Joint | None, a: list[Array], b: list[Array]) -> list[Array]:
    if isinstance(joint, GroupJoint):
        return joint.rates(-joint.twist(a).cross(joint.twist(b)))
    return [jnp.zeros_like(x) for x in b]
