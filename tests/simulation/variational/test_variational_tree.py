"""Variational motion of machines: given motions, orders, what it keeps, derivatives, and what it says when it fails."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import lgsim
from lgsim import VariationalTree, joints
from lgsim.dynamics import ROTATION_MAPS
from lgsim.integrators.stability import amplification
from tests.dynamics import discrete_reference as reference
from tests.multibody import loop_machines, trees

MARKS = {"spherical_chain": pytest.mark.exhaustive, "floating_tree": pytest.mark.slow}
RUNS = [
    pytest.param(name, run, id=f"{name} {run['map']} {run['h']}", marks=MARKS.get(name, ()))
    for name in reference.NAMES
    for run in reference.runs(name)
]


@pytest.mark.repeats
@pytest.mark.parametrize(("name", "run"), RUNS)
def test_given_motions(name, run):
    model = reference.machine(name)
    q0, v0, tau = reference.start(run)
    motion = lgsim.rollout(
        model, q0, v0, dt=run["h"], steps=run["steps"], torques=tau, method=VariationalTree(run["map"])
    )
    for step, state in run["states"].items():
        q, v = motion.q[int(step)], motion.v[int(step)]
        assert np.abs(model.difference(jnp.array(state["q"]), q)).max() < 1e-13
        np.testing.assert_allclose(lgsim.generalized_momentum(model, q, v), state["p"], rtol=0, atol=1e-13)


def floating(**options):
    """A floating machine of free flight: a base, a spherical joint, a revolute one and a slide."""
    kinds = ("free", "spherical", "revolute", "prismatic")
    return trees.build(kinds, (-1, 0, 1, 0), gravity=np.zeros(3), **options)


def error_at_end(model, q0, v0, dt, duration, method, end):
    motion = lgsim.rollout(model, q0, v0, dt=dt, steps=round(duration / dt), method=method)
    gap = model.difference(motion.q[-1], end.q[-1])
    return max(np.abs(gap).max(), np.abs(motion.v[-1] - end.v[-1]).max())


ORDERS = [
    pytest.param("quaternion", 2, id="2", marks=pytest.mark.slow),
    pytest.param("quaternion", 4, id="4", marks=pytest.mark.slow),
    *(pytest.param(name, 2, id=f"2 {name}", marks=pytest.mark.exhaustive) for name in ("cayley", "exp")),
]


@pytest.mark.parametrize(("name", "order"), ORDERS)
def test_order(name, order):
    """On a floating machine with dampers, springs, friction and gravity, beside MK8."""
    model = floating(armature=False).replace(
        gravity=jnp.array([0.0, 0.0, -9.81]),
        damping=jnp.full(11, 0.02), stiffness=jnp.full(11, 0.5), friction=jnp.full(11, 0.01),
        friction_speed=jnp.full(11, 2.0),
    )  # fmt: skip
    q0, v0, _ = trees.state(model)
    end = lgsim.rollout(model, q0, v0, dt=1 / 1024, steps=256, method=lgsim.MK8)
    steps = (1 / 256, 1 / 512) if order == 2 else (1 / 64, 1 / 128)
    method = VariationalTree(name, order)
    coarse, fine = (error_at_end(model, q0, v0, dt, 0.25, method, end) for dt in steps)
    assert abs(np.log2(coarse / fine) - order) < 0.1


@pytest.mark.slow
def test_order_on_every_joint():
    model = trees.every_joint(0, True, followers=0)
    q0, v0, _ = trees.state(model)
    v0 = 0.3 * v0
    end = lgsim.rollout(model, q0, v0, dt=1 / 2048, steps=128, method=lgsim.MK4)
    errors = [error_at_end(model, q0, v0, dt, 1 / 16, VariationalTree(), end) for dt in (1 / 512, 1 / 1024)]
    assert abs(np.log2(errors[0] / errors[1]) - 2) < 0.1


def energies(model, q, v):
    return np.asarray(jax.jit(jax.vmap(lambda q, v: lgsim.kinetic_energy(model, q, v)))(q, v)) + np.asarray(
        jax.jit(jax.vmap(lambda q: lgsim.potential_energy(model, q)))(q)
    )


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "motions"), [(2000, 1), pytest.param(100_000, 12, marks=pytest.mark.slow)])
def test_momenta_and_energy_of_free_flight(steps, motions):
    """1e5 steps of 10 ms: momenta to 1e-12 of themselves, energy without a trend.

    The motion is chaotic, and a line through its oscillating energy has a slope of either sign, some 8e-7 over the run:
    no trend is that of the mean over motions whose starts differ by 1e-9.
    """
    spring = 5.0
    model = floating().replace(stiffness=jnp.zeros(11).at[10].set(spring))
    q0, v0, _ = trees.state(model, seed=3)

    @jax.jit
    @jax.vmap
    def fly(v0):
        motion = lgsim.rollout(model, q0, v0, dt=0.01, steps=steps, save_every=20, method=VariationalTree())
        kinetic = jax.vmap(lambda q, v: lgsim.kinetic_energy(model, q, v))(motion.q, motion.v)
        momentum = jax.vmap(lambda q, v: lgsim.centroidal_momentum(model, q, v))(motion.q, motion.v)
        return motion.time, kinetic + 0.5 * spring * motion.q[:, 12] ** 2, momentum

    away = 1e-9 * np.random.default_rng(0).normal(size=(motions, 11))
    time, energy, momentum = map(np.asarray, fly(0.5 * v0[None] + away))
    for part in np.split(momentum, 2, axis=2):
        change = np.abs(part - part[:, :1]).max(axis=(1, 2))
        assert (change < 1e-12 * np.linalg.norm(part[:, 0], axis=1)).all()
    trends = [np.polyfit(t, e, 1)[0] * t[-1] / e[0] for t, e in zip(time, energy, strict=True)]
    assert abs(np.mean(trends)) < (1e-6 if steps == 100_000 else 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("order", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_a_step_back_undoes_a_step(order):
    model = floating(armature=True)
    q0, v0, _ = trees.state(model, seed=1)
    method = VariationalTree(order=order)
    there = lgsim.rollout(model, q0, v0, dt=0.02, steps=5, method=method)
    back = lgsim.rollout(model, there.q[-1], there.v[-1], dt=-0.02, steps=5, method=method)
    assert np.abs(model.difference(q0, back.q[-1])).max() < 1e-13
    np.testing.assert_allclose(back.v[-1], v0, rtol=0, atol=2e-13)


def symplectic_form(model, p):
    """Of two changes (eta, pi), eta a tangent of the group from the right: ``pi2.eta1 - pi1.eta2 + p.[eta1, eta2]``."""
    nv = model.nv
    form = np.zeros((2 * nv, 2 * nv))
    form[:nv, nv:], form[nv:, :nv] = np.eye(nv), -np.eye(nv)
    for i, joint in enumerate(model.topology.joints):
        part = model.topology.v_slice(i)
        for a, b, k, c in getattr(joint, "brackets", ()):
            rows = part.start + a, part.start + b
            form[rows] += c * p[part.start + k]
            form[rows[::-1]] -= c * p[part.start + k]
    return form


@pytest.mark.parametrize(
    ("kinds", "parents"),
    [
        pytest.param(("revolute", "prismatic", "universal"), (-1, 0, 0), id="screws", marks=pytest.mark.slow),
        pytest.param(("spherical", "revolute", "spherical"), (-1, 0, 1), id="spherical", marks=pytest.mark.slow),
        pytest.param(("free", "revolute", "spherical"), (-1, 0, 0), id="floating", marks=pytest.mark.exhaustive),
    ],
)
def test_symplectic(kinds, parents):
    """``J^T Omega(end) J = Omega(start)`` of a step with gravity and springs."""
    model = trees.build(kinds, parents)
    model = model.replace(stiffness=jnp.full(model.nv, 3.0))
    q0, v0, _ = trees.state(model)
    p0 = lgsim.generalized_momentum(model, q0, v0)

    def step(x):
        q = model.retract(q0, x[: model.nv])
        v = lgsim.velocity_of_momentum(model, q, p0 + x[model.nv :])
        motion = lgsim.rollout(model, q, v, dt=0.05, steps=1, method=VariationalTree())
        return motion.q[-1], lgsim.generalized_momentum(model, motion.q[-1], motion.v[-1])

    q1, p1 = step(jnp.zeros(2 * model.nv))

    def change(x):
        q, p = step(x)
        return jnp.concatenate([model.difference(q1, q), p])

    J = np.asarray(jax.jacfwd(change)(jnp.zeros(2 * model.nv)))
    start, end = symplectic_form(model, np.asarray(p0)), symplectic_form(model, np.asarray(p1))
    np.testing.assert_allclose(J.T @ end @ J, start, rtol=0, atol=1e-10 * np.abs(start).max())


def rattle(x, v, h, steps):
    """Four mass points at fixed distances, by RATTLE: positions (4, 3) after the steps, masses 1."""
    pairs = [(i, j) for i in range(4) for j in range(i)]
    lengths = [np.sum((x[i] - x[j]) ** 2) for i, j in pairs]

    def slopes(x):
        G = np.zeros((6, 4, 3))
        for k, (i, j) in enumerate(pairs):
            G[k, i], G[k, j] = 2 * (x[i] - x[j]), 2 * (x[j] - x[i])
        return G.reshape(6, 12)

    for _ in range(steps):
        G0, force = slopes(x), np.zeros(6)
        for _ in range(30):
            new = x + h * v + (G0.T @ force).reshape(4, 3)
            gap = np.array([np.sum((new[i] - new[j]) ** 2) for i, j in pairs]) - lengths
            force -= np.linalg.solve(slopes(new) @ G0.T, gap)
        half, G1 = (new - x) / h, slopes(new)
        x, v = new, half - (G1.T @ np.linalg.solve(G1 @ G1.T, G1 @ half.ravel())).reshape(4, 3)
    return x


@pytest.mark.slow
def test_rigid_body_is_rattle_on_its_mass_points():
    """With the map "quaternion" a step is that of four mass points held at their distances."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(4, 3))
    points -= points.mean(axis=0)
    inertia = sum(x @ x * np.eye(3) - np.outer(x, x) for x in points)
    builder = lgsim.ModelBuilder(gravity=np.zeros(3)).add_body(
        "body", "world", joints.Free(), mass=4.0, inertia=inertia
    )
    model = builder.build()
    w, u, h, steps = np.array([0.7, -1.1, 0.4]), np.array([0.3, 0.1, -0.2]), 0.1, 20
    v0 = jnp.array([*u, *w])
    motion = lgsim.rollout(model, model.neutral(), v0, dt=h, steps=steps, method=VariationalTree())
    q = np.asarray(motion.q[-1])
    R = Rotation.from_quat([*q[4:], q[3]]).as_matrix()
    expected = rattle(points, u + np.cross(w, points), h, steps)
    np.testing.assert_allclose(points @ R.T + q[:3], expected, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_motion_does_not_depend_on_frames():
    """The pose of the base in the world, and the axes of rows, change nothing but coordinates."""
    model = reference.machine("spherical_chain")
    q0, v0, _ = reference.start(reference.runs("spherical_chain")[0])
    method = VariationalTree()
    motion = lgsim.rollout(model, q0, v0, dt=0.02, steps=20, method=method)
    T = trees.pose(np.random.default_rng(0))
    placements = np.asarray(model.placements).copy()
    placements[0] = T @ placements[0]
    moved = model.replace(
        placements=jnp.asarray(placements), gravity=jnp.asarray(T[:3, :3] @ np.asarray(model.gravity))
    )
    again = lgsim.rollout(moved, q0, v0, dt=0.02, steps=20, method=method)
    np.testing.assert_allclose(again.q[-1], motion.q[-1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(again.v[-1], motion.v[-1], rtol=0, atol=1e-11)


# Forces.


def test_held_and_linear_torques_act_half_way():
    model = reference.machine("double_pendulum_damped")
    q0, v0, tau = reference.start(reference.runs("double_pendulum_damped")[0])
    nodes = jnp.stack([tau * k for k in range(4)])
    held = 0.5 * (nodes[1:] + nodes[:-1])
    motions = [
        lgsim.rollout(model, q0, v0, dt=0.02, steps=3, torques=rows, method=VariationalTree()) for rows in (nodes, held)
    ]
    np.testing.assert_allclose(motions[0].q, motions[1].q, rtol=0, atol=1e-14)


@pytest.mark.slow
def test_control_and_wrenches_keep_the_order():
    model = trees.build(("revolute", "spherical"), (-1, 0))
    q0, v0, _ = trees.state(model)

    def control(t, q, v, model):
        return -2.0 * v + jnp.sin(3 * t) * jnp.ones(model.nv)

    def wrenches(t, q, v, model):
        return jnp.zeros((2, 6)).at[1, 0].set(0.5 * jnp.cos(t)).at[1, 4].set(v[1])

    drive = {"control": control, "wrenches": wrenches}
    end = lgsim.rollout(model, q0, v0, dt=1 / 1024, steps=256, method=lgsim.MK8, **drive)

    def error(dt):
        steps = round(0.25 / dt)
        motion = lgsim.rollout(model, q0, v0, dt=dt, steps=steps, method=VariationalTree(), **drive)
        return float(np.abs(motion.v[-1] - end.v[-1]).max())

    errors = error(1 / 256), error(1 / 512)
    assert abs(np.log2(errors[0] / errors[1]) - 2) < 0.1


def test_stiff_springs_and_dampers_do_not_bound_the_step():
    """A spring of 1e6 N m/rad with a strong damper: steps of 10 ms come to rest at its rest angle."""
    model = trees.build(("revolute", "revolute"), (-1, 0)).replace(
        stiffness=jnp.array([1e6, 2.0]), rest=jnp.array([0.3, 0.0]), damping=jnp.array([1e3, 0.5])
    )
    q0 = jnp.array([0.3, 1.0])
    motion = lgsim.rollout(model, q0, jnp.zeros(2), dt=0.01, steps=2000, method=VariationalTree())
    assert np.abs(motion.q[:, 0] - 0.3).max() < 1e-3
    assert np.abs(motion.v[-1]).max() < 1e-2


@pytest.mark.parametrize("order", [2, 4])
def test_springs_and_dampers_are_linear_as_stability_says(order):
    """Of one joint without gravity: the matrix of a step has the factors R(h lambda) of both modes."""
    model = trees.build(("revolute",), (-1,), gravity=np.zeros(3), armature=False)
    inertia = float(lgsim.mass_matrix(model, model.neutral())[0, 0])
    stiffness, damping, dt = 40.0, 3.0, 0.1
    model = model.replace(stiffness=jnp.array([stiffness]), damping=jnp.array([damping]), rest=jnp.zeros(1))
    method = VariationalTree(order=order)

    def step(y):
        motion = lgsim.rollout(model, y[:1], y[1:], dt=dt, steps=1, method=method)
        return jnp.concatenate([motion.q[-1], motion.v[-1]])

    modes = np.linalg.eigvals(np.array([[0, 1], [-stiffness / inertia, -damping / inertia]]))
    found = np.linalg.eigvals(np.asarray(jax.jit(jax.vmap(step))(1e-4 * jnp.eye(2))).T / 1e-4)
    expected = amplification(method.tableau, dt * modes.astype(complex))
    np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(expected), rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["dry friction", "stops"])
def test_forces_that_begin_within_a_step(what):
    """Each step is solved and takes no energy from nowhere: friction of 0.5 N m at 1e-3 rad/s, stops of 10 ms."""
    arm = lgsim.load_urdf(lgsim.data.arm7())
    q0, v0 = arm.neutral(), jnp.full(7, 3.0 if what == "stops" else 0.0)
    if what == "stops":
        model = lgsim.with_stops(arm)
    else:
        model = arm.replace(friction=jnp.full(7, 0.5), friction_speed=jnp.full(7, 1e-3))
    motion = lgsim.rollout(model, q0, v0, dt=0.005, steps=400, method=VariationalTree())
    assert motion.residuals.max() < 1e-7
    if what == "dry friction":
        energy = energies(model, motion.q, motion.v)
        assert (np.diff(energy) < 1e-2 * np.ptp(energy)).all() and energy[-1] < energy[0]


# Derivatives.


@pytest.mark.slow
@pytest.mark.parametrize("name", ["double_pendulum_damped", "floating_tree"])
def test_gradients_are_central_differences(name):
    """By q0, v0, torques, inertias, dampers and the step; in both modes alike."""
    model = reference.machine(name)
    q0, v0, _ = reference.start(reference.runs(name)[0])
    rng = np.random.default_rng(0)
    weights = jnp.asarray(rng.normal(size=model.nq))
    at = {
        "q0": jnp.zeros(model.nv), "v0": v0, "tau": 0.1 * jnp.ones(model.nv), "inertias": model.inertias,
        "damping": model.damping + 0.1, "dt": jnp.asarray(0.02),
    }  # fmt: skip

    def end(x):
        moved = model.replace(inertias=x["inertias"], damping=x["damping"])
        motion = lgsim.rollout(
            moved, model.retract(q0, x["q0"]), x["v0"], dt=x["dt"], steps=5, torques=x["tau"], method=VariationalTree()
        )
        return weights @ motion.q[-1] + jnp.sum(motion.v[-1] ** 2)

    found, value = jax.jit(jax.grad(end))(at), jax.jit(end)
    push = jax.jit(lambda x, dx: jax.jvp(end, (x,), (dx,))[1])
    for key, x in at.items():
        way = jnp.asarray(rng.normal(size=x.shape)) * (1e-2 if key in ("dt", "inertias") else 1)
        slope = jnp.vdot(found[key], way)
        ends = [value({**at, key: x + s * way}) for s in (1e-5, -1e-5)]
        np.testing.assert_allclose((ends[0] - ends[1]) / 2e-5, slope, rtol=1e-6, atol=1e-9)
        along = {k: way if k == key else jnp.zeros_like(y) for k, y in at.items()}
        np.testing.assert_allclose(push(at, along), slope, rtol=1e-11)


@pytest.mark.slow
def test_second_derivatives():
    """Forward over reverse and reverse over reverse beside differences of the gradient."""
    model = reference.machine("double_pendulum_damped")
    q0, v0, _ = reference.start(reference.runs("double_pendulum_damped")[0])

    def end(x):
        motion = lgsim.rollout(model, q0, x, dt=0.02, steps=4, method=VariationalTree())
        return jnp.sum(motion.q[-1] ** 3) + jnp.sum(motion.v[-1] ** 2)

    grad = jax.jit(jax.grad(end))
    H = jax.jit(jax.jacfwd(jax.grad(end)))(v0)
    np.testing.assert_allclose(jax.jit(jax.jacrev(jax.grad(end)))(v0), H, rtol=1e-11)
    step = 1e-5
    columns = [(grad(v0 + step * e) - grad(v0 - step * e)) / (2 * step) for e in jnp.eye(2)]
    np.testing.assert_allclose(H, jnp.stack(columns, axis=1), rtol=1e-7)


def test_batches_and_compilation():
    """``vmap`` over states and over numbers of the machine; jit changes nothing but rounding."""
    model = reference.machine("double_pendulum")
    q0, v0, _ = reference.start(reference.runs("double_pendulum")[0])

    def end(q0, v0, mass):
        moved = model.replace(inertias=model.inertias * mass)
        return lgsim.rollout(moved, q0, v0, dt=0.01, steps=10, method=VariationalTree()).q[-1]

    v = v0[None] + jnp.linspace(0.0, 1.0, 9)[:, None]
    mass = jnp.linspace(0.5, 2.0, 9)
    batch = jax.jit(jax.vmap(end, (None, 0, 0)))(q0, v, mass)
    for k in (0, 4, 8):
        np.testing.assert_allclose(batch[k], end(q0, v[k], mass[k]), rtol=0, atol=1e-13)


@pytest.mark.slow
@pytest.mark.float32
def test_float32():
    model = jax.tree.map(lambda x: x.astype(jnp.float32), reference.machine("double_pendulum"))
    q0, v0, _ = (
        None if x is None else x.astype(jnp.float32) for x in reference.start(reference.runs("double_pendulum")[0])
    )
    run = reference.runs("double_pendulum")[0]
    motion = lgsim.rollout(model, q0, v0, dt=run["h"], steps=run["steps"], method=VariationalTree(run["map"]))
    assert motion.q.dtype == jnp.float32
    np.testing.assert_allclose(motion.q[10], run["states"]["10"]["q"], rtol=0, atol=1e-5)


# Steps that are hard, and steps that have no solution.


def rods(count, joint=joints.Revolute):
    """Rods of 1 kg and 1 m in a row, horizontal at zero."""
    builder = lgsim.ModelBuilder()
    for i in range(count):
        T = np.eye(4)
        T[0, 3] = float(i > 0)
        builder.add_body(
            f"rod{i}", "world" if i == 0 else f"rod{i - 1}", joint(), joint_name=f"joint{i}", placement=T, mass=1.0,
            center=[0.5, 0, 0], inertia=np.diag([1e-3, 1 / 12, 1 / 12]),
            **({"axis": [0, 1, 0]} if joint is joints.Revolute else {}),
        )  # fmt: skip
    return builder.build()


@pytest.mark.parametrize(
    ("joint", "count", "dt", "iterations"),
    [
        pytest.param(joints.Revolute, 100, 0.001, 3, marks=pytest.mark.exhaustive),
        pytest.param(joints.Revolute, 100, 0.005, 5, marks=pytest.mark.slow),
        pytest.param(joints.Spherical, 20, 0.01, 5, marks=pytest.mark.exhaustive),
    ],
)
def test_few_iterations_whatever_the_length(joint, count, dt, iterations):
    """So many iterations solve each step to 1e-12 of the largest displacement: one less leaves half the digits."""
    model = rods(count, joint)
    q0 = model.neutral()
    q0 = q0.at[0].add(0.05) if joint is joints.Revolute else q0
    method = VariationalTree(newton=lgsim.Newton(iterations, tolerance=1e-6))
    motion = lgsim.rollout(model, q0, jnp.zeros(model.nv), dt=dt, steps=200, method=method)
    assert float(motion.residuals.max()) < 1e-6


@pytest.mark.slow
def test_a_whip_is_solved_all_the_same():
    """100 rods at 10 ms: Newton's method alone fails before the end cracks; shorter changes lead on."""
    model = rods(100)
    q0 = model.neutral().at[0].add(0.05)
    motion = lgsim.rollout(model, q0, jnp.zeros(100), dt=0.01, steps=200, method=VariationalTree())
    assert float(motion.residuals.max()) < 2e-8
    energy = energies(model, motion.q, motion.v)
    assert np.abs(energy - energy[0]).max() < 0.05 * abs(energy).max()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cayley", "exp"])
def test_turns_of_a_radian(name):
    """Of a body that turns by 1 rad a step."""
    model = trees.build(("spherical", "revolute"), (-1, 0), gravity=np.zeros(3))
    v0 = jnp.array([60.0, 70.0, 20.0, 5.0])
    method = VariationalTree(name, newton=lgsim.Newton(8))
    motion = lgsim.rollout(model, model.neutral(), v0, dt=0.01, steps=50, method=method)
    assert float(motion.residuals.max()) < 1e-7


@pytest.mark.slow
def test_a_turn_of_half_a_turn_is_told():
    """``simulate`` names step, joint and remedy; ``rollout`` raises; under jit the state is not a number."""
    model = trees.build(("spherical",), (-1,))
    v0 = jnp.array([400.0, 0.0, 0.0])
    told = lgsim.simulate(model, None, v0, duration=0.1, dt=0.01, method=VariationalTree("exp"))
    assert "not solved: Newton's method did not converge in step 1," in told.result
    assert (
        "first at the joint 'joint0'" in told.result and "half a turn" in told.result and "take dt below" in told.result
    )
    with pytest.raises(RuntimeError, match=r"did not converge in step 0"):
        lgsim.rollout(model, model.neutral(), v0, dt=0.01, steps=2, method=VariationalTree("exp"))
    motion = jax.jit(
        lambda v: lgsim.rollout(model, model.neutral(), v, dt=0.01, steps=2, method=VariationalTree("exp"))
    )
    assert np.isnan(motion(v0).q[-1]).all()


@pytest.mark.slow
def test_more_momentum_than_the_map_has_is_told():
    """Of a free body: the map "quaternion" has no step for it; "cayley" has."""
    model = trees.build(("free",), (-1,), gravity=np.zeros(3))
    v0 = jnp.array([0.0, 0.0, 0.0, 210.0, 30.0, 10.0])
    told = lgsim.simulate(model, None, v0, duration=0.1, dt=0.01, method=VariationalTree())
    assert "not solved" in told.result and "try the map 'cayley'" in told.result
    assert not lgsim.simulate(model, None, v0, duration=0.1, dt=0.01, method=VariationalTree("cayley")).result


def test_a_joint_without_inertia_is_named():
    model = lgsim.ModelBuilder()
    model.add_body("a", "world", joints.Revolute(), axis=[0, 1, 0], mass=1.0, center=[0.5, 0, 0], inertia=np.eye(3))
    model.add_body("tip", "a", joints.Revolute(), joint_name="tip joint", axis=[0, 1, 0])
    told = lgsim.simulate(model.build(), duration=0.1, dt=0.01, method=VariationalTree())
    assert "not solved" in told.result and "joint 'tip joint' moves without inertia" in told.result


# Where it is used.


@pytest.mark.slow
def test_machines_that_follow():
    """Joints that mimic others: the dense way, beside MK4 at small steps."""
    from tests.dynamics.machines import mimicking

    model = mimicking()
    q0, v0, _ = trees.state(model)
    fine = lgsim.rollout(model, q0, v0, dt=1 / 4096, steps=512, method=lgsim.MK4)
    errors = [error_at_end(model, q0, v0, dt, 0.125, VariationalTree(), fine) for dt in (1 / 256, 1 / 512)]
    assert abs(np.log2(errors[0] / errors[1]) - 2) < 0.1


def test_simulate_vouches_for_its_steps():
    model = reference.machine("double_pendulum")
    q0, v0, _ = reference.start(reference.runs("double_pendulum")[0])
    found = lgsim.simulate(model, q0, v0, duration=1.0, dt=0.005, method=VariationalTree())
    assert found.method == "variational" and not found.result
    true = lgsim.simulate(model, q0, v0, duration=1.0, dt=0.001, method=lgsim.MK8, step_check=False)
    gap = np.abs(found.q - true.q[::5]).max(axis=0)
    assert found.step_error.resolved
    assert (found.step_error.error[-1, :2] > 0.3 * gap).all() and (found.step_error.error[-1, :2] < 5 * gap).all()


def test_what_it_does_not_take():
    model = reference.machine("double_pendulum")
    q0, v0, _ = reference.start(reference.runs("double_pendulum")[0])
    with pytest.raises(ValueError, match=r"order: expected 2, or 4 .* got 3"):
        VariationalTree(order=3)
    with pytest.raises(ValueError, match=r"map: expected one of"):
        VariationalTree("log")
    with pytest.raises(ValueError, match=r"iterations: expected at least 2"):
        VariationalTree(newton=lgsim.Newton(1))
    drives = lgsim.actuators.Actuators(lgsim.actuators.Transmission.of_joints(model), lgsim.actuators.Lag(0.1))
    with pytest.raises(ValueError, match=r"requires actuators without states of their own, got 2 states; take MK4"):
        lgsim.rollout(model, q0, v0, dt=0.01, steps=2, method=VariationalTree(), actuators=drives)
    with pytest.raises(ValueError, match=r"dt: expected a step that is not zero"):
        lgsim.rollout(model, q0, v0, dt=0.0, steps=2, method=VariationalTree())
    ring = loop_machines.every_kind()
    with pytest.raises(ValueError, match=r"variational.*loop.*its steps would open them; take MK4"):
        VariationalTree().check_machine(ring, ring.nq + ring.nv)
    with pytest.raises(TypeError, match=r"field: a VariationalTree requires the equations of motion"):
        action = lgsim.simulation.StateSpace(model.topology)
        lgsim.integrate(VariationalTree(), action, lambda t, y, args: y, jnp.concatenate([q0, v0]), dt=0.1, steps=1)
    with pytest.raises(TypeError, match=r"action: variational requires the states of a model"):
        lgsim.integrate(
            VariationalTree(), lgsim.actions.LeftTranslation(lgsim.SO3), lambda t, y, args: jnp.zeros(3), jnp.eye(3),
            dt=0.1, steps=1,
        )  # fmt: skip


@pytest.mark.parametrize("name", [name for name in ROTATION_MAPS if name != "quaternion"])
@pytest.mark.exhaustive
def test_both_lowerings_agree(name):
    model = floating()
    q0, v0, _ = trees.state(model)

    def end():
        return lgsim.rollout(model, q0, v0, dt=0.01, steps=20, method=VariationalTree(name)).v[-1]

    with lgsim.llvm_lowering(False):
        expected = end()
    np.testing.assert_allclose(end(), expected, rtol=0, atol=1e-12)
