"""`Semidirect` takes any representation: vectors of more dimensions than the group, of fewer, of no multiple of them.

Rotations on quadrupoles (five dimensions for three) against matrix exponentials, turns of the plane against SE(2), and
vectors that nothing turns against a product.
"""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from lgsim import lie
from lgsim.lie.extended_pose import SE23
from lgsim.lie.group import SE2, SE3, SO2, SO3, Euclidean
from lgsim.lie.product import Product, Semidirect, Tangent
from lgsim.lie.series import stumpffs
from lgsim.support import check
from tests.lie.structures import apply, difference

# an orthonormal basis of the symmetric matrices without trace
BASIS = np.zeros((5, 3, 3))
for k, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
    BASIS[k, i, j] = BASIS[k, j, i] = 1 / np.sqrt(2)
BASIS[3], BASIS[4] = np.diag([1, -1, 0]) / np.sqrt(2), np.diag([1, 1, -2]) / np.sqrt(6)


class Quadrupoles(Semidirect):
    """Rotations and symmetric matrices without trace, R X R^T; the mean of the action by Gauss's quadrature."""

    @property
    def vector_dim(self):
        return 5

    @staticmethod
    def tensor(x):
        return jnp.einsum("...k,kij->...ij", x, jnp.asarray(BASIS, x.dtype))

    @staticmethod
    def numbers(X):
        return jnp.einsum("...ij,kij->...k", X, jnp.asarray(BASIS, X.dtype))

    def represent(self, g, x):
        g, x = check.arguments(g=(g, (3, 3)), x=(x, (5,)))
        return self.numbers(g @ self.tensor(x) @ jnp.swapaxes(g, -1, -2))

    def generate(self, u, x):
        u, x = check.arguments(u=(u, (3,)), x=(x, (5,)))
        W, X = lie.so3.hat(u), self.tensor(x)
        return self.numbers(W @ X - X @ W)

    def average(self, u, x):
        u, x = check.arguments(u=(u, (3,)), x=(x, (5,)))
        places, weights = (jnp.asarray(a, u.dtype) for a in np.polynomial.legendre.leggauss(16))
        rotations = lie.so3.exp(jnp.einsum("...i,k->...ki", u, 0.5 + 0.5 * places))
        return jnp.einsum("...ki,k->...i", self.represent(rotations, x[..., None, :]), 0.5 * weights)

    def average_inverse(self, u, x):
        columns = self.average(u[..., None, :], jnp.eye(5, dtype=u.dtype))
        return jnp.linalg.solve(jnp.swapaxes(columns, -1, -2), x[..., None])[..., 0]


class Plane(Semidirect):
    """Turns of the plane and its vectors, which come first: SE(2) as pairs."""

    vector_first: ClassVar[bool] = True

    @property
    def vector_dim(self):
        return 2

    def represent(self, g, x):
        return apply(g, x)

    def generate(self, u, x):
        return u * self.quarter(x)

    def average(self, u, x):
        sinc, versine = stumpffs(u * u, ((1, 0), (2, 0)))
        return x * sinc + self.quarter(x) * (u * versine)

    def average_inverse(self, u, x):
        sinc, versine = stumpffs(u * u, ((1, 0), (2, 0)))
        return (x * sinc - self.quarter(x) * (u * versine)) / (2 * versine)

    @staticmethod
    def quarter(x):
        return jnp.stack([-x[..., 1], x[..., 0]], axis=-1)


class Still(Semidirect):
    """A group and a number that it leaves alone."""

    @property
    def vector_dim(self):
        return 1

    def represent(self, g, x):
        return x

    def generate(self, u, x):
        return 0 * x

    def average(self, u, x):
        return x

    def average_inverse(self, u, x):
        return x


def drawn(dim, dtype=np.float64, seed=0, size=0.6):
    rng = np.random.default_rng(seed)
    return (jnp.asarray(size * rng.standard_normal((5, dim)).astype(dtype)) for _ in range(2))


def everything(group):
    """All verbs at a pair of algebra vectors, in one program."""

    @jax.jit
    def all_of(u, v):
        g, h = group.exp(u), group.exp(v)
        return {
            "exp": g, "log": group.log(group.compose(g, h)), "compose": group.compose(g, h),
            "inverse": group.inverse(g), "Ad": group.Ad(g), "Ad_dual_action": group.Ad_dual_action(g, v),
            "ad": group.ad(u), "ad_dual_action": group.ad_dual_action(u, v), "bracket": group.bracket(u, v),
            "dexp": group.dexp(u), "dexpinv": group.dexpinv(u), "dexp_action": group.dexp_action(u, v),
            "interpolate": group.interpolate(g, h, 0.3), "identity": group.identity(u.dtype),
            "random": group.random(jax.random.key(1), (2,), u.dtype),
        }  # fmt: skip

    return all_of


