"""Linear stability: the amplification of a mode by a step of a method, from the tableau only."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from jaxtyping import Bool, Complex, Float

from lgsim.integrators.compositions import ThetaScheme
from lgsim.integrators.rosenbrock_tableau import RosenbrockTableau
from lgsim.integrators.tableau import ButcherTableau, CommutatorFreeTableau, ImplicitTableau

Modes = Complex[np.ndarray, " n"]

GROWTH = 0.05
"""The growth of a step relative to that of the mode itself above which the step counts as unstable."""


def amplification(tableau: Any, z: Modes) -> Modes:
    """The factor R(z) of a step on ``y' = lambda y`` with ``z = h lambda``, for every z, (n,).

    ``R(z) = 1 + z b (1 - z A)^-1 1`` with the weights A, b of the method in a vector space. A new kind of tableau
    registers its weights with ``weights``.

    Source: Hairer, Wanner, Solving ODEs II, IV.2, eq. (2.11); IV.3, eq. (3.2).
    """
    A, b = weights(tableau)
    systems = np.eye(len(b)) - z[:, None, None] * A
    return 1 + z * (np.linalg.solve(systems, np.ones((len(z), len(b), 1)))[..., 0] @ b)


@singledispatch
def weights(tableau: Any) -> tuple[Float[np.ndarray, "s s"], Float[np.ndarray, " s"]]:
    """The weights (A, b) of a tableau's method in a vector space; new kinds of tableaus register their own."""
    raise TypeError(
        f"tableau: the stability of a {type(tableau).__name__} is not known; register a function of the tableau with "
        "lgsim.integrators.stability.weights.register"
    )


@weights.register(ButcherTableau)
@weights.register(ImplicitTableau)
def _(tableau: ButcherTableau | ImplicitTableau) -> tuple[Float[np.ndarray, "s s"], Float[np.ndarray, " s"]]:
    count = len(tableau.b)
    return np.array([[*row, *[0.0] * (count - len(row))] for row in tableau.a]), np.array(tableau.b)


@weights.register
def _(tableau: CommutatorFreeTableau) -> tuple[Float[np.ndarray, "s s"], Float[np.ndarray, " s"]]:
    count = len(tableau.stages)
    points: list[Float[np.ndarray, " s"]] = []
    for point in (*tableau.stages, tableau.update):
        total = points[point.base].copy() if points else np.zeros(count)
        for row in point.rows:
            total[: len(row)] += row
        points.append(total)
    return np.array(points[:-1]), points[-1]


@weights.register
def _(tableau: RosenbrockTableau) -> tuple[Float[np.ndarray, "s s"], Float[np.ndarray, " s"]]:
    return tableau.alpha + tableau.Gamma, np.array(tableau.m) @ tableau.Gamma


@weights.register
def _(tableau: ThetaScheme) -> tuple[Float[np.ndarray, "s s"], Float[np.ndarray, " s"]]:
    thetas, fractions = np.array(tableau.substeps).T
    return np.tril(np.broadcast_to(fractions, (len(fractions),) * 2), -1) + np.diag(thetas * fractions), fractions


def unstable(tableau: Any, modes: Modes, dt: float) -> Bool[np.ndarray, " n"]:
    """True for each mode that steps amplify by more than ``GROWTH`` relative to its own growth.

    Args:
        modes: Eigenvalues lambda of the Jacobian, 1/s, (n,).
        dt: The step, s.
    """
    z = modes * dt
    return np.abs(amplification(tableau, z)) > (1 + GROWTH) * np.exp(np.clip(z.real, 0, 700))


def largest_step(tableau: Any, modes: Modes, dt: float) -> float:
    """The largest stable step up to dt, s, to a relative accuracy of 1e-6; infinity where dt is stable."""
    if not unstable(tableau, modes, dt).any():
        return float("inf")
    low = dt
    while unstable(tableau, modes, low).any():
        low /= 2
        if low < 1e-12 * dt:
            return 0.0
    high = 2 * low
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if unstable(tableau, modes, middle).any() else (middle, high)
    return low
