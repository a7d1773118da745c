"""The least-squares objective of joint torques whose only nonlinear unknowns are speeds of dry friction."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Bool, Float

from lgsim._compile.linalg.levenberg_marquardt import NormalEquations
from lgsim.dynamics.passive_forces import DRY, dry_friction
from lgsim.identify.estimators.loss import Loss, SquaredLoss
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.torque_objective import (
    TILE,
    TorqueObjective,
    correlation_times,
    standard_deviations,
    torque_objective,
)
from lgsim.identify.estimators.uncertainty import scaled_spectrum
from lgsim.identify.unknowns.joint_blocks import SPEEDS
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import dry_indices, signal_sensitivities
from lgsim.multibody.model import DRIVES

STORED = 2**26
"""The largest number of stored sensitivities, 0.5 GB in float64; larger records are read again in each iteration."""
RATIOS = 33, 17
"""Number of speeds of a profile: of the changeover only, and of each of two speeds."""
BEYOND = 10.0
"""Ratio of the highest speed of a profile to that of the record: dry friction is a damper to 0.3 % there."""
RISE = 1.959963984540054**2 / 2
"""Increase of a negative log-likelihood at the ends of a 95 % confidence interval."""


class Linearization(NamedTuple):
    """The unknowns at coordinates x, and their derivatives.

    Attributes:
        change: Dynamic parameters minus their prior values (k,).
        dry: Parameters of dry friction, ``DRY`` (nv, c).
        by_x: The derivatives of both with respect to x, (k, p) and (nv, c, p).
    """

    change: Float[Array, " k"]
    dry: Float[Array, "nv c"]
    by_x: tuple[Float[Array, "k p"], Float[Array, "nv c p"]]


class SpeedProfile(NamedTuple):
    """Negative log-likelihoods of each signal for some speeds, minimized over all parameters in which it is affine.

    Attributes:
        ratios: Logarithms of the ratios of the speeds to the prior, ascending (m,).
        costs: For each speed of ``SPEEDS``, minimized over the other one (speeds, m, nv).
        own: True for the coordinates that change a speed of a joint (speeds, nv, p).
    """

    ratios: Float[Array, " m"]
    costs: Float[Array, "speeds m nv"]
    own: Bool[Array, "speeds nv p"]

    def of_coordinates(self, correlation_times: ArrayLike = 1.0) -> Float[Array, "speeds m p"]:
        """The profile of each coordinate, for noise with some correlation times in samples."""
        return (self.costs / correlation_times) @ self.own.astype(self.costs.dtype)

    def minimum(self, prior: Float[Array, " p"]) -> Float[Array, " p"]:
        """The coordinates with the smallest cost, including that of the prior with some inverse variances."""
        x = jnp.zeros_like(prior)
        for costs, own in zip(self.of_coordinates(), self.own, strict=True):
            best = jnp.argmin(costs + self.ratios[:, None] ** 2 * prior / 2, axis=0)
            x = jnp.where(jnp.any(own, axis=0), self.ratios[best], x)
        return x

    def closed(self, correlation_times: Float[Array, " nv"]) -> Bool[Array, " p"]:
        """False for the coordinates whose 95 % confidence interval is open: the cost does not rise toward an end."""
        costs = self.of_coordinates(correlation_times)
        return jnp.all(jnp.minimum(costs[:, 0], costs[:, -1]) - jnp.min(costs, axis=1) >= RISE * self._any, axis=0)

    @property
    def _any(self) -> Bool[Array, "speeds p"]:
        return jnp.any(self.own, axis=1)


class FrictionObjective(TorqueObjective):
    """The objective of signals that are affine in all unknowns but the speeds of dry friction.

    Dry friction of a joint depends only on the joint's own velocity and parameters d: ``r_j = base_j + slopes_j theta +
    D(v_j; d_j) / scale_j``. The inverse dynamics are evaluated once; an iteration evaluates D and sums its products
    with the stored sensitivities.

    Attributes:
        base: Residuals at the prior without dry friction (nv, n), where the samples are padded to whole tiles.
        slopes: Derivatives with respect to the dynamic parameters at ``Parameters.speed_free_indices`` (nv, n, k).
        speed: Velocities (nv, n).
        weights: Weights of the signals (nv, n).
        gram: The sums of ``w slopes^T slopes`` (nv, k, k).
        profile: The profile of the speeds.
    """

    base: Float[Array, "nv n"]
    slopes: Float[Array, "nv n k"]
    speed: Float[Array, "nv n"]
    weights: Float[Array, "nv n"]
    gram: Float[Array, "nv k k"]
    profile: SpeedProfile | None = None

    def cost(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, ""]:
        squares = (self._residuals(*self._unknowns(x)) / noise[:, None]) ** 2
        return jnp.sum(self.weights * self.loss.cost(squares)) / 2

    def normal_equations(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> NormalEquations:
        at = self._linearized(x)
        r, E = self._residuals(at.change, at.dry), self._by_dry(at.dry)
        (T, S), w = at.by_x, self._weights(r, noise) / noise[:, None] ** 2
        gradient = jnp.einsum("jnk,jn->k", self.slopes, w * r) @ T + jnp.einsum("jnc,jn,jcp->p", E, w * r, S)
        cost = jnp.sum(self.weights * self.loss.cost((r / noise[:, None]) ** 2)) / 2
        return NormalEquations(cost, gradient, jnp.sum(self._hessians(at, r, E, noise), axis=0))

    def informations(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, "nv p p"]:
        """The Gauss-Newton Hessian of the contribution of each signal; zero for speeds with an open interval.

        There the Hessian at the minimum misleads: below the lowest speed of the record the cost is constant.
        """
        at = self._linearized(x)
        each = self._hessians(at, self._residuals(at.change, at.dry), self._by_dry(at.dry), noise)
        return each * self._seen(x, noise)[:, None] * self._seen(x, noise)

    def scores(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, "n p"]:
        return super().scores(x, noise) * self._seen(x, noise)

    def correlation_times(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, " nv"]:
        r = self._residuals(*self._unknowns(x))
        return correlation_times((jnp.sqrt(self._weights(r, noise)) * r).T)

    def residual_deviations(
        self,
        x: Float[Array, " p"],
        noise: Float[Array, " nv"],
        unknowns: Float[Array, ""],
        least: Float[Array, " nv"],
    ) -> Float[Array, " nv"]:
        r = self._residuals(*self._unknowns(x))
        w = self._weights(r, noise)
        return standard_deviations(jnp.sum(w * r**2, axis=1), jnp.sum(w, axis=1), least, unknowns)

    def start(self) -> Float[Array, " p"]:
        """The prior with the speeds of the profile's minimum.

        Far from its speed dry friction carries no information about it, so that a search would stay there.
        """
        zero = jnp.zeros(self.parameters.size, self.parameters.dtype)
        if self.profile is None:
            return zero
        return self.profile.minimum(jnp.sum(jax.jacfwd(self.parameters.prior_residuals)(zero) ** 2, axis=0))

    def held_at_first(self) -> Bool[Array, " p"] | None:
        # without friction the speeds have no effect, and the prior would move them
        return None if self.profile is None else jnp.any(self.profile.own, axis=(0, 1))

    def speed_profile(self) -> SpeedProfile:
        """The profile of the speeds; for each of them the signals are affine in the other parameters.

        Source: Golub and Pereyra 1973, The differentiation of pseudo-inverses and nonlinear least squares problems
        whose variables separate, SIAM J. Numer. Anal. 10(2), for the projection.
        """
        zero, count = jnp.zeros(self.parameters.size, self.parameters.dtype), 1 + self._has_stribeck
        columns = np.array([DRY.index(name) for name in SPEEDS])

        def log_speeds(x: Float[Array, " p"]) -> tuple[Float[Array, "nv 2"], Float[Array, "nv 2"]]:
            speeds = self._unknowns(x)[1][:, columns]
            return jnp.log(speeds), speeds

        by_x, speeds = jax.jacfwd(log_speeds, has_aux=True)(zero)
        own = by_x != 0
        lowest, highest = self.tiles.speed_range()
        ends = jnp.stack([jnp.log(x[:, None] / speeds) for x in (lowest, BEYOND * highest)])
        ends = jnp.where(jnp.any(own, axis=-1) & jnp.all(jnp.isfinite(ends), axis=0), ends, 0)
        ratios = jnp.linspace(jnp.min(ends), jnp.max(ends), RATIOS[count - 1])
        others = ratios if count > 1 else jnp.zeros(1, ratios.dtype)
        pairs = jnp.stack(jnp.meshgrid(ratios, others, indexing="ij"), axis=-1)
        tried = jnp.where(jnp.any(own, axis=-1), pairs.reshape(-1, 1, 2), 0)
        costs = self._unexplained(speeds * jnp.exp(tried)).reshape(*pairs.shape[:2], -1)
        each = jnp.stack([jnp.min(costs, axis=1 - axis) for axis in range(count)])
        return SpeedProfile(ratios, each, jnp.moveaxis(own, 1, 0)[:count])

    def _unexplained(self, speeds: Float[Array, "m nv 2"]) -> Float[Array, "m nv"]:
        """For some speeds the part of each signal that free parameters do not explain: minus a log-likelihood."""
        w, count = self.weights, jnp.sum(self.weights > 0, axis=1)
        inverse = jax.lax.map(lambda G: scaled_spectrum(G)[0], self.gram)
        slope = jnp.einsum("jnk,jn->jk", self.slopes, w * self.base)
        squares = jnp.sum(w * self.base**2, axis=1)
        smallest = jnp.where(squares > 0, jnp.finfo(w.dtype).eps * squares, 1)

        def one(s: Float[Array, "nv 2"]) -> Float[Array, " nv"]:
            # unit friction, and unit Stribeck friction
            units = [{"friction": 1.0, "stribeck": 0.0}, {"friction": 0.0, "stribeck": 1.0}][: 1 + self._has_stribeck]
            given = {name: s[:, i] for i, name in enumerate(SPEEDS)}
            drives = [jnp.stack([jnp.broadcast_to((given | u)[d], s[:, 0].shape) for d in DRY], axis=1) for u in units]
            C = jnp.stack([self._friction(dry) for dry in drives], axis=-1)
            A = jnp.einsum("jnk,jn,jnm->jkm", self.slopes, w, C)
            B = jnp.einsum("jnm,jn,jnl->jml", C, w, C) - jnp.einsum("jkm,jkl,jln->jmn", A, inverse, A)
            c = jnp.einsum("jnm,jn->jm", C, w * self.base) - jnp.einsum("jkm,jkl,jl->jm", A, inverse, slope)
            explained = jnp.einsum("jm,jml,jl->j", c, jnp.linalg.pinv(B, hermitian=True), c)
            return jnp.log(jnp.maximum(squares - offset - explained, 0) + smallest) * count / 2

        offset = jnp.einsum("jk,jkl,jl->j", slope, inverse, slope)
        return jax.lax.map(one, speeds)

    @property
    def _has_stribeck(self) -> bool:
        zero = jnp.zeros(self.parameters.size, self.parameters.dtype)
        return jax.eval_shape(self.parameters.plant_at, zero).model.topology.stribeck

    def _unknowns(self, x: Float[Array, " p"]) -> tuple[Float[Array, " k"], Float[Array, "nv c"]]:
        """The change of the dynamic parameters at ``Parameters.speed_free_indices``, and the parameters ``DRY``."""
        plant, indices = self.parameters.plant_at(x), self.parameters.speed_free_indices
        change = plant.dynamic_parameters[indices] - self.parameters.plant.dynamic_parameters[indices]
        return change, plant.model.drives[:, np.array([DRIVES.index(name) for name in DRY])]

    def _linearized(self, x: Float[Array, " p"]) -> Linearization:
        by_x, found = jax.jacfwd(lambda x: 2 * (self._unknowns(x),), has_aux=True)(x)
        return Linearization(*found, by_x)

    def _friction(self, dry: Float[Array, "nv c"]) -> Float[Array, "nv n"]:
        """The part of dry friction in the signals."""
        drive = {name: dry[:, i, None] for i, name in enumerate(DRY)}
        return dry_friction(drive, self.speed, self._has_stribeck) / self.parameters.plant.scale[:, None]

    def _by_dry(self, dry: Float[Array, "nv c"]) -> Float[Array, "nv n c"]:
        """The derivatives of ``_friction`` with respect to each joint's own parameters."""
        tangents = jnp.broadcast_to(jnp.eye(len(DRY), dtype=dry.dtype)[:, None], (len(DRY), *dry.shape))
        return jnp.moveaxis(jax.vmap(lambda t: jax.jvp(self._friction, (dry,), (t,))[1])(tangents), 0, -1)

    def _residuals(self, change: Float[Array, " k"], dry: Float[Array, "nv c"]) -> Float[Array, "nv n"]:
        return self.base + self.slopes @ change + self._friction(dry)

    def _weights(self, r: Float[Array, "nv n"], noise: Float[Array, " nv"]) -> Float[Array, "nv n"]:
        """The weights, including those of the loss."""
        return self.weights * self.loss.weight((r / noise[:, None]) ** 2)

    def _seen(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, " p"]:
        """0 for the coordinates whose confidence interval is open, else 1."""
        if self.profile is None:
            return jnp.ones_like(x)
        return self.profile.closed(self.correlation_times(x, noise)).astype(x.dtype)

    def _hessians(
        self, at: Linearization, r: Float[Array, "nv n"], E: Float[Array, "nv n c"], noise: Float[Array, " nv"]
    ) -> Float[Array, "nv p p"]:
        """The Gauss-Newton Hessian of the contribution of each signal."""
        (T, S), w = at.by_x, self._weights(r, noise) / noise[:, None] ** 2
        if isinstance(self.loss, SquaredLoss):
            gram = self.gram / noise[:, None, None] ** 2
        else:
            gram = jnp.einsum("jnk,jnl->jkl", w[..., None] * self.slopes, self.slopes)
        cross = jnp.einsum("kp,jkc,jcq->jpq", T, jnp.einsum("jnk,jn,jnc->jkc", self.slopes, w, E), S)
        smooth = jnp.einsum("kp,jkl,lq->jpq", T, gram, T)
        own = jnp.einsum("jcp,jcd,jdq->jpq", S, jnp.einsum("jnc,jn,jnd->jcd", E, w, E), S)
        return smooth + cross + cross.mT + own


