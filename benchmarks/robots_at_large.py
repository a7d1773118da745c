"""Robots of packages: which files load, which equal Pinocchio and MuJoCo, and why the others are refused.

    python benchmarks/robots_at_large.py                 the files of the packages PACKAGES that are there, and a record
    python benchmarks/robots_at_large.py --quick         some of those of example-robot-data
    python benchmarks/robots_at_large.py FOLDER ...      all URDF, SDF and MJCF files of folders, without a record
    python benchmarks/robots_at_large.py --record FOLDER ...    those of packages and folders, and a record

A file is equal where the inverse dynamics of a random state agree with those of the other library; joints that mimic
others and machines without an oracle (SDF) are only loaded. Files without a joint are read with floating_base=True.
Bounds: every file loads or is refused by one sentence, and what is compared is equal, or differs by what the report of
the file states. Other packages than example-robot-data need not be installed, only unpacked in a folder of PYTHONPATH.
"""

import argparse
import collections
import re
import sys
import warnings
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import harness  # isort: skip
import equinox as eqx
import jax
import mujoco as mujoco_module
import numpy as np
import pinocchio

from lgsim.actuators import Actuators
from lgsim.actuators.passive_springs import DryFriction
from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.passive_forces import passive_forces
from lgsim.formats import FileError, interop
from lgsim.formats.actuator_files import read_actuators
from lgsim.formats.report import Dropped
from lgsim.scenarios.machine import first_tag, read_machine

jax.config.update("jax_enable_x64", True)

pin: Any = pinocchio
mujoco: Any = mujoco_module

EXAMPLES = "example-robot-data"
PACKAGES = {
    EXAMPLES: "cmeel.prefix/share/example-robot-data/robots",
    "pybullet": "pybullet_data",
    "gymnasium": "gymnasium",
    "gymnasium-robotics": "gymnasium_robotics",
    "robosuite": "robosuite",
    "dm-control": "dm_control",
}
"""Folders of robots by package."""
SUFFIXES = (".urdf", ".sdf", ".xml", ".mjcf", ".xacro")
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


def against_pinocchio(theirs, model, forces):
    del forces  # of motors alone
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


def against_mujoco(theirs, model, forces):
    if model.topology.loop_rows or theirs.nv != model.nv:
        return None
    q, v = state(model)
    data = mujoco.MjData(theirs)
    data.qpos[:], data.qvel[:] = interop.mujoco.q_to(model, q), interop.mujoco.v_to(model, q, v)
    mujoco.mj_forward(theirs, data)
    zero = np.asarray(interop.mujoco.a_to(model, q, v, 0 * v))
    inertial = np.zeros(theirs.nv)
    mujoco.mj_mulM(theirs, data, inertial, zero)
    # friction and limits are constraints there
    ours = INVERSE(model.replace(friction=0.0), q, v) - forces_without_commands(model, forces, q, v)
    return interop.mujoco.tau_to(model, q, ours), inertial + data.qfrc_bias - data.qfrc_passive


def forces_without_commands(model, forces, q, v):
    """Springs of tendons, gravity compensation and the forces of a fluid; dry friction is a constraint in MuJoCo."""
    tau, nothing = 0 * v, jax.numpy.zeros(0)
    for term in getattr(forces, "terms", (forces,)):
        # a motor without inputs has no commands either
        if term is None or term.commands or type(term) is Actuators:
            continue
        stages = tuple(stage for stage in term.stages if not isinstance(stage, DryFriction))
        term = eqx.tree_at(lambda x: x.stages, term, stages) if stages != term.stages else term
        tau = tau + jax.jit(lambda model, q, v, x: x.respond(model, q, v, nothing, nothing)[0])(model, q, v, term)
    return tau


ORACLES = {
    "robot": (pin.buildModelFromUrdf, against_pinocchio),
    "mujoco": (mujoco.MjModel.from_xml_path, against_mujoco),
}
"""Of each root element the reader of the other library and the comparison."""


