"""Stiff systems: cost of a linearly implicit step, and time for a given error, on one core in float64.

    python benchmarks/stiff.py --quick     Panda, chains up to 100
    python benchmarks/stiff.py             ANYmal and a chain of 200 too, and a record in benchmarks/results

Needs the extras `oracle` (mujoco, example-robot-data) and `adaptive` (diffrax). The arm reaches for a goal against
smooth dry friction, steepest at a speed of 0.02 rad/s (rates of 4 500 1/s); the reference in
tests/data/stiff_reach.json is from the equations of Pinocchio and scipy's Radau.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import json
import sys
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import robots

try:
    import diffrax
    import mujoco
except ImportError as missing:
    sys.exit(f"benchmarks/stiff.py: {missing.name} is missing; install it with: pip install 'lgsim[oracle,adaptive]'")
from peers import export

import lgsim
from lgsim.simulation import controls, rollout

jax.config.update("jax_enable_x64", True)

METHODS = lgsim.METHODS | lgsim.LINEARLY_IMPLICIT_METHODS | lgsim.IMPLICIT_METHODS
DATA = Path(__file__).resolve().parents[1] / "tests" / "data" / "stiff_reach.json"
ROWS = json.loads(DATA.read_text(encoding="utf-8"))["rows"]
CASE = ROWS[1]
DURATION, ERROR = 1.6, 1e-4
# Upper bounds of a step of Rodas4 relative to one of MK4, batch 1024.
COST = {"Panda": 2.2, "ANYmal": 3.5}
BATCH = 64


def end_of(method, steps, model, law, q, v):
    """The state after steps of 5 ms."""
    motion = rollout(model, q, v, dt=5e-3, steps=steps, save_every=steps, control=law, method=method)
    return motion.q[-1], motion.v[-1]


def cost(report, names):
    """Cost of a step by method, in a batch."""
    rows = []
    for name in names:
        model = robots.robot(name, "float64")
        driven = np.arange(model.nv) >= (6 if model.topology.floats else 0)
        model = model.replace(friction=jnp.where(driven, 0.5, 0.0), friction_speed=jnp.full(model.nv, 0.1))
        hold = controls.PD(model.neutral(), jnp.where(driven, 60.0, 0.0), jnp.where(driven, 2.0, 0.0))
        q = jnp.broadcast_to(model.neutral(), (1024, model.nq))
        v = 0.1 * jax.random.normal(jax.random.key(0), (1024, model.nv))
        steps, programs, compiling = 8, {}, {}
        for method in ("MK4", "ROS2", "ROS3P", "Rodas4"):
            end = partial(end_of, METHODS[method], steps)
            f = lgsim.tiled_vmap(end, in_axes=(None, None, 0, 0))
            program, compiling[method] = harness.compiled(f, model, hold, q, v)
            programs[method] = partial(program, model, hold, q, v)
        seconds = harness.interleave(programs, 5 if report.quick else 15)
        for method, value in seconds.items():
            rows.append([name, method, 1e6 * value / steps / 1024, value / seconds["MK4"], compiling[method]])
        ratio = seconds["Rodas4"] / seconds["MK4"]
        report.figure(f"{name}: a step of Rodas4", ratio, "MK4 steps")
        report.bound(f"{name}: a step of Rodas4 relative to MK4", ratio, at_most=COST[name])
    report.table(
        "A step in a batch of 1024, PD control and dry friction",
        ["robot", "method", "µs per state", "MK4 steps", "compile, s"],
        rows,
    )


def arm(case=CASE):
    """(model with friction, parameters of the controller)."""
    model = robots.robot("Panda", "float64")
    numbers = {name: jnp.asarray(case[name]) for name in ("goal", "stiffness", "damping", "friction", "hold", "q0")}
    friction = {"friction": numbers["friction"], "friction_speed": jnp.full(7, case["friction_speed"])}
    return model.replace(damping=jnp.zeros(7), **friction), numbers


def error_of(q, v, case=CASE):
    return float(max(np.abs(q - np.array(case["q"][-1])).max(), np.abs(v - np.array(case["v"][-1])).max()))


def orders(report):
    """Errors and observed order at step sizes that do not resolve the fastest rates."""
    rows, lengths = [], (20e-3, 10e-3, 5e-3, 2.5e-3)
    for case in ROWS:
        model, numbers = arm(case)
        law = controls.PD(numbers["goal"], numbers["stiffness"], numbers["damping"])
        for name in ("MK4", "ROS3P", "Rodas4"):
            errors = []
            for dt in lengths:
                found = rollout(
                    model, numbers["q0"], jnp.zeros(7), dt=dt, steps=round(DURATION / dt), control=law,
                    torques=numbers["hold"], method=METHODS[name], save_every=round(DURATION / dt),
                )  # fmt: skip
                errors.append(error_of(np.asarray(found.q[-1]), np.asarray(found.v[-1]), case))
            shown = [f"{x:.1e}" if np.isfinite(x) else "diverged" for x in errors]
            slope = np.log2(errors[0] / errors[-1]) / 3 if np.isfinite(errors).all() else np.nan
            rows.append([name, case["friction_speed"], *shown, slope])
    report.table(
        "Errors at 1.6 s by step, and the order from 20 ms to 2.5 ms",
        ["method", "friction speed, rad/s", *(f"{1e3 * dt:g} ms" for dt in lengths), "order"],
        rows,
    )
    error = float(next(row[3] for row in rows if row[0] == "Rodas4"))
    report.bound(
        "Rodas4 at 10 ms, friction at 0.1 rad/s: error relative to the study's 2.1e-6", error / 2.1e-6, at_most=1.5
    )


def first_good(steps, run):
    """(steps, error) of the first number of steps that reaches the error, doubling from ``steps``."""
    while steps <= 2**17:
        error = error_of(*map(np.asarray, run(steps)))
        if error <= ERROR:
            return steps, error
        steps *= 2
    return steps, float("nan")


def to_an_error(report):
    """Time for an error of 1e-4 rad and rad/s at 1.6 s."""
    model, numbers = arm()
    law = controls.PD(numbers["goal"], numbers["stiffness"], numbers["damping"])
    spread = jnp.broadcast_to(numbers["q0"], (BATCH, 7))
    rows, programs = [], {}
    names = ["MK4", "ROS3P", "Rodas4"] if report.quick else ["MK4", "ROS2", "ROS3P", "Rodas4", "MKGauss4"]
    for name in names:
        method = METHODS[name]

        def motion(model, law, q, steps, method=method):
            found = rollout(
                model, q, jnp.zeros(7), dt=DURATION / steps, steps=steps, save_every=steps, control=law,
                torques=numbers["hold"], method=method,
            )  # fmt: skip
            return found.q[-1], found.v[-1]

        one = jax.jit(motion, static_argnums=3)
        steps, error = first_good(40, lambda n, one=one: one(model, law, numbers["q0"], n))
        program, compiling = harness.compiled(
            lgsim.tiled_vmap(lambda m, law, q, f=motion, n=steps: f(m, law, q, n), in_axes=(None, None, 0)),
            model, law, spread,
        )  # fmt: skip
        programs[name] = lambda p=program: p(model, law, spread)
        rows.append([name, f"{1e3 * DURATION / steps:g} ms", error, compiling])
    for name, make in {"diffrax Kvaerno5 on R^7": kvaerno}.items():
        run, tolerance, error, compiling = make(model, law, numbers, spread)
        programs[name] = run
        rows.append([name, f"rtol {tolerance:g}", error, compiling])
    seconds = harness.interleave(programs, 3 if report.quick else 9)
    seconds = {name: value / BATCH for name, value in seconds.items()}
    theirs, steps, error = mujoco_time(model, numbers)
    seconds["MuJoCo implicitfast"] = theirs
    rows.append(["MuJoCo implicitfast", f"{1e3 * DURATION / steps:g} ms", error, 0.0])
    best = seconds["Rodas4"]
    report.table(
        f"Reaching against dry friction, 1.6 s, to an error of {ERROR:g}: a batch of {BATCH} (MuJoCo one by one)",
        ["method", "step", "error", "ms a motion", "times Rodas4", "compile, s"],
        [[name, step, error, 1e3 * seconds[name], seconds[name] / best, compiling]
         for name, step, error, compiling in rows],
    )  # fmt: skip
    report.figure("Rodas4 to 1e-4", seconds["MK4"] / best, "x faster than MK4")
    report.bound("time of MK4 to the same error, relative to Rodas4", seconds["MK4"] / best, at_least=3)
    for name in seconds.keys() - {"MK4", "Rodas4", "ROS2", "ROS3P"}:
        report.bound(f"time of {name} to the same error, relative to Rodas4", seconds[name] / best, at_least=1)


def kvaerno(model, law, numbers, spread):
    """An adaptive, implicit method of order 5 in coordinates, with its Jacobian by forward mode."""

    def field(t, y, args):
        q, v = y[:7], y[7:]
        tau = numbers["hold"] + law(t, q, v, model) + lgsim.passive_forces(model, q, v)
        return jnp.concatenate([v, lgsim.forward_dynamics(model, q, v, tau)])

    def motion(q, tolerance):
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(field), diffrax.Kvaerno5(), 0.0, DURATION, 1e-3, jnp.concatenate([q, jnp.zeros(7)]),
            stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance), max_steps=16384,
        )  # fmt: skip
        return found.ys[-1]

    one, tolerance = jax.jit(motion), 1e-3
    while True:
        y = np.asarray(one(numbers["q0"], tolerance))
        error = error_of(y[:7], y[7:])
        if error <= ERROR or tolerance < 1e-10:
            break
        tolerance /= 10
    program, compiling = harness.compiled(jax.vmap(motion, (0, None)), spread, jnp.asarray(tolerance))
    return lambda: program(spread, jnp.asarray(tolerance)), tolerance, error, compiling


def mujoco_time(model, numbers):
    """(seconds, steps, error) of MuJoCo with the controller and the friction as forces before each step."""
    bare = model.replace(friction=jnp.zeros(7))
    machine = mujoco.MjModel.from_xml_string(export.mjcf(export.bodies(bare)))
    machine.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(machine)
    hold, goal, stiffness, damping, friction, q0 = (
        np.asarray(numbers[name]) for name in ("hold", "goal", "stiffness", "damping", "friction", "q0")
    )
    # actuators of the model would make the controller linear in the state as well, but not the friction
    machine.dof_damping[:] = damping

    def motion(steps):
        machine.opt.timestep = DURATION / steps
        mujoco.mj_resetData(machine, data)
        data.qpos[:], data.qvel[:] = q0, 0
        for _ in range(steps):
            data.qfrc_applied[:] = (
                hold + stiffness * (goal - data.qpos) - friction * np.tanh(data.qvel / CASE["friction_speed"])
            )
            mujoco.mj_step(machine, data)
        return data.qpos.copy(), data.qvel.copy()

    steps, error = first_good(160, motion)
    start = time.perf_counter()
    motion(steps)
    return time.perf_counter() - start, steps, error


def chains(report, lengths):
    """A step of one chain with dampers that are stiff at this step: its cost is linear in the number of bodies."""
    rows, programs, steps = [], {}, 10
    for length in lengths:
        model = robots.robot(f"chain{length}", "float64")
        model = model.replace(damping=jnp.full(model.nv, 50.0))
        for name in ("MK4", "Rodas4"):
            method = METHODS[name]

            def end(model, q, v, method=method):
                return rollout(model, q, v, dt=1e-4, steps=steps, save_every=steps, method=method).q[-1]

            start = model.neutral(), jnp.zeros(model.nv)
            program, _ = harness.compiled(end, model, *start)
            programs[length, name] = lambda p=program, m=model, x=start: p(m, *x)
    seconds = harness.interleave(programs, 5 if report.quick else 15)
    for length in lengths:
        mk4, rodas = (1e6 * seconds[length, name] / steps for name in ("MK4", "Rodas4"))
        rows.append([length, mk4, rodas, rodas / length])
    report.table("A step of a chain with dampers, one state, µs", ["bodies", "MK4", "Rodas4", "Rodas4 a body"], rows)
    growth = (rows[-1][2] / rows[-2][2]) / (rows[-1][0] / rows[-2][0])
    report.bound(f"cost per body of {lengths[-1]} relative to {lengths[-2]}", growth, at_most=1.3)


def run(report):
    """All tables."""
    cost(report, ["Panda"] if report.quick else ["Panda", "ANYmal"])
    if not report.quick:
        orders(report)
    to_an_error(report)
    chains(report, [50, 100] if report.quick else [50, 100, 200])


if __name__ == "__main__":
    harness.main(run, "stiff")
