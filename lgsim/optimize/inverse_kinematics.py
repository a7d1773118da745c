"""Inverse kinematics: configurations for given frame poses, by damped least squares, batched over targets."""

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
"""Fraction of free motion above which a joint is reported as undetermined."""

_ASIDE = 1e-3
"""Largest perturbation of a stuck search, rad or m."""

LANES = 256
"""Number of searches that run in parallel."""

Targets = list[Array]
"""For each frame a pose (4, 4) or a position (3,) in the world, m; or a batch, with leading axes."""


@export_codes("lgsim.optimize.INVERSE_KINEMATICS_RESULTS")
class INVERSE_KINEMATICS_RESULTS(eqx.Enumeration):
    """Termination codes of inverse kinematics; the text names a remedy."""

    successful = ""
    out_of_reach = (
        "No configuration near the guesses reaches the targets within the joint limits; q is the one with the"
        " smallest error. Move the target, give other or more guesses, or use limits=False to check if the joint"
        " limits are the reason."
    )
    max_iterations = (
        "The maximum number of iterations was reached while the error still decreased. Increase max_iterations or"
        " improve the guess."
    )


@export_tuple("lgsim.optimize.InverseKinematicsSolution")
class InverseKinematicsSolution(NamedTuple):
    """The result of ``inverse_kinematics``; arrays have the leading axes of the targets.

    Attributes:
        error: Norm of each target's residual (*batch, targets): m, for poses m and rad.
        gradient: Largest entry of the gradient of half the weighted squares with respect to the joints without an
            active limit (*batch).
        result: ``INVERSE_KINEMATICS_RESULTS.successful``, or the reason for the failure (*batch).
        slack: Fraction of the motion of each degree of freedom that changes no target and meets no limit (*batch, nv):
            0 if targets and posture determine it, 1 if they do not depend on it.
        shortfall: Norm of the clearance violations of geometry pairs (*batch), m; zero without a clearance.
    """

    q: Float[Array, "*batch nq"]
    error: Float[Array, "*batch targets"]
    gradient: Float[Array, " *batch"]
    iterations: Int[Array, " *batch"]
    result: INVERSE_KINEMATICS_RESULTS
    slack: Float[Array, "*batch nv"]
    shortfall: Float[Array, " *batch"]

    def verdict(self, model: Model, index: int | tuple[int, ...] = ()) -> Verdict:
        """The verdict of the search for one target; outside of ``jit``.

        Converged; with the joints that the targets do not determine (``undetermined``, with the fraction of free motion
        of each); at active joint limits; or failed, with the remaining error.

        Args:
            index: Index of a target in a batch.

        Raises:
            ValueError: there are several targets, and no index is given.
        """
        codes, chosen = INVERSE_KINEMATICS_RESULTS, (lambda x: np.asarray(x)[index])
        q, error = chosen(self.q), chosen(self.error)
        if q.ndim != 1:
            raise ValueError(
                f"index: expected an index into the targets of shape {np.shape(self.gradient)}, got {index}"
            )
        bounds = _limits_met(model, q)
        if not chosen(self.result == codes.successful):
            why = codes[codes.out_of_reach if chosen(self.result == codes.out_of_reach) else codes.max_iterations]
            worst = int(np.argmax(error))
            held = f"; active joint limits: {first_names(bounds)}" if bounds else ""
            short = float(chosen(self.shortfall))
            close = f"; the clearance is violated by {short:.3g} m" if short > 0 else ""
            said = f"failed: {why} The error of target {worst} of {len(error)} is {error[worst]:.3g}{close}{held}"
            return Verdict(Outcome.FAILED, said, bounds)
        slack = chosen(self.slack)
        loose = [name for name, part in model.v_slices.items() if np.any(slack[part] > _OPEN)]
        open_joints = f"{first_names(loose)} {'are' if len(loose) > 1 else 'is'} not determined by the targets"
        return converged(bounds, "limit", [(name, float("nan")) for name in loose], open_joints)


class SearchOptions(eqx.Module):
    """Options of a search.

    Attributes:
        damping: The minimum mu, relative to the error.
        tolerance: Bound of each target's error, m and rad.
        limits: True to enforce the model's joint limits.
    """

    max_iterations: int = eqx.field(static=True)
    damping: Float[Array, ""]
    tolerance: Float[Array, ""]
    limits: bool = eqx.field(static=True)


