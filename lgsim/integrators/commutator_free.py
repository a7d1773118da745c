"""Commutator-free methods, and Crouch-Grossman methods as those with one stage value in each exponential.

Source: Celledoni, Marthinsen, Owren 2003; Crouch and Grossman 1993; Park and Chung 2005, eqs. (28), (29).
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
from jax import Array

from lgsim.integrators.exponentials import Exponentials
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
        points: list[Point] = []
        slopes: list[Array] = []

        def follow(path: Exponentials) -> Point:
            point = points[path.base] if points else y
            for row in path.rows:
                terms = [weight * slope for weight, slope in zip(row, slopes, strict=False) if weight]
                point = action.move(sum(terms[1:], terms[0]), point)
            return point

        def evaluate(path: Exponentials, node: float) -> None:
            points.append(follow(path))
            slopes.append(dt * field(t + node * dt, points[-1], args))

        for path, node in zip(tableau.stages, tableau.c, strict=True):
            evaluate(path, node)
        y1 = follow(tableau.update)
        if tableau.embedded is None:
            return y1, None
        for path, node in zip(tableau.embedded_stages, tableau.embedded_c, strict=True):
            evaluate(path, node)
        return y1, action.distance(y1, follow(tableau.embedded))
