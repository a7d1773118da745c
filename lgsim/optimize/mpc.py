"""Model predictive control: a problem solved again and again from the measured state, each time from the last plan."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from lgsim._compile.xla import compiled, with_arrays
from lgsim._compile.xla.closures import opened
from lgsim.lie.action import Point
from lgsim.optimize.ilqr import ILQR
from lgsim.optimize.problem import Problem
from lgsim.optimize.solver import RESULTS, Solution, Solver, start

ITERATIONS = 4
"""Iterations of the default solver at each step of the control."""


class MPCState(eqx.Module):
    """The plan that a controller keeps from one step to the next; arrays for ``jit``, ``vmap`` and ``lax.scan``.

    From the cost on its fields are those of the last solution, see ``Solution``; after ``ILQR`` the gradient and the
    feasibility are those before its last step.

    Attributes:
        t: Time of the next measurement, s.
        ys: The guess of the next problem's states: those of the last solution, shifted by one step; leaves (H + 1,
            ...).
        us: The guess of its controls, likewise (H, controls).
        result: A solver of few iterations seldom ends with ``RESULTS.successful``.
        bad_node: -1 where all is finite.
    """

    t: Float[Array, ""]
    ys: Point
    us: Float[Array, "horizon nu"]
    cost: Float[Array, ""]
    gradient: Float[Array, ""]
    feasibility: Float[Array, ""]
    violation: Float[Array, ""]
    iterations: Int[Array, ""]
    result: RESULTS
    bad_node: Int[Array, ""]
    bad_quantity: Int[Array, ""]

    @classmethod
    def of(cls, t: Float[Array, ""], ys: Point, us: Float[Array, "horizon nu"], solution: Solution) -> MPCState:
        """The plan with a guess for time t and the outcome of the last solution."""
        names = ("cost", "gradient", "feasibility", "violation", "iterations", "result", "bad_node", "bad_quantity")
        return cls(t, ys, us, **{name: getattr(solution, name) for name in names})


class MPCController(eqx.Module):
    """Receding horizon control of a problem; see ``mpc``.

    Attributes:
        problem: The problem that is solved at each step, from the state and the time of the step.
    """

    problem: Problem
    solver: Solver

    def plan(self, y: Point | None = None, us: Any = None, ys: Any = None, *, solver: Solver | None = None) -> MPCState:
        """The first plan: the solution of the problem, by default with ``ILQR()`` to the end.

        Args:
            y: The state at the problem's t0, by default its y0.
            us: Guess of the controls, as for ``solve``.
            ys: Guess of the states, as for ``solve``.
            solver: The solver of this first problem, by default one that converges, ``ILQR()``.

        Raises:
            TypeError: an argument is of the wrong kind.
            ValueError: shapes do not fit, constraints that the solver does not handle, or a cost that is not finite.
        """
        problem = self.problem if y is None else _from(self.problem, self.problem.t0, y)
        solver = ILQR() if solver is None else solver
        us, ys = start(problem, solver, us, ys)
        solution = _solve(opened(problem), with_arrays(solver), us, ys)
        return MPCState.of(problem.t0, solution.ys, solution.us, solution)

    def step(self, plan: MPCState, y: Point) -> tuple[Float[Array, " nu"], MPCState]:
        """(the control from now to now + dt, the plan for then), from the state y measured now.

        The problem is solved from y at ``plan.t``, starting from the shifted plan, whose states keep their gap to y
        (multiple shooting). Where the solution is not finite, the shifted plan is kept and its first control returned,
        and ``result``, ``bad_node`` and ``bad_quantity`` of the plan say why. A pure function, compiled once.

        Raises:
            ValueError: y has another structure, shape or dtype than the problem's y0.
        """
        return _step(self, plan, _checked_state(self.problem, y))


def mpc(problem: Problem, solver: Solver | None = None) -> MPCController:
    """A controller that solves a problem at each step from the measured state, by few iterations from the last plan.

    ::

        controller = mpc(problem)
        plan = controller.plan(y)
        while True:
            u, plan = controller.step(plan, measured())

    The horizon recedes: at ``plan.t`` the problem runs from t to t + H dt, so that costs that read the time, such as
    ``FramePath``, follow their reference. ``step`` is a pure function: put it in ``lax.scan`` together with a
    simulation, or map it over many machines. The guess is the last solution moved by one step: controls and states
    of the nodes from the second on, the last control again and the state that it leads to. An ``AugmentedLagrangian``
    starts without multipliers each time. In ``lgsim.rollout`` the control of a step goes in as ``torques``; a
    ``control`` of a simulation is evaluated at all stages of a method and keeps nothing, so that a controller is none.

    Args:
        problem: The problem; dt of its dynamics is the time between two calls of ``step``.
        solver: The solver of each step, by default ``ILQR(max_iterations=4)``. One that takes no guess of states shoots
            from the controls.

    Returns:
        The controller, an immutable module of arrays.

    Raises:
        TypeError: an argument is of the wrong kind.
        ValueError: constraints that the solver does not handle, or a cost that is not finite at y0.

    Source: Diehl, Bock and Schlöder 2005, A real-time iteration scheme for nonlinear optimization in optimal feedback
    control, for few iterations from a shifted guess.
    """
    solver = ILQR(max_iterations=ITERATIONS) if solver is None else solver
    start(problem, solver, None, None)
    return MPCController(opened(problem), with_arrays(solver))


@compiled
def _solve(problem: Problem, solver: Solver, us: Float[Array, "horizon nu"], ys: Point | None) -> Solution:
    """The solution by a solver, compiled."""
    return solver.run(problem, us, ys)


@compiled
def _step(controller: MPCController, plan: MPCState, y: Point) -> tuple[Float[Array, " nu"], MPCState]:
    """The step of a controller, compiled."""
    problem = _from(controller.problem, plan.t, y)
    ys = jax.tree.map(lambda nodes, first: nodes.at[0].set(first), plan.ys, y)
    solution = _iterated(controller.solver, problem, plan.us, ys)
    found = solution.ys, solution.us
    finite = solution.bad_node < 0
    for leaf in jax.tree.leaves(found):
        finite = finite & jnp.all(jnp.isfinite(leaf))
    ys, us = jax.tree.map(lambda new, old: jnp.where(finite, new, old), found, (ys, plan.us))
    u, last = us[0], us[-1]
    end = problem.step(problem.horizon, jax.tree.map(lambda nodes: nodes[-1], ys), last)
    ys = jax.tree.map(lambda nodes, end: jnp.concatenate([nodes[1:], end[None]]), ys, end)
    us = jnp.concatenate([us[1:], last[None]])
    return u, MPCState.of(problem.time(1), ys, us, solution)


def _iterated(solver: Solver, problem: Problem, us: Float[Array, "horizon nu"], ys: Point) -> Solution:
    """The solution after a solver's iterations, without the look at its end that ``ILQR.run`` takes."""
    if not isinstance(solver, ILQR):
        return solver.run(problem, us, ys)
    return solver.finish(problem, solver.advance(problem, solver.begin(problem, us, ys), solver.max_iterations))


def _from(problem: Problem, t: Float[Array, ""], y: Point) -> Problem:
    """The problem from another state and time, without the checks of a new one."""
    return eqx.tree_at(lambda p: (p.y0, p.t0), problem, (y, t))


def _checked_state(problem: Problem, y: Any) -> Point:
    """The measured state, if it is like the problem's y0."""
    expected, got = (jax.tree.map(lambda x: (np.shape(x), jnp.result_type(x)), tree) for tree in (problem.y0, y))
    if expected != got:
        raise ValueError(f"y: expected a state like the problem's y0, {expected}, got {got}")
    return jax.tree.map(jnp.asarray, y)
