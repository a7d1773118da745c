"""A plant's signals against formulas by hand, and the numbers in which they are affine."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.identify.recording.coordinates import dof_names
from lgsim.identify.unknowns.plant import Plant
from tests.identify import arms

PENDULUM = """<robot name="p"><link name="world_link"/><link name="rod"><inertial><origin xyz="0 0 -0.5"/>
<mass value="3"/><inertia ixx="0.1" iyy="0.2" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="world_link"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>
"""


def test_signals_of_a_pendulum_are_the_formula():
    """Inertia, gravity, damper, dry friction with its Stribeck part, offset and scale."""
    model = lgsim.formats.read_urdf(text=PENDULUM)[0]
    model = model.replace(armature=0.3, damping=0.7, friction=0.4, friction_speed=0.05)
    plant = Plant(model, scale=2.5, offset=-0.6, stribeck=0.25, stribeck_speed=0.2)
    q, v, a = (np.array(x)[:, None] for x in ([0.3, -1.2, 2.0], [0.11, -0.4, 0.0], [2.0, -1.0, 0.5]))
    inertia = 0.2 + 3 * 0.25 + 0.3
    dry = (0.4 + 0.25 * np.exp(-((v / 0.2) ** 2))) * np.tanh(v / 0.05)
    tau = inertia * a + 3 * 9.81 * 0.5 * np.sin(q) + 0.7 * v + dry
    forces, signals = jax.jit(lambda *state: (plant.joint_forces(*state), plant.signals(*state)))(q, v, a)
    np.testing.assert_allclose(forces, tau, rtol=1e-12)
    np.testing.assert_allclose(signals, (tau - 0.6) / 2.5, rtol=1e-12)


def test_numbers_are_those_in_which_signals_are_affine():
    plant = Plant(arms.planar(damping=0.2, friction=0.3, armature=0.1, stiffness=0.5), offset=0.1, stribeck=0.05)
    states = arms.states(plant.model, 5)
    theta = np.asarray(plant.dynamic_parameters)
    assert theta.shape == (2 * 10 + 6 * 2,) and len(plant.dynamic_parameter_names) == 32
    assert plant.dynamic_parameter_names[0] == "m of upper"
    assert plant.dynamic_parameter_names[-1] == "offset of elbow"
    step = np.random.default_rng(0).normal(size=32)

    @jax.jit
    def at(theta):
        moved = plant.with_dynamic_parameters(theta)
        return moved.signals(*states), moved.dynamic_parameters, moved.model.friction, moved.offset

    (one, numbers, friction, offset), (two, *_), (base, same, *_) = (at(theta + k * step) for k in (1, 2, 0))
    np.testing.assert_array_equal(same, theta)
    np.testing.assert_array_equal(numbers, theta + step)
    np.testing.assert_allclose(np.asarray(two) - base, 2 * (np.asarray(one) - base), atol=1e-12)
    np.testing.assert_allclose(friction - np.asarray(plant.model.friction), step[24:26])
    np.testing.assert_allclose(offset - np.asarray(plant.offset), step[30:])


def test_degrees_of_freedom_of_joints_with_several_are_counted():
    ball = lgsim.ModelBuilder().add_body("ball", "world", lgsim.joints.Spherical(), mass=1.0, inertia=jnp.eye(3))
    assert dof_names(ball.build()) == ["ball[0]", "ball[1]", "ball[2]"]


def test_what_does_not_fit_is_named(without_import_hook):
    with pytest.raises(TypeError, match=r"model: expected an lgsim.Model, got str"):
        Plant("arm")
    with pytest.raises(ValueError, match=r"offset: expected a scalar or shape \(2,\).*got \(3,\)"):
        Plant(arms.planar(), offset=jnp.zeros(3))
