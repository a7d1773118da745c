"""Statements of the pages, each compared with what the code does."""

import dataclasses
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import scenarios
from lgsim.support import toml_table

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
REGISTERS = [name for name in dir(lgsim) if name.endswith("METHODS")]
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def page(name):
    """The text of a page on one line; of a notebook that of its markdown cells."""
    text = (ROOT / name).read_text(encoding="utf-8")
    if name.endswith(".ipynb"):
        text = "\n".join("".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "markdown")
    return " ".join(text.split())


def pages():
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in (*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")))
    }


def ball():
    builder = lgsim.ModelBuilder().add_body("body", "world", lgsim.joints.Free(), mass=1.0, inertia=np.eye(3))
    return builder.build()


def test_the_order_of_a_quaternion():
    (order,) = re.findall(r"a quaternion \((\w, \w, \w, \w)\)", page("docs/getting_started/urdf.md"))
    neutral = dict(zip(order.split(", "), ball().neutral()[3:], strict=True))
    assert neutral == {"w": 1, "x": 0, "y": 0, "z": 0}


def test_the_arrays_of_a_model_are_counted():
    plain = len(jax.tree.leaves(lgsim.load_urdf(lgsim.data.arm7())))
    every = sum(field.name != "topology" for field in dataclasses.fields(lgsim.Model))
    assert f"{WORDS[plain]} of a plain tree, and {WORDS[every - plain]} more" in page("docs/walk.md")


def test_what_check_raises():
    """Of a quotient of zeros in a control law."""
    arm = lgsim.load_urdf(lgsim.data.cart_pole())
    given = {"dt": 0.01, "control": lambda t, q, v, model: q / q}
    assert "`simulate(..., check=True)` raises nothing: the trajectory's `result` has it" in page("docs/errors.md")
    assert lgsim.simulate(arm, duration=0.02, check=True, step_check=False, **given).result

    def run(q):
        return lgsim.rollout(arm, q, jnp.zeros(2, arm.dtype), steps=2, check=True, **given).q

    assert "`FloatingPointError` of `rollout(..., check=True)`" in page("docs/errors.md")
    with pytest.raises(FloatingPointError):
        run(jnp.zeros(2, arm.dtype))
    with pytest.raises(jax.errors.JaxRuntimeError, match="FloatingPointError"):
        jax.block_until_ready(jax.jit(run)(jnp.zeros(2, arm.dtype)))


def test_dotted_names_of_pages_are_there():
    """`lgsim.symbolic.compile.x` is none where `lgsim.symbolic.compile` is a function."""
    found = 0
    for name, text in pages().items():
        for dotted in re.findall(r"`lgsim((?:\.\w+)+)", text):
            if name == "CHANGELOG.md":
                continue
            value = lgsim
            for part in dotted[1:].split("."):
                module = sys.modules.get(f"{getattr(value, '__name__', '')}.{part}")
                value = getattr(value, part, module)
                assert value is not None, f"{name}: lgsim{dotted}"
            found += 1
    assert found > 80
    assert "`systems.biped_gains` has" in page("docs/control.md") and lgsim.systems.biped_gains


@pytest.mark.slow
def test_raw_gradients_of_quaternions():
    body = ball()
    place = body.retract(body.neutral(), jnp.array([0.0, 0.0, 0.0, 0.4, -0.2, 0.1], body.dtype))
    raw = jax.grad(lambda q: lgsim.forward_kinematics(body, q)[0, 2, 0])(place)
    assert "one entry for each of the nq numbers of q" in page("docs/common_pitfalls.md") and raw.shape == (body.nq,)
    assert "constant along the quaternion" in page("docs/common_pitfalls.md") and abs(raw[3:] @ place[3:]) < 1e-6
    assert "points off the sphere" not in page("docs/common_pitfalls.md")


def test_the_law_of_dry_friction():
    rod = ("rod", "world", lgsim.joints.Revolute())
    builder = lgsim.ModelBuilder().add_body(*rod, axis=[0, 0, 1], mass=1.0, friction=2.0, friction_speed=0.01)
    v = jnp.linspace(-0.03, 0.03, 7)[:, None]
    model = builder.build()
    force = lgsim.passive_forces(model, jnp.zeros_like(v), v)
    np.testing.assert_allclose(force, -2 * np.tanh(v / 0.01), rtol=1e-5)
    text = page("docs/common_pitfalls.md")
    assert "friction tanh(v / friction_speed)" in text
    assert "half of `friction_speed` at r = 0.46 and 2.6 times it at r = 0.99" in text
    np.testing.assert_allclose(np.arctanh([0.46, 0.99]), [0.5, 2.6], atol=0.05)


