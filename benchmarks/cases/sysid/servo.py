"""Identification of a servo-driven arm from targets and positions only, simulated by MuJoCo."""

import time

import jax.numpy as jnp
import mujoco
import numpy as np

import lgsim
from lgsim import identify
from lgsim.actuators import Actuators, PositionServo, Transmission

XML = """<mujoco><option integrator="RK4" timestep="0.0001"/><default><geom contype="0" conaffinity="0"/></default>
<worldbody><body name="upper"><joint name="a" axis="0 1 0" damping="{damping}"/>
<inertial pos="0 0 -.2" mass="2" diaginertia=".03 .03 .004"/>
<body name="fore" pos="0 0 -.4"><joint name="b" axis="0 1 0" damping="{damping}"/>
<inertial pos=".02 0 -.15" mass="{mass}" diaginertia="{inertia} {inertia} .001"/></body></body></worldbody>
<actuator><position joint="a" kp="{kp}" kv="1.1"/><position joint="b" kp="{kp}" kv=".7"/></actuator></mujoco>"""
TRUE = {"mass": 1.3, "inertia": 0.0156, "damping": 0.3, "kp": 45}
PRIOR = {"mass": 1.0, "inertia": 0.012, "damping": 0.1, "kp": 30}
DT, LATE = 0.004, 0.0104


def recorded(seed, noise, steps=600):
    """(targets (steps, 2), positions (steps + 1, 2)) of multisines, which arrive ``LATE`` s after they are sent."""
    rng = np.random.default_rng(seed)
    t, phase = DT * np.arange(steps)[:, None, None], 2 * np.pi * rng.random((1, 2, 4))
    targets = np.sum([0.6, 0.3, 0.2, 0.1] * np.sin(2 * np.pi * t * [0.5, 1.1, 1.9, 2.7] + phase), axis=2)
    model = mujoco.MjModel.from_xml_string(XML.format(**TRUE))
    data, q, each = mujoco.MjData(model), [np.zeros(2)], round(DT / model.opt.timestep)
    for k in range(steps):
        for j in range(each):
            data.ctrl[:] = targets[max((k * each + j - round(each * LATE / DT)) // each, 0)]
            mujoco.mj_step(model, data)
        q.append(data.qpos.copy())
    return targets, np.array(q) + noise * rng.normal(size=(steps + 1, 2))


def estimate(seed, noise):
    """(estimates, their standard errors, seconds) of mass, friction, gains and delay."""
    targets, q = recorded(seed, noise)
    model = lgsim.load_mjcf(text=XML.format(**PRIOR))
    servo = PositionServo(jnp.array([30.0, 30.0]), jnp.array([1.1, 0.7]))
    plant = identify.unknowns.InstrumentedPlant(
        identify.Plant(model, actuators=Actuators(Transmission.of_joints(model), servo)), input_delay=0.002
    )
    blocks = [
        identify.Masses(["fore"]), identify.JointParameter("damping"),
        identify.ActuatorParameter("stages.0.stiffness", relative=True), identify.unknowns.InputDelay(max_delay=0.03),
    ]  # fmt: skip
    records = identify.SensorRecords(DT, {"q": identify.Channel(identify.PositionSensor(), q, noise)}, commands=targets)
    start = time.perf_counter()
    found = identify.fit(identify.Parameters(plant, blocks), records, identify.SimulationFit(window_steps=75))
    seconds = time.perf_counter() - start
    return list(found.values.values()), list(found.deviations.values()), seconds


def run(report):
    """The table: relative errors, and the number of estimates within two reported standard errors."""
    count, noise = (3 if report.quick else 20), 5e-4
    truth = np.array([TRUE["mass"], TRUE["damping"], TRUE["damping"], TRUE["kp"], TRUE["kp"], LATE])
    found = [estimate(seed, noise) for seed in range(count)]
    values, deviations = (np.array([row[k] for row in found]) for k in (0, 1))
    error, inside = np.abs(values / truth - 1), np.abs(values - truth) < 2 * deviations
    names = (
        "mass of the second link",
        "damping, joint 1",
        "damping, joint 2",
        "gain, joint 1",
        "gain, joint 2",
        "delay",
    )
    rows = [
        [name, f"{100 * np.median(error[:, k]):.2f} %", f"{100 * error[:, k].max():.2f} %", f"{inside[:, k].sum()}"]
        for k, name in enumerate(names)
    ]
    report.table(
        f"Servo without torques: targets and positions alone, 2.4 s at 250 Hz, 0.5 mrad of noise, {count} recordings",
        ["number", "median error", "largest", "within two deviations"],
        rows,
    )
    report.bound("servo without torques: largest median error, %", 100 * np.median(error, axis=0).max(), at_most=2.0)
    report.bound("servo without torques: share within two deviations", inside.mean(), at_least=0.85)
    report.figure("servo without torques: a fit, compiled", np.median([row[2] for row in found[1:]]), "s")
