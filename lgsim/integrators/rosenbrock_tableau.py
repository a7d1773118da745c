"""The coefficients of linearly implicit (Rosenbrock) methods as self-checking data.

With J the Jacobian of the field and h the step, the stages of a Rosenbrock method are

    (1 - h gamma J) k_i = h f(y + sum_j alpha_ij k_j) + h J sum_j gamma_ij k_j,    y_1 = y + sum_i b_i k_i.

The combinations ``u_i = sum_j gamma_ij k_j``, gamma_ii = gamma among them, need no product with J:

    (1 - h gamma J) u_i = gamma (h f(y + sum_j a_ij u_j) + sum_j c_ij u_j),    y_1 = y + sum_i m_i u_i,

with ``a = alpha Gamma^-1``, ``c = 1/gamma - Gamma^-1`` and ``m = b Gamma^-1``. A tableau holds this second form and
checks the order of the first one. Source: Hairer, Wanner, Solving ODEs II, IV.7, eqs. (7.4), (7.25).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lgsim.integrators.order_conditions import (
    brackets_in_words,
    classical_conditions,
    linearly_implicit_residuals,
    tree_name,
)
from lgsim.integrators.tableau import check_order, check_pair, floats

Rows = Sequence[Sequence[float]]
Square = Float[np.ndarray, "stages stages"]


@dataclass(frozen=True)
class RosenbrockTableau:
    """A linearly implicit method in the form without products with the Jacobian.

    Attributes:
        name: the name that messages use.
        gamma: the diagonal coefficient, above zero.
        a: s rows, row i with i weights after construction (missing ones are zero), for the points of the stages.
        c: s rows in the same form, for the right-hand sides.
        m: s weights of the update. Everything is dimensionless.
        order: the order, checked for all rooted trees.
        m_embedded: weights of the scheme that estimates the error, or None.
        embedded_order: the order of that scheme, or None.

    Raises:
        ValueError: shapes do not fit, gamma is not positive, or an order condition fails by more than
            ``tableau.ORDER_TOLERANCE``; the message gives the name and the fault.

    Source: Hairer, Wanner, Solving ODEs II, IV.7.
    """

    name: str
    gamma: float
    a: tuple[tuple[float, ...], ...]
    c: tuple[tuple[float, ...], ...]
    m: tuple[float, ...]
    order: int
    m_embedded: tuple[float, ...] | None = None
    embedded_order: int | None = None

    def __post_init__(self) -> None:
        name, stages = self.name, len(self.m)
        check_pair(name, self.order, self.m_embedded, self.embedded_order)
        if not self.gamma > 0:
            raise ValueError(f"{name}: gamma is above zero, not {self.gamma}")
        for what in ("a", "c"):
            rows = getattr(self, what)
            if len(rows) != stages:
                raise ValueError(f"{name}: m has {stages} entries, {what} has {len(rows)} rows: each needs one a stage")
            checked = tuple(floats(name, f"row {i} of {what}", row, i) for i, row in enumerate(rows))
            object.__setattr__(self, what, checked)
        object.__setattr__(self, "m", floats(name, "m", self.m, stages))
        self._check_weights(name, self.m, self.order)
        if self.m_embedded is not None and self.embedded_order is not None:
            object.__setattr__(self, "m_embedded", floats(name, "m_embedded", self.m_embedded, stages))
            self._check_weights(f"{name}, embedded scheme", self.m_embedded, self.embedded_order)

    def _check_weights(self, name: str, m: tuple[float, ...], order: int) -> None:
        trees = [tree_name(tree) for tree in classical_conditions(order)]
        residuals = linearly_implicit_residuals(self.alpha, self.alpha + self.Gamma, np.array(m) @ self.Gamma, order)
        check_order(name, order, trees, residuals, brackets_in_words)

    @property
    def stages(self) -> int:
        """The number of stages s, of field evaluations and of linear systems in a step."""
        return len(self.m)

    @property
    def Gamma(self) -> Square:
        """The matrix of gamma_ij, with gamma on its diagonal, (s, s)."""
        return np.linalg.inv(np.eye(self.stages) / self.gamma - _square(self.c))

    @property
    def alpha(self) -> Square:
        """The weights alpha_ij of the points of the stages, (s, s)."""
        return _square(self.a) @ self.Gamma

    @property
    def nodes(self) -> tuple[float, ...]:
        """The times of the stages, ``sum_j alpha_ij``, as fractions of the step."""
        return tuple(map(float, self.alpha.sum(axis=1)))

    @property
    def slopes(self) -> tuple[float, ...]:
        """The weights ``gamma_i = sum_j gamma_ij`` of ``h^2 df/dt`` in the stages."""
        return tuple(map(float, self.Gamma.sum(axis=1)))


def rosenbrock(
    name: str, gamma: float, alpha: Rows, gammas: Rows, b: Sequence[float], order: int,
    b_embedded: Sequence[float] | None = None, embedded_order: int | None = None,
) -> RosenbrockTableau:  # fmt: skip
    """The tableau of a method given by alpha_ij, gamma_ij and b.

    Args:
        alpha: s rows; row i weighs the stage values 0 .. i-1.
        gammas: s rows of gamma_ij in the same form, without the diagonal.
        b: s weights of the update.
        b_embedded: weights of the scheme that estimates the error, or None.
        embedded_order: the order of that scheme, or None.

    Raises:
        ValueError: see ``RosenbrockTableau``.
    """
    inverse = np.linalg.inv(_square(gammas) + gamma * np.eye(len(b)))
    a, c = _square(alpha) @ inverse, np.eye(len(b)) / gamma - inverse

    def strict(matrix: Square) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(map(float, row[:i])) for i, row in enumerate(matrix))

    def weights(of: Sequence[float]) -> tuple[float, ...]:
        return tuple(map(float, np.array(of) @ inverse))

    embedded = None if b_embedded is None else weights(b_embedded)
    return RosenbrockTableau(name, gamma, strict(a), strict(c), weights(b), order, embedded, embedded_order)


def _square(rows: Rows) -> Square:
    return np.array([[*row, *[0.0] * (len(rows) - len(row))] for row in rows])
