"""The sections of the GPU benchmark, each in a separate process with a time limit.

    python -m cases.gpu.sections NAME ROWS [quick] [kernels]        with benchmarks on PYTHONPATH

Each row is a line of JSON at the end of the file ROWS, written as soon as it is known. ``kernels`` states that
lgsim's own kernels passed their comparison.
"""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np

import lgsim
from cases.gpu import hlo, tasks
from lgsim import montecarlo as mc
from lgsim import optimize
from lgsim._compile.programs import read
from lgsim._compile.programs.targets import Cuda, Described, Interface
from lgsim.actions import Translation

CHECKED = 512
BLOCK = 128


class Bench:
    """Destination of the rows, and the sizes of the problems."""

    def __init__(self, rows, quick, kernels):
        self.rows, self.quick, self.on_card = rows, quick, tasks.capability() > 0
        self.paths = ("kernels", "XLA") if kernels else ("XLA",)
        self.machines = ("cart-pole",) if quick else ("Panda", "ANYmal", "Talos")
        self.sizes = (256,) if quick else (2**20, 2**17, 2**14)
        self.steps = 5 if quick else tasks.STEPS

    def row(self, section, **found):
        """Append a row to the file."""
        with open(self.rows, "a", encoding="utf-8") as file:
            file.write(json.dumps({"section": section, **found}) + "\n")
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def by(path):
    """Lgsim's kernels, or XLA only."""
    with lgsim.cuda_kernels(tasks.capability() if path == "kernels" else 0):
        yield


def card(bench):
    """The device, and its copy bandwidth."""
    first = jax.devices()[0]
    x = jnp.zeros(2**20 if bench.quick else 2**28, jnp.float32)
    took = tasks.seconds(jax.jit(lambda x: x + 1), x)
    bench.row("card", device=first.device_kind, platform=first.platform, capability=tasks.capability(),
              jax=jax.__version__, cores=tasks.cores(), GBps=2 * x.nbytes / took / 1e9)  # fmt: skip


CHECKS = {
    ("cart-pole", "float32"): tasks.FUNCTIONS, ("cart-pole", "float64"): tasks.FUNCTIONS,
    ("Panda", "float32"): tasks.FUNCTIONS, ("ANYmal", "float32"): tasks.FUNCTIONS,
    ("Talos", "float32"): ("forward dynamics",), ("Panda", "float64"): tasks.FUNCTIONS,
}  # fmt: skip
"""Functions that are checked, by robot; the largest kernels take about ten seconds to compile in float64."""


def truth_of(path):
    """512 states of each robot against float64 on the host, a row for each function and dtype."""

    def section(bench):
        for (name, dtype), names in CHECKS.items():
            if name in bench.machines:
                model = tasks.machine(name, dtype)
                given = tasks.states(model, CHECKED)
                for task in names:
                    f = tasks.FUNCTIONS[task]
                    with by(path):
                        program = jax.jit(jax.vmap(lambda *x, f=f, model=model: f(model, *x)))
                        got = program(*given)
                        text = program.lower(*given).as_text() if path == "kernels" else ""
                    error = tasks.far(got, tasks.on_cpu(f, model, given))
                    launched = "triton_kernel_call" in text if path == "kernels" else None
                    bench.row("truth", path=path, task=task, robot=name, dtype=dtype, relative_error=error,
                              by_kernel=launched)  # fmt: skip

    return section


def program_of(task, model):
    """The program of a state, with the model parameters as constants."""
    given = tasks.states(model, 1)
    return read(
        lambda *x: tasks.FUNCTIONS[task](model, *x), *(jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in given)
    )


