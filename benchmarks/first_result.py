"""Time to the first result, and the cost of one call: new processes, empty caches.

    python benchmarks/first_result.py --quick     Panda, a rollout, a command's help
    python benchmarks/first_result.py             all, and a record in benchmarks/results

CPU seconds and wall time, from a call to its result, or from the start of a command to its end; the processes may use
two cores. The second start of a row finds the caches of the first one. Without llvmlite XLA compiles everything (`XLA
only`). Needs the extras `fast` and `cli`; example-robot-data (extra `oracle`) for the robots.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import csv
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import lgsim

jax.config.update("jax_enable_x64", True)

HERE = Path(__file__).resolve().parent
CORES = sorted(os.sched_getaffinity(os.getppid()))[-2:] if hasattr(os, "sched_getaffinity") else []

HEAD = """
import sys, time
sys.path.insert(0, {here!r})
import jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
import lgsim, robots
model = robots.robot({robot!r}, "float64")
states = robots.state(model, 256)
start = time.process_time(), time.perf_counter()
"""
TAIL = """
print("spent", time.process_time() - start[0], time.perf_counter() - start[1])
"""
VJP = """
q, v, x = states
def product(model, q, v, x, y):
    value, back = jax.vjp(lambda *args: lgsim.forward_dynamics(model, *args), q, v, x)
    return value, back(y)
jax.block_until_ready(jax.jit(jax.vmap(product, (None, 0, 0, 0, 0)))(model, q, v, x, v))
"""
GRADIENT = """
from lgsim.simulation import rollout
q, v = states[0][:64], states[1][:64]
def loss(model, q, v, torques):
    out = rollout(model, q, v, dt=1e-3, steps=200, torques=torques, save_every=200)
    return jnp.sum(out.q[-1] ** 2) + jnp.sum(out.v[-1] ** 2)
gradient = jax.vmap(jax.grad(loss, argnums=(1, 2, 3)), (None, 0, 0, 0))
jax.block_until_ready(jax.jit(gradient)(model, q, 0.1 * v, jnp.zeros((64, 200, model.nv))))
"""
SOLVE = """
from lgsim import optimize
dynamics = optimize.MultibodyDynamics(model, dt=0.04)
problem = optimize.Problem(
    dynamics, dynamics.state(states[0][0]), horizon=25, running=optimize.ControlEffort(1e-4),
    terminal=optimize.Posture(model, jnp.zeros(model.nv), weight=1e2), lower=-80.0, upper=80.0,
)
jax.block_until_ready(optimize.solve(problem, solver=optimize.ILQR(max_iterations=20)).cost)
"""
THIRD = """
q, v, x = (each[0] for each in states)
f = lambda q: lgsim.forward_dynamics(model, q, v, x)
jax.block_until_ready(jax.jit(jax.jacfwd(jax.jacfwd(jax.jacfwd(f))))(q))
"""
NUMBERS = """
q, v, x = states
f = lambda model, q, v, x: jnp.sum(lgsim.forward_dynamics(model, q, v, x))
jax.block_until_ready(jax.jit(jax.vmap(jax.grad(f, allow_int=True), (None, 0, 0, 0)))(model, q, v, x).inertias)
"""
POSTURE = """
from lgsim import optimize
def q(x):
    target = jnp.array([0.4, 0.1, 0.5]) + x
    return optimize.inverse_kinematics(model, "panda_hand", target, posture_weight=1e-2, max_iterations=30).q