def outcome(path):
    """(what came of a file, why)."""
    try:
        try:
            model, report = read_machine(path)
        except FileError as error:
            if "floating_base=True" not in error.message:
                raise
            read_machine(path, floating_base=True)
            return "loaded", "by floating_base=True, as its message says"
        forces = read_actuators(model, path)[0] if first_tag(path) == "mujoco" else None
    except FileError as error:
        text = re.sub(r"'[^']*'", "'...'", re.sub(r"^[^:]*'[^']*': ", "", error.message))
        text = re.sub(r"-?\d[\d.]*(e-?\d+)?", "0", re.sub(r"\S*/\S+", "...", text.partition(";")[0]))
        return "refused", text[:100]
    except Exception as error:
        return "another exception", f"{path.name}: {type(error).__name__}: {error}"[:100]
    if first_tag(path) not in ORACLES or model.nv > LARGEST:
        return "loaded", "no oracle" if model.nv <= LARGEST else f"more than {LARGEST} degrees of freedom"
    load, compare = ORACLES[first_tag(path)]
    try:
        theirs = load(str(path))
    except Exception as error:
        return "loaded", f"the other library: {type(error).__name__}"
    both = compare(theirs, model, forces)
    if both is None:
        return "loaded", "loops or mimics"
    ours, theirs = map(np.asarray, both)
    error = np.max(np.abs(ours - theirs), initial=0.0) / max(1.0, np.max(np.abs(theirs), initial=0.0))
    if error < EQUAL:
        return "equal", ""
    told = {finding.text for finding in report.ignored if isinstance(finding, Dropped)} - UNUSED
    told = {text for text in told if "load_actuators represents" not in text}
    return ("different as stated", min(told)) if told else ("different", f"{path.name}: {error:.1e}")


def files(folders):
    for folder in folders:
        for path in sorted(p for p in Path(folder).rglob("*") if p.suffix in SUFFIXES):
            if path.suffix != ".xml" or first_tag(path) in ("mujoco", "robot"):
                yield path


KINDS = ("equal", "different as stated", "loaded", "refused", "different", "another exception")


def run_in(folders):
    def run(report):
        counts, reasons, rows = collections.Counter(), collections.Counter(), []
        for name, folder in folders.items():
            found, own = list(files([folder])), collections.Counter()
            if report.quick:
                found = sorted(found, key=lambda path: path.stat().st_size)[:QUICK]
            for number, path in enumerate(found):
                kind, why = outcome(path)
                own[kind] += 1
                reasons[kind, why] += 1
                if sys.stderr.isatty():
                    print(f"\r{name}: {number + 1} of {len(found)}", end="", file=sys.stderr)
            counts += own
            rows.append([name, len(found), *(own[kind] for kind in KINDS)])
        report.table("Files", ["folder", "tried", *KINDS], rows)
        listed = [[kind, why, count] for (kind, why), count in reasons.most_common() if why]
        report.table("Reasons", ["outcome", "reason", "files"], listed)
        report.figure("tried", counts.total(), "files")
        report.figure("equal", counts["equal"], "files")
        report.bound("files that end in another exception", counts["another exception"], at_most=0)
        report.bound("files that differ", counts["different"], at_most=0)
        report.bound("files that are equal", counts["equal"], at_least=1)

    return run


def packages():
    """The folders of the packages that are there, by name and version."""
    found = {}
    for name, folder in PACKAGES.items():
        try:
            own = distribution(name)
        except PackageNotFoundError:
            continue
        found[f"{name} {own.version}"] = Path(str(own.locate_file(folder)))
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="folders of robots, else PACKAGES")
    parser.add_argument("--quick", action="store_true", help="the smallest files, and no record")
    parser.add_argument("--record", action="store_true", help="the packages too, and a record")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    name = "robots_at_large"
    if given.folders and not given.record:
        report = harness.Report(name, given.quick)
        run_in({str(folder): folder for folder in given.folders})(report)
        print(report.last_line())
        sys.exit(0 if all(bound["holds"] for bound in report.bounds) else harness.BROKEN)
    folders = packages() | {folder.name: folder for folder in given.folders}
    if given.quick:
        folders = {key: folder for key, folder in folders.items() if key.startswith(EXAMPLES)}
    harness.main(run_in(folders), name, ["--quick"] if given.quick else [])
