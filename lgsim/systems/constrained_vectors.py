"""A constrained mechanical system in vector coordinates: the double spherical pendulum by the positions of its masses.

Source: Wendlandt 1997, Control and simulation of multibody systems, chapter 2; Wendlandt and Marsden 1997.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.integrators.discrete.mechanics import DiscreteMechanics
from lgsim.integrators.method import Number
from lgsim.lie.action import LeftTranslation
from lgsim.lie.group import Euclidean
from lgsim.lie.product import Cotangent
from lgsim.systems import validation
from lgsim.systems.initial_value_problem import InitialValueProblem
from lgsim.systems.spherical_pendulum import PendulumParameters
from lgsim.systems.validation import Dtype, Numbers

State = tuple[Float[Array, " n"], Float[Array, " n"]]
"""Concatenated positions of all masses, and their momenta."""


def _pendulum_lagrangian(x: Float[Array, " n"], v: Float[Array, " n"], chain: PendulumParameters) -> Float[Array, ""]:
    speeds, places = v.reshape(-1, 3), x.reshape(-1, 3)
    return jnp.sum(chain.masses * (0.5 * jnp.sum(speeds * speeds, axis=-1) - chain.gravity * places[:, 2]))


def _rods(x: Float[Array, " n"], chain: PendulumParameters) -> Float[Array, " rods"]:
    places = x.reshape(-1, 3)
    rods = places - jnp.concatenate([jnp.zeros_like(places[:1]), places[:-1]])
    return (jnp.sum(rods * rods, axis=-1) - chain.lengths**2) / 2


def turns_about_vertical(x: Float[Array, " n"], chain: PendulumParameters | None = None) -> Float[Array, " n"]:
    """The velocities (3 N,) of a rotation of all masses about the vertical, for ``discrete_momentum_map``."""
    places = x.reshape(-1, 3)
    return jnp.stack([-places[:, 1], places[:, 0], jnp.zeros_like(places[:, 0])], axis=-1).ravel()


def _pendulum_energy(y: State, chain: PendulumParameters) -> Float[Array, ""]:
    speeds = (y[1].reshape(-1, 3) / chain.masses[:, None]).ravel()
    return _pendulum_lagrangian(y[0], speeds, chain) - 2 * _pendulum_lagrangian(y[0], 0 * speeds, chain)


def double_spherical_pendulum_constrained(
    dtype: Dtype | None = None,
    *,
    masses: Numbers = (1.0, 1.0),
    lengths: Numbers = (1.0, 1.0),
    gravity: Number = 9.81,
    positions: Numbers | None = None,
    velocities: Numbers | None = None,
) -> InitialValueProblem:
    """Two masses on rods by their positions x1, x2 from the pivot, z up: the double spherical pendulum of the thesis.

        L = sum m_i (|v_i|^2/2 - g z_i),    (|x1|^2 - l1^2)/2 = 0,    (|x2 - x1|^2 - l2^2)/2 = 0.

    The multipliers are the forces in the rods divided by their lengths, N/m, positive in tension.

    Args:
        dtype: Floating dtype of the state and of the parameters; None for JAX's default.
        masses: Masses from the pivot outwards, (2,), kg; any number of them forms a chain.
        lengths: Lengths of the rods, (2,), m.
        gravity: Gravitational acceleration, downwards, m/s^2.
        positions: x(0), (2, 3), m; None for (1, 0, 0) and (1 + sqrt(1/2), 0, -sqrt(1/2)).
        velocities: x'(0), (2, 3), m/s, along the constraints; None for ones in three directions.

    Returns:
        The problem: state (x (6,), p (6,)) of ``Cotangent(Euclidean(6))``, a ``DiscreteMechanics`` as field,
        `PendulumParameters`, and the invariants `energy` (), `vertical_momentum` (), `lengths` (2,) (the constraints).

    Raises:
        ValueError: a shape does not fit, or a mass or length is not positive. ``integrate`` refuses states that violate
            the constraints.

    Source: Wendlandt 1997, chapter 2; its parameters are unknown, these are lgsim's own.
    """
    count = validation.count("masses", masses)
    chain = PendulumParameters(
        masses=validation.positive("masses", masses, dtype, count),
        lengths=validation.positive("lengths", lengths, dtype, count),
        gravity=validation.numbers("gravity", gravity, dtype),
    )
    if count != 2 and (positions is None or velocities is None):
        raise ValueError(f"positions, velocities: expected both for {count} masses; the defaults are of two")
    root = 0.5**0.5
    positions = [[1.0, 0.0, 0.0], [1 + root, 0.0, -root]] if positions is None else positions
    drop = -0.8 + root / 2  # the second mass moves with the first rod's end and orthogonally to its own rod
    velocities = [[0.0, 0.6, -0.8], [root / 2, 0.9, drop]] if velocities is None else velocities
    x = validation.numbers("positions", positions, dtype, count, 3).ravel()
    v = validation.numbers("velocities", velocities, dtype, count, 3).ravel()
    mechanics = DiscreteMechanics(Euclidean(3 * count), _pendulum_lagrangian, constraints=_rods)
    return InitialValueProblem(
        name="double spherical pendulum, positions with constraints",
        action=LeftTranslation(Cotangent(mechanics.group)),
        field=mechanics,
        initial=mechanics.state(x, v, chain),
        args=chain,
        invariants={
            "energy": _pendulum_energy,
            "vertical_momentum": lambda y, chain: turns_about_vertical(y[0]) @ y[1],
            "lengths": lambda y, chain: _rods(y[0], chain),
        },
    )