class PoseResiduals(eqx.Module):
    """The residuals of frames at targets, and of the difference from a posture.

    Attributes:
        weights: Weight of the squares of each frame's residual.
        posture: Configuration (nq,).
        frames: Indices of the frames in ``model.frame_names``.
        clearance: The clearance constraint, or None.
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

        The last one is the violation of the clearance by geometry pairs (pairs,), m; for active pairs the negative of
        their margin.
        """
        poses = forward_kinematics(self.model, q)
        found = [_error(x, poses[i]) for i, x in zip(self.frames, targets, strict=True)]
        if self.clearance is not None:
            short = self.clearance.state_value(q)
            found.append(jnp.maximum(short, 0) if touching is None else jnp.where(touching, short, 0))
        return found

    def touching(self, q: Float[Array, " nq"], tolerance: Float[Array, ""]) -> Bool[Array, " pairs"] | None:
        """A mask of the geometry pairs without a margin to their clearance."""
        return None if self.clearance is None else self.clearance.state_value(q) >= -tolerance

    def residual(self, errors: list[Float[Array, " _"]], q: Float[Array, " nq"]) -> Float[Array, " rows"]:
        """All residuals, weighted; a search minimizes half the sum of their squares."""
        weights = self.weights + [jnp.ones((), q.dtype)] * (len(errors) - len(self.weights))
        pairs = zip(weights, errors, strict=True)
        rows = [jnp.sqrt(jnp.broadcast_to(w, r.shape)) * r for w, r in pairs]
        # the square root is not differentiable at zero
        root = jnp.where(
            self.posture_weight > 0, jnp.sqrt(jnp.where(self.posture_weight > 0, self.posture_weight, 1)), 0
        )
        return jnp.concatenate([*rows, root * self.model.difference(self.posture, q)])


class IterationState(NamedTuple):
    """The state of one search from one guess.

    Attributes:
        mu: Damping relative to the error.
        errors: Norm of each target's residual at the last linearization (targets,).
        gradient: Largest entry of the gradient there, with respect to the joints without an active limit.
        held: Mask of the joints with an active limit there (nv,).
        met: True if the tolerance is satisfied there.
        bent: True if the search continued from a perturbed stuck point.
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
    """Parallel searches, and the best one of each target with the index of its guess.

    Job j is target ``j % targets`` from guess ``j // targets``; a lane takes the next job when its search has ended.

    Attributes:
        states: The searches, with the leading axis of lanes.
        next: The next job that has not started.
        best: The best search of each target, with the leading axis of targets.
        guess: The index of its guess (targets,).
    """

    states: IterationState
    job: Int[Array, " lanes"]
    next: Int[Array, ""]
    best: IterationState
    guess: Int[Array, " targets"]


def _search_targets(
    task: PoseResiduals, targets: Targets, guesses: Float[Array, "guesses nq"], options: SearchOptions
) -> IterationState:
    """The final state for each target from the first guess that reaches it, or else from the best one."""
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
        # errors that are not finite lose against finite ones, but are reported
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
    """Entries of a where a condition on the first axis is true, those of b elsewhere."""
    return jnp.where(where.reshape(-1, *(1,) * (a.ndim - 1)), a, b)


def _start(task: PoseResiduals, q: Float[Array, " nq"], options: SearchOptions) -> IterationState:
    """The state before the first iteration."""
    zero, no = jnp.zeros((), q.dtype), jnp.array(False)
    errors, held = jnp.zeros(task.rows, q.dtype), jnp.zeros(task.model.nv, bool)
    return IterationState(jnp.array(0), q, options.damping, errors, zero, held, no, no, no)


def _step(task: PoseResiduals, targets: Targets, options: SearchOptions, s: IterationState) -> IterationState:
    """The state after one more Levenberg-Marquardt step; the last iteration takes none.

    A finished lane takes the next guess. A state therefore contains the configuration and the damping but no normal
    equations: these are computed at the start of each iteration, not, as in ``LevenbergMarquardt``, at its end.
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
    # damping in proportion to the error preserves quadratic convergence to reachable targets, also if the solution is
    # not isolated
    add = s.mu * jnp.sqrt(r @ r) * jnp.eye(model.nv, dtype=dtype)
    dv, _ = native_box_minimum(J.T @ J + add, g, low, high)
    trial = model.retract(s.q, dv)
    after = task.residual(task.errors(targets, trial), trial)
    better = after @ after < r @ r
    mu = jnp.where(better, jnp.maximum(s.mu / 4, options.damping), 8 * s.mu)
    # more damping would not help; if only the gradient vanishes, as for a stretched arm whose target lies inward, a
    # perturbation does
    stuck = ~met & ~better & (s.mu > 1 / options.damping**2)
    # the compromise with a posture reaches no target, and a perturbation would not improve it
    bend = stuck & ~s.bent & (task.posture_weight == 0) & (2 * s.i < options.max_iterations)
    way = _ASIDE * jnp.cos(jnp.arange(1, model.nv + 1, dtype=dtype))
    inward = jnp.where((way < low) | (way > high), -way, way)
    aside = model.retract(s.q, jnp.clip(inward, low, high))
    stop = met | (stuck & ~bend)
    q = jnp.where(bend, aside, jnp.where(better & ~stop, trial, s.q))
    mu = jnp.where(bend, options.damping, mu)
    return IterationState(s.i + 1, q, mu, jnp.sqrt(squares), gradient, held, met, s.bent | bend, stop)


