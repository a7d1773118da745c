"""Problems on T*G and g* with references made without lgsim, and the printed symplectic step read with numpy."""

from functools import cache
from math import factorial

import jax.numpy as jnp
import numpy as np
from scipy.linalg import expm
from scipy.optimize import root

import lgsim
from lgsim import actions
from lgsim.integrators.hamiltonian import BodyMomentumHamiltonian, HamiltonianField, LiePoissonField
from lgsim.systems.heavy_top import HeavyTop
from tests.integrators.problems import BODIES, START_POSE, Problem, extrapolate, flat, hat, twist

T_SO3 = actions.LeftTranslation(lgsim.Cotangent(lgsim.SO3))
T_SE3 = actions.LeftTranslation(lgsim.Cotangent(lgsim.SE3))


def top_energy(attitude, momentum, top):
    """Heavy top, of the attitude and the body momentum."""
    inertia, weight_moment, up, arm = top
    return 0.5 * momentum @ (momentum / inertia) + weight_moment * (up @ (attitude @ arm))


def reduced_energy(mu, top):
    """Heavy top, of mu = (R^T up, body momentum)."""
    inertia, weight_moment, _, arm = top
    return 0.5 * mu[3:] @ (mu[3:] / inertia) + weight_moment * (mu[:3] @ arm)


CANONICAL = HamiltonianField(lgsim.SO3, BodyMomentumHamiltonian(lgsim.SO3, top_energy))
REDUCED = LiePoissonField(reduced_energy)


EXPLICIT = lgsim.systems.heavy_top_cotangent().field
"""The field of ``CANONICAL`` written down, which compiles twice as fast as the one from the energy."""


def top_numbers(name, dtype=float):
    return HeavyTop(*(jnp.asarray(BODIES["tops"][name][key], dtype) for key in HeavyTop._fields))


def top_start(name, dtype=float):
    momentum = top_numbers(name, dtype)[0] * jnp.asarray(BODIES["tops"][name]["angular_velocity_0"], dtype)
    return jnp.eye(3, dtype=dtype), momentum


@cache
def top(name="asymmetric", field=EXPLICIT) -> Problem:
    """A heavy top on T*SO(3), (R, space momentum)."""
    data = BODIES["tops"][name]
    attitude, momentum = np.array(data["attitude"], float), np.array(data["momentum"], float)
    final = flat((attitude, attitude @ momentum))
    return Problem(T_SO3, field, top_start(name), top_numbers(name), 0.0, data["t"], final)


@cache
def reduced_top(name="asymmetric") -> Problem:
    """The same on se(3)*, (R^T up, body momentum)."""
    data = BODIES["tops"][name]
    start = jnp.concatenate([jnp.asarray(data["up"]), top_start(name)[1]])
    final = np.concatenate([np.array(data["up_in_body"], float), np.array(data["momentum"], float)])
    return Problem(actions.Coadjoint(lgsim.SE3), REDUCED, start, top_numbers(name), 0.0, data["t"], final)


def coupled(xp, t, pose, mu):
    """A field on T*SE(3) of time, pose and momentum; from no Hamiltonian: the order does not ask for one."""
    xi = twist(xp, t, pose) + 0.3 * xp.concatenate([mu[3:], mu[:3]])
    n = 0.5 * twist(xp, 1.3 * t, pose)[::-1] - 0.2 * mu * pose[0, 0]
    return xi, n


def coupled_field(t, y, args):
    return jnp.concatenate(coupled(jnp, t, *y))


START_MOMENTUM = np.array([0.3, -0.8, 0.5, 0.2, 0.6, -0.4])


def ad(u):
    """The matrix of [u, .] on se(3), twists (v, w), with numpy."""
    zero = np.zeros((3, 3), u.dtype)
    return np.block([[hat(u[3:]), hat(u[:3])], [zero, hat(u[3:])]])


@cache
def moving_frame() -> Problem:
    """T*SE(3) with a field of time and state."""
    t0, time = 0.3, 1.5

    def derivative(t, y):
        pose, mu = y[:16].reshape(4, 4), y[16:]
        xi, n = coupled(np, t, pose, mu)
        return np.concatenate([(hat(xi) @ pose).ravel(), n - ad(xi).T @ mu])

    start = (START_POSE, START_MOMENTUM)
    final = extrapolate(derivative, flat(start), t0, t0 + time, 30).astype(float)
    return Problem(T_SE3, coupled_field, tuple(map(jnp.asarray, start)), None, t0, time, final)


def printed_step(theta, h, t, pose, mu):
    """Celledoni et al. 2021, (15)-(17) word for word on T*SE(3), for ``coupled``."""

    def exp_ad(u):
        return expm(ad(u))

    def dexp(u):
        return sum(np.linalg.matrix_power(ad(u), k) / factorial(k + 1) for k in range(25))

    def mean(xi, n):
        carried = exp_ad(theta * xi).T @ n
        return dexp(-xi).T @ (mu + carried) - theta * dexp(-theta * xi).T @ carried

    def residual(u):
        xi, n = np.split(u, 2)
        return u - h * np.concatenate(coupled(np, t + theta * h, expm(hat(theta * xi)) @ pose, mean(xi, n)))

    xi, n = np.split(root(residual, np.zeros(12), tol=1e-15).x, 2)
    return expm(hat(xi)) @ pose, exp_ad((theta - 1) * xi).T @ n + exp_ad(-xi).T @ mu
