"""Multilevel Monte Carlo over the time step: many samples with long steps, few with short ones."""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from lgsim.montecarlo.engine import Engine
from lgsim.montecarlo.intervals import Real, student_quantile
from lgsim.montecarlo.moments import Moments
from lgsim.montecarlo.study import DIVERGED, Study
from lgsim.support import check
from lgsim.support.check import unknown_name


class MultilevelMean(NamedTuple):
    """The mean of an output by multilevel Monte Carlo; arrays of the output's shape.

    Attributes:
        mean: The estimate with the shortest step.
        sampling_error: The standard error of the mean.
        degrees: Number of degrees of freedom of ``sampling_error``.
        step_error: Estimated bound of the integration error of the mean.
        samples: Number of samples of each level; level l has steps of ``dt / 2^l``.
        cost: Number of steps of all motions, relative to one motion of the study.
        converged: True if both errors together are at most the requested one.
    """

    mean: Real
    sampling_error: Real
    degrees: Real
    step_error: Real
    samples: tuple[int, ...]
    cost: float
    converged: bool

    def interval(self, level: float = 0.95) -> tuple[Real, Real]:
        """The confidence interval (low, high): Student's, wider by ``step_error`` on both sides."""
        half = student_quantile(level, self.degrees) * self.sampling_error + self.step_error
        return self.mean - half, self.mean + half


def multilevel(study: Study, output: str, error: float, *, levels: int = 10, first: int = 128) -> MultilevelMean:
    """Estimate the mean of an output with a given error, which integration and sampling share.

    ``E[y_L] = E[y_0] + sum_l E[y_l - y_(l-1)]``, where y_l has steps of ``dt / 2^l`` and both outputs of a difference
    belong to one sample. Differences decrease with the step, so that few samples suffice where steps are expensive.
    Numbers of samples follow from the variances, ``n_l ~ sqrt(V_l / C_l)``, for a squared sampling error of
    ``error^2 / 2``. Levels are added until the last change of the mean, and half of that before, is below
    ``error / sqrt(2)``: the remaining change is not larger if it decreases at least in proportion to the step.

    Source: Giles, Multilevel Monte Carlo path simulation, Operations Research 56(3), 2008, section 5.

    Args:
        study: A study of a ``Rollout`` with random sampling and without tilts, with the longest step; its number of
            samples is ignored.
        output: Name of an output of numbers that change continuously with the step: for a rare jump, such as of an
            event, the first samples of a level may show no difference.
        error: The root mean square error of each entry, in the output's unit; positive.
        levels: Maximum number of levels.
        first: Number of samples of a new level.

    Raises:
        ValueError: the output does not exist, an argument is out of range, samples diverged, or the study uses a
            sequence or tilts.
        TypeError: the rollout is a function, whose steps are unknown, or the output is not of real numbers.
    """
    kinds = study.columns()
    if output not in kinds:
        raise unknown_name("output: expected one of the study", output, list(kinds))
    if study.stepped is None:
        raise TypeError("study: expected a Rollout, got a function, whose steps are unknown")
    if not jnp.issubdtype(kinds[output].dtype, jnp.floating):
        raise TypeError(
            f"{output}: expected real numbers, got {kinds[output].dtype}: few samples show no change of a discrete"
            " output; return the number behind it"
        )
    if study.sampler.points is not None or study.sampler.tilts:
        raise ValueError("study: expected random sampling without tilts, got a sequence or tilts; leave them out")
    if not 0 < error < math.inf:
        raise ValueError(f"error: expected a positive number, got {error}")
    if check.count("levels", levels) < _FEWEST_LEVELS:
        raise ValueError(f"levels: expected at least {_FEWEST_LEVELS}, got {levels}")
    if check.count("first", first) < 2:
        raise ValueError(f"first: expected at least 2 samples, got {first}")
    return _Levels(study, output, first).mean(error, levels)


_FEWEST_LEVELS = 3
"""Number of levels that show whether differences decrease."""


class _Levels:
    """The levels of an estimate so far.

    Attributes:
        moments: Those of the differences of each level.
        drawn: Number of samples of all levels, which share none.
    """

    def __init__(self, study: Study, output: str, first: int) -> None:
        self.engine, self.output, self.first = Engine(study), output, first
        self.moments: list[Moments] = []
        self.drawn = 0

    def mean(self, error: float, most: int) -> MultilevelMean:
        """Add levels and samples until the errors are small enough."""
        while True:
            missing = max(0, _FEWEST_LEVELS - len(self.moments)) or 1
            for _ in range(missing):
                self.moments.append(self._difference(len(self.moments), self.first))
            self._sample(error)
            # with standard errors, since a few samples may have a small mean by chance
            last, before = (np.abs(m.mean) + m.error for m in (self.moments[-1], self.moments[-2]))
            bound = np.maximum(last, before / 2)
            converged = bool(np.all(bound <= error / math.sqrt(2)))
            if converged or len(self.moments) >= most:
                return self._result(bound, converged)

    def _sample(self, error: float) -> None:
        """Run the samples that the variances require."""
        while True:
            variances = np.array([m.variance.max() for m in self.moments])
            each = np.sqrt(variances / self._costs) * np.sqrt(variances * self._costs).sum()
            wanted = np.ceil(2 * each / error**2).astype(int).tolist()
            more = [max(0, n - m.count) for n, m in zip(wanted, self.moments, strict=True)]
            if not any(more):
                return
            for k, count in enumerate(more):
                if count:
                    # at most twice as many, since the variances of few samples are uncertain
                    count = min(count, self.moments[k].count)
                    self.moments[k] = self.moments[k].merge(self._difference(k, count))

    def _difference(self, level: int, count: int) -> Moments:
        """Moments of ``y_l - y_(l-1)`` of the next samples, block by block."""
        found = Moments.of(np.zeros((0, *self.engine.study.columns()[self.output].shape)))
        for start in range(self.drawn, self.drawn + count, self.engine.width):
            block = np.arange(start, min(start + self.engine.width, self.drawn + count))
            fine = self._outputs(block, level)
            found = found.merge(Moments.of(fine - self._outputs(block, level - 1) if level else fine))
        self.drawn += count
        return found

    def _outputs(self, block: np.ndarray, level: int) -> Float[np.ndarray, " n *shape"]:
        columns = self.engine.refined(block, 2**level)
        if lost := int(np.sum(columns[DIVERGED] != 0)):
            raise ValueError(
                f"study: expected no diverged samples, got {lost} of {len(block)} at dt / {2**level}; use a shorter dt"
            )
        return columns[self.output].astype(float)

    @property
    def _costs(self) -> Float[np.ndarray, " levels"]:
        """Number of steps of a sample of each level, relative to a motion of the study."""
        fine = 2.0 ** np.arange(len(self.moments))
        return fine + np.where(fine > 1, fine / 2, 0)

    def _result(self, bound: Real, converged: bool) -> MultilevelMean:
        parts = [m.variance / m.count for m in self.moments]
        total = np.sum(parts, axis=0)
        # Welch and Satterthwaite
        spread = sum(part**2 / (m.count - 1) for part, m in zip(parts, self.moments, strict=True))
        degrees = np.where(spread > 0, total**2 / np.where(spread > 0, spread, 1.0), self.moments[0].count - 1)
        counts = tuple(m.count for m in self.moments)
        return MultilevelMean(
            np.sum([m.mean for m in self.moments], axis=0), np.sqrt(total), degrees, bound, counts,
            float(self._costs @ np.array(counts)), converged,
        )  # fmt: skip
