"""What is exported or compiled ahead of time runs in another process, in batches of any length."""

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.experimental.compilation_cache import compilation_cache
from jax.experimental.serialize_executable import serialize

import lgsim
from lgsim import optimize
from lgsim._compile.programs import handlers, store
from lgsim._compile.programs.compiler import compiler
from tests.multibody import trees

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(jax.default_backend() != "cpu" or compiler() is None, reason="needs a CPU and llvmlite")


@pytest.fixture(scope="module")
def model():
    return trees.build(["revolute", "prismatic"], [-1, 0], seed=3)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A user's cache of its own."""
    monkeypatch.setenv("LGSIM_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def without_jax_cache():
    """What comes from JAX's cache of compiled programs cannot be serialized again."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    compilation_cache.reset_cache()
    yield
    jax.config.update("jax_compilation_cache_dir", before)
    compilation_cache.reset_cache()


def states(length, width=2):
    return jnp.asarray(np.random.default_rng(length).normal(size=(length, width)))


def test_another_process_runs_what_was_exported(tmp_path, cache, without_jax_cache):
    """Without its programs, with those of a folder and no cache, and with those of the cache: 4 s, of two processes."""
    # no other test of this process may have compiled it: what is known already is not written into the cache again
    model = trees.build(["helical", "cylindrical", "helical"], [-1, 0, 0])
    f = jax.vmap(lambda q: lgsim.forward_dynamics(model, q, 2 * q, 0.3 * q))
    q = states(3, model.nq)
    exported = lgsim.export(f)(q)
    (tmp_path / "compiled.pickle").write_bytes(pickle.dumps(serialize(jax.jit(f).lower(q).compile())))
    np.save(tmp_path / "q.npy", q)
    (tmp_path / "exported").write_bytes(exported.serialize())
    (tmp_path / "portable").write_bytes(lgsim.export(f, portable=True)(q).serialize())
    assert lgsim.save_programs(tmp_path / "programs", of=exported) == 1

    def process(programs, own_cache):
        done = subprocess.run(
            [sys.executable, "-m", "tests.transformations.exported_elsewhere", str(tmp_path), str(programs)],
            cwd=ROOT, env={**os.environ, "LGSIM_CACHE_DIR": str(own_cache)}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout.splitlines()[-1])

    right = np.stack([np.asarray(lgsim.forward_dynamics(model, x, 2 * x, 0.3 * x)) for x in q])
    for found in (process(tmp_path / "programs", tmp_path / "empty"), process("cache", cache)):
        assert "No FFI handler registered" in found.pop("error") and found.pop("programs") >= 1
        for each in found.values():
            np.testing.assert_allclose(each, right, rtol=1e-12)


def test_the_error_of_jax_names_the_remedy(model):
    (name,) = handlers.named_handlers(lgsim.export(lgsim.mass_matrix)(model, states(1)[0]))
    assert name.endswith("_run_lgsim.load_programs_first")


def plan(model, q):
    machine = optimize.MultibodyDynamics(model, 0.05, selection=[[1.0], [0.0]])
    goal = optimize.StateDistance(machine.action, machine.state([0.0, 0.3]), 100.0)
    problem = optimize.Problem(
        machine, machine.state(q), horizon=3, running=optimize.ControlEffort(0.01), terminal=goal
    )
    return optimize.solve(problem, solver=optimize.ILQR(max_iterations=2)).us


FUNCTIONS = {
    "forward dynamics": lambda model, q: lgsim.forward_dynamics(model, q, q, q),
    "its gradient": lambda model, q: jax.jacrev(lambda q: lgsim.forward_dynamics(model, q, q, q))(q),
    "rollout": lambda model, q: lgsim.rollout(model, q, q, dt=0.01, steps=3).v,
    "scalars": lambda model, q: lgsim.kinetic_energy(model, q, q),
    "plans": pytest.param(plan, marks=pytest.mark.slow),
}


@pytest.mark.slow
@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_batch_of_any_length(model, f, without_import_hook):
    (b,) = export.symbolic_shape("b")
    mapped = jax.vmap(lambda q: f(model, q))
    made = lgsim.export(mapped)(jax.ShapeDtypeStruct((b, 2), jnp.float64))
    assert handlers.named_handlers(made)
    for length in (1, 3):
        q = states(length)
        np.testing.assert_allclose(made.call(q), mapped(q), rtol=1e-12, atol=1e-12)
        with lgsim.llvm_lowering(False):
            np.testing.assert_allclose(made.call(q), mapped(q), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["forward dynamics", "scalars"])
def test_operations_of_xla_only(model, name):
    """A program for every length that any process runs."""
    (b,) = export.symbolic_shape("b")
    mapped = jax.vmap(lambda q: FUNCTIONS[name](model, q))
    made = lgsim.export(mapped, portable=True)(jax.ShapeDtypeStruct((b, 2), jnp.float64))
    assert not handlers.named_handlers(made) and not made.disabled_safety_checks
    assert not set(re.findall(r'custom_call @"?([\w.]+)', made.mlir_module())) - {"shape_assertion"}
    for length in (1, 3):
        np.testing.assert_allclose(made.call(states(length)), mapped(states(length)), rtol=1e-12)


def test_batches_of_batches_and_tiles(model):
    b, c = export.symbolic_shape("b, c")
    f = lambda q: lgsim.forward_dynamics(model, q, q, q)  # noqa: E731
    q = states(12).reshape(3, 4, 2)
    twice = lgsim.export(jax.vmap(jax.vmap(f)))(jax.ShapeDtypeStruct((b, c, 2), jnp.float64))
    np.testing.assert_allclose(twice.call(q), jax.vmap(jax.vmap(f))(q), rtol=1e-12)
    tiles = lgsim.export(lgsim.tiled_vmap(f))(jax.ShapeDtypeStruct((b, 2), jnp.float64))
    np.testing.assert_allclose(tiles.call(q[0]), jax.vmap(f)(q[0]), rtol=1e-12)


def test_several_platforms(model):
    """One function for both: programs on the CPU, operations of XLA elsewhere."""
    q = states(3)
    f = jax.vmap(lambda q: lgsim.forward_dynamics(model, q, q, q))
    made = lgsim.export(f, platforms=("cpu", "cuda"))(q)
    assert made.platforms == ("cpu", "cuda") and len(handlers.named_handlers(made)) == 1
    np.testing.assert_allclose(made.call(q), f(q), rtol=1e-12)
    (alone,) = lgsim.export(f, platforms=["cuda"])(q).platforms
    assert alone == "cuda"


def test_checks_are_left_out_for_programs_only(model):
    made = lgsim.export(lgsim.mass_matrix)(model, states(1)[0])
    allowed = {check.is_custom_call() for check in made.disabled_safety_checks}
    assert allowed == set(handlers.named_handlers(made))
    with pytest.raises(ValueError, match="custom calls"):
        lgsim.export(lambda q: jax.ffi.ffi_call("foreign", q)(q))(states(1))


def test_machines_and_motions_are_arguments_and_results(model):
    """Their static parts are read again as they were, and are no code."""
    every = trees.every_joint(seed=1, floating=True)
    motion = lgsim.simulate(model, states(1)[0], duration=0.02, dt=0.01)

    def f(given, motion):
        solution = lgsim.integrate(
            lgsim.MK4, lgsim.actions.Translation(2), lambda t, y, _: -y, motion.q[0], dt=0.1, steps=2
        )
        return given, motion, lgsim.rollout(model, motion.q[0], motion.v[0], dt=0.01, steps=2), solution

    made = lgsim.export(f)(every, motion)
    read = export.deserialize(made.serialize())
    assert read.in_tree == made.in_tree and read.out_tree == made.out_tree
    found, again, history, solution = read.call(every, motion)
    assert found.topology == every.topology and isinstance(again, lgsim.Trajectory)
    assert solution.result == lgsim.RESULTS.successful and solution.ys.shape == (3, 2)
    assert again.method == motion.method and again.step_error.names == motion.step_error.names
    np.testing.assert_allclose(history.q, motion.q, rtol=1e-12)


def test_a_trajectory_is_a_pytree(model):
    motion = lgsim.simulate(model, states(1)[0], duration=0.02, dt=0.01, step_check=False)
    doubled = jax.tree.map(lambda x: 2 * x, motion)
    np.testing.assert_array_equal(doubled.q, 2 * motion.q)
    np.testing.assert_array_equal(doubled.model.inertias, 2 * motion.model.inertias)
    assert doubled.dt == motion.dt and doubled.step_error is None
    unknown = lgsim.Trajectory(model, motion.time, motion.q, motion.v, motion.tau, dt=float("nan"))
    same = lgsim.Trajectory(model, motion.time, motion.q, motion.v, motion.tau, dt=-float("nan"))
    assert jax.tree.structure(unknown) == jax.tree.structure(same)
    assert float(jax.jit(lambda motion: motion.q.sum())(motion)) == pytest.approx(motion.q.sum())


FAULTS = {
    "missing": (lambda path: path.unlink(), "got none"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:-1]), "damaged"),
    "renamed": (lambda path: path.rename(path.with_name("handler_0")), "damaged"),
    "another": (lambda path: path.write_bytes(store.entry_bytes(path.name, b"code")), "lgsim handler 1"),
    "not its name's": (lambda path: changed(path), "another one"),
}


def changed(path):
    content = bytearray(store.read_file(path))
    content[content.index(b"\n") + 1] ^= 1  # another input is shared
    path.write_bytes(store.entry_bytes(path.name, bytes(content)))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_folder_is_refused(model, fault, tmp_path):
    exported = lgsim.export(lgsim.mass_matrix)(model, states(1)[0])
    lgsim.save_programs(tmp_path, of=exported)
    assert lgsim.load_programs(tmp_path) == lgsim.load_programs(tmp_path, of=exported) == 1
    damage, message = FAULTS[fault]
    damage(next(tmp_path.iterdir()))
    with pytest.raises(ValueError, match=message) as told:
        lgsim.load_programs(tmp_path)
    assert str(tmp_path) in str(told.value)


def test_what_is_asked_for_and_not_there(tmp_path, cache, monkeypatch):
    model = trees.build(["prismatic", "helical"], [-1, 0])
    exported = lgsim.export(lgsim.mass_matrix)(model, states(1)[0])
    lgsim.save_programs(tmp_path / "programs", of=exported)
    shutil.rmtree(cache)
    with pytest.raises(FileNotFoundError):
        lgsim.load_programs(tmp_path / "nowhere")
    assert lgsim.load_programs() == 0
    for wrong in (3, "text"):
        with pytest.raises(TypeError, match=r"of: expected a jax\.export\.Exported"):
            lgsim.save_programs(tmp_path, of=wrong)
    monkeypatch.setattr(handlers, "_registered", {})
    with pytest.raises(ValueError, match="of: expected a function whose programs this process has"):
        lgsim.save_programs(tmp_path, of=exported)
    with pytest.raises(ValueError, match="expected the programs that the function calls"):
        lgsim.load_programs(of=exported)
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'lgsim\[fast\]'"):
        lgsim.load_programs(tmp_path / "programs")


def test_a_name_does_not_depend_on_the_processor(tmp_path, cache, monkeypatch):
    """Vectors of another length compute the same program, under the same name."""
    model = trees.build(["prismatic", "revolute"], [-1, 0])
    q = states(5)
    f = jax.vmap(lambda q: lgsim.mass_matrix(model, q))
    exported, right = lgsim.export(f)(q), f(q)
    lgsim.save_programs(tmp_path / "programs", of=exported)
    registered = {}
    monkeypatch.setattr(handlers, "_registered", {})
    monkeypatch.setattr(handlers, "register_handler", registered.setdefault)
    monkeypatch.setattr(compiler(), "vector_bytes", compiler().vector_bytes // 2)
    before = len(list(cache.glob("lgsim_*")))
    assert lgsim.load_programs(tmp_path / "programs") == 1
    assert set(registered) == handlers.named_handlers(exported)
    assert len(list(cache.glob("lgsim_*"))) == before + 1
    np.testing.assert_allclose(exported.call(q), right, rtol=1e-12)
