"""Robots of a folder: which files load, which equal Pinocchio and MuJoCo, and why the others are refused.

    python benchmarks/robots_at_large.py                 the URDF files of the package example-robot-data, and a record
    python benchmarks/robots_at_large.py --quick         some of them
    python benchmarks/robots_at_large.py FOLDER ...      all URDF, SDF and MJCF files of folders, without a record

A file is equal where the inverse dynamics of a random state agree with those of the other library; joints that mimic
others and machines without an oracle (SDF) are only loaded. Bounds: every file loads or is refused by one sentence, and
what is compared is equal, or differs by what the report of the file states.
"""

import argparse
import collections
import re
import sys
import warnings
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import harness  # isort: skip
import jax
import mujoco as mujoco_module
import numpy as np
import pinocchio

from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.passive_forces import passive_forces
from lgsim.formats import FileError, interop
from lgsim.formats.report import Dropped
from lgsim.scenarios.machine import first_tag, read_machine

jax.config.update("jax_enable_x64", True)

pin: Any = pinocchio
mujoco: Any = mujoco_module

EXAMPLES = "cmeel.prefix/share/example-robot-data/robots"
SUFFIXES = (".urdf", ".sdf", ".xml", ".mjcf")
QUICK = 12
EQUAL = 1e-9
LARGEST = 80
"""Degrees of freedom up to which dynamics are compared: the rest only loads."""
INVERSE = jax.jit(lambda model, q, v: inverse_dynamics(model, q, v, 0 * v) - passive_forces(model, q, v))
PLAIN = jax.jit(lambda model, q, v: inverse_dynamics(model, q, v, 0 * v))


UNUSED = {"can collide; contacts are not represented"}
"""What the report states of a file and the comparison does not use."""


def state(model):
    rng = np.random.default_rng(0)
    q = model.retract(model.neutral(), jax.numpy.asarray(rng.uniform(-1, 1, model.nv)))
    return q, jax.numpy.asarray(rng.normal(size=model.nv))


def against_pinocchio(theirs, model):
    order = list(theirs.names)
    if {*order} - {"universe"} != {*model.joint_names} or any(source is not None for source in model.topology.mimics):
        return None
    theirs.gravity.linear = np.asarray(model.gravity)
    q, v = state(model)
    there = [np.asarray(x, float) for x in (interop.pinocchio.q_to(model, q, order),
                                            interop.pinocchio.v_to(model, q, v, order),
                                            interop.pinocchio.a_to(model, q, v, 0 * v, order))]  # fmt: skip
    ours = interop.pinocchio.tau_to(model, q, PLAIN(model, q, v), order)
    return ours, pin.rnea(theirs, theirs.createData(), *there)


def against_mujoco(theirs, model):
    if model.topology.loop_rows or theirs.nv != model.nv or theirs.opt.density or theirs.opt.viscosity:
        return None
    q, v = state(model)
    data = mujoco.MjData(theirs)
    data.qpos[:], data.qvel[:] = interop.mujoco.q_to(model, q), interop.mujoco.v_to(model, q, v)
    mujoco.mj_forward(theirs, data)
    zero = np.asarray(interop.mujoco.a_to(model, q, v, 0 * v))
    inertial = np.zeros(theirs.nv)
    mujoco.mj_mulM(theirs, data, inertial, zero)
    # friction and limits are constraints there
    ours = interop.mujoco.tau_to(model, q, INVERSE(model.replace(friction=0.0), q, v))
    return ours, inertial + data.qfrc_bias - data.qfrc_passive


ORACLES = {
    "robot": (pin.buildModelFromUrdf, against_pinocchio),
    "mujoco": (mujoco.MjModel.from_xml_path, against_mujoco),
}
"""Of each root element the reader of the other library and the comparison."""


def outcome(path):
    """(what came of a file, why)."""
    try:
        model, report = read_machine(path)
    except FileError as error:
        text = re.sub(r"'[^']*'", "'...'", re.sub(r"^[^:]*'[^']*': ", "", error.message))
        return "refused", re.sub(r"-?[\d.]+(e-?\d+)?", "0", text.partition(";")[0])[:100]
    except Exception as error:
        return "another exception", f"{path.name}: {type(error).__name__}: {error}"[:100]
    if first_tag(path) not in ORACLES or model.nv > LARGEST:
        return "loaded", "no oracle" if model.nv <= LARGEST else f"more than {LARGEST} degrees of freedom"
    load, compare = ORACLES[first_tag(path)]
    try:
        theirs = load(str(path))
    except Exception as error:
        return "loaded", f"the other library: {type(error).__name__}"
    both = compare(theirs, model)
    if both is None:
        return "loaded", "loops, mimics or fluids"
    ours, theirs = map(np.asarray, both)
    error = np.max(np.abs(ours - theirs), initial=0.0) / max(1.0, np.max(np.abs(theirs), initial=0.0))
    if error < EQUAL:
        return "equal", ""
    told = {finding.text for finding in report.ignored if isinstance(finding, Dropped)} - UNUSED
    return ("different as stated", min(told)) if told else ("different", f"{path.name}: {error:.1e}")


def files(folders):
    for folder in folders:
        for path in sorted(p for p in Path(folder).rglob("*") if p.suffix in SUFFIXES):
            if path.suffix != ".xml" or first_tag(path) in ("mujoco", "robot"):
                yield path


def run_in(folders):
    def run(report):
        found = list(files(folders))
        if report.quick:
            found = sorted(found, key=lambda path: path.stat().st_size)[:QUICK]
        counts, reasons = collections.Counter(), collections.Counter()
        for number, path in enumerate(found):
            kind, why = outcome(path)
            counts[kind] += 1
            reasons[kind, why] += 1
            if sys.stderr.isatty():
                print(f"\r{number + 1} of {len(found)}", end="", file=sys.stderr)
        kinds = ("equal", "different as stated", "loaded", "refused", "different", "another exception")
        report.table("Files", ["outcome", "files"], [[kind, counts[kind]] for kind in kinds])
        listed = [[kind, why, count] for (kind, why), count in reasons.most_common() if why]
        report.table("Reasons", ["outcome", "reason", "files"], listed)
        report.figure("tried", len(found), "files")
        report.figure("equal", counts["equal"], "files")
        report.bound("files that end in another exception", counts["another exception"], at_most=0)
        report.bound("files that differ", counts["different"], at_most=0)
        report.bound("files that are equal", counts["equal"], at_least=1)

    return run


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="folders of robots, else example-robot-data")
    parser.add_argument("--quick", action="store_true", help="the smallest files, and no record")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    folders = given.folders or [Path(str(distribution("example-robot-data").locate_file(EXAMPLES)))]
    name = "robots_at_large"
    if given.folders:
        report = harness.Report(name, given.quick)
        run_in(folders)(report)
        print(report.last_line())
        sys.exit(0 if all(bound["holds"] for bound in report.bounds) else harness.BROKEN)
    harness.main(run_in(folders), name, ["--quick"] if given.quick else [])
