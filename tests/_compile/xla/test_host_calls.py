"""Warnings out of compiled programs: where the condition holds, once for a batch, in every transformation."""

import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim._compile.xla import host_calls, warn_where


def root(x):
    """The square root of the size, with a warning below zero."""
    wrong = warn_where(x < 0, "below zero", RuntimeWarning)
    return jnp.where(wrong, jnp.nan, jnp.sqrt(jnp.abs(x)))


def told(f, *args):
    """The warnings of a call, as texts, and its values."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        value = jax.block_until_ready(f(*args))
    return [str(each.message) for each in found], value


MIXED, FINE = jnp.array([1.0, -4.0, -9.0, 16.0]), jnp.array([1.0, 4.0, 9.0, 16.0])


@pytest.mark.parametrize(
    "f",
    [
        jax.vmap(root),
        jax.jit(jax.vmap(root)),
        jax.vmap(jax.jit(root)),
        jax.jit(jax.vmap(jax.grad(root))),
        jax.vmap(jax.value_and_grad(jax.jit(root))),
        jax.jit(jax.jacfwd(jax.vmap(root))),
        jax.jit(lambda xs: jax.vmap(jax.vmap(root))(xs.reshape(2, 2))),
        jax.jit(jax.grad(lambda xs: jnp.sum(jax.checkpoint(jax.vmap(root))(xs)))),
    ],
)
def test_a_batch_warns_once(f):
    found, values = told(f, MIXED)
    # what is checkpointed may be computed twice
    assert set(found) == {"below zero"} and len(found) <= 2
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(values))
    assert told(f, FINE)[0] == []


def test_one_number_and_a_loop():
    once = jax.jit(root)
    assert told(once, jnp.array(-4.0)) == (["below zero"], 2.0) and told(once, jnp.array(4.0)) == ([], 2.0)
    found, _ = told(jax.jit(lambda xs: jax.lax.map(root, xs)), MIXED)
    assert found == ["below zero"] * 2
    with jax.disable_jit():
        assert told(root, jnp.array(-4.0)) == (["below zero"], 2.0)


def test_warnings_may_be_errors():
    once = jax.jit(root)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(once(jnp.array(4.0))) == 2.0
        with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match="RuntimeWarning: below zero"):
            jax.block_until_ready(once(jnp.array(-4.0)))


def test_another_interface_of_xla_leaves_a_callback(monkeypatch):
    def unknown():
        raise RuntimeError

    monkeypatch.setattr(host_calls, "ffi_version", unknown)
    f = jax.jit(jax.vmap(lambda x: warn_where(x < 0, "a callback says", RuntimeWarning)))
    assert told(f, MIXED)[0] == ["a callback says"] and told(f, FINE)[0] == []
    assert "callback" in f.lower(MIXED).as_text()


SEVERAL = """
import warnings
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from tests._compile.xla.test_host_calls import FINE, MIXED, root, told

mesh = Mesh(np.array(jax.devices()), ("x",))
assert mesh.size == 2
shard_map = getattr(jax, "shard_map", None)
if shard_map is None:
    from jax.experimental.shard_map import shard_map
parts = jax.jit(shard_map(jax.vmap(jax.grad(root)), mesh=mesh, in_specs=P("x"), out_specs=P("x")))
divided = jax.jit(jax.vmap(jax.value_and_grad(root)), in_shardings=NamedSharding(mesh, P("x")))
for f, most in ((parts, 2), (divided, 2)):
    found, _ = told(f, MIXED)
    assert set(found) == {"below zero"} and len(found) <= most, found
    assert told(f, FINE)[0] == []
"""


@pytest.mark.slow
def test_several_devices():
    code = "import os; os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=2'\n" + SEVERAL
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


CACHED = """
import jax, jax.numpy as jnp
from tests._compile.xla.test_host_calls import root, told
jax.config.update("jax_compilation_cache_dir", CACHE)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
hits = []
jax.monitoring.register_event_listener(lambda name, **rest: hits.append(name) if name.endswith("cache_hits") else None)
assert told(jax.jit(lambda x: root(x) + 1), jnp.array(-4.0)) == (["below zero"], 3.0)
print(len(hits))
"""


@pytest.mark.slow
def test_programs_stay_in_the_persistent_cache(tmp_path):
    code = f"CACHE = {str(tmp_path)!r}\n" + CACHED
    counts = [
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True) for _ in range(2)
    ]
    assert [int(each.stdout) > 0 for each in counts] == [False, True]
