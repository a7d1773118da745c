"""Kernels of CUDA in the place of lgsim's recursions: all but their launch, which a loop on this processor does."""

import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim._compile.programs import cuda_call, read
from lgsim._compile.programs.evaluate import evaluate
from lgsim._compile.programs.nvrtc import Compiled, nvrtc
from lgsim._compile.programs.shared_part import hoisted
from lgsim._compile.programs.targets import Cuda, Described, Interface
from lgsim._compile.xla import batch_last
from lgsim._compile.xla.compilers import batch_compiler
from lgsim.support.batch_compiler import COMPILERS, LOOP_COMPILERS
from tests._compile.programs.cuda_on_host import Kernels, needs_compiler
from tests._compile.programs.test_cuda import machine
from tests.multibody import trees

ROOT = Path(__file__).parents[3]
BOUND = {"float64": 1e-12, "float32": 1e-4}
COMPILED_KERNEL = cuda_call.compiled_kernel


class Host:
    """NVRTC and the launch, by this machine's compiler and a call back from XLA."""

    def __init__(self, folder):
        self.folder, self.kernels, self.launches = folder, [], 0

    def compiled(self, program, shared, capability, carried=0):
        names = tuple(Described(f"a{i}") for i in range(len(program.inputs)))
        results = tuple(Described(f"r{i}") for i in range(len(program.outputs)))
        code = Cuda(shared, carried, rows=cuda_call.ROWS)(Interface("lgsim_kernel", program, names, results))
        self.kernels.append((code, shared))
        return Compiled(str(len(self.kernels) - 1), 0, 0)

    def call(self, name, ptx, block, capability, states, results, rows, numbers=()):
        code, shared = self.kernels[int(ptx)]
        ports = [*zip(code.program.inputs, shared, strict=True), *((port, False) for port in code.program.outputs)]
        assert rows == [not once and 1 < np.prod(port.shape) <= cuda_call.ROWS for port, once in ports]
        kernels = Kernels([code], Path(tempfile.mkdtemp(dir=self.folder)), shared, block, cuda_call.ROWS)

        def launch(*arrays):
            self.launches += 1
            return kernels(name, *map(np.asarray, arrays), states=states, steps=numbers[0] if numbers else None)

        return lambda *operands: jax.pure_callback(launch, list(results), *operands)


@pytest.fixture
def host(tmp_path, monkeypatch):
    found = Host(tmp_path)
    monkeypatch.setattr(cuda_call, "_serves", lambda: True)
    monkeypatch.setattr(cuda_call, "compiled_kernel", found.compiled)
    monkeypatch.setattr(cuda_call, "cuda_kernel_call", found.call)
    # a compiler of its own, so that no other test finds what this one keeps
    monkeypatch.setitem(COMPILERS, "cpu", lambda closed: cuda_call.compile_cuda_batch(closed))
    monkeypatch.setitem(LOOP_COMPILERS, "cpu", lambda *x: cuda_call.compile_cuda_loop(*x))
    return found


def same(host, f, *args, launches=None, relative=1e-12):
    found = jax.jit(lambda *x: f(*x))(*args)
    with lgsim.llvm_lowering(False):
        right = jax.jit(lambda *x: f(*x))(*args)
    chex.assert_trees_all_equal_shapes_and_dtypes(found, right)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(right), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=relative * (1e-300 + np.max(np.abs(b), initial=0)))
    assert host.launches if launches is None else host.launches == launches, host.launches


def chain(dtype=np.float64):
    return trees.build(["revolute", "helical"], [-1, 0], seed=3, armature=True, dtype=dtype)


def forward(model, q, v, tau):
    return lgsim.forward_dynamics(model, q, v, tau)


@needs_compiler
@pytest.mark.repeats("(0,)", "(2, 3)")
@pytest.mark.parametrize("batch", [(), (1,), (130,), (0,), (2, 3)], ids=str)
def test_forward_dynamics_of_batches(batch, host):
    """Two launches: what the machine alone decides, and the states."""
    model, f = chain(), forward
    for _ in batch:
        f = jax.vmap(f, (None, 0, 0, 0))
    state = trees.state(model, batch=batch)
    same(host, lambda *x: f(model, *x), *state, launches=0 if 0 in batch else 2 if batch and batch != (1,) else None)


