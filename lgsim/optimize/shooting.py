"""Direct shooting with the minimisers of optimistix: quasi-Newton on the cost, Gauss-Newton on its residuals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.lie.action import Point
from lgsim.optimize.direct import gradient_tolerance, shot
from lgsim.optimize.problem import Problem
from lgsim.optimize.results import RESULTS, History, Result
from lgsim.optimize.solver import Solver
from lgsim.simulation.extras import package


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
            return _minimise(problem, us, method, self.target(problem), self.max_iterations, tolerance)


class ShootingMinimiser(_Shooting):
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


def _minimise(problem: Problem, us: Array, method: Any, target: Any, most: int, tolerance: Any) -> Result:
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
