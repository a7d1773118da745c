"""A servo-driven arm identified from recorded position targets and positions, without a torque sensor."""

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import lgsim
from lgsim import actuators, identify
from lgsim.actuators import Actuators, Transmission
from lgsim.identify.unknowns.actuator_blocks import actuator_parameters
from lgsim.multibody import joints

XML = """<mujoco><option integrator="RK4" timestep="0.001"/><default><geom contype="0" conaffinity="0"/></default>
<worldbody><body name="upper"><joint name="a" axis="0 1 0" damping="{damping}"/>
<inertial pos="0 0 -.2" mass="2" diaginertia=".03 .03 .004"/>
<body name="fore" pos="0 0 -.4"><joint name="b" axis="0 1 0" damping="{damping}"/>
<inertial pos=".02 0 -.15" mass="{mass}" diaginertia="{inertia} {inertia} .001"/></body></body></worldbody>
<actuator><position joint="a" kp="{kp}" kv="1.1"/><position joint="b" kp="{kp}" kv=".7"/></actuator></mujoco>"""
TRUE = {"mass": 1.3, "inertia": 0.0156, "damping": 0.3, "kp": 45}
PRIOR = {"mass": 1.0, "inertia": 0.012, "damping": 0.1, "kp": 30}
DT, LATE = 0.004, 0.0104  # s


def targets(steps):
    """Position targets of both joints at the steps, rad."""
    t = DT * np.arange(steps)
    first = 0.6 * np.sin(2 * np.pi * 0.5 * t) + 0.3 * np.sin(2 * np.pi * 1.7 * t + 0.4)
    return np.stack([first, 0.8 * np.sin(2 * np.pi * 0.7 * t) + 0.4 * np.sin(2 * np.pi * 2.3 * t)], axis=1)


def recorded(commands, noise, seed, late=LATE):
    """Positions (nodes, 2) that MuJoCo gives for commands that arrive late."""
    model = mujoco.MjModel.from_xml_string(XML.format(**TRUE))
    data, q = mujoco.MjData(model), [np.zeros(2)]
    model.opt.timestep = DT / 40
    for k in range(len(commands)):
        for j in range(40):
            # whole small steps: the command of the time that was so long ago
            at = (k * 40 + j - round(40 * late / DT)) // 40
            data.ctrl[:] = commands[max(at, 0)]
            mujoco.mj_step(model, data)
        q.append(data.qpos.copy())
    return np.array(q) + noise * np.random.default_rng(seed).normal(size=(len(q), 2))


def plant():
    """What is known before: another mass, no idea of friction and of the gains, no delay."""
    model = lgsim.load_mjcf(text=XML.format(**PRIOR))
    # kv acts on the same speeds as friction in the joints: recordings of positions show their sum alone
    servo = actuators.PositionServo(jnp.array([30.0, 30.0]), jnp.array([1.1, 0.7]))
    known = identify.Plant(model, actuators=Actuators(Transmission.of_joints(model), servo, names=["a", "b"]))
    return identify.unknowns.InstrumentedPlant(known, input_delay=0.002)


def fitted(blocks, commands, q, deviation, start=None):
    channel = identify.Channel(identify.PositionSensor(), q, deviation)
    records = identify.SensorRecords(DT, {"q": channel}, commands=commands)
    fit = identify.SimulationFit(window_steps=75)
    return identify.fit(identify.Parameters(start or plant(), blocks), records, fit)


def unknowns():
    return [
        identify.Masses(["fore"]), identify.JointParameter("damping"),
        identify.ActuatorParameter("stages.0.stiffness", relative=True, unit="N m/rad"),
        identify.unknowns.InputDelay(max_delay=0.03),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("late", "within", "rest"), [(0.012, 1e-4, 5e-6), pytest.param(LATE, 1e-2, 1e-4, marks=pytest.mark.exhaustive)]
)
def test_mass_friction_gains_and_delay_from_commands_and_positions(late, within, rest):
    """Without noise: of a delay by whole steps, and by parts of one, in which commands count by their mean over a step.

    The inertia of the link goes with its mass.
    """
    commands = targets(600)
    found = fitted(unknowns(), commands, recorded(commands, 0.0, 0, late), 1e-5)
    wanted = {
        "m of fore, kg": TRUE["mass"], "damping of a, N m s/rad": TRUE["damping"],
        "damping of b, N m s/rad": TRUE["damping"], "delay of the drives, s": late,
        "stiffness of PositionServo of actuator a, N m/rad": TRUE["kp"],
        "stiffness of PositionServo of actuator b, N m/rad": TRUE["kp"],
    }  # fmt: skip
    assert set(found.values) == set(wanted)
    for name, value in wanted.items():
        assert found.values[name] == pytest.approx(value, rel=within), name
        assert abs(found.prior[name] - value) > 0.2 * value, name
    assert (found.rmse() < rest).all()


@pytest.mark.slow
def test_true_numbers_lie_within_the_deviations_that_the_fit_names():
    commands, noise = targets(600), 5e-4
    found = fitted(unknowns(), commands, recorded(commands, noise, 5), noise)
    wanted = [TRUE["mass"], TRUE["damping"], TRUE["damping"], TRUE["kp"], TRUE["kp"], LATE]
    for (name, value), true in zip(found.values.items(), wanted, strict=True):
        assert abs(value - true) < 3.5 * found.deviations[name] < 0.2 * true, name
    assert np.allclose(found.rmse(), noise, rtol=0.1)


