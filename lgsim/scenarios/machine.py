"""Machines from files of either kind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jax
import jax.numpy as jnp

from lgsim.cli.errors import BadInput, counted, needs, one_line
from lgsim.cli.terminal import note
from lgsim.formats import FileError, Report, read_mjcf, read_urdf
from lgsim.multibody import Model

RUNS = (".npz", ".parquet", ".csv")
"""The endings of runs."""


def use_float64() -> None:
    """Lets JAX make arrays of float64; the dtype of a machine still decides."""
    jax.config.update("jax_enable_x64", True)


def keep_compiled() -> None:
    """Lets JAX keep what takes longer than a second to compile in the user's cache, unless a place is set already."""
    if getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        jax.config.update("jax_compilation_cache_dir", str(Path(home) / "lgsim" / "jax"))


def read_machine(
    path: Path, *, floating_base: bool = False, gravity: Any = None, float32: bool = False
) -> tuple[Model, Report]:
    """(model, what was odd) of a URDF or an MJCF file: an MJCF file's first element is <mujoco>.

    Args:
        path: The file.
        floating_base: Whether the root link of a URDF file moves freely.
        gravity: (3,), m/s^2, or None for that of the file.
        float32: Whether the numbers are float32; else float64.

    Raises:
        BadInput: the file describes no machine, or is a run.
        Stop: mujoco is missing.
    """
    use_float64()
    if path.suffix in RUNS:
        raise BadInput(f"{path}: expected a machine, a URDF or MJCF file, got the name of a run")
    dtype = jnp.float32 if float32 else jnp.float64
    try:
        if first_tag(path) == "mujoco":
            needs("mujoco", "mjcf", "an MJCF file")
            if floating_base:
                raise BadInput("--floating-base: only for URDF files; an MJCF file says with <freejoint/> what is free")
            model, report = read_mjcf(path, dtype=dtype)
        else:
            model, report = read_urdf(path, floating_base, dtype=dtype)
    except FileError as error:
        raise BadInput(one_line(error)) from error
    return (model if gravity is None else model.replace(gravity=jnp.asarray(gravity, dtype))), report


def remark(report: Report, floating_base: bool) -> None:
    """One line to a user who does not look at the report, where the motion itself may be wrong."""
    odd = {"with an inertia that no body has": report.inertias, "that moves without mass of its own": report.massless}
    found = [f"{counted(len(findings), 'link')} {text}" for text, findings in odd.items() if findings]
    if found:
        option = " --floating-base" if floating_base else ""
        note(f"{' and '.join(found)}; shown by: lgsim info {report.file}{option}")


def first_tag(path: Path) -> str:
    """The tag of the first element; "" where there is none, which the reader of URDF files then says with its line."""
    try:
        with path.open("rb") as file:
            return str(next(ElementTree.iterparse(file, ("start",)))[1].tag)
    except (ElementTree.ParseError, OSError, StopIteration, ValueError, LookupError):
        return ""
