"""Machines from URDF, SDF and MJCF files, and from the table ``[machine]`` of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from lgsim import data
from lgsim.formats import FileError, Report, read_mjcf, read_sdf, read_urdf
from lgsim.formats.loop_files import add_loops
from lgsim.formats.solids.model_solids import SolidNames
from lgsim.multibody import Model
from lgsim.scenarios.obstacles import solid_names, with_obstacles
from lgsim.simulation.stops import resolved_contact_time, with_stops
from lgsim.support.packages import package
from lgsim.support.toml_table import Table

TRAJECTORIES = (".npz", ".parquet", ".csv", ".mcap")
"""The endings of files that hold trajectories."""
ONLY_URDF = "only for URDF files; an MJCF file says with <freejoint/> what is free, in SDF a link without a joint is"
SHIPPED = "lgsim:"
"""The beginning of the name of a machine that comes with lgsim."""


MACHINE_KEYS = (
    "file", "floating_base", "gravity", "ignore_equalities", "loops", "solids", "solid_meshes", "obstacles", "apart",
)  # fmt: skip
"""The keys of the table ``[machine]`` that say which machine it is."""


class MachineFile(NamedTuple):
    """A machine with the file that it comes from.

    Attributes:
        path: The URDF, SDF or MJCF file, as an absolute path.
        report: The oddities of the file; None where the model was not read from it.
        floating_base: Whether the root link of a URDF file moves freely.
    """

    path: Path
    model: Model
    report: Report | None
    floating_base: bool


def read_machine(
    path: str | PathLike[str],
    *,
    floating_base: bool = False,
    gravity: Float[np.ndarray, " 3"] | None = None,
    dtype: jnp.dtype | type | None = None,
    ignore_equalities: bool = False,
    loops: str | PathLike[str] | None = None,
    solids: SolidNames = (),
    solid_meshes: Mapping[str, int] | None = None,
) -> tuple[Model, Report]:
    """Read a machine from a URDF, SDF or MJCF file; the first element tells which it is.

    Args:
        floating_base: Whether the root link of a URDF file moves freely.
        gravity: The acceleration of free fall in world axes, (3,), m/s^2; None for that of the file.
        dtype: float32 or float64; None for JAX's default float.
        ignore_equalities: Whether a machine of an MJCF file whose bodies are tied is read without these ties.
        loops: A TOML file with loops, see ``lgsim.formats.loop_files``; None for those of the file.
        solids: Which links' shapes become solids, see ``lgsim.load_urdf``; none by default.
        solid_meshes: What meshes become, see ``lgsim.load_urdf``.

    Returns:
        The machine, and what is odd in its file.

    Raises:
        FileError: a ValueError: a file describes no machine or no loops of it, or a floating base is asked of another
            file than URDF.
        ModuleNotFoundError: the package mujoco is missing.
    """
    file = Path(path)
    if file.suffix in TRAJECTORIES:
        raise FileError(str(file), None, "expected a machine, a URDF, SDF or MJCF file, got the name of a run")
    tag = first_tag(file)
    if tag == "mujoco":
        package("mujoco", "mjcf", "an MJCF file")
    if floating_base and tag in ("mujoco", "sdf"):
        raise FileError(str(file), None, f"floating_base: {ONLY_URDF}")
    own: Any = {"solids": solids, "solid_meshes": solid_meshes}
    if tag == "mujoco":
        model, report = read_mjcf(file, dtype=dtype, ignore_equalities=ignore_equalities, **own)
    elif tag == "sdf":
        model, report = read_sdf(file, dtype=dtype, **own)
    else:
        model, report = read_urdf(file, floating_base, dtype=dtype, **own)
    if loops is not None:
        model = add_loops(model, loops)
    return (model if gravity is None else model.replace(gravity=jnp.asarray(gravity, model.dtype))), report


def machine_of(table: Table) -> MachineFile:
    """The machine of a table with the keys ``MACHINE_KEYS``.

    A relative name of a file is one beside the scenario, whatever the working directory.

    Raises:
        ScenarioError: there is no such machine.
        ModuleNotFoundError: the package mujoco is missing.
    """
    name = table.need("file").text("file", "")
    if name.startswith(SHIPPED):
        own = name.removeprefix(SHIPPED)
        file = data.machine(table.known("file", own, data.MACHINES, "a machine that comes with lgsim"))
    else:
        file = table.document.file.parent / name
    gravity = table.vector("gravity", 3)
    floating_base = table.flag("floating_base", False)
    ignored, loops = table.flag("ignore_equalities", False), table.text("loops")
    with table.at("file"):
        model, report = read_machine(
            file, floating_base=floating_base, gravity=gravity, ignore_equalities=ignored, solids=solid_names(table),
            solid_meshes=table.of("solid_meshes", dict, {}),
        )  # fmt: skip
    if loops is not None:
        with table.at("loops"):
            model = add_loops(model, table.document.file.parent / loops)
    return MachineFile(file.absolute(), with_obstacles(table, model), report, floating_base)


def with_stops_of(table: Table, machine: MachineFile, dt: float) -> MachineFile:
    """The machine with stops at its position limits where the key ``stops`` of its table says so.

    Args:
        table: The table ``[machine]``.
        dt: The step, s, which the stops are soft enough for.

    Raises:
        ScenarioError: a joint moves without inertia.
    """
    if not table.flag("stops", False):
        return machine
    with table.at("stops"):
        return machine._replace(model=with_stops(machine.model, resolved_contact_time(dt)))


def first_tag(path: Path) -> str:
    """The tag of the first element of an XML file; "" where there is none, which the reader of URDF files reports."""
    try:
        with path.open("rb") as file:
            return str(next(ElementTree.iterparse(file, ("start",)))[1].tag)
    except (ElementTree.ParseError, OSError, StopIteration, ValueError, LookupError):
        return ""