@pytest.mark.slow
@needs_compiler
def test_float32_and_models_that_differ(host):
    model = chain(np.float32)
    state = trees.state(model, batch=(5,))
    same(host, lambda *x: jax.vmap(lambda *y: forward(model, *y))(*x), *state, relative=1e-4)
    models = jax.tree.map(lambda x: x[None] * jnp.linspace(1, 1.1, 5, dtype=x.dtype).reshape(-1, *[1] * x.ndim), model)
    same(host, jax.vmap(forward), models, *state, relative=1e-4)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("kind", ("float64", "float32"))
@pytest.mark.parametrize("seed", (0, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in (1, 2))))
def test_every_type_of_joint(seed, kind, host):
    """Forward dynamics of random trees with a joint of each type."""
    model = trees.build(*trees.scattered(seed), seed=seed, armature=True, dtype=np.dtype(kind))
    state = trees.state(model, seed, batch=(5,))
    same(host, lambda *x: jax.vmap(lambda *y: forward(model, *y))(*x), *state, relative=BOUND[kind])


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("kind", ("float64", "float32"))
def test_a_joint_that_follows_another_one(kind, host):
    model = machine(kind)
    state = trees.state(model, batch=(5,))
    same(host, lambda *x: jax.vmap(lambda *y: forward(model, *y))(*x), *state, relative=BOUND[kind])


@needs_compiler
@pytest.mark.slow
def test_derivatives_and_steps(host):
    model = chain()
    state = trees.state(model, batch=(5,))

    def found(q, v, tau):
        value, back = jax.vjp(lambda *x: forward(model, *x), q, v, tau)
        run = lgsim.rollout(model, q, v, dt=1e-2, steps=3, torques=tau)
        return value, back(v), run.q, jax.grad(lambda q: jnp.sum(forward(model, q, v, tau) ** 2))(q)

    same(host, jax.vmap(found), *state)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("batch", [(), (5,), (2, 3)], ids=str)
def test_a_rollout_without_outputs_between(batch, host):
    """Two launches for all its steps: what the machine alone decides, and the loop with the state in registers."""
    model = chain()
    state, steps = trees.state(model, batch=batch), 6 + len(batch)  # JAX keeps what it traced with another test's host

    def f(q, v, tau):
        run = lgsim.rollout(model, q, v, dt=1e-2, steps=steps, save_every=steps, torques=tau)
        return run.q[-1], run.v[-1], run.time

    for _ in batch:
        f = jax.vmap(f)
    same(host, f, *state, launches=2)


@pytest.mark.slow
@needs_compiler
def test_a_rollout_of_machines_that_differ_from_one_state(host):
    """The carry is shared before the first step alone; each interval is a launch of the loop."""
    model = chain(np.float32)
    q, v, tau = trees.state(model)
    models = jax.tree.map(lambda x: x[None] * jnp.linspace(1, 1.1, 5, dtype=x.dtype).reshape(-1, *[1] * x.ndim), model)

    def f(model):
        run = lgsim.rollout(model, q, v, dt=1e-2, steps=6, save_every=3, torques=tau)
        return run.q, run.v

    same(host, jax.vmap(f), models, relative=1e-4)
    assert host.launches == 3, host.launches


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", (None, "step", 2, "recursive"))
def test_gradients_of_a_rollout_without_outputs_between(checkpoint, host):
    model = chain()

    def end(q, v, tau):
        run = lgsim.rollout(model, q, v, dt=1e-2, steps=8, save_every=4, torques=tau, checkpoint=checkpoint)
        return jnp.sum(run.q[-1] ** 2) + jnp.sum(run.v[-1])

    same(host, jax.vmap(jax.value_and_grad(end, (0, 1, 2))), *trees.state(model, batch=(5,)))


@pytest.mark.slow
@needs_compiler
def test_a_loop_of_steps_that_give_something_is_left_to_xla(host):
    """Rows of torques are picked by the number of the step, an implicit method gives its residuals."""
    model = chain()
    q, v, tau = trees.state(model)
    rows = jnp.linspace(0, 1, 4)[:, None] * tau[None]

    def driven(q, v, rows):
        return lgsim.rollout(model, q, v, dt=1e-2, steps=4, save_every=4, torques=rows).q[-1]

    same(host, driven, q, v, rows, launches=4)

    def implicit(y):
        action, method = lgsim.actions.Translation(2), lgsim.methods.MKGauss2
        run = lgsim.integrate(method, action, lambda t, y, args: -y, y, dt=0.1, steps=4, save_every=4)
        return run.ys[-1], run.residuals

    same(host, implicit, jnp.array([1.0, 2.0]), launches=4)


