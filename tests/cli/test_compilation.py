"""What the commands compile: each program once, and at a second start nothing."""

import json
import os
import subprocess
import sys

import pytest

from lgsim import data

WATCH = """
import collections, json, re, sys, logging
import jax
found = {"misses": 0, "compiled": [], "traced": []}
def count(event, **_):
    found["misses"] += event == "/jax/compilation_cache/cache_misses"
def took(event, seconds, **more):
    if event == "/jax/core/compile/backend_compile_duration" and seconds > 0.05:
        found["compiled"].append(more.get("fun_name", ""))
jax.monitoring.register_event_listener(count)
jax.monitoring.register_event_duration_secs_listener(took)
from lgsim.cli.app import app
try:
    app(sys.argv[2:])
except SystemExit as ended:
    assert not ended.code, ended.code
with open(sys.argv[1], "w") as file:
    json.dump(found, file)
"""


def compiled(folder, *words):
    """What a command compiles in a process of its own that keeps it in a folder."""
    env = os.environ | {"XDG_CACHE_HOME": str(folder / "cache"), "LGSIM_CACHE_DIR": str(folder / "cache" / "programs")}
    env.pop("JAX_COMPILATION_CACHE_DIR", None)
    report = folder / "report.json"
    command = [sys.executable, "-c", WATCH, str(report), *map(str, words)]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(report.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["simulate", "optimize", pytest.param("montecarlo", marks=pytest.mark.exhaustive)])
def test_each_program_once_and_at_the_second_start_nothing(name, tmp_path):
    """Programs of more than 50 ms; what is kept is found again."""
    (tmp_path / "reach.toml").write_text(data.scenario("reach").read_text())
    (tmp_path / "study.toml").write_text(data.study("hover").read_text())
    words = {
        "simulate": ("simulate", data.arm7(), "--duration", 0.1, "--out", "run.npz"),
        "optimize": ("optimize", "reach.toml", "--out", "motion.npz"),
        "montecarlo": ("montecarlo", "study.toml", "--out", "store", "--samples", 64),
    }[name]
    first = compiled(tmp_path, *words)
    assert first["misses"] > 0
    assert len(first["compiled"]) == len(set(first["compiled"])), sorted(first["compiled"])
    for file in ("run.npz", "motion.npz"):
        (tmp_path / file).unlink(missing_ok=True)
    second = compiled(tmp_path, *(["other" if word == "store" else word for word in words]))
    assert second["misses"] == 0, second
