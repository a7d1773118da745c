"""Damped least squares for many targets side by side: the search of ``inverse_kinematics``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.dynamics.kinematics import forward_kinematics, frame_index
from lgsim.lie.group import SE3
from lgsim.linalg.box_qp import native_box_minimum
from lgsim.multibody.model import Model
from lgsim.optimize.constraints import ordered
from lgsim.support import check

LANES = 256
"""Searches that run side by side."""


class SearchOptions(eqx.Module):
    """Numbers of a search."""

    max_iterations: int = eqx.field(static=True)
    damping: Array
    tolerance: Array
    limits: bool = eqx.field(static=True)


class PoseResiduals(eqx.Module):
    """All that a residual depends on but the targets."""

    model: Model
    weights: list[Array]
    home: Array
    pull: Array
    frames: tuple[int, ...] = eqx.field(static=True)

    def errors(self, targets: list[Array], q: Array) -> list[Array]:
        """The residual of each target, before weighting."""
        poses = forward_kinematics(self.model, q)
        return [_error(x, poses[i]) for i, x in zip(self.frames, targets, strict=True)]

    def residual(self, errors: list[Array], q: Array) -> Array:
        """All rows, weighted."""
        pairs = zip(self.weights, errors, strict=True)
        rows = [jnp.sqrt(jnp.broadcast_to(w, r.shape)) * r for w, r in pairs]
        # a square root of zero would have no derivative
        pull = jnp.where(self.pull > 0, jnp.sqrt(jnp.where(self.pull > 0, self.pull, 1)), 0)
        return jnp.concatenate([*rows, pull * self.model.difference(self.home, q)])


class IterationState(NamedTuple):
    """One search from one guess."""

    i: Array
    q: Array
    mu: Array
    errors: Array
    gradient: Array
    held: Array
    met: Array
    stop: Array


class _Lanes(NamedTuple):
    """Searches that run side by side, and the best one of each target with the number of its guess.

    Job j is target ``j % targets`` from guess ``j // targets``; each lane takes the next one when it has ended.
    """

    states: IterationState
    job: Array
    next: Array
    best: IterationState
    guess: Array


def search_targets(task: PoseResiduals, targets: list[Array], guesses: Array, setting: SearchOptions) -> IterationState:
    """The outcome for each target from the first guess that meets it, or else from the best one."""
    count = len(targets[0])
    jobs = count * len(guesses)

    def start(job: Array) -> IterationState:
        return jax.vmap(lambda q: _start(task, q, setting))(guesses[jnp.minimum(job // count, len(guesses) - 1)])

    def advance(lanes: _Lanes) -> _Lanes:
        row, guess = lanes.job % count, lanes.job // count
        states = jax.vmap(lambda aim, s: _step(task, aim, setting, s))([x[row] for x in targets], lanes.states)
        known = jax.tree.map(lambda x: x[row], lanes.best)
        beaten = known.met & (lanes.guess[row] < guess)
        ended = (states.stop | (states.i >= setting.max_iterations) | beaten) & (lanes.job < jobs)
        # written so that what is not finite is told, and makes way for what is
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
    return jax.lax.while_loop(lambda s: jnp.any(s.job < jobs), advance, lanes).best


def _chosen(where: Array, a: Array, b: Array) -> Array:
    return jnp.where(where.reshape(-1, *(1,) * (a.ndim - 1)), a, b)


def _start(task: PoseResiduals, q: Array, setting: SearchOptions) -> IterationState:
    zero, no = jnp.zeros((), q.dtype), jnp.array(False)
    errors, held = jnp.zeros(len(task.frames), q.dtype), jnp.zeros(task.model.nv, bool)
    return IterationState(jnp.array(0), q, setting.damping, errors, zero, held, no, no)


def _step(task: PoseResiduals, targets: list[Array], setting: SearchOptions, s: IterationState) -> IterationState:
    """One iteration; the last one only looks."""
    model, dtype = task.model, s.q.dtype

    def along(dv: Array) -> tuple[Array, tuple[Array, Array]]:
        q = model.retract(s.q, dv)
        errors = task.errors(targets, q)
        r = task.residual(errors, q)
        return r, (r, jnp.stack([jnp.sum(e * e) for e in errors]))

    J, (r, squares) = jax.jacfwd(along, has_aux=True)(jnp.zeros(model.nv, dtype))
    g = J.T @ r
    low, high = _room(model, s.q, setting.limits)
    held = _held(g, low, high)
    gradient = jnp.max(jnp.abs(jnp.where(held, 0, g)))
    met = jnp.where(task.pull > 0, gradient <= setting.tolerance, jnp.all(squares <= setting.tolerance**2))
    # damping in proportion to the error keeps the convergence quadratic where the target is met, also where
    # the solution is not isolated
    add = s.mu * jnp.sqrt(r @ r) * jnp.eye(model.nv, dtype=dtype)
    dv, _ = native_box_minimum(J.T @ J + add, g, low, high)
    trial = model.retract(s.q, dv)
    after = task.residual(task.errors(targets, trial), trial)
    better = after @ after < r @ r
    stop = met | (~better & (s.mu > 1 / setting.damping**2))
    q = jnp.where(better & ~stop, trial, s.q)
    mu = jnp.where(better, jnp.maximum(s.mu / 4, setting.damping), s.mu * 8)
    return IterationState(s.i + 1, q, mu, jnp.sqrt(squares), gradient, held, met, stop)


def _room(model: Model, q: Array, limits: bool) -> tuple[Array, Array]:
    """How far each joint may still move down and up (nv,); infinite for groups, which have no limits."""
    wide = jnp.full(model.nv, jnp.inf, q.dtype)
    if not limits:
        return -wide, wide
    at, speeds = numbers_of(model)
    low = (-wide).at[speeds].set(jnp.minimum(model.lower[speeds] - q[at], 0))
    return low, wide.at[speeds].set(jnp.maximum(model.upper[speeds] - q[at], 0))


def numbers_of(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """The places in q and in v of all joints that are numbers, not groups."""
    at, speeds = [np.zeros(0, int)], [np.zeros(0, int)]
    for name, q in model.q_slices.items():
        v = model.v_slices[name]
        if q.stop - q.start == v.stop - v.start:
            at, speeds = [*at, np.arange(q.start, q.stop)], [*speeds, np.arange(v.start, v.stop)]
    return np.concatenate(at), np.concatenate(speeds)


def _held(g: Array, low: Array, high: Array) -> Array:
    """Which joints a limit holds: there the gradient points out of it."""
    return ((low >= 0) & (g > 0)) | ((high <= 0) & (g < 0))


def _error(target: Array, pose: Array) -> Array:
    """The twist to a pose from its target, or the gap to a position."""
    if target.ndim == 2:
        return SE3.log(SE3.compose(SE3.inverse(target), pose))
    return pose[:3, 3] - target


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


class InverseKinematicsResult(NamedTuple):
    """What ``inverse_kinematics`` returns; arrays have the leading axes of the targets.

    Attributes:
        q: Configuration (nq,).
        error: Length of each target's residual (targets,): m, and of poses with rad.
        gradient: Largest entry of the gradient of half the weighted squares by the joints that the limits leave free.
        iterations: How many were done.
        result: ``REACH.successful`` or what went wrong.
    """

    q: Array
    error: Array
    gradient: Array
    iterations: Array
    result: INVERSE_KINEMATICS_RESULTS


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
) -> InverseKinematicsResult:
    """A configuration at which frames have given poses or positions, by damped least squares on the group:
    ``min 1/2 sum_i |W^1/2 log(target_i^-1 T_i(q))|^2 + w/2 |difference(posture, q)|^2`` with ``lower <= q <= upper``.

    Each iteration is the minimum, within the limits, of the model ``J^T J + mu 1``; mu falls with the error.

    The first derivatives of q by the model's numbers, the targets and the posture are those of the implicit function
    theorem at the solution, in both modes; the search is not differentiated, and q0 has none. Joints at a limit stay
    there. Where the solution is not isolated (a redundant arm without a posture) it is that of least norm, and where
    the minimum is degenerate (a stretched arm) the directions that it leaves open do not move. Higher derivatives are
    not those of the solution.

    Args:
        model: The machine.
        frame: Name of the frame, or its place in ``model.frame_names``; or several.
        target: A pose (*batch, 4, 4) or a position (*batch, 3) in the world, m; for several frames a list of them.
        q0: Where to start, by default neutral put within the limits; several rows are tried until one meets
            the targets, else the best is taken.
        weight: Of the residuals' squares: one number, (6,) or (3,); for several frames a list, one for each.
        posture: Configuration (nq,) towards which freedom that is left is used; by default q0's first row.
        posture_weight: Of its squares; the target is then met up to the compromise.
        limits: Whether the model's position limits hold.
        damping: The least mu, relative to the error.
        max_iterations: At most.
        tolerance: Of each target's error; by default 1e-9 in float64 and 1e-4 in float32. With a posture the error is
            what the compromise leaves, and the gradient is compared.

    Returns:
        Reach(q, error, gradient, iterations, result).

    Raises:
        ValueError: there is no such frame, a shape is wrong, or the limits are infeasible.
        TypeError: dtypes differ from the model's.

    Source: Fan and Yuan 2005, On the quadratic convergence of the Levenberg-Marquardt method without nonsingularity
    assumption, Computing 74, for the damping by the error.
    """
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
    setting = SearchOptions(
        max_iterations, jnp.asarray(damping, model.dtype), _tolerance(tolerance, model.dtype), limits
    )
    task = PoseResiduals(model, weights, home, jnp.asarray(posture_weight, model.dtype), frames)
    batch = jnp.broadcast_shapes(*(x.shape[:k] for x, k in targets))
    flat = [jnp.broadcast_to(x, (*batch, *x.shape[k:])).reshape(-1, *x.shape[k:]) for x, k in targets]
    out = _search(task, flat, guesses, setting)
    return jax.tree.map(lambda x: x.reshape(*batch, *x.shape[1:]), out)


@eqx.filter_jit
def _search(
    task: PoseResiduals, targets: list[Array], guesses: Array, setting: SearchOptions
) -> InverseKinematicsResult:
    best = search_targets(*_stopped((task, targets, guesses, setting)))

    def found(targets: list[Array], s: IterationState) -> InverseKinematicsResult:
        q = _implicit(task, targets, s.q, ~s.held)
        code = INVERSE_KINEMATICS_RESULTS.where(
            s.stop, INVERSE_KINEMATICS_RESULTS.out_of_reach, INVERSE_KINEMATICS_RESULTS.max_iterations
        )
        return InverseKinematicsResult(
            q,
            s.errors,
            s.gradient,
            s.i,
            INVERSE_KINEMATICS_RESULTS.where(s.met, INVERSE_KINEMATICS_RESULTS.successful, code),
        )

    return jax.vmap(found)(targets, best)


def _implicit(task: PoseResiduals, targets: list[Array], q: Array, free: Array) -> Array:
    """q, with the derivatives of the solution: those of one Newton step whose matrix is frozen."""
    model, q = task.model, jax.lax.stop_gradient(q)

    def gradient(task: PoseResiduals, targets: list[Array], dv: Array) -> Array:
        def cost(dv: Array) -> Array:
            moved = model.retract(q, dv)
            r = task.residual(task.errors(targets, moved), moved)
            return r @ r / 2

        return jax.grad(cost)(dv)

    zero = jnp.zeros(model.nv, q.dtype)
    still, aims = _stopped((task, targets))
    H = jax.jacfwd(lambda dv: gradient(still, aims, dv))(zero)
    H = jnp.where(free[:, None] & free[None, :], (H + H.T) / 2, 0)
    inverse = jax.lax.stop_gradient(jnp.linalg.pinv(H, rtol=_digits(0.4, q.dtype), hermitian=True))
    dv = -inverse @ gradient(task, targets, zero)
    return model.retract(q, dv - jax.lax.stop_gradient(dv))


def _stopped(tree: Any) -> Any:
    return jax.tree.map(jax.lax.stop_gradient, tree)


def _target(model: Model, name: str, value: Any) -> tuple[Array, int]:
    """(a target, how many of its leading axes are batches)."""
    x = check.floating(name, value)
    if x.dtype != model.dtype:
        raise TypeError(f"{name}: expected {model.dtype}, the dtype of the model, got {x.dtype}")
    if x.shape[-2:] == (4, 4):
        return x, x.ndim - 2
    if x.shape[-1:] == (3,):
        return x, x.ndim - 1
    raise ValueError(f"{name}: expected a pose (..., 4, 4) or a position (..., 3), got shape {x.shape}")


def _each(weight: Any, count: int, several: bool) -> list[Any]:
    if not several:
        return [weight]
    return list(weight) if isinstance(weight, list | tuple) else [weight] * count


def _guesses(model: Model, q0: Any, limits: bool) -> Array:
    """The starts (guesses, nq), within the limits."""
    guesses = check.floating("q0", model.neutral() if q0 is None else q0, model.nq)
    if guesses.ndim > 2:
        raise ValueError(f"q0: expected shape ({model.nq},) or (guesses, {model.nq}), got {guesses.shape}")
    guesses = guesses.reshape(-1, model.nq)
    if not limits:
        return guesses
    at, speeds = numbers_of(model)
    low, high = model.lower[speeds], model.upper[speeds]
    ordered("limits", low, high)
    low, high = (jnp.broadcast_to(x, (len(guesses), len(at))) for x in (low, high))
    return guesses.at[:, at].set(jnp.clip(guesses[:, at], low, high))


def _tolerance(given: float | None, dtype: Any) -> Array:
    return jnp.asarray(_digits(0.6, dtype) if given is None else given, dtype)


def _digits(share: float, dtype: Any) -> float:
    """10 to the minus that share of the digits of a dtype."""
    return 10.0 ** (-share * np.finfo(dtype).precision)