def friction_objective(parameters: Parameters, samples: TorqueSamples, loss: Loss) -> TorqueObjective:
    """The objective of samples: a ``FrictionObjective`` if the signals are affine in all unknowns but speeds; else
    ``torque_objective``.
    """
    indices, tiles = parameters.speed_free_indices, samples.tiles(TILE)
    if indices is None or tiles.signals.size * len(indices) > STORED:
        return torque_objective(parameters, samples, loss)
    plant = parameters.plant
    free = plant.with_dynamic_parameters(plant.dynamic_parameters.at[dry_indices(plant.model)].set(0))

    def one(tile: TorqueSamples) -> tuple[Float[Array, "t nv k"], Float[Array, "t nv"]]:
        Y, predicted = signal_sensitivities(free, indices, tile.q, tile.v, tile.a, tile.wrenches)
        return Y, predicted - tile.signals

    Y, base = (jnp.moveaxis(jnp.concatenate(x), 1, 0) for x in jax.lax.map(one, tiles))
    speed, w = (jnp.concatenate(x).T for x in (tiles.v, tiles.weight))
    gram = jnp.einsum("jnk,jnl->jkl", w[..., None] * Y, Y)
    found = FrictionObjective(parameters, tiles, loss, base, Y, speed, w, gram)
    return eqx.tree_at(lambda o: o.profile, found, found.speed_profile(), is_leaf=lambda x: x is None)
