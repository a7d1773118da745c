"""How much an information matrix tells, as one number that a design can raise."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array


class Criterion(eqx.Module):
    """The logarithm of the information for each unknown, from an information matrix (r, r)."""

    @abstractmethod
    def of_eigenvalues(self, values: Array) -> Array:
        """From the logarithms of the eigenvalues (r,), rising."""

    def __call__(self, information: Array) -> Array:
        """The criterion; minus infinity or NaN for a singular matrix.

        A symmetric smooth function of the eigenvalues, so that it has a gradient where they cross as well.
        """
        _, vectors = jnp.linalg.eigh(jax.lax.stop_gradient(information))
        # to first order eigenvectors do not matter
        values = jnp.einsum("ik,ij,jk->k", vectors, information, vectors)
        return self.of_eigenvalues(jnp.log(values))


class DOptimal(Criterion):
    """``log det H / r``: the volume of the confidence ellipsoid."""

    def of_eigenvalues(self, values: Array) -> Array:
        return jnp.mean(values)


class AOptimal(Criterion):
    """``-log(tr H^-1 / r)``: the mean variance."""

    def of_eigenvalues(self, values: Array) -> Array:
        return -jax.nn.logsumexp(-values) + jnp.log(jnp.asarray(values.size, values.dtype))


class EOptimal(Criterion):
    """``-log(tr H^-p) / p``: nearly the smallest eigenvalue, the worst known combination, but smooth.

    It is below the logarithm of the smallest eigenvalue, by at most ``log(r) / p``.

    Attributes:
        power: p.
    """

    power: float = 8.0

    def of_eigenvalues(self, values: Array) -> Array:
        return -jax.nn.logsumexp(-self.power * values) / self.power


class Noise(eqx.Module):
    """The noise that a design reckons with."""

    @abstractmethod
    def deviations(self, signals: Array) -> Array:
        """Standard deviations (nv,) of noise on signals (n, nv)."""


class AbsoluteNoise(Noise):
    """The same whatever the motion.

    Attributes:
        deviation: A number or (nv,), in units of the signals.
    """

    deviation: Any = 1.0

    def deviations(self, signals: Array) -> Array:
        return jnp.broadcast_to(jnp.asarray(self.deviation, signals.dtype), signals.shape[-1:])


class RelativeNoise(Noise):
    """A part of each signal's root mean square: large torques hide small ones.

    Attributes:
        part: For example 0.05.
        floor: What remains of it where a signal vanishes, such as the sensor's resolution, a number or (nv,).
    """

    part: Any = 0.05
    floor: Any = 0.0

    def deviations(self, signals: Array) -> Array:
        part, floor = (
            jnp.broadcast_to(jnp.asarray(x, signals.dtype), signals.shape[-1:]) for x in (self.part, self.floor)
        )
        return jnp.sqrt(part**2 * jnp.mean(signals**2, axis=0) + floor**2)
