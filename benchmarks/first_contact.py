"""Time from `pip install` to the first result, and the size of the environment.

    python benchmarks/first_contact.py --quick     the core of lgsim, without the gradient
    python benchmarks/first_contact.py             all extras too, compared with MJX, and a record in benchmarks/results

The wheels are downloaded first, which is not timed: the rest needs no network. Each row is a new environment and new
processes with empty caches, on one core. The program is the example of the README: a second of an arm of seven joints
(`lgsim.simulate`), then a gradient through it (`lgsim.rollout`). MJX simulates the same arm for a second with its RK4,
one program of 1000 steps, without an error estimate; pip chooses its version of JAX.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import records

import lgsim

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE = re.search(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)[1]
SECOND = EXAMPLE[: EXAMPLE.index("\n\n\n")] + "\n"

MJX = """
import jax, jax.numpy as jnp, mujoco
from mujoco import mjx
jax.config.update("jax_enable_x64", True)
model = mujoco.MjModel.from_xml_path({robot!r})
model.opt.timestep, model.opt.integrator = 1e-3, mujoco.mjtIntegrator.mjINT_RK4
model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
arm = mjx.put_model(model)
start = mjx.make_data(arm).replace(qpos=jnp.array([0.3, 0.6, 0.0, -1.2, 0.0, 0.5, 0.0]))
print(jax.jit(lambda data: jax.lax.scan(lambda d, _: (mjx.step(arm, d), None), data, length=1000)[0].qpos)(start))
"""


def run(report):
    """Time the installation and the first result."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = [("lgsim", "lgsim", SECOND, EXAMPLE)]
        if not report.quick:
            mjx = MJX.format(robot=str(lgsim.data.arm7()))
            cases += [
                ("lgsim[all]", "lgsim[all]", SECOND, EXAMPLE),
                ("mujoco-mjx", f"mujoco-mjx=={records.pinned('mujoco-mjx')}", mjx, None),
            ]
        wheels = fetched(folder / "wheels", [each[1] for each in cases])
        rows = []
        for label, wanted, second, whole in cases:
            python, seconds = installed(folder / label, wanted, wheels)
            site = python.parents[1] / "lib"
            own = size(site, "lgsim" if whole else "mujoco")
            first = seconds_of(python, second, folder / f"{label} first")
            again = "-" if report.quick else seconds_of(python, second, folder / f"{label} first")
            asked = whole and not report.quick
            gradient = seconds_of(python, whole, folder / f"{label} gradient") if asked else "-"
            rows.append([label, seconds, first, again, gradient, size(site), own])
            if label == "lgsim":
                imports(report, python, folder)
        report.table(
            "From `pip install` to the first result, s on one core, and MB on the disk",
            [
                "",
                "install",
                "a simulated second",
                "second start",
                "and its gradient",
                "environment, MB",
                "its own, MB",
            ],
            rows,
        )
    core = rows[0]
    report.figure("install and first simulated second", core[1] + core[2], "s")
    report.figure("environment", core[5], "MB")
    report.bound("a simulated second after import and compilation, s", core[2], at_most=12.0)
    report.bound("the environment of the core, MB", core[5], at_most=700.0)
    report.bound("lgsim itself, MB", core[6], at_most=12.0)
    if not report.quick:
        report.bound("the example with its gradient, s", core[4], at_most=30.0)
        report.bound("MJX's first simulated second / lgsim's", rows[2][2] / core[2], at_least=1.0)


def imports(report, python, folder):
    """Time of an import, in turns."""
    programs = {"import jax": "import jax", "import jax, lgsim": "import jax, lgsim"}
    found = {name: [] for name in programs}
    for _ in range(3 if report.quick else 9):
        for name, text in programs.items():
            found[name].append(seconds_of(python, text, folder / "imports"))
    medians = {name: statistics.median(each) for name, each in found.items()}
    report.table("Imports, s, medians", ["", "s"], list(medians.items()))
    report.bound("import lgsim above import jax, s", medians["import jax, lgsim"] - medians["import jax"], at_most=0.4)


def fetched(folder, wanted):
    """Folder with the wheels of the requirements; that of lgsim is built."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    called([*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT])
    lock = ["--constraint", ROOT / "requirements.lock"]
    for each in wanted:
        named = re.sub(r"^lgsim", f"{next(folder.glob('lgsim-*.whl'))}", each)
        called(
            [*pip, "download", "--prefer-binary", "--dest", folder, *(lock if each.startswith("lgsim") else []), named]
        )
    return folder


def installed(folder, wanted, wheels):
    """Interpreter of a new environment, and the seconds that pip took to install into it."""
    called([sys.executable, "-m", "venv", folder])
    python, start = folder / "bin" / "python", time.perf_counter()
    called([python, "-m", "pip", "--quiet", "install", "--no-index", "--find-links", wheels, wanted])
    return python, time.perf_counter() - start


def seconds_of(python, text, cache):
    """Wall time of a new process that runs a program text, s."""
    cache.mkdir(exist_ok=True)
    env = os.environ | {
        "XDG_CACHE_HOME": str(cache), "JAX_COMPILATION_CACHE_DIR": str(cache / "jax"), "JAX_PLATFORMS": "cpu",
    }  # fmt: skip
    for name in ("LGSIM_CACHE_DIR", "XLA_FLAGS", "PYTHONPATH"):
        env.pop(name, None)
    start = time.perf_counter()
    called([python, "-c", text], env=env, cwd=cache)
    return time.perf_counter() - start


def called(words, **keywords):
    """Run a command; an error has its last output."""
    done = subprocess.run([str(each) for each in words], capture_output=True, text=True, **keywords)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))[:300]}\n{done.stderr[-2000:]}")


def size(folder, package=None):
    """Size of the files below a folder, or of one package there, MB."""
    files = (file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    return sum(f.stat().st_size for f in files if package is None or package in f.relative_to(folder).parts) / 1e6


if __name__ == "__main__":
    harness.main(run, "first_contact")