def test_what_takes_batches():
    text = page("docs/coming_from.md")
    assert "`integrate` and `rollout` take one state" in text and "refuses `jax.jit`, `jax.vmap` and `jax.grad`" in text
    model = lgsim.load_urdf(lgsim.data.cart_pole())
    two = jnp.zeros((2, 2), model.dtype)
    assert lgsim.forward_dynamics(model, two, two, two).shape == (2, 2)
    with pytest.raises((TypeError, ValueError)):
        lgsim.rollout(model, two, two, dt=0.01, steps=1)
    with pytest.raises((TypeError, ValueError)):
        lgsim.simulate(model, two, duration=0.01, dt=0.01)
    for transform, q in ((jax.jit, two[0]), (jax.vmap, two), (jax.grad, two[0])):
        with pytest.raises((TypeError, jax.errors.JAXTypeError)):
            transform(lambda q: jnp.sum(lgsim.simulate(model, q, duration=0.01, dt=0.01).q))(q)


def test_who_estimates_its_error():
    """A rollout is the pure function, which has no estimate."""
    assert "`simulate` estimates its own integration error" in page("README.md")
    assert "A motion of `simulate` or `simulate_adaptive` has an estimate" in page("notebooks/11_errors.ipynb")
    for text in (page("README.md"), page("notebooks/11_errors.ipynb")):
        assert not re.search(r"every motion (that|says)", text, re.IGNORECASE)
    model = lgsim.load_urdf(lgsim.data.cart_pole())
    start = jnp.zeros(2, model.dtype)
    assert not hasattr(lgsim.rollout(model, start, start, dt=0.01, steps=2), "step_error")
    assert hasattr(lgsim.simulate(model, duration=0.02, dt=0.01), "step_error")


@pytest.mark.parametrize("name", ["README.md", "docs/index.md", "lgsim/__init__.py"])
def test_what_is_said_of_gpus(name):
    """Until a record of results is one of a GPU."""
    measured = [
        path.name
        for path in (ROOT / "benchmarks" / "results").glob("*.json")
        if json.loads(path.read_text(encoding="utf-8"))["machine"]["device"]["platform"] != "cpu"
    ]
    text = " ".join((ROOT / name).read_text(encoding="utf-8").replace("](docs/gpu.md)", "").replace("[", "").split())
    assert ("have not been measured on one" in text) == (not measured)
    assert "CPU and GPU" not in text or measured


def test_first_installs_are_from_a_clone():
    """lgsim is on no package index; what names an extra of an lgsim that is there stands in a line of text."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    found = 0
    for name, text in pages().items():
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
            for line in block.splitlines():
                if line.startswith("pip install"):
                    what = shlex.split(line, comments=True)[2]
                    assert re.fullmatch(r"\.(\[[a-z,]+\])?", what), f"{name}: {line}"
                    assert set(what[2:-1].split(",")) - {""} <= set(extras), line
                    found += 1
    assert found >= 8


def test_files_of_shell_blocks_are_there():
    """Written by a line before, or named as the reader's own."""
    for path in (DOCS / "getting_started").glob("*.md"):
        text, made = path.read_text(encoding="utf-8"), set()
        own = set(re.findall(r"`([\w.]+)`", "".join(re.findall(r"have to be there: (.*)", text))))
        for line in "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).splitlines():
            words = shlex.split(line, comments=True)
            if words[0] == "cp":
                made.add(words[2])
            if words[0] != "lgsim":
                continue
            outputs = {words[i + 1] for i, word in enumerate(words) if word in (">", "--out", "--report", "--write")}
            read = {word for word in words[2:] if re.search(r"\.(urdf|toml|csv)$", word)} - outputs
            assert read <= made | own, f"{path.name}: {line}"
            made |= outputs


