"""One estimator on the same motion with many seeds of torque noise, in one call, compared with the truth."""

import time
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from scipy.stats import chi2

from lgsim.identify.estimators.loss import SquaredLoss
from lgsim.identify.estimators.torque_objective import torque_objective


class Found(NamedTuple):
    """Estimates for s seeds.

    Attributes:
        gaps: Errors of the base parameters (s, r).
        covariance: Their reported covariance (s, r, r).
        path: Coordinates at each iteration (s, iterations, p).
        rmse: Root mean squares of the residuals of held-out records (s, nv), or None.
        first, again: Seconds of the call with and without compilation.
    """

    gaps: np.ndarray
    covariance: np.ndarray
    path: np.ndarray
    rmse: np.ndarray | None
    first: float
    again: float

    @property
    def scores(self) -> np.ndarray:
        """Gaps in reported standard deviations (s, r)."""
        return self.gaps / np.sqrt(np.diagonal(self.covariance, axis1=1, axis2=2))

    @property
    def distances(self) -> np.ndarray:
        """Squared distances of the truth in the metric of the reported covariance (s,): chi-square with r degrees."""
        return np.einsum("si,si->s", self.gaps, np.linalg.solve(self.covariance, self.gaps[..., None])[..., 0])

    @property
    def inside(self) -> np.ndarray:
        """True for each seed whose 95 % confidence ellipsoid contains the truth."""
        return self.distances < chi2.ppf(0.95, self.gaps.shape[1])


def over_seeds(estimator, parameters, base, samples, signals, truth, held_out=None, twice=True):
    """``Found`` for signals (s, n, nv) instead of those of the samples; truth are the true base parameters."""

    @eqx.filter_jit
    def run(estimator, parameters, samples, signals, held_out):
        other = None if held_out is None else torque_objective(parameters, held_out, SquaredLoss())

        def one(recorded):
            estimate = estimator.run(parameters, eqx.tree_at(lambda s: s.signals, samples, recorded))
            gap = base.values(parameters.plant_at(estimate.x)) - truth
            rmse = None if other is None else other.residual_deviations(estimate.x)
            return gap, base.covariance(parameters, estimate.x, estimate.covariance), estimate.path, rmse

        return eqx.filter_vmap(one)(signals)

    seconds = []
    for _ in range(1 + twice):
        start = time.perf_counter()
        found = jax.block_until_ready(run(estimator, parameters, samples, signals, held_out))
        seconds.append(time.perf_counter() - start)
    return Found(*(None if x is None else np.asarray(x) for x in found), seconds[0], seconds[-1])
