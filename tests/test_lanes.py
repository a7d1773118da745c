"""Lanes with other versions: a Python that is there is found, one that is not fails; bounds are those of pyproject."""

import importlib.util
import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LANE = ROOT / ".ci" / "lane"


def load(name):
    """A script without a suffix as a module."""
    loader = SourceFileLoader(f"ci_{name}", str(ROOT / ".ci" / name))
    made = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    loader.exec_module(made)
    sys.dont_write_bytecode = before
    return made


lane, bounds = load("lane"), load("bounds")


@pytest.fixture
def machine(tmp_path):
    """The environment of a machine without a Python, without pyenv, without an index."""
    return {
        "PATH": str(tmp_path / "bin"), "HOME": str(tmp_path), "PYENV_ROOT": str(tmp_path / "pyenv"),
        "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "UV_OFFLINE": "1", "UV_NO_CONFIG": "1",
        "UV_PYTHON_INSTALL_DIR": str(tmp_path / "uv"), "UV_CACHE_DIR": str(tmp_path / "cache"),
    }  # fmt: skip


def python(path, body):
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def found(which, machine):
    return subprocess.run(
        [sys.executable, "-B", LANE, *which.split()], env=machine, capture_output=True, text=True, cwd=machine["HOME"]
    )


@pytest.mark.parametrize("which", ["find oldest", "find newest"])
def test_a_lane_without_its_python_fails_and_says_so(which, machine):
    done = found(which, machine)
    versions = " or ".join(lane.pythons(which.split()[1]))
    assert done.returncode == 1
    assert f": no Python {versions} runs here: none is on the PATH, none under pyenv's versions" in done.stderr
    assert "uv neither finds nor installs one" in done.stderr or "uv, which makes the lane's" in done.stderr


def test_a_python_that_only_pyenv_has_is_found(machine, tmp_path):
    best = lane.pythons("newest")[0]
    python(tmp_path / "bin" / f"python{best}", "exit 127")  # a shim of pyenv
    for patch in (2, 10):
        there = python(tmp_path / f"pyenv/versions/{best}.{patch}/bin/python{best}", f"echo {best}.{patch}")
    done = found("find newest", machine)
    assert (done.returncode, done.stdout.strip()) == (0, str(there))


def test_a_python_on_the_path_comes_first_and_its_version_counts(machine, tmp_path):
    best = lane.pythons("newest")[0]
    python(tmp_path / f"pyenv/versions/{best}.0/bin/python{best}", f"echo {best}.0")
    there = python(tmp_path / "bin" / "python3", f"echo {best}.1")
    assert found("find newest", machine).stdout.strip() == str(there)
    there.write_text("#!/bin/sh\necho 3.9.1\n", encoding="utf-8")
    assert "pyenv" in found("find newest", machine).stdout


def test_a_lane_that_cannot_run_says_it_in_one_line():
    record = {"lane": "newest", "failed": ["no Python"], "versions": {}}
    assert lane.said(record) == "newest FAILED: no Python: nothing ran"
    record |= {"failed": [], "versions": {"Python": "3.13.0", "jax": "0.12.0"}}
    assert lane.said(record) == "newest ok: Python 3.13.0, jax 0.12.0"


def test_checks_run_both_lanes_and_leave_nothing_out():
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "jobs=(oldest newest " in text and "left out" not in text
    assert {folder for folder in lane.WHOLE if (ROOT / folder).is_dir()} == set(lane.WHOLE) - {"quick", lane.README}


def test_every_bound_of_the_extras_counts_once_and_the_highest_of_several():
    lowest = bounds.bounds(list(lane.EXTRAS))
    assert lowest["scipy"] == "1.15" and lowest["jax"] == "0.6.2" and {"diffrax", "ray", "pin", "sphinx"} <= set(lowest)
    extras = bounds.PROJECT["optional-dependencies"]
    listed = [each for name in extras if name != "cuda-aot" for each in extras[name]] + bounds.PROJECT["dependencies"]
    assert {each.partition(">=")[0].partition("[")[0] for each in listed} - {"lgsim"} == set(lowest)


def test_versions_off_their_bounds_are_named():
    lowest = {"a": "1.2", "b": "3", "c": "0.5.1"}
    assert bounds.above({"a": "1.2.0", "b": "3.0", "c": "0.5.1"}, lowest) == []
    assert bounds.above({"a": "1.2.1", "b": "3.0", "c": "0.6"}, lowest) == ["a 1.2.1, not 1.2", "c 0.6, not 0.5.1"]
