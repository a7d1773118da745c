"""SimulationFit and mujoco.sysid on the same records and parameters: passes over the records, seconds, cost."""

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
from lgsim.identify.estimators.records import Channel, SensorRecords
from lgsim.identify.estimators.sensors import PositionSensor
from lgsim.identify.estimators.simulation_fit import SimulationFit
from lgsim.identify.unknowns.joint_blocks import JointParameter
from lgsim.identify.unknowns.parameters import Parameters

DT, SETS, STEPS = 2e-3, 8, 250
REPEATS = 5
GUESS = (1.0, 0.15)
"""Of every damping, N m s/rad, and every armature, kg m^2."""
NOISE = 1e-4
"""Of the encoders, rad."""
NUMBERS = ("damping", "armature")


def arm(seed=0):
    """The arm of lgsim with the true parameters."""
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
    """A joint parameter, which some versions of MuJoCo store as the first of several values."""
    if np.ndim(getattr(joint, number)):
        getattr(joint, number)[:] = 0
        getattr(joint, number)[0] = value
    else:
        setattr(joint, number, value)


def motion(model, seed=1):
    """(q (SETS, STEPS + 1, nv), tau (SETS, STEPS, nv)) by MuJoCo's RK4 at a fifth of the step; torques are constant."""
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
    # both know the initial state
    q[:, 1:] += NOISE * rng.standard_normal(q[:, 1:].shape)
    return q, tau


class Counter:
    """A residual function for mujoco.sysid that counts passes over all records, one per column of parameters."""

    def __init__(self, function):
        self.function, self.passes = function, 0

    def __call__(self, x, parameters, **others):
        self.passes += x.shape[1] if np.ndim(x) > 1 else 1
        return self.function(x, parameters, **others)


def by_mujoco(model, q, tau, integrator):
    """A function that returns (estimated parameters (2, nv), passes, seconds) of mujoco.sysid."""
    spec = machine(model, integrator)
    compiled = spec.compile()
    data = mujoco.MjData(compiled)
    times = DT * np.arange(STEPS + 2)
    sequences = []
    for s in range(SETS):
        state = sysid.create_initial_state(compiled, q[s, 0], np.zeros(model.nv), data.act)
        # MuJoCo's sensors show the state before a step: one step more shows the last state
        held = np.concatenate([tau[s], tau[s, -1:], tau[s, -1:]])
        seen = np.concatenate([q[s, :1], q[s]])
        control, readings = sysid.TimeSeries(times, held), sysid.TimeSeries.from_names(times, seen, compiled)
        sequences.append(sysid.ModelSequences("arm", spec, f"set{s}", state, control, readings))

    def run():
        counted = Counter(
            sysid.build_residual_fn(
                models_sequences=sequences, n_threads=1, resample_true=False, modify_residual=in_deviations
            )
        )  # fmt: skip
        parameters = unknowns(model)
        begin = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            found, _ = sysid.optimize(parameters, counted, optimizer="mujoco", verbose=False, max_iters=50)
        return found.as_vector().reshape(2, -1), counted.passes, time.perf_counter() - begin

    return run


def in_deviations(parameters, predicted, measured, model, everything, state, **others):
    """Residuals in standard deviations of the encoders, instead of fractions of each column's magnitude."""
    later = sysid.TimeSeries(measured.times[1:], measured.data[1:], measured.signal_mapping)
    return (predicted.data - later.data) / NOISE, predicted, later


def unknowns(model):
    """The same for mujoco.sysid."""
    parameters = sysid.ParameterDict()
    for number, start, low, high in zip(NUMBERS, GUESS, (0.0, 0.005), (5.0, 1.0), strict=True):
        for i, name in enumerate(model.joint_names):

            def modify(spec, parameter, name=name, number=number):
                put(spec.joint(name), number, float(parameter.value[0]))

            true = float(getattr(model, number)[i])
            parameters.add(sysid.Parameter(f"{name} {number}", true, low, high, modifier=modify))
            parameters[f"{name} {number}"].value[:] = start
    return parameters


def by_lgsim(model, q, tau):
    """A function that returns (estimates (2, nv), passes, seconds) of SimulationFit with a known initial state."""
    prior = model.replace(**{n: jnp.full(model.nv, g) for n, g in zip(NUMBERS, GUESS, strict=True)})
    parameters = Parameters(prior, [JointParameter("damping"), JointParameter("armature", lower=0.005)])
    states = np.concatenate([q, np.zeros_like(q)], axis=-1)
    records = SensorRecords(DT, {"q": Channel(PositionSensor(), q, NOISE)}, signals=tau, states=states)
    estimator = SimulationFit(known_start=True, method=lgsim.MK4)
    fit = eqx.filter_jit(lambda parameters, records: estimator.run(parameters, records))

    def run():
        begin = time.perf_counter()
        found = jax.block_until_ready(fit(parameters, records))
        seconds = time.perf_counter() - begin
        model = parameters.plant_at(found.x).model
        return np.array([getattr(model, n) for n in NUMBERS]), int(found.iterations), seconds

    return run


def cost(model, numbers, q, tau):
    """Half the sum of squared residuals, in standard deviations, of MuJoCo's RK4 with these parameters."""
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


def run(report):
    """In a full run, if mujoco.sysid is installed."""
    if report.quick:
        return
    if not hasattr(sysid, "optimize"):
        print("\nskipped: the comparison with mujoco.sysid; install it with: pip install 'mujoco[sysid]'")
        return
    model = arm()
    q, tau = motion(model)
    theirs, fast = "mujoco.sysid, RK4", "mujoco.sysid, implicitfast"
    runs = {
        "lgsim SimulationFit, MK4": by_lgsim(model, q, tau),
        theirs: by_mujoco(model, q, tau, mujoco.mjtIntegrator.mjINT_RK4),
        fast: by_mujoco(model, q, tau, mujoco.mjtIntegrator.mjINT_IMPLICITFAST),
    }
    ours, *_ = runs
    first = {name: one() for name, one in runs.items()}
    every = {name: [] for name in runs}
    for _ in range(REPEATS):
        for name, one in runs.items():
            every[name].append(one()[2])
    seconds = {name: float(np.median(some)) for name, some in every.items()}
    true = np.array([getattr(model, n) for n in NUMBERS])
    costs = {name: cost(model, found[0], q, tau) for name, found in first.items()}
    rows = [
        [name, found[1], seconds[name], found[2], costs[name], 100 * np.max(np.abs(found[0] / true - 1))]
        for name, found in first.items()
    ]
    report.table(
        f"{true.size} parameters from {SETS} motions of {STEPS} steps, one core (cost of the true parameters"
        f" {cost(model, true, q, tau):.6g})",
        ["by", "passes over all motions", "s", "s of the first call", "cost", "largest error, %"], rows,
    )  # fmt: skip
    print("A pass of lgsim is a simulation with all derivatives; one of mujoco.sysid is a simulation.")
    report.bound("mujoco.sysid's rollouts / lgsim's", first[theirs][1] / first[ours][1], at_least=10.0)
    report.bound("mujoco.sysid's seconds / lgsim's", seconds[theirs] / seconds[ours], at_least=5.0)
    report.bound("lgsim's cost / mujoco.sysid's", costs[ours] / costs[theirs], at_most=1 + 1e-4)
    report.figure("mujoco.sysid's seconds / lgsim's", seconds[theirs] / seconds[ours])
    report.figure("rollouts", first[theirs][1] / first[ours][1])
    report.figure("lgsim's first call there, with compilation", first[ours][2], "s")
