"""SE_2(3) against the 5 x 5 matrices of the literature: power series of 77 digits, SciPy, SE(3), differences.

The generated suites of groups, actions, errors and projections run over it too.
"""

from __future__ import annotations

from functools import cache

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import lgsim
from lgsim.lie.extended_pose import SE23, ExtendedPoses
from lgsim.lie.group import SO3, UnitQuaternion
from lgsim.lie.product import Semidirect
from tests.lie import oracle, points
from tests.lie.structures import difference
from tests.lie.test_derivatives import MODES, compare, nested

ALGEBRA = oracle.ALGEBRAS["se23"]
EPS = 8
SAMPLES = 256


def vectors(angles, dtype, seed=0):
    """Algebra vectors that turn by the angles, with linear parts of size 1."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((len(angles), 3, 3))
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    rows[:, 2] *= np.asarray(angles)[:, None]
    return rows.reshape(-1, 9).astype(dtype)


@cache
def compiled():
    """Everything that is compared, in one program."""

    def evaluate(u, v):
        g = SE23.exp(u)
        return {
            "exp": SE23.matrix(g),
            "dexp": SE23.dexp(u),
            "dexpinv": SE23.dexpinv(u),
            "Ad": SE23.Ad(g),
            "log": SE23.log(g),
            "exp log": SE23.matrix(SE23.exp(SE23.log(g))),
            "dexp_action": SE23.dexp_action(u, v),
            "dexpinv_action": SE23.dexpinv_action(u, v),
        }

    return jax.jit(evaluate)


def evaluated(u, v):
    """``compiled`` at vectors (n, 9), padded to a number that all tests share, so that they share its program."""
    assert len(u) <= SAMPLES
    padded = (jnp.asarray(np.resize(x, (SAMPLES, 9))) for x in (u, v))
    return {name: np.asarray(value)[: len(u)] for name, value in compiled()(*padded).items()}


def exact(name, u):
    return getattr(ALGEBRA, name)(u)[0]


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.float32
def test_within_8_eps_of_the_norm(dtype):
    """0, 1e-300, the decades, both neighbors of every switch, up to pi and to 5; matrices and their actions."""
    eps = float(np.finfo(dtype).eps)
    angles = points.UP_TO_PI + points.BEYOND_PI + points.switch_angles(dtype, high=5.0)
    u = vectors(angles, dtype)
    v = np.random.default_rng(2).uniform(-1, 1, u.shape).astype(dtype)
    found = evaluated(u, v)
    assert {leaf.dtype for leaf in found.values()} == {np.dtype(dtype)}
    for i, vector in enumerate(u):
        for name in ("exp", "dexp", "dexpinv", "Ad"):
            right = exact(name, vector)
            scale = np.max(np.abs(oracle.double_double(right)[0]))
            assert np.max(np.abs(oracle.error(found[name][i], right))) <= EPS * eps * scale, (name, vector)
            if f"{name}_action" in found:
                applied = (right @ oracle.fixed(v[i])) >> oracle.BITS
                scale = np.max(np.abs(oracle.double_double(right)[0]) @ np.abs(v[i].astype(float)))
                error = np.max(np.abs(oracle.error(found[f"{name}_action"][i], applied)))
                assert error <= EPS * eps * scale, (name, vector)


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.float32
def test_near_two_pi_and_large_angles(dtype):
    """Relative to what a rounding of the argument costs, as in SE(3)."""
    eps = float(np.finfo(dtype).eps)
    u = vectors(points.NEAR_TWO_PI + points.LARGE, dtype, seed=3)
    found = evaluated(u, u)
    for i, vector in enumerate(u):
        for name in ("exp", "dexp", "dexpinv", "Ad"):
            coefficients = getattr(ALGEBRA, name)(vector, 1)
            slopes = np.abs(oracle.double_double(coefficients[1:])[0])
            scale = max(
                np.max(np.abs(oracle.double_double(coefficients[0])[0])),
                np.max(np.tensordot(np.abs(vector.astype(float)), slopes, axes=(0, 0))),
            )
            assert np.max(np.abs(oracle.error(found[name][i], coefficients[0]))) <= EPS * eps * scale, (name, vector)


@pytest.mark.repeats("float64")
@pytest.mark.oracle
@pytest.mark.float32
def test_log(dtype):
    """log inverts exp below pi within 8 eps of its conditioning; exp inverts log at every angle; small angles keep
    their digits."""
    eps = float(np.finfo(dtype).eps)
    angles = points.UP_TO_PI + points.BEYOND_PI + points.NEAR_TWO_PI
    u = vectors(angles, dtype, seed=4)
    found = {name: np.asarray(value, float) for name, value in evaluated(u, u).items()}
    for i, (angle, vector) in enumerate(zip(angles, u.astype(float), strict=True)):
        if angle < np.pi - 8 * eps:
            matrix = oracle.double_double(exact("dexpinv", u[i]))[0]
            scale = max(1.0, np.max(np.abs(vector))) * np.max(np.sum(np.abs(matrix), axis=1))
            assert np.max(np.abs(found["log"][i] - vector)) <= EPS * eps * scale, angle
            assert np.max(np.abs(found["log"][i, 6:] - vector[6:])) <= EPS * eps * (angle if angle < 1 else scale)
        error = np.max(np.abs(found["exp log"][i] - found["exp"][i]))
        assert error <= 2 * EPS * eps * np.max(np.abs(found["exp"][i])), angle


@pytest.mark.slow
@pytest.mark.float32
def test_half_turns(dtype):
    """Rotations by exactly pi: an angle of pi, and the way back; derivatives along the group are dexpinv."""
    eps = float(np.finfo(dtype).eps)
    axes = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, -1.0], [2 / 3, -1 / 3, 2 / 3], [-0.6, 0, 0.8], [1e-9, 1, 0]])
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    R = (2 * axes[:, :, None] * axes[:, None, :] - np.eye(3)).astype(dtype)
    g = jnp.asarray(R), jnp.asarray(np.random.default_rng(5).standard_normal((len(axes), 6)).astype(dtype))

    @jax.jit
    @jax.vmap
    def evaluate(g):
        def along(s):
            return SE23.log(SE23.compose(g, SE23.exp(s)))

        zero = jnp.zeros(9, dtype)
        u = SE23.log(g)
        return u, SE23.exp(u), [mode(along)(zero) for mode in (jax.jacfwd, jax.jacrev)], SE23.dexpinv(-u)

    u, back, slopes, right = evaluate(g)
    np.testing.assert_allclose(jnp.linalg.norm(u[:, 6:], axis=1), np.full(len(axes), np.pi), rtol=0, atol=EPS * eps)
    assert difference(back, g) <= 4 * EPS * eps
    for slope in slopes:
        assert np.all(np.abs(slope - right) <= 64 * eps * np.max(np.abs(right), axis=(1, 2), keepdims=True))


def test_scipy():
    """Another program's exponential, logarithm and Frechet derivative of the 5 x 5 matrices."""
    u, v = vectors([0.0, 1e-7, 0.3, 1.0, 2.5, 3.0], np.float64, 6), vectors([1.0] * 6, np.float64, 7)
    found = evaluated(u, v)
    hats = np.tensordot(u, ALGEBRA.basis, 1), np.tensordot(v, ALGEBRA.basis, 1)
    for i, (U, V) in enumerate(zip(*hats, strict=True)):
        g, slope = scipy.linalg.expm_frechet(U, V)
        np.testing.assert_allclose(found["exp"][i], g, rtol=0, atol=4e-15)
        np.testing.assert_allclose(np.tensordot(found["log"][i], ALGEBRA.basis, 1), scipy.linalg.logm(g), atol=2e-14)
        # d/ds exp(u + s v) = hat(dexp_u v) exp(u)
        space = np.tensordot(found["dexp_action"][i], ALGEBRA.basis, 1)
        np.testing.assert_allclose(space @ g, slope, rtol=0, atol=2e-14)


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("exp", 3),
        ("dexp", 1),
        ("dexpinv", 1),
        *(pytest.param(n, 3, marks=pytest.mark.exhaustive) for n in ("dexp", "dexpinv")),
    ],
)
def test_derivatives_to_third_order(name, order):
    """First derivatives in reverse, third ones in forward mode, at zero, at tiny and common angles, at pi."""

    def function(u):
        return SE23.matrix(SE23.exp(u)) if name == "exp" else getattr(SE23, name)(u)

    angles = [0.0, 1e-9, 1e-3, 1.0, np.pi]
    u = vectors(angles, np.float64, seed=8)
    modes = ("reverse", "forward-forward-forward")[: 1 if order == 1 else 2]
    computed = jax.jit(jax.vmap(lambda u: {mode: nested(function, MODES[mode])(u) for mode in modes}))(jnp.asarray(u))
    messages = []
    for i, vector in enumerate(u):
        degree = max(2, order)  # the next one takes part in the bound of the first
        tensors = oracle.derivatives(getattr(ALGEBRA, name)(vector, degree), 9, degree)
        here = {mode: np.asarray(value[i]) for mode, value in computed.items()}
        messages += compare(here, tensors, vector, angles[i], np.float64, name)
    assert not messages, "\n".join(messages)


