"""The lowering hints change no result, and no program that they mark ends the process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim._compile.xla import compilation, hints, llvm_lowering
from lgsim.dynamics.forward_dynamics import forward_dynamics
from tests.multibody import trees

ROOT = Path(__file__).parents[3]

MACHINE = (["helical", "revolute"], [-1, 0])

WITHOUT_HINTS = f"""
import json
import jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
from lgsim.dynamics.forward_dynamics import forward_dynamics
from lgsim._compile.xla import hints
from tests.multibody import trees
model = trees.build(*{MACHINE!r})
q, v, tau = trees.state(model, batch=(2,))
program = jax.jit(forward_dynamics).lower(model, q, v, tau)
assert not hints._HINTS
assert "xla_cpu_small_call" not in program.as_text() and "inlineable" not in program.as_text()
print(json.dumps(program.compile()(model, q, v, tau).tolist()))
"""

# XLA's CPU back end ended the process ("slice_to_buffer_table_index") where a marked call had an operand without use or
# without entries; each case is a program that had one, and is compared with the function itself.
CASES = """
import chex, jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
from lgsim._compile.xla import batch_last, fusion_barrier, native_call
x, y, empty, whole = jnp.arange(1.0, 4.0), jnp.full(3, 2.0), jnp.zeros((0, 3)), jnp.arange(3)

def loop(x, y):
    return jax.lax.scan(lambda c, a: (c + a * y, jnp.sin(c)), jnp.zeros_like(y), x[:, None] * y)[1]

def through(f):
    return jax.lax.scan(lambda c, _: (f(c, y), c[0]), x, length=3)[1]

def same(name, f, g, *args):
    print(name, flush=True)
    found, right = jax.jit(f)(*args), g(*args)
    chex.assert_trees_all_equal_shapes_and_dtypes(found, right)
    chex.assert_trees_all_close(found, right, rtol=1e-14, atol=1e-15)

functions = {
    "uses both": lambda x, y: x * jnp.sin(y),
    "uses one": lambda x, y: jnp.cos(x),
    "uses a part": lambda x, y: x[0] * y[1:],
    "uses none": lambda x, y: jnp.ones(3),
    "gives one back": lambda x, y: (y, x + y, 2.0 * jnp.ones(())),
    "masks all": lambda x, y: jnp.where(jnp.ones(3, bool), x, y),
    "loops": loop,
    "takes several": lambda x, y: x[jnp.array([2, 0, 2])] * y,
    "adds at several": lambda x, y: x.at[jnp.array([2, 0, 2])].add(y),
}
for name, f in functions.items():
    k = native_call(f)
    same(name, k, f, x, y)
    same(name + ", eager", lambda x, y: k(x, y), f, x, y)
    same(name + ", vmap", jax.vmap(k, (0, None)), jax.vmap(f, (0, None)), jnp.stack([x, y]), y)
    same(name + ", jvp", lambda *a: jax.jvp(k, a, a), lambda *a: jax.jvp(f, a, a), x, y)
    def total(f):
        return lambda x, y: sum(jnp.sum(leaf * leaf) for leaf in jax.tree.leaves(f(x, y)))
    same(name + ", grad", jax.grad(total(k), (0, 1)), jax.grad(total(f), (0, 1)), x, y)

f = functions["uses one"]
k = native_call(f)
same("no entries", native_call(lambda a, e: a + jnp.sum(e)), lambda a, e: a + jnp.sum(e), x, empty)
same("only empty ones", native_call(lambda e: e + 1.0), lambda e: e + 1.0, empty)
same("whole numbers and none", native_call(lambda a, n, m: a + n), lambda a, n, m: a + n, x, whole, None)
same("in a scan", lambda x: through(k), lambda x: through(f), x)
same("grad of vmap of jvp", jax.grad(lambda x: jnp.sum(jax.vmap(lambda t: jax.jvp(k, (x, y), (t, t))[1])(jnp.eye(3)))),
     jax.grad(lambda x: jnp.sum(jax.vmap(lambda t: jax.jvp(f, (x, y), (t, t))[1])(jnp.eye(3)))), x)
inner = native_call(lambda x, y: k(x, y) + x)
same("a kernel in a kernel", inner, lambda x, y: f(x, y) + x, x, y)
same("cut", lambda x: fusion_barrier({"a": x, "b": [x[:2], 2.0]})["b"][0], lambda x: x[:2], x)
assert fusion_barrier((1, 2.0)) == (1, 2.0)

def core(a, b, c):  # own axes first, batch last
    return jax.lax.scan(lambda s, z: (s + z, s * z), jnp.zeros_like(a[0]), a)[1] * b[0]

b = batch_last(core)
args = jnp.arange(12.0).reshape(4, 3) / 7, jnp.ones((1, 3)), jnp.zeros((2, 3))
one = jax.vmap(core, 1, 1)
same("batch_last", jax.vmap(b, 1, 1), one, *args)
same("batch_last twice", jax.vmap(jax.vmap(b, 1, 1), (None, 0, None)), jax.vmap(one, (None, 0, None)),
     args[0], jnp.stack([args[1], 3 * args[1]]), args[2])
