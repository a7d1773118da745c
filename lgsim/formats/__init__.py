"""Readers of robots' description files, each of which gives a model and a report of what was odd, and a writer."""

from lgsim.formats.actuator_files import load_actuators, read_actuators
from lgsim.formats.mjcf import load_mjcf, read_mjcf
from lgsim.formats.mjcf_actuators import read_mjcf_actuators
from lgsim.formats.report import FileWarning, Finding, Inertia, Report
from lgsim.formats.sdf import load_sdf, read_sdf
from lgsim.formats.urdf import load_urdf, read_urdf
from lgsim.formats.urdf_writer import write_urdf
from lgsim.formats.xml import FileError

__all__ = [
    "FileError", "FileWarning", "Finding", "Inertia", "Report", "load_actuators", "load_mjcf", "load_sdf",
    "load_urdf", "read_actuators", "read_mjcf", "read_mjcf_actuators", "read_sdf", "read_urdf", "write_urdf",
]  # fmt: skip
