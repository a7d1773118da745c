"""What records say of coordinates: costs and normal equations, streamed over the samples or compressed once."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from lgsim.identify.estimators.loss import Loss, SquaredLoss
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.linalg.levenberg_marquardt import NormalEquations

TILE = 512
"""Samples whose Jacobians are in memory at once."""


class NormalEquationsSource(eqx.Module):
    """Half the sum of losses of the residuals in standard deviations, as a function of the coordinates x (p,).

    Attributes:
        parameters: What the coordinates mean.
        tiles: The records, by ``Samples.tiles``.
        loss: Of the squared residuals.
    """

    parameters: Parameters
    tiles: TorqueSamples
    loss: Loss

    @abstractmethod
    def cost(self, x: Array, noise: Array) -> Array:
        """The cost for standard deviations noise (nv,)."""

    @abstractmethod
    def normal(self, x: Array, noise: Array) -> NormalEquations:
        """The normal equations."""

    @abstractmethod
    def spread(self, x: Array, noise: Array, unknowns: Array) -> Array:
        """Standard deviations of the residuals (nv,), outliers counted as the loss does.

        Args:
            x: Coordinates.
            noise: Standard deviations by which the loss tells outliers.
            unknowns: How many of the residuals the unknowns have taken up.
        """

    def scores(self, x: Array, noise: Array) -> Array:
        """The gradients of the samples' costs (n, p), filled up with zeros to whole tiles."""

        def one(tile: TorqueSamples) -> Array:
            r, J = linearized(self.parameters, x, tile)
            w = tile.weight * self.loss.weight((r / noise[None]) ** 2) / noise[None] ** 2
            return jnp.einsum("tj,tjp->tp", w * r, J)

        return jax.lax.map(one, self.tiles).reshape(-1, x.size)


class StreamedNormalEquations(NormalEquationsSource):
    """For any unknowns and losses: each evaluation goes through all samples, a tile at a time."""

    def cost(self, x: Array, noise: Array) -> Array:
        def add(total: Array, tile: TorqueSamples) -> tuple[Array, None]:
            s = (residual(self.parameters, x, tile) / noise[None]) ** 2
            return total + jnp.sum(tile.weight * self.loss.cost(s)) / 2, None

        return jax.lax.scan(add, jnp.zeros((), x.dtype), self.tiles)[0]

    def normal(self, x: Array, noise: Array) -> NormalEquations:
        def add(total: NormalEquations, tile: TorqueSamples) -> tuple[NormalEquations, None]:
            r, J = linearized(self.parameters, x, tile)
            s = (r / noise[None]) ** 2
            w = tile.weight * self.loss.weight(s) / noise[None] ** 2
            part = NormalEquations(
                jnp.sum(tile.weight * self.loss.cost(s)) / 2, jnp.einsum("tj,tjp->p", w * r, J),
                jnp.einsum("tjp,tjq->pq", w[..., None] * J, J),
            )  # fmt: skip
            return jax.tree.map(jnp.add, total, part), None

        p = x.size
        zero = NormalEquations(jnp.zeros((), x.dtype), jnp.zeros(p, x.dtype), jnp.zeros((p, p), x.dtype))
        return jax.lax.scan(add, zero, self.tiles)[0]

    def spread(self, x: Array, noise: Array, unknowns: Array) -> Array:
        def add(total: tuple[Array, Array], tile: TorqueSamples) -> tuple[tuple[Array, Array], None]:
            r = residual(self.parameters, x, tile)
            w = tile.weight * self.loss.weight((r / noise[None]) ** 2)
            return (total[0] + jnp.sum(w * r**2, axis=0), total[1] + jnp.sum(w, axis=0)), None

        zero = jnp.zeros_like(noise)
        (squares, weight), _ = jax.lax.scan(add, (zero, zero), self.tiles)
        return deviations(squares, weight, unknowns)


