"""Configurations at which frames have given poses, by damped least squares for many targets side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int, PyTree

from lgsim._compile.linalg.box_qp import native_box_minimum
from lgsim._compile.xla import compiled, control_flow, export_codes, export_tuple, zeros_beside
from lgsim.dynamics.kinematics import forward_kinematics, frame_index
from lgsim.lie.action import LeftTranslation
from lgsim.lie.group import SE3
from lgsim.multibody.joint_slices import single_numbers
from lgsim.multibody.loops.refusal import refuse_loops
from lgsim.multibody.model import Model
from lgsim.optimize.constraints.clearance import Clearance
from lgsim.optimize.constraints.state_bounds import check_order
from lgsim.optimize.solver import tolerance_of
from lgsim.support import check
from lgsim.support.verdict import Outcome, Verdict, converged, first_names

_OPEN = 1e-3
"""The share of a joint's motion from which it is said to be open."""

_ASIDE = 1e-3
"""How far a search that is stuck steps aside at most, rad or m."""

LANES = 256
"""Searches that run side by side."""

Targets = list[Array]
"""For each frame a pose (4, 4) or a position (3,) in the world, m; or many, with a leading axis."""


@export_codes("lgsim.optimize.INVERSE_KINEMATICS_RESULTS")
class INVERSE_KINEMATICS_RESULTS(eqx.Enumeration):
    """How a search for a configuration ended; the text says what to do."""

    successful = ""
    out_of_reach = (
        "No configuration near the guesses reaches the targets within the limits: q is where the error is least. Move "
        "the target, give other or more guesses, or limits=False to see whether the limits are the reason."
    )
    max_iterations = (
        "The search used all its iterations while the error still fell. Give more iterations or a better guess."
    )


@export_tuple("lgsim.optimize.InverseKinematicsSolution")
class InverseKinematicsSolution(NamedTuple):
    """What ``inverse_kinematics`` found; arrays have the leading axes of the targets.

    Attributes:
        error: Length of each target's residual (*batch, targets): m, and of poses with rad.
        gradient: Largest entry of the gradient of half the weighted squares by the joints that the limits leave free
            (*batch).
        result: ``INVERSE_KINEMATICS_RESULTS.successful``, or what went wrong (*batch).
        slack: Share of each velocity number's motion that moves no target and that no limit holds (*batch, nv): 0
            where targets and posture determine it, 1 where they say nothing of it.
        shortfall: Length of what solids lack of their clearance (*batch), m; zero without one.
    """

    q: Float[Array, "*batch nq"]
    error: Float[Array, "*batch targets"]
    gradient: Float[Array, " *batch"]
    iterations: Int[Array, " *batch"]
    result: INVERSE_KINEMATICS_RESULTS
    slack: Float[Array, "*batch nv"]
    shortfall: Float[Array, " *batch"]

    def verdict(self, model: Model, index: int | tuple[int, ...] = ()) -> Verdict:
        """How the search for one target ended, with names; outside of ``jit``.

        Converged; with the joints that the targets leave free to move (``undetermined``, with the share of each one's
        motion); at the limits of named joints; or failed, with the error that is left.

        Args:
            index: Which target of a batch.

        Raises:
            ValueError: there are several targets, and none is chosen.
        """
        codes, chosen = INVERSE_KINEMATICS_RESULTS, (lambda x: np.asarray(x)[index])
        q, error = chosen(self.q), chosen(self.error)
        if q.ndim != 1:
            raise ValueError(f"index: expected one of the targets of shape {np.shape(self.gradient)}, got {index}")
        bounds = _limits_met(model, q)
        if not chosen(self.result == codes.successful):
            why = codes[codes.out_of_reach if chosen(self.result == codes.out_of_reach) else codes.max_iterations]
            worst = int(np.argmax(error))
            held = f"; at their limits: {first_names(bounds)}" if bounds else ""
            short = float(chosen(self.shortfall))
            close = f"; solids are closer than their clearance by {short:.3g} m" if short > 0 else ""
            said = f"failed: {why} Target {worst} of {len(error)} is missed by {error[worst]:.3g}{close}{held}"
            return Verdict(Outcome.FAILED, said, bounds)
        slack = chosen(self.slack)
        loose = [name for name, part in model.v_slices.items() if np.any(slack[part] > _OPEN)]
        open_joints = f"nothing decides how {first_names(loose)} {'stand' if len(loose) > 1 else 'stands'}"
        return converged(bounds, "limit", [(name, float("nan")) for name in loose], open_joints)