def _room(model: Model, q: Float[Array, " nq"], limits: bool) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
    """The distance of each joint to its lower and upper limit, rad or m; infinite for joints on groups, which have no
    limits.
    """
    wide = jnp.full(model.nv, jnp.inf, q.dtype)
    if not limits:
        return -wide, wide
    at, speeds = single_numbers(model.q_slices, model.v_slices)
    low = (-wide).at[speeds].set(jnp.minimum(model.lower[speeds] - q[at], 0))
    return low, wide.at[speeds].set(jnp.maximum(model.upper[speeds] - q[at], 0))


def _limits_met(model: Model, q: Float[np.ndarray, " nq"]) -> tuple[str, ...]:
    """Names of the active joint limits of a configuration."""
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
    """A mask of the joints with an active limit, at which the descent direction points outwards."""
    return ((low >= 0) & (g > 0)) | ((high <= 0) & (g < 0))


def _error(target: Float[Array, "4 4"] | Float[Array, " 3"], pose: Float[Array, "4 4"]) -> Float[Array, " _"]:
    """The twist (6,) from a target pose to a pose, or the vector (3,) from a target position to the pose's origin."""
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
    """Inverse kinematics: a configuration with given end effector poses or positions.

    It is found by damped least squares on the group: ``min 1/2 sum_i |W^1/2 log(target_i^-1 T_i(q))|^2 + w/2
    |difference(posture, q)|^2`` subject to ``lower <= q <= upper``.

    Each iteration minimizes the model ``J^T J + mu 1`` within the joint limits; mu decreases with the error.

    The first derivatives of q with respect to the model's parameters, the targets and the posture follow from the
    implicit function theorem at the solution, in both modes; the search is not differentiated, and q0 has zero
    derivatives. Joints at an active limit do not move. If the solution is not isolated (a redundant arm without a
    posture) the derivative is that of minimum norm, and if the minimum is degenerate (a stretched arm) the undetermined
    directions do not move. Higher derivatives are not supported.

    Args:
        frame: Name of the frame, or its index in ``model.frame_names``; or several.
        target: A pose (*batch, 4, 4) or a position (*batch, 3) in the world, m; for several frames a list of them.
        q0: Initial guess, by default neutral, projected on the joint limits; several rows are tried until one reaches
            the targets, else the best is returned.
        weight: Weight of the squared residuals: a scalar, (6,) or (3,); for several frames a list, one for each.
        posture: Preferred configuration (nq,) for redundant degrees of freedom; by default q0's first row.
        posture_weight: Weight of the squared difference from the posture; the solution is then a compromise with the
            targets.
        limits: True to enforce the model's joint limits.
        damping: The minimum mu, relative to the error.
        max_iterations: Maximum number of iterations of a search.
        tolerance: Bound of each target's error; by default 1e-9 in float64 and 1e-4 in float32. With a posture the
            error is that of the compromise, and the gradient is compared instead.
        clearance: Collision avoidance: the minimum distance of all ``model.solid_pairs()``, m, or a ``Clearance`` with
            its own pairs; by default geometries may overlap. A violation counts like a target's error: the search ends
            without violations, with a posture up to the compromise, and further guesses help if it is trapped behind an
            obstacle. In derivatives active pairs stay active.

    Returns:
        The configurations, with the remaining errors and a result code with a message.

    Raises:
        ModelError: the model has closed kinematic loops, which the search would open, or no geometries for a clearance.
        ValueError: a frame does not exist, a shape is wrong, a target is not a pose, the joint limits are infeasible,
            or max_iterations is less than 1.
        TypeError: dtypes differ from the model's.

    Source: Fan and Yuan 2005, On the quadratic convergence of the Levenberg-Marquardt method without nonsingularity
    assumption, Computing 74, for the damping by the error.
    """
    refuse_loops(
        model.topology,
        "inverse_kinematics",
        "the search would open them",
        "place the target's joint and use lgsim.close_loops(model, q, hold=[that joint])",
    )
    several = not isinstance(frame, str | int)
    names = tuple(frame) if several else (frame,)
    given, weights = (list(x) if several else [x] for x in (target, _each(weight, len(names), several)))
    if not names or len(given) != len(names) or len(weights) != len(names):
        raise ValueError(
            f"target: expected one for each of {len(names)} frames, and at least one frame, got {len(given)} targets"
            f" and {len(weights)} weights"
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
    """The configuration with its derivatives, by one Newton step with a constant matrix; and its slack."""
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
    # the diagonal of the projection on the null space of the targets
    slack = jnp.where(free, 1 - jnp.sum(inverse * H, axis=1), 0)
    return model.retract(q, dv - jax.lax.stop_gradient(dv)), jax.lax.stop_gradient(slack)


def _stopped(tree: PyTree) -> PyTree:
    """The tree without derivatives."""
    return jax.tree.map(jax.lax.stop_gradient, tree)


def _target(model: Model, name: str, value: Any) -> tuple[Array, int]:
    """A target, and the number of its leading batch axes."""
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
    """Convert the margin of a clearance to the model's dtype, so that new values do not compile again."""
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
    """The initial guesses, projected on the joint limits."""
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