@pytest.mark.slow
@pytest.mark.float32
def test_quadrupoles(dtype):
    """Five dimensions over three: exp, log, Ad, bracket, dexp and dexpinv are those of the matrices."""
    group = Quadrupoles(SO3)
    assert group.dim == 8 and group.shapes == ((3, 3), (5,))
    eps = float(np.finfo(dtype).eps)
    u, v = drawn(8, dtype)
    found = everything(group)(u, v)
    assert found["random"][1].shape == (2, 5) and found["random"][1].dtype == dtype

    def matrix(w):
        """The 9 x 9 matrix of an algebra vector: what it does to (X, 1), beside what it does to vectors."""
        W = np.asarray(lie.so3.hat(jnp.asarray(w[:3])), float)
        slope = np.stack([np.tensordot(BASIS, W @ B - B @ W, 2) for B in BASIS], axis=1)
        out = np.zeros((9, 9))
        out[:5, :5], out[:5, 5], out[6:, 6:] = slope, w[3:], W
        return out

    def vector(M):
        return np.concatenate([[M[8, 7], M[6, 8], M[7, 6]], M[:5, 5]])

    for i, (a, b) in enumerate(zip(np.asarray(u, float), np.asarray(v, float), strict=True)):
        U, V = matrix(a), matrix(b)
        product = expm(U) @ expm(V)
        ad = np.stack([vector(U @ E - E @ U) for E in map(matrix, np.eye(8))], axis=1)
        block = np.block([[ad, np.eye(8)], [np.zeros((8, 16))]])
        dexp = expm(block)[:8, 8:]
        exact = {
            "exp": (expm(U)[6:, 6:], expm(U)[:5, 5]),
            "compose": (product[6:, 6:], product[:5, 5]),
            "bracket": vector(U @ V - V @ U),
            "ad": ad,
            "Ad": expm(ad),
            "dexp": dexp,
            "dexpinv": np.linalg.inv(dexp),
            "dexp_action": dexp @ b,
            "Ad_dual_action": expm(ad).T @ b,
            "ad_dual_action": ad.T @ b,
        }
        for name, value in exact.items():
            got = jax.tree.map(lambda x, i=i: x[i], found[name])
            assert difference(got, value) <= 64 * eps, name
        assert difference(expm(matrix(np.asarray(found["log"][i], float))), product) <= 64 * eps


@pytest.mark.slow
def test_turns_of_the_plane_are_SE2():
    """Two dimensions over one, the vector first: the numbers of SE2, whose elements are matrices."""
    u, v = drawn(3, size=1.0)
    u = u.at[0].set(0).at[1, 2].set(1e-9).at[2, 2].set(3.1)
    pairs, matrices = everything(Plane(SO2))(u, v), everything(SE2)(u, v)

    def matrix(g):
        R, x = g
        return jnp.concatenate([jnp.concatenate([R, x[..., None]], axis=-1), matrices["exp"][:, 2:]], axis=-2)

    for name in ("exp", "inverse", "compose", "interpolate"):
        assert difference(matrix(pairs[name]), matrices[name]) < 1e-14, name
    for name in set(pairs) - {"exp", "inverse", "compose", "interpolate", "identity", "random"}:
        assert difference(pairs[name], matrices[name]) < 4e-14, name


@pytest.mark.slow
def test_a_number_that_nothing_turns_is_a_product():
    """One dimension over six."""
    u, v = drawn(7)
    still, product = Still(SE3), Product(SE3, Euclidean(1))
    assert still.dim == product.dim and still.shapes == product.shapes
    found, right = everything(still)(u, v), everything(product)(u, v)
    for name in set(found) - {"random"}:
        assert difference(found[name], right[name]) < 1e-14, name


@pytest.mark.repeats
@pytest.mark.parametrize("group", [SE23, Tangent(SO3)], ids=["SE23", "T SO3"])
def test_duals_over_different_leading_axes(group):
    """Those that no group of arrays gives: one element for many momenta, and many for many; a wrong length is told."""
    u, _ = drawn(group.dim)
    mu = jnp.asarray(np.random.default_rng(4).standard_normal((3, 1, group.dim)))

    @jax.jit
    def evaluated(u, mu):
        g = group.exp(u)
        pairs = (group.Ad_dual_action(g, mu), group.Ad(g)), (group.ad_dual_action(u, mu), group.ad(u))
        return pairs, group.Ad_dual_action(group.identity(u.dtype), mu)

    pairs, one = evaluated(u, mu)
    for got, matrix in pairs:
        assert difference(got, np.einsum("nij,mki->mnj", matrix, mu)) <= 1e-15
    assert difference(one, mu) == 0
    with pytest.raises(ValueError, match=r"mu: expected shape \(\.\.\., \d+\), got \(1,\)"):
        group.Ad_dual_action(group.exp(u), jnp.ones(1))
