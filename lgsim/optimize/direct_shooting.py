"""Direct shooting: the controls as one vector of unknowns for any first-order optimiser."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from lgsim.lie.action import Point
from lgsim.optimize.problem import Problem
from lgsim.optimize.results import RESULTS, History, Result, first_nonfinite
from lgsim.optimize.solver import IterativeSolver, Solver
from lgsim.support.extras import package


class DirectShooting(IterativeSolver):
    """Any optimiser of optax on the controls; the states follow by the dynamics, the gradient by reverse mode.

    Controls are put back into their bounds after each update: a projected gradient, which converges for first-order
    optimisers; quasi-Newton ones such as L-BFGS may stall at a bound. A guess of states is not used. Keep the
    optimiser: another one, even with equal numbers, compiles again.

    Attributes:
        optimiser: Such as ``optax.adam(1e-2)``; ``optax.lbfgs()`` gets the value and the function for its line search.
        max_iterations: At most.
        gradient_tolerance: As in ``ILQR``.
    """

    optimiser: optax.GradientTransformation = eqx.field(static=True)
    max_iterations: int = eqx.field(static=True, default=1000)
    gradient_tolerance: float | None = None

    @property
    def iteration_limit(self) -> int:
        return self.max_iterations

    def begin(self, problem: Problem, us: Array, ys: Point | None) -> "_State":
        history = History.empty(self.max_iterations, problem.dtype)
        unknown = jnp.asarray(jnp.inf, problem.dtype)
        return _State(jnp.array(0), jnp.array(False), us, unknown, self.optimiser.init(us), history)

    def finish(self, problem: Problem, s: "_State") -> Result:
        small = s.gradient <= gradient_tolerance(self.gradient_tolerance, problem.dtype)
        return shot(problem, s.us, s.gradient, s.history, s.i, small, s.done)

    def iterate(self, problem: Problem, s: "_State") -> "_State":
        tolerance = gradient_tolerance(self.gradient_tolerance, problem.dtype)
        optimiser = optax.with_extra_args_support(self.optimiser)

        def cost(us: Array) -> Array:
            return problem.cost(problem.rollout(us), us)

        value, slope = jax.value_and_grad(cost)(s.us)
        size = jnp.max(jnp.abs(s.us - problem.clip(s.us - slope)))
        # optax mixes integer types of its own
        with jax.numpy_dtype_promotion("standard"):
            update, after = optimiser.update(slope, s.memory, s.us, value=value, grad=slope, value_fn=cost)
        moved = problem.clip(s.us + cast(Array, update))
        finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(slope)) & jnp.all(jnp.isfinite(moved))
        done = (size <= tolerance) | ~finite
        step = jnp.where(done, 0, jnp.max(jnp.abs(moved - s.us)))
        zero = jnp.zeros_like(value)
        history = s.history.record(s.i, cost=value, gradient=size, feasibility=zero, step=step, regularisation=zero)
        moved, after = jax.tree.map(lambda a, b: jnp.where(done, b, a), (moved, after), (s.us, s.memory))
        return _State(s.i + 1, done, moved, size, after, history)


class _State(NamedTuple):
    i: Array
    done: Array
    us: Array
    gradient: Array
    memory: Any
    history: History


def shot(
    problem: Problem, us: Array, gradient: Array, history: History, iterations: Array, small: Array, done: Array
) -> Result:
    """The result of a solver that knows the controls alone."""
    ys = problem.rollout(us)
    values = problem.running_values(ys, us)
    last = jax.tree.map(lambda y: y[-1], ys)
    end = problem.at_end().value(problem.time(problem.horizon), last, None, problem.args)
    place, quantity = first_nonfinite({0: (ys, 0), 1: (values, 0), 2: (end[None], problem.horizon)})
    code = RESULTS.where(small, RESULTS.successful, RESULTS.max_iterations)
    code = RESULTS.where(done & ~small, RESULTS.nonfinite_derivative, code)
    # the derivative by the controls is not finite though the trajectory is: no node can be named
    code = RESULTS.where(place >= 0, RESULTS.nonfinite_start, code)
    zero = jnp.zeros((), problem.dtype)
    ts = problem.time(jnp.arange(problem.horizon + 1))
    return Result(
        ts, ys, us, jnp.sum(values) + end, gradient, zero, zero, None, history, iterations, code, place, quantity
    )


def gradient_tolerance(given: Any, dtype: Any) -> Any:
    """The tolerance given, or 1e-6 in float64 and 4e-3 in float32."""
    return 10.0 ** (-0.4 * np.finfo(dtype).precision) if given is None else given


class _Shooting(Solver):
    """The iterations that both share, through the interface ``init, step, terminate`` of optimistix.

    A row of the history is one evaluation at a trial point, with step 0 where it was rejected.
    """

    minimiser: eqx.AbstractVar[Any]
    max_iterations: eqx.AbstractVar[int]
    gradient_tolerance: eqx.AbstractVar[float | None]

    @abstractmethod
    def target(self, problem: Problem) -> Callable[[Array, Any], tuple[Array, None]]:
        """What the minimiser is given."""

    @abstractmethod
    def usual(self, optimistix: Any, **tolerances: float) -> Any:
        """The minimiser where none was chosen."""

    def run(self, problem: Problem, us: Array, ys: Point | None) -> Result:
        optimistix = package("optimistix", "optimize", "solver: this one")
        if problem.bounded:
            raise ValueError(
                f"solver: {type(self).__name__} keeps no bounds of the controls, and the problem has some; take ILQR() "
                "or DirectShooting"
            )
        if problem.dtype != jnp.zeros(()).dtype:
            raise TypeError(
                f"y0: {type(self).__name__} works in JAX's default precision, which is {jnp.zeros(()).dtype}, and the "
                f"problem is of {problem.dtype}; change jax_enable_x64 or take ILQR()"
            )
        tolerance = gradient_tolerance(self.gradient_tolerance, problem.dtype)
        rounding = 10.0 ** (-0.9 * np.finfo(problem.dtype).precision)
        method = self.minimiser
        if method is None:
            method = self.usual(optimistix, rtol=rounding, atol=rounding)
        # optimistix mixes types and ranks of its own
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            return _minimize(problem, us, method, self.target(problem), self.max_iterations, tolerance)


class ShootingMinimizer(_Shooting):
    """Any minimiser of optimistix on the controls, by default L-BFGS; the states follow by the dynamics.

    Without bounds of the controls: ``ILQR`` and ``DirectShooting`` keep them. A guess of states is not used. The
    problem must have JAX's default precision, in which optimistix works.

    Attributes:
        minimiser: Such as ``optimistix.BFGS(rtol=1e-8, atol=1e-8)``, whose tolerances end the iterations too.
        max_iterations: At most.
        gradient_tolerance: As in ``ILQR``.

    Raises:
        ModuleNotFoundError: optimistix is missing, the extra ``optimize``.
        ValueError: the problem has bounds of the controls.
        TypeError: its dtype is not JAX's default one.
    """

    minimiser: Any = None
    max_iterations: int = eqx.field(static=True, default=500)
    gradient_tolerance: float | None = None

    def target(self, problem: Problem) -> Callable[[Array, Any], tuple[Array, None]]:
        return lambda us, _: (problem.cost(problem.rollout(us), us), None)

    def usual(self, optimistix: Any, **tolerances: float) -> Any:
        return optimistix.LBFGS(**tolerances)


class ShootingLeastSquares(_Shooting):
    """Any least-squares solver of optimistix on the controls, by default Levenberg-Marquardt's.

    All costs must be residuals or sums of them. The Jacobian is dense, (all residuals, all controls): for short
    horizons. Otherwise like ``ShootingMinimiser``.

    Attributes:
        minimiser: Such as ``optimistix.GaussNewton(rtol=1e-8, atol=1e-8)``, whose tolerances end the iterations too.
        max_iterations: At most.
        gradient_tolerance: As in ``ILQR``.

    Raises:
        ModuleNotFoundError: optimistix is missing, the extra ``optimize``.
        TypeError: a cost is no sum of squares, or the problem's dtype is not JAX's default one.
        ValueError: the problem has bounds of the controls.
    """

    minimiser: Any = None
    max_iterations: int = eqx.field(static=True, default=200)
    gradient_tolerance: float | None = None

    def target(self, problem: Problem) -> Callable[[Array, Any], tuple[Array, None]]:
        end, ks = problem.at_end(), jnp.arange(problem.horizon)

        def rows(us: Array, _: Any) -> tuple[Array, None]:
            ys = problem.rollout(us)
            before, last = jax.tree.map(lambda y: y[:-1], ys), jax.tree.map(lambda y: y[-1], ys)

            def node(k: Array, y: Point, u: Array) -> Array:
                return problem.running_at(k).rows(problem.time(k), y, u, problem.args)

            along = jax.vmap(node)(ks, before, us)
            at_end = end.rows(problem.time(problem.horizon), last, None, problem.args)
            return jnp.concatenate([along.ravel(), at_end]), None

        return rows

    def usual(self, optimistix: Any, **tolerances: float) -> Any:
        return optimistix.LevenbergMarquardt(**tolerances)


def _minimize(problem: Problem, us: Array, method: Any, target: Any, most: int, tolerance: Any) -> Result:
    target = eqx.filter_closure_convert(target, us, None)
    shape, none = jax.eval_shape(target, us, None)
    state = method.init(target, us, None, {}, shape, none, frozenset())
    # the same in all iterations: what is not an array of a state
    moving, still = eqx.partition(state, eqx.is_array)

    def slope_at(us: Array) -> tuple[Array, Array]:
        return jax.value_and_grad(lambda us: problem.cost(problem.rollout(us), us))(us)

    def going(s: tuple) -> Array:
        return ~s[-1] & (s[0] < most)

    def iterate(s: tuple) -> tuple:
        i, us, value, slope, moving, history, _, _ = s
        state = eqx.combine(moving, still)
        size = jnp.max(jnp.abs(slope))
        finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(slope))
        moved, after, _ = method.step(target, us, None, {}, state, frozenset())
        # the first evaluation is that of the guess
        stuck = method.terminate(target, us, None, {}, state, frozenset())[0] & (i > 0)
        finite = finite & jnp.all(jnp.isfinite(moved))
        done = (size <= tolerance) | stuck | ~finite
        moved = jnp.where(done, us, moved)
        step, zero = jnp.max(jnp.abs(moved - us)), jnp.zeros_like(value)
        history = history.record(i, cost=value, gradient=size, feasibility=zero, step=step, regularisation=zero)
        value, slope = jax.lax.cond(step > 0, lambda: slope_at(moved), lambda: (value, slope))
        return i + 1, moved, value, slope, eqx.filter(after, eqx.is_array), history, finite, done

    history = History.empty(most, problem.dtype)
    yes, no = jnp.array(True), jnp.array(False)
    first = (jnp.array(0), us, *slope_at(us), moving, history, yes, no)
    i, us, _, slope, _, history, finite, done = jax.lax.while_loop(going, iterate, first)
    size = jnp.max(jnp.abs(slope))
    result = shot(problem, us, size, history, i, size <= tolerance, done)
    stalled = done & finite & (size > tolerance)
    return eqx.tree_at(lambda r: r.result, result, RESULTS.where(stalled, RESULTS.stalled, result.result))
