"""Dynamics of machines with loops, beside the reference, dense linear algebra and differences."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from tests.dynamics import closed_machines as machines

KINDS = {"rods": machines.rod_machine, "couplings": machines.coupled_machine}
DIFFERENCE = 1e-5


LARGE = [name if name == "four_bar" else pytest.param(name, marks=pytest.mark.slow) for name in machines.MACHINES]


def model_of(name):
    return KINDS[name]() if name in KINDS else machines.machine(name)


def close(x, y, tolerance):
    x, y = np.asarray(x), np.asarray(y)
    assert np.abs(x - y).max() <= tolerance * max(np.abs(y).max(), 1e-3), np.abs(x - y).max() / np.abs(y).max()


@pytest.mark.slow
@pytest.mark.typed
@pytest.mark.parametrize("name", LARGE)
def test_accelerations_and_forces_of_the_reference(name):
    model = machines.machine(name)
    for q, v, tau, record in machines.states(name):
        close(lgsim.forward_dynamics(model, q, v, tau), record["a"], 1e-10)
        f = lgsim.loop_forces(model, q, v, tau)
        close(lgsim.loop_jacobian(model, q).T @ f, record["joint_forces_of_loops"], 1e-10)
        if "f" in record:
            close(f, record["f"], 1e-10)
        assert int(lgsim.loop_rank(model, q)) == record["rank"]
        assert model.topology.loop_rows == record["rows"]
        assert np.abs(lgsim.loop_residual(model, q)).max() < 1e-14


@pytest.mark.parametrize("name", LARGE)
def test_derivatives_along_the_closed_set_of_the_reference(name):
    model = machines.machine(name)
    for q, v, tau, record in machines.states(name):
        dq, dv, da = (jnp.asarray(record["derivative"][key]) for key in ("dq", "dv", "da"))
        found = lgsim.forward_dynamics_derivatives(model, q, v, tau)
        close(found.dq @ dq + found.dv @ dv, da, 1e-8)
        change = (model.rate(q, dq), dv, jnp.zeros_like(tau))
        along = jax.jvp(partial(lgsim.forward_dynamics, model), (q, v, tau), change)[1]
        close(along, da, 1e-8)


def dense(model, q, v, tau):
    """(a, f) by the system of the mass matrix and the Jacobian, least squares in the redundant rows."""
    M, J = np.asarray(lgsim.mass_matrix(model, q)), np.asarray(lgsim.loop_jacobian(model, q))
    h = np.asarray(lgsim.inverse_dynamics(model, q, v, jnp.zeros_like(v)))
    # the bias by differences of J v along the motion
    step = 1e-4
    ends = [np.asarray(lgsim.loop_jacobian(model, model.retract(q, s * step * v)) @ v) for s in (-2, -1, 1, 2)]
    bias = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step)
    X = np.linalg.solve(M, J.T)
    a0 = np.linalg.solve(M, np.asarray(tau) - h)
    f = np.linalg.pinv(J @ X, rcond=1e-9) @ (-bias - J @ a0)
    return a0 + X @ f, f


@pytest.mark.repeats("couplings")
@pytest.mark.parametrize("name", [*KINDS, "four_bar", "ring_weld", "ring_hinge"])
def test_it_solves_the_dense_system(name):
    model = model_of(name)
    q, v = machines.closed_state(model)
    tau = jnp.asarray(np.random.default_rng(1).normal(size=model.nv))
    a, f = dense(model, q, v, tau)
    close(lgsim.forward_dynamics(model, q, v, tau), a, 1e-8)
    close(lgsim.loop_forces(model, q, v, tau), f, 1e-7)


@pytest.mark.repeats("couplings")
@pytest.mark.parametrize("name", [*KINDS, "ring_hinge"])
def test_the_jacobian_is_the_slope_of_the_residual_on_the_closed_set(name):
    model = model_of(name)
    q, _ = machines.closed_state(model)
    residual = lambda q: lgsim.loop_residual(model, q)  # noqa: E731
    slope = lgsim.tangent_jacobian(residual, model, q)
    close(lgsim.loop_jacobian(model, q), slope, 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(KINDS))
def test_derivatives_of_every_kind_against_differences(name):
    """Off the closed set too, where rods and couplings are the same formulas."""
    model = model_of(name)
    q, v = machines.closed_state(model)
    rng = np.random.default_rng(2)
    tau, dx, dv, dtau = (jnp.asarray(rng.normal(size=model.nv)) for _ in range(4))

    def a(s):
        return lgsim.forward_dynamics(model, model.retract(q, s * dx), v + s * dv, tau + s * dtau)

    def f(s):
        return lgsim.loop_forces(model, model.retract(q, s * dx), v + s * dv, tau + s * dtau)

    for function in (a, f):
        expected = fourth_order(function)
        close(jax.jvp(function, (0.0,), (1.0,))[1], expected, 1e-8)
    found = lgsim.forward_dynamics_derivatives(model, q, v, tau)
    close(found.dq @ dx + found.dv @ dv + found.dtau @ dtau, fourth_order(a), 1e-8)


def fourth_order(function, step=1e-3):
    x = [np.asarray(function(s * step)) for s in (-2, -1, 1, 2)]
    return (x[0] - 8 * x[1] + 8 * x[2] - x[3]) / (12 * step)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*KINDS, "ring_hinge"])
def test_gradients_by_numbers_of_the_model(name):
    model = model_of(name)
    q, v = machines.closed_state(model)
    model = model.replace(armature=0.1)
    tau = jnp.asarray(np.random.default_rng(3).normal(size=model.nv))
    moving = () if name == "ring_hinge" else ("placements", "frames")  # it would leave the closed set
    own = {leaf: getattr(model, leaf) for leaf in ("inertias", "armature", "loops", "gravity", *moving)}
    own = {leaf: number for leaf, number in own.items() if number is not None and number.size}

    def both(numbers):
        other = model.replace(**numbers)
        return jnp.concatenate([f(other, q, v, tau) for f in (lgsim.forward_dynamics, lgsim.loop_forces)])

    value = jax.jit(both)
    weights = jnp.arange(1.0, len(value(own)) + 1)
    slopes = jax.jit(jax.grad(lambda numbers: both(numbers) @ weights))(own)
    along = jax.jit(lambda numbers, rates: jax.jvp(both, (numbers,), (rates,))[1])
    for leaf, number in own.items():
        direction = jnp.asarray(np.random.default_rng(4).normal(size=number.shape))
        if leaf in moving:
            direction = direction.at[:, :, :3].set(0).at[:, 3].set(0)
        expected = fourth_order(lambda s, leaf=leaf, d=direction: value({**own, leaf: own[leaf] + s * d}), 1e-3)
        rates = {**jax.tree.map(jnp.zeros_like, own), leaf: direction}
        close(along(own, rates), expected, 1e-7)
        close(jnp.sum(slopes[leaf] * direction), expected @ weights, 1e-7)


@pytest.mark.slow
def test_second_derivatives():
    model = machines.rod_machine()
    q, v = machines.closed_state(model)
    tau, dv = jnp.ones(model.nv), jnp.arange(1.0, model.nv + 1)

    def work(s):
        return jnp.sum(lgsim.forward_dynamics(model, q, v + s * dv, tau) ** 2)

    slope = jax.grad(work)
    expected = fourth_order(slope)
    close(jax.jacfwd(slope)(0.0), expected, 1e-8)
    close(jax.grad(slope)(0.0), expected, 1e-8)


def test_a_mimic_joint_is_its_coupling():
    follower = lgsim.ModelBuilder()
    machines.chain(follower, 4)
    free = lgsim.ModelBuilder()
    machines.chain(free, 4)
    body = dict(placement=machines.pose((0.2, 0, 0)), axis=(0, 1, 0), mass=1.0, inertia=0.1 * np.eye(3))
    follower.add_body("last", "link3", lgsim.joints.Revolute(), mimic=("link1", -1.5, 0.3), **body)
    free.add_body("last", "link3", lgsim.joints.Revolute(), **body).add_coupling("line", "link1", "last", (0.3, -1.5))
    one, other = follower.build(), free.build()
    rng = np.random.default_rng(5)
    q, v, tau = (jnp.asarray(rng.normal(size=4)) for _ in range(3))
    whole = lambda x, b: jnp.append(x, -1.5 * x[1] + b)  # noqa: E731
    found = lgsim.forward_dynamics(other, whole(q, 0.3), whole(v, 0.0), jnp.append(tau, 0.0))
    close(found[:4], lgsim.forward_dynamics(one, q, v, tau), 1e-12)


@pytest.mark.slow
def test_a_machine_with_both_mimic_joints_and_loops():
    model = machines.machine("ring_hinge")
    builder = lgsim.ModelBuilder()
    machines.chain(builder, 5)
    builder.add_body(
        "hand", "link4", lgsim.joints.Revolute(), mimic=("link2", 0.5, 0.1), placement=machines.pose((0.2, 0, 0)),
        mass=0.5, inertia=0.01 * np.eye(3),
    )  # fmt: skip
    builder.add_frame("post", "world", machines.pose((0.9, 0.1, 0.3)))
    model = builder.add_rod("stay", "post", "hand", 0.7).build()
    q, v = machines.closed_state(model)
    tau = jnp.asarray(np.random.default_rng(1).normal(size=model.nv))
    a, f = dense(model, q, v, tau)
    close(lgsim.forward_dynamics(model, q, v, tau), a, 1e-8)
    close(lgsim.loop_forces(model, q, v, tau), f, 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["delta", "ring_weld"])
def test_powers_balance(name):
    """The loops do no work: the kinetic energy grows by the power of the drives and of gravity alone."""
    model = machines.machine(name)
    for q, v, tau, _ in machines.states(name):
        a = lgsim.forward_dynamics(model, q, v, tau)
        energy = lambda s: lgsim.kinetic_energy(model, model.retract(q, s * v), v + s * a)  # noqa: E731, B023
        height = lambda s: lgsim.potential_energy(model, model.retract(q, s * v))  # noqa: E731, B023
        close(jax.jvp(energy, (0.0,), (1.0,))[1] + jax.jvp(height, (0.0,), (1.0,))[1], tau @ v, 1e-10)


@pytest.mark.parametrize("name", LARGE)
def test_torques_of_driven_joints_give_the_acceleration_back(name):
    model = machines.machine(name)
    driven = {"delta": ["arm0", "arm1", "arm2"], "four_bar": ["link0"]}.get(name, model.joint_names)
    for q, v, tau, _ in machines.states(name):
        a = lgsim.forward_dynamics(model, q, v, tau)
        found = lgsim.actuated_inverse_dynamics(model, q, v, a, driven)
        assert np.abs(found.missing).max() < 1e-9 * np.abs(tau).max()
        others = [
            i for name in model.joint_names if name not in driven for i in range(*model.v_slices[name].indices(99))
        ]
        assert not np.any(np.asarray(found.tau)[others])
        close(lgsim.forward_dynamics(model, q, v, found.tau), a, 1e-9)
        if name == "ring_weld":  # all joints driven: no torques but those of the motion's own directions are needed
            J = np.asarray(lgsim.loop_jacobian(model, q))
            assert np.abs(J @ np.asarray(found.tau)).max() < 1e-9 * np.abs(found.tau).max()


@pytest.mark.slow
def test_batches_and_float32():
    model, (q, v, tau, record) = machines.machine("delta"), next(machines.states("delta"))
    small = jax.tree.map(lambda x: x.astype(jnp.float32), model)
    batch = [jnp.stack([x, x]).astype(jnp.float32) for x in (q, v, tau)]
    found = lgsim.forward_dynamics(small, *batch)
    assert found.dtype == jnp.float32
    close(found[1], record["a"], 1e-3)


def test_functions_of_loops_refuse_trees():
    with pytest.raises(ValueError, match=r"model: expected a model with loops, got one without; ModelBuilder.add_loop"):
        lgsim.loop_residual(machines.tree(), jnp.zeros(5))
    model = machines.machine("four_bar")
    q = jnp.zeros(3)
    with pytest.raises(ValueError, match="actuated: expected a list of joint names"):
        lgsim.actuated_inverse_dynamics(model, q, q, q, "link0")
    with pytest.raises(ValueError, match=r"actuated: expected names of joints.*'link9'"):
        lgsim.actuated_inverse_dynamics(model, q, q, q, ["link9"])
