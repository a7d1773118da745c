"""Trial steps of a trajectory along a policy, and the merit that accepts them."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.dynamics.matrices import matvec
from lgsim.lie.action import Point
from lgsim.optimize.linearize import split_nodes
from lgsim.optimize.problem import Problem
from lgsim.optimize.sweep import Sweep
from lgsim.spatial import scan_last, while_last

ARMIJO = 1e-4
"""Share of the predicted decrease that a step must bring."""
SHORTER = 0.25
"""Length of a step in parts of the one that was tried before."""


class Trial(NamedTuple):
    """A trajectory after a step of some length, with its cost."""

    ys: Point
    us: Array
    cost: Array


class Search(NamedTuple):
    """The outcome: the last trial, its length, and whether it lowers the merit."""

    trial: Trial
    length: Array
    accepted: Array


def trial(problem: Problem, ys: Point, us: Array, found: Sweep, length: Array) -> Trial:
    """The trajectory under ``u + length k + K difference(y, y_new)``, whose gaps are ``1 - length`` of the old ones.

    Args:
        problem: The problem.
        ys, us: The trajectory.
        found: The feedback, and the gaps of the steps.
        length: From 0 to 1.

    Source: Mastalli et al. 2020, Crocoddyl, sec. III (feasibility-driven DDP).
    """
    action = problem.dynamics.action
    before, _ = split_nodes(ys)

    def step(now: Point, node: tuple) -> tuple[Point, tuple[Point, Array]]:
        i, y, u, gap, K, k = node
        u = problem.clip(u + length * k + matvec(K, action.difference(y, now)))
        after = action.move((length - 1) * gap, problem.step(i, now, u))
        return after, (after, u)

    nodes = (jnp.arange(problem.horizon), before, us, found.gaps, found.K, found.k)
    _, (rest, controls) = scan_last(step, problem.y0, nodes)
    states = jax.tree.map(lambda y, more: jnp.concatenate([y[None], more]), problem.y0, rest)
    return Trial(states, controls, problem.cost(states, controls))


def search(
    problem: Problem, ys: Point, us: Array, found: Sweep,
    cost: Array, slope: Array, weight: Array, slack: Array, trials: Any,
) -> Search:  # fmt: skip
    """Shorten the step until ``merit = cost + weight * sum |gaps|`` falls enough.

    Args:
        problem, ys, us, found: See ``trial``.
        cost: Of the trajectory.
        slope: The derivative of the merit by the length at zero, negative.
        weight: Of the gaps.
        slack: What rounding may add to the merit.
        trials: Lengths, at most; with none the trajectory itself comes back.
    """
    total = jnp.sum(jnp.abs(found.gaps))

    def attempt(length: Array) -> tuple[Trial, Array]:
        tried = trial(problem, ys, us, found, length)
        merit = tried.cost + weight * (1 - length) * total
        # a trial that is not finite fails every comparison
        enough = merit <= cost + weight * total + ARMIJO * length * slope + slack
        finite = jnp.array(True)
        for leaf in jax.tree.leaves(tried):
            finite = finite & jnp.all(jnp.isfinite(leaf))
        return tried, enough & finite

    def going(state: tuple[Array, Array, Trial, Array]) -> Array:
        tried, _, _, accepted = state
        return ~accepted & (tried < trials)

    def shorten(state: tuple[Array, Array, Trial, Array]) -> tuple[Array, Array, Trial, Array]:
        tried, length, _, _ = state
        length = jnp.where(tried == 0, length, SHORTER * length)
        return (tried + 1, length, *attempt(length))

    none = Trial(ys, us, cost)
    first = (jnp.array(0), jnp.ones((), us.dtype), none, jnp.array(False))
    _, length, last, accepted = while_last(going, shorten, first)
    return Search(last, length, accepted)
