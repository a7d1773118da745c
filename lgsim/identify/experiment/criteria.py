"""Criteria of optimal experiment design: scalar functions of an information matrix; and the noise of the signals."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import number_field
from lgsim.identify.unknowns.plant import NumbersLike


class Criterion(eqx.Module):
    """The logarithm of the information per unknown, as a function of an information matrix."""

    @abstractmethod
    def from_log_eigenvalues(self, logs: Float[Array, " r"]) -> Float[Array, ""]:
        """The criterion from the logarithms of the eigenvalues, in ascending order."""

    def __call__(self, information: Float[Array, "r r"]) -> Float[Array, ""]:
        """The criterion of an information matrix; minus infinity or NaN for a singular one.

        A symmetric smooth function of the eigenvalues, so that it is differentiable at crossings too.
        """
        _, vectors = jnp.linalg.eigh(jax.lax.stop_gradient(information))
        # to first order the eigenvectors have no effect
        values = jnp.einsum("ik,ij,jk->k", vectors, information, vectors)
        return self.from_log_eigenvalues(jnp.log(values))


class DOptimal(Criterion):
    """The criterion ``log det H / r``: the volume of the confidence ellipsoid."""

    def from_log_eigenvalues(self, logs: Float[Array, " r"]) -> Float[Array, ""]:
        return jnp.mean(logs)


class AOptimal(Criterion):
    """The criterion ``-log(tr H^-1 / r)``: the mean variance."""

    def from_log_eigenvalues(self, logs: Float[Array, " r"]) -> Float[Array, ""]:
        return -jax.nn.logsumexp(-logs) + jnp.log(jnp.asarray(logs.size, logs.dtype))


class EOptimal(Criterion):
    """A smooth approximation of the smallest eigenvalue, the least known combination.

    The criterion is ``-log(tr H^-p) / p``.

    It is below the logarithm of the smallest eigenvalue, by at most ``log(r) / p``.

    Attributes:
        power: The power p.
    """

    power: float = number_field(8.0)

    def from_log_eigenvalues(self, logs: Float[Array, " r"]) -> Float[Array, ""]:
        return -jax.nn.logsumexp(-self.power * logs) / self.power


class SignalNoise(eqx.Module):
    """The noise of the signals in a design: ``sqrt(deviation^2 + (fraction rms)^2)`` for each signal.

    The fraction of the root mean square represents errors that are proportional to the torques.

    Attributes:
        deviation: Noise independent of the motion, such as the sensor's resolution, one value or (nv,), in the units of
            the signals.
        fraction: Noise as a fraction of each signal's root mean square, for example 0.05, one value or (nv,).
    """

    deviation: NumbersLike = 1.0
    fraction: NumbersLike = 0.0

    def deviations(self, signals: Float[Array, "n nv"]) -> Float[Array, " nv"]:
        """Standard deviations of the noise of signals, in their units."""
        deviation, fraction = (
            jnp.broadcast_to(jnp.asarray(x, signals.dtype), signals.shape[-1:]) for x in (self.deviation, self.fraction)
        )
        return jnp.sqrt(fraction**2 * jnp.mean(signals**2, axis=0) + deviation**2)
