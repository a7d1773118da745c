"""Direct single shooting: the controls as one vector of unknowns for first-order optimizers."""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jaxtyping import Bool, Float, Int, PyTree

from lgsim._compile.xla import control_flow
from lgsim.lie.action import Point
from lgsim.optimize.ilqr import backward_pass
from lgsim.optimize.optimality import FLOOR, free_slopes, is_optimal, optimality
from lgsim.optimize.problem import Problem
from lgsim.optimize.solver import (
    RESULTS,
    History,
    IterativeSolver,
    Solution,
    Solver,
    nonfinite_values,
    tolerance_of,
)
from lgsim.support import check
from lgsim.support.packages import package

Target = Callable[[Array, Any], tuple[Array, None]]
"""A function ``target(us, args)`` that returns (the objective of a minimizer of optimistix, None)."""


class DirectShooting(IterativeSolver):
    """Single shooting with any optimizer of optax; the states follow from the dynamics, the gradient by reverse mode.

    Controls are projected on their bounds after each update: a projected gradient method, which converges for
    first-order optimizers; quasi-Newton ones such as L-BFGS may stall at a bound. A guess of states is ignored. Keep
    the optimizer object: another one, even with equal parameters, compiles again.

    Attributes:
        optimizer: The optimizer, such as ``optax.adam(1e-2)``; ``optax.lbfgs()`` receives the value and the function
            for its line search.
        gradient_tolerance: Bound of the largest entry of the gradient, as in ``ILQR``. By default the iterations end at
            3e-8 of the largest gradient so far in float64 (1e-3 in float32), and ``Solution.optimality`` reports if the
            trajectory is optimal.

    Raises:
        ValueError: max_iterations is less than 1.
    """

    optimizer: optax.GradientTransformation = eqx.field(static=True)
    max_iterations: int = eqx.field(static=True, default=1000)
    gradient_tolerance: float | None = None

    def __check_init__(self):
        check.count("max_iterations", self.max_iterations)

    @property
    def iteration_limit(self) -> int:
        return self.max_iterations

    def begin(self, problem: Problem, us: Float[Array, "horizon nu"], ys: Point | None) -> "_State":
        history = History.empty(self.max_iterations, problem.dtype)
        zero = jnp.zeros((), problem.dtype)
        return _State(jnp.array(0), jnp.array(False), us, zero, self.optimizer.init(us), history)

    def finish(self, problem: Problem, s: "_State") -> Solution:
        return _shooting_solution(problem, s.us, s.history, s.i, s.done, self.gradient_tolerance)

    def iterate(self, problem: Problem, s: "_State") -> "_State":
        optimizer = optax.with_extra_args_support(self.optimizer)

        def cost(us: Array) -> Array:
            return problem.cost(problem.rollout(us), us)

        value, slope = jax.value_and_grad(cost)(s.us)
        size = jnp.max(jnp.abs(free_slopes(problem, s.us, slope)))
        largest = jnp.maximum(s.largest, size)
        # optax mixes integer types
        with jax.numpy_dtype_promotion("standard"):
            update, after = optimizer.update(slope, s.memory, s.us, value=value, grad=slope, value_fn=cost)
        moved = problem.clip(s.us + cast(Array, update))
        finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(slope)) & jnp.all(jnp.isfinite(moved))
        done = (size <= _least_gradient(self.gradient_tolerance, largest)) | ~finite
        step = jnp.where(done, 0, jnp.max(jnp.abs(moved - s.us)))
        zero = jnp.zeros_like(value)
        history = s.history.record(s.i, cost=value, gradient=size, feasibility=zero, step=step, regularization=zero)
        # the memory keeps its dtypes, which optax mixes
        moved, after = jax.tree.map(
            lambda a, b: jnp.where(done, b, jnp.asarray(a, b.dtype)), (moved, after), (s.us, s.memory)
        )
        return _State(s.i + 1, done, moved, largest, after, history)