same("its grad", jax.grad(lambda *a: jnp.sum(jax.vmap(b, 1)(*a) ** 2), (0, 1)),
     jax.grad(lambda *a: jnp.sum(jax.vmap(core, 1)(*a) ** 2), (0, 1)), *args)
print("done")
"""


def python(script, **environment):
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="the hints are for CPU alone")
@pytest.mark.skipif(not hints._SAFE, reason="no hints with this jaxlib")
@pytest.mark.slow
def test_results_without_hints_are_the_same():
    assert hints._HINTS, "LGSIM_LOWERING_HINTS=0 leaves nothing to compare"
    run = python(WITHOUT_HINTS, LGSIM_LOWERING_HINTS="0")
    assert run.returncode == 0, run.stderr
    model = trees.build(*MACHINE)
    q, v, tau = trees.state(model, batch=(2,))
    with llvm_lowering(False):
        program = jax.jit(forward_dynamics).lower(model, q, v, tau)
    assert "xla_cpu_small_call" in program.as_text()  # else both are the same
    right = np.array(json.loads(run.stdout))
    np.testing.assert_allclose(program.compile()(model, q, v, tau), right, rtol=0, atol=1e-13 * np.abs(right).max())


@pytest.mark.slow
@pytest.mark.parametrize("flags", [None, ""], ids=["flags of the tests", "usual"])
def test_no_kernel_ends_the_process(flags):
    run = python(CASES) if flags is None else python(CASES, XLA_FLAGS=flags)
    assert run.returncode == 0, f"at {run.stdout.splitlines()[-1:]}: {run.stderr[-2000:]}"
    assert run.stdout.endswith("done\n")


def test_kernels_that_scatter():
    """XLA's fusion emitters, which its usual flags enable, do not take them as marked calls.

    They are the derivatives of gathers, as of the poses of a tree.
    """
    named = "xla_cpu_use_fusion_emitters" in os.environ.get("XLA_FLAGS", "")
    options = {"xla_cpu_use_fusion_emitters": True} if named else {}
    k = hints.native_call(lambda x, y: x.at[jnp.array([2, 0, 2])].add(jnp.sin(y)))
    x, y = jnp.arange(1.0, 4.0), jnp.full(3, 0.5)
    np.testing.assert_allclose(jax.jit(k, compiler_options=options)(x, y), x + np.sin(0.5) * np.array([1, 0, 2]))
    model = trees.build(["revolute", "spherical", "prismatic"], [-1, 0, 0], seed=3)
    q, _, _ = trees.state(model)

    def far(q):
        return jnp.sum(lgsim.forward_kinematics(model, q)[:, :3, 3] ** 2)

    with llvm_lowering(False):
        found = jax.jit(jax.grad(far), compiler_options=options)(q)
    np.testing.assert_allclose(found, jax.grad(far)(q), rtol=1e-12, atol=1e-14)


def test_operands_may_be_large_constants():
    """As where a compiled function closes over a batch: XLA ended the process."""
    x = jnp.sin(jnp.arange(8192.0)).reshape(2, 4096)

    def total(a, b):
        return jax.lax.fori_loop(0, 2, lambda i, sum_: sum_ + hints.fusion_barrier(a[i] * b[i]), jnp.zeros(4096))

    found = jax.jit(lambda b: hints.native_call(total)(x, b))(x + 1)
    np.testing.assert_allclose(found, np.sum(np.asarray(x) * np.asarray(x + 1), axis=0), rtol=1e-14)


def test_options_of_the_compiler_change_speed_alone():
    """An outermost program takes them, whatever the platform; elsewhere than on the CPU there are none."""
    model = trees.build(*MACHINE)
    state = trees.state(model, batch=(64,))
    f = jax.vmap(lambda q, v, tau: forward_dynamics(model, q, v, tau))
    found = jax.jit(f, compiler_options=lgsim.xla_options())(*state)
    np.testing.assert_allclose(found, jax.jit(f)(*state), rtol=1e-12)
    assert lgsim.xla_options("cpu") and lgsim.xla_options("gpu") == {}


def test_options_that_this_xla_does_not_know_are_left_out(monkeypatch):
    """What is compiled fast gives the same numbers, whatever is left."""
    monkeypatch.setattr(compilation, "FAST", {"xla_backend_optimization_level": 0, "xla_of_yesterday": True})
    compilation.fast_options.cache_clear()
    try:
        assert compilation.fast_options() == {"xla_backend_optimization_level": 0}
        x = jnp.linspace(0, 1, 7)
        found = compilation.compiled_fast(lambda x, power: {"y": jnp.cos(x) ** power})(x, power=3)
        np.testing.assert_allclose(found["y"], np.cos(x) ** 3, atol=1e-15)
    finally:
        compilation.fast_options.cache_clear()
