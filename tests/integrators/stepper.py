"""A plain numpy reading of the tableaus on SO(3), to compare whole methods with errors made elsewhere."""

import numpy as np

from lgsim.integrators.tableau import ButcherTableau, CommutatorFreeTableau


def hat(u):
    return np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])


def move(u, y):
    """The left action exp(hat u) y, with Rodrigues' formula for exp."""
    angle, axis = np.linalg.norm(u), hat(u)
    half = np.sinc(angle / (2 * np.pi))
    return y + np.sinc(angle / np.pi) * axis @ y + half**2 / 2 * axis @ axis @ y


def dexpinv(u, v):
    """Iserles et al., Lie-group methods (2000), appendix B: the closed form on so(3)."""
    angle = np.linalg.norm(u)
    if angle == 0:
        return v
    cross = np.cross(u, v)
    return v - cross / 2 + (1 - angle / 2 / np.tan(angle / 2)) / angle**2 * np.cross(u, cross)


def munthe_kaas(tableau: ButcherTableau, field, y, h, weights):
    """One step with exact dexpinv, or with the brackets of the tableau where it has some."""
    values = []

    def element(row, i):
        sigma = sum((h * w * k for w, k in zip(row, values, strict=False)), np.zeros(3))
        for term in tableau.commutators:
            if term.row == i:
                sigma = sigma + h**2 * term.coefficient * np.cross(values[term.left], values[term.right])
        return sigma

    for i, row in enumerate(tableau.a):
        sigma = element(row, i)
        k = field(move(sigma, y))
        values.append(k if tableau.commutators else dexpinv(sigma, k))
    return move(element(weights, tableau.stages), y)


def commutator_free(tableau: CommutatorFreeTableau, field, y, h, update):
    points, values = [], []
    for target in (*tableau.stages, *tableau.embedded_stages, update):
        point = points[target.base] if points else y
        for row in target.rows:
            point = move(sum(h * w * k for w, k in zip(row, values, strict=False)), point)
        points.append(point)
        values.append(field(point))
    return points[-1]


def integrate(tableau, field, y, steps, estimate=False):
    """The point at t = 1 from t = 0, by the method or by the scheme that estimates its error."""
    for _ in range(steps):
        if isinstance(tableau, ButcherTableau):
            y = munthe_kaas(tableau, field, y, 1 / steps, tableau.b_embedded if estimate else tableau.b)
        else:
            y = commutator_free(tableau, field, y, 1 / steps, tableau.embedded if estimate else tableau.update)
    return y
