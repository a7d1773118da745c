"""What is added as CONTRIBUTING.md says has the tests of its kind by themselves: in a copy of the package."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.test_readme import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.fixture
def copy(tmp_path):
    """The package and its tests, where something can be added."""
    skip = shutil.ignore_patterns("__pycache__", "*.pyc", "results")
    for folder in ("lgsim", "tests", "benchmarks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=skip)
    shutil.copyfile(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    return tmp_path


def run_tests(copy, *arguments):
    """What pytest says in the copy."""
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    env = {**os.environ, "PYTHONPATH": str(copy)}
    run = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-2000:]
    return run.stdout


def part(begin, end):
    """The lines of the page from one to before another."""
    return PAGE[PAGE.index(begin) : PAGE.index(end, PAGE.index(begin))].rstrip() + "\n"


@pytest.mark.slow
def test_a_joint_has_its_tests(copy):
    room = copy / "lgsim" / "multibody" / "joints"
    text = part("@dataclass(frozen=True)\nclass Telescope(", "\n\nmast = ")
    imports = "from dataclasses import dataclass\n\nfrom lgsim.multibody.joint import Row, ScrewJoint"
    head = f'"""A telescope."""\n\n{imports}\n\n\n'
    (room / "telescope.py").write_text(head + text)
    listed = room / "__init__.py"
    text = listed.read_text(encoding="utf-8")
    text = text.replace("\nJOINTS:", "from lgsim.multibody.joints.telescope import Telescope\n\nJOINTS:", 1)
    text = text.replace("Free, Compound,", "Free, Compound, Telescope,", 1).replace(
        '    "Spherical",', '    "Spherical",\n    "Telescope",', 1
    )
    listed.write_text(text, encoding="utf-8")
    found = run_tests(copy, "--collect-only", "tests/multibody/joints/test_joints.py", "-k", "telescope", "-m", "")
    assert int(re.search(r"(\d+)/\d+ tests collected", found)[1]) >= 4, found
    run_tests(copy, "tests/multibody/joints/test_joints.py", "-k", "telescope", "-m", "not slow")


@pytest.mark.slow
def test_a_method_has_its_tests(copy):
    family = copy / "lgsim" / "integrators" / "methods" / "munthe_kaas.py"
    text = family.read_text(encoding="utf-8")
    added = part("a = ((), (1 / 3,)", "\n\n\ndef turn(").replace("a = (", "_THIRDS = (", 1).replace("a=a", "a=_THIRDS")
    family.write_text(text.replace("\n__all__ =", f"\n{added}\n__all__ =", 1), encoding="utf-8")
    found = run_tests(copy, "--collect-only", "tests/integrators", "-k", "MK4ThreeEighths", "-m", "")
    assert int(re.search(r"(\d+)/\d+ tests collected", found)[1]) >= 4, found
    run_tests(copy, "tests/integrators/methods/test_orders.py", "-k", "MK4ThreeEighths")