class SearchOptions(eqx.Module):
    """Options of a search.

    Attributes:
        damping: The least mu, relative to the error.
        tolerance: Bound of each target's error, m and rad.
        limits: Whether the model's position limits hold.
    """

    max_iterations: int = eqx.field(static=True)
    damping: Float[Array, ""]
    tolerance: Float[Array, ""]
    limits: bool = eqx.field(static=True)


class PoseResiduals(eqx.Module):
    """The residuals of frames at targets, and of the distance from a posture.

    Attributes:
        weights: Weight of the squares of each frame's residual.
        posture: Configuration (nq,).
        frames: The frames' places in ``model.frame_names``.
        clearance: What solids keep, or None.
    """

    model: Model
    weights: list[Array]
    posture: Float[Array, " nq"]
    posture_weight: Float[Array, ""]
    frames: tuple[int, ...] = eqx.field(static=True)
    clearance: Clearance | None = None

    @property
    def rows(self) -> int:
        """The number of residuals of ``errors``."""
        return len(self.frames) + (self.clearance is not None)

    def errors(
        self, targets: Targets, q: Float[Array, " nq"], touching: Bool[Array, " pairs"] | None = None
    ) -> list[Float[Array, " _"]]:
        """The residual of each frame before weighting: (6,) for a pose, (3,) for a position; m and rad.

        The last one is what solids lack of their clearance (pairs,), m, or of those that touch it what they have to
        spare with a minus.
        """
        poses = forward_kinematics(self.model, q)
        found = [_error(x, poses[i]) for i, x in zip(self.frames, targets, strict=True)]
        if self.clearance is not None:
            short = self.clearance.state_value(q)
            found.append(jnp.maximum(short, 0) if touching is None else jnp.where(touching, short, 0))
        return found

    def touching(self, q: Float[Array, " nq"], tolerance: Float[Array, ""]) -> Bool[Array, " pairs"] | None:
        """Whether solids have nothing of their clearance to spare."""
        return None if self.clearance is None else self.clearance.state_value(q) >= -tolerance

    def residual(self, errors: list[Float[Array, " _"]], q: Float[Array, " nq"]) -> Float[Array, " rows"]:
        """All residuals, weighted; half the sum of their squares is what a search minimizes."""
        weights = self.weights + [jnp.ones((), q.dtype)] * (len(errors) - len(self.weights))
        pairs = zip(weights, errors, strict=True)
        rows = [jnp.sqrt(jnp.broadcast_to(w, r.shape)) * r for w, r in pairs]
        # a square root of zero would have no derivative
        root = jnp.where(
            self.posture_weight > 0, jnp.sqrt(jnp.where(self.posture_weight > 0, self.posture_weight, 1)), 0
        )
        return jnp.concatenate([*rows, root * self.model.difference(self.posture, q)])


class IterationState(NamedTuple):
    """The state of one search from one guess.

    Attributes:
        mu: Damping relative to the error.
        errors: Length of each target's residual at the last linearization (targets,).
        gradient: Largest entry of the gradient there by the joints that the limits leave free.
        held: Whether a limit holds each joint there (nv,).
        met: Whether the tolerance is met there.
        bent: Whether the search has gone on from where it was stuck.
    """

    i: Int[Array, ""]
    q: Float[Array, " nq"]
    mu: Float[Array, ""]
    errors: Float[Array, " targets"]
    gradient: Float[Array, ""]
    held: Bool[Array, " nv"]
    met: Bool[Array, ""]
    bent: Bool[Array, ""]
    stop: Bool[Array, ""]


class _Lanes(NamedTuple):
    """Searches that run side by side, and the best one of each target with the number of its guess.

    Job j is target ``j % targets`` from guess ``j // targets``; each lane takes the next one when it has ended.

    Attributes:
        states: The searches, with the leading axis of lanes.
        next: The next job that no lane has taken.
        best: The best search of each target, with the leading axis of targets.
        guess: The number of its guess (targets,).
    """

    states: IterationState
    job: Int[Array, " lanes"]
    next: Int[Array, ""]
    best: IterationState
    guess: Int[Array, " targets"]


