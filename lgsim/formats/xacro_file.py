"""Files of xacro's macros, with the values of their arguments."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from lgsim.formats.solids.mesh_files import PACKAGES, file_at
from lgsim.support.packages import package

SUFFIX = ".xacro"
"""Suffix of the names of the files that are expanded."""
_EXPANDS = Lock()


class XacroFile(type(Path())):
    """The path of a file of xacro's macros, which every reader of URDF and SDF expands with these arguments.

    ``load_urdf(XacroFile("arm.urdf.xacro", prefix="left_"))``. A plain path with the suffix ``.xacro`` is expanded with
    the defaults of the file.

    Args:
        path: The path of the file.
        arguments: Values of its <xacro:arg>; they are passed as text.
    """

    @property
    def arguments(self) -> dict[str, str]:
        """Values of the arguments by name; a path that is made from this one has none."""
        return self.__dict__.get("_arguments", {})

    def __new__(cls, /, *path: str | os.PathLike[str], **arguments: Any):
        found = super().__new__(cls, *path)
        object.__setattr__(found, "_arguments", {name: str(value) for name, value in arguments.items()})
        return found

    def __init__(self, /, *path: str | os.PathLike[str], **arguments: Any) -> None:
        # Path takes the segments in __new__ before Python 3.12, here since
        if type(Path()).__init__ is not object.__init__:
            super().__init__(*path)

    def __reduce__(self):
        """For pickle and copy."""
        return _remade, (str(self), self.arguments)

    def absolute(self) -> XacroFile:
        """The absolute path with the same arguments."""
        return XacroFile(os.path.abspath(self), **self.arguments)


def _remade(path: str, arguments: dict[str, str]) -> XacroFile:
    return XacroFile(path, **arguments)


def expand(path: str | os.PathLike[str]) -> str | None:
    """The XML of a file of macros; None if the path has another suffix, or the package ``xacro`` is missing.

    "$(find name)" is the folder of that name next to the file or above it, or in the folders of the environment
    variables of ``mesh_files.PACKAGES``, where ROS itself is not there to look it up.

    Raises:
        ValueError: a macro or an argument is missing or invalid.
    """
    if Path(path).suffix != SUFFIX:
        return None
    try:
        xacro = package("xacro", "xacro")
    except ModuleNotFoundError:
        return None
    given = getattr(path, "arguments", {})
    arguments = _Arguments(given)
    # xacro keeps what it expands in its module
    with _EXPANDS, _packages_above(Path(path).absolute().parent):
        try:
            document = xacro.process_file(os.fspath(path), mappings=arguments)
        # macros are programs, which fail by any exception
        except Exception as error:
            inner = getattr(xacro, "filestack", None) or [path]
            where = "" if os.fspath(inner[-1]) == os.fspath(path) else f" (in {inner[-1]})"
            raise ValueError(f"xacro: {' '.join(str(error).split()) or repr(error)}{where}") from error
    odd = [name for name in given if name not in arguments.used]
    if odd:
        known = ", ".join(sorted(arguments.used)) or "none"
        raise ValueError(f"arguments: expected names of the file's <xacro:arg> ({known}), got {odd[0]!r}")
    return document.toxml()


class _Arguments(dict):
    """Arguments that keep in mind which of them the file asks for."""

    def __init__(self, given: dict[str, str]) -> None:
        super().__init__(given)
        self.used: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.used.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.used.add(name)
        return super().__getitem__(name)


@contextmanager
def _packages_above(folder: Path) -> Iterator[None]:
    """A context in which "$(find name)" looks for folders where ROS is missing."""
    lookup = package("xacro.substitution_args", "xacro")
    try:
        package("ament_index_python", "xacro")
    except ModuleNotFoundError:
        before = lookup._eval_find
        lookup._eval_find = lookup._eval_dict["find"] = lambda name: _package(name, folder)
        try:
            yield
        finally:
            lookup._eval_find = lookup._eval_dict["find"] = before
    else:
        yield


def _package(name: str, folder: Path) -> str:
    """The folder of a package.

    Raises:
        ValueError: there is no such folder.
    """
    for above in (folder, *folder.parents):
        if above.name == name:
            return str(above)
    found = file_at(f"package://{name}", folder, Path.is_dir)
    if found is None:
        raise ValueError(
            f"$(find {name}): expected a folder {name!r} next to the file, above it or in {', '.join(PACKAGES)}"
        )
    return str(found)
