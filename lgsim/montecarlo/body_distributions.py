"""Distributions of bodies: masses, inertias, and poses of joints and frames.

Inertias vary in the log-Cholesky chart about a nominal body. A body's pseudo-inertia is ``J = U U^T`` with U upper
triangular; upper triangular matrices are a group, so that ``U E`` is the factor of another body for each upper
triangular E. With ``E = e^alpha [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]]`` all ten
coordinates are dimensionless, and all their values are physically consistent: the chart of
``lgsim.multibody.inertia.from_log_cholesky``, translated by U.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.lie import se3
from lgsim.montecarlo.distributions import (
    Distribution,
    LogNormal,
    Normal,
    Numbers,
    Uniform,
    broadcast,
    float_dtype_of,
    require,
)
from lgsim.multibody import inertia
from lgsim.multibody.inertia import from_pseudo_inertia, pseudo_inertia


def pseudo_inertia_factor(parameters: Float[np.ndarray, "*batch 10"]) -> Float[np.ndarray, "*batch 4 4"]:
    """The upper triangular U with the pseudo-inertia ``J = U U^T``, in NumPy; also for bodies without extent or mass.

    Columns of such bodies are zero: a direction without extent stays without extent under ``perturb``.

    Args:
        parameters: The ten inertial parameters of each body, in the order of ``lgsim.multibody.inertia.PARAMETERS``.
    """
    pseudo = np.asarray(pseudo_inertia(jnp.asarray(parameters)))
    J = np.array(pseudo, float)
    U = np.zeros_like(J)
    rounding = 64 * np.finfo(pseudo.dtype).eps * np.abs(J).max(axis=(-2, -1))
    for k in reversed(range(4)):
        solid = J[..., k, k] > rounding
        column = J[..., : k + 1, k] / np.sqrt(np.where(solid, J[..., k, k], 1))[..., None]
        U[..., : k + 1, k] = np.where(solid[..., None], column, 0)
        J = J - U[..., :, None, k] * U[..., None, :, k]
    return U


def perturb(factors: Float[Array, "*batch 4 4"], changes: Float[Array, "*batch 10"]) -> Float[Array, "*batch 10"]:
    """The ten inertial parameters of the bodies ``U0 E`` with ``U0 = pseudo_inertia_factor(parameters)``.

    Zero is the nominal body. ``e^(2 alpha)`` is the ratio of the masses, ``e^d`` are ratios of lengths, s are shears of
    the body, and t shifts its center of mass as a fraction of its radii of gyration.

    Args:
        factors: The factor U0 of each body.
        changes: (alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3), as ``lgsim.multibody.inertia.COORDINATES``.

    Source: Rucker, Wensing, Smooth parameterization of rigid-body inertia, IEEE Robotics and Automation Letters 7(2),
    2022, eq. (12).
    """
    E = _factor_of_changes(changes)
    product = [
        [sum((factors[..., i, k] * E[..., k, j] for k in range(i, j + 1)), jnp.zeros_like(E[..., 0, 0]))
         for j in range(4)] for i in range(4)
    ]  # fmt: skip
    return _parameters_of(jnp.stack([jnp.stack(row, axis=-1) for row in product], axis=-2))


def _factor_of_changes(changes: Float[Array, "*batch 10"]) -> Float[Array, "*batch 4 4"]:
    """The matrix E of the module's docstring."""
    alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = (changes[..., i] for i in range(10))
    zero, one = jnp.zeros_like(alpha), jnp.ones_like(alpha)
    rows = ([jnp.exp(d1), s12, s13, t1], [zero, jnp.exp(d2), s23, t2], [zero, zero, jnp.exp(d3), t3],
            [zero, zero, zero, one])  # fmt: skip
    return jnp.exp(alpha)[..., None, None] * jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)


def _parameters_of(U: Float[Array, "*batch 4 4"]) -> Float[Array, "*batch 10"]:
    """The parameters of ``U U^T``, by explicit sums, independent of the precision of matrix products."""
    return from_pseudo_inertia(jnp.sum(U[..., :, None, :] * U[..., None, :, :], axis=-1))


class InertiaDispersion(Distribution):
    """Physically consistent random inertial parameters.

    They are normal in the log-Cholesky chart about a nominal body.

    ``J = U0 E E^T U0^T`` with the nominal pseudo-inertia ``U0 U0^T``, see ``perturb``. The ten coordinates of a body
    are dimensionless. A body without mass or without extent keeps that property.

    Attributes:
        factors: The factor U0 of each body, (n, 4, 4).
        std: Standard deviations (n, 10) of (log mass, log of three lengths, three shears, three shifts of the center of
            mass in radii of gyration).
    """

    factors: Float[Array, "n 4 4"]
    std: Float[Array, "n 10"]

    def __init__(self, parameters: Numbers, std: Numbers) -> None:
        given = _physical_parameters(parameters)
        wide = np.asarray(std, float)
        require("std", bool(np.all(np.isfinite(wide) & (wide >= 0))), "finite nonnegative numbers", std)
        dtype = float_dtype_of(parameters)
        self.factors = jnp.asarray(pseudo_inertia_factor(given), dtype)
        if wide.ndim == 1 and len(wide) == len(given) != 10:
            wide = np.broadcast_to(wide[:, None], (len(given), 10))
        self.std = broadcast("std", wide, (len(given), 10), dtype)

    @property
    def dim(self) -> int:
        return self.std.size

    @property
    def dtype(self) -> jnp.dtype:
        return self.factors.dtype

    @property
    def is_physical(self) -> bool:
        return True

    def __call__(self, z: Float[Array, " dim"]) -> Float[Array, "n 10"]:
        """The inertial parameters."""
        changes = self.std * z.reshape(self.std.shape)
        # twice the chart's first coordinate is the logarithm of the mass
        return perturb(self.factors, jnp.concatenate([0.5 * changes[:, :1], changes[:, 1:]], axis=1))


