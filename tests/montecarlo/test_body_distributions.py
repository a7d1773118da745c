"""Dispersed masses and poses, distances, failures, and the law that hovers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import lgsim
from lgsim import controls
from lgsim import montecarlo as mc
from lgsim.multibody import inertia
from tests.montecarlo import studies


def test_masses_scale_bodies_and_keep_their_shapes(key):
    """Center of mass and radii of gyration stay; every sample is a body that can exist."""
    model = studies.tumbling()
    of = mc.Uniform(jnp.array([1.0, 0.4]), jnp.array([3.0, 0.6]))
    distribution = mc.MassDispersion(model.inertias, of)
    z = jax.random.normal(key, (200, distribution.dim))
    found = np.asarray(jax.vmap(distribution)(z))
    np.testing.assert_allclose(found[:, :, 0], jax.vmap(of)(z), rtol=1e-14)
    own = np.asarray(model.inertias)
    np.testing.assert_allclose(found / found[:, :, :1], np.broadcast_to(own / own[:, :1], found.shape), atol=1e-15)
    assert not [row for row in found.reshape(-1, 10) if inertia.defect(row)]
    assert found[:, 0, 0].min() < 1.2 and found[:, 0, 0].max() > 2.8


def test_a_body_without_mass_keeps_none():
    parameters = np.zeros((2, 10))
    parameters[1] = np.asarray(studies.pendulum().inertias[0])
    found = mc.MassDispersion(parameters, mc.LogNormal(jnp.array([0.0, 2.0]), 0.1))(jnp.array([1.0, 1.0]))
    np.testing.assert_array_equal(found[0], np.zeros(10))
    assert float(found[1, 0]) == pytest.approx(2 * np.exp(0.1))


OWN = np.asarray([[2.0, 0, 0, 0, 1, 0, 1, 0, 0, 1]])
BAD = {
    "normal": (
        lambda: mc.MassDispersion(OWN, mc.Normal(jnp.ones(1), 0.1)),
        "masses: a normal distribution has negative values",
    ),
    "negative": (
        lambda: mc.MassDispersion(OWN, mc.Uniform(-jnp.ones(1), jnp.ones(1))),
        "masses: expected positive numbers, got -1",
    ),
    "inertia": (
        lambda: mc.MassDispersion(OWN * [1, 0, 0, 0, 9, 0, 1, 0, 0, 1], mc.LogNormal(jnp.ones(1), 0.1)),
        "parameters: body 0 has a non-physical inertia",
    ),
    "bodies": (lambda: mc.MassDispersion(OWN, mc.LogNormal(jnp.ones(2), 0.1)), r"masses: expected shape \(1,\)"),
    "poses": (lambda: mc.PoseDispersion(jnp.eye(4), 0.1), r"expected shape \(poses, 4, 4\), got \(4, 4\)"),
    "width": (lambda: mc.PoseDispersion(jnp.eye(4)[None], -0.1), "expected finite nonnegative numbers"),
    "base": (
        lambda: controls.Hover.from_model(studies.pendulum(), jnp.zeros(3)),
        "expected a model with a floating base",
    ),
    "bodies that hover": (
        lambda: controls.Hover.from_model(studies.tumbling(), jnp.zeros(3)),
        "expected a single body, got 2",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case, without_import_hook):
    make, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        make()


def test_poses_are_moved_along_their_own_axes():
    """Against SciPy's rotations; zero leaves all where it is."""
    mean = np.broadcast_to(np.eye(4), (2, 4, 4)).copy()
    mean[0, :3, :3] = Rotation.from_rotvec([0.3, -1.0, 0.4]).as_matrix()
    mean[0, :3, 3] = [1, 2, 3]
    std = np.array([[0, 0, 0, 0.1, 0.2, 0.3], [1e-3, 2e-3, 3e-3, 0, 0, 0]])
    distribution = mc.PoseDispersion(mean, std)
    np.testing.assert_allclose(distribution(jnp.zeros(12)), mean, atol=1e-15)
    found = np.asarray(distribution(jnp.ones(12)))
    np.testing.assert_allclose(found[0, :3, :3], mean[0, :3, :3] @ Rotation.from_rotvec([0.1, 0.2, 0.3]).as_matrix(),
                               atol=1e-14)  # fmt: skip
    np.testing.assert_allclose(found[0, :3, 3], [1, 2, 3], atol=1e-14)
    np.testing.assert_allclose(found[1, :3, 3], [1e-3, 2e-3, 3e-3], atol=1e-15)


@pytest.fixture(scope="module")
def flight():
    """A quadrotor that flies from one place to another, turned at the start."""
    model = lgsim.load_urdf(lgsim.data.quadrotor(), floating_base=True)
    turned = Rotation.from_rotvec([0.2, -0.3, 0.5]).as_quat(scalar_first=True)
    q = jnp.concatenate([jnp.array([0.4, -0.2, 1.7]), jnp.asarray(turned)])
    law = controls.Hover.from_model(model, jnp.array([0.0, 0.0, 2.0]), thrust_limit=25.0, attitude=150.0, spin=22.0)
    rollout = mc.Rollout(model, q, dt=0.02, steps=500, control=law, save_every=10)
    return jax.jit(lambda: rollout({})[1:5])(), rollout


def test_the_law_brings_the_quadrotor_to_its_place(flight):
    """There, upright, at rest, with the weight as thrust; sideways it pushes nothing at any time."""
    (_, q, v, tau), rollout = flight
    np.testing.assert_allclose(q[-1, :3], [0, 0, 2], atol=1e-4)
    np.testing.assert_allclose(v[-1], np.zeros(6), atol=1e-3)
    np.testing.assert_allclose(tau[-1], [0, 0, 1.2 * 9.81, 0, 0, 0], atol=1e-2)
    np.testing.assert_array_equal(tau[:, :2], 0)
    assert np.all((tau[:, 2] >= 0) & (tau[:, 2] <= 25))
    R = Rotation.from_quat(np.asarray(q[-1, 3:]), scalar_first=True).as_matrix()
    np.testing.assert_allclose(R, np.eye(3), atol=1e-3)  # heading zero too
    assert {"control.stiffness", "control.mass", "control.place"} <= set(rollout.names())


def test_distances_and_failures(flight):
    """The largest distance over the saved states, the one at the end; what lies outside of an interval."""
    parts, rollout = flight
    motion = mc.SampledMotion(rollout.model, *parts)
    point = np.array([0.1, 0.0, 2.0])
    apart = np.linalg.norm(np.asarray(motion.q[:, :3]) - point, axis=1)
    np.testing.assert_allclose(mc.outputs.LargestDistance("hull", point)(motion), apart.max(), rtol=1e-14)
    np.testing.assert_allclose(mc.outputs.FinalDistance("hull", point)(motion), apart[-1], rtol=1e-14)
    np.testing.assert_allclose(mc.outputs.FinalPosition("hull")(motion), motion.q[-1, :3], rtol=1e-14)
    columns = {"x": jnp.array([[1.0, 5.0], [2.0, -3.0]])}
    for entry, low, high, wanted in ((None, -4, 6, False), (None, -4, 4, True), (0, -4, 4, False), (3, -2, 9, True)):
        assert bool(mc.outputs.OutOfBounds("x", entry, low, high)(columns)) == wanted
