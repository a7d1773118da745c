"""Where LLVM is missing, old or refuses, XLA does all; what is kept on the disk may be damaged and shared."""

import json
import os
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim._compile.programs import call, handlers, read, store
from lgsim._compile.programs.compiler import compiler
from lgsim._compile.xla import batch_last, foreign
from tests.multibody import trees

ROOT = Path(__file__).parents[3]
needs_llvm = pytest.mark.skipif(jax.default_backend() != "cpu" or compiler() is None, reason="needs a CPU and llvmlite")


def long(x, start=0):
    """A function of more than the fewest statements."""
    for k in range(80):
        x = jnp.cos(x + k + start)
    return x


@pytest.fixture
def fresh():
    """The compiler is looked for again, and again after the test."""
    compiler.cache_clear()
    yield
    compiler.cache_clear()


def result(size, start=0):
    """``long`` by a primitive of its own, so that it is compiled, and the text of what it is compiled to."""
    f = jax.jit(jax.vmap(batch_last(partial(long, start=start))))
    x = jnp.linspace(0.1, 0.2, size * 3).reshape(size, 3)
    with lgsim.llvm_lowering(True):
        found, text = f(x), f.lower(x).compile().as_text()
    np.testing.assert_allclose(found, jax.vmap(partial(long, start=start))(x), rtol=1e-13)
    return text


def test_without_llvmlite_xla_compiles(monkeypatch, fresh):
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "lgsim_" not in result(4)


def test_an_old_llvm_is_told_once(monkeypatch, fresh):
    old = SimpleNamespace(__version__="0.1", binding=SimpleNamespace(llvm_version_info=(9, 0, 0)))
    monkeypatch.setitem(sys.modules, "llvmlite", old)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", old.binding)
    with pytest.warns(RuntimeWarning, match="llvmlite has LLVM 9"):
        assert "lgsim_" not in result(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "lgsim_" not in result(5)


def test_another_interface_of_xla(monkeypatch, fresh, tmp_path):
    header = tmp_path / "xla" / "ffi" / "api" / "c_api.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define XLA_FFI_API_MAJOR 1\n#define XLA_FFI_API_MINOR 0\n")
    monkeypatch.setattr(foreign, "ffi_headers", lambda: str(tmp_path))
    with pytest.warns(RuntimeWarning, match="does not know this version"):
        assert "lgsim_" not in result(4)


@needs_llvm
def test_a_text_that_llvm_refuses(monkeypatch, tmp_path):
    monkeypatch.setenv("LGSIM_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(handlers, "llvm_text", lambda *args: "define void @handler( {")
    monkeypatch.setattr(handlers, "_registered", {})
    with pytest.warns(RuntimeWarning, match="LLVM rejects a program"):
        assert "lgsim_" not in result(4)
    assert not list(tmp_path.glob("lgsim_*"))


@pytest.mark.repeats
@needs_llvm
@pytest.mark.parametrize("damage", ["cut", "empty", "changed", "a folder", "another's"])
@pytest.mark.parametrize("kind", ["lgsim", "program"])
def test_a_damaged_entry_is_written_anew(monkeypatch, tmp_path, damage, kind):
    """Object code, and the text of a program."""
    start = 1 + len(damage) + 20 * len(kind)  # a program of each case's own, since its name stays taken in this process
    monkeypatch.setenv("LGSIM_CACHE_DIR", str(tmp_path))
    assert "lgsim_" in result(4, start)
    (entry,) = tmp_path.glob(f"{kind}_*")
    sound = entry.read_bytes()
    if damage == "a folder":
        entry.unlink()
        entry.mkdir()
    elif damage == "another's":
        assert "lgsim_" in result(4, start + 1000)
        (other,) = set(tmp_path.glob(f"{kind}_*")) - {entry}
        entry.write_bytes(other.read_bytes())
    else:
        changed = sound[:100] + bytes([sound[100] ^ 1]) + sound[101:]
        entry.write_bytes({"cut": sound[: len(sound) // 2], "empty": b"", "changed": changed}[damage])
    assert store.read_entry(entry.name) is None
    monkeypatch.setattr(handlers, "_registered", {})
    monkeypatch.setattr(handlers, "register_handler", lambda name, address: None)
    assert "lgsim_" in result(5, start)
    if damage != "a folder":
        assert entry.read_bytes() == sound


@needs_llvm
def test_a_folder_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LGSIM_CACHE_DIR", str(tmp_path / "file" / "below"))
    store.write_entry("name", b"code")
    assert store.read_entry("name") is None


PROCESS = """
import json, sys, time
import jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
import lgsim
from lgsim._compile.programs.compiler import Compiler
from tests.multibody import trees
made, hits = [], []
compile = Compiler.object_code
Compiler.object_code = lambda self, text: made.append(1) or compile(self, text)
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event))
model = trees.build(["revolute", "prismatic"], [-1, 0])
q, v, tau = trees.state(model, batch=(3,))
f = jax.jit(jax.vmap(lgsim.forward_dynamics, (None, 0, 0, 0)))
found = f(model, q, v, tau).tolist()
print(json.dumps({"found": found, "made": len(made), "hits": hits.count("/jax/compilation_cache/cache_hits")}))
"""


@pytest.mark.slow
@needs_llvm
def test_processes_share_a_cache(tmp_path):
    """Two at once, and one after them that compiles nothing: XLA's own cache holds programs that call LLVM's."""

    def process():
        env = {**os.environ, "LGSIM_CACHE_DIR": str(tmp_path / "programs"), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", PROCESS, str(tmp_path / "xla")]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def answer(run):
        out, error = run.communicate(timeout=120)
        assert run.returncode == 0, error[-2000:]
        return json.loads(out.splitlines()[-1])

    first, second = (answer(run) for run in [process(), process()])
    third = answer(process())
    model = trees.build(["revolute", "prismatic"], [-1, 0])
    with lgsim.llvm_lowering(False):
        right = lgsim.forward_dynamics(model, *trees.state(model, batch=(3,)))
    for each in (first, second, third):
        np.testing.assert_allclose(each["found"], right, rtol=1e-13)
    assert third["made"] == 0 and third["hits"] > 0, third
    assert sorted(path.name.split("_")[0] for path in (tmp_path / "programs").iterdir()) == [
        "handler",
        "lgsim",
        "program",
    ]


@needs_llvm
def test_equal_programs_are_compiled_once(monkeypatch, tmp_path):
    """Another function with the same statements, and another batch, is the same machine code."""
    monkeypatch.setenv("LGSIM_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(handlers, "_registered", {})
    monkeypatch.setattr(handlers, "register_handler", lambda name, address: None)
    program = read(long, jnp.ones(3))
    for f in (long, lambda x: long(x + 0)):
        assert call.compile_program(read(f, jnp.ones(3)), (False,)) is not None
    assert len(list(tmp_path.iterdir())) == 2  # machine code and what it was made of
    assert call.compile_program(program, (True,)) is not None  # one state is another code
    assert len(list(tmp_path.iterdir())) == 4