def text(bench):
    """The CUDA source by cupy, without XLA; a rollout with its state in registers."""
    try:
        import cupy
    except ImportError:
        bench.row("text", path="text", note="cupy is missing: not measured")
        return
    size = bench.sizes[0]
    cases = [("Panda", "float32", task) for task in tasks.FUNCTIONS] + [("Panda", "float32", "rollout")]
    cases += [("ANYmal", "float32", "forward dynamics"), ("ANYmal", "float32", "MK4 step")]
    cases += [("Talos", "float32", "forward dynamics"), ("Panda", "float64", "forward dynamics")]
    for name, dtype, task in [("cart-pole", "float32", case[2]) for case in cases[:4]] if bench.quick else cases:
        model = tasks.machine(name, dtype)
        program = program_of("MK4 step" if task == "rollout" else task, model)
        steps = bench.steps if task == "rollout" else 0
        names = tuple(Described(f"r{i}") for i in range(len(program.outputs)))
        target = Cuda(carried=2 if steps else 0, block=BLOCK)
        source = target(Interface("kernel", program, tuple(map(Described, tasks.NAMES)), names)).source
        start = time.perf_counter()
        kernel = cupy.RawKernel(source, "kernel")
        kernel.compile()
        compiling = time.perf_counter() - start
        given = tasks.states(model, size)
        arrays = [cupy.asarray(np.ascontiguousarray(np.asarray(x).T)) for x in given]
        made = [cupy.zeros((*port.shape, size), port.kind) for port in program.outputs]
        numbers = [np.int32(n) for n in ([steps, size] if steps else [size])]
        blocks = (-(-size // BLOCK),)

        def launch(kernel=kernel, blocks=blocks, arguments=(*arrays, *made, *numbers)):
            kernel(blocks, (BLOCK,), arguments)

        launch()
        f = (lambda *x, n=steps: tasks.motion(*x, n)) if steps else tasks.FUNCTIONS[task]
        want = tasks.on_cpu(f, model, [x[:CHECKED] for x in given])
        error = tasks.far([np.moveaxis(x.get(), -1, 0)[:CHECKED] for x in made], want)
        begin, end, samples = cupy.cuda.Event(), cupy.cuda.Event(), []
        for _ in range(5):
            begin.record()
            for _ in range(5):
                launch()
            end.record()
            end.synchronize()
            samples.append(cupy.cuda.get_elapsed_time(begin, end) / 5e3)
        took = sorted(samples)[2]
        bench.row("text", path="text", task=task, robot=name, dtype=dtype, batch=size, compile_s=compiling,
                  ms=1e3 * took, per_s=size * max(steps, 1) / took, registers=kernel.num_regs,
                  local_bytes=kernel.local_size_bytes, relative_error=error)  # fmt: skip


def pallas(bench):
    """Forward dynamics by Pallas with three block sizes; interpreted without a GPU."""
    from cases.gpu.pallas import kernel

    name, size = bench.machines[0], bench.sizes[0]
    model = tasks.machine(name, "float32")
    given = tasks.states(model, size)
    program = program_of("forward dynamics", model)
    want = tasks.on_cpu(tasks.forward_dynamics, model, [x[:CHECKED] for x in given])
    for block in (128,) if bench.quick else (128, 64, 256):
        arrays = [jnp.asarray(x.T) for x in given]
        f = kernel(program, size, block, interpret=not bench.on_card)
        start = time.perf_counter()
        compiled = jax.jit(f).lower(*arrays).compile()
        compiling = time.perf_counter() - start
        error = tasks.far([x.T[:CHECKED] for x in compiled(*arrays)], want)
        took = tasks.seconds(compiled, *arrays)
        bench.row("Pallas", path="Pallas", task="forward dynamics", robot=name, dtype="float32", batch=size,
                  block=block, compile_s=compiling, ms=1e3 * took, per_s=size / took, relative_error=error)  # fmt: skip


def timed(bench, section, path, task, name, dtype, size, f=None, steps=1):
    """A row of a function in a batch; its seconds."""
    model = tasks.machine(name, dtype)
    given = tasks.states(model, size)
    f = tasks.FUNCTIONS[task] if f is None else f
    start = time.perf_counter()
    with by(path):
        compiled = jax.jit(jax.vmap(lambda *x: f(model, *x))).lower(*given).compile()
    compiling = time.perf_counter() - start
    found = {}
    if bench.on_card:
        counts = hlo.count(compiled.as_text())
        found = {"launches": counts.launches, "GB": counts.bytes / 1e9}
    took = tasks.seconds(compiled, *given)
    if found:
        found["GBps"] = found["GB"] / took
    scratch = compiled.memory_analysis().temp_size_in_bytes / 2**20
    bench.row(section, path=path, task=task, robot=name, dtype=dtype, batch=size, compile_s=compiling, ms=1e3 * took,
              per_s=size * steps / took, scratch_MiB=scratch, **found)  # fmt: skip
    return took


def kernels(bench):
    """Lgsim's own kernels in XLA's programs."""
    if "kernels" not in bench.paths:
        bench.row("kernels", path="kernels", note="needs a card, and kernels that were seen to be right: not measured")
        return
    largest, first = bench.sizes[0], bench.machines[0]
    for task in tasks.FUNCTIONS:
        timed(bench, "kernels", "kernels", task, first, "float32", largest)
    for name in bench.machines[1:]:
        for task in ("forward dynamics", "MK4 step") if name == "ANYmal" else ("forward dynamics",):
            timed(bench, "kernels", "kernels", task, name, "float32", largest)
    for size in bench.sizes[1:]:
        timed(bench, "kernels", "kernels", "forward dynamics", first, "float32", size)


def xla(bench):
    """XLA without lgsim's kernels, with three batch sizes."""
    for task in ("forward dynamics", "MK4 step", "products"):
        for size in bench.sizes if task == "forward dynamics" else bench.sizes[:1]:
            timed(bench, "XLA", "XLA", task, bench.machines[0], "float32", size)
    for name in bench.machines[1:]:
        timed(bench, "XLA", "XLA", "forward dynamics", name, "float32", bench.sizes[1])


def wide(bench):
    """Functions in float64."""
    for path in bench.paths:
        timed(bench, "float64", path, "forward dynamics", bench.machines[0], "float64", bench.sizes[0])


def study(model, samples, steps, tile):
    """Random initial states and inertias."""
    distributions = {
        "q0": mc.TangentNormal(model, model.neutral(), 0.1),
        "model.inertias": mc.InertiaDispersion(model.inertias, 0.02),
    }
    dt = jnp.asarray(1e-3, model.dtype)
    run = mc.Rollout(model, dt=dt, steps=steps, save_every=steps)
    return mc.Study(distributions, run, [mc.outputs.final_q, mc.outputs.final_v], samples=samples, tile=tile)


def motions(bench):
    """A rollout, its gradient, a chunk of a Monte Carlo study, many trajectory optimization problems."""
    name, size = bench.machines[0], bench.sizes[min(1, len(bench.sizes) - 1)]
    for path in bench.paths:
        timed(bench, "motions", path, "rollout", name, "float32", size,
              lambda *x: tasks.motion(*x, bench.steps), bench.steps)  # fmt: skip
        with by(path):
            engine = mc.Engine(study(tasks.machine(name, "float32"), 4 * size, bench.steps, size))
            start = time.perf_counter()
            engine.chunk(0, size)
            compiling = time.perf_counter() - start
            start = time.perf_counter()
            engine.chunk(0, 4 * size)
            took = time.perf_counter() - start
        bench.row("motions", path=path, task="Monte Carlo chunk", robot=name, dtype="float32", batch=4 * size,
                  compile_s=compiling, ms=1e3 * took, per_s=4 * size * bench.steps / took)  # fmt: skip
        timed(bench, "motions", path, "gradient of a rollout", name, "float32", size,
              lambda *x: tasks.gradient(*x, bench.steps), bench.steps)  # fmt: skip
    plans(bench)


def plans(bench):
    """ILQR of a pendulum that swings up, many problems at once."""
    count, horizon = (4, 5) if bench.quick else (1024, 20)
    plane, goal = Translation(2), jnp.asarray([jnp.pi, 0.0], jnp.float32)

    def pendulum(t, y, u, args):
        return jnp.stack([y[1], -9.81 * jnp.sin(y[0]) - 0.1 * y[1] + u[0]])

    def plan(start):
        problem = optimize.Problem(
            optimize.FieldDynamics(plane, pendulum, 1, 0.05), start, horizon=horizon,
            running=optimize.ControlEffort(0.01),
            terminal=optimize.StateDistance(plane, goal, jnp.asarray([100.0, 10.0], jnp.float32)),
        )  # fmt: skip
        found = optimize.ILQR().run(problem, jnp.zeros((horizon, 1), jnp.float32), None)
        return found.us

    starts = jnp.asarray(np.random.default_rng(0).normal(size=(count, 2)), jnp.float32)
    start = time.perf_counter()
    compiled = jax.jit(jax.vmap(plan)).lower(starts).compile()
    compiling = time.perf_counter() - start
    took = tasks.seconds(compiled, starts, turns=3)
    bench.row("motions", path="XLA", task="iLQR", robot="pendulum", dtype="float32", batch=count, compile_s=compiling,
              ms=1e3 * took, per_s=count / took)  # fmt: skip


def end_to_end(bench):
    """A study from its definition to its statistics, on the GPU and on the cores of the host."""
    samples, steps = (512, 5) if bench.quick else (1_000_000, 50)
    _study(bench, bench.paths[0], samples, steps, 256 if bench.quick else 2**17)
    if not bench.on_card:
        bench.row("study", path="host", note="this is the host: no comparison is measured")
        return
    count = tasks.cores()
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}".strip()
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    given = [sys.executable, "-m", "cases.gpu.sections", "host", bench.rows, *(["quick"] if bench.quick else [])]
    subprocess.run(given, env=environment, check=True)


def host(bench):
    """The same study on the cores of the host, with a tenth of the samples."""
    samples, steps = (512, 5) if bench.quick else (100_000, 50)
    _study(bench, "host", samples, steps, 64)


def _study(bench, path, samples, steps, tile):
    name = bench.machines[0]
    with by(path):
        start = time.perf_counter()
        # in memory: a store needs pyarrow
        found = mc.run(study(tasks.machine(name, "float32"), samples, steps, tile), step_check=False)
        found.quantiles("final_v", [0.01, 0.5, 0.99])
        took = time.perf_counter() - start
    bench.row("study", path=path, task="study", robot=name, dtype="float32", batch=samples, ms=1e3 * took,
              per_s=samples / took)  # fmt: skip


SECTIONS = {
    "card": card, "truth of kernels": truth_of("kernels"), "truth of XLA": truth_of("XLA"), "text": text,
    "kernels": kernels, "Pallas": pallas, "XLA": xla, "float64": wide, "motions": motions, "study": end_to_end,
    "host": host,
}  # fmt: skip

if __name__ == "__main__":
    SECTIONS[sys.argv[1]](Bench(sys.argv[2], "quick" in sys.argv[3:], "kernels" in sys.argv[3:]))
