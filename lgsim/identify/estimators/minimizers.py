"""Solvers of the least-squares problem of multiple shooting, behind one interface."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.identify.estimators.estimator import RESULTS
from lgsim.identify.estimators.multiple_shooting import Shooting, linearize, stacked
from lgsim.identify.estimators.records import Windows
from lgsim.identify.estimators.structured_descent import structured_descent
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.linalg.levenberg_marquardt import LevenbergMarquardt, Solution
from lgsim.simulation.rollout import state_space
from lgsim.support.extras import package


class Minimizer(eqx.Module):
    """A way to a local minimum over the coordinates of the plant and the first states of windows."""

    @abstractmethod
    def find(self, shooting: Shooting, cut: Windows, x: Array, starts: Array, bounds: tuple[Array, Array]) -> Solution:
        """From (x, starts), within bounds of x."""

    def check(self, parameters: Parameters) -> None:
        """Raise where it cannot solve for these unknowns.

        Raises:
            ValueError: it keeps no bounds, and there are some.
        """


class StructuredGaussNewton(Minimizer):
    """Levenberg and Marquardt's steps in which the chain of states is eliminated: time grows with the windows only.

    Attributes:
        max_iterations: At most.
        tolerance: See ``LevenbergMarquardt``; by default a thousandth of a residual's square.
    """

    max_iterations: int = eqx.field(static=True, default=30)
    tolerance: Any = None

    def find(self, shooting: Shooting, cut: Windows, x: Array, starts: Array, bounds: tuple[Array, Array]) -> Solution:
        return self.descent(shooting, cut, bounds).find(x, starts)

    def descent(self, shooting: Shooting, cut: Windows, bounds: tuple[Array, Array]) -> LevenbergMarquardt:
        """The search that ``find`` runs, for use iteration by iteration."""
        space = state_space(shooting.parameters.plant.model)
        count = sum(w.size for w in cut.weights.values())
        return structured_descent(
            lambda x, s: linearize(shooting, cut, x, s), space.move, *bounds, self.max_iterations,
            2e-3 / count if self.tolerance is None else self.tolerance,
        )  # fmt: skip


class OptimistixLeastSquares(Minimizer):
    """A least-squares solver of optimistix, on residuals of all windows as one vector; for few windows, without bounds.

    Attributes:
        solver: Such as ``optimistix.Dogleg(rtol=1e-8, atol=1e-8)``; by default its ``LevenbergMarquardt`` with these
            tolerances.
        max_iterations: At most.
    """

    solver: Any = None
    max_iterations: int = eqx.field(static=True, default=100)

    def check(self, parameters: Parameters) -> None:
        for name, low, high in zip(parameters.names, *map(np.asarray, parameters.bounds()), strict=True):
            if np.isfinite(low) or np.isfinite(high):
                raise ValueError(
                    f"minimiser: Optimistix keeps no bounds, but {name} has some; give lower=-numpy.inf, or take"
                    " ChainSteps()"
                )

    def find(self, shooting: Shooting, cut: Windows, x: Array, starts: Array, bounds: tuple[Array, Array]) -> Solution:
        optimistix = package("optimistix", "optimize")
        solver = optimistix.LevenbergMarquardt(rtol=1e-8, atol=1e-8) if self.solver is None else self.solver
        space = state_space(shooting.parameters.plant.model)
        n = space.dim if shooting.free(cut) else 0
        still = jnp.equal(bounds[0], bounds[1])

        def place(z: tuple[Array, Array]) -> tuple[Array, Array]:
            moves = 1 - cut.first if shooting.known else jnp.ones_like(cut.first)
            there = jax.vmap(space.move)(z[1] * moves[:, None], starts) if n else starts
            return jnp.where(still, x, z[0]), there

        def vector(z: tuple[Array, Array], _: Any) -> tuple[Array, ...]:
            return stacked(shooting, cut, *place(z))

        start = x, jnp.zeros((len(starts), n), x.dtype)
        found = optimistix.least_squares(
            vector, solver, start, options={"jac": "fwd"}, max_steps=self.max_iterations, throw=False
        )
        at, there = place(found.value)
        linear = linearize(shooting, cut, at, there)
        done = found.result == optimistix.RESULTS.successful
        spent = found.result == optimistix.RESULTS.nonlinear_max_steps_reached
        status = RESULTS.where(done, RESULTS.successful, RESULTS.where(spent, RESULTS.max_iterations, RESULTS.stalled))
        steps = jnp.asarray(found.stats["num_steps"])
        costs = jnp.full(self.max_iterations, jnp.nan, x.dtype).at[0].set(linear.cost)
        path = jnp.broadcast_to(at, (self.max_iterations, at.size))
        return Solution(at, there, linear, jnp.zeros(at.shape, bool), costs, path, steps, status)
