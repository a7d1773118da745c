"""The ball by three angles against the paper's matrices, and what its singularity does."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.dynamics.forward_dynamics import forward_dynamics
from lgsim.dynamics.passive_forces import passive_forces
from lgsim.lie import conversions
from lgsim.multibody import joints
from lgsim.multibody.builder import ModelBuilder
from lgsim.multibody.model import Model

PAPER = json.loads((Path(__file__).parents[2] / "data" / "kwatny_blankenship.json").read_text())
DISK = {name: np.array(PAPER["disk"][name], float) for name in ("t", "Gamma", "X_R", "H")}
JOINT = joints.SphericalAngles()
INERTIA = np.diag([0.02, 0.03, 0.045])


def balls() -> tuple[Model, Model]:
    """A body on the joint, and the same on quaternions."""
    return tuple(
        ModelBuilder().add_body("top", "world", joint, mass=1.2, center=[0.1, 0.05, -0.2], inertia=INERTIA).build()
        for joint in (JOINT, joints.Spherical())
    )


def columns(verb):
    return np.stack([jnp.stack(getattr(JOINT, verb)(list(jnp.asarray(DISK["t"])), list(e))) for e in jnp.eye(3)], 1)


def test_the_matrices_of_the_paper():
    np.testing.assert_allclose(columns("rate"), DISK["Gamma"], rtol=0, atol=1e-15)
    np.testing.assert_allclose(columns("velocity"), DISK["H"], rtol=0, atol=1e-15)
    R = JOINT.transform(list(jnp.asarray(DISK["t"]))).R
    np.testing.assert_allclose([list(row) for row in R], DISK["X_R"], rtol=0, atol=1e-15)


def quaternions(q):
    return conversions.quaternion_from_matrix(jnp.stack([jnp.stack([*row]) for row in JOINT.transform(list(q)).R]))


@pytest.mark.parametrize("q2", [0.4, 2.0, -2.5])
def test_moves_as_a_ball_does_on_both_sides_of_the_poles(q2):
    """Accelerations, and a second of motion by small steps, are those of the same body on quaternions."""
    angles, ball = balls()
    q, v = jnp.array([3.0, q2, -2.0]), jnp.array([0.3, -0.5, 0.7])
    tau = jnp.array([0.1, -0.2, 0.3])
    np.testing.assert_allclose(
        forward_dynamics(angles, q, v, tau), forward_dynamics(ball, quaternions(q), v, tau), rtol=1e-12
    )
    end, right = q, quaternions(q)
    for _ in range(20):
        end, right = angles.retract(end, 0.1 * v), ball.retract(right, 0.1 * v)
    np.testing.assert_allclose(ball.difference(right, quaternions(end)), np.zeros(3), atol=1e-13)


def test_angles_are_not_wrapped():
    angles, _ = balls()
    q = jnp.zeros(3)
    for _ in range(100):
        q = angles.retract(q, jnp.array([0.0, 0.0, 0.1]))
    np.testing.assert_allclose(q, [0, 0, 10.0], atol=1e-13)


def test_a_step_over_the_pole_keeps_the_pose_and_the_side():
    angles, ball = balls()
    q, dv = jnp.array([0.2, 1.5, 0.3]), jnp.array([0.1, 0.4, 0.05])
    end = angles.retract(q, dv)
    assert np.cos(end[1]) > 0 and abs(end[0] - q[0]) > 2
    right = ball.retract(quaternions(q), dv)
    np.testing.assert_allclose(ball.difference(right, quaternions(end)), np.zeros(3), atol=1e-14)


def test_the_pole_is_not_hidden():
    """Rates grow as 1/cos q2 and are infinite where the cosine is zero; accelerations know no pole."""
    for gap in (1e-3, 1e-6):
        rates = jnp.stack(JOINT.rate([*jnp.array([0.0, np.pi / 2 - gap, 0.0])], [*jnp.array([0.0, 0.0, 1.0])]))
        np.testing.assert_allclose(rates[2] * gap, 1, rtol=1e-6)
    zero = jnp.zeros(())
    poled = [zero, jnp.asarray(np.pi / 2), zero]
    assert abs(JOINT.rate(poled, [zero, zero, zero + 1])[2]) > 1e15
    angles, ball = balls()
    q, v = jnp.stack(poled), jnp.array([0.3, -0.5, 0.7])
    a = forward_dynamics(angles, q, v, jnp.zeros(3))
    np.testing.assert_allclose(a, forward_dynamics(ball, quaternions(q), v, jnp.zeros(3)), rtol=1e-12)


def test_springs_pull_about_the_axes_of_the_angles():
    """The torque of springs on the angles is minus the slope of their energy along the joint's motion."""
    model = ModelBuilder(gravity=[0, 0, 0]).add_body(
        "top", "world", JOINT, mass=1.0, inertia=INERTIA, stiffness=[2.0, 3.0, 5.0], rest=[0.1, 0.2, -0.3]
    ).build()  # fmt: skip
    q = jnp.array([0.6, -0.8, 1.1])

    def energy(dv):
        x = model.retract(q, dv) - jnp.array([0.1, 0.2, -0.3])
        return jnp.array([2.0, 3.0, 5.0]) @ x**2 / 2

    np.testing.assert_allclose(passive_forces(model, q, jnp.zeros(3)), -jax.grad(energy)(jnp.zeros(3)), rtol=1e-12)
