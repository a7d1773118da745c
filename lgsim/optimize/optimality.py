"""Whether a trajectory is an optimum: what its quadratic model still promises, against the problem's own scale."""

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
    """How far a trajectory is from the conditions of an optimum: numbers without a unit, zero where they hold.

    Attributes:
        decrement: Change of the cost that its quadratic model promises to a full step, in parts of the cost (or of
            what rounding leaves of the guess's, where that is more); infinite where the model has no minimum.
        step: That step's largest change of a control, in parts of the control's largest size or of its range.
        potential: What the slope by the controls promises all the way to their bounds, in parts of the cost: no
            convex cost can fall by more. Infinite where a control that has a slope has no bound; ``InteriorPoint``
            takes its largest size for the way.
        complementarity: Largest violation of a constraint, or value of one that is not active and still has a
            multiplier, ``|max(c, -m / rho)|``, in parts of the row's size, see ``Solution.constraints``; in its unit
            where the solver has an absolute tolerance, and after ``InteriorPoint``, which has a rho for each row.
    """

    decrement: Float[Array, ""]
    step: Float[Array, ""]
    potential: Float[Array, ""]
    complementarity: Float[Array, ""]


class Promise(NamedTuple):
    """What the quadratic model of a problem about a trajectory promises.

    Attributes:
        k: Newton's step of the controls at each node (H, m).
        definite: Whether the model has a minimum.
        decrease: Decrease of the cost by that step.
        slopes: Gradient of the cost by the controls (H, m).
    """

    k: Float[Array, "horizon m"]
    definite: Bool[Array, ""]
    decrease: Float[Array, ""]
    slopes: Float[Array, "horizon m"]


def free_slopes(
    problem: Problem, us: Float[Array, "*batch nu"], slopes: Float[Array, "*batch nu"]
) -> Float[Array, "*batch nu"]:
    """The gradient by the controls, with zero where it presses a control onto its bound."""
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
    """Whether a trajectory is an optimum, from the numbers of a policy with some regularization.

    The model must have a minimum, and one of them must be small: a decrement of at most 3e-11, a step of at most 1e-9,
    or a potential of at most 3e-8 (6e-5, 3e-4 and 1e-3 in float32). Where the model has its minimum by a regularization
    only, decrement and step are those that it allows: a potential that is known must then be at most 1e-3 (0.06).
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


def rounding_of_cost(dtype: DTypeLike) -> float:
    """Share of a cost below which a decrease is hardly seen in it: 3e-14 in float64, 4e-6 in float32."""
    return float(10.0 ** (-0.9 * np.finfo(dtype).precision))


def control_sizes(problem: Problem, us: Float[Array, "horizon nu"]) -> Float[Array, " nu"]:
    """How large each control is: half its range, or its largest value; where it is zero, that of the others, or one."""
    size = jnp.max(jnp.abs(us), axis=0)
    if problem.bounded:
        width = _widths(problem)
        size = jnp.where(jnp.isfinite(width), width / 2, size)
    size = jnp.where(size > 0, size, jnp.max(size))
    return jnp.where(size > 0, size, 1)


def _rest(dtype: DTypeLike) -> float:
    """What rounding leaves of a cost that is a square and should be zero, by the share above."""
    return float((8 * np.finfo(dtype).eps) ** 2 / rounding_of_cost(dtype))


def _widths(problem: Problem) -> Float[Array, " nu"]:
    """The largest range of each control over the steps."""
    lower, upper = problem.bounds
    return jnp.max(upper - lower, axis=0)


def room_to_bounds(problem: Problem, us: Array) -> tuple[Array, Array]:
    """(way to the lower bound, way to the upper one), zero within the rounding of a bound."""

    def way(bound: Array, distance: Array) -> Array:
        rounding = 4 * jnp.finfo(us.dtype).eps * jnp.where(jnp.isfinite(bound), jnp.abs(bound), 0)
        return jnp.where(distance <= rounding, 0, distance)

    lower, upper = (jnp.broadcast_to(bound, us.shape) for bound in (problem.lower, problem.upper))
    return way(lower, us - lower), way(upper, upper - us)


def part_of(number: Array, whole: Array) -> Array:
    """A number in parts of a whole: infinite where that is zero and the number is not."""
    part = jnp.where(whole > 0, number / jnp.where(whole > 0, whole, 1), jnp.inf)
    return jnp.where(number == 0, 0, part)
