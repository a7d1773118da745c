"""What is said about a release once, and nowhere otherwise."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import lgsim

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_stands_once():
    """The installed one is that of pyproject.toml; neither the checks nor the citation repeat it."""
    assert re.fullmatch(r"\d+\.\d+\.\d+", PROJECT["version"])
    files = (".ci/run", ".ci/wheel", "CITATION.cff", "Makefile", "recipe/meta.yaml")
    for name in (*files, "lgsim/__init__.py", "lgsim/__init__.pyi"):
        assert PROJECT["version"] not in (ROOT / name).read_text(encoding="utf-8"), name
    assert "Typing :: Typed" in PROJECT["classifiers"] and (Path(lgsim.__file__).parent / "py.typed").is_file()


def test_pythons_of_the_classifiers_are_allowed_and_tested():
    named = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", c)]
    assert PROJECT["requires-python"] == f">={named[0]}"
    assert f'pythonVersion = "{named[0]}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for path in (".ci/run", ".ci/lane"):
        assert (ROOT / path).stat().st_mode & 0o100, path
    text = (ROOT / ".github" / "workflows" / "checks.yml").read_text(encoding="utf-8")
    assert f" {named[-1]}\n" in text and f" {named[0]}\n" in text
    assert re.search(r"python: \[(.*)\]", text)[1] == ", ".join(f'"{version}"' for version in named[1:-1])


def test_the_recipe_for_conda_has_the_requirements_of_the_package():
    """Names on conda-forge are those of the Python packages; extras are constraints there."""
    recipe = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    parts = re.split(r"^ *(host|run|run_constrained):$", recipe.partition("\ntest:\n")[0], flags=re.MULTILINE)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    listed = {name: re.findall(r"^ *- (\S+) (>=\S+)$", part, re.MULTILINE) for name, part in pairs}
    extra = PROJECT["optional-dependencies"]["cli"]
    assert [f"{name}{bound}" for name, bound in listed["run"] if name != "python"] == PROJECT["dependencies"]
    assert [f"{name}{bound}" for name, bound in listed["run_constrained"]] == extra
    assert f'- "{PROJECT["requires-python"].removeprefix(">=")}"' in (
        ROOT / "recipe" / "conda_build_config.yaml"
    ).read_text(encoding="utf-8")
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert [f"{name}{bound}" for name, bound in listed["host"]] == build
    (script,) = PROJECT["scripts"].items()
    assert f"- {' = '.join(script)}" in recipe and f"license: {PROJECT['license']}" in recipe


def test_no_registry_s_host_is_written():
    """Where packages come from is a setting of whoever installs, such as a mirror."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if files.returncode:
        pytest.skip("no git repository")
    hosts = re.compile("|".join([r"py" + r"pi\.(org|python)", r"pythonho" + r"sted\.", r"ana" + r"conda\.(org|com)"]))
    for name in files.stdout.splitlines():
        path = ROOT / name
        if path.suffix in {".md", ".toml", ".txt", ".yml", ".cff", ".py", ".lock", ".ipynb", ""} and path.is_file():
            assert not hosts.search(path.read_text(encoding="utf-8", errors="replace")), name
