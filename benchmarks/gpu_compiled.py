"""Launches, bytes moved and bytes spilled on a GPU, from programs compiled for an H200 without one.

    python benchmarks/gpu_compiled.py --quick     forward and inverse dynamics of the Panda, or only the statements
    python benchmarks/gpu_compiled.py             all robots and functions, and a record in benchmarks/results

It needs the extra `cuda-aot`: XLA's compiler for CUDA, and CUDA's own, without a driver or a device. Without it,
only the programs of one state are counted. A launch costs 2 to 3 µs regardless of its work, and a state takes at
least its bytes divided by the 4.8 TB/s of the GPU.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_autotune_level=0"

import jax
import jax.numpy as jnp
import numpy as np
from cases.gpu import deviceless, hlo
from robots import robot

import lgsim
from lgsim import optimize
from lgsim._compile.programs import read
from lgsim._compile.programs.nvrtc import nvrtc
from lgsim._compile.programs.targets import Cuda, Described, Interface
from lgsim.actions import Translation

jax.config.update("jax_enable_x64", True)

STATES = 131072


def products(model, q, v, tau):
    return jax.vjp(lambda *x: lgsim.forward_dynamics(model, *x), q, v, tau)[1](v)


def step(model, q, v, tau):
    dt = jnp.asarray(1e-3, model.dtype)
    run = lgsim.rollout(model, q, v, dt=dt, steps=1, torques=tau, checkpoint=None)
    return run.q[-1], run.v[-1]


def step_gradient(model, q, v, tau):
    return jax.grad(lambda *x: sum(jnp.sum(y * y) for y in step(model, *x)), (0, 1, 2))(q, v, tau)


FUNCTIONS = {
    "forward dynamics": lgsim.forward_dynamics,
    "inverse dynamics": lgsim.inverse_dynamics,
    "mass matrix": lambda model, q, v, tau: lgsim.mass_matrix(model, q),
    "forward kinematics": lambda model, q, v, tau: lgsim.forward_kinematics(model, q),
    "products": products,
    "all Jacobians": lgsim.forward_dynamics_derivatives,
    "MK4 step": step,
    "gradient of a step": step_gradient,
}

# Upper bounds of (launches, bytes a state; statements of one kernel, bytes spilled; launches with lgsim's kernels): a
# tenth above the values with jax 0.10.2
BOUNDS = {
    ("Panda", "float32", "forward dynamics"): (370, 11_600, 3_240, 0, 2),
    ("Panda", "float32", "inverse dynamics"): (112, 5_750, 1_560, 0, 2),
    ("Panda", "float32", "mass matrix"): (222, 8_210, 1_920, 0, 2),
    ("Panda", "float32", "forward kinematics"): (140, 6_560, 603, 0, 3),
    ("Panda", "float32", "products"): (1_220, 37_400, 8_480, 580, 4),
    ("Panda", "float32", "all Jacobians"): (1_170, 45_100, 8_930, 2_360, 2),
    ("Panda", "float32", "MK4 step"): (3_020, 86_900, 13_300, 0, 5),
    ("Panda", "float32", "gradient of a step"): (7_730, 200_500, 34_600, 5_620, 163),
    ("Panda", "float64", "forward dynamics"): (250, 22_000, 3_300, 0, 2),
    ("ANYmal", "float32", "forward dynamics"): (945, 37_900, 5_830, 0, 2),
    ("ANYmal", "float32", "products"): (3_800, 122_400, 15_100, 4_020, 5),
    ("ANYmal", "float32", "MK4 step"): (11_900, 492_000, 25_200, 540, 85),
    ("Talos", "float32", "forward dynamics"): (2_440, 99_000, 15_200, 2_610, 2),
}
QUICK = (("Panda", "float32", "forward dynamics"), ("Panda", "float32", "inverse dynamics"))
COLUMNS = ["function", "launches", "bytes a state", "states a s by bytes", "scratch bytes a state", "compile s",
           "launches with kernels", "bytes", "compile s"]  # fmt: skip
CALLS = ("__cublas$gemm", "__cublas$lt$matmul", "triton_kernel_call_ffi")
"""Library calls that a program may contain; callbacks to the host and CPU handlers are not allowed."""


def kernel(f, kinds):
    """(statements, source) of f as the text of one kernel."""
    program = read(f, *kinds)
    results = tuple(Described(f"r{i}") for i in range(len(program.outputs)))
    return len(program.statements), Cuda()(Interface("kernel", program, tuple(map(Described, "qvx")), results)).source


def run(report):
    """The tables."""
    if not deviceless.is_there():
        print(f"note: {deviceless.MISSING}")
    assembler = deviceless.tool("nvcc") is not None and deviceless.tool("ptxas") is not None
    if not assembler:
        print("note: there is no nvcc and ptxas: no registers are counted")
    programs, kernels = [], []
    for (name, dtype, task), limits in BOUNDS.items():
        if report.quick and (name, dtype, task) not in QUICK:
            continue
        model = robot(name, np.dtype(dtype))
        kinds = [jax.ShapeDtypeStruct((n,), dtype) for n in (model.nq, model.nv, model.nv)]

        def f(q, v, x, model=model, task=task):
            return FUNCTIONS[task](model, q, v, x)

        title = f"{task}, {name}, {dtype}"
        if deviceless.is_there():
            programs.append(_of_xla(report, title, jax.vmap(f), kinds, dtype, limits))
        statements, source = kernel(f, kinds)
        report.bound(f"statements, {title}", statements, at_most=limits[2])
        registers = spilled = seconds = float("nan")
        if assembler:
            registers, spilled, seconds = deviceless.registers(source)
            report.bound(f"bytes spilled, {title}", spilled, at_most=limits[3])
        kernels.append([title, statements, registers, spilled, seconds])
    if deviceless.is_there():
        report.table(f"XLA's program for an H200, {STATES} states", COLUMNS, programs)
        if not report.quick:
            _rollout(report)
            _plan(report)
    report.table("One kernel, sm_90", ["function", "statements", "registers", "bytes spilled", "nvcc s"], kernels)
    report.figure("statements of the Panda's forward dynamics", kernels[0][1])
    if programs:
        report.figure("launches by XLA", programs[0][1])


def _of_xla(report, title, f, kinds, dtype, limits):
    with lgsim.cuda_kernels(0):
        program, seconds = deviceless.compiled(f, *(jax.ShapeDtypeStruct((STATES, *x.shape), dtype) for x in kinds))
    text = program.as_text()
    found = hlo.count(text)
    each = found.bytes / STATES
    report.bound(f"launches, {title}", found.launches, at_most=limits[0])
    report.bound(f"bytes a state, {title}", each, at_most=limits[1])
    _sound(report, title, found, text, dtype)
    scratch = program.memory_analysis().temp_size_in_bytes / STATES
    row = [title, found.launches, each, 4.8e12 / each, scratch, seconds]
    if nvrtc() is None:
        return [*row, *[float("nan")] * 3]
    with lgsim.cuda_kernels(90):
        program, seconds = deviceless.compiled(f, *(jax.ShapeDtypeStruct((STATES, *x.shape), dtype) for x in kinds))
    text = program.as_text()
    found = hlo.count(text)
    report.bound(f"launches with kernels, {title}", found.launches, at_most=limits[4])
    _sound(report, f"with kernels, {title}", found, text, dtype)
    return [*row, found.launches, found.bytes / STATES, seconds]


def _sound(report, title, found, text, dtype, loops=0):
    report.bound(f"loops of unknown length, {title}", sum(n is None for n in found.trips), at_most=loops)
    others = [each for each in found.targets if each not in CALLS]
    report.bound(f"custom calls {others}, {title}", len(others), at_most=0)
    if dtype == "float32":
        report.bound(f"float64, {title}", text.count("f64["), at_most=0)


def _rollout(report):
    """A hundred steps of which only the last state is kept: with kernels the loop is inside one of them."""
    model = robot("Panda", np.dtype("float32"))

    def rollout(q, v, tau):
        run = lgsim.rollout(model, q, v, dt=jnp.float32(1e-3), steps=100, save_every=100, torques=tau)
        return run.q[-1], run.v[-1]

    kinds = [jax.ShapeDtypeStruct((n,), "float32") for n in (model.nq, model.nv, model.nv)]
    title = "100 MK4 steps, Panda, float32"
    row = _of_xla(report, title, jax.vmap(rollout), kinds, "float32", (21_100, 607_000, 0, 0, 6))
    report.table("A rollout", COLUMNS, [row])


def _plan(report):
    """64 problems by iLQR: its loops end by convergence, and the host waits for each iteration."""
    goal = jnp.asarray([jnp.pi, 0.0], jnp.float32)
    plane = Translation(2)

    def pendulum(t, y, u, args):
        return jnp.stack([y[1], -9.81 * jnp.sin(y[0]) - 0.1 * y[1] + u[0]])

    def plan(start):
        problem = optimize.Problem(
            optimize.FieldDynamics(plane, pendulum, 1, 0.05), start, horizon=20, running=optimize.ControlEffort(0.01),
            terminal=optimize.StateDistance(plane, goal, jnp.asarray([100.0, 10.0], jnp.float32)),
        )  # fmt: skip
        return optimize.ILQR().run(problem, jnp.zeros((20, 1), jnp.float32), None).us

    program, seconds = deviceless.compiled(jax.vmap(plan), jax.ShapeDtypeStruct((64, 2), "float32"))
    text = program.as_text()
    found = hlo.count(text)
    title = "iLQR of a pendulum, 64 problems of 20 nodes"
    _sound(report, title, found, text, "float32", loops=2)
    report.table(title, ["launches an iteration, at least", "loops", "of unknown length", "compile s"],
                 [[found.launches, len(found.trips), sum(n is None for n in found.trips), seconds]])  # fmt: skip


if __name__ == "__main__":
    harness.main(run, "gpu_compiled")
