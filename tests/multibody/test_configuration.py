"""The configuration space of a machine with every type of joint, and derivatives in its tangent space."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from lgsim.multibody import ModelBuilder, joints, tangent_grad, tangent_hessian, tangent_jacobian
from tests.dynamics.machines import mimicking
from tests.lie.structures import Compiled
from tests.multibody import trees
from tests.multibody.twin import Twin

ALL = list(trees.KINDS)


@pytest.fixture(scope="module")
def model():
    """Every joint, and the kinds whose numbers do not lie side by side twice."""
    kinds = [*ALL, "spherical", "revolute"]
    return trees.build(kinds, [-1, *(i // 2 for i in range(len(kinds) - 1))])


@pytest.fixture(scope="module")
def compiled(model):
    """The model's methods, each a program."""
    return Compiled(model)


def some(model, shape=(), seed=0):
    key = jax.random.key(seed)
    return model.random(key, shape), 0.7 * jax.random.normal(key, (*shape, model.nv), model.dtype)


def joint_parts(model):
    for joint, name in zip(model.topology.joints, model.joint_names, strict=True):
        yield joint, model.q_slices[name], model.v_slices[name]


def test_slices_tile_q_and_v(model):
    q, v = np.arange(model.nq), np.arange(model.nv)
    np.testing.assert_array_equal(np.concatenate([q[s] for s in model.q_slices.values()]), q)
    np.testing.assert_array_equal(np.concatenate([v[s] for s in model.v_slices.values()]), v)
    for joint, in_q, in_v in joint_parts(model):
        assert (in_q.stop - in_q.start, in_v.stop - in_v.start) == (joint.nq, joint.nv)


def test_neutral_is_that_of_the_joints(model):
    q = model.neutral()
    assert q.dtype == model.dtype
    for joint, in_q, _ in joint_parts(model):
        np.testing.assert_array_equal(q[in_q], joint.neutral)


@pytest.mark.slow
def test_random_keeps_limits_shapes_and_seeds(key):
    builder = ModelBuilder()
    builder.add_body("a", "world", joints.Revolute(), lower=-0.1, upper=0.3, mass=1.0)
    builder.add_body("b", "a", joints.Prismatic(), lower=2.0, mass=1.0)  # without an upper one: as if there were none
    builder.add_body("c", "b", joints.Universal(), lower=[-1.0, 5.0], upper=[1.0, 6.0], mass=1.0)
    builder.add_body("d", "c", joints.Spherical(), lower=-0.1, upper=0.1, mass=1.0)
    builder.add_body("e", "d", joints.Continuous(), mass=1.0)
    model = builder.build()
    q = np.asarray(model.random(key, (50, 20)))
    assert q.shape == (50, 20, model.nq) and model.random(key).shape == (model.nq,)
    for place, lower, upper in [(0, -0.1, 0.3), (2, -1, 1), (3, 5, 6), (8, -np.pi, np.pi)]:
        low, high = q[..., place].min(), q[..., place].max()
        assert lower <= low < lower + 0.02 * (upper - lower) and upper - 0.02 * (upper - lower) < high <= upper
    assert q[..., 1].min() < -2 and q[..., 1].max() > 2
    np.testing.assert_allclose(np.linalg.norm(q[..., 4:8], axis=-1), 1, atol=1e-15)
    assert np.linalg.norm(q[..., 5:8], axis=-1).max() > 0.99  # limits of a ball's velocities bound no quaternion
    np.testing.assert_array_equal(q, model.random(key, (50, 20)))
    assert np.abs(q - np.asarray(model.random(jax.random.key(1), (50, 20)))).max() > 1


@pytest.mark.slow
def test_random_draws_joints_apart(model):
    q = np.asarray(jax.jit(lambda key: model.random(key, (300,)))(jax.random.key(2)))
    assert np.abs(np.corrcoef(q.T) - np.eye(model.nq)).max() < 0.3


