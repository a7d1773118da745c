"""Defects that users met in other libraries, one test each; every test names the issue."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim._compile.xla.jax_internals import loop_counts
from lgsim.multibody import joints
from lgsim.simulation import controls, rollout
from tests.dynamics.machines import close
from tests.formats.robots import FILES, FOLDER
from tests.multibody import trees

STEPS = 50


def ball(**numbers):
    """A free body with three different moments of inertia."""
    body = {"mass": 1.5, "inertia": np.diag([0.02, 0.03, 0.04])} | numbers
    return lgsim.ModelBuilder().add_body("ball", "world", joints.Free(), **body).build()


@pytest.mark.slow
def test_the_height_after_free_fall_has_the_slope_one_in_the_initial_height():
    """Exactly, where the gradient of a falling ball was NaN (brax #387)."""
    model = ball()

    @jax.jit
    @jax.grad
    def slope(start):
        q0 = model.neutral().at[2].set(start[0])
        v0 = jnp.zeros(6).at[2].set(start[1])
        return rollout(model, q0, v0, dt=0.02, steps=STEPS, save_every=STEPS).q[-1, 2]

    by_height, by_speed = slope(jnp.array([3.0, 0.7]))
    assert by_height == 1.0
    np.testing.assert_allclose(by_speed, 0.02 * STEPS, rtol=1e-14)


def test_a_body_that_spins_about_x_stays_on_its_axis():
    """A body on a free joint tumbled by itself (warp #736)."""
    model = ball().replace(gravity=jnp.zeros(3))
    v0 = jnp.array([0.0, 0.0, 0.0, 7.0, 0.0, 0.0])
    out = rollout(model, model.neutral(), v0, dt=0.02, steps=STEPS)
    np.testing.assert_array_equal(out.v, np.broadcast_to(v0, out.v.shape))
    np.testing.assert_array_equal(out.q[:, [0, 1, 2, 5, 6]], 0)
    np.testing.assert_allclose(out.q[:, 3], np.cos(3.5 * out.time), rtol=0, atol=1e-14)
    np.testing.assert_allclose(out.q[:, 4], np.sin(3.5 * out.time), rtol=0, atol=1e-14)


@pytest.mark.slow
def test_a_ball_that_nothing_rubs_does_not_rotate():
    """It falls, slides and is pushed through its center, and turned all the same (warp #736)."""
    model = ball()
    push = controls.FrameWrench("ball", jnp.array([1.0, -2.0, 20.0, 0.0, 0.0, 0.0]), world=True)
    v0 = jnp.array([2.0, -1.0, 0.5, 0.0, 0.0, 0.0])
    out = rollout(model, model.neutral(), v0, dt=0.02, steps=STEPS, wrenches=push)
    np.testing.assert_allclose(out.v[:, 3:], 0, rtol=0, atol=1e-14)
    np.testing.assert_allclose(out.q[:, 3:], np.broadcast_to([1.0, 0, 0, 0], (STEPS + 1, 4)), rtol=0, atol=1e-14)
    pull = np.array([1.0, -2.0, 20.0]) / 1.5 + [0, 0, -9.81]
    t = out.time[-1]
    np.testing.assert_allclose(out.q[-1, :3], v0[:3] * t + 0.5 * pull * t**2, rtol=1e-12)


@pytest.mark.slow
def test_a_body_in_one_piece_moves_like_the_same_body_in_pieces():
    """Split at fixed joints it exploded (mujoco #3553): here on a base that tumbles, behind a joint."""
    rng = np.random.default_rng(0)
    parts, poses = [trees.body(rng) for _ in range(3)], [trees.pose(rng) for _ in range(2)]

    def machine(split):
        builder = lgsim.ModelBuilder().add_body("base", "world", joints.Free(), **trees.body(np.random.default_rng(1)))
        whole = by_pieces.inertias[1] if not split else None
        options = parts[0] if split else {"parameters": np.asarray(whole)}
        builder.add_body("arm", "base", joints.Revolute(), axis=[1, 2, 3], **options)
        if split:
            builder.add_body("cover", "arm", joints.Fixed(), placement=poses[0], **parts[1])
            builder.add_body("screw", "cover", joints.Fixed(), placement=poses[1], **parts[2])
        return builder.build()

    by_pieces = machine(True)
    total = sum(part["mass"] for part in parts)
    whole = machine(False)
    np.testing.assert_allclose(whole.inertias[1, 0], total, rtol=1e-14)
    q0, v0, _ = trees.state(whole)
    run = jax.jit(lambda model: rollout(model, q0, v0, dt=0.01, steps=200))
    one, other = run(whole), run(by_pieces)
    assert np.abs(one.v[-1]).max() > 1
    close(other.q, one.q, 1e-13)
    close(other.v, one.v, 1e-13)


@pytest.mark.slow
def test_in_flight_the_angular_momentum_stays_while_the_joints_move():
    """It drifted whatever the step (crocoddyl #979); motors inside a machine and gravity cannot change it."""
    model = trees.build(["free", "revolute", "revolute", "spherical"], [-1, 0, 0, 2])
    q0, v0, _ = trees.state(model)
    tau = jnp.concatenate([jnp.zeros(6), jnp.array([0.6, -0.8, 0.1, 0.2, -0.1])])

    @jax.jit
    def motion():
        out = rollout(model, q0, 0.5 * v0, dt=0.005, steps=200, torques=tau, method=lgsim.MK8)
        return out, jax.vmap(lambda q, v: lgsim.centroidal_momentum(model, q, v)[3:])(out.q, out.v)

    out, angular = motion()
    assert np.abs(out.q[-1, 7:] - out.q[0, 7:]).max() > 0.5
    close(angular, np.broadcast_to(angular[0], angular.shape), 1e-12)


def test_a_step_is_compiled_once_when_its_end_is_the_next_start():
    """A weakly typed time compiled everything twice (mujoco #2306)."""
    model = ball()
    step = jax.jit(chex.assert_max_traces(lambda q, v, t: rollout(model, q, v, dt=0.01, steps=1, t0=t), 1))
    q, v, t = model.neutral(), jnp.zeros(6), jnp.zeros(())
    for _ in range(3):
        out = step(q, v, t)
        q, v, t = out.q[-1], out.v[-1], out.time[-1]
    assert not any(x.weak_type for x in jax.tree.leaves(rollout(model, q, v, dt=0.01, steps=1)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["friction", "damping"])
def test_friction_and_damping_have_a_gradient(name):
    """It was zero (mujoco #1344): compared with central differences."""
    rod = lgsim.ModelBuilder().add_body("rod", "world", joints.Revolute(), axis=[0, 1, 0], mass=1.0, center=[0.3, 0, 0],
                                        inertia=0.01 * np.eye(3), friction=0.2, damping=0.1).build()  # fmt: skip

    def end(number):
        return rollout(rod.replace(**{name: number}), jnp.zeros(1), jnp.ones(1), dt=0.02, steps=STEPS).q[-1, 0]

    at = getattr(rod, name)
    value, slope = jax.jit(end), jax.jit(jax.grad(end))(at)
    differences = (value(at + 1e-5) - value(at - 1e-5)) / 2e-5
    assert abs(slope[0]) > 1e-2
    np.testing.assert_allclose(slope[0], differences, rtol=1e-8)


def scans(jaxpr, length):
    """The arrays that each loop of that length carries, in the order of the program, loops inside of it too."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "scan" and equation.params["length"] == length:
            start, carry = loop_counts(equation)
            yield [x.shape for x in equation.params["jaxpr"].in_avals[start : start + carry]]
        for inner in jax.tree.leaves(equation.params, is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr")):
            if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                yield from scans(getattr(inner, "jaxpr", inner), length)


@pytest.mark.slow
def test_a_rollout_carries_one_array_forward_and_one_back():
    """On CPU the cost of a step grows with the arrays in its carry (jax #40150), 3 x 3 ones are slow (jax #36799)."""
    model = trees.build(["free", "revolute", "spherical"], [-1, 0, 1])
    q0, v0, _ = trees.state(model)
    torques = jnp.zeros((STEPS, model.nv))

    def loss(q0, v0, torques):
        return jnp.sum(rollout(model, q0, v0, dt=0.01, steps=STEPS, torques=torques).q[-1] ** 2)

    state = (model.nq + model.nv,)
    assert list(scans(jax.make_jaxpr(loss)(q0, v0, torques).jaxpr, STEPS)) == [[state]]
    assert list(scans(jax.make_jaxpr(jax.grad(loss, (0, 1)))(q0, v0, torques).jaxpr, STEPS)) == [[state], [state]]
    # the gradient in the torques of all steps is gathered in one array beside it
    forward, back = scans(jax.make_jaxpr(jax.grad(loss, (0, 1, 2)))(q0, v0, torques).jaxpr, STEPS)
    assert forward == [state] and sorted(back) == sorted([state, torques.shape])


# one file of each robot, the one with the shortest path; the base is free where the file does not fix it
ROBOTS = {}
for each in sorted(FILES, key=len):
    ROBOTS.setdefault(each.split("/")[0], each)
MASSLESS = {
    "icub_description",
    "romeo_description",
}  # links at the end of a chain without mass: no acceleration is right
ALWAYS = {"anymal_b_simple_description", "asr_twodof_description"}  # the others with --exhaustive
STIFF = 2.5
"""The largest rate times step of a damper that an explicit method of order 4 bears."""


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.parametrize(
    "robot",
    [
        name if name in ALWAYS else pytest.param(name, marks=pytest.mark.exhaustive)
        for name in sorted(ROBOTS.keys() - MASSLESS)
    ],
)
def test_real_robots_fall_for_a_second(robot):
    """Half of the files of another engine gave NaN (newton #4269); the center of mass of a free robot is a parabola."""
    assert len(ROBOTS) >= 30
    path = FOLDER / ROBOTS[robot]
    model = lgsim.load_urdf(path, b'<link name="world"' not in path.read_bytes(), physical="report")
    q0, dt = model.neutral(), 1e-3
    drag = np.diag(model.damping + model.friction / model.friction_speed)
    if np.abs(np.linalg.eigvals(np.linalg.solve(jax.jit(lgsim.mass_matrix)(model, q0), drag))).max() * dt > STIFF:
        model = model.replace(damping=0.0, friction=0.0)
    v0 = jnp.asarray(np.random.default_rng(0).uniform(-0.3, 0.3, model.nv))
    out = jax.jit(lambda model: rollout(model, q0, v0, dt=dt, steps=1000, save_every=500))(model)
    assert np.isfinite(out.q).all() and np.isfinite(out.v).all()
    if model.topology.floats:
        center = jax.jit(lgsim.center_of_mass)
        speed = jax.jit(lgsim.dynamics.center_of_mass_velocity)(model, q0, v0)
        right = center(model, q0) + speed + 0.5 * model.gravity
        np.testing.assert_allclose(center(model, out.q[-1]), right, rtol=0, atol=1e-6)
