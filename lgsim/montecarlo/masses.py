"""Bodies whose masses are dispersed and whose shapes stay, and placements of joints and frames."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.lie import se3
from lgsim.montecarlo.distributions import Distribution, LogNormal, Normal, Uniform
from lgsim.multibody import inertia


class Masses(Distribution):
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


class Poses(Distribution):
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
