"""Search for the closed configuration nearest to a start, in one loop with two kinds of steps.

``project``: Levenberg-Marquardt steps close the loops from the start. ``descend``: Newton steps along the closed set
decrease the distance; each is followed by steps of the first kind. If the loops stay open, because of singular
configurations, half turns, or because they cannot be closed, the search restarts near the start, each time at a
larger distance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from lgsim._compile.xla import control_flow, native_with_derivatives
from lgsim.dynamics.loops import loop_units
from lgsim.dynamics.loops.nearest_step import Metric, Step, momentum, nearest_step
from lgsim.lie.ad_functions import DEXPINV_OF_LOG
from lgsim.multibody import block_diagonal, configuration
from lgsim.multibody.joint import GroupJoint
from lgsim.multibody.loops.loop import JointLoop
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology

_NUDGES = (0.1, 0.3, *(1.0, 2.0, 3.0) * 4)
"""Distances of the restarts from the start, rad; translations are multiplied by the length of the model."""
BACK, ALONG = 40, 100
"""Limits of projection steps from one start, and of steps along the closed set in total."""
LARGEST = 0.7
"""Largest rotation of a step, rad; translations are multiplied by the length of the model, or of the loop errors."""
DAMPING = 1e-2
"""mu of the first step from a start; above its inverse third power a start is given up."""
_STIFFENING = 0.25
"""The first nonzero kappa."""
CLOSED, STILL, SURE, ALMOST = 0.75, 0.6, 0.4, 0.45
"""Powers of the rounding unit: loop errors of closed loops relative to the length of the model; steps, in rad, at
convergence; steps whose decrease of the distance is hidden by rounding; loop errors that count as closed if no step
decreases them, as for hinges that a file makes parallel up to its number of digits."""
_UNDAMPED = 1e-2
"""kappa below which steps along the closed set are Newton steps: they converge fast, or stall at rounding."""
_LOWERED = 1e-3
"""Relative decrease of the loop errors that a step must achieve."""


class Found(NamedTuple):
    """Result of a search.

    Attributes:
        closed: True if the loops are closed.
        nearest: True if no step along the closed set decreases the distance.
        iterations: Number of iterations.
    """

    q: Float[Array, " nq"]
    closed: Bool[Array, ""]
    nearest: Bool[Array, ""]
    iterations: Int[Array, ""]


class Projection(NamedTuple):
    """State of the projection to the closed set: Levenberg-Marquardt on the loop errors.

    Attributes:
        count: Iterations since the last start or step along the closed set.
        last: Configuration before the step to q.
        cost: Norm of the loop errors there; infinite if there is no step to assess.
        mu: See ``nearest_step``.
    """

    count: Int[Array, ""]
    last: Float[Array, " nq"]
    cost: Float[Array, ""]
    mu: Float[Array, ""]


class Descent(NamedTuple):
    """State of the descent along the closed set: Newton's method for the distance in the null space of the loops.

    Attributes:
        count: Number of steps along the closed set, rejected ones included.
        base: The last closed configuration.
        distance: Half its squared distance; infinite if there is no step to assess.
        size: Largest component of the step along the set to q, rad.
        kappa: See ``nearest_step``.
    """

    count: Int[Array, ""]
    base: Float[Array, " nq"]
    distance: Float[Array, ""]
    size: Float[Array, ""]
    kappa: Float[Array, ""]


class State(NamedTuple):
    """The state of a search.

    Attributes:
        i: Number of iterations.
        starts: Number of restarts.
        q: Current configuration.
        best: Configuration with the smallest loop errors.
        least: Their norm.
        closed: True if a closed configuration was found.
        nearest: True if the search converged to a minimum of the distance.
        done: True if the search has ended.
    """

    i: Int[Array, ""]
    starts: Int[Array, ""]
    q: Float[Array, " nq"]
    projection: Projection
    descent: Descent
    best: Float[Array, " nq"]
    least: Float[Array, ""]
    closed: Bool[Array, ""]
    nearest: Bool[Array, ""]
    done: Bool[Array, ""]

    @classmethod
    def at(cls, q: Float[Array, " nq"]) -> State:
        """The state before the first iteration from a start."""
        zero, none, no = jnp.zeros((), q.dtype), jnp.array(0), jnp.array(False)
        far, mu = jnp.full((), jnp.inf, q.dtype), jnp.full((), DAMPING, q.dtype)
        return cls(none, none, q, Projection(none, q, far, mu), Descent(none, q, far, zero, zero), q, far, no, no, no)


def metric_at(
    tree: Topology, q0: Float[Array, " nq"], q: Float[Array, " nq"], M: Float[Array, "nv nv"], free: Float[Array, " nv"]
) -> Metric:
    """The distance ``1/2 x' M x``, x = difference(q0, q), at q, for the metric M at the start q0."""
    x = configuration.difference(tree, q0, q)
    if not tree.groups:
        return Metric(M, M @ x, M, free)

    def jacobian(x: Array) -> Array:
        return block_diagonal.matrix(tree, block_diagonal.of_ad(tree, DEXPINV_OF_LOG, x), x)

    D = jacobian(x)
    hessian = jax.jacfwd(lambda x: jacobian(x).T @ (M @ x))(x) @ D
    return Metric(D.T @ M @ D, D.T @ (M @ x), hessian, free)