@pytest.mark.slow
def test_retract_and_difference_equal_pinocchio(model, compiled):
    twin = Twin(model)
    q0, dv = some(model)
    q1 = compiled.retract(q0, dv)
    right = pin.integrate(twin.pin, twin.q(q0), twin.v(dv))
    found = twin.q(q1)
    np.testing.assert_allclose(found * np.sign(np.where(found * right < 0, -1, 1)), right, rtol=0, atol=1e-14)
    back = twin.back(pin.difference(twin.pin, twin.q(q0), twin.q(q1)))
    np.testing.assert_allclose(compiled.difference(q0, q1), back, rtol=0, atol=1e-13)
    np.testing.assert_allclose(back, dv, rtol=0, atol=1e-13)


@pytest.mark.slow
def test_steps_at_rest_and_ends_of_a_way(model, compiled):
    q0, dv = some(model)
    q1 = compiled.retract(q0, dv)
    for q in (q0, model.neutral()):
        np.testing.assert_allclose(compiled.retract(q, jnp.zeros(model.nv)), q, rtol=0, atol=1e-15)
        np.testing.assert_allclose(compiled.difference(q, q), np.zeros(model.nv), rtol=0, atol=1e-15)
    np.testing.assert_allclose(compiled.interpolate(q0, q1, 0.0), q0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(compiled.interpolate(q0, q1, 1.0), q1, rtol=0, atol=1e-14)
    half = compiled.interpolate(q0, q1, 0.5)
    for a, b in ((q0, half), (half, q1)):
        np.testing.assert_allclose(compiled.difference(a, b), dv / 2, rtol=0, atol=1e-14)


@pytest.mark.slow
def test_ways_take_an_array_of_parameters(model, compiled):
    """Five points on one way, and one point on each of three."""
    q0, dv = some(model, (3,))
    q1 = compiled.retract(q0, dv)
    s = jnp.linspace(0.0, 1.0, 5)
    found = jax.jit(jax.vmap(lambda s: model.interpolate(q0[0], q1[0], s)))(s)
    assert found.shape == (5, model.nq)
    np.testing.assert_allclose(compiled.difference(found[0], found[1]), dv[0] / 4, rtol=0, atol=1e-14)
    each = compiled.interpolate(q0, q1, jnp.array([0.0, 0.5, 1.0])[:, None])
    np.testing.assert_allclose(compiled.difference(q0[1], each[1]), dv[1] / 2, rtol=0, atol=1e-14)


def test_rate_and_velocity_are_inverse(model, compiled):
    q, v = some(model)
    dq = compiled.rate(q, v)
    assert dq.shape == (model.nq,)
    slope = jax.jvp(lambda s: compiled.retract(q, s * v), (0.0,), (1.0,))[1]
    np.testing.assert_allclose(dq, slope, rtol=0, atol=1e-14)
    np.testing.assert_allclose(compiled.velocity(q, dq), v, rtol=0, atol=1e-14)


VERBS = ("retract", "difference", "rate", "velocity")


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_batches_are_single_states(model, verb):
    q, v = some(model, (2, 3))
    q1, _ = some(model, (2, 3), seed=1)
    second = v if verb in ("retract", "rate") else q1
    f = jax.jit(getattr(model, verb))
    found = f(q, second)
    assert found.shape == (2, 3, model.nq if verb in ("retract", "rate") else model.nv)
    for i, j in np.ndindex(2, 3):
        np.testing.assert_allclose(found[i, j], f(q[i, j], second[i, j]), rtol=0, atol=1e-14)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.vmap(f)))(q, second), found, rtol=0, atol=1e-14)
    np.testing.assert_allclose(f(q[0, 0], second)[1, 2], f(q[0, 0], second[1, 2]), rtol=0, atol=1e-14)


def test_lengths_and_dtypes_are_checked(model):
    q, v = some(model)
    with pytest.raises(ValueError, match=rf"dv: expected shape \(\.\.\., {model.nv}\), got \({model.nq},\)"):
        model.retract(q, q)
    with pytest.raises(ValueError, match=rf"q0: expected shape \(\.\.\., {model.nq}\)"):
        model.difference(v, q)
    with pytest.raises(TypeError, match="q and v: expected one dtype"):
        model.rate(q, v.astype(jnp.float32))


def test_joints_that_mimic_have_no_numbers():
    model = mimicking()
    q = model.random(jax.random.key(0), (4,))
    assert q.shape == (4, 2) and model.neutral().shape == (2,)
    assert model.q_slices["joint2"] == slice(2, 2)
    np.testing.assert_array_equal(model.retract(q, q), 2 * q)


