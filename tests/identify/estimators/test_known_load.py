"""Records with and without a known load: its torques, and constants of currents that only both determine."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.formats import read_urdf
from lgsim.identify import JointParameter, Masses, Parameters, Plant, SignalScale, TorqueFit, TorqueSamples, fit
from tests.identify import arms

ROD = """<robot name="r"><link name="base"/><link name="rod"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""
CONSTANTS = np.array([11.0, 7.0])
LOAD = {"frame": "grip", "mass": 1.5, "center": (0.02, 0.01, 0.1)}


def test_the_torque_of_a_load_on_a_pendulum():
    """(J + m (x^2 + z^2)) a - m g (x cos q + z sin q) about the axis y, in a frame whose axes are turned."""
    turned = np.array([[0.0, 0, 1, 0.1], [1, 0, 0, 0], [0, 1, 0, 0.5], [0, 0, 0, 1]])
    model = read_urdf(text=ROD)[0].add_frame("tip", "rod", turned)
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 50, 1))
    m, center, inertia = 0.7, np.array([0.2, -0.1, 0.3]), np.diag([0.02, 0.03, 0.04])
    x, _, z = turned[:3, :3] @ center + turned[:3, 3]
    tau = (inertia[0, 0] + m * (x**2 + z**2)) * a - m * 9.81 * (x * np.cos(q) + z * np.sin(q))
    # the moment of the load about the hinge, on the body and against the drive
    found = eqx.filter_jit(TorqueSamples.with_payload)(TorqueSamples(q, v, a, 0 * q), model, "tip", m, center, inertia)
    np.testing.assert_allclose(-found.wrenches[:, 0, 4:5], tau, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_the_torques_of_a_load_on_an_arm():
    """Those of the arm with the load as a part of the body that carries it."""
    model = arms.planar().add_frame("grip", "fore", np.array([[1.0, 0, 0, 0.05], [0, 1, 0, 0], [0, 0, 1, 0.3],
                                                              [0, 0, 0, 1]]))  # fmt: skip
    build = lgsim.ModelBuilder()
    build.add_body("load", "world", lgsim.joints.Free(), joint_name="root_joint", mass=LOAD["mass"],
                   center=LOAD["center"], inertia=np.diag([0.01, 0.02, 0.015]))  # fmt: skip
    tool = build.build()
    whole = model.attach(tool, "grip")
    whole = whole.lock(["root_joint"], jnp.concatenate([jnp.zeros(2), tool.neutral()]))
    q, v, a = arms.states(model, 20)
    loaded = TorqueSamples(q, v, a, 0 * q).with_payload(model, **LOAD, inertia=np.diag([0.01, 0.02, 0.015]))
    found = arms.signals(Plant(model), q, v, a, loaded.wrenches)
    np.testing.assert_allclose(found, lgsim.inverse_dynamics(whole, q, v, a), rtol=1e-12, atol=1e-12)


def records(seed, count=150, noise=0.02):
    """Currents of the arm with other masses and friction, without and with the load; (parameters, samples, truth)."""
    frame = np.eye(4)
    frame[2, 3] = 0.3
    model = arms.planar(damping=0.3).add_frame("grip", "fore", frame)
    true = model.replace(inertias=model.inertias * np.array([[1.2], [0.85]]), damping=jnp.array([0.4, 0.2]))
    plant, parts = Plant(true, scale=CONSTANTS), []
    for i in range(2):
        q, v, a = arms.states(model, count, seed=2 * seed + i)
        part = TorqueSamples(q, v, a, 0 * q)
        part = part.with_payload(model, **LOAD) if i else part
        clean = arms.signals(plant, q, v, a, part.wrenches)
        signals = clean + noise * np.random.default_rng([seed, i]).normal(size=clean.shape)
        parts.append(TorqueSamples(q, v, a, signals, wrenches=part.wrenches))
    blocks = [Masses(), JointParameter("damping"), SignalScale()]
    parameters = Parameters(Plant(model, scale=9.0), blocks)
    truth = np.array([2.4, 1.02, 0.4, 0.2, *CONSTANTS])
    return parameters, parts, truth


@pytest.mark.slow
def test_constants_need_the_load():
    """One record gives only ratios of torques; both give constants within four deviations, to two percent."""
    parameters, (bare, loaded), truth = records(0)
    found = fit(parameters, bare, TorqueFit(lags=0))
    assert found.identifiability.rank < parameters.size
    found = fit(parameters, TorqueSamples.joined([bare, loaded]), TorqueFit(lags=0))
    assert found.identifiability.rank == parameters.size, found.verdict
    values, deviations = (np.array(list(x.values())) for x in (found.values, found.deviations))
    assert np.all(np.abs(values - truth) < 4 * deviations) and np.all(deviations[-2:] < 0.02 * CONSTANTS)


@pytest.mark.slow
def test_coverage_of_constants_from_two_loads():
    """Twenty records of white noise: intervals of all six numbers hold the truth as often as they say."""
    every = [TorqueSamples.joined(records(seed)[1]) for seed in range(20)]
    parameters, _, truth = records(0)
    estimator = TorqueFit(lags=0)

    @jax.jit
    @jax.vmap
    def run(samples):
        found = estimator.run(parameters, samples)
        J = jax.jacfwd(parameters.value_array)(found.x)
        return parameters.value_array(found.x), jnp.sqrt(jnp.einsum("ip,pq,iq->i", J, found.covariance, J))

    values, deviations = map(np.asarray, run(jax.tree.map(lambda *x: jnp.stack(x), *every)))
    inside = np.abs(values - truth) < 1.96 * deviations
    assert 0.9 <= inside.mean() <= 1.0, inside.mean(axis=0)
    # constants, which trade with masses, are not worse than the others
    assert inside[:, -2:].mean() >= 0.9


def test_joined_records():
    with pytest.raises(ValueError, match="parts: expected at least one record, got none"):
        TorqueSamples.joined([])
    model = arms.planar()
    q, v, a = arms.states(model, 5)
    with pytest.raises(ValueError, match="frame: expected the name of a frame, got 'hand'"):
        TorqueSamples(q, v, a, q).with_payload(model, "hand", 1.0)
    both = TorqueSamples.joined([TorqueSamples(q, v, a, q), TorqueSamples(q[:2], v[:2], a[:2], q[:2], 0.0)])
    assert len(both) == 7 and both.wrenches is None
    sets = TorqueSamples(*(jnp.stack([x, 2 * x]) for x in (q, v, a, q)))
    np.testing.assert_array_equal(TorqueSamples.joined([sets, sets]).q[1], jnp.concatenate([2 * q, 2 * q]))
    np.testing.assert_array_equal(both.weight, np.repeat([1.0, 0.0], [5, 2])[:, None] * [1, 1])