def _search_targets(
    task: PoseResiduals, targets: Targets, guesses: Float[Array, "guesses nq"], options: SearchOptions
) -> IterationState:
    """The last state for each target from the first guess that meets it, or else from the best one."""
    count = len(targets[0])
    jobs = count * len(guesses)

    def start(job: Array) -> IterationState:
        return jax.vmap(lambda q: _start(task, q, options))(guesses[jnp.minimum(job // count, len(guesses) - 1)])

    def advance(lanes: _Lanes) -> _Lanes:
        row, guess = lanes.job % count, lanes.job // count
        states = jax.vmap(lambda goals, s: _step(task, goals, options, s))([x[row] for x in targets], lanes.states)
        known = jax.tree.map(lambda x: x[row], lanes.best)
        beaten = known.met & (lanes.guess[row] < guess)
        ended = (states.stop | (states.i >= options.max_iterations) | beaten) & (lanes.job < jobs)
        # written so that errors that are not finite show, and make way for finite ones
        less = ~(jnp.max(states.errors, axis=1) >= jnp.max(known.errors, axis=1))
        better = ended & ~beaten & (states.met | (~known.met & less))
        # of several for one target the first guess; the others end one iteration later
        first = jnp.full(count, jobs).at[jnp.where(better, row, count)].min(lanes.job, mode="drop")
        ended = ended & (~better | (first[row] == lanes.job))
        at = jnp.where(better & ended, row, count)
        best, number = jax.tree.map(
            lambda old, new: old.at[at].set(new, mode="drop"), (lanes.best, lanes.guess), (states, guess)
        )
        job = jnp.where(ended, lanes.next + jnp.cumsum(ended) - 1, lanes.job)
        states = jax.tree.map(lambda new, old: _chosen(ended, new, old), start(job), states)
        return _Lanes(states, job, lanes.next + jnp.sum(ended), best, number)

    best = start(jnp.arange(count))
    best = best._replace(errors=jnp.full_like(best.errors, jnp.inf))
    job = jnp.arange(min(jobs, LANES))
    lanes = _Lanes(start(job), job, jnp.array(len(job)), best, jnp.zeros(count, job.dtype))
    return control_flow.while_loop(lambda s: jnp.any(s.job < jobs), advance, lanes).best


def _chosen(where: Bool[Array, " lanes"], a: Array, b: Array) -> Array:
    """The entries of a where a condition on the first axis holds, those of b elsewhere."""
    return jnp.where(where.reshape(-1, *(1,) * (a.ndim - 1)), a, b)


def _start(task: PoseResiduals, q: Float[Array, " nq"], options: SearchOptions) -> IterationState:
    """The state before the first iteration."""
    zero, no = jnp.zeros((), q.dtype), jnp.array(False)
    errors, held = jnp.zeros(task.rows, q.dtype), jnp.zeros(task.model.nv, bool)
    return IterationState(jnp.array(0), q, options.damping, errors, zero, held, no, no, no)


def _step(task: PoseResiduals, targets: Targets, options: SearchOptions, s: IterationState) -> IterationState:
    """The state after one more iteration, a step of the method of Levenberg and Marquardt; the last one takes none.

    A lane that ends takes the next guess, so that a state holds the configuration and the damping and no normal
    equations: these are made at the start of each iteration, and not, as by ``LevenbergMarquardt``, at its end.
    """
    model, dtype = task.model, s.q.dtype

    def residual_at(dv: Array) -> tuple[Array, tuple[Array, Array]]:
        q = model.retract(s.q, dv)
        errors = task.errors(targets, q)
        r = task.residual(errors, q)
        return r, (r, jnp.stack([jnp.sum(e * e) for e in errors]))

    J, (r, squares) = jax.jacfwd(residual_at, has_aux=True)(jnp.zeros(model.nv, dtype))
    g = J.T @ r
    low, high = _room(model, s.q, options.limits)
    held = _held(g, low, high)
    gradient = jnp.max(jnp.abs(jnp.where(held, 0, g)))
    met = jnp.where(task.posture_weight > 0, gradient <= options.tolerance, jnp.all(squares <= options.tolerance**2))
    # damping in proportion to the error keeps the convergence quadratic where the target is met, also where
    # the solution is not isolated
    add = s.mu * jnp.sqrt(r @ r) * jnp.eye(model.nv, dtype=dtype)
    dv, _ = native_box_minimum(J.T @ J + add, g, low, high)
    trial = model.retract(s.q, dv)
    after = task.residual(task.errors(targets, trial), trial)
    better = after @ after < r @ r
    mu = jnp.where(better, jnp.maximum(s.mu / 4, options.damping), 8 * s.mu)
    # with more damping there is no hope of a step; where only the slope vanishes, as at a stretched arm whose target
    # lies inward, there is one from nearby
    stuck = ~met & ~better & (s.mu > 1 / options.damping**2)
    # a posture's compromise meets no target, and the way back takes as long as the way
    bend = stuck & ~s.bent & (task.posture_weight == 0) & (2 * s.i < options.max_iterations)
    way = _ASIDE * jnp.cos(jnp.arange(1, model.nv + 1, dtype=dtype))
    inward = jnp.where((way < low) | (way > high), -way, way)
    aside = model.retract(s.q, jnp.clip(inward, low, high))
    stop = met | (stuck & ~bend)
    q = jnp.where(bend, aside, jnp.where(better & ~stop, trial, s.q))
    mu = jnp.where(bend, options.damping, mu)
    return IterationState(s.i + 1, q, mu, jnp.sqrt(squares), gradient, held, met, s.bent | bend, stop)


def _room(model: Model, q: Float[Array, " nq"], limits: bool) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
    """How far each joint may still move down and up, rad or m; infinite for groups, which have no limits."""
    wide = jnp.full(model.nv, jnp.inf, q.dtype)
    if not limits:
        return -wide, wide
    at, speeds = single_numbers(model.q_slices, model.v_slices)
    low = (-wide).at[speeds].set(jnp.minimum(model.lower[speeds] - q[at], 0))
    return low, wide.at[speeds].set(jnp.maximum(model.upper[speeds] - q[at], 0))


def _limits_met(model: Model, q: Float[np.ndarray, " nq"]) -> tuple[str, ...]:
    """The position limits at which a configuration stands, by name."""
    at, speeds = single_numbers(model.q_slices, model.v_slices)
    owners = {part.start: name for name, part in model.v_slices.items()}
    lower, upper = np.asarray(model.lower), np.asarray(model.upper)
    near = tolerance_of(None, 0.6, q.dtype)
    found = []
    for i, k in zip(at, speeds, strict=True):
        name = next(owners[start] for start in sorted(owners, reverse=True) if start <= k)
        found += [f"{side} limit of {name}" for side, bound in (("lower", lower[k]), ("upper", upper[k]))
                  if abs(q[i] - bound) <= near]  # fmt: skip
    return tuple(found)


def _held(g: Float[Array, " nv"], low: Float[Array, " nv"], high: Float[Array, " nv"]) -> Bool[Array, " nv"]:
    """Whether a limit holds each joint: there the gradient points out of it."""
    return ((low >= 0) & (g > 0)) | ((high <= 0) & (g < 0))


def _error(target: Float[Array, "4 4"] | Float[Array, " 3"], pose: Float[Array, "4 4"]) -> Float[Array, " _"]:
    """The twist (6,) from a target pose to a pose, or the vector (3,) from a target position to its origin."""
    if target.ndim == 2:
        return SE3.log(SE3.compose(SE3.inverse(target), pose))
    return pose[:3, 3] - target


def inverse_kinematics(
    model: Model,
    frame: str | int | Sequence[str | int],
    target: Any,
    q0: Float[Array, " nq"] | Float[Array, "guesses nq"] | None = None,
    *,
    weight: Any = 1.0,
    posture: Any = None,
    posture_weight: float = 0.0,
    limits: bool = True,
    damping: float = 1e-3,
    max_iterations: int = 100,
    tolerance: float | None = None,
    clearance: float | Clearance | None = None,
) -> InverseKinematicsSolution:
    """A configuration at which frames have given poses or positions, by damped least squares on the group:
    ``min 1/2 sum_i |W^1/2 log(target_i^-1 T_i(q))|^2 + w/2 |difference(posture, q)|^2`` with ``lower <= q <= upper``.

    Each iteration is the minimum, within the limits, of the model ``J^T J + mu 1``; mu falls with the error.

    The first derivatives of q by the model's numbers, the targets and the posture are those of the implicit function
    theorem at the solution, in both modes; the search is not differentiated, and q0 has none. Joints at a limit stay
    there. Where the solution is not isolated (a redundant arm without a posture) it is that of least norm, and where
    the minimum is degenerate (a stretched arm) the directions that it leaves open do not move. Higher derivatives are
    not those of the solution.

    Args:
        frame: Name of the frame, or its place in ``model.frame_names``; or several.
        target: A pose (*batch, 4, 4) or a position (*batch, 3) in the world, m; for several frames a list of them.
        q0: Where to start, by default neutral put within the limits; several rows are tried until one meets
            the targets, else the best is taken.
        weight: Weight of the residuals' squares: one number, (6,) or (3,); for several frames a list, one for each.
        posture: Configuration (nq,) towards which freedom that is left is used; by default q0's first row.
        posture_weight: Weight of the squares of its distance; the target is then met up to the compromise.
        limits: Whether the model's position limits hold.
        damping: The least mu, relative to the error.
        max_iterations: Largest number of iterations of a search.
        tolerance: Bound of each target's error; by default 1e-9 in float64 and 1e-4 in float32. With a posture the
            error is what the compromise leaves, and the gradient is compared.
        clearance: The least distance of all ``model.solid_pairs()``, m, or a ``Clearance`` that says of which; by
            default solids may overlap. What a pair lacks of it counts as an error of a target does: the search ends
            where there is none, with a posture up to the compromise, and other guesses help where it is caught
            behind an obstacle. In derivatives pairs without anything to spare stay so.

    Returns:
        The configurations, with the errors that are left and a result code that is a sentence.

    Raises:
        ModelError: the machine has loops, which the search would open, or no solids to keep a clearance.
        ValueError: there is no such frame, a shape is wrong, a target is no pose, the limits are infeasible, or
            max_iterations is less than 1.
        TypeError: dtypes differ from the model's.

    Source: Fan and Yuan 2005, On the quadratic convergence of the Levenberg-Marquardt method without nonsingularity
    assumption, Computing 74, for the damping by the error.
    """
    refuse_loops(
        model.topology,
        "inverse_kinematics",
        "the search would open them",
        "put the target's joint where it has to be and take lgsim.close_loops(model, q, hold=[that joint])",
    )
    several = not isinstance(frame, str | int)
    names = tuple(frame) if several else (frame,)
    given, weights = (list(x) if several else [x] for x in (target, _each(weight, len(names), several)))
    if not names or len(given) != len(names) or len(weights) != len(names):
        raise ValueError(
            f"target: expected one for each of {len(names)} frames, at least one, got {len(given)} targets and "
            f"{len(weights)} weights"
        )
    frames = tuple(frame_index(model.topology, name) for name in names)
    targets = [_target(model, f"target of {name!r}", x) for name, x in zip(names, given, strict=True)]
    guesses = _guesses(model, q0, limits)
    home = guesses[0] if posture is None else check.floating("posture", posture, model.nq)
    weights = [jnp.asarray(w, model.dtype) for w in weights]
    bound = tolerance_of(tolerance, 0.6, model.dtype)
    limit = check.count("max_iterations", max_iterations)
    options = SearchOptions(limit, jnp.asarray(damping, model.dtype), jnp.asarray(bound, model.dtype), limits)
    kept = _kept(model, clearance)
    task = PoseResiduals(model, weights, home, jnp.asarray(posture_weight, model.dtype), frames, kept)
    batch = jnp.broadcast_shapes(*(x.shape[:k] for x, k in targets))
    flat = [jnp.broadcast_to(x, (*batch, *x.shape[k:])).reshape(-1, *x.shape[k:]) for x, k in targets]
    out = _search(task, flat, guesses, options)
    return jax.tree.map(lambda x: x.reshape(*batch, *x.shape[1:]), out)


@compiled
def _search(
    task: PoseResiduals, targets: Targets, guesses: Float[Array, "guesses nq"], options: SearchOptions
) -> InverseKinematicsSolution:
    """The solutions for targets with one leading axis, compiled, with their derivatives."""
    best = _search_targets(*_stopped((task, targets, guesses, options)))
    codes = INVERSE_KINEMATICS_RESULTS

    def solution(targets: Targets, s: IterationState) -> InverseKinematicsSolution:
        q, slack = _implicit(task, targets, s.q, ~s.held, options.tolerance)
        result = codes.where(s.stop, codes.out_of_reach, codes.max_iterations)
        result = codes.where(s.met, codes.successful, result)
        count = len(task.frames)
        short = s.errors[count] if task.rows > count else jnp.zeros_like(s.gradient)
        return InverseKinematicsSolution(q, s.errors[:count], s.gradient, s.i, result, slack, short)

    return jax.vmap(solution)(targets, best)


def _implicit(
    task: PoseResiduals,
    targets: Targets,
    q: Float[Array, " nq"],
    free: Bool[Array, " nv"],
    tolerance: Float[Array, ""],
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """(q with the derivatives of the solution, those of one Newton step whose matrix is frozen; its slack)."""
    model, q = task.model, jax.lax.stop_gradient(q)
    touching = jax.lax.stop_gradient(task.touching(q, tolerance))

    def gradient(task: PoseResiduals, targets: Targets, dv: Array) -> Array:
        def cost(dv: Array) -> Array:
            moved = model.retract(q, dv)
            r = task.residual(task.errors(targets, moved, touching), moved)
            return r @ r / 2

        return jax.grad(cost)(dv)

    zero = zeros_beside(model.nv, q)
    still, aims = _stopped((task, targets))
    H = jax.jacfwd(lambda dv: gradient(still, aims, dv))(zero)
    H = jnp.where(free[:, None] & free[None, :], (H + H.T) / 2, 0)
    inverse = jax.lax.stop_gradient(
        jnp.linalg.pinv(H, rtol=jnp.asarray(tolerance_of(None, 0.4, q.dtype), H.dtype), hermitian=True)
    )
    dv = -inverse @ gradient(task, targets, zero)
    # the diagonal of the projection on what no target sees
    slack = jnp.where(free, 1 - jnp.sum(inverse * H, axis=1), 0)
    return model.retract(q, dv - jax.lax.stop_gradient(dv)), jax.lax.stop_gradient(slack)


def _stopped(tree: PyTree) -> PyTree:
    """The tree without derivatives."""
    return jax.tree.map(jax.lax.stop_gradient, tree)


def _target(model: Model, name: str, value: Any) -> tuple[Array, int]:
    """(a target, the number of its leading axes that are batches)."""
    x = check.floating(name, value)
    if x.dtype != model.dtype:
        raise TypeError(f"{name}: expected {model.dtype}, the dtype of the model, got {x.dtype}")
    if x.shape[-2:] == (4, 4):
        LeftTranslation(SE3).check_point(x, name)
        return x, x.ndim - 2
    if x.shape[-1:] == (3,):
        return x, x.ndim - 1
    raise ValueError(f"{name}: expected a pose (..., 4, 4) or a position (..., 3), got shape {x.shape}")


def _kept(model: Model, clearance: float | Clearance | None) -> Clearance | None:
    """The clearance of a number, with the model's dtype, so that another number compiles nothing."""
    if clearance is None:
        return None
    given = clearance if isinstance(clearance, Clearance) else Clearance(model, clearance)
    return Clearance(given.model, jnp.asarray(given.margin, model.dtype), given.pairs)


def _each(weight: Any, count: int, several: bool) -> list[Any]:
    """The weight of each frame."""
    if not several:
        return [weight]
    return list(weight) if isinstance(weight, list | tuple) else [weight] * count


def _guesses(model: Model, q0: Any, limits: bool) -> Float[Array, "guesses nq"]:
    """The starts, within the limits."""
    guesses = check.floating("q0", model.neutral() if q0 is None else q0, model.nq)
    if guesses.ndim > 2:
        raise ValueError(f"q0: expected shape ({model.nq},) or (guesses, {model.nq}), got {guesses.shape}")
    guesses = guesses.reshape(-1, model.nq)
    if not limits:
        return guesses
    at, speeds = single_numbers(model.q_slices, model.v_slices)
    low, high = model.lower[speeds], model.upper[speeds]
    check_order("limits", low, high)
    low, high = (jnp.broadcast_to(x, (len(guesses), len(at))) for x in (low, high))
    return guesses.at[:, at].set(jnp.clip(guesses[:, at], low, high))