jax.block_until_ready(jax.jit(lambda x: (jax.jacfwd(q)(x), jax.jacrev(q)(x)))(jnp.zeros(3)))
"""
PROGRAMS = {
    "vjp": VJP, "gradient": GRADIENT, "solve": SOLVE, "third": THIRD, "numbers": NUMBERS, "posture": POSTURE,
}  # fmt: skip


@contextmanager
def two_cores():
    """Allow the processes that start here to use two cores."""
    if not CORES:
        yield
        return
    one = os.sched_getaffinity(0)
    os.sched_setaffinity(0, CORES)
    try:
        yield
    finally:
        os.sched_setaffinity(0, one)


def spent(command, cache, **environment):
    """(CPU seconds, wall seconds) of a command with its cache in a folder, measured or as the command prints them."""
    env = os.environ | {
        "XDG_CACHE_HOME": str(cache / "home"), "JAX_COMPILATION_CACHE_DIR": str(cache / "jax"), "JAX_PLATFORMS": "cpu",
    } | environment  # fmt: skip
    env.pop("LGSIM_CACHE_DIR", None)
    env.pop("XLA_FLAGS", None)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with two_cores():
        done = subprocess.run(command, env=env, cwd=cache, capture_output=True, text=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (
        0,
        3,
    ):  # 3: a freely swinging arm is chaotic, so that its motion does not converge in the step size
        sys.exit(f"{' '.join(command)[:200]}\n{done.stderr[-2000:]}")
    said = done.stdout.split()
    if said[:1] == ["spent"]:
        return float(said[1]), float(said[2])
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def program(name, robot):
    """The command that runs one of the programs above."""
    return [sys.executable, "-c", HEAD.format(here=str(HERE), robot=robot) + PROGRAMS[name] + TAIL]


def command(*words):
    """The command of the program ``lgsim``."""
    return [sys.executable, "-m", "lgsim.cli", *map(str, words)]


def record(path):
    """Ten seconds of the cart-pole's two joints and their forces, with noise, as CSV; returns the file of the robot."""
    machine = lgsim.data.cart_pole()
    model = lgsim.load_urdf(machine)
    t = np.arange(0, 10, 0.01)[:, None]
    rates, sizes = np.array([1.7, 2.9]), np.array([0.4, 0.8])
    q, v, a = sizes * np.sin(rates * t), sizes * rates * np.cos(rates * t), -sizes * rates**2 * np.sin(rates * t)
    tau = lgsim.inverse_dynamics(model, *map(jnp.asarray, (q, v, a)))
    tau = np.asarray(tau) + 0.01 * np.random.default_rng(0).normal(size=q.shape)
    names = model.topology.joint_names
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["time [s]", *(f"q {n}" for n in names), *(f"tau {n}" for n in names)])
        rows.writerows(np.concatenate([t, q, tau], axis=1).tolist())
    return machine


def waits(report, folder):
    """Time of first and second starts."""
    arm, motion = lgsim.data.arm7(), folder / "motion.csv"
    machine = record(motion)
    reach = folder / "reach.toml"
    reach.write_text(lgsim.data.scenario("reach").read_text(encoding="utf-8"), encoding="utf-8")
    cases = [  # name, command, bounds of the first and the second start, True to show XLA only
        ("vjp of forward dynamics, Panda, batch 256", program("vjp", "Panda"), 3, None, True),
        ("vjp, ANYmal", program("vjp", "ANYmal"), 5, None, True),
        ("vjp, Talos", program("vjp", "Talos"), 10, None, True),
        ("gradient of 200 steps, ANYmal, batch 64", program("gradient", "ANYmal"), 10, None, True),
        ("third derivatives of forward dynamics, Panda", program("third", "Panda"), 8, None, False),
        ("third derivatives, ANYmal", program("third", "ANYmal"), 20, None, False),
        ("vmap(grad) by all numbers, Panda", program("numbers", "Panda"), 5, None, False),
        ("vmap(grad) by all numbers, ANYmal", program("numbers", "ANYmal"), 12, None, False),
        ("both Jacobians of inverse kinematics, Panda", program("posture", "Panda"), 8, None, False),
        ("first solve by iLQR, Panda", program("solve", "Panda"), 10, None, True),
        ("lgsim simulate, arm of 7 joints, 5 s", command("simulate", arm, "--duration", 5), 4, 2, True),
        ("lgsim optimize, reach", command("optimize", reach), 15, 5, True),
        ("lgsim identify, two joints", command("identify", machine, motion, "--fit", "masses"), 15, None, True),
    ]
    if report.quick:
        cases = [(*case[:4], False) for case in cases if case[0].endswith(("Panda, batch 256", "5 s"))]
    rows = []
    for i, (name, words, first, second, alone) in enumerate(cases):
        print(name, file=sys.stderr, flush=True)
        cache = folder / f"cache{i}"
        cache.mkdir()
        cold, wall = spent(words, cache)
        warm, warm_wall = spent(words, cache)
        row = [name, cold, wall, warm, warm_wall]
        if alone:
            other = folder / f"alone{i}"
            other.mkdir()
            row += spent(words, other, LGSIM_LLVM_LOWERING="0")
        else:
            row += ["-", "-"]
        rows.append(row)
        report.bound(f"{name}: processor seconds", cold, at_most=first)
        if second is not None:
            report.bound(f"{name}: processor seconds, second start", warm, at_most=second)
    report.figure("vjp Panda", rows[0][1], "s")
    report.table(
        "Seconds to the first result, with empty caches and at the second start",
        ["", "processor", "wall", "second start", "wall", "XLA only", "wall"],
        rows,
    )


