"""The search for the closed configuration that is nearest to a start, in one loop.

From the start, steps of Levenberg and Marquardt close the loops. From a closed configuration Newton steps along the
closed set lower the distance, each followed by such steps back. Where the loops stay open, at singular configurations,
half turns, or because nothing closes them, the search starts anew beside the start, each time farther away.
"""

from __future__ import annotations

from collections.abc import Callable
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
"""How far beside the start the search begins anew, rad; slides by that times the length of the machine."""
BACK, ALONG = 40, 100
"""Steps back to the closed set from one start, and steps along it in all."""
LARGEST = 0.7
"""The largest turn of a step, rad; slides by that times the length of the machine, or of the misfits."""
DAMPING = 1e-2
"""mu of the first step from a start; above the inverse of its third power there is no hope of a step."""
_STIFFENING = 0.25
"""The first kappa above zero."""
CLOSED, STILL, SURE, ALMOST = 0.75, 0.6, 0.4, 0.45
"""The unit of rounding to these powers: misfits, beside the length of the machine, of closed loops; steps, in rad, at
which nothing moves any more; steps so small that rounding hides by how much they lower the distance; misfits that count
as closed where no step lowers them, as of hinges that a file makes parallel to its digits."""
_UNDAMPED = 1e-2
"""kappa below which steps along the closed set are Newton's: each is a small share of the last one, or rounding."""
_LOWERED = 1e-3
"""The share of misfits by which a step has to lower them."""


class Found(NamedTuple):
    """What a search found.

    Attributes:
        closed: Whether its loops are closed.
        nearest: Whether nothing along the closed set lowers the distance any more.
        iterations: Number of iterations done.
    """

    q: Float[Array, " nq"]
    closed: Bool[Array, ""]
    nearest: Bool[Array, ""]
    iterations: Int[Array, ""]


class State(NamedTuple):
    """The state of a search.

    Attributes:
        i: Number of iterations done.
        starts: Number of starts beside the first one.
        back: Number of iterations since the last start or step along the closed set.
        along: Number of steps along the closed set, and of those taken back.
        q: Where it is.
        last: Where it was before the step back to q.
        cost: The length of the misfits there; infinite where no such step is to be judged.
        base: The last closed configuration.
        distance: Half the square of its distance; infinite where no step from there is to be judged.
        size: Largest entry of the step along the set to q, rad.
        best: The configuration with the shortest misfits.
        least: Their length.
        mu: See ``nearest_step``.
        kappa: See ``nearest_step``.
        closed: Whether a closed configuration was found.
        nearest: Whether the search ended because nothing lowers the distance any more.
        done: Whether it ended.
    """

    i: Int[Array, ""]
    starts: Int[Array, ""]
    back: Int[Array, ""]
    along: Int[Array, ""]
    q: Float[Array, " nq"]
    last: Float[Array, " nq"]
    cost: Float[Array, ""]
    base: Float[Array, " nq"]
    distance: Float[Array, ""]
    size: Float[Array, ""]
    best: Float[Array, " nq"]
    least: Float[Array, ""]
    mu: Float[Array, ""]
    kappa: Float[Array, ""]
    closed: Bool[Array, ""]
    nearest: Bool[Array, ""]
    done: Bool[Array, ""]


def _begin(q: Float[Array, " nq"]) -> State:
    zero, none, no = jnp.zeros((), q.dtype), jnp.array(0), jnp.array(False)
    far, mu = jnp.full((), jnp.inf, q.dtype), jnp.full((), DAMPING, q.dtype)
    return State(none, none, none, none, q, q, far, q, far, zero, q, far, mu, zero, no, no, no)


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
    """``metric_at(...).slope`` with the metric M(q0), for derivatives by the model and by q0."""
    x = configuration.difference(model.topology, q0, q)
    y = momentum(model, q0, x)
    return _pull(model.topology)(x, y) if model.topology.groups else y


@cache
def _pull(tree: Topology) -> Callable[[Float[Array, " nv"], Float[Array, " nv"]], Float[Array, " nv"]]:
    """``D' y`` with D the derivative of a difference x by its end."""

    def pulled(x: Array, y: Array) -> Array:
        blocks = block_diagonal.transposed(block_diagonal.of_ad(tree, DEXPINV_OF_LOG, x))
        return block_diagonal.applied(tree, blocks, y[:, None])[:, 0]

    return native_with_derivatives(pulled)


