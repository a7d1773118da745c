"""The least-squares objective of joint torques as a function of the unknowns, streamed over samples or compressed."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from lgsim._compile.linalg.levenberg_marquardt import NormalEquations
from lgsim._compile.xla import control_flow
from lgsim.identify.estimators.loss import Loss, SquaredLoss
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import signal_sensitivities

TILE = 512
"""Number of samples whose Jacobians are in memory at once."""
WINDOW = 5.0
"""Number of correlation times over which the autocorrelations are summed."""


class TorqueObjective(eqx.Module):
    """Half the weighted sum of losses of the normalized residuals, as a function of the coordinates x.

    ``1/2 sum_t sum_j w_tj rho(r_tj^2 / noise_j^2)``, ``r = signals(q, v, a; x) - recorded``, without priors.

    Attributes:
        tiles: The records, by ``TorqueSamples.tiles``.
    """

    parameters: Parameters
    tiles: TorqueSamples
    loss: Loss

    @abstractmethod
    def cost(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, ""]:
        """The objective at x for standard deviations ``noise`` of the signals."""

    @abstractmethod
    def normal_equations(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> NormalEquations:
        """The objective with its gradient and Gauss-Newton Hessian, including robust weights."""

    def start(self) -> Float[Array, " p"]:
        """The coordinates from which a search starts: the prior, by default."""
        return jnp.zeros(self.parameters.size, self.parameters.dtype)

    def held_at_first(self) -> Bool[Array, " p"] | None:
        """True for the coordinates that the first of several rounds leaves at their start; None for none."""
        return None

    @abstractmethod
    def informations(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, "nv p p"]:
        """The Gauss-Newton Hessian of the contribution of each signal."""

    def residual_deviations(self, x: Float[Array, " p"]) -> Float[Array, " nv"]:
        """Standard deviations of the residuals by ``Loss.deviation``, 0 for a signal without weight."""

        def one(tile: TorqueSamples) -> Float[Array, "t nv"]:
            return torque_residuals(self.parameters, x, tile)

        nv = self.tiles.signals.shape[-1]
        r, w = jax.lax.map(one, self.tiles), self.tiles.weight
        return self.loss.deviation(r.reshape(-1, nv), w.reshape(-1, nv))

    def rounding(self, noise: Float[Array, " nv"]) -> Float[Array, ""]:
        """The rounding error of the cost that does not decrease with it."""
        return jnp.zeros((), noise.dtype)

    def correlation_times(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """The correlation time of each signal in samples, by ``correlation_times``: so many samples carry the
        information of one sample of white noise.
        """

        def one(tile: TorqueSamples) -> Float[Array, "t nv"]:
            r = torque_residuals(self.parameters, x, tile)
            return jnp.sqrt(tile.weight * self.loss.weight((r / noise[None]) ** 2)) * r

        return correlation_times(jax.lax.map(one, self.tiles).reshape(-1, noise.size))

    def scores(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, "n p"]:
        """The gradients of the samples' costs, padded with zeros to whole tiles."""

        def one(tile: TorqueSamples) -> Float[Array, "t p"]:
            r, J = torque_residual_jacobian(self.parameters, x, tile)
            w = tile.weight * self.loss.weight((r / noise[None]) ** 2) / noise[None] ** 2
            return jnp.einsum("tj,tjp->tp", w * r, J)

        return jax.lax.map(one, self.tiles).reshape(-1, x.size)


