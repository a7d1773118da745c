"""Workspace control against dense inverse dynamics by Pinocchio, and the second-order systems of its gains."""

import chex
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from lgsim import dynamics
from lgsim.formats.urdf import read_urdf
from lgsim.lie import quaternion
from lgsim.multibody import ModelBuilder, ModelError, joints
from lgsim.simulation import controls, rollout
from lgsim.systems.biped import biped, biped_feet, biped_gains, biped_stance
from tests.dynamics.machines import close
from tests.formats.robots import FOLDER, file
from tests.multibody.twin import Twin

GAINS = {
    "stiffness": jnp.array([[20.0, 2.0, 0.0], [2.0, 16.0, 1.0], [0.0, 1.0, 60.0]]),
    "damping": jnp.array([9.0, 8.0, 14.0]),
    "attitude": jnp.array([[60.0, 5.0, 0.0], [5.0, 50.0, 2.0], [0.0, 2.0, 40.0]]),
    "spin": jnp.array([14.0, 13.0, 12.0]),
}
POINTS = [f"{leg}_FOOT" for leg in ("LF", "RF", "LH", "RH")]


def quadruped():
    """(ANYmal, its stance, its feet)."""
    model, _ = read_urdf(FOLDER / file("anymal_b"), floating_base=True)
    q = model.neutral().at[2].set(0.5)
    for leg in ("LF", "RF", "LH", "RH"):
        sign = 1.0 if leg[1] == "F" else -1.0
        for joint, angle in (("HAA", 0.1 if leg[0] == "L" else -0.1), ("HFE", 0.7 * sign), ("KFE", -1.0 * sign)):
            q = q.at[model.q_slices[f"{leg}_{joint}"]].set(angle)
    return model, q, tuple(controls.PointFoot(name) for name in POINTS)


def standing(name):
    """(model, stance, feet) by a name."""
    if name == "quadruped":
        return quadruped()
    model = biped(ground=False)
    feet = biped_feet()
    return model, biped_stance(model), {"biped": feet, "one foot": feet[:1]}[name]


def state(model, q, seed=0, size=0.1):
    rng = np.random.default_rng(seed)
    moved = model.retract(q, jnp.asarray(size * rng.normal(size=model.nv), model.dtype))
    return moved, jnp.asarray(5 * size * rng.normal(size=model.nv), model.dtype)


def dense(model, q, v, feet, forces, settling, other):
    """(tau, wrenches, accelerations) of the whole machine by matrices of Pinocchio, least norm of the wrenches."""
    twin = Twin(model)
    P, D, Q, V = twin.pin, twin.data, twin.q(q), twin.v(v)
    pin.forwardKinematics(P, D, Q, V, np.zeros(P.nv))
    pin.computeJointJacobians(P, D, Q)
    M = pin.crba(P, D, Q)
    M, h = twin.matrix(np.triu(M) + np.triu(M, 1).T), twin.back(pin.nonLinearEffects(P, D, Q, V))
    tree, J, drift = model.topology, [], []
    for foot in feet:
        place = model.frame_names.index(foot.frame)
        body = place if place < tree.bodies else tree.frame_bodies[place - tree.bodies]
        T = np.eye(4) if place < tree.bodies else np.asarray(model.frames[place - tree.bodies])
        X, j = pin.SE3(T[:3, :3], T[:3, 3]).toActionMatrixInverse(), twin.ids[body]
        twist, rate = X @ D.v[j].vector, X @ D.a[j].vector
        rate = rate + settling * twist
        if not foot.held[3]:
            rate[:3] += np.cross(twist[3:], twist[:3])
        rows = np.array(foot.held)
        J.append((X @ pin.getJointJacobian(P, D, j, pin.LOCAL)[:, twin.v_index])[rows])
        drift.append(rate[rows])
    J, drift = np.vstack(J), np.concatenate(drift)
    a = np.array(other)
    a[:6] = forces.acceleration
    legs = np.any(J[:, 6:] != 0, axis=0).nonzero()[0] + 6
    a[legs] = 0
    a[legs] = np.linalg.solve(J[:, legs], -drift - J @ a)
    needed = M @ a + h
    pressed = np.linalg.lstsq(J[:, :6].T, needed[:6], rcond=None)[0]
    return needed - J.T @ pressed, pressed, a


