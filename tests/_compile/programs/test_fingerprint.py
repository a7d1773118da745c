"""The hash of a traced function: the same in every process, another one for whatever changes its program."""

import os
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim._compile.programs.fingerprint import fingerprint
from lgsim._compile.programs.program import Program
from lgsim._compile.programs.read import read
from tests.multibody import trees


def of(f, *args):
    return fingerprint(jax.make_jaxpr(f)(*args))


def sums(x, factor=2.0, axis=0, table=(1.0, 2.0), length=3, reverse=False):
    y, _ = jax.lax.scan(lambda c, z: (c * factor + z, None), x[0], jnp.broadcast_to(x[1], (length, 3)), reverse=reverse)
    return jnp.sum(x, axis=axis)[:2] * np.asarray(table) + jnp.max(y)


CHANGES = {"factor": 3.0, "axis": 1, "table": (1.0, 3.0), "length": 4, "reverse": True}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_changes_the_program_changes_it(name):
    """A number inside, an axis, an array that is closed over, a length, a direction."""
    x = jnp.ones((3, 3))
    right = of(sums, x)
    assert right is not None and right == of(partial(sums), x)
    assert of(partial(sums, **{name: CHANGES[name]}), x) != right


def test_shapes_dtypes_and_the_order_of_arguments_count():
    f, x, y = (lambda x, y: x - 2 * y), jnp.ones(3), jnp.ones(3, np.float32)
    found = [of(f, x, x), of(f, x[:2], x[:2]), of(f, y, y), of(lambda x, y: f(y, x), x, x)]
    assert len(set(found)) == 4 and None not in found


def test_what_holds_a_function_has_none():
    def look(x):
        jax.debug.callback(lambda x: None, x)
        return x

    assert of(look, 1.0) is None


SCRIPT = """
import jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
import lgsim
from lgsim._compile.programs import call
read = call.read_jaxpr
def counted(*args):
    print("read")
    return read(*args)
call.read_jaxpr = counted
arm = lgsim.load_urdf(lgsim.data.arm7())
q = jnp.zeros((4, arm.nq))
jax.jit(jax.vmap(lgsim.mass_matrix, (None, 0))).lower(arm, q).compile()
print("done")
"""


def test_a_second_process_reads_nothing(tmp_path):
    """Whatever the seed of Python's hashes."""
    pytest.importorskip("llvmlite")
    said = []
    for seed in ("1", "2"):
        env = os.environ | {"LGSIM_CACHE_DIR": str(tmp_path), "PYTHONHASHSEED": seed, "JAX_PLATFORMS": "cpu"}
        done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.split())
    assert said[0][-1] == "done" and "read" in said[0]
    assert said[1] == ["done"]


def test_a_program_comes_back_from_its_bytes():
    model = trees.build(["revolute", "spherical"], [-1, 0], seed=3)
    q, v, tau = trees.state(model)
    program = read(lgsim.forward_dynamics, model, q, v, tau)
    again = Program.from_bytes(program.to_bytes())
    assert again == program and again.digest() == program.digest() and type(again.statements[0]).__name__ == "Statement"
