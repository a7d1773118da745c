"""Robots from URDF, SDF and MJCF files, and from the table `[machine]` of a scenario."""

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
from lgsim.formats.sdformat import old_versions
from lgsim.formats.solids.model_solids import SolidNames
from lgsim.formats.xacro_file import XacroFile
from lgsim.formats.xml import read
from lgsim.multibody import Model
from lgsim.scenarios.obstacles import solid_names, with_obstacles
from lgsim.simulation.stops import resolved_contact_time, with_stops
from lgsim.support.packages import package
from lgsim.support.toml_table import Table

TRAJECTORIES = (".npz", ".parquet", ".csv", ".mcap")
"""Suffixes of trajectory files."""
NOT_IN_SDF = "expected a URDF or MJCF file; in SDF a link without a joint has a floating base"
SHIPPED = "lgsim:"
"""Prefix of the names of robots that are part of lgsim."""


MACHINE_KEYS = (
    "file", "floating_base", "gravity", "ignore_equalities", "loops", "solids", "solid_meshes", "obstacles", "apart",
    "model", "xacro",
)  # fmt: skip
"""Keys of the table `[machine]` that define the model."""


class MachineFile(NamedTuple):
    """A model and the file that it was read from.

    Attributes:
        path: The URDF, SDF or MJCF file, as an absolute path.
        report: Findings in the file; None if the model was not read from it.
        floating_base: True if the root link of a URDF file has six degrees of freedom.
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
    only: str | None = None,
) -> tuple[Model, Report]:
    """Read a robot from a URDF, SDF or MJCF file; the root element determines the format.

    Args:
        floating_base: True gives the root link of a URDF file, or the fixed bodies of an MJCF file, six degrees of
            freedom.
        gravity: Gravitational acceleration in the world frame, (3,), m/s^2; None for that of the file.
        dtype: float32 or float64; None for JAX's default float.
        ignore_equalities: True ignores the equality constraints of an MJCF file.
        loops: A TOML file with loops, see ``lgsim.formats.loop_files``; None for those of the file.
        solids: Links whose shapes become collision geometry, see ``lgsim.load_urdf``; none by default.
        solid_meshes: Representation of meshes, see ``lgsim.load_urdf``.
        only: Name of one model of an SDF file or its world, see ``lgsim.load_sdf``; None for all.

    Returns:
        The model, and the findings in its file.

    Raises:
        FileError: a ValueError: a file describes no valid model or no valid loops, or a floating base is requested for
            an SDF file.
        ModuleNotFoundError: the package mujoco is missing.
    """
    file = path if isinstance(path, Path) else Path(path)
    if file.suffix in TRAJECTORIES:
        raise FileError(str(file), None, "expected a robot's URDF, SDF or MJCF file, got the name of a run")
    tag = first_tag(file)
    if tag == "mujoco":
        package("mujoco", "mjcf", "an MJCF file")
    if floating_base and tag == "sdf":
        raise FileError(str(file), None, f"floating_base: {NOT_IN_SDF}")
    if only is not None and tag != "sdf":
        raise FileError(str(file), None, f"model: expected an SDF file, which may have several models, got {only!r}")
    own: Any = {"solids": solids, "solid_meshes": solid_meshes}
    if tag == "mujoco":
        model, report = read_mjcf(
            file, floating_base=floating_base, dtype=dtype, ignore_equalities=ignore_equalities, **own
        )
    elif tag == "sdf":
        model, report = read_sdf(file, model=only, dtype=dtype, **own)
    else:
        model, report = read_urdf(file, floating_base, dtype=dtype, **own)
    if loops is not None:
        model = add_loops(model, loops)
    return (model if gravity is None else model.replace(gravity=jnp.asarray(gravity, model.dtype))), report


def machine_of(table: Table) -> MachineFile:
    """The model of a table with the keys ``MACHINE_KEYS``; relative paths are relative to the scenario file.

    Raises:
        ScenarioError: there is no such robot.
        ModuleNotFoundError: the package mujoco is missing.
    """
    name = table.need("file").text("file", "")
    if name.startswith(SHIPPED):
        own = name.removeprefix(SHIPPED)
        file = data.machine(table.known("file", own, data.MACHINES, "a robot that is part of lgsim"))
    else:
        file = XacroFile(table.document.file.parent / name, **table.of("xacro", dict, {}))
    gravity = table.vector("gravity", 3)
    floating_base = table.flag("floating_base", False)
    ignored, loops = table.flag("ignore_equalities", False), table.text("loops")
    with table.at("file"):
        model, report = read_machine(
            file, floating_base=floating_base, gravity=gravity, ignore_equalities=ignored, solids=solid_names(table),
            solid_meshes=table.of("solid_meshes", dict, {}), only=table.text("model"),
        )  # fmt: skip
    if loops is not None:
        with table.at("loops"):
            model = add_loops(model, table.document.file.parent / loops)
    return MachineFile(file.absolute(), with_obstacles(table, model), report, floating_base)


def with_stops_of(table: Table, machine: MachineFile, dt: float) -> MachineFile:
    """Add stops at the position limits if the key ``stops`` of the table `[machine]` requests them.

    Args:
        dt: Step size, s, which determines the stiffness of the stops.

    Raises:
        ScenarioError: a joint moves no inertia.
    """
    if not table.flag("stops", False):
        return machine
    with table.at("stops"):
        return machine._replace(model=with_stops(machine.model, resolved_contact_time(dt)))


def first_tag(path: Path) -> str:
    """Tag of the root element of an XML file, "sdf" for the root of its old versions too.

    It is "" without a root element, which the URDF reader reports.
    """
    try:
        with path.open("rb") as file:
            tag = str(next(ElementTree.iterparse(file, ("start",)))[1].tag).rpartition("}")[2]
    except (ElementTree.ParseError, OSError, StopIteration, ValueError, LookupError):
        try:
            tag = str(read(path, None).root.tag)
        except FileError:
            return ""
    return "sdf" if tag == old_versions.ROOT_TAG else tag