@pytest.mark.slow
@pytest.mark.parametrize("name", ["biped", "quadruped", "one foot"])
def test_is_dense_inverse_dynamics(name):
    model, stance, feet = standing(name)
    law = controls.Workspace.from_model(model, stance, feet, settling=3.0, **GAINS)
    q, v = state(model, stance)
    found = law.forces(0.0, q, v, model)
    other = np.asarray(100.0 * model.difference(q, stance) - 20.0 * v)
    tau, pressed, a = dense(model, q, v, feet, found, 3.0, other)
    held = np.array([foot.held for foot in feet])
    close(found.tau[6:], tau[6:], 1e-9)
    assert np.abs(tau[:6]).max() < 1e-9 * np.abs(tau).max() and np.all(found.tau[:6] == 0)
    close(np.asarray(found.feet)[held], pressed, 1e-9)
    close(found.accelerations, a, 1e-9)
    assert np.abs(found.missing).max() < 1e-9 * np.abs(found.feet).max()
    # and the machine on feet that do not move accelerates so under these forces
    close(jnp.asarray(law(0.0, q, v, model)), found.tau, 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [controls.Workspace, controls.CentroidalFeedback])
def test_errors_obey_the_gains(kind):
    """The motion of the errors, from accelerations alone, is linear with the gains; of the attitude to first order."""
    model, stance, feet = standing("biped")
    law = kind.from_model(model, stance, feet, **GAINS)
    K, C = GAINS["stiffness"], jnp.diag(GAINS["damping"])
    q, v = state(model, stance, size=0.05)

    def point(q):
        if kind is controls.CentroidalFeedback:
            return dynamics.center_of_mass(model, q)
        pose = dynamics.forward_kinematics(model, q)[0]
        return pose[:3, :3] @ law.center + pose[:3, 3]

    def speed(q, v):
        return jax.jvp(point, (q,), (model.rate(q, v),))[1]

    # the feet at rest: the joints' rates follow from the base's
    J = jnp.concatenate([dynamics.frame_jacobian(model, q, foot.frame) for foot in feet])
    v = v.at[6:].set(jnp.linalg.solve(J[:, 6:], -J[:, :6] @ v[:6]))
    a = law.forces(0.0, q, v, model).accelerations
    goal = point(stance)
    rate = jax.jvp(speed, (q, v), (model.rate(q, v), a))[1]
    close(rate, -K @ (point(q) - goal) - C @ speed(q, v), 1e-9)

    def turning(x):
        q = stance.at[3:7].set(quaternion.compose(stance[3:7], quaternion.exp(x[:3])))
        return law.forces(0.0, q, jnp.zeros(model.nv).at[3:6].set(x[3:]), model).acceleration[3:]

    slopes = jax.jacfwd(turning)(jnp.zeros(6))
    close(slopes, np.hstack([-GAINS["attitude"] / 2, -np.diag(GAINS["spin"])]), 1e-9)
    # far from it either sign of the quaternion is the same attitude
    x = jnp.array([2.5, 0.4, -0.3, 0.0, 0.0, 0.0])
    q = stance.at[3:7].set(quaternion.compose(stance[3:7], quaternion.exp(x[:3])))
    still = jnp.zeros(model.nv)
    close(law(0.0, q, still, model), law(0.0, q.at[3:7].multiply(-1.0), still, model), 1e-12)


@pytest.mark.slow
def test_target_that_moves_is_followed():
    """On the target's own motion the feedback gives the target's acceleration, of the point and of the attitude."""
    model, stance, feet = standing("biped")
    V = jnp.array([0.1, -0.2, 0.05, 0.3, -0.1, 0.2])
    A = jnp.array([0.4, 0.1, -0.3, 0.2, 0.5, -0.6])
    law = controls.Workspace.from_model(model, stance, feet, target=lambda t: (stance[:7], V, A), **GAINS)
    found = law.forces(0.0, stance, jnp.zeros(model.nv).at[:6].set(V), model)
    close(found.acceleration, A, 1e-9)