@pytest.mark.oracle
@pytest.mark.exhaustive  # as those of SE3's; the first ones are tested at half turns
def test_second_derivatives_of_log_along_the_group():
    angles = [0.0, 1e-9, 1e-3, 1.0, 3.0]
    u = vectors(angles, np.float64, seed=9)

    @jax.jit
    @jax.vmap
    def derivatives(u):
        def along(s):
            return SE23.log(SE23.compose(SE23.exp(u), SE23.exp(s)))

        zero = jnp.zeros_like(u)
        return [jax.jacrev(along)(zero), jax.jacfwd(jax.jacrev(along))(zero)]

    first, second = (np.asarray(x) for x in derivatives(jnp.asarray(u)))
    for i, vector in enumerate(u):
        tensors = oracle.derivatives(ALGEBRA.log_along(vector, 2), 9, 2)
        for found, (high, _), bound in ((first[i], tensors[1], 1e-13), (second[i], tensors[2], 1e-11)):
            right = high.reshape(found.shape)
            np.testing.assert_allclose(found, right, rtol=0, atol=bound * np.max(np.abs(right)), err_msg=str(angles[i]))


@pytest.mark.slow
@pytest.mark.parametrize("mode", [jax.jacrev, jax.hessian])
def test_derivatives_at_the_identity_are_finite(mode):
    """Through the entries of elements and at algebra vectors of zero, where a square root is not smooth."""
    weights = jnp.arange(1.0, 10.0)

    def loss(g):
        return jnp.sum(weights * SE23.log(g)) + jnp.sum(SE23.log(g) ** 2)

    for function, at in ((SE23.exp, jnp.zeros(9)), (loss, SE23.identity(jnp.float64))):
        chex.assert_tree_all_finite(jax.jit(mode(function))(at))


