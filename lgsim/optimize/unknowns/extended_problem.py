"""Conversion of problems with free unknowns and phases to standard ones: unknowns become constant states."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float

from lgsim.lie.action import Point
from lgsim.optimize.cost import Sum
from lgsim.optimize.problem import Problem
from lgsim.optimize.solver import Solution
from lgsim.optimize.unknowns.extension import (
    Extended,
    ExtendedDynamics,
    LiftedConstraint,
    Parameters,
    TimeCost,
    lifted,
    phases_of,
)
from lgsim.optimize.unknowns.phases import Phase, Phases
from lgsim.optimize.unknowns.unknown import FreeParameters, FreeStart, FreeTime


def is_extended(problem: Problem) -> bool:
    """True if solvers need the extended problem."""
    return bool(problem.free) or isinstance(problem.dynamics, Phases)


def extended(problem: Problem) -> Problem:
    """The problem of states (y, x) without free unknowns: x contains the time between nodes of each phase, and
    parameters.

    It has one more step, and further controls, the changes of the unknowns from their guesses (start, times,
    parameters). The first step takes no time and has only these controls, all others have the problem's own; unused
    controls are fixed at zero by bounds. Hence every solver supports it, bounds of unknowns hold exactly, and optimum,
    verdict and derivatives are those of the original problem. Times of the extended problem count steps, from -1.

    Raises:
        TypeError: the time is free, but the steps do not depend on it.
        ValueError: bounds are inconsistent, or the horizon is not that of the phases.
    """
    plain, start, phases, parameters = _parted(problem)
    values = _values(phases, parameters, problem.dtype)
    starts = 0 if start is None else problem.dynamics.action.dim
    controls = problem.controls + starts + values.size
    costs = [
        *lifted(plain.running, "running", parameters),
        *lifted(plain.running_rate, "running_rate", parameters, timed=True),
    ]
    constraints = [LiftedConstraint.of(plain, c, parameters, None, i) for i, c in enumerate(problem.constraints)]
    for j, phase in enumerate(phases):
        costs += lifted(phase.running, "running", parameters, j)
        costs += lifted(phase.running_rate, "running_rate", parameters, j, timed=True)
        constraints += [LiftedConstraint.of(plain, c, parameters, j, i) for i, c in enumerate(phase.constraints)]
    weights = [jnp.asarray(0.0 if p.time is None else p.time.weight, problem.dtype) * p.steps for p in phases]
    ends = [*lifted(plain.terminal, "terminal", parameters), TimeCost(jnp.stack(weights))]
    changes = (
        jnp.concatenate(_bounds(side, starts, start, phases, parameters, problem.dtype)) for side in ("lower", "upper")
    )
    lower, upper = (_joined(*both) for both in zip(changes, problem.bounds, strict=True))
    return Problem(
        ExtendedDynamics(problem.dynamics.action, parameters, starts, values.size, controls),
        (problem.y0, values),
        horizon=problem.horizon + 1,
        running=Sum(tuple(costs)),
        terminal=Sum(tuple(ends)),
        lower=lower,
        upper=upper,
        constraints=constraints,
        args=plain,
        t0=-1.0,
    )


def extended_guess(problem: Problem, us: Array | None, ys: Point | None) -> tuple[Array | None, Extended | None]:
    """Convert the guess of a problem to its extended problem; unknowns stay at their guesses.

    Args:
        us: Controls (H, controls), or None.
        ys: States with a leading axis H + 1, or None.
    """
    _, start, phases, parameters = _parted(problem)
    x = _values(phases, parameters, problem.dtype)
    changes = x.size + (0 if start is None else problem.dynamics.action.dim)
    if us is not None:
        us = jnp.pad(us, ((1, 0), (0, changes)))
    if ys is not None:
        states = jax.tree.map(lambda y: jnp.concatenate([y[:1], y]), ys)
        ys = states, jnp.broadcast_to(x, (problem.horizon + 2, x.size))
    return us, ys


def contracted(problem: Problem, found: Solution) -> Solution:
    """Convert the solution of the extended problem to that of the problem."""
    plain, _, phases, parameters = _parted(problem)
    y, x = found.ys
    n, m = problem.dynamics.action.dim, problem.controls
    _, now = parameters.put(plain, x[-1])
    multipliers = found.multipliers
    if multipliers is not None:
        rows = tuple(rows[1:] for rows in multipliers.path)
        multipliers = eqx.tree_at(
            lambda m: (m.path, m.start_rows), multipliers, (rows, None), is_leaf=lambda x: x is None
        )
    return eqx.tree_at(
        lambda s: (s.ts, s.ys, s.us, s.gains, s.multipliers, s.constraints, s.bad_node, s.parameters),
        found,
        (
            problem.t0 + jax.vmap(now.time_of)(jnp.arange(problem.horizon + 1).astype(problem.dtype)),
            jax.tree.map(lambda y: y[1:], y),
            found.us[1:, :m],
            None if found.gains is None else found.gains[1:, :m, :n],
            multipliers,
            None if found.constraints is None else found.constraints.moved(-1),
            jnp.where(found.bad_node > 0, found.bad_node - 1, found.bad_node),
            parameters.split(x[-1, len(phases) :]),
        ),
        is_leaf=lambda x: x is None,
    )


def settled_problem(problem: Problem, found: Solution) -> Problem:
    """The problem with its unknowns fixed at the values of its solution.

    Use it to visualize a plan, to estimate its integration error, or to plan again with the same time.

    Args:
        found: The solution of ``solve``.
    """
    plain, _, phases, parameters = _parted(problem)
    nodes = np.cumsum([0, *(phase.steps for phase in phases)])
    dts = [(found.ts[b] - found.ts[a]) / (b - a) for a, b in pairwise(nodes.tolist())]
    x = jnp.concatenate([jnp.stack(dts), *map(jnp.ravel, found.parameters)])
    now, dynamics = parameters.put(plain, x)
    if not isinstance(problem.dynamics, Phases):
        dynamics = dynamics.phases[0].dynamics
    return eqx.tree_at(lambda p: (p.dynamics, p.y0), now, (dynamics, jax.tree.map(lambda y: y[0], found.ys)))


def _parted(problem: Problem) -> tuple[Problem, FreeStart | None, tuple[Phase, ...], Parameters]:
    """The problem without free unknowns, the free start, the phases with their free times, the free parameters."""
    time = next((unknown for unknown in problem.free if isinstance(unknown, FreeTime)), None)
    start = next((unknown for unknown in problem.free if isinstance(unknown, FreeStart)), None)
    phases = phases_of(problem).phases
    if isinstance(problem.dynamics, Phases):
        if time is not None:
            raise ValueError(
                "free: expected Phase(time=FreeTime(...)) for a problem with phases, got FreeTime; each phase has"
                " its own time"
            )
        fixed = [eqx.tree_at(lambda p: p.time, p, None, is_leaf=lambda x: x is None) for p in phases]
        problem = eqx.tree_at(lambda p: p.dynamics.phases, problem, tuple(fixed))
    else:
        phases = (eqx.tree_at(lambda p: p.time, phases[0], time, is_leaf=lambda x: x is None),)
    for phase in phases:
        if phase.time is not None and not phase.dynamics.reads_dt:
            raise TypeError(
                "free: FreeTime changes the time between nodes, on which DiscreteDynamics does not depend; use"
                " FieldDynamics, or add the time to its states"
            )
    parameters = Parameters(tuple(unknown for unknown in problem.free if isinstance(unknown, FreeParameters)))
    return eqx.tree_at(lambda p: p.free, problem, ()), start, phases, parameters


def _values(phases: tuple[Phase, ...], parameters: Parameters, dtype: DTypeLike) -> Float[Array, " unknowns"]:
    """The guesses of the unknowns."""
    guesses = (*(phase.dynamics.dt for phase in phases), *(unknown.guess for unknown in parameters.unknowns))
    return jnp.concatenate([jnp.ravel(jnp.asarray(x, dtype)) for x in guesses])


def _bounds(
    side: str,
    starts: int,
    start: FreeStart | None,
    phases: tuple[Phase, ...],
    parameters: Parameters,
    dtype: DTypeLike,
) -> list[Array]:
    """The lower or upper bounds of the changes (start, times, parameters)."""
    found = [] if start is None else [_like("FreeStart", side, getattr(start, side), jnp.zeros(starts, dtype))]
    for phase in phases:
        dt = jnp.asarray(phase.dynamics.dt, dtype)
        bound = dt if phase.time is None else jnp.asarray(getattr(phase.time, side), dtype) / phase.steps
        found.append(jnp.reshape(bound - dt, 1))
    for unknown in parameters.unknowns:
        guess = jnp.asarray(unknown.guess, dtype)
        found.append(jnp.ravel(_like("FreeParameters", side, getattr(unknown, side), guess) - guess))
    return found


def _like(owner: str, side: str, bound: Any, value: Array) -> Array:
    """Broadcast a bound to the entries of a value."""
    bound = jnp.asarray(bound, value.dtype)
    if bound.shape not in ((), value.shape):
        raise ValueError(f"{owner}: {side}: expected a scalar or shape {value.shape}, got {bound.shape}")
    return jnp.broadcast_to(bound, value.shape)


def _joined(changes: Float[Array, " changes"], own: Float[Array, "horizon nu"]) -> Array:
    """The bounds of all steps (H + 1, nu + changes)."""
    first = jnp.concatenate([jnp.zeros_like(own[0]), changes])
    return jnp.concatenate([first[None], jnp.pad(own, ((0, 0), (0, changes.size)))])
