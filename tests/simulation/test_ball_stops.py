"""Swing, angle and twist of a ball joint held within limits, against angles and potentials by scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import lgsim
from lgsim.dynamics.energy import spring_energy
from lgsim.multibody import ModelError, joints
from lgsim.simulation import simulate
from tests.dynamics.machines import close

LIMITS = {"lower": [-np.inf, -np.inf, -0.3], "upper": [0.8, 1.9, 1.1]}
STIFFNESS = [40.0, 15.0, 25.0]


def ball(**numbers):
    """A body on a ball joint, without gravity."""
    body = {"mass": 1.5, "inertia": np.diag([0.02, 0.03, 0.04]), "center": [0.1, 0, 0.2], "limit_stiffness": STIFFNESS}
    builder = lgsim.ModelBuilder(gravity=(0, 0, 0))
    return builder.add_body("ball", "world", joints.Spherical(), **(body | LIMITS | numbers)).build()


def excess(rotation, lower, upper):
    """(e, angle beyond the limit) of swing, angle and twist, by their definitions."""

    def beyond(u, limit):
        if limit >= np.pi or u <= limit:
            return 0.0, 0.0
        return 2 * (np.sin(u / 2) - np.sin(limit / 2)) / np.cos(limit / 2), u - limit

    x, y, z, w = rotation.as_quat()
    swing = 2 * np.arctan2(np.hypot(x, y), np.hypot(w, z))
    low, high = max(lower[2], -np.pi), min(upper[2], np.pi)
    off = np.angle(np.exp(1j * (2 * np.arctan2(z, w) - (low + high) / 2)))
    turned = beyond(abs(off), (high - low) / 2)
    return [beyond(swing, upper[0]), beyond(rotation.magnitude(), upper[1]), (np.hypot(w, z) * turned[0], turned[1])]


def potential(rotation, stiffness=STIFFNESS, lower=LIMITS["lower"], upper=LIMITS["upper"]):
    return sum(k * e**2 / 2 for k, (e, _) in zip(stiffness, excess(rotation, lower, upper), strict=True))


def wxyz(rotation):
    return np.roll(rotation.as_quat(), 1, axis=-1)


def slopes(f, rotation, h=1e-5):
    """Central differences by turns in the child's frame."""
    turns = [Rotation.from_rotvec(h * axis) for axis in np.eye(3)]
    return np.array([(f(rotation * turn) - f(rotation * turn.inv())) / (2 * h) for turn in turns])


@pytest.fixture(scope="module")
def functions():
    """Force and energy, compiled once for all numbers of a machine."""
    return jax.jit(lgsim.passive_forces), jax.jit(spring_energy)


