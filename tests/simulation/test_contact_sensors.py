"""Force plates and foot switches against weights, levers and the law."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import contacts, joints, sensors
from tests.dynamics.contact_machines import ball
from tests.multibody import trees

G = 9.81
STIFFNESS = 4e4


def block(offset=(0.0, 0.0), frame=None):
    """A block of 2 kg and 0.2 x 0.3 x 0.1 m on four corners, its center of mass off its middle."""
    builder = lgsim.ModelBuilder()
    builder.add_body("block", "world", joints.Free(), mass=2.0, center=(*offset, 0.0), inertia=0.02 * np.eye(3))
    builder.add_frame("plate", "world", np.eye(4) if frame is None else frame)
    builder.add_contact("sole", "block", contacts.box(0.2, 0.3, 0.1), stiffness=STIFFNESS, friction=0.5)
    builder.add_contact("bump", "block", contacts.sphere(0.01), stiffness=STIFFNESS)
    return builder.build()


def resting():
    """The state in which a block with its center of mass in the middle rests: four corners of equal depth."""
    depth = (2.0 * G / (4 * STIFFNESS)) ** (2 / 3)
    return jnp.array([0.4, -0.2, 0.05 - depth, 1, 0, 0, 0.0]), jnp.zeros(6)


@pytest.mark.slow
def test_a_block_at_rest_weighs_what_it_weighs():
    found = sensors.force_plate(block(), "sole", *resting())
    np.testing.assert_allclose(found.force, [0, 0, 2 * G], atol=1e-12)
    np.testing.assert_allclose(found.center, [0.4, -0.2], rtol=1e-12)
    np.testing.assert_allclose(found.moment, [-0.2 * 2 * G, -0.4 * 2 * G, 0], atol=1e-12)


def test_a_plate_is_read_in_its_own_frame():
    """The same wrench by the transformation of a force and its moment, on a plate anywhere."""
    T = trees.pose(np.random.default_rng(0))
    (q, _), v = resting(), jnp.array([0.3, -0.1, -0.2, 0.5, 0.4, 0.3])
    world, own = (sensors.force_plate(block(frame=T), "sole", q, v, name) for name in ("world", "plate"))
    assert np.abs(world.force[:2]).min() > 0.1
    np.testing.assert_allclose(own.force, T[:3, :3].T @ world.force, rtol=1e-12)
    moved = world.moment - np.cross(T[:3, 3], world.force)
    np.testing.assert_allclose(own.moment, T[:3, :3].T @ moved, rtol=1e-12)
    lever = np.cross([*own.center, 0.0], own.force)
    np.testing.assert_allclose(lever[:2], own.moment[:2], rtol=1e-12)


def test_the_load_is_between_the_corners_that_carry_it():
    """A block tipped onto two corners: the center is between them."""
    q = jnp.array([0.0, 0, 0.06, np.cos(0.1), np.sin(0.1), 0, 0])
    y, z = -0.15, -0.05  # of the lower edge in the block
    right = y * np.cos(0.2) - z * np.sin(0.2)
    found = sensors.force_plate(block(), "sole", q, jnp.zeros(6))
    assert found.force[2] > 0
    np.testing.assert_allclose(found.center, [0, right], atol=1e-12)


@pytest.mark.slow
def test_a_plate_without_a_load_has_finite_slopes():
    model, v = block(), jnp.zeros(6)
    q = jnp.array([0.0, 0, 1.0, 1, 0, 0, 0])
    found = sensors.force_plate(model, ["sole", "bump"], q, v)
    assert all(np.all(np.asarray(x) == 0) for x in found)
    slopes = jax.jacfwd(lambda q, v: sensors.force_plate(model, "sole", q, v), argnums=(0, 1))(q, v)
    chex.assert_tree_all_finite(slopes)


@pytest.mark.slow
def test_several_contacts_add_up_and_batches_keep_their_shape():
    model = block()
    (q, _), v = resting(), jnp.array([0.3, -0.1, -0.2, 0.5, 0.4, 0.3])
    q = jnp.stack([q.at[2].set(z) for z in (0.005, 0.02)])
    both, one, other = (sensors.force_plate(model, names, q, v) for names in (("sole", "bump"), "sole", "bump"))
    np.testing.assert_allclose(both.force, one.force + other.force, rtol=1e-12)
    assert both.force.shape == (2, 3) and both.center.shape == (2, 2)
    assert sensors.foot_switch(model, "sole", q, v).shape == (2,)


@pytest.mark.parametrize("load", [0.0, 0.5, 2.0, 50.0])
def test_a_switch_is_half_on_at_its_threshold(load):
    """A ball pressed so deep that the law gives the load."""
    model = ball(0.05, stiffness=STIFFNESS)
    q = model.neutral().at[2].set(0.05 - (load / STIFFNESS) ** (2 / 3))
    found = sensors.foot_switch(model, "sole", q, jnp.zeros(6), threshold=2.0)
    np.testing.assert_allclose(found, load**2 / (load**2 + 4.0), rtol=1e-9, atol=1e-30)
    slope = jax.grad(lambda q: sensors.foot_switch(model, "sole", q, jnp.zeros(6), threshold=2.0))(q)
    stiffness = 1.5 * load / (load / STIFFNESS) ** (2 / 3) if load else 0.0  # the slope of the load by the depth
    np.testing.assert_allclose(slope[2], -2 * load * 4.0 / (load**2 + 4) ** 2 * stiffness, rtol=1e-8)


def test_bad_input():
    model, (q, v) = block(), resting()
    with pytest.raises(ValueError, match="contacts: expected names of contacts, got 'soul'; did you mean 'sole'"):
        sensors.force_plate(model, "soul", q, v)
    with pytest.raises(ValueError, match="contacts: expected the name of a contact or of several, got none"):
        sensors.foot_switch(model, (), q, v)
    with pytest.raises(ValueError, match="threshold: expected a positive number of N, got 0"):
        sensors.foot_switch(model, "sole", q, v, threshold=0.0)
    with pytest.raises(ValueError, match="plat"):
        sensors.force_plate(model, "sole", q, v, "plat")
