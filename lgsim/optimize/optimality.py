"""Optimality of a trajectory: the decrease that its quadratic model predicts, relative to the scale of the problem."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Bool, Float

from lgsim._compile.xla import export_module
from lgsim.optimize.problem import Problem

FLOOR = 1e-8
"""The regularization up to which a policy counts as that of the quadratic model itself."""


@export_module("lgsim.optimize.Optimality")
class Optimality(eqx.Module):
    """Distance of a trajectory from the optimality conditions: dimensionless values, zero where the conditions hold.

    Attributes:
        decrement: Change of the cost that the quadratic model predicts for a full step, relative to the cost (or to
            the rounding error of the guess's cost, if larger); infinite if the model has no minimum.
        step: Largest change of a control in that step, relative to the control's largest magnitude or to its range.
        potential: Gradient with respect to the controls times the distance to their bounds, relative to the cost: no
            convex cost can decrease by more. Infinite if a control with a nonzero gradient has no bound;
            ``InteriorPoint`` takes the control's largest magnitude as the distance.
        complementarity: Largest violation of a constraint, or value of an inactive one that still has a multiplier,
            ``|max(c, -m / rho)|``, relative to the row's size, see ``Solution.constraints``; in the row's unit if the
            solver has an absolute tolerance, and after ``InteriorPoint``, which has a rho for each row.
    """

    decrement: Float[Array, ""]
    step: Float[Array, ""]
    potential: Float[Array, ""]
    complementarity: Float[Array, ""]


class Promise(NamedTuple):
    """Prediction of the quadratic model of a problem about a trajectory.

    Attributes:
        k: Newton step of the controls at each node (H, m).
        definite: True if the model has a minimum.
        decrease: Decrease of the cost by that step.
        slopes: Gradient of the cost with respect to the controls (H, m).
    """

    k: Float[Array, "horizon m"]
    definite: Bool[Array, ""]
    decrease: Float[Array, ""]
    slopes: Float[Array, "horizon m"]


def free_slopes(
    problem: Problem, us: Float[Array, "*batch nu"], slopes: Float[Array, "*batch nu"]
) -> Float[Array, "*batch nu"]:
    """The gradient with respect to the controls, zero where it presses a control against its bound."""
    if not problem.bounded:
        return slopes
    below, above = room_to_bounds(problem, us)
    return jnp.where(((slopes > 0) & (below <= 0)) | ((slopes < 0) & (above <= 0)), 0, slopes)


def optimality(
    problem: Problem,
    us: Float[Array, "horizon nu"],
    cost: Float[Array, ""],
    first_cost: Float[Array, ""],
    promise: Promise,
) -> Optimality:
    """The numbers of a trajectory, without constraints.

    Args:
        first_cost: The cost of the guess.
    """
    whole = jnp.abs(cost) + _rest(problem.dtype) * jnp.abs(first_cost)
    size = jnp.max(jnp.abs(us), axis=0)
    free = free_slopes(problem, us, promise.slopes)
    if problem.bounded:
        width = _widths(problem)
        size = jnp.where(jnp.isfinite(width), width, size)
        below, above = room_to_bounds(problem, us)
        way = jnp.where(free > 0, below, above)
    else:
        way = jnp.full_like(us, jnp.inf)
    # gaps that close may raise the cost
    decrease = jnp.where(promise.definite, jnp.abs(promise.decrease), jnp.inf)
    steps = jnp.max(jnp.abs(promise.k), axis=0)
    return Optimality(
        decrement=part_of(decrease, whole),
        step=jnp.max(part_of(steps, size)),
        potential=part_of(jnp.sum(jnp.where(free == 0, 0, jnp.abs(free) * way)), whole),
        complementarity=jnp.zeros((), problem.dtype),
    )


def is_optimal(numbers: Optimality, regularization: Float[Array, ""] | float) -> Bool[Array, ""]:
    """True if a trajectory is an optimum, from the optimality of a policy with some regularization.

    The model must have a minimum, and one value must be small: a decrement of at most 3e-11, a step of at most 1e-9,
    or a potential of at most 3e-8 (6e-5, 3e-4 and 1e-3 in float32). If the model has a minimum only by regularization,
    the regularization limits decrement and step: a known potential must then be at most 1e-3 (0.06) as well.
    """
    digits = np.finfo(numbers.decrement.dtype).precision
    small = (
        (numbers.decrement <= 10.0 ** (-0.7 * digits))
        | (numbers.step <= 10.0 ** (-0.6 * digits))
        | (numbers.potential <= 10.0 ** (-0.5 * digits))
    )
    known = ~jnp.isfinite(numbers.potential) | (numbers.potential <= 10.0 ** (-0.2 * digits))
    own = jnp.asarray(regularization) <= 0
    return jnp.isfinite(numbers.decrement) & (regularization <= FLOOR) & small & (own | known)


def is_at_rest(numbers: Optimality) -> Bool[Array, ""]:
    """True if a Newton step changes no control by more than rounding: 6e-15 of its size in float64, 2e-6 in float32."""
    return numbers.step <= 10.0 ** (-0.95 * np.finfo(numbers.step.dtype).precision)


def rounding_of_cost(dtype: DTypeLike) -> float:
    """Fraction of a cost below which a decrease is lost in rounding: 3e-14 in float64, 4e-6 in float32."""
    return float(10.0 ** (-0.9 * np.finfo(dtype).precision))


def control_sizes(problem: Problem, us: Float[Array, "horizon nu"]) -> Float[Array, " nu"]:
    """Magnitude of each control: half its range, or its largest value; if that is zero, that of the others, or one."""
    size = jnp.max(jnp.abs(us), axis=0)
    if problem.bounded:
        width = _widths(problem)
        size = jnp.where(jnp.isfinite(width), width / 2, size)
    size = jnp.where(size > 0, size, jnp.max(size))
    return jnp.where(size > 0, size, 1)


def _rest(dtype: DTypeLike) -> float:
    """Rounding error of a cost that is a square and should be zero, divided by the fraction above."""
    return float((8 * np.finfo(dtype).eps) ** 2 / rounding_of_cost(dtype))


def _widths(problem: Problem) -> Float[Array, " nu"]:
    """The largest range of each control over the steps."""
    lower, upper = problem.bounds
    return jnp.max(upper - lower, axis=0)


def room_to_bounds(problem: Problem, us: Array) -> tuple[Array, Array]:
    """Distances to the lower and upper bounds, zero within the rounding error of a bound."""

    def way(bound: Array, distance: Array) -> Array:
        rounding = 4 * jnp.finfo(us.dtype).eps * jnp.where(jnp.isfinite(bound), jnp.abs(bound), 0)
        return jnp.where(distance <= rounding, 0, distance)

    lower, upper = (jnp.broadcast_to(bound, us.shape) for bound in (problem.lower, problem.upper))
    return way(lower, us - lower), way(upper, upper - us)


def part_of(number: Array, whole: Array) -> Array:
    """A number relative to a whole: infinite if the whole is zero and the number is not."""
    part = jnp.where(whole > 0, number / jnp.where(whole > 0, whole, 1), jnp.inf)
    return jnp.where(number == 0, 0, part)