@pytest.mark.slow
def test_legs_of_other_lengths_arms_and_armature():
    """A flat foot on a spherical hip and a slide, points on all but massless hips, an arm, a load, and rotors."""
    builder = ModelBuilder()
    builder.add_body("body", "world", joints.Free(), mass=8.0, inertia=np.diag([0.3, 0.2, 0.4]))
    rng = np.random.default_rng(3)
    body = {"mass": 0.7, "center": (0.02, 0.01, -0.1), "inertia": np.diag([4e-3, 5e-3, 2e-3]), "armature": 0.03}

    def at(x, y, z):
        T = np.eye(4)
        T[:3, 3] = x, y, z
        return T

    builder.add_body("a1", "body", joints.Spherical(), placement=at(0.3, 0, 0), **body)
    builder.add_body("a2", "a1", joints.Prismatic(), axis=(0, 0.1, 1), placement=at(0, 0, -0.3), **body)
    builder.add_body("a3", "a2", joints.Revolute(), axis=(0, 1, 0), **body)
    builder.add_body("a4", "a3", joints.Revolute(), axis=(1, 0, 0), **body)
    for leg, x, y in (("b", -0.2, 0.2), ("c", -0.2, -0.2)):
        light = {"mass": 1e-9, "inertia": 1e-12 * np.eye(3)}
        builder.add_body(f"{leg}1", "body", joints.Revolute(), axis=(1, 0, 0), placement=at(x, y, 0), **light)
        builder.add_body(f"{leg}2", f"{leg}1", joints.Revolute(), axis=(0, 1, 0), **body)
        builder.add_body(f"{leg}3", f"{leg}2", joints.Prismatic(), axis=(0, 0, 1), placement=at(0, 0, -0.3), **body)
    for name, parent in (("arm", "body"), ("load", "b2")):
        builder.add_body(name, parent, joints.Revolute(), axis=(0, 0.6, 0.8), placement=at(0.1, 0, 0.1), **body)
    for leg, last in (("a", "a4"), ("b", "b3"), ("c", "c3")):
        builder.add_frame(f"{leg}_tip", last, at(0, 0.02, -0.3))
    model = builder.build()
    stance = model.retract(model.neutral(), jnp.asarray(0.3 * rng.normal(size=model.nv)))
    flat = controls.FlatFoot("a_tip", front=0.1, back=0.1, side=0.05)
    feet = (flat, *(controls.PointFoot(f"{leg}_tip") for leg in "bc"))
    law = controls.Workspace.from_model(model, stance, feet, settling=2.0, **GAINS)
    q, v = state(model, stance)
    found = law.forces(0.0, q, v, model)
    other = np.asarray(100.0 * model.difference(q, stance) - 20.0 * v)
    tau, pressed, a = dense(model, q, v, feet, found, 2.0, other)
    close(found.tau[6:], tau[6:], 1e-9)
    close(np.asarray(found.feet)[np.array([foot.held for foot in feet])], pressed, 1e-9)
    close(found.accelerations, a, 1e-9)
    with pytest.raises(ModelError, match="posture: expected a configuration, since the joint 'load' leads to no foot"):
        eqx.tree_at(lambda law: law.posture, law, None)(0.0, q, v, model)


@pytest.mark.slow
def test_gradients_by_every_leaf_and_maps_over_gains():
    model, stance, feet = standing("biped")
    law = controls.Workspace.from_model(model, stance, feet, settling=3.0, **GAINS)
    q, v = state(model, stance)
    weights = jnp.asarray(np.random.default_rng(5).normal(size=model.nv))
    numbers, rest = eqx.partition((law, model), eqx.is_inexact_array)

    @jax.jit
    def value(numbers, q, v):
        law, model = eqx.combine(numbers, rest)
        return weights @ law(0.0, q, v, model)

    (gradient, _, by_v), eps = jax.grad(value, (0, 1, 2))(numbers, q, v), 1e-5
    chex.assert_tree_all_finite(gradient)
    leaves, tree = jax.tree.flatten(numbers)
    rng = np.random.default_rng(6)
    for i, leaf in enumerate(leaves):
        move = jnp.asarray(rng.normal(size=leaf.shape), leaf.dtype)
        move = jnp.where(jnp.isfinite(leaf), move, 0)
        sides = [value(tree.unflatten([*leaves[:i], leaf + s * eps * move, *leaves[i + 1 :]]), q, v) for s in (1, -1)]
        along = float(jnp.sum(jnp.where(move != 0, jax.tree.leaves(gradient)[i] * move, 0)))
        wanted = float(sides[0] - sides[1]) / (2 * eps)
        assert abs(along - wanted) < 1e-6 * max(1.0, abs(wanted)), (i, leaf.shape, along, wanted)
    move = jnp.asarray(rng.normal(size=model.nv))
    wanted = (value(numbers, q, v + eps * move) - value(numbers, q, v - eps * move)) / (2 * eps)
    close(by_v @ move, wanted, 1e-6)
    several = jax.vmap(lambda k: eqx.tree_at(lambda law: law.spin, law, k)(0.0, q, v, model))(jnp.array([10.0, 14.0]))
    close(several[1], eqx.tree_at(lambda law: law.spin, law, 14.0)(0.0, q, v, model), 1e-12)


@pytest.mark.slow
@pytest.mark.float32
def test_float32():
    model = biped(np.float32, ground=False)
    stance = biped_stance(model)
    law = controls.Workspace.from_model(model, stance, biped_feet(np.float32), **biped_gains(np.float32)._asdict())
    found = law.forces(0.0, stance, jnp.zeros(model.nv, np.float32), model)
    assert found.tau.dtype == np.float32
    weight = 9.81 * float(jnp.sum(model.inertias[:, 0]))
    assert abs(float(jnp.sum(found.feet[:, 2])) - weight) < 1e-3 * weight