@needs_compiler
def test_a_loop_whose_end_depends_on_the_state_is_left_to_xla(host):
    f = batch_last(lambda x: jax.lax.while_loop(lambda y: jnp.all(y > 1), lambda y: y / 2, x))
    same(host, f, jnp.asarray(37.0), launches=0)


@needs_compiler
def test_a_short_program_is_left_to_xla(host):
    same(host, jax.vmap(batch_last(lambda x: jnp.sin(x) * x)), jnp.arange(12.0).reshape(3, 4), launches=0)


@pytest.mark.slow
@needs_compiler
def test_a_long_program_is_left_to_xla(host, monkeypatch):
    monkeypatch.setattr(cuda_call, "MOST", 10)
    model = chain()
    with pytest.warns(RuntimeWarning, match=r"XLA compiles it: \d+ operations per state are more than 10"):
        same(host, jax.vmap(lambda *x: forward(model, *x)), *trees.state(model, batch=(5,)), launches=0)


@pytest.mark.repeats
@needs_compiler
@pytest.mark.parametrize("batch", [(), (5,)], ids=str)
def test_a_rollout_of_a_long_step_is_left_to_xla(batch, host, monkeypatch):
    """Neither the loop nor, of a batch, the step within it becomes a kernel; the numbers are XLA's own."""
    monkeypatch.setattr(cuda_call, "MOST", 10)
    model, steps = chain(), 10 + len(batch)

    def f(q, v, tau):
        run = lgsim.rollout(model, q, v, dt=1e-2, steps=steps, save_every=steps, torques=tau)
        return run.q[-1], run.v[-1], run.time

    for _ in batch:
        f = jax.vmap(f)
    with pytest.warns(RuntimeWarning, match=r"XLA compiles it: \d+ operations per state are more than 10"):
        same(host, f, *trees.state(model, batch=batch), launches=0 if batch else steps)


@needs_compiler
def test_a_program_of_many_arrays_is_left_to_xla(host, monkeypatch):
    monkeypatch.setattr(cuda_call, "PORTS", 3)
    model = chain()
    with pytest.warns(RuntimeWarning, match=r"XLA compiles it: \d+ arrays are more than 3"):
        same(host, jax.vmap(lambda *x: forward(model, *x)), *trees.state(model, batch=(5,)), launches=0)


class Refusing:
    """In the place of NVRTC: it makes kernels that spill, or none."""

    version = 13, 0

    def __init__(self, spilled):
        self.spilled, self.asked = spilled, 0

    def compiled(self, source, capability):
        self.asked += 1
        if self.spilled is None:
            raise RuntimeError("nvrtcCompileProgram: NVRTC_ERROR_INVALID_OPTION")
        return Compiled("// ptx", 255, self.spilled)


