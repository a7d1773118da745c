"""Motors that turn with two joints of a wrist: MuJoCo's tendon with armature and damping, and dry friction by hand."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.formats import read_mjcf
from lgsim.identify import (
    Inertias,
    JointParameter,
    LinearFit,
    Parameters,
    Plant,
    SimulationFit,
    StandardParameters,
    TorqueFit,
    TorqueSamples,
    base_parameters,
    fit,
    load_plant,
)
from lgsim.identify.unknowns.base_parameters import sensitivities
from lgsim.identify.unknowns.coupled_plant import CoupledPlant, MotorParameter
from tests.identify import arms

mujoco = pytest.importorskip("mujoco")

WRIST = """<mujoco><compiler angle="radian"/><option gravity="0 0 -9.81"/><worldbody>
<body name="fore" pos="0 0 .5"><joint name="joint4" axis="0 1 0"/>
<inertial pos="0.01 0 .1" mass="2" diaginertia=".02 .02 .01"/>
<body name="wrist" pos="0 0 .3"><joint name="joint5" axis="0 1 0"/>
<inertial pos="0 .01 .05" mass=".8" diaginertia=".004 .003 .002"/>
<body name="hand" pos="0 0 .1"><joint name="joint6" axis="0 0 1"/>
<inertial pos=".02 0 .03" mass=".4" diaginertia=".001 .001 .0008"/></body></body></body></worldbody>TENDON</mujoco>"""
TENDON = """<tendon><fixed name="motor6" armature="0.03" damping="0.25"><joint joint="joint5" coef="1"/>
<joint joint="joint6" coef="-0.8"/></fixed></tendon>"""
COUPLING = {"motor6": {"joint5": 1.0, "joint6": -0.8}}
C = np.array([[0.0, 1.0, -0.8]])
FRICTION, SPEED = 0.3, 0.05


def wrist_torques(q, v, a):
    """MuJoCo's inverse dynamics with the tendon, and the dry friction of the motor."""
    peer = mujoco.MjModel.from_xml_string(WRIST.replace("TENDON", TENDON))
    data, out = mujoco.MjData(peer), []
    for data.qpos[:], data.qvel[:], data.qacc[:] in zip(q, v, a, strict=True):
        mujoco.mj_inverse(peer, data)
        out.append(data.qfrc_inverse.copy())
    return np.array(out) + FRICTION * np.tanh(v @ C.T / SPEED) @ C


def motion(count, seed=0):
    """Sums of sines of three joints."""
    rng = np.random.default_rng(seed)
    time = 0.01 * np.arange(count)[:, None, None]
    rate, phase, size = rng.uniform(1, 8, (3, 5)), rng.uniform(0, 6, (3, 5)), rng.uniform(0.1, 0.4, (3, 5))
    angle = rate * time + phase
    parts = np.sin(angle), rate * np.cos(angle), -(rate**2) * np.sin(angle)
    return tuple(np.sum(size * part, axis=2) for part in parts)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("wrist") / "wrist.xml"
    path.write_text(WRIST.replace("TENDON", ""))
    return read_mjcf(path)[0]


def coupled(model, **numbers):
    plant = CoupledPlant(model, COUPLING, motor_friction_speed=SPEED)
    for name, value in numbers.items():
        plant = eqx.tree_at(lambda p, name=name: getattr(p, name), plant, jnp.full(1, value))
    return plant


def test_torques_are_those_of_a_tendon(model):
    q, v, a = motion(30)
    plant = coupled(model, motor_inertia=0.03, motor_damping=0.25, motor_friction=FRICTION)
    np.testing.assert_allclose(arms.signals(plant, q, v, a), wrist_torques(q, v, a), rtol=1e-9, atol=1e-10)


def test_coordinates_of_motors(model):
    """Differences from the prior, and for speeds logarithms of ratios, so that they stay positive."""
    plant, names = coupled(model, motor_inertia=0.02), ("motor_inertia", "motor_friction_speed")
    blocks = [MotorParameter(name) for name in names]
    parameters = Parameters(plant, blocks)
    values = parameters.values(jnp.array([0.01, jnp.log(3.0)]))
    expected = {"inertia of motor motor6, kg m^2": 0.03, "friction speed of motor motor6, rad/s": 3 * SPEED}
    assert {name: pytest.approx(float(x), rel=1e-12) for name, x in values.items()} == expected
    lower, upper = parameters.bounds()
    np.testing.assert_array_equal(lower, [-0.02, -np.inf])
    np.testing.assert_array_equal(upper, [np.inf, np.inf])


