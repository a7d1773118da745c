"""Base parameters: the combinations of dynamic parameters that determine the joint torques."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant, signal_sensitivities
from lgsim.multibody.model import Model
from lgsim.support.packages import package

_RANDOM_STATES = 400
"""Number of random states at which the sensitivities are evaluated."""

_RANK_TOLERANCE = 1e-9  # relative to the largest diagonal entry of R
_ZERO = 1e-8  # coefficients of combinations below this value are rounding


class BaseParameters(NamedTuple):
    """``beta = n[independent] + combination @ n[dependent]``: the part of p dynamic parameters n that joint torques
    determine.

    Attributes:
        indices: Indices of the p parameters in ``Plant.dynamic_parameters``, ascending.
        independent: Positions within ``indices`` of the r independent parameters.
        dependent: Positions within ``indices`` of the dependent parameters.
        combination: Coefficients of the dependent parameters (r, p - r).
        names: Each base parameter as a sum of parameter names.
    """

    indices: tuple[int, ...]
    independent: tuple[int, ...]
    dependent: tuple[int, ...]
    combination: Float[np.ndarray, "r _"]
    names: list[str]

    def values(self, plant: Plant) -> Float[Array, " r"]:
        """The base parameters of a plant."""
        return jnp.asarray(self.matrix, plant.model.dtype) @ plant.dynamic_parameters[np.array(self.indices)]

    def covariance(
        self, parameters: Parameters, x: Float[Array, " size"], covariance: Float[Array, "size size"]
    ) -> Float[Array, "r r"]:
        """The covariance of the base parameters at coordinates x of any blocks, propagated from the covariance of x."""
        J = jax.jacfwd(lambda x: self.values(parameters.plant_at(x)))(x)
        return J @ covariance @ J.T

    def table(
        self, parameters: Parameters, x: Float[Array, " size"], covariance: Float[Array, "size size"]
    ) -> dict[str, tuple[float, float]]:
        """The estimates with their standard deviations, by name; for a fit: ``base.table(fit.parameters,
        fit.estimate.x, fit.estimate.covariance)``.
        """
        values = np.asarray(self.values(parameters.plant_at(x))).tolist()
        variances = np.diagonal(np.asarray(self.covariance(parameters, x, covariance)))
        return dict(zip(self.names, zip(values, np.sqrt(np.maximum(variances, 0)).tolist(), strict=True), strict=True))

    @property
    def rank(self) -> int:
        """Number r of the base parameters."""
        return len(self.independent)

    @property
    def matrix(self) -> Float[np.ndarray, "r p"]:
        """The matrix B with ``beta = B n``."""
        B = np.zeros((self.rank, self.rank + len(self.dependent)))
        B[np.arange(self.rank), list(self.independent)] = 1
        B[:, list(self.dependent)] = self.combination
        return B


def base_parameters(parameters: Parameters, seed: int = 0) -> BaseParameters:
    """Compute the base parameters of the blocks' unknowns by QR with column pivoting of sensitivities at random states.

    They depend only on the structure of the model.

    Args:
        parameters: The unknowns, in any coordinates.

    Raises:
        ValueError: the signals are not affine in the unknowns of the blocks.

    Source: Gautier 1991, Numerical calculation of the base inertial parameters of robots, Journal of Robotic Systems
    8(4).
    """
    indices = parameters.affine_indices
    if indices is None:
        raise ValueError(
            "blocks: the joint torques are not affine in all unknowns, so that base parameters do not exist; leave"
            " out scales, Stribeck speeds, placements and the direction of gravity"
        )
    J = sensitivities(parameters.plant, indices, *random_states(parameters.plant.model, seed))
    linalg = package("scipy.linalg", "identify")
    factors: Any = linalg.qr(J, mode="economic", pivoting=True)
    _, R, order = factors
    size = np.abs(np.diagonal(R))
    rank = int(np.sum(size > _RANK_TOLERANCE * size[0]))
    combination = linalg.solve_triangular(R[:rank, :rank], R[:rank, rank:])
    combination[np.abs(combination) < _ZERO] = 0
    place = np.argsort(order[:rank])
    independent, dependent = order[:rank][place], order[rank:]
    combination = combination[place]
    every = parameters.plant.dynamic_parameter_names
    names = [every[index] for index in indices]
    sums = [
        names[i] + "".join(f" {k:+.4g} {names[j]}" for k, j in zip(row, dependent, strict=True) if k)
        for i, row in zip(independent, combination, strict=True)
    ]
    return BaseParameters(
        tuple(indices.tolist()), tuple(independent.tolist()), tuple(dependent.tolist()), combination, sums
    )


@jax.jit
def random_states(
    model: Model, seed: int | Int[Array, ""] = 0
) -> tuple[Float[Array, "n nq"], Float[Array, "n nv"], Float[Array, "n nv"]]:
    """``_RANDOM_STATES`` random states (q, v, a); velocities and accelerations are normal with standard deviation 2."""
    kq, kv, ka = jax.random.split(jax.random.key(seed), 3)
    q = model.random(kq, (_RANDOM_STATES,))
    v, a = (2 * jax.random.normal(k, (_RANDOM_STATES, model.nv), model.dtype) for k in (kv, ka))
    return q, v, a


def sensitivities(
    plant: Plant,
    indices: Int[np.ndarray, " p"],
    q: Float[Array, "n nq"],
    v: Float[Array, "n nv"],
    a: Float[Array, "n nv"],
) -> Float[np.ndarray, "rows p"]:
    """Derivatives of all signals of n states with respect to the dynamic parameters at some indices, rows = n nv."""
    return np.asarray(_jacobian(plant, jnp.asarray(indices), q, v, a)).reshape(-1, len(indices))


_jacobian = jax.jit(lambda *args: signal_sensitivities(*args)[0])