@pytest.mark.repeats
@needs_compiler
@pytest.mark.parametrize(
    "spilled, said", [(8193, "spills 8193 bytes per thread"), (None, "NVRTC_ERROR_INVALID_OPTION")]
)
def test_a_kernel_that_spills_or_does_not_compile_is_left_to_xla(spilled, said, host, monkeypatch, tmp_path):
    refusing = Refusing(spilled)
    monkeypatch.setenv("LGSIM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cuda_call, "nvrtc", lambda: refusing)
    monkeypatch.setattr(cuda_call, "compiled_kernel", COMPILED_KERNEL)
    model = chain()
    state = trees.state(model, batch=(5,))
    with pytest.warns(RuntimeWarning, match=f"XLA compiles it: .*{said}"):
        same(host, jax.vmap(lambda *x: forward(model, *x)), *state, launches=0)
    asked = refusing.asked
    with warnings.catch_warnings():  # told once, and not tried again
        warnings.simplefilter("error")
        same(host, jax.vmap(lambda *x: forward(model, *x)), *state, launches=0)
    assert refusing.asked == asked > 0


def test_ptx_is_kept(monkeypatch, tmp_path):
    fits = Refusing(64)
    monkeypatch.setenv("LGSIM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cuda_call, "nvrtc", lambda: fits)
    program = read(lambda x: 2 * x, np.zeros(3))
    for capability, asked in ((90, 1), (90, 1), (80, 2)):
        assert cuda_call.compiled_kernel(program, (False,), capability) == ("// ptx", 255, 64) and fits.asked == asked


def test_a_program_in_two_is_the_program():
    def f(shared, x, y):
        inner = jnp.sin(shared) * shared[0]
        return inner @ x + y, inner, jnp.where(shared[1] > 0, x[0], y), shared

    program = read(f, np.zeros(3), np.zeros(3), np.zeros(()))
    first, second = hoisted(program, (True, False, False))
    rng = np.random.default_rng(0)
    shared, x, y = rng.normal(size=3), rng.normal(size=3), np.asarray(rng.normal())
    arrays = evaluate(first, shared)
    assert len(first.statements) + len(second.statements) <= len(program.statements)
    assert {port.kind for port in first.outputs} == {"float64", "bool"} and "sin" not in second.counts()
    for a, b in zip(evaluate(second, shared, x, y, *arrays), f(shared, x, y), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_what_is_missing_is_told_once_and_left_to_xla(monkeypatch):
    monkeypatch.setattr(cuda_call, "nvrtc", lambda: None)
    cuda_call._serves.cache_clear()
    try:
        program = jax.make_jaxpr(lambda x: x + 1)(1.0)
        with pytest.warns(RuntimeWarning, match="only XLA compiles for CUDA: there is no NVRTC"):
            assert cuda_call.compile_cuda_batch(program) is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert cuda_call.compile_cuda_batch(program) is None
    finally:
        cuda_call._serves.cache_clear()


def test_kernels_are_off_unless_they_are_asked_for():
    assert batch_compiler("cuda") is None and batch_compiler("tpu") is None
    with lgsim.cuda_kernels(90):
        assert batch_compiler("cuda") is batch_compiler("gpu") is COMPILERS["cuda"]
    assert batch_compiler("cuda") is None
    for wrong in (9, True, -1):
        with pytest.raises(ValueError, match=r"capability: expected .* such as 90"), lgsim.cuda_kernels(wrong):
            pass


@pytest.mark.skipif(nvrtc() is None, reason="needs NVRTC")
def test_nvrtc_makes_a_kernel_and_says_what_is_wrong():
    program = read(lambda x, y: (x * y, jnp.tanh(x)), np.zeros(3), np.zeros(()))
    ptx, registers, spilled = cuda_call.compiled_kernel(program, (False, True), 90)
    assert 0 < registers <= 255 and spilled == 0
    head = ptx[ptx.index(".entry lgsim_kernel") :].partition(")")[0]
    assert ".target sm_90" in ptx and head.count(".param") == 5 and "128" in ptx.partition(".maxntid")[2][:10]
    with pytest.raises(RuntimeError, match=r"NVRTC_ERROR_COMPILATION.*expected"):
        nvrtc().compiled("__global__ void f() {", 90)


ONE_KERNEL = """
import os
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0"
import jax, jax.numpy as jnp, lgsim
from benchmarks.cases.gpu import deviceless, hlo
arm = lgsim.load_urdf(lgsim.data.arm7(), dtype="float32")
kinds = [jax.ShapeDtypeStruct((4096, 7), "float32")] * 3
def step(q, v, tau):
    run = lgsim.rollout(arm, q, v, dt=jnp.float32(1e-3), steps=1, torques=tau, checkpoint=None)
    return run.q[-1], run.v[-1]
for f in (lambda *x: lgsim.forward_dynamics(arm, *x), step):
    with lgsim.cuda_kernels(90):
        program, _ = deviceless.compiled(jax.vmap(f), *kinds)
    found = hlo.count(program.as_text())
    assert program.as_text().count("triton_kernel_call_ffi") == 2 and found.launches <= 6 and not found.trips, found
"""


def test_xla_takes_the_kernel_for_a_gpu():
    """One for the machine, one for the states; what is left turns arrays whose batch comes first."""
    from benchmarks.cases.gpu import deviceless

    if nvrtc() is None or not deviceless.is_there():
        pytest.skip(deviceless.MISSING)
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    run = subprocess.run([sys.executable, "-c", ONE_KERNEL], cwd=ROOT, capture_output=True, text=True, env=env)
    assert run.returncode == 0, run.stderr[-2000:]