class CompressedNormalEquations(NormalEquationsSource):
    """For squares of signals that are affine in all unknown numbers: the samples are read once.

    With numbers theta (k,) that the unknowns move by d, ``sum_t w r_j^2 = c_j + 2 b_j . d + d . G_j d`` for each signal
    j: an iteration costs the same for any number of samples. Rounding errors are those of normal equations about the
    prior.

    Attributes:
        gram: G (nv, k, k).
        slope: b (nv, k).
        constant: c (nv,).
        weight: Sum of the weights of each signal (nv,).
    """

    gram: Array
    slope: Array
    constant: Array
    weight: Array

    def cost(self, x: Array, noise: Array) -> Array:
        return jnp.sum(self._squares(self._moved(x)) / noise**2) / 2

    def normal(self, x: Array, noise: Array) -> NormalEquations:
        d, T = self._moved(x), jax.jacfwd(self._moved)(x)
        G = jnp.einsum("jkl,j->kl", self.gram, 1 / noise**2)
        gradient = (self.slope.T @ (1 / noise**2) + G @ d) @ T
        return NormalEquations(jnp.sum(self._squares(d) / noise**2) / 2, gradient, T.T @ G @ T)

    def spread(self, x: Array, noise: Array, unknowns: Array) -> Array:
        return deviations(self._squares(self._moved(x)), self.weight, unknowns)

    def _squares(self, d: Array) -> Array:
        # rounding must not leave less than nothing
        return jnp.maximum(self.constant + 2 * self.slope @ d + jnp.einsum("k,jkl,l->j", d, self.gram, d), 0)

    def _moved(self, x: Array) -> Array:
        places = self.parameters.affine
        return self.parameters.put(x).numbers[places] - self.parameters.plant.numbers[places]


def normal_equations(parameters: Parameters, samples: TorqueSamples, loss: Loss) -> NormalEquationsSource:
    """What samples say: compressed where the signals are affine in the unknown numbers and the loss is quadratic."""
    tiles = samples.tiles(TILE)
    places = parameters.affine
    if places is None or not isinstance(loss, SquaredLoss):
        return StreamedNormalEquations(parameters, tiles, loss)
    plant = parameters.plant
    theta = plant.numbers

    def signals(part: Array, tile: TorqueSamples) -> tuple[Array, Array]:
        out = plant.with_numbers(theta.at[places].set(part)).signals(tile.q, tile.v, tile.a, tile.wrenches)
        return out, out

    def add(total: tuple[Array, ...], tile: TorqueSamples) -> tuple[tuple[Array, ...], None]:
        Y, there = jax.jacfwd(signals, has_aux=True)(theta[places], tile)
        w, r = tile.weight, there - tile.signals
        part = (
            jnp.einsum("tjk,tjl->jkl", w[..., None] * Y, Y), jnp.einsum("tj,tjk->jk", w * r, Y),
            jnp.sum(w * r**2, axis=0), jnp.sum(w, axis=0),
        )  # fmt: skip
        return jax.tree.map(jnp.add, total, part), None

    nv, k = samples.signals.shape[-1], len(places)
    zero = tuple(jnp.zeros(shape, theta.dtype) for shape in ((nv, k, k), (nv, k), (nv,), (nv,)))
    gram, slope, constant, weight = jax.lax.scan(add, zero, tiles)[0]
    return CompressedNormalEquations(parameters, tiles, loss, gram, slope, constant, weight)


def residual(parameters: Parameters, x: Array, samples: TorqueSamples) -> Array:
    """Signals that the plant at x would give less the recorded ones (n, nv)."""
    return parameters.put(x).signals(samples.q, samples.v, samples.a, samples.wrenches) - samples.signals


def linearized(parameters: Parameters, x: Array, samples: TorqueSamples) -> tuple[Array, Array]:
    """Those residuals r (n, nv), and their derivatives by x (n, nv, p)."""

    def f(x: Array) -> tuple[Array, Array]:
        r = residual(parameters, x, samples)
        return r, r

    J, r = jax.jacfwd(f, has_aux=True)(x)
    return r, J


def deviations(squares: Array, weight: Array, unknowns: Array | float = 0.0) -> Array:
    """Standard deviations (nv,) from sums of squares, each signal sharing the unknowns by its weight."""
    total = jnp.sum(weight)
    left = 1 - unknowns / jnp.where(total > unknowns, total, jnp.inf)
    mean = squares / jnp.where(weight > 0, weight * left, 1)
    # a joint without any signal, or with a perfect one, must not divide by zero
    return jnp.where(mean > 0, jnp.sqrt(jnp.where(mean > 0, mean, 1)), 1)
