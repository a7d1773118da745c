"""Commutator-free methods, and Crouch-Grossman methods as those with one stage value in each exponential.

Source: Celledoni, Marthinsen, Owren 2003; Crouch and Grossman 1993; Park and Chung 2005, eqs. (28), (29).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lgsim._compile.xla import control_flow
from lgsim.integrators.group_words import Exponentials
from lgsim.integrators.method import Field, Method
from lgsim.integrators.tableau import CommutatorFreeTableau
from lgsim.lie.action import Action, Point

Vector = Float[Array, " algebra"]
Slope = Callable[[Point, Float[Array, ""]], Vector]
"""``slope(point, node)``: the field at a point and at a node, times the step."""
Stages = Float[Array, "stages algebra"]
StageCarry = tuple[Point, Point, Stages]
StageEntry = tuple[Int[Array, ""], Float[Array, ""], Float[Array, " stages"], Int[Array, ""]]
ExponentialCarry = tuple[Point, Stages]
ExponentialEntry = tuple[Bool[Array, ""], Int[Array, ""], Float[Array, ""], Float[Array, " stages"]]


class CommutatorFree(Method):
    """A method of exponentials of linear combinations of stage values; it needs only ``action.move``.

    A point that continues from an earlier stage in the tableau is computed from that stage, whose exponentials are
    evaluated once.
    """

    tableau: CommutatorFreeTableau = eqx.field(static=True)

    def step(
        self, action: Action, field: Field, t: Float[Array, ""], y: Point, dt: Float[Array, ""], args: Any
    ) -> tuple[Point, Float[Array, ""] | None]:
        """The state after a step, and the distance () between the two points of a pair as an error estimate."""
        tableau = self.tableau

        def slope(point: Point, node: float | Float[Array, ""]) -> Vector:
            return dt * field(t + node * dt, point, args)

        def compose(word: Exponentials, points: list[Point], slopes: list[Vector]) -> Point:
            point = points[word.base] if points else y
            for row in word.rows:
                point = action.move(_combine(row, slopes), point)
            return point

        # a loop if the stages have one exponential each, or all start from y; otherwise unrolled
        if all(len(word.rows) == 1 for word in tableau.stages[1:]):
            y1, points, slopes = self._scan_stages(action, slope, y)
        elif tableau.embedded is None and all(word.base == 0 for word in (*tableau.stages, tableau.update)):
            return self._scan_exponentials(action, slope, y), None
        else:
            points, slopes = [], []
            for word, node in zip(tableau.stages, tableau.c, strict=True):
                points.append(compose(word, points, slopes))
                slopes.append(slope(points[-1], node))
            y1 = compose(tableau.update, points, slopes)
        if tableau.embedded is None:
            return y1, None
        # the embedded scheme, with stages of its own
        for word, node in zip(tableau.embedded_stages, tableau.embedded_c, strict=True):
            points.append(compose(word, points, slopes))
            slopes.append(slope(points[-1], node))
        return y1, action.distance(y1, compose(tableau.embedded, points, slopes))

    def _scan_stages(self, action: Action, slope: Slope, y: Point) -> tuple[Point, list[Point], list[Vector]]:
        """The update, the stage points and their slopes, for stages of one exponential each.

        A loop over the stages, in which the field is compiled once.
        """
        tableau, count = self.tableau, len(self.tableau.stages)
        words = [*tableau.stages[1:], tableau.update]  # the word that is composed after each stage
        dtype = jax.tree.leaves(y)[0].dtype
        rows = jnp.asarray([(*word.rows[0], *[0.0] * (count - len(word.rows[0]))) for word in words], dtype)

        def stage(carry: StageCarry, entry: StageEntry) -> tuple[StageCarry, None]:
            point, points, slopes = carry
            index, node, row, base = entry
            # K_i = h f(Y_i), then the next point exp(sum_j a_j K_j) . Y_base
            points = jax.tree.map(lambda all_, one: all_.at[index].set(one), points, point)
            slopes = slopes.at[index].set(slope(point, node))
            start = jax.tree.map(lambda a: a[base], points)
            return (action.move(jnp.sum(row[:, None] * slopes, axis=0), start), points, slopes), None

        points = jax.tree.map(lambda a: jnp.zeros((count, *a.shape), a.dtype), y)
        bases = jnp.asarray([word.base for word in words])
        steps = (jnp.arange(count), jnp.asarray(tableau.c, dtype), rows, bases)
        (y1, points, slopes), _ = control_flow.scan(stage, (y, points, jnp.zeros((count, action.dim), dtype)), steps)
        each = [slopes[i] for i in range(count)]
        for row in tableau.update.rows[1:]:
            y1 = action.move(_combine(row, each), y1)
        return y1, [jax.tree.map(lambda a, i=i: a[i], points) for i in range(count)], each

    def _scan_exponentials(self, action: Action, slope: Slope, y: Point) -> Point:
        """The update, if every point starts from y: a loop over the exponentials of all stages.

        The field and the exponential are compiled once; Crouch-Grossman methods have s(s + 1)/2 of them.
        """
        tableau, count = self.tableau, len(self.tableau.stages)
        dtype = jax.tree.leaves(y)[0].dtype
        words = [*tableau.stages[1:], tableau.update]  # the word that is composed after each stage
        table = [
            (position == 0, index, node, (*row, *[0.0] * (count - len(row))))
            for index, (word, node) in enumerate(zip(words, tableau.c, strict=True))
            for position, row in enumerate(word.rows or ((),))
        ]
        first, index, node, rows = zip(*table, strict=True)

        def exponential(carry: ExponentialCarry, entry: ExponentialEntry) -> tuple[ExponentialCarry, None]:
            point, slopes = carry
            begins, index, node, row = entry
            # the first exponential of a stage evaluates the field at the completed point and restarts from y
            slopes = control_flow.cond(begins, lambda: slopes.at[index].set(slope(point, node)), lambda: slopes)
            start = jax.tree.map(lambda a, b: jnp.where(begins, a, b), y, point)
            return (action.move(jnp.sum(row[:, None] * slopes, axis=0), start), slopes), None

        each = (jnp.asarray(first), jnp.asarray(index), jnp.asarray(node, dtype), jnp.asarray(rows, dtype))
        (y1, _), _ = control_flow.scan(exponential, (y, jnp.zeros((count, action.dim), dtype)), each)
        return y1


def _combine(row: tuple[float, ...], slopes: list[Vector]) -> Vector:
    """The algebra vector of one exponential, ``sum_j row_j slopes_j``."""
    terms = [weight * slope for weight, slope in zip(row, slopes, strict=False) if weight]
    return sum(terms[1:], terms[0]) if terms else jnp.zeros_like(slopes[0])
