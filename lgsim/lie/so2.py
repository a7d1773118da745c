"""so(2) and SO(2) on arrays: angles (..., 1) in radians and rotation matrices (..., 2, 2).

The group is commutative: Ad, dexp and related maps are the identity. All functions broadcast over leading axes and
preserve the dtype (float32 or float64); TypeError and ValueError name the argument.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.spatial import pack, sincos
from lgsim.lie import projection
from lgsim.lie.matrix_forms import transpose
from lgsim.support import check

dim = 1

Vector = Float[Array, "*#batch 1"]
Matrix = Float[Array, "*#batch 2 2"]


def identity(dtype: jnp.dtype | type = float) -> Float[Array, "2 2"]:
    """The identity rotation."""
    return jnp.eye(2, dtype=check.float_dtype(dtype))


def hat(u: Vector) -> Float[Array, "*batch 2 2"]:
    """``[[0, -u], [u, 0]]``."""
    (a,) = check.arguments(u=(u, (1,)))
    w = a[..., 0]
    zero = jnp.zeros_like(w)
    return pack((zero, -w, w, zero), (2, 2))


def vee(m: Matrix) -> Float[Array, "*batch 1"]:
    """The angle of the skew part; the inverse of ``hat``."""
    m = check.floating("m", m, 2, 2)
    return 0.5 * (m[..., 1, 0] - m[..., 0, 1])[..., None]


def exp(u: Vector) -> Float[Array, "*batch 2 2"]:
    """``[[cos u, -sin u], [sin u, cos u]]``."""
    sine, cosine = sincos(check.floating("u", u, 1)[..., 0])
    return pack((cosine, -sine, sine, cosine), (2, 2))


@jax.custom_jvp
def _angle(R: Array) -> Array:
    return jnp.arctan2(R[..., 1, 0] - R[..., 0, 1], R[..., 0, 0] + R[..., 1, 1])[..., None]


@_angle.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (R,), (dR,) = primals, tangents
    skew = R[..., :, 0] * dR[..., :, 1] - R[..., :, 1] * dR[..., :, 0]  # R^T dR, lower left minus upper right, by rows
    return _angle(R), -0.5 * jnp.sum(skew, axis=-1, keepdims=True)


def log(R: Matrix) -> Float[Array, "*batch 1"]:
    """The angle in (-pi, pi]; its derivative along the group is 1."""
    return _angle(check.floating("R", R, 2, 2))


def compose(R: Matrix, S: Matrix) -> Float[Array, "*batch 2 2"]:
    """The product ``R S``."""
    a, b = check.arguments(R=(R, (2, 2)), S=(S, (2, 2)))
    c, s = a[..., 0, :], a[..., 1, :]
    rows = ((row[..., 0] * b[..., 0, j] + row[..., 1] * b[..., 1, j]) for row in (c, s) for j in range(2))
    return pack(tuple(rows), (2, 2))


def inverse(R: Matrix) -> Float[Array, "*batch 2 2"]:
    """The transpose."""
    return transpose(check.floating("R", R, 2, 2))


def _ones(**element: tuple[Array, tuple[int, ...]]) -> Array:
    (a,) = check.arguments(**element)
    ((_, trailing),) = element.values()
    return jnp.ones((*a.shape[: a.ndim - len(trailing)], 1, 1), a.dtype)


def _second(**pair: tuple[Array, tuple[int, ...]]) -> Array:
    first, second = check.arguments(**pair)
    rank = second.ndim - 1
    return jnp.broadcast_to(second, (*jnp.broadcast_shapes(first.shape[:rank], second.shape[:rank]), 1))


def Ad(R: Matrix) -> Float[Array, "*batch 1 1"]:
    """The identity: the group is commutative."""
    return _ones(R=(R, (2, 2)))


def Ad_action(R: Matrix, v: Vector) -> Float[Array, "*batch 1"]:
    """``Ad_R v = v``."""
    return _second(R=(R, (2, 2)), v=(v, (1,)))


def Ad_dual(R: Matrix) -> Float[Array, "*batch 1 1"]:
    """The identity."""
    return Ad(R)


def Ad_dual_action(R: Matrix, mu: Vector) -> Float[Array, "*batch 1"]:
    """``Ad_R^* mu = mu``."""
    return _second(R=(R, (2, 2)), mu=(mu, (1,)))


def ad(u: Vector) -> Float[Array, "*batch 1 1"]:
    """Zero."""
    return 0 * _ones(u=(u, (1,)))


def bracket(u: Vector, v: Vector) -> Float[Array, "*batch 1"]:
    """Zero."""
    return 0 * _second(u=(u, (1,)), v=(v, (1,)))


def ad_dual(u: Vector) -> Float[Array, "*batch 1 1"]:
    """Zero."""
    return ad(u)


def ad_dual_action(u: Vector, mu: Vector) -> Float[Array, "*batch 1"]:
    """Zero."""
    return 0 * _second(u=(u, (1,)), mu=(mu, (1,)))


def dexp(u: Vector) -> Float[Array, "*batch 1 1"]:
    """The identity."""
    return _ones(u=(u, (1,)))


def dexp_action(u: Vector, v: Vector) -> Float[Array, "*batch 1"]:
    """``dexp_u v = v``."""
    return _second(u=(u, (1,)), v=(v, (1,)))


dexpinv, dexpinv_action = dexp, dexp_action


def cay(u: Vector) -> Float[Array, "*batch 2 2"]:
    """Cayley map: the rotation by ``2 atan(u/2)``."""
    w = check.floating("u", u, 1)[..., 0]
    scale = 1 / (4 + w * w)
    cosine, sine = (4 - w * w) * scale, 4 * w * scale
    return pack((cosine, -sine, sine, cosine), (2, 2))


def cayinv(R: Matrix) -> Float[Array, "*batch 1"]:
    """The u with ``cay(u) = R``: ``2 tan(angle/2)``, infinite at pi."""
    R = check.floating("R", R, 2, 2)
    return (2 * (R[..., 1, 0] - R[..., 0, 1]) / (2 + R[..., 0, 0] + R[..., 1, 1]))[..., None]


def dcay(u: Vector) -> Float[Array, "*batch 1 1"]:
    """``1/(1 + u^2/4)``."""
    u = check.floating("u", u, 1)
    return (4 / (4 + u * u))[..., None]


def dcay_action(u: Vector, v: Vector) -> Float[Array, "*batch 1"]:
    """``dcay_u v = v/(1 + u^2/4)``."""
    u, v = check.arguments(u=(u, (1,)), v=(v, (1,)))
    return v * (4 / (4 + u * u))


def dcayinv(u: Vector) -> Float[Array, "*batch 1 1"]:
    """``1 + u^2/4``."""
    u = check.floating("u", u, 1)
    return (1 + 0.25 * u * u)[..., None]


def dcayinv_action(u: Vector, v: Vector) -> Float[Array, "*batch 1"]:
    """The inverse of dcay: ``v (1 + u^2/4)``."""
    u, v = check.arguments(u=(u, (1,)), v=(v, (1,)))
    return v * (1 + 0.25 * u * u)


second_kind, second_kind_inverse = exp, log


def project(R: Matrix) -> Float[Array, "*batch 2 2"]:
    """The rotation nearest to R in the Frobenius norm, for a matrix that is nearly a rotation."""
    R = check.floating("R", R, 2, 2)
    cosine, sine = R[..., 0, 0] + R[..., 1, 1], R[..., 1, 0] - R[..., 0, 1]
    length = jnp.hypot(cosine, sine)
    return pack((cosine / length, -sine / length, sine / length, cosine / length), (2, 2))


def defects(R: Any) -> dict[str, Any]:
    """The deviation of NumPy arrays (..., 2, 2) from rotations: ``R^T R = 1`` and ``det R = 1``."""
    return projection.rotation_defects(R)


def random(key: Array, shape: tuple[int, ...] = (), dtype: jnp.dtype | type = float) -> Float[Array, "*shape 2 2"]:
    """Uniformly (Haar) distributed rotations."""
    dtype = check.float_dtype(dtype)
    return exp(jax.random.uniform(key, (*shape, 1), dtype, -jnp.pi, jnp.pi))


def interpolate(R0: Matrix, R1: Matrix, s: Float[Array, "*#batch"] | float) -> Float[Array, "*batch 2 2"]:
    """The geodesic ``R0 exp(s log(R0^-1 R1))``."""
    s = jnp.asarray(s, jnp.result_type(R0))
    R0, R1, s = check.arguments(R0=(R0, (2, 2)), R1=(R1, (2, 2)), s=(s, ()))
    return compose(R0, exp(log(compose(inverse(R0), R1)) * s[..., None]))
