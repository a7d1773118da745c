"""Minimizers of the least-squares problem of multiple shooting, behind one interface."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.identify.estimators.estimator import RESULTS
from lgsim.identify.estimators.multiple_shooting import Shooting, linearize, plant_space, residual_vectors
from lgsim.identify.estimators.records import Windows
from lgsim.identify.estimators.structured_descent import structured_descent
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.linalg.levenberg_marquardt import LevenbergMarquardt, Solution
from lgsim.support.packages import package


class Minimizer(eqx.Module):
    """A way to a local minimum over the coordinates of the plant and the first states of windows."""

    @abstractmethod
    def find(
        self,
        shooting: Shooting,
        windows: Windows,
        x: Float[Array, " p"],
        starts: Float[Array, "windows state"],
        bounds: tuple[Float[Array, " p"], Float[Array, " p"]],
    ) -> Solution:
        """The local minimum that is found from coordinates x and first states.

        Args:
            shooting: The problem.
            windows: The windows of the records.
            x: First coordinates.
            starts: First guesses of the first states.
            bounds: Lower and upper bounds of x; where they are equal x stays.
        """

    def check(self, parameters: Parameters) -> None:
        """Raise where the minimizer cannot solve for these unknowns.

        Raises:
            ValueError: the minimizer keeps no bounds, and there are some.
        """


class StructuredGaussNewton(Minimizer):
    """Levenberg and Marquardt's steps in which the chain of states is eliminated: time grows with the windows only.

    Attributes:
        max_iterations: Largest number of iterations.
        tolerance: As of ``LevenbergMarquardt``; by default a thousandth of a residual's square.
    """

    max_iterations: int = eqx.field(static=True, default=30)
    tolerance: ArrayLike | None = None

    def find(
        self,
        shooting: Shooting,
        windows: Windows,
        x: Float[Array, " p"],
        starts: Float[Array, "windows state"],
        bounds: tuple[Float[Array, " p"], Float[Array, " p"]],
    ) -> Solution:
        return self.descent(shooting, windows, bounds).find(x, starts)

    def descent(
        self, shooting: Shooting, windows: Windows, bounds: tuple[Float[Array, " p"], Float[Array, " p"]]
    ) -> LevenbergMarquardt:
        """The iterations of ``find``, one by one."""
        space = plant_space(shooting.parameters.plant)
        count = sum(w.size for w in windows.weights.values())
        return structured_descent(
            lambda x, s: linearize(shooting, windows, x, s), space.move, *bounds, self.max_iterations,
            2e-3 / count if self.tolerance is None else self.tolerance,
        )  # fmt: skip


class OptimistixLeastSquares(Minimizer):
    """A least-squares solver of optimistix, on residuals of all windows as one vector; for few windows, without bounds.

    Attributes:
        solver: A solver such as ``optimistix.Dogleg(rtol=1e-8, atol=1e-8)``; by default its ``LevenbergMarquardt`` with
            these tolerances.
        max_iterations: Largest number of iterations.
    """

    solver: Any = None
    max_iterations: int = eqx.field(static=True, default=100)

    def check(self, parameters: Parameters) -> None:
        for name, low, high in zip(parameters.names, *map(np.asarray, parameters.bounds()), strict=True):
            if np.isfinite(low) or np.isfinite(high):
                raise ValueError(
                    f"minimizer: Optimistix keeps no bounds, but {name} has some; give lower=-numpy.inf, or take"
                    " StructuredGaussNewton()"
                )

    def find(
        self,
        shooting: Shooting,
        windows: Windows,
        x: Float[Array, " p"],
        starts: Float[Array, "windows state"],
        bounds: tuple[Float[Array, " p"], Float[Array, " p"]],
    ) -> Solution:
        optimistix = package("optimistix", "optimize")
        solver = optimistix.LevenbergMarquardt(rtol=1e-8, atol=1e-8) if self.solver is None else self.solver
        space = plant_space(shooting.parameters.plant)
        n = space.dim if shooting.has_free_starts(windows) else 0
        fixed = jnp.equal(bounds[0], bounds[1])

        def point(z: tuple[Array, Array]) -> tuple[Array, Array]:
            moves = 1 - windows.first if shooting.known_start else jnp.ones_like(windows.first)
            moved = jax.vmap(space.move)(z[1] * moves[:, None], starts) if n else starts
            return jnp.where(fixed, x, z[0]), moved

        def vectors(z: tuple[Array, Array], _: Any) -> tuple[Array, ...]:
            return residual_vectors(shooting, windows, *point(z))

        start = x, jnp.zeros((len(starts), n), x.dtype)
        found = optimistix.least_squares(
            vectors, solver, start, options={"jac": "fwd"}, max_steps=self.max_iterations, throw=False
        )
        end, end_starts = point(found.value)
        linear = linearize(shooting, windows, end, end_starts)
        done = found.result == optimistix.RESULTS.successful
        spent = found.result == optimistix.RESULTS.nonlinear_max_steps_reached
        status = RESULTS.where(done, RESULTS.successful, RESULTS.where(spent, RESULTS.max_iterations, RESULTS.stalled))
        steps = jnp.asarray(found.stats["num_steps"])
        costs = jnp.full(self.max_iterations, jnp.nan, x.dtype).at[0].set(linear.cost)
        path = jnp.broadcast_to(end, (self.max_iterations, end.size))
        return Solution(end, end_starts, linear, jnp.zeros(end.shape, bool), costs, path, steps, status)
