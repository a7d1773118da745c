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

from lgsim.integrators.group_words import Exponentials
from lgsim.integrators.method import Field, Method
from lgsim.integrators.tableau import CommutatorFreeTableau
from lgsim.lie.action import Action, Point


class CommutatorFree(Method):
    """A method made of exponentials of linear combinations of stage values; it needs only ``action.move``.

    A point that the tableau lets continue from an earlier stage is computed from that stage: its exponentials are
    evaluated once.
    """

    tableau: CommutatorFreeTableau = eqx.field(static=True)

    @property
    def requires(self) -> tuple[str, ...]:
        """Nothing beyond ``move``."""
        return ()

    def step(
        self, action: Action, field: Field, t: Array, y: Point, dt: Array, args: Any
    ) -> tuple[Point, Array | None]:
        """One step; the error estimate is the distance of the two points."""
        tableau = self.tableau

        def slope(point: Point, node: float | Array) -> Array:
            return dt * field(t + node * dt, point, args)

        def follow(path: Exponentials, points: list[Point], slopes: list[Array]) -> Point:
            point = points[path.base] if points else y
            for row in path.rows:
                point = action.move(_combine(row, slopes), point)
            return point

        if all(len(path.rows) == 1 for path in tableau.stages[1:]):
            y1, points, slopes = self._scan_stages(action, slope, y)
        elif tableau.embedded is None and all(path.base == 0 for path in (*tableau.stages, tableau.update)):
            return self._scan_exponentials(action, slope, y), None
        else:
            points, slopes = [], []
            for path, node in zip(tableau.stages, tableau.c, strict=True):
                points.append(follow(path, points, slopes))
                slopes.append(slope(points[-1], node))
            y1 = follow(tableau.update, points, slopes)
        if tableau.embedded is None:
            return y1, None
        for path, node in zip(tableau.embedded_stages, tableau.embedded_c, strict=True):
            points.append(follow(path, points, slopes))
            slopes.append(slope(points[-1], node))
        return y1, action.distance(y1, follow(tableau.embedded, points, slopes))

    def _scan_stages(
        self, action: Action, slope: Callable[[Point, Array], Array], y: Point
    ) -> tuple[Point, list[Point], list[Array]]:
        """The update, the stage points and their slopes, for stages of one exponential each.

        A loop over the stages, in which the field is compiled once.
        """
        tableau, count = self.tableau, len(self.tableau.stages)
        paths = [*tableau.stages[1:], tableau.update]  # the path that starts after each stage
        dtype = jax.tree.leaves(y)[0].dtype
        rows = jnp.asarray([(*path.rows[0], *[0.0] * (count - len(path.rows[0]))) for path in paths], dtype)

        def stage(carry: tuple[Point, Point, Array], now: tuple[Array, ...]) -> tuple[Any, None]:
            point, points, slopes = carry
            index, node, row, base = now
            points = jax.tree.map(lambda all_, one: all_.at[index].set(one), points, point)
            slopes = slopes.at[index].set(slope(point, node))
            start = jax.tree.map(lambda a: a[base], points)
            return (action.move(jnp.sum(row[:, None] * slopes, axis=0), start), points, slopes), None

        points = jax.tree.map(lambda a: jnp.zeros((count, *a.shape), a.dtype), y)
        bases = jnp.asarray([path.base for path in paths])
        steps = (jnp.arange(count), jnp.asarray(tableau.c, dtype), rows, bases)
        (y1, points, slopes), _ = jax.lax.scan(stage, (y, points, jnp.zeros((count, action.dim), dtype)), steps)
        each = [slopes[i] for i in range(count)]
        for row in tableau.update.rows[1:]:
            y1 = action.move(_combine(row, each), y1)
        return y1, [jax.tree.map(lambda a, i=i: a[i], points) for i in range(count)], each

    def _scan_exponentials(self, action: Action, slope: Callable[[Point, Array], Array], y: Point) -> Point:
        """The update, where every point starts from y: a loop over the exponentials of all stages.

        The field and the exponential are compiled once; Crouch-Grossman methods have s(s + 1)/2 of them.
        """
        tableau, count = self.tableau, len(self.tableau.stages)
        dtype = jax.tree.leaves(y)[0].dtype
        paths = [*tableau.stages[1:], tableau.update]  # the path that starts after each stage
        table = [
            (position == 0, index, node, (*row, *[0.0] * (count - len(row))))
            for index, (path, node) in enumerate(zip(paths, tableau.c, strict=True))
            for position, row in enumerate(path.rows or ((),))
        ]
        first, index, node, rows = zip(*table, strict=True)

        def exponential(carry: tuple[Point, Array], now: tuple[Array, ...]) -> tuple[Any, None]:
            point, slopes = carry
            begins, index, node, row = now
            slopes = jax.lax.cond(begins, lambda: slopes.at[index].set(slope(point, node)), lambda: slopes)
            start = jax.tree.map(lambda a, b: jnp.where(begins, a, b), y, point)
            return (action.move(jnp.sum(row[:, None] * slopes, axis=0), start), slopes), None

        each = (jnp.asarray(first), jnp.asarray(index), jnp.asarray(node, dtype), jnp.asarray(rows, dtype))
        (y1, _), _ = jax.lax.scan(exponential, (y, jnp.zeros((count, action.dim), dtype)), each)
        return y1


def _combine(row: tuple[float, ...], slopes: list[Array]) -> Array:
    terms = [weight * slope for weight, slope in zip(row, slopes, strict=False) if weight]
    return sum(terms[1:], terms[0]) if terms else jnp.zeros_like(slopes[0])
