"""Definition of a Bayesian identification problem: unknowns, records and noise model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.identify.estimators.estimator import Estimator
from lgsim.identify.estimators.records import SensorRecords
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.simulation_fit import SimulationFit
from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.posterior.noise_models import InverseGammaNoise, KnownNoise, NoiseModel
from lgsim.identify.posterior.physical_prior import PhysicalPrior
from lgsim.identify.posterior.serial_correlation import SerialCorrelation
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.support.check import is_traced

if TYPE_CHECKING:
    from lgsim.identify.fit import Fit


class PosteriorProblem(eqx.Module):
    """The input of ``log_density``: the arguments of ``fit``, and a noise model.

    The prior is that of the fit: coordinates x of blocks with a ``prior_deviation`` are normal about zero (within their
    bounds), all others have a constant density of x within their bounds. ``Parameters.priors`` count as measurements.

    Attributes:
        samples: ``TorqueSamples`` or ``SensorRecords``.
        estimator: ``TorqueFit`` or ``SimulationFit``, of which the loss, windows, integration method and noise are
            used.
        correlation: Serial correlation of the noise, or None for white noise.
        physical_priors: Priors on physical parameters instead of coordinates.
        x: Coordinates at which a search may start (p,): those of a fit, or zero.
        starts: Initial states of the windows (windows, state) at which a search may start, or None.
    """

    parameters: Parameters
    samples: Any
    estimator: TorqueFit | SimulationFit
    noise: NoiseModel
    correlation: SerialCorrelation | None
    physical_priors: tuple[PhysicalPrior, ...]
    x: Float[Array, " p"]
    starts: Float[Array, "windows state"] | None

    def __init__(
        self,
        parameters: Parameters,
        samples: Any,
        estimator: Estimator | None = None,
        noise: NoiseModel | None = None,
        correlation: SerialCorrelation | None = None,
        physical_priors: Sequence[PhysicalPrior] = (),
        x: Float[Array, " p"] | None = None,
        starts: Float[Array, "windows state"] | None = None,
    ) -> None:
        """Collect the arguments of ``fit(parameters, samples, estimator)`` and a noise model.

        Args:
            estimator: By default ``TorqueFit()``.
            noise: By default the estimator's: its given standard deviations (for ``SimulationFit`` those of the
                channels), or ``InverseGammaNoise()`` if it estimates them.

        Raises:
            TypeError: an argument has the wrong type or dtype.
            ValueError: a shape is wrong, a value with a weight is not finite, or a prior does not fit a block.
        """
        given = TorqueFit() if estimator is None else estimator
        if not isinstance(parameters, Parameters):
            raise TypeError(f"parameters: expected Parameters, got {type(parameters).__name__}")
        if not isinstance(given, TorqueFit | SimulationFit):
            raise TypeError(f"estimator: expected TorqueFit() or SimulationFit(), got {type(given).__name__}")
        kind = TorqueSamples if isinstance(given, TorqueFit) else SensorRecords
        if not isinstance(samples, kind):
            raise TypeError(
                f"samples: expected {kind.__name__} for {type(given).__name__}, got {type(samples).__name__}"
            )
        self.parameters, self.samples, self.estimator = parameters, samples, given
        self.noise = _default_noise(given, parameters, samples) if noise is None else noise
        if not isinstance(self.noise, NoiseModel):
            raise TypeError(f"noise: expected a model such as KnownNoise(0.1), got {type(noise).__name__}")
        if correlation is not None and not isinstance(correlation, SerialCorrelation):
            raise TypeError(f"correlation: expected SerialCorrelation() or None, got {type(correlation).__name__}")
        self.noise.check(given.loss)
        self.correlation, self.physical_priors = correlation, tuple(physical_priors)
        for prior in self.physical_priors:
            prior.check(parameters)
        self.x = jnp.zeros(parameters.size, parameters.dtype) if x is None else x
        self.starts = starts

    @classmethod
    def from_fit(
        cls,
        fit: Fit,
        noise: NoiseModel | None = None,
        correlation: SerialCorrelation | None = None,
        physical_priors: Sequence[PhysicalPrior] = (),
    ) -> PosteriorProblem:
        """The problem of a fit, starting at its solution; arguments as in the class."""
        return cls(
            fit.parameters, fit.samples, fit.estimator, noise, correlation, physical_priors, fit.estimate.x,
            fit.estimate.starts,
        )  # fmt: skip

    def check(self) -> None:
        """Check that records and unknowns fit each other; outside of ``jit`` and ``vmap`` only.

        Raises:
            TypeError, ValueError: as in the class; or two bounds coincide.
        """
        self.estimator.check(self.parameters, self.samples)
        lower, upper = self.parameters.bounds()
        if is_traced(lower, upper):
            return
        for name, low, high in zip(self.parameters.names, np.asarray(lower), np.asarray(upper), strict=True):
            if not low < high:
                raise ValueError(
                    f"blocks: expected a lower bound below the upper one, but those of {name} coincide; leave it out"
                    " of the unknowns"
                )


def _default_noise(estimator: TorqueFit | SimulationFit, parameters: Parameters, samples: Any) -> NoiseModel:
    """The noise model of the estimator."""
    if isinstance(estimator, TorqueFit):
        return InverseGammaNoise() if estimator.noise is None else KnownNoise(estimator.noise)
    if estimator.estimate_noise:
        return InverseGammaNoise()
    channels = samples.broadcast(parameters.plant.model).channels.values()
    return KnownNoise(jnp.concatenate([channel.deviation for channel in channels]))