def nearest_closed(
    model: Model, q0: Float[Array, " nq"], start: Float[Array, " nq"], M: Float[Array, "nv nv"],
    free: Float[Array, " nv"], length: Float[Array, ""],
) -> Found:  # fmt: skip
    """The closed configuration nearest to q0 that is found from a start.

    Args:
        q0: Where the distance is taken from.
        start: Where the search begins; joints that are held are there as at q0.
        M: The mass matrix at q0, the metric.
        free: 1 for degrees of freedom that move, 0 for those that are held.
        length: The length of the machine, m.
    """
    tree, dtype = model.topology, q0.dtype
    closed, still, sure, almost = (float(jnp.finfo(dtype).eps ** power) for power in (CLOSED, STILL, SURE, ALMOST))
    turning = loop_units.turning(tree)
    in_rad = jnp.where(turning, 1, 1 / length)
    alike = _whole_turns(tree)
    directions = np.random.default_rng(len(_NUDGES)).uniform(-1, 1, (len(_NUDGES), tree.nv))
    nudges = jnp.asarray(directions * np.array(_NUDGES)[:, None], dtype)

    def moved(q: Array, dv: Array, far: Array) -> Array:
        # slides may be as long as what there is to close
        size = jnp.max(jnp.abs(dv) * jnp.where(turning, 1, 1 / jnp.maximum(length, far)))
        q = configuration.retract(tree, q, dv * free * (LARGEST / jnp.maximum(size, LARGEST)))
        return jnp.where(alike, q - jnp.round((q - q0) / (2 * np.pi)) * (2 * np.pi), q)

    def along(s: State, step: Step, distance: Array) -> State:
        """From a closed configuration along the closed set, or back to the last one where the distance grew."""
        better = (distance < s.distance) | (s.size <= sure)
        usable = better & step.definite
        size = jnp.max(jnp.abs(step.along) * in_rad)
        judged = jnp.isfinite(s.distance)
        kappa = jnp.where(usable, jnp.where(judged, s.kappa / 8, s.kappa), jnp.maximum(4 * s.kappa, _STIFFENING))
        # rows that almost depend on others leave steps that rounding hides, and that do not shrink
        idle = (s.kappa <= _UNDAMPED) & (s.size <= sure) & (size <= sure) & (size >= s.size / 2)
        nearest = usable & ((size * (1 + s.kappa) <= still) | idle)
        count = s.along + 1
        base = jnp.where(better, s.q, s.base)
        done = nearest | (count > ALONG)
        on = jnp.where(done & ~nearest, 0, step.along) - step.XP @ step.c
        q = jnp.where(better, moved(s.q, on, length), base)
        return s._replace(
            q=q, base=base, best=q, distance=jnp.where(usable, distance, jnp.inf), size=size, kappa=kappa, along=count,
            cost=jnp.full_like(s.cost, jnp.inf), mu=jnp.full_like(s.mu, DAMPING), back=jnp.zeros_like(s.back),
            closed=jnp.array(True), nearest=nearest, done=done,
        )  # fmt: skip

    def back(s: State, step: Step) -> State:
        """From an open configuration back to the closed set, or from where that fails."""
        cost = jnp.sqrt(step.c @ step.c)
        better = cost < s.cost
        judged = jnp.isfinite(s.cost)
        mu = jnp.where(better, jnp.where(judged, s.mu / 4, s.mu), 8 * s.mu)
        ended = better & (jnp.max(jnp.abs(step.back) * in_rad) <= still * cost / length)
        ended = ended | (mu > 1 / DAMPING**3) | (s.back >= BACK)
        least = cost < s.least
        nudge = nudges[jnp.minimum(s.starts, len(_NUDGES) - 1)] / in_rad
        anew = jnp.where(s.closed, s.base, configuration.retract(tree, start, nudge * free))
        on = jnp.where(better, moved(s.q, step.back, cost), s.last)
        count = s.along + 1
        return s._replace(
            q=jnp.where(ended, anew, on),
            last=jnp.where(better, s.q, s.last),
            cost=jnp.where(better & ~ended, cost, jnp.inf),
            back=jnp.where(ended, 0, s.back + 1),
            mu=jnp.where(ended, DAMPING, mu),
            starts=jnp.where(ended & ~s.closed, s.starts + 1, s.starts),
            along=jnp.where(ended & s.closed, count, s.along),
            distance=jnp.where(ended, jnp.inf, s.distance),
            kappa=jnp.where(ended & s.closed, jnp.maximum(4 * s.kappa, _STIFFENING), s.kappa),
            best=jnp.where(least & ~s.closed, s.q, s.best),
            least=jnp.where(least, cost, s.least),
            done=ended & jnp.where(s.closed, count > ALONG, s.starts >= len(_NUDGES)),
        )

    def advance(s: State) -> State:
        metric = metric_at(tree, q0, s.q, M, free)
        step = nearest_step(model, s.q, metric, length, s.mu, s.kappa)
        x = configuration.difference(tree, q0, s.q)
        c, lowered = jnp.max(jnp.abs(step.c)), jnp.max(jnp.abs(step.J @ (step.back * free)))
        there = (c <= closed * length) | ((c <= almost * length) & (lowered <= _LOWERED * c))
        next_ = jax.tree.map(partial(jnp.where, there), along(s, step, x @ M @ x / 2), back(s, step))
        return next_._replace(i=s.i + 1)

    s = control_flow.while_loop(lambda s: ~s.done, advance, _begin(start))
    return Found(jnp.where(s.closed, s.q, s.best), s.closed, s.nearest, s.i)


def _whole_turns(tree: Topology) -> np.ndarray:
    """Whether each number of a configuration is an angle of which whole turns make no difference, (nq,)."""
    alike = np.zeros(tree.nq, bool)
    coupled = {name for loop in tree.loops if isinstance(loop.kind, JointLoop) for name in (loop.a, loop.b)}
    for i, (joint, name) in enumerate(zip(tree.joints, tree.joint_names, strict=True)):
        if isinstance(joint, GroupJoint) or i in tree.mimics or tree.mimics[i] is not None or name in coupled:
            continue
        rows = slice(tree.row_starts[i], tree.row_starts[i + 1])
        alike[tree.q_slice(i)] = tree.row_turns[rows] & ~tree.row_pitched[rows]
    return alike
