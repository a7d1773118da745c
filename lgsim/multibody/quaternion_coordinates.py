"""Unit quaternions (w, x, y, z) by components, for spherical and free joints."""

import jax
import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Vec
from lgsim.lie import so3_components
from lgsim.lie.so3_components import Quat
from lgsim.multibody.joint import Components


def quaternion(q: Components) -> Quat:
    """Convert the four components to (scalar part, vector part)."""
    return q[0], Vec(*q[1:])


def turned(q: Components, w: Vec) -> list[Array]:
    """``q exp(w)``; the exponential has norm one up to round-off, so that no normalization is needed."""
    s, v = so3_components.quaternion_product(quaternion(q), so3_components.quaternion_exp(w))
    return [s, *v]


def difference(q0: Components, q1: Components) -> Vec:
    """The rotation vector of ``conj(q0) q1``."""
    s, v = quaternion(q0)
    return so3_components.quaternion_log(so3_components.quaternion_product((s, -v), quaternion(q1)))


def rate(q: Components, w: Vec) -> list[Array]:
    """``q w/2``: the derivative of the quaternion at body angular velocity w."""
    s, v = so3_components.quaternion_product(quaternion(q), (jnp.zeros_like(w.x), w * 0.5))
    return [s, *v]


def random(key: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> list[Array]:
    """Uniform on the sphere."""
    q = jax.random.normal(key, (4, *shape), dtype)
    return list(q / jnp.linalg.norm(q, axis=0, keepdims=True))