class MassDispersion(Distribution):
    """Inertial parameters with random masses; the inertia per kilogram of each body is constant.

    ``m p_i / m_i`` with the nominal parameters p_i of mass m_i. A body without mass stays massless.

    Attributes:
        masses: The distribution of the masses (n,), kg: ``Uniform`` or ``LogNormal``, or another one of positive
            numbers.
        specific_inertias: The inertial parameters of 1 kg of each body, (n, 10).
    """

    masses: Distribution
    specific_inertias: Float[Array, "n 10"]

    def __init__(self, parameters: Numbers, masses: Distribution) -> None:
        given = _physical_parameters(parameters)
        kind = jax.eval_shape(masses, jax.ShapeDtypeStruct((masses.dim,), masses.dtype))
        if kind.shape != given.shape[:1]:
            raise ValueError(f"masses: expected shape {given.shape[:1]}, one for each body, got {kind.shape}")
        solid = given[:, 0] > 0
        if isinstance(masses, Normal) and np.any(np.asarray(masses.root)):
            raise ValueError("masses: a normal distribution has negative values; use LogNormal or Uniform")
        if isinstance(masses, Uniform):
            least = masses.low
        else:
            least = masses.median if isinstance(masses, LogNormal) else masses(jnp.zeros(masses.dim))
        if np.any(np.asarray(least)[solid] <= 0):
            raise ValueError(f"masses: expected positive numbers, got {np.asarray(least)[solid].min():g} kg")
        self.masses = masses
        unit = np.where(solid[:, None], given / np.where(solid, given[:, 0], 1)[:, None], 0)
        self.specific_inertias = jnp.asarray(unit)

    @property
    def dim(self) -> int:
        return self.masses.dim

    @property
    def dtype(self) -> jnp.dtype:
        return self.masses.dtype

    @property
    def is_physical(self) -> bool:
        return True

    def __call__(self, z: Float[Array, " dim"]) -> Float[Array, "n 10"]:
        """The inertial parameters."""
        return self.masses(z)[:, None] * self.specific_inertias


class PoseDispersion(Distribution):
    """Random poses about nominal ones: ``T_i exp(std_i z_i)`` with body tangents (v, w), m and rad.

    For ``model.placements`` and ``model.frames``: the uncertainty of joint and tool placements.

    Attributes:
        mean: The nominal poses, (n, 4, 4).
        std: Standard deviations of the tangents, (n, 6).
    """

    mean: Float[Array, "n 4 4"]
    std: Float[Array, "n 6"]

    def __init__(self, mean: Numbers, std: Numbers) -> None:
        self.mean = jnp.asarray(mean)
        if self.mean.ndim != 3 or self.mean.shape[1:] != (4, 4):
            raise ValueError(f"mean: expected shape (poses, 4, 4), got {self.mean.shape}")
        wide, shape = np.asarray(std, float), (len(self.mean), 6)
        require("std", bool(np.all(np.isfinite(wide) & (wide >= 0))), "finite nonnegative numbers", std)
        require("std", wide.shape in ((), (6,), shape), f"a number or shape (6,) or {shape}", wide.shape)
        self.std = jnp.asarray(np.broadcast_to(wide, shape), self.mean.dtype)

    @property
    def dim(self) -> int:
        return self.std.size

    @property
    def dtype(self) -> jnp.dtype:
        return self.mean.dtype

    @property
    def is_physical(self) -> bool:
        return True

    def __call__(self, z: Float[Array, " dim"]) -> Float[Array, "n 4 4"]:
        """The poses."""
        return self.mean @ se3.exp(self.std * z.reshape(self.std.shape))


def _physical_parameters(parameters: Numbers) -> Float[np.ndarray, "n 10"]:
    """Inertial parameters as a NumPy array.

    Raises:
        ValueError: the shape is not (n, 10), or a body is not physically consistent.
    """
    given = np.asarray(parameters)
    require("parameters", given.ndim == 2 and given.shape[1] == 10, "shape (bodies, 10)", given.shape)
    for body, row in enumerate(given):
        if (wrong := inertia.defect(row)) is not None:
            raise ValueError(f"parameters: body {body} {wrong}")
    return given
