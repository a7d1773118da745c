"""Pinocchio's C++ without Python: a loop compiled from its headers if they are installed, else its batch call.

Its headers and Boost are in the wheel `pin`, Eigen's in the wheel `casadi` or in /usr/include. The compilation takes
some minutes; the result is kept in the folder for temporary files, and a quick run uses it only if it exists. Otherwise
the batch call `abaInParallel` on a pool of one thread replaces forward dynamics, within 4 % of a native build, and the
others are scaled by the ratios of a native build on an AMD EPYC: 0.77, 1.54 and 3.72 µs for Panda.
"""

import hashlib
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from lgsim.multibody.inertia import mass_center_inertia

SOURCE = Path(__file__).parent / "pinocchio_loop.cpp"
NATIVE = {"inverse_dynamics": 0.77, "forward_dynamics": 1.54, "forward_dynamics_derivatives": 3.72}
FLAGS = [
    "-std=c++17", "-O3", "-march=native", "-DNDEBUG", "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30", "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS", "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
]  # fmt: skip


def microseconds(model, twin, rows, quick):
    """(µs per state by algorithm, the way of measurement)."""
    program = compiled_loop(build=not quick)
    if program is None:
        q, v, tau = rows
        run = twin.forward_dynamics(*twin.states(q, v, tau))
        run()
        times = []
        for _ in range(10 if quick else 50):
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) / len(q))
        pool = 1e6 * float(np.median(times))
        return {name: pool * us / NATIVE["forward_dynamics"] for name, us in NATIVE.items()}, (
            "its batch call on one thread, the others by the ratios of a native build"
        )
    with tempfile.TemporaryDirectory() as folder:
        machine = Path(folder) / "machine.txt"
        machine.write_text(machine_text(model))
        out = subprocess.run([program, machine, "0.3" if quick else "2"], check=True, capture_output=True, text=True)
    return {line.split()[0]: float(line.split()[1]) for line in out.stdout.splitlines()}, "its own loop in C++"


def compiled_loop(build):
    """The program of the loop, or None without headers, a compiler or permission to build it."""
    try:
        import pinocchio
    except ImportError:
        return None
    name = hashlib.sha256(SOURCE.read_bytes() + pinocchio.__version__.encode() + " ".join(FLAGS).encode()).hexdigest()
    program = Path(tempfile.gettempdir()) / f"lgsim_pinocchio_loop_{name[:16]}"
    if program.exists():
        return program
    includes = [Path(pinocchio.__file__).parents[4] / "include", *eigen()]
    if not build or not (includes[0] / "pinocchio").is_dir():
        return None
    draft = program.with_suffix(".draft")
    command = ["g++", *FLAGS, *(f"-I{x}" for x in includes), str(SOURCE), "-o", str(draft)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return draft.replace(program)


def eigen():
    """Folders that have the headers of Eigen."""
    found = [Path("/usr/include/eigen3")]
    try:
        import casadi

        found.append(Path(casadi.__file__).parent / "include" / "eigen3")
    except ImportError:
        pass
    return [x for x in found if (x / "Eigen").is_dir()]


def machine_text(model):
    """A robot of revolute joints about coordinate axes, in the format of the loop."""
    lines = []
    for i, parent in enumerate(model.topology.parents):
        T, axis = np.asarray(model.placements[i], float), np.asarray(model.axes[i], float)
        along = int(np.argmax(axis))
        if not np.array_equal(axis, np.eye(3)[along]):
            raise ValueError("the loop of Pinocchio supports only joints about x, y and z")
        mass, center, inertia = (np.asarray(x, float) for x in mass_center_inertia(model.inertias[i]))
        six = inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
        numbers = [*T[:3, :3].ravel(), *T[:3, 3], float(mass), *center, *six]
        lines.append(" ".join([str(parent), str(along), *(repr(float(x)) for x in numbers)]))
    return "\n".join(lines) + "\n"
