"""Model predictive control: repeated solution of a problem from the measured state, warm-started from the last plan."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from lgsim._compile.xla import compiled, export_module, with_arrays
from lgsim._compile.xla.closures import closure_to_pytree
from lgsim.lie.action import Point
from lgsim.optimize.augmented_lagrangian import AugmentedLagrangian
from lgsim.optimize.constraints.penalties import Penalties
from lgsim.optimize.ilqr import ILQR
from lgsim.optimize.problem import Problem
from lgsim.optimize.receding_horizon.real_time import few_iterations, first_multipliers, real_time_iteration, shifted
from lgsim.optimize.solver import RESULTS, Solution, Solver, start
from lgsim.optimize.unknowns.phases import refuse_phases

ITERATIONS = 4
"""Number of iterations of the default solver at each control step."""
LENGTHS = 8
"""Number of step lengths in its line search with constraints: stiff penalties require short steps."""


class Guess(NamedTuple):
    """The warm start for the next problem, with the fields of ``MPCState``."""

    ys: Point
    us: Float[Array, "horizon nu"]
    multipliers: Penalties | None
    gains: Float[Array, "horizon nu n"] | None


@export_module("lgsim.optimize.MPCState")
class MPCState(eqx.Module):
    """The plan that a controller passes from one step to the next; arrays for ``jit``, ``vmap`` and ``lax.scan``.

    From the cost on its fields are those of the last solution, see ``Solution``; after ``ILQR`` the gradient and the
    feasibility are those before its last step.

    Attributes:
        t: Time of the next measurement, s.
        ys: The guess of the next problem's states: those of the last solution, shifted by one step; leaves (H + 1,
            ...).
        us: The guess of its controls, likewise (H, controls).
        result: A solver with few iterations seldom ends with ``RESULTS.successful``.
        bad_node: -1 if everything is finite.
        multipliers: Multipliers and penalty of the next problem: those of the last solution, shifted by one step; None
            without an ``AugmentedLagrangian``.
        gains: Feedback (H, controls, action.dim) about the guess, ``u = us + gains . difference(ys, y)``, for use while
            a step is late; None for solvers without feedback.
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
    multipliers: Penalties | None
    gains: Float[Array, "horizon nu n"] | None

    @classmethod
    def of(cls, t: Float[Array, ""], guess: Guess, solution: Solution) -> MPCState:
        """The plan with a guess for time t and the result of the last solution."""
        names = ("cost", "gradient", "feasibility", "violation", "iterations", "result", "bad_node", "bad_quantity")
        return cls(t, **guess._asdict(), **{name: getattr(solution, name) for name in names})


class MPCController(eqx.Module):
    """Model predictive controller of a problem; see ``mpc``.

    Attributes:
        problem: The problem that is solved at each step, from the measured state and time.
    """

    problem: Problem
    solver: Solver

    def plan(self, y: Point | None = None, us: Any = None, ys: Any = None, *, solver: Solver | None = None) -> MPCState:
        """The initial plan: the solution of the problem, by default to convergence.

        Args:
            y: The state at the problem's t0, by default its y0.
            us: Guess of the controls, as for ``solve``.
            ys: Guess of the states, as for ``solve``.
            solver: The solver of the initial problem, by default to convergence: ``ILQR()``, or with constraints
                ``AugmentedLagrangian()``.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: shapes are inconsistent, the solver does not support constraints, or a cost is not finite.
        """
        problem = self.problem if y is None else _from(self.problem, self.problem.t0, y)
        if solver is None:
            solver = AugmentedLagrangian() if problem.constraints else ILQR()
        us, ys = start(problem, solver, us, ys)
        return _plan(self.solver, closure_to_pytree(problem), with_arrays(solver), us, ys)

    def step(self, plan: MPCState, y: Point) -> tuple[Float[Array, " nu"], MPCState]:
        """One control step: the control from now to now + dt, and the plan for then, from the state y measured now.

        The problem is solved from y at ``plan.t``, starting from the shifted plan, whose states keep their gap to y
        (multiple shooting); with constraints from the rollout of its feedback from y. If the solution is not finite,
        the shifted plan is kept and its first control returned, and ``result``, ``bad_node`` and ``bad_quantity`` of
        the plan give the reason. A pure function, compiled once.

        With constraints ``plan.result`` is ``RESULTS.constraints_violated`` or ``RESULTS.not_complementary`` until the
        multipliers have converged, and ``plan.violation`` is the largest violation of rows that controls affect: a
        measured state outside of a bound does not count, the following nodes do.

        Raises:
            ValueError: y has another structure, shape or dtype than the problem's y0, or the plan belongs to a
                controller with another solver.
        """
        if isinstance(self.solver, AugmentedLagrangian) != (plan.multipliers is not None):
            kind = type(self.solver).__name__
            raise ValueError(
                f"plan: expected a plan of this controller, whose solver is {kind}, got one"
                f" {'with' if plan.multipliers is not None else 'without'} multipliers; create it with"
                " controller.plan()"
            )
        return _step(self, plan, _checked_state(self.problem, y))