@pytest.mark.slow
def test_the_formulas_of_semidirect_are_the_closed_forms():
    """dexp and its inverse by differentiating the mean of the action."""
    u, v = (jnp.asarray(vectors(points.UP_TO_PI, np.float64, seed)) for seed in (10, 11))
    for name in ("dexp_action", "dexpinv_action"):
        general = jax.jit(lambda u, v, name=name: getattr(Semidirect, name)(SE23, u, v))(u, v)
        assert difference(getattr(SE23, name)(u, v), general) <= 1e-14, name


def verbs(group):
    """What the tests below compare, in one program."""

    @jax.jit
    def all_of(u, v):
        g, h = group.exp(u), group.exp(v)
        product = group.compose(g, h)
        return {
            "exp": group.matrix(g) if isinstance(group, ExtendedPoses) else g,
            "compose": group.matrix(product) if isinstance(group, ExtendedPoses) else product,
            "log": group.log(product), "Ad": group.Ad(g), "bracket": group.bracket(u, v), "dexp": group.dexp(u),
            "dexpinv": group.dexpinv_action(u, v),
        }  # fmt: skip

    return all_of(u=group_vectors(group, 12), v=group_vectors(group, 13))


def group_vectors(group, seed):
    """Algebra vectors of SE_2(3), or those of its position."""
    u = jnp.asarray(vectors(points.UP_TO_PI[:-8], np.float64, seed))
    return u if group.dim == 9 else u[:, 3:]


@pytest.mark.slow
def test_one_vector_makes_SE3():
    """SE_1(3) as pairs has the numbers of SE3, and SE_2(3) those of it for the position."""
    one, right, two = verbs(ExtendedPoses(SO3, 1)), verbs(lgsim.SE3), verbs(SE23)
    for name, value in right.items():
        assert difference(one[name], value) <= 2e-14, name
    for name in ("log", "bracket", "dexpinv"):
        assert difference(two[name][:, 3:], right[name]) <= 2e-14, name
    for name in ("Ad", "dexp"):
        assert difference(two[name][:, 3:, 3:], right[name]) <= 2e-14, name


@pytest.mark.slow
def test_quaternions_for_the_rotation():
    """The same group with another base."""
    group = ExtendedPoses(UnitQuaternion, 2)
    assert group.shapes == ((4,), (6,))
    found, right = verbs(group), verbs(SE23)
    for name, value in right.items():
        assert difference(found[name], value) <= 2e-14, name


def test_layout():
    """Elements are (R, (v, p)); algebra vectors move the velocity, then the position, then turn."""
    R, x = SE23.exp(jnp.arange(1.0, 10.0).at[6:].set(0))
    np.testing.assert_array_equal(R, np.eye(3))
    np.testing.assert_array_equal(x, np.arange(1.0, 7.0))
    R, x = SE23.exp(jnp.zeros(9).at[8].set(jnp.pi / 2))
    np.testing.assert_allclose(R @ np.array([1.0, 0, 0]), [0, 1, 0], rtol=0, atol=1e-15)
    np.testing.assert_array_equal(x, np.zeros(6))
    assert lgsim.SE23 is SE23 and repr(SE23) == "ExtendedPoses(so3, 2)" and SE23.shapes == ((3, 3), (6,))


@pytest.mark.slow
def test_groups_of_it():
    """It goes into products (with the biases of a sensor) and cotangent bundles."""
    for group in (lgsim.Product(SE23, lgsim.Euclidean(6)), lgsim.Cotangent(SE23)):
        a, b = jnp.asarray(0.4 * np.random.default_rng(17).standard_normal((2, 4, group.dim)))

        @jax.jit
        def both(a, b, group=group):
            return group.log(group.exp(a)), group.dexpinv_action(a, group.dexp_action(a, b))

        assert difference(both(a, b), (a, b)) <= 1e-13
