"""The same records and parameters given to SimulationFit and to mujoco.sysid: sweeps, seconds, cost."""

import contextlib
import io
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import sysid

import lgsim
from lgsim.identify.joint_blocks import Drive
from lgsim.identify.minimisers import ChainSteps
from lgsim.identify.parameters import Parameters
from lgsim.identify.records import Channel, Records
from lgsim.identify.sensors import Positions
from lgsim.identify.simulation_error import SimulationFit

DT, SETS, STEPS = 2e-3, 8, 250
NOISE = 1e-4
"""Of the encoders, rad."""
NUMBERS = ("damping", "armature")


def arm(seed=0):
    """(lgsim's arm with the true numbers, names of its joints)."""
    rng = np.random.default_rng(seed)
    model = lgsim.load_urdf(lgsim.data.arm7())
    wide = np.full(model.nv, 1e6)
    return model.replace(
        damping=jnp.asarray(rng.uniform(0.5, 2.0, model.nv)), armature=jnp.asarray(rng.uniform(0.05, 0.3, model.nv)),
        friction=jnp.zeros(model.nv), lower=jnp.asarray(-wide), upper=jnp.asarray(wide),
    )  # fmt: skip


def machine(model, integrator):
    """MuJoCo's spec of the same arm without limits and contacts."""
    spec = mujoco.MjSpec.from_file(str(lgsim.data.arm7()))
    spec.option.timestep, spec.option.integrator = DT, integrator
    spec.option.disableflags = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    for i, name in enumerate(model.joint_names):
        joint = spec.joint(name)
        joint.limited, joint.frictionloss = mujoco.mjtLimited.mjLIMITED_FALSE, 0.0
        put(joint, "damping", float(model.damping[i]))
        put(joint, "armature", float(model.armature[i]))
        actuator = spec.add_actuator(name=f"drive {name}", target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        actuator.ctrllimited = actuator.forcelimited = mujoco.mjtLimited.mjLIMITED_FALSE
        spec.add_sensor(
            name=f"angle {name}", type=mujoco.mjtSensor.mjSENS_JOINTPOS, objtype=mujoco.mjtObj.mjOBJ_JOINT, objname=name
        )
    return spec


def put(joint, number, value):
    """A number of a joint, which some versions of MuJoCo hold as the first of a few."""
    if np.ndim(getattr(joint, number)):
        getattr(joint, number)[:] = 0
        getattr(joint, number)[0] = value
    else:
        setattr(joint, number, value)


def motion(model, seed=1):
    """(q (SETS, STEPS + 1, nv), tau (SETS, STEPS, nv)) of MuJoCo's RK4 at a fifth of the step, torques held."""
    spec = machine(model, mujoco.mjtIntegrator.mjINT_RK4)
    spec.option.timestep = DT / 5
    compiled = spec.compile()
    data = mujoco.MjData(compiled)
    rng = np.random.default_rng(seed)
    t = DT * np.arange(STEPS)
    q, tau = np.zeros((SETS, STEPS + 1, model.nv)), np.zeros((SETS, STEPS, model.nv))
    for s in range(SETS):
        mujoco.mj_resetData(compiled, data)
        data.qpos[:] = rng.uniform(-1, 1, model.nv)
        mujoco.mj_forward(compiled, data)
        hold = data.qfrc_bias.copy()
        wave = sum(rng.uniform(-1, 1, model.nv) * np.sin(2 * np.pi * f * t[:, None] + rng.uniform(0, 6, model.nv))
                   for f in (1.0, 2.3, 4.1))  # fmt: skip
        tau[s] = hold + wave * np.linspace(6, 1.5, model.nv)
        q[s, 0] = data.qpos
        for k in range(STEPS):
            data.ctrl[:] = tau[s, k]
            for _ in range(5):
                mujoco.mj_step(compiled, data)
            q[s, k + 1] = data.qpos
    return q, tau


class Counter:
    """A residual function that counts passes over all records: one for each column that it is given."""

    def __init__(self, function):
        self.function, self.passes = function, 0

    def __call__(self, x, parameters, **others):
        self.passes += x.shape[1] if np.ndim(x) > 1 else 1
        return self.function(x, parameters, **others)


def by_mujoco(model, q, tau, integrator, guess, clock=time.perf_counter):
    """(numbers found (2, nv), passes, seconds) of mujoco.sysid."""
    spec = machine(model, integrator)
    compiled = spec.compile()
    data = mujoco.MjData(compiled)
    times = DT * np.arange(STEPS + 1)
    parameters = sysid.ParameterDict()
    for number, start, low, high in zip(NUMBERS, guess, (0.0, 0.005), (5.0, 1.0), strict=True):
        for i, name in enumerate(model.joint_names):

            def modify(spec, parameter, name=name, number=number):
                put(spec.joint(name), number, float(parameter.value[0]))

            true = float(getattr(model, number)[i])
            entry = sysid.Parameter(f"{name} {number}", true, low, high, modifier=modify)
            parameters.add(entry)
            parameters[f"{name} {number}"].value[:] = start
    sequences = []
    for s in range(SETS):
        state = sysid.create_initial_state(compiled, q[s, 0], np.zeros(model.nv), data.act)
        held = np.concatenate([tau[s], tau[s, -1:]])
        # MuJoCo's sensors show the state before the step, and the first row is left out
        seen = np.concatenate([q[s, :1], q[s, :-1]])
        control, readings = sysid.TimeSeries(times, held), sysid.TimeSeries.from_names(times, seen, compiled)
        sequences.append(sysid.ModelSequences("arm", spec, f"set{s}", state, control, readings))
    counted = Counter(sysid.build_residual_fn(models_sequences=sequences, n_threads=1, resample_true=False))
    begin = clock()
    with contextlib.redirect_stdout(io.StringIO()):
        found, _ = sysid.optimize(parameters, counted, optimizer="mujoco", verbose=False, max_iters=50)
    seconds = clock() - begin
    return found.as_vector().reshape(2, -1), counted.passes, seconds


def by_lgsim(model, q, tau, guess, method=lgsim.MK4, clock=time.perf_counter):
    """(numbers found (2, nv), sweeps, seconds, seconds of the first call) of SimulationFit, the start being known."""
    prior = model.replace(**{n: jnp.full(model.nv, g) for n, g in zip(NUMBERS, guess, strict=True)})
    parameters = Parameters(prior, [Drive("damping"), Drive("armature", lower=0.005)])
    states = np.concatenate([q, np.zeros_like(q)], axis=-1)
    records = Records(DT, {"q": Channel(Positions(), q, NOISE)}, signals=tau, states=states)
    estimator = SimulationFit(known_start=True, method=method, minimiser=ChainSteps(tolerance=1e-4))
    run = eqx.filter_jit(lambda parameters, records: estimator.run(parameters, records))
    seconds = []
    for _ in range(2):
        begin = clock()
        found = jax.block_until_ready(run(parameters, records))
        seconds.append(clock() - begin)
    plant = parameters.put(found.x)
    numbers = np.array([getattr(plant.model, n) for n in NUMBERS])
    return numbers, int(found.iterations), seconds[1], seconds[0]


def cost(model, numbers, q, tau):
    """Half the squared residuals in standard deviations of MuJoCo's RK4 with such numbers."""
    own = model.replace(**{n: jnp.asarray(x) for n, x in zip(NUMBERS, numbers, strict=True)})
    compiled = machine(own, mujoco.mjtIntegrator.mjINT_RK4).compile()
    data = mujoco.MjData(compiled)
    total = 0.0
    for s in range(SETS):
        mujoco.mj_resetData(compiled, data)
        data.qpos[:] = q[s, 0]
        for k in range(STEPS):
            data.ctrl[:] = tau[s, k]
            mujoco.mj_step(compiled, data)
            total += np.sum((data.qpos - q[s, k + 1]) ** 2) / NOISE**2 / 2
    return total
