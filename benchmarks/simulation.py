"""Rollouts compared with MuJoCo: steps per second, compilation, gradients through a rollout; one core, float64.

    python benchmarks/simulation.py --quick     Panda
    python benchmarks/simulation.py             Panda and ANYmal, and a record in benchmarks/results

Needs the extra `oracle` (mujoco, example-robot-data). MuJoCo reads the same bodies (peers/export.py) and runs its own
RK4 with one state after another in C; lgsim's states start from the same configurations. On revolute joints both are
the same method, so that the positions are compared first.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import sys

import jax
import jax.numpy as jnp
import numpy as np
import robots

try:
    import mujoco
except ImportError as missing:
    sys.exit(f"benchmarks/simulation.py: {missing.name} is missing; install it with: pip install 'lgsim[oracle]'")
from peers import export

import lgsim
from lgsim.simulation import rollout

jax.config.update("jax_enable_x64", True)

DT = 1e-3
# Lower bounds of steps per second relative to MuJoCo's RK4, by batch.
SPEED = {"Panda": {1: 1.2, 1024: 20}, "ANYmal": {1024: 10}}
# Upper bounds of the gradient through 200 steps, ms per state, by batch.
MILLISECONDS = {"Panda": {1: 4, 64: 0.8}, "ANYmal": {1: 10, 64: 2}}


def end(steps):
    """The state after some steps."""
    return lambda model, q, v: rollout(model, q, v, dt=DT, steps=steps, save_every=steps)[1:3]


def theirs(model):
    machine = mujoco.MjModel.from_xml_string(export.mjcf(export.bodies(model)))
    machine.opt.integrator, machine.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, DT
    return machine, mujoco.MjData(machine)


def place(machine, data, q):
    """MuJoCo's data at a configuration of lgsim, at rest; bases have the same coordinates in both."""
    mujoco.mj_resetData(machine, data)
    data.qpos[:] = np.asarray(q)


def speed(report, names):
    rows = []
    for name in names:
        model = robots.robot(name, "float64")
        model = model.replace(damping=jnp.zeros(model.nv), friction=jnp.zeros(model.nv))
        machine, data = theirs(model)
        q, _, _ = robots.state(model, 1024)
        still = jnp.zeros((1024, model.nv))
        if not model.topology.floats:
            short, _ = harness.compiled(end(100), model, q[0], still[0])
            place(machine, data, q[0])
            mujoco.mj_step(machine, data, nstep=100)
            gap = np.abs(np.asarray(short(model, q[0], still[0])[0])[-1] - data.qpos).max()
            report.bound(f"{name}: position after 100 steps, difference from MuJoCo", gap, at_most=1e-10)
        # XLA unrolls a loop of one step
        _, of_ten = harness.compiled(end(10), model, q[0], still[0])
        for batch in (1, 1024):
            steps = 1000 if batch == 1 else 20
            f = lgsim.tiled_vmap(end(steps), in_axes=(None, 0, 0)) if batch > 1 else end(steps)
            x = (q, still) if batch > 1 else (q[0], still[0])
            program, compiling = harness.compiled(f, model, *x)

            def native(machine=machine, data=data, q=q):
                place(machine, data, q[0])
                mujoco.mj_step(machine, data, nstep=1000)

            seconds = harness.interleave(
                {"lgsim": lambda p=program, m=model, x=x: p(m, *x), "mujoco": native}, 5 if report.quick else 15
            )
            ours, other = steps * batch / seconds["lgsim"], 1000 / seconds["mujoco"]
            rows.append([name, batch, ours, 4 * ours, other, ours / other, compiling])
            if batch in SPEED[name]:
                report.figure(f"{name} batch {batch}", ours / other, "x MuJoCo RK4")
                report.bound(f"{name}, batch {batch}: relative to MuJoCo", ours / other, at_least=SPEED[name][batch])
            if batch == 1:
                report.bound(f"{name}: compile of 1000 steps / of 10", compiling / of_ten, at_most=1.3)
    report.table(
        "MK4 at 1 ms and MuJoCo's RK4, float64, per second",
        ["robot", "batch", "steps", "dynamics evaluations", "MuJoCo steps", "ratio", "compile, s"],
        rows,
    )


def gradients(report, names):
    rows = []
    for name in names:
        model = robots.robot(name, "float64")
        q, v, _ = robots.state(model, 64)
        v = 0.1 * v

        def loss(model, q, v, torques):
            out = rollout(model, q, v, dt=DT, steps=200, torques=torques, save_every=200)
            return jnp.sum(out.q[-1] ** 2) + jnp.sum(out.v[-1] ** 2)

        torques = jnp.zeros((64, 200, model.nv))
        for batch in (1, 64):
            x = (q, v, torques) if batch > 1 else (q[0], v[0], torques[0])
            functions = {"value": loss, "gradient": jax.grad(loss, argnums=(1, 2, 3))}
            programs, compiling = {}, 0.0
            for task, f in functions.items():
                f = lgsim.tiled_vmap(f, in_axes=(None, 0, 0, 0)) if batch > 1 else f
                program, compiling = harness.compiled(f, model, *x)
                programs[task] = lambda p=program, m=model, x=x: p(m, *x)
            seconds = harness.interleave(programs, 5 if report.quick else 15)
            ratio, ms = seconds["gradient"] / seconds["value"], 1e3 * seconds["gradient"] / batch
            rows.append([name, batch, 1e3 * seconds["value"] / batch, ms, ratio, compiling])
            report.bound(f"{name}, batch {batch}: gradient of 200 steps, ms", ms, at_most=MILLISECONDS[name][batch])
            if batch == 1:
                report.figure(f"{name} gradient of 200 steps", ms, "ms")
    report.table(
        "Gradient of 200 MK4 steps with respect to all torques, q and v, float64, ms per state",
        ["robot", "batch", "rollout", "gradient", "ratio", "compile, s"],
        rows,
    )


def run(report):
    """All tables."""
    names = ["Panda"] if report.quick else ["Panda", "ANYmal"]
    speed(report, names)
    if not report.quick:
        gradients(report, names)


if __name__ == "__main__":
    harness.main(run, "simulation")