def imports(report, folder):
    """Cost of a process that computes nothing."""
    words = {
        "import jax": [sys.executable, "-c", "import jax"],
        "import jax, lgsim": [sys.executable, "-c", "import jax, lgsim"],
        "lgsim --help": command("--help"),
    }
    found = {name: [] for name in words}
    for _ in range(5 if report.quick else 9):
        for name, each in words.items():
            found[name].append(spent(each, folder)[0])
    seconds = {name: statistics.median(each) for name, each in found.items()}
    report.table("Imports, processor s, medians", ["", "s"], list(seconds.items()))
    above = seconds["import jax, lgsim"] - seconds["import jax"]
    report.bound("import lgsim above import jax, s", above, at_most=0.4)
    report.bound("lgsim --help, s", seconds["lgsim --help"], at_most=0.5)
    report.figure("lgsim --help", seconds["lgsim --help"], "s")


CALL = """
import os, statistics
q, v, x = (each[0] for each in states)
f = jax.jit(lgsim.forward_dynamics).lower(model, q, v, x).compile()
def loop(model, q, v, x):
    return jax.lax.fori_loop(0, 1000, lambda i, v: v + 1e-9 * lgsim.forward_dynamics(model, q, v, x), v)
g = jax.jit(loop).lower(model, q, v, x).compile()
nothing = jax.jit(lambda model, q, v, x: x + v + q).lower(model, q, v, x).compile()
def seconds(call, count):
    found = []
    for _ in range(15):
        start = time.perf_counter()
        for _ in range(count):
            jax.block_until_ready(call(model, q, v, x))
        found.append((time.perf_counter() - start) / count)
    return statistics.median(found)
print(1e6 * seconds(f, 1000), 1e6 * seconds(nothing, 1000), 1e6 * seconds(g, 3) / 1000)
"""


def calls(report, folder):
    """One call of forward dynamics, the model an argument, from Python and in a loop, on one core."""
    at_once = "jax.config.update('jax_cpu_enable_async_dispatch', False)\n"
    rows = []
    for name, head, lowering in (
        ("default dispatch", "", "0"),
        ("in the calling thread", at_once, "0"),
        ("in the calling thread, LLVM", at_once, "1"),
    ):
        text = "import jax\n" + head + HEAD.format(here=str(HERE), robot="Panda") + CALL
        env = os.environ | {"LGSIM_LLVM_LOWERING": lowering, "JAX_PLATFORMS": "cpu"}
        out = subprocess.run(
            [sys.executable, "-c", text], env=env, cwd=folder, capture_output=True, text=True, check=True
        )
        rows.append([name, *map(float, out.stdout.split())])
    report.table(
        "Forward dynamics of one state, Panda, µs", ["", "a call", "a call that adds its arguments", "in a loop"], rows
    )
    report.bound("one call in the calling thread, µs", rows[1][1], at_most=12)
    report.bound("one call, LLVM, µs", rows[2][1], at_most=8)
    report.bound("in a loop, LLVM, µs", rows[2][3], at_most=0.8)
    report.figure("one call", rows[2][1], "us")


def run(report):
    """All tables."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        waits(report, folder)
        imports(report, folder)
        calls(report, folder)


if __name__ == "__main__":
    harness.main(run, "first_result")
