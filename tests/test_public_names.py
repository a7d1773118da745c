"""The front doors of lgsim: what they name is what they give, and nothing is loaded before it is used."""

import ast
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import lgsim
from lgsim import formats, scenarios, view
from lgsim.view import reports

ROOT = Path(__file__).parents[1]
KEPT = {name: os.environ[name] for name in ("PYTHONPYCACHEPREFIX", "XLA_FLAGS") if name in os.environ}
ENVIRONMENT = {"PATH": "", "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", **KEPT}
DOORS = {
    "lgsim": lgsim,
    "lgsim.formats": formats,
    "lgsim.scenarios": scenarios,
    "lgsim.view": view,
    "lgsim.view.reports": reports,
}

LOADED = """
import json, sys
before = set(sys.modules)
{statement}
print(json.dumps(sorted(set(sys.modules) - before)))
"""

# a package that the program has not named yet, used for the first time while JAX traces
TRACED = """
import jax, jax.numpy as jnp
import lgsim

@jax.jit
def turn(x):
    for name in lgsim.__all__:
        getattr(lgsim, name)
    return lgsim.so3.exp(x)

one = turn(jnp.ones(3))
model = lgsim.load_urdf(lgsim.data.cart_pole())
zero = jnp.zeros(2)
assert jnp.allclose(lgsim.so3.exp(jnp.ones(3)), one)
assert jnp.all(jnp.isfinite(lgsim.forward_dynamics(model, zero, zero, zero)))
"""

COMPILED = """
{statement}
import os, sys
import jax, jax.numpy as jnp
from lgsim._compile.xla import batch_last

@batch_last
def long(x):
    for i in range(200):
        x = x * x + 0.5 / (i + 1)
    return x

text = jax.jit(long).lower(jnp.ones(3)).as_text()
assert "lgsim_" in text, text
"""


def fresh(program):
    """What a process of its own prints."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def loaded(statement):
    """The modules that a statement loads in a process of its own."""
    return json.loads(fresh(LOADED.format(statement=statement)))


def stub(door):
    """(name, module) of all that the stub of a door imports."""
    tree = ast.parse(Path(door.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert all(x.asname == x.name for node in imports for x in node.names if x.name != "*"), "type checkers need it"
    return [(x.name, node.module) for node in imports for x in node.names]


@pytest.mark.quick
@pytest.mark.parametrize("door", DOORS)
def test_names_are_where_the_stub_says(door):
    module = DOORS[door]
    names = stub(module)
    for name, home in names:
        if name != "*":
            held = import_module(f"{home}.{name}") if home == door else getattr(import_module(home), name)
            assert getattr(module, name) is held, name
    assert len({name for name, _ in names}) == len(names), "a name is imported twice"
    assert len(set(module.__all__)) == len(module.__all__)
    assert {*module.__all__} <= {*dir(module)}


def test_methods_are_names_of_lgsim():
    assert {*lgsim.__all__} == {
        "__version__",
        *(name for name, _ in stub(lgsim) if name != "*"),
        *lgsim.methods.__all__,
    }
    assert lgsim.MK4 is lgsim.methods.MK4
    space = {}
    exec("from lgsim import *", space)
    assert {*lgsim.__all__} <= {*space}


def test_unknown_name_is_an_attribute_error():
    for door, module in DOORS.items():
        with pytest.raises(AttributeError, match=rf"module '{door}' has no attribute 'forwad_dynamics'"):
            _ = module.forwad_dynamics
        assert not hasattr(module, "_forwad")
    with pytest.raises(ImportError, match="forwad_dynamics"):
        exec("from lgsim import forwad_dynamics", {})


def test_import_loads_nothing_else():
    modules = loaded("import lgsim, lgsim.formats, lgsim.scenarios, lgsim.view.reports")
    own = {"lgsim", "lgsim.formats", "lgsim.scenarios", "lgsim.view", "lgsim.view.reports", "lgsim.support"}
    own |= {f"lgsim.support.{name}" for name in ("batch_compiler", "packages", "public_names")}
    assert {name for name in modules if name.startswith("lgsim")} == own
    assert not {"jax", "jaxlib", "numpy", "equinox", "optax", "jaxtyping", "scipy", "lxml", "llvmlite"} & {*modules}


def test_first_use_loads_what_it_needs():
    modules = loaded("import lgsim; lgsim.simulate, lgsim.load_urdf, lgsim.forward_dynamics, lgsim.MK4")
    rooms = {name.split(".")[1] for name in modules if name.startswith("lgsim.")}
    assert not rooms & {"cli", "identify", "montecarlo", "optimize", "scenarios", "view"}
    assert not {"lgsim.formats.interop", "lgsim.formats.mjcf", "lgsim.formats.sdf"} & {*modules}
    assert not {"optax", "scipy.linalg", "diffrax", "optimistix", "llvmlite", "mujoco"} & {*modules}


def test_parts_are_attributes():
    fresh("import lgsim; lgsim.systems.heavy_top, lgsim.lie.so3.exp, lgsim.scenarios.tasks")
    fresh(
        "import lgsim; lgsim.methods.MK4\n"
        "lgsim.interop.mujoco, lgsim.formats.interop.drake, lgsim.reports.page, lgsim.view.plots"
    )


def test_first_use_under_a_trace():
    fresh(TRACED)


FIRST = ["import lgsim._compile.xla", "from lgsim.lie import so3", "import lgsim.dynamics.energy"]


@pytest.mark.repeats("import lgsim.dynamics.energy")
@pytest.mark.parametrize("statement", FIRST)
def test_whatever_is_imported_first_llvm_compiles(statement):
    pytest.importorskip("llvmlite")
    fresh(COMPILED.format(statement=statement))
