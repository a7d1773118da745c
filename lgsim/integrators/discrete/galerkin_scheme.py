"""Discretization of an action integral: the control nodes of the curve of a step, and a quadrature.

Source: Marsden and West 2001, 2.6.6; Leok and Shingel 2012, Ober-Bloebaum and Saake 2015 (Galerkin methods and orders).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from jaxtyping import Float

from lgsim.integrators.compositions import Composable, check_fractions


@dataclass(frozen=True)
class GalerkinScheme(Composable):
    """The curve of a step interpolates values at ``nodes``; the action is a quadrature at ``points`` with ``weights``.

    Attributes:
        nodes: the control nodes as fractions of the step, increasing from 0 to 1 and symmetric about 1/2.
        points: the quadrature points as fractions of the step, symmetric about 1/2.
        order: the order of convergence, that of the composition if there are several fractions.
        fractions: the fractions of dt of consecutive steps; they add up to one.

    Raises:
        ValueError: nodes or points are not symmetric, the fractions do not add up to one, or a step does not have the
            claimed order.
    """

    name: str
    nodes: tuple[float, ...]
    points: tuple[float, ...]
    weights: tuple[float, ...]
    order: int
    fractions: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        nodes, points, weights = map(np.asarray, (self.nodes, self.points, self.weights))
        unit = np.finfo(float).resolution
        if len(nodes) < 2 or nodes[0] != 0 or nodes[-1] != 1 or np.any(np.diff(nodes) <= 0):
            raise ValueError(f"nodes: expected two or more from 0 to 1, increasing, got {self.nodes}")
        if points.shape != weights.shape or points.ndim != 1 or not points.size:
            raise ValueError(f"weights: expected one for each of {points.size} points, got {weights.size}")
        mirrored = [np.abs(x + x[::-1] - 1).max() for x in (nodes, points)]
        if max(*mirrored, np.abs(weights - weights[::-1]).max()) > 4 * unit:
            raise ValueError(f"{self.name}: expected nodes and points that are symmetric about 1/2")
        check_fractions(self.name, list(self.fractions))
        powers = np.arange(2 * len(points) + 1)
        gaps = np.abs(weights @ points[:, None] ** powers - 1 / (powers + 1)) > 4 * unit
        reached = min(2 * (len(nodes) - 1), int(np.argmax(gaps)))
        if len(self.fractions) == 1 and self.order != reached:
            raise ValueError(
                f"order: one step of {self.name} has order {reached}, not {self.order}; higher ones are compositions, "
                "such as suzuki(scheme)"
            )

    @property
    def embedded_order(self) -> None:
        """None: there is no error estimate."""
        return None

    @property
    def symmetric(self) -> bool:
        """True if a step backwards inverts a step, which requires palindromic fractions."""
        return self.fractions == self.fractions[::-1]

    def repeated(self, name: str, fractions: tuple[float, ...], order: int) -> GalerkinScheme:
        """This scheme repeated with each fraction of the step, as one scheme."""
        parts = tuple(outer * inner for outer in fractions for inner in self.fractions)
        return GalerkinScheme(name, self.nodes, self.points, self.weights, order, parts)

    @property
    def places(self) -> tuple[float, ...]:
        """The nodes and points in ascending order, each once, from 0 to 1."""
        return tuple(sorted({*self.nodes, *self.points}))

    def interpolation(
        self, at: tuple[float, ...]
    ) -> tuple[Float[np.ndarray, "places nodes"], Float[np.ndarray, "places nodes"]]:
        """Values and derivatives of the Lagrange polynomials of the nodes at some fractions of the step."""
        values, slopes = [], []
        for j, own in enumerate(self.nodes):
            others = np.delete(np.asarray(self.nodes), j)
            basis = np.polynomial.Polynomial.fromroots(others) / np.prod(own - others)
            values.append(basis(np.asarray(at)))
            slopes.append(basis.deriv()(np.asarray(at)))
        return np.stack(values, axis=1), np.stack(slopes, axis=1)

    def node_weights(self) -> Float[np.ndarray, " nodes"]:
        """The quadrature weights of the nodes themselves, used for the constraints."""
        powers = np.arange(len(self.nodes))
        return np.linalg.solve(np.asarray(self.nodes) ** powers[:, None], 1 / (powers + 1))


MIDPOINT = GalerkinScheme("midpoint", (0.0, 1.0), (1 / 2,), (1.0,), 2)
"""A chord, with the action at the midpoint."""

TRAPEZOID = GalerkinScheme("trapezoid", (0.0, 1.0), (0.0, 1.0), (1 / 2, 1 / 2), 2)
"""A chord, with the action at both ends: Verlet on vectors, RATTLE with constraints."""

_THREE = (0.0, 1 / 2, 1.0)
_FOUR = (0.0, 1 / 2 - sqrt(5) / 10, 1 / 2 + sqrt(5) / 10, 1.0)

LOBATTO3 = GalerkinScheme("Lobatto 3", _THREE, _THREE, (1 / 6, 2 / 3, 1 / 6), 4)
"""A parabola through three Gauss-Lobatto nodes."""

LOBATTO4 = GalerkinScheme("Lobatto 4", _FOUR, _FOUR, (1 / 12, 5 / 12, 5 / 12, 1 / 12), 6)
"""A cubic through four Gauss-Lobatto nodes."""
