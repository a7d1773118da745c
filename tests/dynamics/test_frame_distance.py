"""Distances of capsules: closed cases, a brute-force search, a peer's convex solver, and derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from lgsim.dynamics.frame_distance import Capsule, frame_distance, segment_distance, sphere
from lgsim.dynamics.kinematics import forward_kinematics
from tests.multibody import trees


def search(p1, d1, p2, d2):
    """The smallest distance of two segments by a bounded convex minimization, from every corner."""

    def square(x):
        gap = p2 + x[1] * d2 - p1 - x[0] * d1
        return gap @ gap, np.array([-2 * gap @ d1, 2 * gap @ d2])

    starts = [(0.5, 0.5), (0, 0), (0, 1), (1, 0), (1, 1)]
    runs = [minimize(square, x, jac=True, bounds=[(0, 1)] * 2, tol=1e-16).fun for x in starts]
    return np.sqrt(min(runs))


@pytest.mark.slow
def test_random_segments():
    rng = np.random.default_rng(0)
    for length in (0.3, 1.0, 3.0):
        p1, d1, p2, d2 = x = rng.normal(size=(4, 40, 3)) * np.array([1, length, 1, length])[:, None, None]
        found = segment_distance(*map(jnp.asarray, x))
        right = [search(*y) for y in zip(p1, d1, p2, d2, strict=True)]
        np.testing.assert_allclose(found, right, rtol=0, atol=1e-7)
        assert np.all(found <= np.array(right) + 1e-14)


@pytest.mark.parametrize("angle", [0.0, 1e-16, 1e-12, 1e-8, 1e-4, 1e-2])
def test_nearly_parallel_segments(angle):
    """Two segments in a plane, the second turned: the nearest is its end at x = 1, below its start by sin(angle)."""
    p1, d1 = jnp.zeros(3), jnp.array([3.0, 0.0, 0.0])
    p2, d2 = jnp.array([0.0, 0.5, 0.0]), jnp.array([np.cos(angle), -np.sin(angle), 0.0])
    gradients = jax.grad(segment_distance, argnums=(0, 1, 2, 3))(p1, d1, p2, d2)
    np.testing.assert_allclose(segment_distance(p1, d1, p2, d2), 0.5 - np.sin(angle), rtol=2e-16)
    np.testing.assert_allclose(gradients[2], [0, 1, 0], atol=1e-15)
    if angle:
        np.testing.assert_allclose(gradients[3], [0, 1, 0], atol=1e-15)


def test_meeting_segments_and_points():
    cross = [jnp.array(x) for x in ([-1.0, 0, 0], [2.0, 0, 0], [0, -1.0, 0], [0, 2.0, 0])]
    point = [jnp.array(x) for x in ([1.0, 2, 2], [0.0, 0, 0], [0.0, 0, 0], [0.0, 0, 0])]
    same = [point[0], point[1], point[0], point[1]]
    for segments, right in ((cross, 0.0), (point, 3.0), (same, 0.0)):
        value, gradients = jax.value_and_grad(segment_distance, argnums=(0, 1, 2, 3))(*segments)
        assert value == right
        assert np.all(np.isfinite(np.concatenate(gradients)))
    np.testing.assert_allclose(jax.grad(segment_distance)(*point), np.array([1, 2, 2]) / 3, rtol=1e-15)


MODEL = trees.build(["free", "revolute", "spherical"], [-1, 0, 1])
PAIRS = [
    (
        Capsule("body0", (0.0, 0.0, -0.2), (0.0, 0.0, 0.2), 0.05),
        Capsule("body2", (0.1, 0.0, 0.0), (0.4, 0.2, 0.0), 0.1),
    ),
    (sphere("body2", (0.3, 0.0, 0.1), 0.2), Capsule(None, (2.0, -1.0, 0.0), (2.0, 1.0, 0.5), 0.1)),
    (sphere(1, (0.0, 0.1, 0.0), 0.1), sphere("body0", (0.0, 0.0, 1.0), 0.2)),
]


def test_capsules_on_frames():
    q, *_ = trees.state(MODEL)
    T = np.concatenate([forward_kinematics(MODEL, q), np.eye(4)[None]])
    frames = {"body0": 0, "body2": 2, 1: 1, None: 3}
    for found, pair in zip(frame_distance(MODEL, q, PAIRS), PAIRS, strict=True):
        ends = []
        for c in pair:
            R, p = T[frames[c.frame], :3, :3], T[frames[c.frame], :3, 3]
            ends += [R @ c.start + p, R @ (np.array(c.end) - c.start)]
        np.testing.assert_allclose(found, search(*ends) - pair[0].radius - pair[1].radius, atol=1e-7)


@pytest.mark.slow
def test_derivative_along_a_motion():
    q, v, _ = trees.state(MODEL)
    f = jax.jit(lambda q: frame_distance(MODEL, q, PAIRS))
    _, found = jax.jvp(f, (q,), (MODEL.rate(q, v),))
    h = 1e-5
    ahead, behind = (f(MODEL.retract(q, s * v)) for s in (h, -h))
    np.testing.assert_allclose(found, (ahead - behind) / (2 * h), rtol=1e-7, atol=1e-8)


def test_derivative_in_the_radius():
    q, *_ = trees.state(MODEL)
    slope = jax.jvp(lambda r: frame_distance(MODEL, q, [(sphere(0, (0.0, 0.0, 0.0), r), PAIRS[1][1])]), (0.1,), (1.0,))
    np.testing.assert_array_equal(slope[1], [-1])


def test_second_derivatives():
    """Closest points inside both segments, at one end, at two ends: the Hessian against differences of gradients."""
    rng = np.random.default_rng(3)
    p, d, r, e = (jnp.asarray(x) for x in rng.normal(size=(4, 40, 3)))

    def value(s):
        return segment_distance(p + s * d, d + s * s * r, r - s * p, e + s * r)

    first = jax.jit(jax.jacfwd(value))
    h = 1e-6
    right = (first(h) - first(-h)) / (2 * h)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(jax.jacrev(value)))(0.0), right, rtol=1e-5, atol=1e-6)


def test_batches_are_single_states():
    q, *_ = trees.state(MODEL, batch=(2, 3))
    found = frame_distance(MODEL, q, PAIRS)
    assert found.shape == (2, 3, 3)
    np.testing.assert_allclose(found[1, 2], frame_distance(MODEL, q[1, 2], PAIRS), rtol=1e-13)


def test_wrong_arguments():
    q, *_ = trees.state(MODEL)
    with pytest.raises(ValueError, match="at least one pair"):
        frame_distance(MODEL, q, [])
    with pytest.raises(ValueError, match="expected one of body0, body1, body2, got 'hand'"):
        frame_distance(MODEL, q, [(sphere("hand", (0.0, 0.0, 0.0), 0.1), PAIRS[0][0])])
    with pytest.raises(ValueError, match=r"end of a capsule on 'body0': expected shape \(3,\), got \(2,\)"):
        frame_distance(MODEL, q, [(Capsule("body0", (0.0, 0.0, 0.0), (0.0, 0.0), 0.1), PAIRS[0][0])])


@pytest.mark.slow
@pytest.mark.float32
def test_float32():
    model = trees.build(["revolute", "revolute"], [-1, 0], dtype=jnp.float32)
    q, *_ = trees.state(model)
    pairs = [(sphere("body1", (0.1, 0.0, 0.0), 0.1), Capsule(None, (1.0, 0.0, -1.0), (1.0, 0.0, 1.0), 0.1))]
    value, gradient = jax.value_and_grad(lambda q: frame_distance(model, q, pairs)[0])(q)
    assert value.dtype == gradient.dtype == jnp.float32
    assert np.all(np.isfinite(gradient))
    np.testing.assert_allclose(value, np.hypot(*(np.asarray(_tip(model, q))[:2] - [1.0, 0.0])) - 0.2, rtol=1e-5)


def _tip(model, q):
    return (forward_kinematics(model, q)[1] @ jnp.array([0.1, 0.0, 0.0, 1.0], q.dtype))[:3]