@pytest.mark.slow
def test_biped_stands_after_a_push():
    """On soft ground, pushed by 120 N for 0.1 s: the study by midpoint steps and dense matrices travels 36 mm."""
    model = biped(slip_speed=0.02)
    q0 = biped_stance(model)
    sole = dynamics.forward_kinematics(model, q0)[model.frame_names.index("left_sole"), 0, 3]
    shift = (float(sole + 0.03 - dynamics.center_of_mass(model, q0)[0]), 0.0, 0.0)
    gains = biped_gains()._asdict()
    law = controls.CentroidalFeedback.from_model(model, q0, biped_feet(), shift=shift, settling=15.0, **gains)

    def wrenches(t, q, v, model):
        """120 N to the front on the body's origin."""
        push = jnp.where((t >= 0.2) & (t < 0.3), 120.0, 0.0)
        force = quaternion.Ad(q[3:7]).T @ jnp.stack([push, 0 * push, 0 * push])
        return jnp.zeros((model.topology.bodies, 6)).at[0, :3].set(force)

    run = jax.jit(
        lambda: rollout(
            model, q0, jnp.zeros(model.nv), dt=1.25e-4, steps=20_000, control=controls.MotorLimits(law),
            wrenches=wrenches, save_every=800,
        )
    )()  # fmt: skip
    travel = np.ptp(np.asarray(run.q[:, :3]), axis=0)
    assert abs(travel[0] - 0.036) < 1.5e-3 and travel[1] < 1e-4
    assert np.abs(run.v[-1, :6]).max() < 5e-3 and abs(run.q[-1, 2] - q0[2]) < 1e-3


@pytest.mark.slow
def test_singular_legs_are_named():
    model = biped(ground=False)
    straight = biped_stance(model, bend=0.0)
    law = controls.Workspace.from_model(model, biped_stance(model), biped_feet())
    with pytest.raises(ModelError, match=r"leg to 'left_sole' is singular: .* along the twist \(.*\)"):
        law.check(model, straight)
    bent, still = biped_stance(model), jnp.zeros(model.nv)
    assert np.all(np.isfinite(law(0.0, bent, still, model)))
    quad, stance, feet = quadruped()
    flat = controls.FlatFoot(POINTS[0], front=0.1, back=0.1, side=0.1)
    with pytest.raises(ModelError, match=f"leg to '{POINTS[0]}' is singular"):
        controls.Workspace.from_model(quad, stance, (flat, *feet[1:]))
    with pytest.raises(ModelError, match="2 feet together cannot press in all six directions"):
        controls.Workspace.from_model(quad, stance, (feet[0], feet[3]))
    # three feet, the fourth leg being in the air
    found = controls.Workspace.from_model(quad, stance, feet[:3]).forces(0.0, stance, jnp.zeros(quad.nv), quad)
    assert np.abs(found.missing).max() < 1e-9


def test_bad_input():
    model, stance, feet = standing("biped")

    def law(feet=feet, **gains):
        return controls.Workspace.from_model(model, stance, feet, **gains)

    with pytest.raises(ModelError, match="feet: expected at least one foot, got none"):
        law(())
    with pytest.raises(ValueError, match="expected the name of a frame, got 'left_soul'; did you mean 'left_sole'"):
        law((controls.PointFoot("left_soul"),))
    with pytest.raises(ModelError, match="'body', which is fixed to the central body 'body'"):
        law((controls.PointFoot("body"),))
    with pytest.raises(ModelError, match="got 'left_knee' and 'left_sole', which share the joint 'left_knee'"):
        law((feet[0], controls.PointFoot("left_knee")))
    for gain in (-1.0, jnp.array([1.0, 0.0, 1.0]), jnp.array([[1.0, 2, 0], [0, 1, 0], [0, 0, 1]])):
        with pytest.raises(ValueError, match="spin: expected a symmetric positive definite gain"):
            law(spin=gain)
    with pytest.raises(ValueError, match=r"stiffness: expected a number, shape \(3,\) or \(3, 3\), got \(2,\)"):
        law(stiffness=jnp.ones(2))
    arm = ModelBuilder().add_body("link", "world", joints.Revolute(), mass=1.0, inertia=np.eye(3)).build()
    with pytest.raises(ModelError, match="expected a model with a floating base"):
        controls.Workspace.from_model(arm, arm.neutral(), feet)