@pytest.mark.slow
def test_the_shell_block_of_a_urdf_runs_from_an_empty_folder(tmp_path):
    (tmp_path / "bin").mkdir()
    for name, module in (("python", ""), ("lgsim", " -m lgsim.cli")):
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{module} "$@"\n')
        (tmp_path / "bin" / name).chmod(0o755)
    text = (DOCS / "getting_started" / "urdf.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line for line in block.splitlines() if not line.startswith("pip")]
    script = "\n".join(["set -e", "mkdir empty", "cd empty", *lines])
    env = {"PYTHONPATH": str(ROOT), "PATH": f"{tmp_path}/bin:/usr/bin:/bin", "HOME": str(tmp_path), "MPLBACKEND": "Agg"}
    subprocess.run(["/bin/sh", "-c", script], cwd=tmp_path, check=True, env=env)
    assert {file.name for file in (tmp_path / "empty").iterdir()} >= {"robot.urdf", "run.npz", "run.html"}


def test_integrators_are_counted():
    total = sum(len(getattr(lgsim, name)) for name in REGISTERS)
    assert len(REGISTERS) == 6
    said = [
        number
        for name, text in pages().items()
        if name != "CHANGELOG.md"
        for number in re.findall(r"(\d+|[a-z]+ty-[a-z]+) (?:integrators\]|methods of integration)", text)
    ]
    assert said == [str(total)]


def test_files_that_notebooks_name_are_there():
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for file in re.findall(r"`(lgsim/[\w/.]+)`", page(f"notebooks/{path.name}")):
            assert (ROOT / file).exists(), f"{path.name}: {file}"


def test_the_walk_writes_the_problem_of_the_tour():
    assert "[A walk](../docs/walk.md) writes the same problem" in page("notebooks/01_tour.ipynb")
    body = lgsim.systems.free_rigid_body(angular_velocity=(0.01, 2.0, 0.0))
    assert "inertia = jnp.array([1.0, 2.0, 3.0])" in page("docs/walk.md")
    np.testing.assert_array_equal(np.ravel(body.args)[:3], [1.0, 2.0, 3.0])


def accepted(monkeypatch, *paths):
    """The keys that a scenario may have: those that reading it asks for."""
    found, only = set(), toml_table.Table.only

    def note(table, *keys):
        found.update(keys)
        return only(table, *keys)

    monkeypatch.setattr(toml_table.Table, "only", note)
    for path in paths:
        scenarios.load_scenario(path)
    return found


def test_a_scenario_has_all_keys_and_all_kinds_of_files(monkeypatch):
    text = lgsim.data.scenario("reach").read_text(encoding="utf-8")
    keys = accepted(monkeypatch, *(lgsim.data.scenario(name) for name in ("reach", "follow", "swing_up")))
    assert len(keys) > 40
    assert [key for key in sorted(keys) if not re.search(rf"(^|[\s#{{\[.]){key}\s*(=|\])", text, re.MULTILINE)] == []
    claims = [each.__doc__ for each in (scenarios.load_scenario, scenarios.load_study, scenarios.load_recording_map)]
    assert ["all keys" in claim for claim in claims] == [True, False, False]
    assert "SDF" in scenarios.machine.read_machine.__doc__
    for name in ("scenario", "study"):
        example = getattr(lgsim.data, name)({"scenario": "reach", "study": "hover"}[name]).read_text(encoding="utf-8")
        assert "a URDF, SDF or MJCF file" in example


def test_orders_and_estimates_of_the_named_methods():
    row = re.search(r"\| `diffrax.Dopri8` \| `(\w+)` \| (.*?) \|", page("docs/coming_from.md"))
    method = getattr(lgsim, row[1])
    assert method.order == 8 and (method.embedded_order is None) == ("no error estimate" in row[2])


def test_from_which_angle_the_map_exp_is_better():
    code = lgsim.VariationalTree, lgsim.dynamics.discrete.rotation_maps
    texts = [*(each.__doc__ for each in code), page("docs/variational_trees.md")]
    angle = r"(?:more than|above)(?: some| about)? ([\d.]+) rad (?:a|per) step"
    said = [re.findall(angle, " ".join(text.split())) for text in texts]
    assert said == [["0.2"]] * 3


def test_methods_that_a_study_takes():
    assert "lgsim.Rodas4" in lgsim.montecarlo.Rollout.__doc__ and "Rodas4" not in lgsim.METHODS
    model = lgsim.load_urdf(lgsim.data.cart_pole())
    lgsim.montecarlo.Rollout(model, dt=0.01, steps=2, method=lgsim.Rodas4)


def test_checkpoints_as_the_table_has_them():
    record = json.loads((ROOT / "benchmarks" / "results" / "memory.json").read_text(encoding="utf-8"))
    (table,) = record["tables"]
    none, step = ({r[0]: r for r in table["rows"]}[name] for name in ("None", "step"))
    seconds = table["columns"].index("gradient, s")
    assert (none[seconds] >= step[seconds]) == ("it is not faster" in page("docs/decisions.md"))


def test_names_of_the_first_page_are_those_of_its_machine():
    text = page("docs/index.md")
    for name, file in re.findall(r"(\w+) = lgsim\.load_urdf\(lgsim\.data\.(\w+)\(\)\)", text):
        assert (name, file) == ("cart_pole", "cart_pole")
