"""Damped least squares for many targets side by side: the search of ``inverse_kinematics``."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.dynamics.kinematics import forward_kinematics
from lgsim.lie.group import SE3
from lgsim.multibody.model import Model
from lgsim.optimize.box import minimum

LANES = 256
"""Searches that run side by side."""


class Setting(eqx.Module):
    """Numbers of a search."""

    max_iterations: int = eqx.field(static=True)
    damping: Array
    tolerance: Array
    limits: bool = eqx.field(static=True)


class Reaching(eqx.Module):
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


class Search(NamedTuple):
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

    states: Search
    job: Array
    next: Array
    best: Search
    guess: Array


def tried(task: Reaching, targets: list[Array], guesses: Array, setting: Setting) -> Search:
    """The outcome for each target from the first guess that meets it, or else from the best one."""
    count = len(targets[0])
    jobs = count * len(guesses)

    def start(job: Array) -> Search:
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


def _start(task: Reaching, q: Array, setting: Setting) -> Search:
    zero, no = jnp.zeros((), q.dtype), jnp.array(False)
    errors, held = jnp.zeros(len(task.frames), q.dtype), jnp.zeros(task.model.nv, bool)
    return Search(jnp.array(0), q, setting.damping, errors, zero, held, no, no)


def _step(task: Reaching, targets: list[Array], setting: Setting, s: Search) -> Search:
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
    dv, _ = minimum(J.T @ J + add, g, low, high)
    trial = model.retract(s.q, dv)
    after = task.residual(task.errors(targets, trial), trial)
    better = after @ after < r @ r
    stop = met | (~better & (s.mu > 1 / setting.damping**2))
    q = jnp.where(better & ~stop, trial, s.q)
    mu = jnp.where(better, jnp.maximum(s.mu / 4, setting.damping), s.mu * 8)
    return Search(s.i + 1, q, mu, jnp.sqrt(squares), gradient, held, met, stop)


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
