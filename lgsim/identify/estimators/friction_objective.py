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
    standard_deviations,
    torque_objective,
)
from lgsim.identify.estimators.uncertainty import scaled_spectrum
from lgsim.identify.unknowns.joint_blocks import SPEEDS
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant, asymmetric_friction, signal_sensitivities, with_drives
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
        profile: The profile of the speeds; None if no unknown is a speed.
    """

    base: Float[Array, "nv n"]
    slopes: Float[Array, "nv n k"]
    speed: Float[Array, "nv n"]
    weights: Float[Array, "nv n"]
    gram: Float[Array, "nv k k"]
    profile: SpeedProfile | None = None

    def cost(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, ""]:
        return jnp.sum(self.weights * self.loss.cost((self._residuals(x) / noise[:, None]) ** 2)) / 2

    def normal_equations(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> NormalEquations:
        r, w = self._weighted(x, noise)
        (T, S), E = jax.jacfwd(self._unknowns)(x), self._by_own(x)
        wr = w * r / noise[:, None] ** 2
        gradient = jnp.einsum("jnk,jn->k", self.slopes, wr) @ T + jnp.einsum("jnc,jn,jcp->p", E, wr, S)
        return NormalEquations(self.cost(x, noise), gradient, jnp.sum(self._hessians(x, noise), axis=0))

    def informations(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, "nv p p"]:
        """The Gauss-Newton Hessian of the contribution of each signal; zero for speeds with an open interval.

        There the Hessian at the minimum misleads: below the lowest speed of the record the cost is constant.
        """
        seen = self._seen(x, noise)
        return self._hessians(x, noise) * jnp.outer(seen, seen)[None]

    def scores(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, "n p"]:
        return super().scores(x, noise) * self._seen(x, noise)[None]

    def correlation_times(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, " nv"]:
        r, w = self._weighted(x, noise)
        return correlation_times((jnp.sqrt(w) * r).T)

    def residual_deviations(
        self,
        x: Float[Array, " p"],
        noise: Float[Array, " nv"],
        unknowns: Float[Array, ""],
        least: Float[Array, " nv"],
    ) -> Float[Array, " nv"]:
        r, w = self._weighted(x, noise)
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
        # before friction is known the speeds have no effect, and the prior would move them
        return None if self.profile is None else jnp.any(self.profile.own, axis=(0, 1))

    def speed_profile(self) -> SpeedProfile:
        """The profile of the speeds; for each of them the signals are affine in the other parameters."""
        zero, speeds = jnp.zeros(self.parameters.size, self.parameters.dtype), 1 + self._plant.model.topology.stribeck
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
        slope = jnp.einsum("jnk,jn->jk", self.slopes, w * self.base)
        squares = jnp.sum(w * self.base**2, axis=1)
        rest = squares - jnp.einsum("jk,jkl,jl->j", slope, inverse, slope)
        smallest = jnp.where(squares > 0, jnp.finfo(w.dtype).eps * squares, 1)
        # unit damping and friction, and those of the others that exist
        plant, every = self._plant, np.eye(len(FRICTION) + 2, dtype=w.dtype)
        names = ["damping", "friction", *["stribeck"] * plant.model.topology.stribeck]
        units = every[[FRICTION.index(name) for name in names] + [-2, -1] * (not plant.is_symmetric)]
        places = every[[FRICTION.index(name) for name in SPEEDS]]

        def one(s: Float[Array, "nv 2"]) -> Float[Array, " nv"]:
            C = jnp.moveaxis(jax.vmap(self._friction)(units[:, None] + (s @ places)[None]), 0, -1)
            # Schur complement of the other parameters
            A = jnp.einsum("jnk,jn,jnm->jkm", self.slopes, w, C)
            B = jnp.einsum("jnm,jn,jnl->jml", C, w, C) - jnp.einsum("jkm,jkl,jln->jmn", A, inverse, A)
            c = jnp.einsum("jnm,jn->jm", C, w * self.base) - jnp.einsum("jkm,jkl,jl->jm", A, inverse, slope)
            explained = jnp.einsum("jm,jml,jl->j", c, jax.vmap(lambda B: scaled_spectrum(B)[0])(B), c)
            return jnp.log(jnp.maximum(rest - explained, 0) + smallest) * count / 2

        return jax.lax.map(one, speeds)

    @property
    def _plant(self) -> Plant:
        """The structure of the plant at any coordinates."""
        return jax.eval_shape(self.parameters.plant_at, jnp.zeros(self.parameters.size, self.parameters.dtype))

    def _unknowns(self, x: Float[Array, " p"]) -> tuple[Float[Array, " k"], Float[Array, "nv c"]]:
        """The change of the parameters at ``Parameters.frictionless_indices``, and ``Plant.friction_parameters``."""
        plant, indices = self.parameters.plant_at(x), self.parameters.frictionless_indices
        change = plant.dynamic_parameters[indices] - self.parameters.plant.dynamic_parameters[indices]
        return change, plant.friction_parameters

    def _friction(self, own: Float[Array, "nv c"]) -> Float[Array, "nv n"]:
        """The part of friction in the signals, for parameters of each joint."""
        drive, plant = dict(zip(FRICTION, own.T[..., None], strict=False)), self._plant
        force = friction_forces(drive, self.speed, plant.model.topology.stribeck)
        if not plant.is_symmetric:
            direction = jnp.tanh(self.speed / drive["friction_speed"])
            force = force + asymmetric_friction(*own.T[len(FRICTION) :, :, None], direction, self.speed)
        return force / self.parameters.plant.scale[:, None]

    def _by_own(self, x: Float[Array, " p"]) -> Float[Array, "nv n c"]:
        """The derivatives of ``_friction`` with respect to each joint's own parameters."""
        own = self._unknowns(x)[1]
        units = jnp.broadcast_to(jnp.eye(own.shape[1], dtype=own.dtype)[:, None], (own.shape[1], *own.shape))
        return jnp.moveaxis(jax.vmap(lambda unit: jax.jvp(self._friction, (own,), (unit,))[1])(units), 0, -1)

    def _residuals(self, x: Float[Array, " p"]) -> Float[Array, "nv n"]:
        change, own = self._unknowns(x)
        return self.base + self.slopes @ change + self._friction(own)

    def _weighted(
        self, x: Float[Array, " p"], noise: Float[Array, " nv"]
    ) -> tuple[Float[Array, "nv n"], Float[Array, "nv n"]]:
        """The residuals, and their weights including those of the loss."""
        r = self._residuals(x)
        return r, self.weights * self.loss.weight((r / noise[:, None]) ** 2)

    def _seen(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, " p"]:
        """0 for the coordinates whose confidence interval is open, else 1."""
        if self.profile is None:
            return jnp.ones_like(x)
        return self.profile.closed(self.correlation_times(x, noise)).astype(x.dtype)

    def _hessians(self, x: Float[Array, " p"], noise: Float[Array, " nv"]) -> Float[Array, "nv p p"]:
        """The Gauss-Newton Hessian of the contribution of each signal."""
        w = self._weighted(x, noise)[1]
        (T, S), E = jax.jacfwd(self._unknowns)(x), self._by_own(x)
        quadratic = isinstance(self.loss, SquaredLoss)
        gram = self.gram if quadratic else jnp.einsum("jnk,jnl->jkl", w[..., None] * self.slopes, self.slopes)
        cross = jnp.einsum("kp,jkc,jcq->jpq", T, jnp.einsum("jnk,jn,jnc->jkc", self.slopes, w, E), S)
        own = jnp.einsum("jcp,jcd,jdq->jpq", S, jnp.einsum("jnc,jn,jnd->jcd", E, w, E), S)
        each = jnp.einsum("kp,jkl,lq->jpq", T, gram, T) + cross + cross.mT + own
        return each / noise[:, None, None] ** 2


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
    found = FrictionObjective(parameters, tiles, loss, base, Y, speed, w, gram)
    if not any(block.has_speeds for block in parameters.blocks):
        return found
    return eqx.tree_at(lambda o: o.profile, found, found.speed_profile(), is_leaf=lambda x: x is None)
