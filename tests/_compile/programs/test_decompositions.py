"""QR decompositions and triangular systems as straight-line programs, against numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.linalg import solve_triangular

from lgsim.programs import UnsupportedProgramError, evaluate, read

RNG = np.random.default_rng(0)
FULL = RNG.normal(size=(7, 4))
TALL_ZEROS = np.where(RNG.random((9, 5)) < 0.5, 0, RNG.normal(size=(9, 5)))


def upper(A):
    return jax.lax.linalg.qr(A, full_matrices=False)[1]


@pytest.mark.parametrize(
    "A",
    [FULL, FULL.T, TALL_ZEROS, np.zeros((4, 3)), np.outer(FULL[:, 0], [1.0, 0, 2]), 1e-9 * np.tri(5) + np.eye(5)],
    ids=["tall", "wide", "zeros", "nothing", "rank one", "nearly triangular"],
)
def test_r_has_the_products_of_the_columns(A):
    """``R^T R = A^T A``, R is upper triangular; known zeros, as where they are not known."""
    R = evaluate(read(upper, jax.ShapeDtypeStruct(A.shape, float)), A)[0]
    known = evaluate(read(lambda: upper(jnp.asarray(A))))[0]
    mask = A != 0
    half = evaluate(read(lambda x: upper(jnp.where(mask, x, 0)), jax.ShapeDtypeStruct(A.shape, float)), A)[0]
    for found in (R, known, half):
        np.testing.assert_array_equal(found, np.triu(found))
        np.testing.assert_allclose(found.T @ found, A.T @ A, atol=1e-14)


def test_rotations_keep_a_triangle():
    """An upper triangle below a row, as in the update of a filter, costs less than the same entries without zeros."""
    n = 12

    def program(keep):
        def f(row, L):
            return upper(jnp.concatenate([row[None], keep(L)]))

        return read(f, jax.ShapeDtypeStruct((n,), float), jax.ShapeDtypeStruct((n, n), float))

    assert len(program(jnp.triu).statements) < 0.6 * len(program(lambda L: L).statements)
    L, row = np.triu(RNG.normal(size=(n, n))), RNG.normal(size=n)
    R = evaluate(program(jnp.triu), row, L)[0]
    np.testing.assert_allclose(R.T @ R, L.T @ L + np.outer(row, row), atol=1e-13)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, 1])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_systems(lower, trans, unit):
    A, B = RNG.normal(size=(5, 5)) + 3 * np.eye(5), RNG.normal(size=(5, 2))
    T = np.tril(A) if lower else np.triu(A)
    if unit:
        np.fill_diagonal(T, 1)

    def left(A, B):
        return solve_triangular(A, B, trans=trans, lower=lower, unit_diagonal=unit)

    def right(A, B):
        return jax.lax.linalg.triangular_solve(
            A, B, left_side=False, transpose_a=bool(trans), lower=lower, unit_diagonal=unit
        )

    whole = T.T if trans else T
    for f, b, expected in ((left, B, np.linalg.solve(whole, B)), (right, B.T, np.linalg.solve(whole.T, B).T)):
        kinds = (jax.ShapeDtypeStruct(x.shape, float) for x in (A, b))
        np.testing.assert_allclose(evaluate(read(f, *kinds), A, b)[0], expected, rtol=1e-12)


def test_the_factor_q_has_no_program():
    with pytest.raises(UnsupportedProgramError, match="the factor Q"):
        read(lambda A: jax.lax.linalg.qr(A, full_matrices=False)[0], jax.ShapeDtypeStruct((3, 2), float))
