"""Dynamics of a model by symplectic Euler steps with closed-form derivatives, the cheapest steps for optimization."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.linalg.dense import product
from lgsim._compile.xla import batch_last, fusion_barrier
from lgsim.dynamics import passive_forces
from lgsim.dynamics.forward_dynamics import forward_dynamics, linearized
from lgsim.dynamics.passive_forces import passive_derivatives
from lgsim.dynamics.second_derivatives import forward_dynamics_by_hessians
from lgsim.integrators.method import Number
from lgsim.lie.ad_functions import AD_EXP, DEXP, DEXPINV
from lgsim.multibody import block_diagonal
from lgsim.multibody.loops.refusal import refuse_loops
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology
from lgsim.optimize.dynamics import EulerTransition, Machine, matrices
from lgsim.simulation.equations_of_motion import Solve, acceleration


class SymplecticEulerDynamics(Machine):
    """Dynamics of a model by the symplectic Euler step: ``v+ = v + dt a(q, v, S u)``, then ``q+ = retract(q, dt v+)``.

    First order, with one evaluation of the dynamics per step and closed-form derivatives. It is several times cheaper
    in an optimization than ``MultibodyDynamics`` with a fourth-order method, with an error that grows with dt.

    Attributes:
        model: The model; differentiable with respect to all its parameters.
        dt: Time between nodes, s.
        selection: The matrix S (nv, controls) from controls to joint torques; None if all joints are driven.

    Raises:
        ValueError: the model has drives with lag or contacts, which are not supported.
    """

    model: Model
    dt: Float[Array, ""]
    selection: Float[Array, "nv nu"] | None

    def __init__(self, model: Model, dt: Any, selection: Any = None):
        dtype = getattr(model, "dtype", None)
        self.model = model
        self.dt = jnp.asarray(dt, dtype)
        self.selection = None if selection is None else jnp.asarray(selection, dtype)

    def __check_init__(self):
        if isinstance(self.model, Model):
            refuse_loops(
                self.model.topology, "SymplecticEulerDynamics", "its steps would open them", "use MultibodyDynamics"
            )
        if isinstance(self.model, Model) and self.model.topology.contacts:
            raise ValueError(
                f"model: expected a model without contacts, got {self.model.contact_names[0]!r}; use"
                " MultibodyDynamics, with Rodas4 for stiff friction"
            )

    @property
    def method_name(self) -> str:
        """Name of the method in the record of a motion."""
        return "symplectic Euler"

    @property
    def own_step(self) -> Float[Array, ""]:
        """Integration step, s: the time between nodes."""
        return self.dt

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """Dimensions of the tangents of configuration and velocity."""
        return (self.model.nv, self.model.nv)

    def step(self, t: Number, y: Float[Array, " ny"], u: Float[Array, " m"], args: Any) -> Float[Array, " ny"]:
        return self._by(forward_dynamics, t, y, u)

    def step_for_hessian(self, t: Number, y: Float[Array, " ny"], u: Float[Array, " m"], args: Any) -> Array:
        return self._by(forward_dynamics_by_hessians, t, y, u)

    def _by(self, solve: Solve, t: Number, y: Float[Array, " ny"], u: Float[Array, " m"]) -> Float[Array, " ny"]:
        """The next state, with a given formulation of the forward dynamics."""
        nq = self.model.nq
        a = acceleration(self.model, self.forces(u), None, t, y[:nq], y[nq:], solve)
        return self.action.move(jnp.concatenate([self.dt * (y[nq:] + self.dt * a), self.dt * a]), y)

    def linearized(
        self, t: Number, y: Float[Array, " ny"], u: Float[Array, " m"], y_next: Float[Array, " ny"], args: Any
    ) -> tuple[Float[Array, "n n"], Float[Array, "n m"], Float[Array, " n"]]:
        step, c = self.transition(t, y, u, y_next, args)
        return *matrices(step), c

    def transition(
        self, t: Number, y: Float[Array, " ny"], u: Float[Array, " m"], y_next: Float[Array, " ny"], args: Any
    ) -> tuple[EulerTransition, Float[Array, " n"]]:
        """The matrices of the step in factored form, and its gap.

        With ``s = dt v+`` and the gap d of the configuration: ``q+ exp(Ad(exp(-s)) x)`` for a change x of q, and ``q+
        exp(dexp(-s) dt w)`` for a change w of v+, seen from the next node by ``dexpinv(-d)``.
        """
        model, nq = self.model, self.model.nq
        q, v = y[:nq], y[nq:]
        by_q, by_v = passive_derivatives(model, q, v)
        # derivatives of the inverse dynamics, and the inverse mass matrix
        a, dq, dv, inverse = linearized(model, q, v, self.forces(u) + passive_forces(model, q, v), None)
        selection = jnp.eye(model.nv, dtype=y.dtype) if self.selection is None else self.selection
        w = v + self.dt * a
        s = self.dt * w
        gap = model.difference(y_next[:nq], model.retract(q, s))
        W, turn, shift = _transition(model.topology)(self.dt, s, gap, (dq, by_q), (dv, by_v), inverse, selection)
        return EulerTransition(W, turn, shift, self.dt, model.topology), jnp.concatenate([gap, w - y_next[nq:]])


Pair = tuple[Array, Array]
"""Derivatives of the inverse dynamics and of the passive forces, each (nv, nv)."""


@cache
def _transition(topology: Topology) -> Callable[..., tuple[Array, block_diagonal.Blocks, block_diagonal.Blocks]]:
    """(W, turn, shift) of ``EulerTransition`` from the derivatives of the forces, as one native function."""

    def core(
        dt: Array, s: Array, gap: Array, by_q: Pair, by_v: Pair, inverse: Array, selection: Array
    ) -> tuple[Array, block_diagonal.Blocks, block_diagonal.Blocks]:
        n, h = topology.nv, dt[None, None]
        eye = jnp.eye(n, dtype=s.dtype).reshape((n, n) + (1,) * (s.ndim - 1))
        # contributions to the force derivatives: passive forces minus inverse dynamics
        dq, dv = (fusion_barrier(passive - needed) for needed, passive in (by_q, by_v))
        dq, dv, du = (product(inverse, forces) for forces in (dq, dv, selection))
        near = block_diagonal.of_ad(topology, DEXPINV, gap)
        turn = block_diagonal.chained(near, block_diagonal.of_ad(topology, AD_EXP, s))
        shift = block_diagonal.chained(near, block_diagonal.of_ad(topology, DEXP, s))
        return jnp.concatenate([h * dq, eye + h * dv, h * du], axis=1), turn, shift

    return batch_last(core)
