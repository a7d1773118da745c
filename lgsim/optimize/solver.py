"""Solvers of optimal control problems: interface, validated guess, solution and history."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float, Int

from lgsim._compile.xla import compiled, export_codes, export_module, while_last
from lgsim._compile.xla.closures import closure_to_pytree
from lgsim.lie.action import Point
from lgsim.optimize.constraint_rows import ConstraintReport
from lgsim.optimize.constraints.penalties import Penalties
from lgsim.optimize.optimality import Optimality
from lgsim.optimize.problem import Problem
from lgsim.support import check
from lgsim.support.check import is_traced
from lgsim.support.messages import counted
from lgsim.support.verdict import Outcome, Verdict


@export_codes("lgsim.optimize.RESULTS")
class RESULTS(eqx.Enumeration):
    """Termination codes of an optimization; the text names a remedy."""

    successful = ""
    max_iterations = (
        "The maximum number of iterations was reached before an optimum: a further step is predicted to decrease the"
        " cost, see solution.optimality. If the cost still decreases in the history, increase max_iterations or"
        " restart from this trajectory."
    )
    stalled = (
        "No step along the search direction decreases the cost, and the trajectory is not optimal, see"
        " solution.optimality. Costs or dynamics may not be smooth, or the tolerance is below the rounding error of"
        " this precision."
    )
    saddle = (
        "The gradient of the cost is zero at this trajectory but its curvature is negative: it is a saddle point,"
        " not a minimum. Give another guess, such as this trajectory with small perturbations of the controls."
    )
    nonfinite_start = (
        "A quantity is not finite at the initial guess. Give another guess, a shorter horizon or a smaller dt."
    )
    nonfinite_derivative = (
        "A derivative is not finite on a trajectory of finite cost. Check for a square root, a norm or a division at"
        " zero in that quantity."
    )
    constraints_violated = (
        "The constraints are violated by more than the tolerance after all iterations. They may contradict each"
        " other or the dynamics; otherwise increase the iterations or the horizon."
    )
    infeasible = (
        "The constraints are locally infeasible: their violation has a nonzero minimum over all controls within"
        " their bounds. Relax the named constraint or the ones that contradict it, use a longer horizon or wider"
        " control bounds, make it Soft, or start from another guess."
    )
    not_complementary = (
        "The constraints are satisfied, but the trajectory is not optimal: an inactive constraint still has a"
        " multiplier, see solution.optimality.complementarity. Increase the outer iterations or the penalty."
    )
    interrupted = (
        "The solver was interrupted; the best trajectory so far is returned. To resume, call solve again with a"
        " checkpoint."
    )


QUANTITIES = (
    "the state after the step",
    "the running cost",
    "the terminal cost",
    "the gradient of the cost",
    "the Hessian of the cost",
    "the derivative of the step with respect to the state",
    "the derivative of the step with respect to the control",
)
"""Quantities that are checked for finiteness, by the index ``Solution.bad_quantity``."""


@export_module("lgsim.optimize.History")
class History(eqx.Module):
    """The history of a solver, one row for each iteration; rows from ``Solution.iterations`` on are zero.

    Attributes:
        cost: Cost at the start of the iteration (rows,).
        gradient: Largest entry of the gradient with respect to the controls without an active bound (rows,).
        feasibility: Largest gap of the trajectory; in outer iterations the largest violation of the constraints, for
            ``InteriorPoint`` the larger one of both (rows,).
        step: Length of the step, 0 if it was rejected; in outer iterations the number of inner iterations (rows,).
        regularization: Regularization of the Hessian of the controls; in outer iterations the penalty (rows,).
    """

    cost: Float[Array, " rows"]
    gradient: Float[Array, " rows"]
    feasibility: Float[Array, " rows"]
    step: Float[Array, " rows"]
    regularization: Float[Array, " rows"]

    @classmethod
    def empty(cls, length: int, dtype: DTypeLike) -> History:
        """A history of zeros with ``length`` rows."""
        return cls(*(jnp.zeros(length, dtype) for _ in range(5)))

    def record(self, i: Int[Array, ""], **numbers: Float[Array, ""]) -> History:
        """The history with row i filled by the five values of an iteration."""
        return History(**{name: getattr(self, name).at[i].set(value) for name, value in numbers.items()})


@export_module("lgsim.optimize.Solution")
class Solution(eqx.Module):
    """The trajectory found by a solver, with the progress and the outcome of the search.

    Attributes:
        ts: Times of the nodes (H + 1,), s.
        ys: States, each leaf with the leading axis H + 1.
        us: Controls (H, controls).
        cost: Cost of the trajectory.
        gradient: Largest entry of the gradient of the cost with respect to the controls without an active bound.
        feasibility: Largest gap between a state and the result of the step before it; 0 for single shooting.
        violation: Violation of the worst constraint row, in its unit; 0 without constraints.
        gains: Feedback (H, controls, action.dim) about the trajectory, ``u = us + gains . difference(ys, y)``; None for
            solvers without feedback.
        history: The history of the iterations.
        iterations: Number of iterations.
        result: ``RESULTS.successful``, or the reason for the failure.
        bad_node: Index of a node with a value that is not finite, or -1.
        bad_quantity: Index in ``QUANTITIES`` of that value, or -1.
        optimality: Residuals of the optimality conditions, dimensionless: ``decrement``, the predicted change of a
            further step, relative to the cost; ``step``, the size of that step relative to the controls; ``potential``,
            the predicted decrease along the gradient up to the bounds, relative to the cost; ``complementarity`` of the
            constraints.
        multipliers: Multipliers of the constraints, from ``AugmentedLagrangian`` and ``InteriorPoint``; None from other
            solvers.
        constraints: Constraint satisfaction with the worst rows; None from solvers without constraints.
        parameters: The estimated value of each ``FreeParameters`` of the problem. A free time is ``ts[-1] - ts[0]``, a
            free start the first of ys.
    """

    ts: Float[Array, " nodes"]
    ys: Point
    us: Float[Array, "nodes-1 nu"]
    cost: Float[Array, ""]
    gradient: Float[Array, ""]
    feasibility: Float[Array, ""]
    violation: Float[Array, ""]
    gains: Float[Array, "nodes-1 nu n"] | None
    optimality: Optimality
    history: History
    iterations: Int[Array, ""]
    result: RESULTS
    bad_node: Int[Array, ""]
    bad_quantity: Int[Array, ""]
    multipliers: Penalties | None = None
    constraints: ConstraintReport | None = None
    parameters: tuple[Array, ...] = ()

    def __repr__(self) -> str:
        if is_traced(self) or not isinstance(self.cost, Array | np.ndarray) or self.cost.ndim:
            return f"Solution(controls of shape {np.shape(self.us)})"
        done = counted(int(self.iterations), "iteration")
        title = f"Solution({counted(len(self.us), 'step')}, cost {float(self.cost):.6g}, {done})"
        return f"{title}: {self.message or 'successful'}"

    @property
    def verdict(self) -> Verdict:
        """The verdict as one of five outcomes, with the node that is not finite as its sample."""
        if bool(self.result == RESULTS.successful):
            return Verdict(Outcome.CONVERGED, "converged")
        if bool(self.result == RESULTS.interrupted):
            return Verdict(Outcome.STOPPED, f"stopped by the user: {self.message}")
        node = int(self.bad_node)
        return Verdict(Outcome.FAILED, f"failed: {self.message}", sample=node if node >= 0 else None)

    @property
    def message(self) -> str:
        """The reason for termination as a message; outside of ``jit``.

        It names the node and the quantity that is not finite, or the worst constraint, row and node.
        """
        text = RESULTS[self.result]
        if int(self.bad_node) < 0:
            return text if self.constraints is None else text + self._worst_row(self.constraints)
        k = int(self.bad_node)
        return f"{text} It is {QUANTITIES[int(self.bad_quantity)]} at node {k}, t = {float(self.ts[k]):.9g} s."

    def _worst_row(self, report: ConstraintReport) -> str:
        """The worst rows of the constraints, if they are the reason for termination."""
        if bool(self.result == RESULTS.not_complementary):
            place = report.uncomplementary
            said = [f" It is {report.text(place, self.ts)}."] if int(place.node) >= 0 else []
        elif bool((self.result == RESULTS.infeasible) | (self.result == RESULTS.constraints_violated)):
            said = [f" The worst violation is {float(self.violation):.6g}, of {report.text(report.violated, self.ts)}."]
        else:
            return ""
        if int(report.left_out.node) >= 0:
            said.append(f" Ignored, since no control affects it: {report.text(report.left_out, self.ts)}.")
        return "".join(said)


def first_nonfinite(arrays: dict[int, tuple[Any, int]]) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """(node, quantity) of the first entry that is not finite, or (-1, -1).

    Args:
        arrays: For the index of a quantity a pair (pytree of arrays with a leading axis of nodes, index of the first
            node).
    """
    node, quantity = jnp.array(-1), jnp.array(-1)
    for number, (tree, first) in sorted(arrays.items(), reverse=True):
        for leaf in jax.tree.leaves(tree):
            bad = ~jnp.all(jnp.isfinite(leaf.reshape(leaf.shape[0], -1)), axis=1)
            at = jnp.argmax(bad) + first
            earlier = jnp.any(bad) & ((node < 0) | (at <= node))
            node, quantity = jnp.where(earlier, at, node), jnp.where(earlier, number, quantity)
    return node, quantity


def nonfinite_values(
    ys: Point, running: Float[Array, " horizon"], terminal: Float[Array, ""]
) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """(node, quantity) of the first state, running cost or terminal cost that is not finite, or (-1, -1)."""
    return first_nonfinite({0: (ys, 0), 1: (running, 0), 2: (terminal[None], len(running))})


def tolerance_of(given: Float[Array, ""] | float | None, digits: float, dtype: DTypeLike) -> Float[Array, ""] | float:
    """A given tolerance, or by default 10 to the minus a fraction of the decimal digits of a dtype."""
    return 10.0 ** (-digits * np.finfo(dtype).precision) if given is None else given


class Solver(eqx.Module):
    """A solver of a ``Problem``; its parameters affect only speed and tolerance."""

    @abstractmethod
    def run(self, problem: Problem, us: Float[Array, "horizon nu"], ys: Point | None) -> Solution:
        """Solve from a guess; a pure function for ``jit`` and ``vmap``.

        Args:
            ys: States, each leaf with the leading axis H + 1, or None for the rollout of the controls.
        """

    def solution_kinds(self, problem: Problem, us: Float[Array, "horizon nu"], ys: Point | None) -> Solution:
        """The shapes and dtypes of the result of ``run``, as leaves of ``jax.ShapeDtypeStruct``."""
        return jax.eval_shape(lambda: self.run(problem, us, ys))

    @property
    def handles_constraints(self) -> bool:
        """True if the solver supports constraints beyond the bounds of the controls."""
        return False


class IterativeSolver(Solver):
    """A solver that can be interrupted: ``begin``, then ``advance`` any number of times, then ``finish``.

    Pure functions for ``jit`` and ``vmap``; the result does not depend on how the iterations are divided into calls of
    ``advance``. A state is a pytree with ``i``, the number of loop passes so far, ``done``, True when nothing is left
    to do, and ``history``.
    """

    @property
    @abstractmethod
    def iteration_limit(self) -> int:
        """Maximum number of iterations, in all calls of ``advance`` together."""

    @property
    def turns(self) -> int:
        """Maximum number of loop passes: the iterations, and the evaluation of the last one."""
        return self.iteration_limit

    @abstractmethod
    def begin(self, problem: Problem, us: Float[Array, "horizon nu"], ys: Point | None) -> Any:
        """The state before the first iteration, from the guess of ``run``."""

    @abstractmethod
    def iterate(self, problem: Problem, s: Any) -> Any:
        """The state after one more iteration."""

    @abstractmethod
    def finish(self, problem: Problem, s: Any) -> Solution:
        """The solution for a state."""

    def advance(self, problem: Problem, s: Any, iterations: Int[Array, ""] | int) -> Any:
        """The state after at most a given number of further iterations."""
        stop = jnp.minimum(s.i + iterations, self.turns)
        return while_last(lambda s: ~s.done & (s.i < stop), lambda s: self.iterate(problem, s), s)

    def solution_kinds(self, problem: Problem, us: Float[Array, "horizon nu"], ys: Point | None) -> Solution:
        # without the iterations, which take most of the tracing time
        return jax.eval_shape(lambda: self.finish(problem, self.begin(problem, us, ys)))

    def run(self, problem: Problem, us: Float[Array, "horizon nu"], ys: Point | None) -> Solution:
        """The solution after all iterations from a guess; see ``Solver.run``."""
        s = self.begin(problem, us, ys)
        return self.finish(problem, self.advance(problem, s, self.turns))


def start(problem: Problem, solver: Solver, us: Any, ys: Any) -> tuple[Float[Array, "horizon nu"], Point | None]:
    """The validated guess: controls within their bounds, and states (H + 1) starting at y0, or None.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: shapes are inconsistent, the solver does not support constraints, or a cost is not finite at the
            start of the guess.
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem: expected a Problem of lgsim.optimize, got {type(problem).__name__}")
    if not isinstance(solver, Solver):
        raise TypeError(f"solver: expected a solver such as ILQR(), got {type(solver).__name__}")
    if problem.constraints and problem.penalties is None and not solver.handles_constraints:
        raise ValueError(
            f"solver: {type(solver).__name__} supports only bounds of the controls, and the problem has"
            f" {len(problem.constraints)} constraints; leave out solver or use"
            f" AugmentedLagrangian({type(solver).__name__}()) or InteriorPoint()"
        )
    shape = (problem.horizon, problem.controls)
    us = jnp.zeros(shape, problem.dtype) if us is None else check.cast("us", us, problem.dtype)
    if us.shape != shape:
        raise ValueError(f"us: expected shape {shape}, got {us.shape}")
    us = problem.clip(us)
    if ys is not None:
        ys = _states(problem, ys)
    _check_costs(problem, us, ys)
    return us, ys


