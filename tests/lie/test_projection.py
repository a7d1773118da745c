"""Which arrays are points: what is wrong with one that is not, by how much, and the nearest one that is."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import polar

import lgsim
from lgsim import actions, lie
from lgsim.lie.extended_pose import SE23
from lgsim.lie.group import SE2, SE3, SO2, SO3, Euclidean, UnitQuaternion
from lgsim.lie.product import Cotangent
from lgsim.lie.product import Product as GroupProduct

NORMED = jnp.array([0.6, 0.0, 0.8, 0.4, 0.7, -0.3])
GROUPS = {
    "SO2": SO2,
    "SE2": SE2,
    "SO3": SO3,
    "SE3": SE3,
    "SE23": SE23,
    "UnitQuaternion": UnitQuaternion,
    "T* SO3": Cotangent(SO3),
    "SO3 x R2": GroupProduct(SO3, Euclidean(2)),
}


def disturbed(point, size, seed=5):
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda x: x + jnp.asarray(size * rng.normal(size=x.shape), x.dtype), point)


def of(name, dtype=np.float64):
    """An element, from numbers for its algebra vector."""
    group = GROUPS[name]
    return group, group.exp(jnp.asarray(0.2 * np.arange(1.0, group.dim + 1), dtype))


@pytest.mark.float32
@pytest.mark.parametrize("name", GROUPS)
def test_elements_are_points_and_disturbed_ones_are_not(name, dtype):
    group, g = of(name, dtype)
    action = actions.LeftTranslation(group)
    action.check_point(g)
    chex.assert_trees_all_equal_dtypes(action.project(g), g)
    chex.assert_trees_all_close(action.project(g), g, rtol=0, atol=8 * np.finfo(dtype).eps)
    off = disturbed(g, 0.02)
    with pytest.raises(ValueError, match=r"y: expected a point .* fails by .*action.project\(y\)"):
        action.check_point(off)
    actions.RightTranslation(group).check_point(action.project(off))


@pytest.mark.parametrize("name", GROUPS)
def test_projection_of_a_batch_is_a_loop(name):
    group, g = of(name)
    many = [disturbed(g, 0.02, seed) for seed in range(3)]
    together = group.project(jax.tree.map(lambda *x: jnp.stack(x), *many))
    alone = jax.tree.map(lambda *x: jnp.stack(x), *map(group.project, many))
    chex.assert_trees_all_close(together, alone, rtol=0, atol=1e-15)


def test_the_nearest_rotation_is_the_polar_factor():
    X = np.asarray(of("SO3")[1]) + 0.3 * np.random.default_rng(1).normal(size=(3, 3))
    np.testing.assert_allclose(lie.so3.project(jnp.asarray(X)), polar(X)[0], rtol=0, atol=1e-14)
    planar = np.asarray(of("SO2")[1]) + 0.3 * np.random.default_rng(2).normal(size=(2, 2))
    np.testing.assert_allclose(lie.so2.project(jnp.asarray(planar)), polar(planar)[0], rtol=0, atol=1e-14)


def test_derivatives_of_the_nearest_rotation():
    """At a rotation, where all singular values are equal, and away from one; second order as well."""
    _, R = of("SO3")
    direction = jnp.asarray(np.random.default_rng(3).normal(size=(3, 3)))
    forward = jax.jit(lambda X: jax.jvp(lie.so3.project, (X,), (direction,))[1])
    second = jax.jit(lambda X: jax.jvp(forward, (X,), (direction,))[1])
    reverse = jax.jit(jax.jacrev(lie.so3.project))
    for X in (R, disturbed(R, 0.1)):
        h = 1e-4
        ends = [lie.so3.project(X + s * h * direction) for s in (1, -1)]
        np.testing.assert_allclose(forward(X), (ends[0] - ends[1]) / (2 * h), rtol=0, atol=1e-7)
        slopes = [forward(X + s * h * direction) for s in (1, -1)]
        np.testing.assert_allclose(second(X), (slopes[0] - slopes[1]) / (2 * h), rtol=0, atol=1e-6)
        np.testing.assert_allclose(jnp.tensordot(reverse(X), direction, 2), forward(X), rtol=0, atol=1e-14)


def test_a_reflection_is_no_rotation():
    mirror = jnp.diag(jnp.array([1.0, 1.0, -1.0]))
    with pytest.raises(ValueError, match="det R = 1 fails by 2"):
        actions.LeftTranslation(SO3).check_point(mirror)
    R = lie.so3.project(mirror @ lie.so3.exp(jnp.array([0.1, 0.2, 0.3])))
    np.testing.assert_allclose(jnp.linalg.det(R), 1.0, rtol=1e-14)


def test_the_bottom_row_of_a_displacement():
    with pytest.raises(ValueError, match=r"bottom row = \(0, 1\) fails by 0\.5"):
        actions.RightTranslation(SE3).check_point(jnp.eye(4).at[3, 1].set(0.5))


def test_the_tangent_sphere():
    action = actions.TangentSphere()
    y = action.project(NORMED)
    q = np.asarray(NORMED[:3])
    np.testing.assert_allclose(y[:3], q, rtol=0, atol=1e-16)
    np.testing.assert_allclose(y[3:], NORMED[3:] - q * (q @ NORMED[3:]), rtol=0, atol=1e-16)
    action.check_point(y)
    with pytest.raises(ValueError, match=r"\|q\| = 1 fails by 0\.1"):
        action.check_point(y.at[:3].multiply(1.1))
    with pytest.raises(ValueError, match=r"q \. omega / \(1 \+ \|omega\|\) = 0 fails"):
        action.check_point(y.at[3:].add(q))


def test_parts_are_named():
    action = actions.Product(actions.RightTranslation(SO3), actions.Power(actions.TangentSphere(), 2))
    y = (jnp.eye(3), action.actions[1].project(jnp.stack([NORMED, -NORMED])))
    action.check_point(y)
    with pytest.raises(ValueError, match=r"start: .*\[1\] \|q\| = 1 fails by 0\.5"):
        action.check_point((y[0], y[1].at[1].multiply(1.5)), "start")
    repaired = action.project((y[0] * 1.01, y[1] * 1.5))
    np.testing.assert_allclose(repaired[0], y[0], rtol=0, atol=1e-15)
    action.check_point(repaired)


def test_momenta_and_vectors_are_always_points():
    anything = jnp.array([5.0, -3.0, 2.0])
    for action in (actions.Coadjoint(SO3), actions.Translation(3)):
        action.check_point(anything)
        np.testing.assert_array_equal(action.project(anything), anything)


def test_integrate_refuses_a_point_off_the_manifold():
    def run(R):
        action = actions.RightTranslation(lgsim.SO3)
        return lgsim.integrate(lgsim.CF2, action, lambda t, y, w: w, R, dt=0.1, steps=2, args=jnp.ones(3)).ys

    with pytest.raises(ValueError, match=r"y0: .*R\^T R = 1 fails by 0\.02"):
        run(1.01 * jnp.eye(3))
    inside = jax.jit(run)(1.01 * jnp.eye(3))  # a compiled program cannot look at numbers
    assert np.all(np.isfinite(inside))


def test_a_point_is_made_of_numbers():
    with pytest.raises(ValueError, match=r"R\^T R = 1 fails by nan"):
        actions.LeftTranslation(SO3).check_point(jnp.full((3, 3), jnp.nan))


@pytest.mark.parametrize("count", [0, -1])
def test_a_power_needs_a_factor(count):
    with pytest.raises(ValueError, match="count: expected at least 1"):
        actions.Power(actions.TangentSphere(), count)
