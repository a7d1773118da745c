"""Smoothing of linear Gaussian problems by factors: sequential, and parallel in time by associative scans.

The problem is ``x_0 = m + L w``, ``x_k = F_k x_{k-1} + c_k + G_k w`` with readings ``r_k = H_k x_k + N_k w``, each w a
standard normal vector. Where nothing is read, H and r are zero.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.estimate.factors import conditioned, small, smoothed, solved, triangular

Found = tuple[Float[Array, "k n"], Float[Array, "k n n"]]
"""The mean of each x_k given all readings, and the factor of its covariance."""
Pair = tuple[Float[Array, " n"], Float[Array, "n n"]]
"""The same of one x_k."""


class LinearProblem(NamedTuple):
    """A linear Gaussian problem of k vectors; the first entries of F, c and G are not used."""

    m: Float[Array, " n"]
    L: Float[Array, "n n"]
    F: Float[Array, "k n n"]
    c: Float[Array, "k n"]
    G: Float[Array, "k n j"]
    r: Float[Array, "k m"]
    H: Float[Array, "k m n"]
    N: Float[Array, "k m m"]


def sequential(problem: LinearProblem) -> Found:
    """The solution by a filter and the smoother of Rauch, Tung and Striebel; its cost grows with the number of times.

    Source: Kailath, Sayed and Hassibi 2000, Linear estimation, ch. 10 and 12.
    """
    n = len(problem.m)

    def predict(L: Array, F: Array, G: Array) -> tuple[Array, Array]:
        image = F @ jnp.triu(L)
        return image, triangular(jnp.concatenate([G, image], axis=1))

    predict, read, back = small(predict, n), small(_read, n), small(smoothed, n)

    def advance(now: Pair, given: tuple[Array, ...]) -> tuple[Pair, tuple[Array, ...]]:
        F, c, G, r, H, N = given
        before = F @ now[0] + c
        image, ahead = predict(now[1], F, G)
        m, L = read(before, ahead, r, H, N)
        return (m, L), (m, L, before, image, ahead)

    def backward(after: Pair, given: tuple[Array, ...]) -> tuple[Pair, Pair]:
        own, L, before, image, ahead, G = given
        e, factor = back(L, image, G, ahead, after[1], after[0] - before)
        return (own + e, factor), (own + e, factor)

    m, L, F, c, G, r, H, N = problem
    first = read(m, L, r[0], H[0], N[0])
    last, later = jax.lax.scan(advance, first, (F[1:], c[1:], G[1:], r[1:], H[1:], N[1:]))
    means, factors = (jnp.concatenate([a[None], b]) for a, b in zip(first, later[:2], strict=True))
    past = (means[:-1], factors[:-1], *later[2:], G[1:])
    _, found = jax.lax.scan(backward, last, past, reverse=True)
    means, factors = (jnp.concatenate([a, b[None]]) for a, b in zip(found, last, strict=True))
    return means, factors


def _read(
    m: Float[Array, " n"], L: Float[Array, "n n"], r: Float[Array, " m"], H: Float[Array, "m n"], N: Float[Array, "m m"]
) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
    """The mean and the factor given a reading."""
    S, cross, factor = conditioned(jnp.triu(L), H, N)
    return m + cross @ solved(S, r - H @ m), factor


@jax.custom_jvp
def parallel(problem: LinearProblem) -> Found:
    """The same solution by two associative scans, whose depth grows with the logarithm of the number of times.

    Its derivatives are those of ``sequential``: here a factor of what was read is singular while readings are few.

    Source: Sarkka and Garcia-Fernandez 2021, Temporal parallelization of Bayesian smoothers; in factors Yaghoobi,
    Corenflos, Hassan and Sarkka 2022, Parallel square-root statistical linear regression for inference in nonlinear
    state space models.
    """
    m, L, F, c, G, r, H, N = problem
    n = len(m)
    m, L = _read(m, L, r[0], H[0], N[0])
    zero = jnp.zeros((n, n), L.dtype)
    first = (zero, m, L, m * 0, zero)
    rest = jax.vmap(_filter_element)(F[1:], c[1:], G[1:], r[1:], H[1:], N[1:])
    elements = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, rest)
    _, means, factors, _, _ = jax.lax.associative_scan(jax.vmap(_filtered), elements)
    steps = jax.vmap(_smoother_element)(means[:-1], factors[:-1], F[1:], c[1:], G[1:])
    last = (zero, means[-1], factors[-1])
    steps = jax.tree.map(lambda a, b: jnp.concatenate([a, b[None]]), steps, last)
    _, means, factors = jax.lax.associative_scan(
        lambda later, own: jax.vmap(_smoothed)(own, later), steps, reverse=True
    )
    return means, factors


@parallel.defjvp
def _parallel_rule(problem: tuple[LinearProblem], changes: tuple[LinearProblem]) -> tuple[Found, Found]:
    return parallel(*problem), jax.jvp(sequential, problem, changes)[1]


def _filter_element(F: Array, c: Array, G: Array, r: Array, H: Array, N: Array) -> tuple[Array, ...]:
    """A, b, U, eta, Z of ``x_k = A x_{k-1} + b + U w`` given its reading, and the information on x_{k-1} in it.

    The reading has the density ``exp(eta^T x - |Z^T x|^2 / 2)`` of x_{k-1}, up to a factor.
    """
    n = len(c)
    S, cross, U = conditioned(triangular(G), H, N)
    seen, gap = solved(S, H @ F), solved(S, r - H @ c)
    Z = triangular(seen.T) if len(r) > n else jnp.pad(seen.T, ((0, 0), (0, n - len(r))))
    return F - cross @ seen, c + cross @ gap, U, seen.T @ gap, Z


def _filtered(i: tuple[Array, ...], j: tuple[Array, ...]) -> tuple[Array, ...]:
    """The element of two consecutive ones, i before j."""
    A, b, U, eta, Z = i
    B, d, V, theta, Y = j
    n = len(b)
    eye = jnp.eye(n, dtype=b.dtype)
    both = Y.T @ U
    # with P = U U^T and J = Y Y^T the factors of I + U^T J U and of I + Y^T P Y
    of_state, of_reading = (triangular(jnp.concatenate([x, eye], axis=1)) for x in (both.T, both))
    root = solved(of_state, U.T).T
    share = eye - root @ solved(of_state, both.T) @ Y.T  # (I + P J)^-1
    mean = B @ share @ (b + U @ (U.T @ theta)) + d
    information = A.T @ share.T @ (theta - Y @ (Y.T @ b)) + eta
    spread = triangular(jnp.concatenate([B @ root, V], axis=1))
    read = triangular(jnp.concatenate([A.T @ solved(of_reading, Y.T).T, Z], axis=1))
    return B @ share @ A, mean, spread, information, read


def _smoother_element(m: Array, L: Array, F: Array, c: Array, G: Array) -> tuple[Array, Array, Array]:
    """E, g, D of ``x_{k-1} = E x_k + g + D w`` given the readings before k."""
    ahead, cross, rest = conditioned(L, F, G)
    E = solved(ahead, cross, transposed=True)
    return E, m - E @ (F @ m + c), rest


def _smoothed(i: tuple[Array, ...], j: tuple[Array, ...]) -> tuple[Array, Array, Array]:
    """The element of two consecutive ones, i before j."""
    return i[0] @ j[0], i[0] @ j[1] + i[1], triangular(jnp.concatenate([i[0] @ j[2], i[2]], axis=1))
