"""Constrained maximization: an augmented Lagrangian around L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import compiled
from lgsim.support.packages import package


class SearchHistory(NamedTuple):
    """The progress of a search.

    Attributes:
        values: The function after each outer iteration.
        violations: The largest violated constraint after each outer iteration.
        evaluations: Number of evaluations of the function with its gradient.
        settled: True if the last quasi-Newton search converged before its maximum number of iterations.
    """

    values: tuple[float, ...] = ()
    violations: tuple[float, ...] = ()
    evaluations: int = 0
    settled: bool = False


def maximize(
    value: Callable[[Array], Array],
    constraints: Callable[[Array, Array], Array],
    x: Float[np.ndarray, " n"],
    bound: float,
    *,
    iterations: int,
    outer_iterations: int,
    tolerance: float = 1e-3,
    penalty: float = 10.0,
) -> tuple[Float[np.ndarray, " n"], SearchHistory]:
    """Find a local maximum of ``value(x)`` subject to ``constraints(x, bound) <= 0``; outside of ``jit``.

    Compiles once for each structure of the two functions, if they are pytrees such as ``jax.tree_util.Partial``.

    Args:
        value: The function, of an array (n,).
        constraints: An array (m,) of values that must not be positive.
        x: The start of the search.
        bound: The second argument of ``constraints``.
        iterations: Maximum number of quasi-Newton iterations in each outer one.
        outer_iterations: Maximum number of updates of multipliers and penalty.
        tolerance: The accepted violation of a constraint.
        penalty: The initial penalty.

    Returns:
        (the final point, the progress of the search).

    Raises:
        ModuleNotFoundError: scipy is not installed.

    Source: Nocedal and Wright, Numerical Optimization, 2nd ed., alg. 17.4 and eq. (17.65).
    """
    minimize = package("scipy.optimize", "identify").minimize

    limit = jnp.asarray(bound)
    multipliers = jnp.zeros_like(_evaluate(value, constraints, jnp.asarray(x), limit)[1])
    rho, worst = penalty, np.inf
    values, violations, evaluations, settled = [], [], 0, False
    for _ in range(outer_iterations):

        def merit_of_numpy(x: np.ndarray, m: Array = multipliers, rho: float = rho) -> tuple[float, np.ndarray]:
            f, g = _merit(value, constraints, jnp.asarray(x), m, jnp.asarray(rho), limit)
            finite = np.isfinite(f) and np.all(np.isfinite(g))
            # outside of the function's domain: a finite wall from which the line search steps back
            return (float(f), np.asarray(g, float)) if finite else (1e30, np.zeros_like(x))

        found = minimize(merit_of_numpy, x, jac=True, method="L-BFGS-B", options={"maxiter": iterations, "maxcor": 20})
        x, evaluations, settled = found.x, evaluations + found.nfev, found.nit < iterations
        reached, c = _evaluate(value, constraints, jnp.asarray(x), limit)
        multipliers = jnp.maximum(multipliers + rho * c, 0)
        before, worst = worst, float(jnp.max(jnp.maximum(c, 0), initial=0.0))
        values.append(float(reached))
        violations.append(worst)
        if worst <= tolerance:
            break
        rho = rho * 10 if worst > 0.25 * before else rho
    return x, SearchHistory(tuple(values), tuple(violations), evaluations, settled)


@compiled
def _merit(
    value: Callable[[Array], Array],
    constraints: Callable[[Array, Array], Array],
    x: Float[Array, " n"],
    multipliers: Float[Array, " m"],
    rho: Float[Array, ""],
    bound: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, " n"]]:
    """The augmented Lagrangian that is minimized, and its gradient."""

    def lagrangian(x: Float[Array, " n"]) -> Float[Array, ""]:
        shifted = jnp.maximum(constraints(x, bound) + multipliers / rho, 0)
        return -value(x) + rho / 2 * jnp.sum(shifted**2 - (multipliers / rho) ** 2)

    return jax.value_and_grad(lagrangian)(x)


@compiled
def _evaluate(
    value: Callable[[Array], Array],
    constraints: Callable[[Array, Array], Array],
    x: Float[Array, " n"],
    bound: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, " m"]]:
    """(the function, the constraints)."""
    return value(x), constraints(x, bound)