def sliding(commands, friction):
    """Positions of a cart on a dry rail behind a servo, the equations by scipy from one command to the next."""
    m, k, d, (F, S, vs, v0) = 1.7, 60.0, 3.0, friction
    y, q = np.zeros(2), [0.0]
    for u in commands:

        def dry(v):
            return (F + S * np.exp(-((v / vs) ** 2))) * np.tanh(v / v0)

        def f(t, y, u=u, dry=dry):
            return [y[1], (k * (u - y[0]) - d * y[1] - dry(y[1])) / m]

        y = solve_ivp(f, (0, DT), y, rtol=1e-10, atol=1e-12).y[:, -1]
        q.append(y[0])
    return np.array(q)[:, None]


@pytest.mark.slow
def test_dry_friction_with_its_stribeck_curve_from_commands_and_positions():
    """The mass is known, without which all forces could have another scale."""
    commands = 0.2 * targets(700)[:, :1]
    q = sliding(commands[:, 0], (2.0, 1.2, 0.15, 0.05))
    builder = lgsim.ModelBuilder(gravity=(0, 0, 0))
    rail = {"friction": 1.0, "friction_speed": 0.05, "stribeck": 0.5, "stribeck_speed": 0.15}
    model = builder.add_body("cart", "world", joints.Prismatic(), mass=1.7, **rail).build()
    servo = actuators.PositionServo(jnp.array([50.0]), jnp.array([2.0]))
    start = identify.Plant(model, actuators=Actuators(Transmission.of_joints(model), servo))
    blocks = [
        identify.JointParameter("friction"), identify.JointParameter("stribeck", lower=-np.inf),
        identify.ActuatorParameter("stages.0.stiffness"), identify.ActuatorParameter("stages.0.damping"),
    ]  # fmt: skip
    found = fitted(blocks, commands, q, 1e-6, start)
    np.testing.assert_allclose(list(found.values.values()), [2.0, 1.2, 60.0, 3.0], rtol=1e-3)


def test_blocks_find_every_number_of_actuators():
    """By its path, of some actuators, as differences and as logarithms; in sums too."""
    model = lgsim.load_mjcf(text=XML.format(**PRIOR))
    drive = lgsim.load_actuators(model, text=XML.format(**PRIOR))
    for tree in (drive, drive + Actuators(Transmission.of_joints(model, ["a"]), actuators.Gear(2.0), names=["g"])):
        own = identify.Plant(model, actuators=tree)
        paths = actuator_parameters(tree)
        first = "terms.0." if tree is not drive else ""
        assert {f"{first}stages.0.gain", f"{first}stages.0.bias", f"{first}transmission.coupling"} <= set(paths)
        for path in paths:
            block = identify.ActuatorParameter(path)
            x = 0.1 + jnp.arange(len(block.labels(own)), dtype=float)
            moved = block.apply(own, x)
            np.testing.assert_allclose(block.read(moved), block.read(own) + x, rtol=1e-14)
            others = [p for p in paths if p != path]
            for other in others:
                same = identify.ActuatorParameter(other)
                np.testing.assert_array_equal(same.read(moved), same.read(own))
    one = identify.ActuatorParameter("stages.0.bias", ["actuator1"], relative=True)
    own = identify.Plant(model, actuators=drive)
    assert one.labels(own) == [f"bias {k} of AffineForce of actuator actuator1" for k in range(3)]
    bounded = identify.ActuatorParameter("stages.0.gain", lower=0.0, upper=500.0)
    assert set(bounded.value_limits(own).values()) == {(0.0, 500.0)}
    moved = one.apply(own, jnp.array([0.0, np.log(2.0), 0.0])).actuators.stages[0].bias
    np.testing.assert_allclose(moved, [[0, -30, -1.1], [0, -60, -0.7]], rtol=1e-14)


def test_errors(without_import_hook):
    own, q = plant(), np.zeros((5, 2))
    with pytest.raises(ValueError, match=r"path: expected a parameter of the actuators, got 'stages\.0\.stifness'"):
        identify.ActuatorParameter("stages.0.stifness").labels(own)
    with pytest.raises(ValueError, match="path: the plant has no actuators"):
        identify.ActuatorParameter("stages.0.stiffness").labels(identify.Plant(own.model))
    channels = {"q": identify.Channel(identify.PositionSensor(), q, 1e-3)}
    with pytest.raises(ValueError, match="commands: expected either signals or commands, got both"):
        identify.SensorRecords(DT, channels, np.zeros((4, 2)), commands=np.zeros((4, 2)))
    block = identify.JointParameter("damping")
    for plant_, given, message in (
        (
            identify.Plant(own.model),
            {"commands": np.zeros((4, 2))},
            "commands: expected a plant with actuators, got one without",
        ),
        (own, {"signals": np.zeros((4, 2))}, "signals: expected commands, got signals"),
        (own, {"commands": np.zeros((4, 3))}, "commands: expected 2 for the plant's actuators, got 3"),
    ):
        records = identify.SensorRecords(DT, channels, **given)
        with pytest.raises(ValueError, match=message):
            identify.fit(identify.Parameters(plant_, block), records, identify.SimulationFit())