class _State(NamedTuple):
    """The state of ``DirectShooting``; its order is that of checkpoints.

    Attributes:
        largest: Largest entry of the gradient with respect to the controls without an active bound, over all
            iterations.
        memory: The optimizer's state.
    """

    i: Int[Array, ""]
    done: Bool[Array, ""]
    us: Float[Array, "horizon nu"]
    largest: Float[Array, ""]
    memory: PyTree
    history: History


def _least_gradient(given: Float[Array, ""] | float | None, largest: Float[Array, ""]) -> Float[Array, ""] | float:
    """The gradient at which the iterations end, from the largest one so far."""
    return tolerance_of(None, 0.5, largest.dtype) * largest if given is None else given


def _shooting_solution(
    problem: Problem,
    us: Float[Array, "horizon nu"],
    history: History,
    iterations: Int[Array, ""],
    done: Bool[Array, ""],
    tolerance: Float[Array, ""] | float | None,
) -> Solution:
    """The solution of a solver for which only the controls are unknowns.

    Args:
        done: True if the solver itself ended the iterations.
        tolerance: Bound of the gradient at an optimum, if it is given.
    """
    ys = problem.rollout(us)
    running, terminal = problem.running_values(ys, us), problem.terminal_value(ys)
    cost = jnp.sum(running) + terminal
    bad_node, bad_quantity = nonfinite_values(ys, running, terminal)
    policy = backward_pass(problem, ys, us, jnp.asarray(FLOOR, problem.dtype), False)
    gradient = jnp.max(jnp.abs(free_slopes(problem, us, policy.slopes)))
    numbers = optimality(problem, us, cost, history.cost[0], policy.promise)
    optimal = is_optimal(numbers, FLOOR) if tolerance is None else gradient <= tolerance
    result = RESULTS.where(done, RESULTS.stalled, RESULTS.max_iterations)
    result = RESULTS.where(optimal, RESULTS.successful, result)
    result = RESULTS.where(policy.bad_node >= 0, RESULTS.nonfinite_derivative, result)
    result = RESULTS.where(bad_node >= 0, RESULTS.nonfinite_start, result)
    bad_quantity = jnp.where(bad_node >= 0, bad_quantity, policy.bad_quantity)
    bad_node = jnp.where(bad_node >= 0, bad_node, policy.bad_node)
    zero = jnp.zeros((), problem.dtype)
    return Solution(
        ts=problem.time(jnp.arange(problem.horizon + 1)),
        ys=ys,
        us=us,
        cost=cost,
        gradient=gradient,
        feasibility=zero,
        violation=zero,
        gains=None,
        optimality=numbers,
        history=history,
        iterations=iterations,
        result=result,
        bad_node=bad_node,
        bad_quantity=bad_quantity,
    )


class ShootingMinimizer(Solver):
    """Single shooting with any minimizer or least-squares solver of optimistix; the states follow from the dynamics.

    Bounds of the controls are not supported; use ``ILQR`` or ``DirectShooting`` for them. A guess of states is ignored.
    The problem must have JAX's default precision, in which optimistix works. A least-squares solver requires that all
    costs are residuals or sums of them; its Jacobian is dense, (all residuals, all controls), hence for short horizons.
    A row of the history is one evaluation at a trial point, with step 0 if it was rejected.

    Attributes:
        minimizer: For example ``optimistix.BFGS(rtol=1e-8, atol=1e-8)`` or ``optimistix.LevenbergMarquardt(...)``,
            whose tolerances also end the iterations; by default L-BFGS.
        max_iterations: Maximum number of evaluations.
        gradient_tolerance: Bound of the largest entry of the gradient, as in ``DirectShooting``.

    Raises:
        ModuleNotFoundError: optimistix, in the extra ``optimize``, is not installed.
        ValueError: the problem has bounds of the controls, or max_iterations is less than 1.
        TypeError: a least-squares solver is given and a cost is not a sum of squares, or the problem's dtype is not
            JAX's default one.
    """

    minimizer: Any = None
    max_iterations: int = eqx.field(static=True, default=500)
    gradient_tolerance: float | None = None

    def __check_init__(self):
        check.count("max_iterations", self.max_iterations)

    def run(self, problem: Problem, us: Float[Array, "horizon nu"], ys: Point | None) -> Solution:
        optimistix = package("optimistix", "optimize", "solver: this one")
        if problem.bounded:
            raise ValueError(
                f"solver: {type(self).__name__} does not support bounds of the controls, and the problem has some;"
                " use ILQR() or DirectShooting"
            )
        if problem.dtype != jnp.zeros(()).dtype:
            raise TypeError(
                f"y0: {type(self).__name__} works in JAX's default precision, which is {jnp.zeros(()).dtype}, and the"
                f" problem is of {problem.dtype}; change jax_enable_x64 or use ILQR()"
            )
        rounding = 10.0 ** (-0.9 * np.finfo(problem.dtype).precision)
        method = optimistix.LBFGS(rtol=rounding, atol=rounding) if self.minimizer is None else self.minimizer
        squares = isinstance(method, optimistix.AbstractLeastSquaresSolver)
        target = _residuals(problem) if squares else lambda us, _: (problem.cost(problem.rollout(us), us), None)
        # optimistix mixes dtypes and ranks
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            return _minimize(problem, us, method, target, self.max_iterations, self.gradient_tolerance)