def test_the_force_is_the_slope_of_a_potential(functions):
    """At random rotations, at other ranges of twist, and with a quaternion of the other sign or of another norm."""
    force, energy = functions
    rotations = Rotation.random(40, random_state=0)
    for lower, upper in (([-0.3], [0.8, 1.9, 1.1]), ([-3.0], [2.5, np.inf, -1.0]), ([-np.inf], [np.inf, 0.7, 0.4])):
        lower = [-np.inf, -np.inf, *lower]
        model, passed = ball(lower=lower, upper=upper), 0
        q = wxyz(rotations)
        tau, stored = force(model, jnp.asarray(q), jnp.zeros((40, 3))), energy(model, jnp.asarray(q))
        for i, rotation in enumerate(rotations):
            V = lambda r: potential(r, lower=lower, upper=upper)  # noqa: B023, E731
            np.testing.assert_allclose(stored[i], V(rotation), rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(tau[i], -slopes(V, rotation), rtol=0, atol=2e-7)
            passed += V(rotation) > 0.1
        assert passed > 20
        for factor in (-1.0, 1.7):
            close(force(model, jnp.asarray(factor * q), jnp.zeros((40, 3))), tau, 1e-13)


def test_near_a_limit_the_excess_is_the_angle_beyond_it():
    for angles, place in (((0.85, 0.1), 0), ((0.1, 1.14), 2), ((0.1, -0.33), 2)):
        rotation = Rotation.from_rotvec([angles[0], 0, 0]) * Rotation.from_rotvec([0, 0, angles[1]])
        e, beyond = excess(rotation, LIMITS["lower"], LIMITS["upper"])[place]
        assert 0.02 < beyond < 0.06
        np.testing.assert_allclose(e, beyond, rtol=0.03)


def test_nothing_acts_at_rest_and_a_limit_of_zero_is_a_spring(functions):
    """Derivatives at rest are finite: zero within the limits, that of the spring where they are zero."""
    force, _ = functions
    model = ball()
    turned = jax.jit(jax.jacfwd(lambda dv, model: force(model, model.retract(model.neutral(), dv), jnp.zeros(3))))
    np.testing.assert_array_equal(turned(jnp.zeros(3), model), np.zeros((3, 3)))
    held = ball(lower=[-np.inf, -np.inf, 0.0], upper=[0.0, np.inf, 0.0])
    np.testing.assert_allclose(turned(jnp.zeros(3), held), -np.diag([40.0, 40.0, 25.0]), rtol=1e-12, atol=1e-12)
    held = ball(lower=-np.inf, upper=[np.inf, 0.0, np.inf])
    np.testing.assert_allclose(turned(jnp.zeros(3), held), -15.0 * np.eye(3), rtol=1e-12, atol=1e-12)


def test_the_force_does_not_jump_at_half_a_turn(functions):
    """From both sides of a swing, an angle or a twist of pi, and of the far side of the range of twist."""
    force, _ = functions
    slope = jax.jit(jax.jacrev(lambda q, model: force(model, q, jnp.zeros(3))))
    model = ball()
    far = (LIMITS["lower"][2] + LIMITS["upper"][2]) / 2 + np.pi
    for axis, at in (([1, 0, 0], np.pi), ([1, 0, 1], np.pi), ([0, 0, 1], np.pi), ([0, 0, 1], far)):
        axis = np.array(axis) / np.linalg.norm(axis)
        near = [wxyz(Rotation.from_rotvec((at + h) * axis)) for h in (-1e-7, 0.0, 1e-7)]
        below, there, above = (force(model, jnp.asarray(q), jnp.zeros(3)) for q in near)
        np.testing.assert_allclose(below, there, rtol=0, atol=2e-5)
        np.testing.assert_allclose(above, there, rtol=0, atol=2e-5)
        assert all(np.isfinite(slope(jnp.asarray(q), model)).all() for q in near)


@pytest.mark.slow
def test_a_ball_that_hits_its_limits_keeps_its_energy():
    """Without dampers; with them it loses some."""
    v0 = jnp.array([6.0, -4.0, 9.0])
    motion = simulate(ball(), v0=v0, duration=1.0, dt=1e-4, save_every=100)
    assert motion.potential_energy.max() > 0.1 * motion.energy[0]
    swing, _, twist = (max(excess(r, **LIMITS)[i][0] for r in Rotation.from_quat(np.roll(motion.q, -1, 1)))
                           for i in range(3))  # fmt: skip
    assert min(swing, twist) > 0.02
    np.testing.assert_allclose(motion.energy, motion.energy[0], rtol=1e-6)
    damped = simulate(ball(limit_damping=[5.0, 5.0, 5.0]), v0=v0, duration=1.0, dt=1e-4, save_every=100)
    assert np.diff(damped.energy).max() < 1e-6 * motion.energy[0]
    assert damped.energy[-1] < 0.9 * motion.energy[0]


def test_gradients_in_limits_stiffness_and_damping(functions):
    force, _ = functions
    model = ball(limit_damping=[2.0, 3.0, 4.0])
    rotation = Rotation.from_rotvec([1.5, 0.4, 0]) * Rotation.from_rotvec([0, 0, 1.6])
    q, v = jnp.asarray(wxyz(rotation)), jnp.array([0.5, -0.7, 0.3])
    names = ("lower", "upper", "limit_stiffness", "limit_damping")
    f = jax.jit(lambda numbers: jnp.sum(force(model.replace(**numbers), q, v) * jnp.array([1.0, 2.0, -1.5])))
    numbers = {name: getattr(model, name) for name in names}
    found = jax.jit(jax.grad(f))(numbers)
    for name in names:
        for i in range(3):
            if not np.isfinite(numbers[name][i]):
                assert found[name][i] == 0
                continue
            ends = [f(numbers | {name: numbers[name].at[i].add(h)}) for h in (1e-6, -1e-6)]
            np.testing.assert_allclose(found[name][i], (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-8)
            assert name == "lower" or abs(found[name][i]) > 1e-3


def test_other_joints_beside_a_ball_keep_their_stops(functions):
    """The same force as alone, and energies add up."""
    force, energy = functions
    builder = lgsim.ModelBuilder()
    options = {"mass": 1.0, "center": [0, 0.1, 0.2], "inertia": 0.02 * np.eye(3)}
    hinge = {"axis": [0, 1, 0], "lower": -0.5, "upper": 0.5, "limit_stiffness": 30.0}
    builder.add_body("hinge", "world", joints.Revolute(), **options, **hinge)
    builder.add_body("ball", "hinge", joints.Spherical(), **options, **LIMITS, limit_stiffness=STIFFNESS)
    model = builder.build()
    rotation = Rotation.from_rotvec([1.5, 0.4, 1.6])
    q = jnp.asarray([0.7, *wxyz(rotation)])
    tau = force(model, q, jnp.zeros(4))
    np.testing.assert_allclose(tau[0], -30.0 * 0.2, rtol=1e-12)
    np.testing.assert_allclose(tau[1:], -slopes(potential, rotation), rtol=0, atol=2e-7)
    np.testing.assert_allclose(energy(model, q), 15.0 * 0.04 + potential(rotation), rtol=1e-12)


def test_limits_of_a_ball_in_files_and_errors():
    pytest.importorskip("mujoco")
    xml = """<mujoco><compiler angle="radian"/><worldbody><body><joint type="ball" range="0 1.2" limited="true"/>
    <geom size="0.1"/></body></worldbody></mujoco>"""
    model, report = lgsim.formats.read_mjcf(text=xml)
    np.testing.assert_allclose(model.upper, [np.inf, 1.2, np.inf], rtol=1e-12)
    assert not np.isfinite(model.lower).any() and "range" not in str(report)
    with pytest.raises(ModelError, match=r"expected nonnegative upper limits of swing and angle, got \[-1\."):
        ball(upper=[-1.0, 2.0, 2.0], lower=-2.0)


@pytest.mark.float32
def test_float32():
    builder = lgsim.ModelBuilder(dtype=jnp.float32)
    builder.add_body(
        "ball", "world", joints.Spherical(), mass=1.0, inertia=np.eye(3), limit_stiffness=STIFFNESS, **LIMITS
    )
    rotation = Rotation.from_rotvec([1.5, 0.4, 1.6])
    tau = lgsim.passive_forces(builder.build(), jnp.asarray(wxyz(rotation), jnp.float32), jnp.zeros(3, jnp.float32))
    assert tau.dtype == jnp.float32
    np.testing.assert_allclose(tau, -slopes(potential, rotation), rtol=1e-5, atol=1e-4)