def _states(problem: Problem, ys: Any) -> Point:
    """States (H + 1) of the problem's shapes that start at y0."""
    expected = jax.tree.map(lambda y: (problem.horizon + 1, *y.shape), problem.y0)
    got = jax.tree.map(jnp.shape, ys)
    if expected != got:
        raise ValueError(
            f"ys: expected states with a leading axis of {problem.horizon + 1} nodes, {expected}, got {got}"
        )
    problem.dynamics.action.check_point(ys, "ys")
    return jax.tree.map(lambda y, first: jnp.asarray(y, first.dtype).at[0].set(first), ys, problem.y0)


def _check_costs(problem: Problem, us: Float[Array, "horizon nu"], ys: Point | None) -> None:
    """Raise if a cost is not finite at the first node of the guess, or at its last one if that is given."""
    given = closure_to_pytree((problem, us, ys))
    if is_traced(eqx.filter(given, eqx.is_array)):
        return
    first = problem.y0
    last = first if ys is None else jax.tree.map(lambda y: y[-1], ys)
    for name, value in zip(("running", "terminal"), _node_costs(problem, first, last, us[0]), strict=True):
        if not is_traced(value) and not np.isfinite(value):
            where = "y0" if name == "running" or ys is None else "the last state of the guess"
            raise ValueError(
                f"{name}: the cost is {float(value)} at {where}"
                + (" with the first control of the guess" if name == "running" else "")
                + "; expected a finite number"
            )


@compiled
def _node_costs(
    problem: Problem, first: Point, last: Point, u: Float[Array, " nu"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """(running cost of the first node, terminal cost of the last one)."""
    running = problem.running.value(problem.time(0), first, u, problem.args)
    return running, problem.terminal.value(problem.time(problem.horizon), last, None, problem.args)
