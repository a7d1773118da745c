"""The maximum of a function under inequalities: an augmented Lagrangian around L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.support.extras import package


class Progress(NamedTuple):
    """How a search went.

    Attributes:
        values: The function after each round.
        violations: The largest violated condition after each round.
        evaluations: How often function and gradient were computed.
    """

    values: tuple[float, ...] = ()
    violations: tuple[float, ...] = ()
    evaluations: int = 0


def maximize(
    value: Callable[[Array], Array], conditions: Callable[[Array, Array], Array], x: np.ndarray, room: float, *,
    iterations: int, rounds: int, tolerance: float = 1e-3, penalty: float = 10.0,
) -> tuple[np.ndarray, Progress]:  # fmt: skip
    """A local maximum of ``value(x)`` where ``conditions(x, room) <= 0``, to a tolerance; outside of ``jit``.

    Source: Nocedal and Wright, Numerical Optimization, 2nd ed., alg. 17.4 and eq. (17.65).
    """
    minimize = package("scipy.optimize", "identify").minimize

    @jax.jit
    def merit(x: Array, multipliers: Array, rho: Array, room: Array) -> tuple[Array, Array]:
        def lagrangian(x: Array) -> Array:
            pushed = jnp.maximum(conditions(x, room) + multipliers / rho, 0)
            return -value(x) + rho / 2 * jnp.sum(pushed**2 - (multipliers / rho) ** 2)

        return jax.value_and_grad(lagrangian)(x)

    @jax.jit
    def look(x: Array, room: Array) -> tuple[Array, Array]:
        return value(x), conditions(x, room)

    limit = jnp.asarray(room)
    multipliers = jnp.zeros_like(look(jnp.asarray(x), limit)[1])
    rho, worst = penalty, np.inf
    values, violations, evaluations = [], [], 0
    for _ in range(rounds):

        def flat(x: np.ndarray, m: Array = multipliers, rho: float = rho) -> tuple[float, np.ndarray]:
            f, g = merit(jnp.asarray(x), m, jnp.asarray(rho), limit)
            finite = np.isfinite(f) and np.all(np.isfinite(g))
            # beyond what the function is defined for: a wall that the line search steps back from
            return (float(f), np.asarray(g, float)) if finite else (1e30, np.zeros_like(x))

        found = minimize(flat, x, jac=True, method="L-BFGS-B", options={"maxiter": iterations, "maxcor": 20})
        x, evaluations = found.x, evaluations + found.nfev
        reached, c = look(jnp.asarray(x), limit)
        multipliers = jnp.maximum(multipliers + rho * c, 0)
        before, worst = worst, float(jnp.max(jnp.maximum(c, 0), initial=0.0))
        values.append(float(reached))
        violations.append(worst)
        if worst <= tolerance:
            break
        rho = rho * 10 if worst > 0.25 * before else rho
    return x, Progress(tuple(values), tuple(violations), evaluations)
