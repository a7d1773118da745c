"""Bodies about a given one: the log-Cholesky chart in parts of the body itself.

A body's pseudo-inertia is ``J = U U^T`` with U upper triangular, and so is that of the body ``U E``, E upper triangular
too. With ``E = e^alpha [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]]`` all ten numbers
have no unit, and every choice of them is a body that can exist: the chart of ``lgsim.multibody.inertia_chart`` moved by
U, since upper triangular matrices are a group.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.lie import se3
from lgsim.montecarlo.distributions import Distribution, LogNormal, Normal, Uniform, dtype_of, in_shape, require
from lgsim.multibody import inertia
from lgsim.multibody.inertia import from_pseudo_inertia, pseudo_inertia


def factor(parameters: np.ndarray) -> np.ndarray:
    """The upper triangular U (..., 4, 4) with ``J = U U^T``, in NumPy; also of bodies without extent or mass.

    Of those, columns are zero: what has no extent in a direction keeps none under ``scaled``.
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


def scaled(factors: Float[Array, "*batch 4 4"], changes: Float[Array, "*batch 10"]) -> Float[Array, "*batch 10"]:
    """The ten parameters of the bodies ``U0 E`` with ``U0 = factor(parameters)``.

    Zero changes nothing. ``e^(2 alpha)`` is the ratio of the masses, ``e^d`` are ratios of lengths, s shear the body,
    and t moves its centre of mass, in parts of its radii of gyration.

    Args:
        factors: U0 of each body.
        changes: (alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3), as ``lgsim.multibody.inertia_chart`` orders them.

    Source: Rucker, Wensing, Smooth parameterization of rigid-body inertia, IEEE Robotics and Automation Letters 7(2),
    2022, eq. (12).
    """
    E = _factor(changes)
    product = [
        [sum((factors[..., i, k] * E[..., k, j] for k in range(i, j + 1)), jnp.zeros_like(E[..., 0, 0]))
         for j in range(4)] for i in range(4)
    ]  # fmt: skip
    return _body(jnp.stack([jnp.stack(row, axis=-1) for row in product], axis=-2))


def _factor(coordinates: Array) -> Array:
    alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = (coordinates[..., i] for i in range(10))
    zero, one = jnp.zeros_like(alpha), jnp.ones_like(alpha)
    rows = ([jnp.exp(d1), s12, s13, t1], [zero, jnp.exp(d2), s23, t2], [zero, zero, jnp.exp(d3), t3],
            [zero, zero, zero, one])  # fmt: skip
    return jnp.exp(alpha)[..., None, None] * jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)


def _body(U: Array) -> Array:
    """The parameters of ``U U^T``, by explicit sums: nothing depends on the precision of matrix products."""
    return from_pseudo_inertia(jnp.sum(U[..., :, None, :] * U[..., None, :, :], axis=-1))


class InertiaDispersion(Distribution):
    """Inertial parameters of bodies, each one that can exist: normal numbers in the log-Cholesky chart about a body.

    ``J = U0 E E^T U0^T`` with the given pseudo-inertia ``U0 U0^T``, see ``scaled``. The
    ten numbers of a body have no unit. A body without mass or without extent keeps none.

    Attributes:
        factors: U0 of each body, (n, 4, 4).
        spread: Standard deviations (n, 10) of (log mass, log of three lengths, three shears, three shifts of the centre
            of mass in radii of gyration).
    """

    factors: Array
    spread: Array

    def __init__(self, parameters: Any, spread: Any) -> None:
        given = np.asarray(parameters)
        require("parameters", given.ndim == 2 and given.shape[1] == 10, "shape (bodies, 10)", given.shape)
        for body, row in enumerate(given):
            if (wrong := inertia.defect(row)) is not None:
                raise ValueError(f"parameters: body {body} {wrong}")
        wide = np.asarray(spread, float)
        require("spread", bool(np.all(np.isfinite(wide) & (wide >= 0))), "finite numbers of at least zero", spread)
        dtype = dtype_of(parameters)
        self.factors = jnp.asarray(factor(given), dtype)
        if wide.ndim == 1 and len(wide) == len(given) != 10:
            wide = np.broadcast_to(wide[:, None], (len(given), 10))
        self.spread = in_shape("spread", wide, (len(given), 10), dtype)

    @property
    def dim(self) -> int:
        return self.spread.size

    @property
    def dtype(self) -> jnp.dtype:
        return self.factors.dtype

    def __call__(self, z: Array) -> Array:
        """The parameters (n, 10)."""
        changes = self.spread * z.reshape(self.spread.shape)
        # of the chart's first coordinate twice is the logarithm of the mass
        return scaled(self.factors, jnp.concatenate([0.5 * changes[:, :1], changes[:, 1:]], axis=1))