def slope_at(model: Model, q0: Float[Array, " nq"], q: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """``metric_at(...).slope`` with the metric M(q0), for derivatives with respect to the model and q0."""
    x = configuration.difference(model.topology, q0, q)
    y = momentum(model, q0, x)
    return _pull(model.topology)(x, y) if model.topology.groups else y


@cache
def _pull(tree: Topology) -> Callable[[Float[Array, " nv"], Float[Array, " nv"]], Float[Array, " nv"]]:
    """``D' y``, D being the derivative of a difference x with respect to its end point."""

    def pulled(x: Array, y: Array) -> Array:
        blocks = block_diagonal.transposed(block_diagonal.of_ad(tree, DEXPINV_OF_LOG, x))
        return block_diagonal.applied(tree, blocks, y[:, None])[:, 0]

    return native_with_derivatives(pulled)


@dataclass(frozen=True)
class _Search:
    """Constant data of the iterations of a search.

    Attributes:
        q0: Origin of the distance.
        start: First configuration.
        M: The metric at q0.
        free: 1 for moving degrees of freedom, 0 for held ones.
        length: The length of the model, m.
    """

    model: Model
    q0: Float[Array, " nq"]
    start: Float[Array, " nq"]
    M: Float[Array, "nv nv"]
    free: Float[Array, " nv"]
    length: Float[Array, ""]

    @property
    def in_rad(self) -> Float[Array, " nv"]:
        """Scale of each displacement component to rad."""
        return jnp.where(loop_units.turning(self.model.topology), 1, 1 / self.length)

    def rounding(self, power: float) -> float:
        """The rounding unit to one of the powers above."""
        return float(jnp.finfo(self.q0.dtype).eps ** power)

    def moved(self, q: Array, dv: Array, far: Array) -> Array:
        """A configuration displaced by at most ``LARGEST``; ``far`` is the length of the gaps."""
        tree = self.model.topology
        # translations may be as long as the gaps
        size = jnp.max(jnp.abs(dv) * jnp.where(loop_units.turning(tree), 1, 1 / jnp.maximum(self.length, far)))
        q = configuration.retract(tree, q, dv * self.free * (LARGEST / jnp.maximum(size, LARGEST)))
        return jnp.where(_whole_turns(tree), q - jnp.round((q - self.q0) / (2 * np.pi)) * (2 * np.pi), q)

    def beside(self, starts: Int[Array, ""]) -> Array:
        """A restart, farther from the start with each one."""
        tree, count = self.model.topology, len(_NUDGES)
        directions = np.random.default_rng(count).uniform(-1, 1, (count, tree.nv))
        nudges = jnp.asarray(directions * np.array(_NUDGES)[:, None], self.q0.dtype)
        nudge = nudges[jnp.minimum(starts, count - 1)] / self.in_rad
        return configuration.retract(tree, self.start, nudge * self.free)

    def advance(self, s: State) -> State:
        """One iteration: along the closed set if q is on it, else a projection step."""
        tree, length = self.model.topology, self.length
        metric = metric_at(tree, self.q0, s.q, self.M, self.free)
        step = nearest_step(self.model, s.q, metric, length, s.projection.mu, s.descent.kappa)
        x = configuration.difference(tree, self.q0, s.q)
        c, lowered = jnp.max(jnp.abs(step.c)), jnp.max(jnp.abs(step.J @ (step.back * self.free)))
        there = c <= self.rounding(CLOSED) * length
        there |= (c <= self.rounding(ALMOST) * length) & (lowered <= _LOWERED * c)
        descended, projected = self.descend(s, step, x @ self.M @ x / 2), self.project(s, step)
        after = jax.tree.map(partial(jnp.where, there), descended, projected)
        return after._replace(i=s.i + 1)

    def descend(self, s: State, step: Step, distance: Array) -> State:
        """A step along the closed set from a closed configuration, or back to the last one if the distance grew."""
        now, still, sure = s.descent, self.rounding(STILL), self.rounding(SURE)
        # accept the step to q if it decreased the distance, as far as rounding allows a comparison
        better = (distance < now.distance) | (now.size <= sure)
        usable = better & step.definite
        # regularization of the next step: kappa falls on success, and rises otherwise or for an indefinite Hessian
        size = jnp.max(jnp.abs(step.along) * self.in_rad)
        judged = jnp.isfinite(now.distance)
        stiffer = jnp.maximum(4 * now.kappa, _STIFFENING)
        kappa = jnp.where(usable, jnp.where(judged, now.kappa / 8, now.kappa), stiffer)
        # nearly dependent rows leave steps at rounding level that do not shrink
        idle = (now.kappa <= _UNDAMPED) & (now.size <= sure) & (size <= sure) & (size >= now.size / 2)
        nearest = usable & ((size * (1 + now.kappa) <= still) | idle)
        count = now.count + 1
        base = jnp.where(better, s.q, now.base)
        done = nearest | (count > ALONG)
        # at the end only the loop errors are corrected
        on = jnp.where(done & ~nearest, 0, step.along) - step.XP @ step.c
        q = jnp.where(better, self.moved(s.q, on, self.length), base)
        return s._replace(
            q=q,
            projection=Projection(
                count=jnp.zeros_like(s.projection.count),
                last=s.projection.last,
                cost=jnp.full_like(s.projection.cost, jnp.inf),
                mu=jnp.full_like(s.projection.mu, DAMPING),
            ),
            descent=Descent(count, base, jnp.where(usable, distance, jnp.inf), size, kappa),
            best=s.q,
            closed=jnp.array(True),
            nearest=nearest,
            done=done,
        )

    def project(self, s: State, step: Step) -> State:
        """A projection step from an open configuration, or a restart if it fails."""
        now, descent = s.projection, s.descent
        # accept the step to q if it decreased the loop errors; mu falls then, and rises otherwise
        cost = jnp.sqrt(step.c @ step.c)
        better = cost < now.cost
        judged = jnp.isfinite(now.cost)
        mu = jnp.where(better, jnp.where(judged, now.mu / 4, now.mu), 8 * now.mu)
        # stop at a nonzero local minimum, at a damping too large to succeed, or after BACK steps
        ended = better & (jnp.max(jnp.abs(step.back) * self.in_rad) <= self.rounding(STILL) * cost / self.length)
        ended = ended | (mu > 1 / DAMPING**3) | (now.count >= BACK)
        # then continue from the last closed configuration with shorter steps, or restart
        anew = jnp.where(s.closed, descent.base, self.beside(s.starts))
        on = jnp.where(better, self.moved(s.q, step.back, cost), now.last)
        least, count = cost < s.least, descent.count + 1
        return s._replace(
            starts=jnp.where(ended & ~s.closed, s.starts + 1, s.starts),
            q=jnp.where(ended, anew, on),
            projection=Projection(
                count=jnp.where(ended, 0, now.count + 1),
                last=jnp.where(better, s.q, now.last),
                cost=jnp.where(better & ~ended, cost, jnp.inf),
                mu=jnp.where(ended, DAMPING, mu),
            ),
            descent=descent._replace(
                count=jnp.where(ended & s.closed, count, descent.count),
                distance=jnp.where(ended, jnp.inf, descent.distance),
                kappa=jnp.where(ended & s.closed, jnp.maximum(4 * descent.kappa, _STIFFENING), descent.kappa),
            ),
            best=jnp.where(least & ~s.closed, s.q, s.best),
            least=jnp.where(least, cost, s.least),
            done=ended & jnp.where(s.closed, count > ALONG, s.starts >= len(_NUDGES)),
        )


def nearest_closed(
    model: Model, q0: Float[Array, " nq"], start: Float[Array, " nq"], M: Float[Array, "nv nv"],
    free: Float[Array, " nv"], length: Float[Array, ""],
) -> Found:  # fmt: skip
    """The closed configuration nearest to q0 that is found from a start.

    Args:
        q0: Origin of the distance.
        start: First configuration, with held joints as in q0.
        M: The mass matrix at q0, the metric.
        free: 1 for moving degrees of freedom, 0 for held ones.
        length: The length of the model, m.
    """
    search = _Search(model, q0, start, M, free, length)
    s = control_flow.while_loop(lambda s: ~s.done, search.advance, State.at(start))
    return Found(jnp.where(s.closed, s.q, s.best), s.closed, s.nearest, s.i)


def _whole_turns(tree: Topology) -> np.ndarray:
    """True where a component of a configuration is an angle whose full turns make no difference, (nq,)."""
    alike = np.zeros(tree.nq, bool)
    coupled = {name for loop in tree.loops if isinstance(loop.kind, JointLoop) for name in (loop.a, loop.b)}
    for i, (joint, name) in enumerate(zip(tree.joints, tree.joint_names, strict=True)):
        if isinstance(joint, GroupJoint) or i in tree.mimics or tree.mimics[i] is not None or name in coupled:
            continue
        rows = slice(tree.row_starts[i], tree.row_starts[i + 1])
        alike[tree.q_slice(i)] = tree.row_turns[rows] & ~tree.row_pitched[rows]
    return alike