def _residuals(problem: Problem) -> Target:
    """All residuals of the costs as one vector, for given controls."""
    end, ks = problem.end_cost(), jnp.arange(problem.horizon)

    def rows(us: Array, _: Any) -> tuple[Array, None]:
        ys = problem.rollout(us)
        before, last = jax.tree.map(lambda y: y[:-1], ys), jax.tree.map(lambda y: y[-1], ys)

        def node(k: Array, y: Point, u: Array) -> Array:
            return problem.node_cost(k).rows(problem.time(k), y, u, problem.args)

        on_path = jax.vmap(node)(ks, before, us)
        at_end = end.rows(problem.time(problem.horizon), last, None, problem.args)
        return jnp.concatenate([on_path.ravel(), at_end]), None

    return rows


def _minimize(
    problem: Problem,
    us: Float[Array, "horizon nu"],
    method: Any,
    target: Target,
    limit: int,
    tolerance: Float[Array, ""] | float | None,
) -> Solution:
    """Run a minimizer of optimistix until at most ``limit`` evaluations and return the solution."""
    target = eqx.filter_closure_convert(target, us, None)
    shape, none = jax.eval_shape(target, us, None)
    state = method.init(target, us, None, {}, shape, none, frozenset())
    # constant over the iterations: the part of a state that is not an array
    moving, still = eqx.partition(state, eqx.is_array)

    def slope_at(us: Array) -> tuple[Array, Array]:
        return jax.value_and_grad(lambda us: problem.cost(problem.rollout(us), us))(us)

    def going(s: tuple) -> Array:
        return ~s[-1] & (s[0] < limit)

    def iterate(s: tuple) -> tuple:
        i, us, value, slope, moving, history, largest, _ = s
        state = eqx.combine(moving, still)
        size = jnp.max(jnp.abs(slope))
        largest = jnp.maximum(largest, size)
        finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(slope))
        moved, after, _ = method.step(target, us, None, {}, state, frozenset())
        # the first evaluation is that of the guess
        stuck = method.terminate(target, us, None, {}, state, frozenset())[0] & (i > 0)
        finite = finite & jnp.all(jnp.isfinite(moved))
        done = (size <= _least_gradient(tolerance, largest)) | stuck | ~finite
        moved = jnp.where(done, us, moved)
        step, zero = jnp.max(jnp.abs(moved - us)), jnp.zeros_like(value)
        history = history.record(i, cost=value, gradient=size, feasibility=zero, step=step, regularization=zero)
        value, slope = control_flow.cond(step > 0, lambda: slope_at(moved), lambda: (value, slope))
        return i + 1, moved, value, slope, eqx.filter(after, eqx.is_array), history, largest, done

    history = History.empty(limit, problem.dtype)
    first = (jnp.array(0), us, *slope_at(us), moving, history, jnp.zeros((), problem.dtype), jnp.array(False))
    i, us, _, _, _, history, _, done = control_flow.while_loop(going, iterate, first)
    return _shooting_solution(problem, us, history, i, done, tolerance)