def mpc(problem: Problem, solver: Solver | None = None) -> MPCController:
    """Model predictive control: solve a problem at each step from the measured state.

    The controller needs few iterations for each step, since it starts from the last plan.

    ::

        controller = mpc(problem)
        plan = controller.plan(y)
        while True:
            u, plan = controller.step(plan, measured())

    The horizon recedes: at ``plan.t`` the problem runs from t to t + H dt, so that time-dependent costs, such as
    ``FramePath``, follow their reference. ``step`` is a pure function: use it in ``lax.scan`` together with a
    simulation, or batch it over many robots with ``vmap``. The guess is the last solution shifted by one step: controls
    and states of the nodes from the second on, the last control repeated and the state after it. In ``lgsim.rollout``
    pass the control of a step as ``torques``; a ``control`` of a simulation is evaluated at all stages of a method and
    has no memory, so that it cannot be this controller.

    With an ``AugmentedLagrangian`` a step is one outer iteration: the iterations of its inner solver, then an update of
    the multipliers, which are stored in the plan and shifted with its nodes. The penalty is determined with the initial
    plan, stiff relative to the cost of the problem, and stays constant: at least ``penalty``, at most ``penalty_max``.
    Its ``max_iterations`` applies only to ``solve``.

    Args:
        problem: The problem; dt of its dynamics is the time between two calls of ``step``.
        solver: The solver of each step, by default ``ILQR(max_iterations=4)``, with constraints
            ``AugmentedLagrangian(ILQR(max_iterations=4, line_search_steps=8))``. A solver that ignores a guess of
            states uses single shooting.

    Returns:
        The controller, an immutable module of arrays.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the solver does not support constraints, or a cost is not finite at y0.

    Source: Diehl, Bock and Schlöder 2005, A real-time iteration scheme for nonlinear optimization in optimal feedback
    control, for few iterations from a shifted guess.
    """
    if isinstance(problem, Problem):
        refuse_phases(problem.dynamics)
        if problem.free:
            raise ValueError("problem: expected a problem without free unknowns; use optimize.settled_problem")
    if solver is None:
        solver = ILQR(max_iterations=ITERATIONS)
        if getattr(problem, "constraints", ()):
            solver = AugmentedLagrangian(ILQR(max_iterations=ITERATIONS, line_search_steps=LENGTHS))
    start(problem, solver, None, None)
    return MPCController(closure_to_pytree(problem), with_arrays(solver))


@compiled
def _plan(
    steps: Solver, problem: Problem, solver: Solver, us: Float[Array, "horizon nu"], ys: Point | None
) -> MPCState:
    """The initial plan by a solver, with the data that the solver of the steps needs; compiled."""
    solution = solver.run(problem, us, ys)
    inner, multipliers, gains = steps, None, None
    if isinstance(steps, AugmentedLagrangian):
        inner, multipliers = steps.inner, first_multipliers(steps, problem, solution)
    if isinstance(inner, ILQR):
        shape = (*solution.us.shape, problem.dynamics.action.dim)
        gains = jnp.zeros(shape, problem.dtype) if solution.gains is None else solution.gains
    return MPCState.of(problem.t0, Guess(solution.ys, solution.us, multipliers, gains), solution)


@compiled
def _step(controller: MPCController, plan: MPCState, y: Point) -> tuple[Float[Array, " nu"], MPCState]:
    """The step of a controller, compiled."""
    problem, solver = _from(controller.problem, plan.t, y), controller.solver
    ys = jax.tree.map(lambda nodes, first: nodes.at[0].set(first), plan.ys, y)
    if isinstance(solver, AugmentedLagrangian) and plan.multipliers is not None:
        solution = real_time_iteration(solver, problem, plan.us, ys, plan.gains, plan.multipliers)
    else:
        solution = few_iterations(solver, problem, plan.us, ys)
    multipliers = None if plan.multipliers is None else solution.multipliers
    found = Guess(solution.ys, solution.us, multipliers, None if plan.gains is None else solution.gains)
    finite = solution.bad_node < 0
    for leaf in jax.tree.leaves(found):
        finite = finite & jnp.all(jnp.isfinite(leaf))
    kept = Guess(plan.ys, plan.us, plan.multipliers, plan.gains)
    ys, us, multipliers, gains = jax.tree.map(lambda new, old: jnp.where(finite, new, old), found, kept)
    u, last = us[0], us[-1]
    end = problem.step(problem.horizon, jax.tree.map(lambda nodes: nodes[-1], ys), last)
    guess = Guess(
        ys=jax.tree.map(lambda nodes, end: jnp.concatenate([nodes[1:], end[None]]), ys, end),
        us=jnp.concatenate([us[1:], last[None]]),
        multipliers=None if multipliers is None else shifted(multipliers),
        gains=None if gains is None else jnp.concatenate([gains[1:], gains[-1:]]),
    )
    return u, MPCState.of(problem.time(1), guess, solution)


def _from(problem: Problem, t: Float[Array, ""], y: Point) -> Problem:
    """The problem from another state and time, without validation."""
    return eqx.tree_at(lambda p: (p.y0, p.t0), problem, (y, t))


def _checked_state(problem: Problem, y: Any) -> Point:
    """Validate the measured state against the problem's y0."""
    expected, got = (jax.tree.map(lambda x: (np.shape(x), jnp.result_type(x)), tree) for tree in (problem.y0, y))
    if expected != got:
        raise ValueError(f"y: expected a state like the problem's y0, {expected}, got {got}")
    return jax.tree.map(jnp.asarray, y)
