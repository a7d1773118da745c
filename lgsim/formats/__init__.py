"""Readers of robots' description files. Each gives a model and a report of what was odd in the file."""

from lgsim.formats.document import FileError
from lgsim.formats.mjcf import load_mjcf, read_mjcf
from lgsim.formats.report import FileWarning, Finding, Inertia, Report
from lgsim.formats.urdf import load_urdf, read_urdf

__all__ = [
    "FileError", "FileWarning", "Finding", "Inertia", "Report", "load_mjcf", "load_urdf", "read_mjcf",
    "read_urdf",
]  # fmt: skip
