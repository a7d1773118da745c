"""Periodic motions as finite Fourier series that start and end at rest."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.multibody.joint import GroupJoint
from lgsim.multibody.model import Model
from lgsim.support.check import is_traced
from lgsim.support.packages import package


class Fourier(eqx.Module):
    """The series ``q_j(t) = c_j0 + sum_k (A_jk sin(k w t) + B_jk cos(k w t)) / k``, k = 1 ... harmonics.

    ``w = 2 pi / period``. The coefficients (nv, size) refer to a basis in which velocity and acceleration are zero at t
    = 0 and at the end of each period, so that a robot starts and ends at rest.

    Attributes:
        period: The period, s.
        harmonics: Number of harmonics.

    Raises:
        ValueError: the period is not positive, or there are fewer than three harmonics.

    Source: Swevers, Ganseman, Tukel, De Schutter and Van Brussel 1997, Optimal robot excitation and identification,
    IEEE Transactions on Robotics and Automation 13(5), eq. (12).
    """

    period: Any = 10.0
    harmonics: int = eqx.field(static=True, default=5)

    def __check_init__(self) -> None:
        if not is_traced(self.period) and not self.period > 0:
            raise ValueError(f"period: expected a positive time in s, got {self.period}")
        if self.harmonics < 3:
            raise ValueError(f"harmonics: expected at least 3 for a start at rest, got {self.harmonics}")

    @property
    def size(self) -> int:
        """Number of coefficients of each joint, the first of which is the mean."""
        return 2 * self.harmonics - 1

    def basis(
        self, t: ArrayLike
    ) -> tuple[Float[Array, "*times size"], Float[Array, "*times size"], Float[Array, "*times size"]]:
        """Values, first and second time derivatives of the basis functions at times, s."""
        k, w = np.arange(1, self.harmonics + 1), 2 * np.pi / self.period
        t = jnp.asarray(t)
        K = jnp.asarray(k.reshape((1,) * t.ndim + k.shape), t.dtype)
        sine, cosine = jnp.sin(w * t[..., None] * K), jnp.cos(w * t[..., None] * K)
        S, C = (jnp.asarray(x, t.dtype) for x in self._combinations)
        one, none = jnp.ones((*t.shape, 1), t.dtype), jnp.zeros((*t.shape, 1), t.dtype)
        return (
            jnp.concatenate([one, (sine / K) @ S, (cosine / K) @ C], axis=-1),
            jnp.concatenate([none, w * cosine @ S, -w * sine @ C], axis=-1),
            jnp.concatenate([none, -w * w * (K * sine) @ S, -w * w * (K * cosine) @ C], axis=-1),
        )

    def motion(
        self, coefficients: Float[Array, "nv size"], t: ArrayLike
    ) -> tuple[Float[Array, "*times nv"], Float[Array, "*times nv"], Float[Array, "*times nv"]]:
        """(q, v, a) for coefficients at times t, s; q in rad or m."""
        q, v, a = (basis @ coefficients.T for basis in self.basis(t))
        return q, v, a

    @property
    def _combinations(self) -> tuple[Float[np.ndarray, "k m"], Float[np.ndarray, "k m"]]:
        """Orthonormal (A, B) with sum A_k = 0 and sum k B_k = 0: zero velocity and acceleration at t = 0."""
        k = np.arange(1.0, self.harmonics + 1)
        null_space = package("scipy.linalg", "identify").null_space
        return null_space(np.ones((1, len(k)))), null_space(k[None])


def check_joints(model: Model) -> None:
    """Check that each joint has one coordinate for each degree of freedom.

    Raises:
        ValueError: a joint is spherical, planar or free.
    """
    tree = model.topology
    for name, joint, mimic in zip(tree.joint_names, tree.joints, tree.mimics, strict=True):
        if mimic is None and isinstance(joint, GroupJoint):
            raise ValueError(
                f"joint {name!r}: expected joints with one coordinate for each degree of freedom, got"
                f" {type(joint).__name__}; lock it (model.lock) and hold the base fixed during the experiment"
            )
