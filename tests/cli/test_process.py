"""The command as a process of its own: start, Ctrl-C, and what it needs."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lgsim import data
from lgsim.simulation import Trajectory

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "lgsim.cli"]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(ROOT),
    "JAX_PLATFORMS": "cpu",
    "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache" / "jax"),
}

# what is printed before anything is computed
WORDS = """
import contextlib, io, sys
from lgsim.cli import main
for words in sys.argv[1:]:
    sys.argv = ["lgsim", *words.split()]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            main()
        except SystemExit as end:
            assert not end.code, words
    heavy = {"jax", "numpy", "equinox", "matplotlib", "viser", "lxml"} & set(sys.modules)
    assert said.getvalue() and not heavy, (words, heavy)
"""
COMMANDS = "compare convert demo estimate generate identify info montecarlo optimize plot simulate view".split()


def test_help_needs_no_numerics():
    words = ["--help", "--version", "optimize --example reach", *(f"{command} --help" for command in COMMANDS)]
    run = subprocess.run([sys.executable, "-c", WORDS, *words], env=ENVIRONMENT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


# a setting of the backend is an error once it runs
CONFIGURED = """
import sys
import jax
from lgsim.cli import files, main
configure, calls = files.configure_jax, []
def watched():
    if not calls:
        jax.config.update("jax_num_cpu_devices", 1)
    calls.append(configure())
files.configure_jax = watched
sys.argv = ["lgsim", *sys.argv[1:]]
try:
    main()
finally:
    assert calls and not jax.config.values["jax_cpu_enable_async_dispatch"] and jax.config.jax_enable_x64
"""


@pytest.mark.repeats("words0")
@pytest.mark.parametrize(
    "words",
    [
        ["info", str(data.arm7())],
        ["optimize", str(data.scenario("reach")), "--check"],
        ["montecarlo", "run", str(data.study("arm")), "--check"],
    ],
)
def test_jax_is_configured_before_it_starts(words, tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", CONFIGURED, *words], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


def test_errors_and_version(tmp_path):
    run = subprocess.run([*COMMAND, "info", "none.urdf"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "error: none.urdf: the file cannot be read: No such file or directory\n"


def test_ctrl_c_saves_what_was_computed(files, tmp_path):
    arguments = ["simulate", files / "arm.urdf", "--q", "1,1", "--duration", "1e6", "--save-every", "100", "--yes"]
    with subprocess.Popen(
        [*COMMAND, *arguments], cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr.readline().startswith("simulating 1e+06 s of")
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 130, errors
    assert "stopping at the next state that is saved" in errors
    assert "note: interrupted at" in errors
    assert "is in run.npz" in errors
    assert "Traceback" not in errors
    run = Trajectory.load(tmp_path / "run.npz")
    assert run.result.startswith("interrupted at")
    assert len(run) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.3, 0.5, 0.7, 0.9, 1.2, 1.6])
def test_ctrl_c_while_packages_are_imported(seconds, tmp_path):
    """An exception in the middle of an import was printed by whoever met it, or swallowed."""
    arguments = ["simulate", data.arm7(), "--duration", "1e6", "--save-every", "100", "--yes"]
    with subprocess.Popen(
        [*COMMAND, *arguments], cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    ) as run:
        try:
            time.sleep(seconds)
            run.send_signal(signal.SIGINT)
            _, errors = run.communicate(timeout=120)
        finally:
            run.kill()
    assert run.returncode == 130 and "interrupted" in errors and "Traceback" not in errors, errors


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra(missing, monkeypatch, capsys):
    from lgsim.cli import main

    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"the packages {missing}, which" in error
    assert "pip install 'lgsim[cli]'" in error


def test_entry_point(monkeypatch, capsys):
    from lgsim.cli import main

    monkeypatch.setattr(sys, "argv", ["lgsim", "--version"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith("lgsim ")
