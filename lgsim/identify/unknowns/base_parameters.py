"""Base parameters: the combinations of standard parameters on which joint forces depend."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax import Array

from lgsim.identify.estimators.estimator import Estimate
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant
from lgsim.multibody.model import Model

STATES, TOLERANCE, ZERO = 400, 1e-9, 1e-8


class BaseParameters(NamedTuple):
    """``beta = n[independent] + combination @ n[dependent]``: all that joint forces show of numbers n of a plant.

    Attributes:
        places: Where the numbers stand in ``Plant.numbers``, rising (p,).
        independent: Which of these numbers stay (r,).
        dependent: The others (p - r,).
        combination: (r, p - r).
        names: Each base parameter as a sum of numbers' names.
    """

    places: tuple[int, ...]
    independent: tuple[int, ...]
    dependent: tuple[int, ...]
    combination: np.ndarray
    names: list[str]

    def of(self, plant: Plant) -> Array:
        """The base parameters of a plant (r,)."""
        return jnp.asarray(self.matrix, plant.model.dtype) @ plant.numbers[np.array(self.places)]

    def covariance(self, parameters: Parameters, estimate: Estimate) -> Array:
        """The covariance (r, r) of the base parameters of an estimate in any coordinates."""
        J = jax.jacfwd(lambda x: self.of(parameters.put(x)))(estimate.x)
        return J @ estimate.covariance @ J.T

    @property
    def rank(self) -> int:
        """Their number."""
        return len(self.independent)

    @property
    def matrix(self) -> np.ndarray:
        """B (r, p) with ``beta = B x``."""
        B = np.zeros((self.rank, self.rank + len(self.dependent)))
        B[np.arange(self.rank), list(self.independent)] = 1
        B[:, list(self.dependent)] = self.combination
        return B


def base_parameters(parameters: Parameters, seed: int = 0) -> BaseParameters:
    """The base parameters of the numbers that blocks move, from random states: a matter of structure alone.

    By a rank-revealing QR decomposition of the sensitivities at random states.

    Raises:
        ValueError: the signals are not affine in what the blocks move.

    Source: Gautier 1991, Numerical calculation of the base inertial parameters of robots, Journal of Robotic Systems
    8(4).
    """
    places = parameters.affine
    if places is None:
        raise ValueError(
            "blocks: joint forces are not affine in all that they move, so that there are no base parameters; leave out"
            " scales, speeds of friction, placements and the direction of gravity"
        )
    J = sensitivities(parameters.plant, places, random_states(parameters.plant.model, seed))
    factors: Any = scipy.linalg.qr(J, mode="economic", pivoting=True)
    _, R, order = factors
    size = np.abs(np.diagonal(R))
    rank = int(np.sum(size > TOLERANCE * size[0]))
    combination = scipy.linalg.solve_triangular(R[:rank, :rank], R[:rank, rank:])
    combination[np.abs(combination) < ZERO] = 0
    place = np.argsort(order[:rank])
    independent, dependent = order[:rank][place], order[rank:]
    combination = combination[place]
    every = parameters.plant.number_names
    names = [every[place] for place in places]
    sums = [
        names[i] + "".join(f" {k:+.4g} {names[j]}" for k, j in zip(row, dependent, strict=True) if k)
        for i, row in zip(independent, combination, strict=True)
    ]
    return BaseParameters(
        tuple(places.tolist()), tuple(independent.tolist()), tuple(dependent.tolist()), combination, sums
    )


def random_states(model: Model, seed: int = 0) -> TorqueSamples:
    """``STATES`` random states without signals."""
    kq, kv, ka = jax.random.split(jax.random.key(seed), 3)
    q = model.random(kq, (STATES,))
    v, a = (2 * jax.random.normal(k, (STATES, model.nv), model.dtype) for k in (kv, ka))
    return TorqueSamples(q, v, a, jnp.zeros((STATES, model.nv), model.dtype))


def sensitivities(plant: Plant, places: np.ndarray, samples: TorqueSamples) -> np.ndarray:
    """Derivatives of all signals by some of ``Plant.numbers``, (n nv, p)."""
    return np.asarray(_jacobian(plant, jnp.asarray(places), samples)).reshape(-1, len(places))


@jax.jit
def _jacobian(plant: Plant, places: Array, samples: TorqueSamples) -> Array:
    numbers = plant.numbers

    def signals(part: Array) -> Array:
        return plant.with_numbers(numbers.at[places].set(part)).signals(samples.q, samples.v, samples.a)

    return jax.jacfwd(signals)(numbers[places])
