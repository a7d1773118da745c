"""The least-squares objective of joint torques whose only nonlinear unknowns are those of the joints' friction."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

from lgsim._compile.linalg.levenberg_marquardt import NormalEquations
from lgsim.dynamics.passive_forces import FRICTION, friction_forces
from lgsim.identify.estimators.loss import Loss, SquaredLoss
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.torque_objective import (
    TILE,
    TorqueObjective,
    correlation_times,
    torque_objective,
)
from lgsim.identify.estimators.uncertainty import scaled_spectrum
from lgsim.identify.unknowns.joint_blocks import SPEEDS
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import asymmetric_friction, signal_sensitivities, with_drives
from lgsim.multibody.model import DRIVES

STORED = 2**26
"""The largest number of stored sensitivities, 0.5 GB in float64; larger records are read again in each iteration."""
RATIOS = 33, 17
"""Number of speeds of a profile: of the changeover only, and of each of two speeds."""
BEYOND = 10.0
"""Ratio of the highest speed of a profile to that of the record: dry friction is a damper to 0.3 % there."""
RISE = 1.959963984540054**2 / 2
"""Increase of a negative log-likelihood at the ends of a 95 % confidence interval."""


class SpeedProfile(NamedTuple):
    """Negative log-likelihoods of the signals for some speeds, minimized over all parameters in which they are affine.

    Attributes:
        ratios: Logarithms of the ratios of the speeds to the prior, ascending (m,).
        costs: For each of ``SPEEDS``, minimized over the other one (speeds, m, nv).
        own: True for the coordinates that change a speed of a joint (speeds, nv, p).
    """

    ratios: Float[Array, " m"]
    costs: Float[Array, "speeds m nv"]
    own: Bool[Array, "speeds nv p"]

    def minimum(self, prior: Float[Array, " p"]) -> Float[Array, " p"]:
        """The coordinates with the smallest cost, including that of the prior with some inverse variances."""
        x = jnp.zeros_like(prior)
        for costs, own in zip(self.costs, self.own, strict=True):
            every = costs @ own.astype(x.dtype) + (self.ratios**2)[:, None] * prior[None] / 2
            x = jnp.where(jnp.any(own, axis=0), self.ratios[jnp.argmin(every, axis=0)], x)
        return x

    def closed(self, correlation_times: Float[Array, " nv"]) -> Bool[Array, " p"]:
        """False for speeds with an open 95 % confidence interval: the likelihood does not decrease toward an end."""
        costs = (self.costs / correlation_times[None, None]) @ self.own.astype(self.costs.dtype)
        rise = jnp.minimum(costs[:, 0], costs[:, -1]) - jnp.min(costs, axis=1)
        return jnp.all((rise >= RISE) | ~jnp.any(self.own, axis=1), axis=0)


class FrictionObjective(TorqueObjective):
    """The objective of signals that are affine in all unknowns but those of friction.

    Friction of a joint depends only on the joint's own velocity and parameters d: ``r_j = base_j + slopes_j theta +
    D(v_j; d_j) / scale_j``. The inverse dynamics are evaluated once; an iteration evaluates D and sums its products
    with the stored sensitivities.

    Attributes:
        base: Residuals at the prior without friction (nv, n), where the samples are padded to whole tiles.
        slopes: Derivatives with respect to the dynamic parameters at ``Parameters.frictionless_indices`` (nv, n, k).
        speed: Velocities (nv, n).
        weights: Weights of the signals (nv, n).
        gram: The sums of ``w slopes^T slopes`` (nv, k, k).
        stribeck: True if dry friction has a Stribeck part; static.
        symmetric: True if friction does not depend on the direction; static.
        profile: The profile of the speeds; None if no unknown is a speed.
    """

    base: Float[Array, "nv n"]
    slopes: Float[Array, "nv n k"]
    speed: Float[Array, "nv n"]
    weights: Float[Array, "nv n"]
    gram: Float[Array, "nv k k"]
    stribeck: bool = eqx.field(static=True)
    symmetric: bool = eqx.field(static=True)
    profile: SpeedProfile | None = None

    def cost(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, ""]:
        return self._weighted(*self._unknowns(x), noise)[2]

    def normal_equations(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> NormalEquations:
        cost, gradients, hessians = self._by_signal(x, noise)
        return NormalEquations(cost, jnp.sum(gradients, axis=0), jnp.sum(hessians, axis=0))

    def informations(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, "nv p p"]:
        """The Gauss-Newton Hessian of the contribution of each signal; it has no information about speeds with an open
        interval: below the lowest speed of the record the cost is constant, whatever the Hessian at the minimum.
        """
        each = self._by_signal(x, noise)[2]
        if self.profile is None:
            return each
        is_open, H, predicted = self._open_speeds(x, noise, each)
        # what the records say of them beyond the other unknowns, in proportion to the signals' contributions
        excess = jnp.where(jnp.outer(is_open, is_open), H - H @ predicted, 0)
        diagonal = jnp.diagonal(H)
        share = jnp.diagonal(each, axis1=1, axis2=2) / jnp.where(diagonal > 0, diagonal, 1)[None]
        return each - (share[:, :, None] + share[:, None]) / 2 * excess[None]

    def scores(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, "n p"]:
        scores = super().scores(x, noise)
        if self.profile is None:
            return scores
        is_open, _, predicted = self._open_speeds(x, noise, self._by_signal(x, noise)[2])
        return jnp.where(is_open[None], scores @ predicted, scores)

    def _open_speeds(
        self, x: Float[Array, " p"], noise: Float[Array, " nv"], each: Float[Array, "nv p p"]
    ) -> tuple[Bool[Array, " p"], Float[Array, "p p"], Float[Array, "p p"]]:
        """A mask of the speeds with an open interval, the Hessian H, and ``H_oo^-1 H`` for the other unknowns o."""
        assert self.profile is not None
        is_open = ~self.profile.closed(self.correlation_times(x, noise))
        H = jnp.sum(each, axis=0)
        return is_open, H, scaled_spectrum(H, ~is_open)[0] @ H

    def correlation_times(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, " nv"]:
        r, w, _ = self._weighted(*self._unknowns(x), noise)
        return correlation_times((jnp.sqrt(w) * r).T)

    def residual_deviations(self, x: Float[Array, " p"]) -> Float[Array, " nv"]:
        r, _, _ = self._weighted(*self._unknowns(x), jnp.ones(len(self.base), x.dtype))
        return self.loss.deviation(r.T, self.weights.T)

    def start(self) -> Float[Array, " p"]:
        """The prior with the speeds of the profile's minimum.

        Far from its speed dry friction carries no information about it, so that a search would stay there.
        """
        zero = jnp.zeros(self.parameters.size, self.parameters.dtype)
        if self.profile is None:
            return zero
        return self.profile.minimum(jnp.sum(jax.jacfwd(self.parameters.prior_residuals)(zero) ** 2, axis=0))

    def held_at_first(self) -> Bool[Array, " p"] | None:
        # before friction is known the speeds have no effect, and the prior would move them
        return None if self.profile is None else jnp.any(self.profile.own, axis=(0, 1))

    def speed_profile(self) -> SpeedProfile:
        """The profile of the speeds; for each of them the signals are affine in the other parameters."""
        zero, speeds = jnp.zeros(self.parameters.size, self.parameters.dtype), 1 + self.stribeck
        columns = np.array([FRICTION.index(name) for name in SPEEDS])
        prior = self._unknowns(zero)[1][:, columns]
        own = jax.jacfwd(lambda x: self._unknowns(x)[1][:, columns])(zero) != 0
        lowest, highest = self.tiles.speed_range()
        ends = jnp.stack([jnp.log(x[:, None] / prior) for x in (lowest, BEYOND * highest)])
        known = jnp.any(own, axis=-1)
        ends = jnp.where((known & jnp.all(jnp.isfinite(ends), axis=0))[None], ends, 0)
        ratios = jnp.linspace(jnp.min(ends), jnp.max(ends), RATIOS[speeds - 1])
        pairs = jnp.stack(jnp.meshgrid(ratios, ratios if speeds > 1 else ratios[:1], indexing="ij"), axis=-1)
        tried = jnp.where(known[None], pairs.reshape(-1, 1, 2), 0)
        costs = self._unexplained(prior[None] * jnp.exp(tried)).reshape(*pairs.shape[:2], -1)
        each = jnp.stack([jnp.min(costs, axis=1 - axis) for axis in range(speeds)])
        return SpeedProfile(ratios, each, jnp.moveaxis(own, 1, 0)[:speeds])

    def _unexplained(self, speeds: Float[Array, "m nv 2"]) -> Float[Array, "m nv"]:
        """For some speeds the part of each signal that free parameters do not explain: minus a log-likelihood.

        Source: Golub and Pereyra 1973, The differentiation of pseudo-inverses and nonlinear least squares problems
        whose variables separate, SIAM J. Numer. Anal. 10(2), for the projection.
        """
        w, count = self.weights, jnp.sum((self.weights > 0).astype(self.weights.dtype), axis=1)
        inverse = jax.lax.map(lambda G: scaled_spectrum(G)[0], self.gram)
        squares = jnp.sum(w * self.base**2, axis=1)
        smallest = jnp.where(squares > 0, jnp.finfo(w.dtype).eps * squares, 1)
        # unit damping and friction, and those of the others that exist
        every, names = np.eye(len(FRICTION) + 2, dtype=w.dtype), ["damping", "friction", *["stribeck"] * self.stribeck]
        units = every[[FRICTION.index(name) for name in names] + [-2, -1] * (not self.symmetric)]
        places = every[[FRICTION.index(name) for name in SPEEDS]]

        def one(s: Float[Array, "nv 2"]) -> Float[Array, " nv"]:
            C = jax.vmap(self._friction)(jnp.asarray(units)[:, None] + (s @ places)[None])
            M = jnp.stack([*C, self.base], axis=-1)
            # Schur complements: of the other parameters, then of these
            A = jnp.einsum("jnk,jnm->jkm", self.slopes, w[..., None] * M)
            B = jnp.einsum("jnm,jnl->jml", M, w[..., None] * M) - A.mT @ inverse @ A
            b = B[:, :-1, -1:]
            left = B[:, -1, -1] - (b.mT @ jax.vmap(lambda B: scaled_spectrum(B)[0])(B[:, :-1, :-1]) @ b)[:, 0, 0]
            return jnp.log(jnp.maximum(left, 0) + smallest) * count / 2

        return jax.lax.map(one, speeds)

    def _unknowns(self, x: Float[Array, " p"]) -> tuple[Float[Array, " k"], Float[Array, "nv c"]]:
        """The change of the parameters at ``Parameters.frictionless_indices``, and ``Plant.friction_parameters``."""
        plant, indices = self.parameters.plant_at(x), self.parameters.frictionless_indices
        change = plant.dynamic_parameters[indices] - self.parameters.plant.dynamic_parameters[indices]
        return change, plant.friction_parameters

    def _friction(self, own: Float[Array, "nv c"]) -> Float[Array, "nv n"]:
        """The part of friction in the signals, for parameters of each joint."""
        drive: dict[str, Array] = dict(zip(FRICTION, own.T[..., None], strict=False))
        force = friction_forces(drive, self.speed, self.stribeck)
        if not self.symmetric:
            direction = jnp.tanh(self.speed / drive["friction_speed"])
            force = force + asymmetric_friction(own.T[len(FRICTION) :, :, None], direction, self.speed)
        return force / self.parameters.plant.scale[:, None]

    def _weighted(
        self, change: Float[Array, " k"], own: Float[Array, "nv c"], noise: Float[Array, " nv"]
    ) -> tuple[Float[Array, "nv n"], Float[Array, "nv n"], Float[Array, ""]]:
        """The residuals, their weights including those of the loss, and the cost."""
        r = self.base + self.slopes @ change + self._friction(own)
        squares = (r / noise[:, None]) ** 2
        return r, self.weights * self.loss.weight(squares), jnp.sum(self.weights * self.loss.cost(squares)) / 2

    def _by_signal(
        self, x: Float[Array, " p"], noise: Float[Array, " nv"]
    ) -> tuple[Float[Array, ""], Float[Array, "nv p"], Float[Array, "nv p p"]]:
        """The cost, and the gradient and Gauss-Newton Hessian of the contribution of each signal."""
        (T, S), (change, own) = jax.jacfwd(lambda x: 2 * (self._unknowns(x),), has_aux=True)(x)
        units = jnp.broadcast_to(jnp.eye(own.shape[1], dtype=own.dtype)[:, None], (own.shape[1], *own.shape))
        E = jax.vmap(lambda unit: jax.jvp(self._friction, (own,), (unit,))[1])(units)
        r, w, cost = self._weighted(change, own, noise)
        # products of the derivatives with respect to the parameters of all joints, of the own joint, and residuals
        M, w = jnp.stack([*E, r], axis=-1), w[..., None] / (noise**2)[:, None, None]
        quadratic = isinstance(self.loss, SquaredLoss)
        G = self.gram / (noise**2)[:, None, None] if quadratic else self.slopes.mT @ (w * self.slopes)
        A, B = self.slopes.mT @ (w * M), M.mT @ (w * M)
        N = jnp.concatenate([jnp.concatenate([G, A], axis=2), jnp.concatenate([A.mT, B], axis=2)], axis=1)
        K = jnp.concatenate([jnp.broadcast_to(T[None], (len(S), *T.shape)), S], axis=1)
        return cost, (N[:, -1:, :-1] @ K)[:, 0], K.mT @ N[:, :-1, :-1] @ K


def friction_objective(parameters: Parameters, samples: TorqueSamples, loss: Loss) -> TorqueObjective:
    """The objective of samples: a ``FrictionObjective`` if the signals are affine in all unknowns but those of
    friction; else ``torque_objective``.
    """
    indices, tiles = parameters.frictionless_indices, samples.tiles(TILE)
    if indices is None or tiles.signals.size * len(indices) > STORED:
        return torque_objective(parameters, samples, loss)
    plant = parameters.plant
    none = plant.model.drives.at[:, np.array([DRIVES.index(x) for x in ("damping", "friction", "stribeck")])].set(0)
    free = eqx.tree_at(
        lambda p: (p.model, p.friction_asymmetry, p.damping_asymmetry), plant,
        (with_drives(plant.model, none, np.zeros(1)), None, None), is_leaf=lambda x: x is None,
    )  # fmt: skip

    def one(tile: TorqueSamples) -> tuple[Float[Array, "t nv k"], Float[Array, "t nv"]]:
        Y, predicted = signal_sensitivities(free, indices, tile.q, tile.v, tile.a, tile.wrenches)
        return Y, predicted - tile.signals

    Y, base = (jnp.moveaxis(jnp.concatenate(x), 1, 0) for x in jax.lax.map(one, tiles))
    speed, w = (jnp.concatenate(x).T for x in (tiles.v, tiles.weight))
    gram = jnp.einsum("jnk,jnl->jkl", w[..., None] * Y, Y)
    there = jax.eval_shape(parameters.plant_at, jnp.zeros(parameters.size, parameters.dtype))
    flags = there.model.topology.stribeck, there.is_symmetric
    found = FrictionObjective(parameters, tiles, loss, base, Y, speed, w, gram, *flags)
    if not any(block.has_speeds for block in parameters.blocks):
        return found
    return eqx.tree_at(lambda o: o.profile, found, found.speed_profile(), is_leaf=lambda x: x is None)