@pytest.mark.slow
def test_a_saved_fit_has_its_motors(model, tmp_path):
    """``load_plant`` gives the same signals; what a robot description cannot hold is not lost."""
    plant = coupled(model, motor_inertia=0.02, motor_friction=0.1)
    q, v, a = motion(30)
    samples = TorqueSamples(q, v, a, wrist_torques(q, v, a))
    found = fit(Parameters(plant, MotorParameter("motor_damping")), samples, TorqueFit(noise=0.1))
    assert list(found.values) == ["damping of motor motor6, N m s/rad"]
    again = load_plant(found.save(tmp_path / "fit.npz"))
    np.testing.assert_array_equal(arms.signals(again, q, v, a), arms.signals(found.plant, q, v, a))
    assert again.motors == ("motor6",)


@pytest.mark.slow
def test_a_coupled_wrist(model):
    """Held out within 1.05 of linear least squares with the coupled terms, joint by joint; without them several times
    worse. The motor's numbers are within four deviations.
    """
    noise, rng = np.array([0.05, 0.02, 0.01]), np.random.default_rng(1)
    q, v, a = motion(900)
    tau = wrist_torques(q, v, a) + noise * rng.normal(size=q.shape)
    train, rest = (TorqueSamples(q[i], v[i], a[i], tau[i]) for i in (slice(0, 600), slice(600, 900)))
    rough = model.replace(inertias=model.inertias * 1.3)
    joints = [JointParameter("damping"), JointParameter("friction")]
    motors = [MotorParameter(name) for name in ("motor_inertia", "motor_damping", "motor_friction")]
    found = fit(Parameters(coupled(rough), [Inertias(), *joints, *motors]), train, TorqueFit(lags=0), rest)
    assert found.message == ""
    truth = {"inertia of motor motor6, kg m^2": 0.03, "damping of motor motor6, N m s/rad": 0.25,
             "friction of motor motor6, N m": FRICTION}  # fmt: skip
    for name, value in truth.items():
        assert abs(found.values[name] - value) < 4 * found.deviations[name], name
    # least squares by numpy: standard parameters, damping and friction of joints, and the three terms of the motor
    linear = Parameters(rough, [StandardParameters(), *joints])
    base = base_parameters(linear)

    def regressor(s):
        w, dw = np.asarray(s.v) @ C.T, np.asarray(s.a) @ C.T
        extra = np.stack([x[..., None] * C[0] for x in (dw[:, 0], w[:, 0], np.tanh(w / SPEED)[:, 0])], axis=-1)
        Y = sensitivities(Plant(rough), np.array(base.indices)[list(base.independent)], s.q, s.v, s.a)
        return np.concatenate([Y, extra.reshape(len(Y), 3)], axis=1) / np.tile(noise, len(s))[:, None]

    x = np.linalg.lstsq(regressor(train), (np.asarray(train.signals) / noise).ravel(), rcond=None)[0]
    least = ((np.asarray(rest.signals) / noise).ravel() - regressor(rest) @ x).reshape(-1, 3)
    least = noise * np.sqrt(np.mean(least**2, axis=0))
    assert np.all(found.rmse(rest) < 1.05 * least)
    plain = fit(linear, train, LinearFit(base, lags=0), rest)
    assert np.all(plain.rmse(rest)[1:] > 3 * least[1:])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda m: CoupledPlant(m, {"m": {"joint7": 1.0}}), "coupling: expected names of degrees of freedom, got"),
        (lambda m: Parameters(Plant(m), MotorParameter("motor_damping")), "expected a plant with coupled motors"),
        (lambda m: MotorParameter("damping"), "parameter: expected a parameter of a motor, got 'damping'"),
        (lambda m: Parameters(coupled(m), MotorParameter("motor_damping", ["motor5"])), "got 'motor5'"),
        (
            lambda m: SimulationFit().check(Parameters(coupled(m), MotorParameter("motor_damping")), None),
            "expected a plant without coupled motors",
        ),
    ],
)
def test_what_is_refused(model, make, message):
    with pytest.raises(ValueError, match=message):
        make(model)