@pytest.mark.slow
@pytest.mark.float32
def test_float32():
    model = trees.build(["free", "spherical", "helical"], [-1, 0, 1], dtype=jnp.float32)
    q, v = some(model)
    end = model.retract(q, v)
    for x in (model.neutral(), q, end, model.difference(q, end), model.rate(q, v), model.interpolate(q, end, 0.5)):
        assert x.dtype == jnp.float32
    np.testing.assert_allclose(model.difference(q, end), v, rtol=0, atol=1e-5)


@pytest.fixture(scope="module")
def small():
    return trees.build(["free", "spherical", "planar", "revolute"], [-1, 0, 1, 2])


def height(q):
    """A smooth function of poses: even in each quaternion."""
    p, a, b, rest = q[:3], q[3:7], q[7:11], q[11:]
    return p @ p * a[1] * a[2] + jnp.sin(p[0]) * b[0] * b[3] + a[0] * a[3] * jnp.cos(rest @ rest)


def differences(f, model, q, step):
    """Central differences along the axes of the tangent space, with Pinocchio's steps."""
    twin = Twin(model)

    def moved(dv):
        end = pin.integrate(twin.pin, twin.q(q), twin.v(dv))
        turned = [*end[:3], end[6], *end[3:6], end[10], *end[7:10]]
        planar = [*end[11:13], np.asarray(q)[13] + dv[11]]
        return np.array([*turned, *planar, end[15]])

    f = jax.jit(f)
    return np.array([(f(moved(step * e)) - f(moved(-step * e))) / (2 * step) for e in np.eye(model.nv)])


@pytest.mark.slow
def test_tangent_derivatives_are_differences_on_the_manifold(small):
    q, _ = some(small)
    gradient = jax.jit(lambda q: tangent_grad(height, small, q))
    assert gradient(q).shape == (small.nv,)
    np.testing.assert_allclose(gradient(q), differences(height, small, q, 1e-5), rtol=0, atol=1e-8)

    def vector(q):
        return jnp.stack([height(q), jnp.sin(height(q)), q[3] * q[4], q[13] ** 2]).reshape(2, 2)

    J = jax.jit(lambda q: tangent_jacobian(vector, small, q))(q)
    assert J.shape == (2, 2, small.nv)
    right = np.moveaxis(differences(vector, small, q, 1e-5), 0, -1)
    np.testing.assert_allclose(J, right, rtol=0, atol=1e-7)


@pytest.fixture(scope="module")
def hessian(small):
    return jax.jit(lambda q: tangent_hessian(height, small, q))


@pytest.fixture(scope="module")
def height_along(small):
    return jax.jit(jax.vmap(lambda q, dv: height(small.retract(q, dv)), (None, 0)))


@pytest.mark.slow
@pytest.mark.typed
@pytest.mark.parametrize("where", ["random", "neutral"])
def test_tangent_hessian(small, hessian, height_along, where):
    """In exponential coordinates: symmetric, and along each direction the second difference."""
    q = small.neutral() if where == "neutral" else some(small)[0]
    H = np.asarray(hessian(q))
    assert H.shape == (small.nv, small.nv)
    np.testing.assert_allclose(H, H.T, rtol=0, atol=1e-14)
    step, rng = 1e-4, np.random.default_rng(1)
    for e in rng.normal(size=(6, small.nv)):
        plus, middle, minus = height_along(q, jnp.asarray([step * e, 0 * e, -step * e]))
        np.testing.assert_allclose(e @ H @ e, (plus - 2 * middle + minus) / step**2, rtol=0, atol=2e-6 * (1 + e @ e))


def test_a_quaternions_norm_has_no_tangent(small):
    """A function of poses alone has the same tangent gradient however it treats norms (raisim #33)."""
    q, _ = some(small)

    def of_pose(q):
        return height(q.at[3:7].divide(jnp.linalg.norm(q[3:7])))

    found, right = jax.jit(lambda q: [tangent_grad(f, small, q) for f in (of_pose, height)])(q)
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-13)
