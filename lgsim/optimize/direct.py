"""Direct shooting: the controls as one vector of unknowns for any first-order optimiser."""

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
from lgsim.optimize.solver import Iterative


class DirectShooting(Iterative):
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