class StreamedObjective(TorqueObjective):
    """The objective for any unknowns and losses: each evaluation passes over all samples, a tile at a time."""

    def cost(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, ""]:
        def add(total: Float[Array, ""], tile: TorqueSamples) -> tuple[Float[Array, ""], None]:
            s = (torque_residuals(self.parameters, x, tile) / noise[None]) ** 2
            return total + jnp.sum(tile.weight * self.loss.cost(s)) / 2, None

        return control_flow.scan(add, jnp.zeros((), x.dtype), self.tiles)[0]

    def normal_equations(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> NormalEquations:
        def add(total: NormalEquations, tile: TorqueSamples) -> tuple[NormalEquations, None]:
            r, J = torque_residual_jacobian(self.parameters, x, tile)
            s = (r / noise[None]) ** 2
            w = tile.weight * self.loss.weight(s) / noise[None] ** 2
            part = NormalEquations(
                jnp.sum(tile.weight * self.loss.cost(s)) / 2, jnp.einsum("tj,tjp->p", w * r, J),
                jnp.einsum("tjp,tjq->pq", w[..., None] * J, J),
            )  # fmt: skip
            return jax.tree.map(jnp.add, total, part), None

        p = x.size
        zero = NormalEquations(jnp.zeros((), x.dtype), jnp.zeros(p, x.dtype), jnp.zeros((p, p), x.dtype))
        return control_flow.scan(add, zero, self.tiles)[0]

    def informations(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, "nv p p"]:
        def add(total: Float[Array, "nv p p"], tile: TorqueSamples) -> tuple[Float[Array, "nv p p"], None]:
            r, J = torque_residual_jacobian(self.parameters, x, tile)
            w = tile.weight * self.loss.weight((r / noise[None]) ** 2) / noise[None] ** 2
            return total + jnp.einsum("tjp,tjq->jpq", w[..., None] * J, J), None

        return control_flow.scan(add, jnp.zeros((noise.size, x.size, x.size), x.dtype), self.tiles)[0]


class CompressedObjective(TorqueObjective):
    """The quadratic objective of signals that are affine in all unknowns: the samples are read once.

    For dynamic parameters theta (k,) changed by d, ``sum_t w r_j^2 = c_j + 2 b_j . d + d . G_j d`` for each signal j.
    The cost of an iteration is independent of the number of samples. Rounding errors are those of normal equations
    about the prior.

    Attributes:
        gram: The matrices G (nv, k, k).
        slope: The vectors b (nv, k).
        constant: The constants c (nv,).
        weight: Sum of the weights of each signal (nv,).
    """

    gram: Float[Array, "nv k k"]
    slope: Float[Array, "nv k"]
    constant: Float[Array, " nv"]
    weight: Float[Array, " nv"]

    def cost(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, ""]:
        return jnp.sum(self._squares(self.parameters.affine_change(x)) / noise**2) / 2

    def normal_equations(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> NormalEquations:
        change = self.parameters.affine_change
        d, T = change(x), jax.jacfwd(change)(x)
        G = jnp.einsum("jkl,j->kl", self.gram, 1 / noise**2)
        gradient = (self.slope.T @ (1 / noise**2) + G @ d) @ T
        return NormalEquations(jnp.sum(self._squares(d) / noise**2) / 2, gradient, T.T @ G @ T)

    def informations(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, "nv p p"]:
        T = jax.jacfwd(self.parameters.affine_change)(x)
        return jnp.einsum("kp,jkl,lq->jpq", T, self.gram / noise[:, None, None] ** 2, T)

    def residual_deviations(self, x: Float[Array, " p"]) -> Float[Array, " nv"]:
        mean = self._squares(self.parameters.affine_change(x)) / jnp.where(self.weight > 0, self.weight, 1)
        # the derivative of a root is infinite at zero
        return jnp.where(mean > 0, jnp.sqrt(jnp.where(mean > 0, mean, 1)), 0)

    def rounding(self, noise: Float[Array, " nv"]) -> Float[Array, ""]:
        # the sum of squares at the optimum is a difference of terms of the size of that at the prior
        return 4 * jnp.finfo(noise.dtype).eps * jnp.sum(self.constant / noise**2)

    def _squares(self, d: Float[Array, " k"]) -> Float[Array, " nv"]:
        """The weighted sum of squares of each signal, for parameters changed by d."""
        # rounding must not make the sum negative
        return jnp.maximum(self.constant + 2 * self.slope @ d + jnp.einsum("k,jkl,l->j", d, self.gram, d), 0)


def torque_objective(parameters: Parameters, samples: TorqueSamples, loss: Loss) -> TorqueObjective:
    """The objective of samples: compressed if the signals are affine in the unknowns and the loss is quadratic."""
    tiles = samples.tiles(TILE)
    indices = parameters.affine_indices
    if indices is None or not isinstance(loss, SquaredLoss):
        return StreamedObjective(parameters, tiles, loss)

    def add(total: tuple[Array, ...], tile: TorqueSamples) -> tuple[tuple[Array, ...], None]:
        Y, predicted = signal_sensitivities(parameters.plant, indices, tile.q, tile.v, tile.a, tile.wrenches)
        w, r = tile.weight, predicted - tile.signals
        part = (
            jnp.einsum("tjk,tjl->jkl", w[..., None] * Y, Y), jnp.einsum("tj,tjk->jk", w * r, Y),
            jnp.sum(w * r**2, axis=0), jnp.sum(w, axis=0),
        )  # fmt: skip
        return jax.tree.map(jnp.add, total, part), None

    nv, k = samples.signals.shape[-1], len(indices)
    zero = tuple(jnp.zeros(shape, parameters.dtype) for shape in ((nv, k, k), (nv, k), (nv,), (nv,)))
    gram, slope, constant, weight = control_flow.scan(add, zero, tiles)[0]
    return CompressedObjective(parameters, tiles, loss, gram, slope, constant, weight)


def torque_residuals(parameters: Parameters, x: Float[Array, " p"], samples: TorqueSamples) -> Float[Array, "n nv"]:
    """Predicted minus recorded signals of the plant at x, in the records' units."""
    return parameters.plant_at(x).signals(samples.q, samples.v, samples.a, samples.wrenches) - samples.signals


def torque_residual_jacobian(
    parameters: Parameters, x: Float[Array, " p"], samples: TorqueSamples
) -> tuple[Float[Array, "n nv"], Float[Array, "n nv p"]]:
    """``torque_residuals`` and their derivatives with respect to x."""

    def f(x: Float[Array, " p"]) -> tuple[Float[Array, "n nv"], Float[Array, "n nv"]]:
        r = torque_residuals(parameters, x, samples)
        return r, r

    J, r = jax.jacfwd(f, has_aux=True)(x)
    return r, J


def correlation_times(residuals: Float[Array, "n columns"]) -> Float[Array, " columns"]:
    """``1 + 2 sum_k rho_k``, at least 1: so many correlated residuals carry the information of one sample of white
    noise.

    The sum ends at the first lag beyond five times its value, since later autocorrelations are noise.

    Source: Sokal 1997, Monte Carlo methods in statistical mechanics, sec. 3, for the truncation of the sum.
    """
    n, lags = len(residuals), jnp.arange(len(residuals))[:, None]
    spectrum = jnp.fft.rfft(residuals, 2 * n, axis=0)
    products = jnp.fft.irfft(jnp.abs(spectrum) ** 2, 2 * n, axis=0)[:n]
    rho = products / jnp.where(products[:1] > 0, products[:1], 1)
    sums = 2 * jnp.cumsum(rho, axis=0) - 1
    ended = (lags.astype(sums.dtype) >= WINDOW * sums) | (lags == n - 1)
    last = jnp.argmax(ended, axis=0)
    return jnp.maximum(jnp.take_along_axis(sums, last[None], axis=0)[0], 1)
