"""The transmission from the shafts of actuators to the joints."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.actuators.stage import Shaft, Signal
from lgsim.actuators.tendon_paths import TendonPaths
from lgsim.dynamics.jacobians import frame_jacobian
from lgsim.dynamics.passive_forces import coordinates
from lgsim.multibody.joint import GroupJoint
from lgsim.multibody.model import Model


class Transmission(eqx.Module):
    """The transmission of n actuators: ``x = C q`` and ``tau = G^T f``, ``x' = G v``, with
    ``G = C + sum g_k J_k(q) + P M(q)``.

    C couples shafts and degrees of freedom, as in wrists that two motors move by a differential; it preserves power.
    Shaft angles x include only degrees of freedom with a coordinate of their own, not those of spherical, planar and
    free joints, which have only speeds. Actuators may also act on frames, as propellers do, by wrenches ``g f`` in the
    frame's axes at its origin; these rotate no shaft, so that their x is zero. On tendons with the lengths L(q) and the
    moments M(q) they act by their gear ratios P, and x has the part ``P L(q)``.

    Attributes:
        coupling: C (n, nv): for a shaft of ratio 1 on one joint a row with a single 1.
        lower: Lower bounds of the total joint forces of all actuators (nv,), N m or N, or None.
        upper: Their upper bounds (nv,), or None.
        frames: Names of frames that actuators act on; static.
        wrenches: g (n, frames, 6): force and moment per unit of the actuators' forces, or None.
        paths: Paths of tendons, or None.
        pulls: P (n, tendons), or None without paths.
    """

    coupling: Float[Array, "n nv"] = eqx.field(converter=jnp.asarray)
    lower: Float[Array, " nv"] | None = None
    upper: Float[Array, " nv"] | None = None
    frames: tuple[str, ...] = eqx.field(static=True, default=())
    wrenches: Float[Array, "n frames 6"] | None = None
    paths: TendonPaths | None = None
    pulls: Float[Array, "n tendons"] | None = None

    @classmethod
    def of_joints(cls, model: Model, joints: Sequence[str] | None = None, coupling: ArrayLike | None = None):
        """The transmission to some joints of a model.

        Args:
            joints: Names of joints, by default all but a floating base; all degrees of freedom of a joint count.
            coupling: (n, k) for their k degrees of freedom; by default one actuator for each.

        Raises:
            ValueError: a joint does not exist, or the number of columns of the matrix is wrong.
        """
        first = ("root_joint",) if model.topology.floats else ()
        names = [name for name in model.joint_names if name not in first] if joints is None else list(joints)
        for name in names:
            if name not in model.v_slices:
                raise ValueError(f"joints: there is no {name!r}; the model has {', '.join(model.joint_names)}")
        places = [i for name in names for i in range(model.v_slices[name].start, model.v_slices[name].stop)]
        own = np.eye(len(places)) if coupling is None else coupling
        if jnp.ndim(own) != 2 or jnp.shape(own)[1] != len(places):
            raise ValueError(
                f"coupling: expected shape (actuators, {len(places)}), a column for each degree of freedom of the"
                f" joints, got {jnp.shape(own)}"
            )
        own = jnp.asarray(own, model.dtype)
        return cls(jnp.zeros((len(own), model.nv), model.dtype).at[:, np.array(places, int)].set(own))

    @property
    def count(self) -> int:
        """Number n of actuators."""
        return self.coupling.shape[0]

    def shaft(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Shaft:
        """The motion of the shafts at the joints (n,), rad or m and their rates."""
        x = coordinates(model, q)[0]
        if model.topology.groups:
            x = jnp.where(_counted(model), x, 0)
        G, beside = self._moments(model, q)
        return Shaft(jnp.sum(self.coupling * x[None], axis=1) + beside, jnp.sum(G * v[None], axis=1))

    def joint_forces(self, model: Model, q: Float[Array, " nq"], force: Signal) -> Float[Array, " nv"]:
        """The joint forces (nv,), N m or N, from the shaft forces (n,)."""
        tau = jnp.sum(self._moments(model, q)[0] * force[:, None], axis=0)
        return tau if self.lower is None else jnp.clip(tau, self.lower, self.upper)

    def _moments(self, model: Model, q: Float[Array, " nq"]) -> tuple[Float[Array, "n nv"], Signal]:
        """(G, the part of the shaft angles that tendons have)."""
        G, beside = self.coupling, jnp.zeros(self.count, self.coupling.dtype)
        if self.wrenches is not None:
            for k, name in enumerate(self.frames):
                J = frame_jacobian(model, q, name)
                G = G + jnp.sum(self.wrenches[:, k, :, None] * J[None], axis=1)
        if self.paths is not None and self.pulls is not None:
            lengths, moments = self.paths.lengths_and_moments(model, q)
            G, beside = G + self.pulls @ moments, self.pulls @ lengths
        return G, beside


def _counted(model: Model) -> np.ndarray:
    """True for each degree of freedom with a coordinate whose rate it is."""
    tree, own = model.topology, np.ones(model.nv, bool)
    for i, joint in enumerate(tree.joints):
        own[tree.v_slice(i)] = not isinstance(joint, GroupJoint)
    return own