class MassDispersion(Distribution):
    """Inertial parameters (n, 10) of bodies with the masses of a distribution, each as dense everywhere in proportion.

    ``m p_i / m_i`` with the given parameters p_i of mass m_i. A body without mass keeps none.

    Attributes:
        of: Masses (n,), kg: ``Uniform`` or ``LogNormal``, or any distribution whose numbers are positive.
        densities: Parameters of each body for 1 kg of it, (n, 10).
    """

    of: Distribution
    densities: Array

    def __init__(self, parameters: Any, of: Distribution) -> None:
        given = np.asarray(parameters)
        if given.ndim != 2 or given.shape[1] != 10:
            raise ValueError(f"parameters: expected shape (bodies, 10), got {given.shape}")
        for body, row in enumerate(given):
            if (wrong := inertia.defect(row)) is not None:
                raise ValueError(f"parameters: body {body} {wrong}")
        kind = jax.eval_shape(of, jax.ShapeDtypeStruct((of.dim,), of.dtype))
        if kind.shape != given.shape[:1]:
            raise ValueError(f"of: expected masses of shape {given.shape[:1]}, one for each body, got {kind.shape}")
        solid = given[:, 0] > 0
        if isinstance(of, Normal) and np.any(np.asarray(of.root)):
            raise ValueError("of: a normal distribution has negative masses; take LogNormal or Uniform")
        least = of.low if isinstance(of, Uniform) else of.median if isinstance(of, LogNormal) else of(jnp.zeros(of.dim))
        if np.any(np.asarray(least)[solid] <= 0):
            raise ValueError(f"of: expected masses above zero, got {np.asarray(least)[solid].min():g} kg")
        self.of = of
        self.densities = jnp.asarray(np.where(solid[:, None], given / np.where(solid, given[:, 0], 1)[:, None], 0))

    @property
    def dim(self) -> int:
        return self.of.dim

    @property
    def dtype(self) -> jnp.dtype:
        return self.of.dtype

    def __call__(self, z: Array) -> Array:
        """The parameters."""
        return self.of(z)[:, None] * self.densities


class PoseDispersion(Distribution):
    """Poses (n, 4, 4) about given ones: ``T_i exp(R_i z_i)``, body tangents (v, w), m and rad.

    For ``model.placements`` and ``model.frames``: how well one knows where joints and tools are.

    Attributes:
        mean: The poses.
        std: Standard deviations of the tangents, (n, 6).
    """

    mean: Array
    std: Array

    def __init__(self, mean: Any, std: Any) -> None:
        self.mean = jnp.asarray(mean)
        if self.mean.ndim != 3 or self.mean.shape[1:] != (4, 4):
            raise ValueError(f"mean: expected shape (poses, 4, 4), got {self.mean.shape}")
        wide, shape = np.asarray(std, float), (len(self.mean), 6)
        if not np.all(np.isfinite(wide) & (wide >= 0)):
            raise ValueError(f"std: expected finite numbers of at least zero, got {std}")
        if wide.shape not in ((), (6,), shape):
            raise ValueError(f"std: expected a number or shape (6,) or {shape}, got {wide.shape}")
        self.std = jnp.asarray(np.broadcast_to(wide, shape), self.mean.dtype)

    @property
    def dim(self) -> int:
        return self.std.size

    @property
    def dtype(self) -> jnp.dtype:
        return self.mean.dtype

    def __call__(self, z: Array) -> Array:
        """The poses."""
        return self.mean @ se3.exp(self.std * z.reshape(self.std.shape))
