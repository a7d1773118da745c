"""MJCF files compiled by MuJoCo: values, names and lines of the elements."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from lgsim.formats.mjcformat.limits import check_expansions
from lgsim.formats.report import Dropped, Finding
from lgsim.formats.xml import FileError, file_content, recovered_root
from lgsim.support.packages import package
from lgsim.support.unused_names import unused_name

KINDS = {
    "body": ("bodies", "nbody"),
    "joint": ("joints", "njnt"),
    "geom": ("geoms", "ngeom"),
    "site": ("sites", "nsite"),
    "pair": ("pairs", "npair"),
    "equality": ("equalities", "neq"),
    "tendon": ("tendons", "ntendon"),
    "actuator": ("actuators", "nactuator"),
    "flex": ("flexes", "nflex"),
    "plugin": ("plugins", "nplugin"),
}
"""Kinds of elements: list in MuJoCo's description of the file, and count in the compiled model."""

UNKNOWN_LINE = 0
"""Line of elements for which MuJoCo gives none, such as those of included files."""


@dataclass(frozen=True)
class CompiledFile:
    """A compiled file.

    Attributes:
        mujoco: The package ``mujoco``.
        model: The compiled model, an ``MjModel``.
        warnings: The warnings of MuJoCo's compiler.
        names: Names of the elements by their kind, see ``KINDS``.
        lines: Lines of the elements by their kind.
    """

    file: str
    mujoco: ModuleType
    model: Any
    warnings: tuple[str, ...]
    names: dict[str, list[str]] = field(default_factory=dict)
    lines: dict[str, list[int]] = field(default_factory=dict)

    def enabled(self, *flags: str) -> bool:
        """True if the file disables none of these flags; flags unknown to this version of MuJoCo count as enabled."""
        bits = [getattr(self.mujoco.mjtDisableBit, f"mjDSBL_{flag}", 0) for flag in flags]
        return not any(self.model.opt.disableflags & int(bit) for bit in bits)

    def subject(self, kind: str, index: int) -> str:
        """Description of an element for messages."""
        return f"{kind} {self.names[kind][index]!r}"

    def finding(self, kind: str, index: int, text: str) -> Finding:
        """A finding about an element."""
        return Finding(self.lines[kind][index], self.subject(kind, index), text)

    def dropped(self, kind: str, index: int, text: str) -> Dropped:
        """A finding about an element that affects the motion and is not represented."""
        return Dropped(self.lines[kind][index], self.subject(kind, index), text)

    def error(self, kind: str, index: int, message: str) -> FileError:
        """An error about an element."""
        return FileError(self.file, self.lines[kind][index] or None, f"{self.subject(kind, index)}: {message}")


def compile_file(path: str | os.PathLike[str] | None, text: str | None) -> CompiledFile:
    """Compile a file, given by a path or as text.

    Raises:
        FileError: the file cannot be read, is not MJCF, exceeds the limits of ``check_expansions``, or is rejected by
            MuJoCo's compiler.
        ImportError: the package ``mujoco`` is missing.
        TypeError: both or neither are given.
    """
    if (path is None) == (text is None):
        raise TypeError("expected either a path or text, the MJCF itself")
    mujoco = package("mujoco", "mjcf", "an MJCF file")
    file, content = file_content(path, text)
    _check_root(file, content)
    check_expansions(file, content, text is None)
    with _collected_warnings(mujoco) as warnings:
        try:
            model = mujoco.MjModel.from_xml_path(file) if text is None else mujoco.MjModel.from_xml_string(text)
        except (ValueError, RuntimeError) as error:
            raise _refusal(file, str(error)) from error
        found = CompiledFile(file, mujoco, model, tuple(dict.fromkeys(warnings)))
        spec = _spec(mujoco, file, text)
    try:
        for kind, (elements, number) in KINDS.items():
            # before version 4 each actuator had one command
            count = getattr(model, number, model.nu if kind == "actuator" else 0)
            names = [_name(mujoco, model, kind, i) for i in range(count)]
            found.names[kind] = _distinct(kind, names)
            found.lines[kind] = _lines(list(getattr(spec, elements, ())), names)
    except UnicodeDecodeError as error:
        raise FileError(file, None, "expected names in UTF-8") from error
    starts = model.body_jntadr
    for body, start in enumerate(starts):
        # MuJoCo reports no line for <freejoint>
        if start >= 0 and found.lines["joint"][start] == UNKNOWN_LINE:
            found.lines["joint"][start] = found.lines["body"][body]
    return found


def _check_root(file: str, content: bytes) -> None:
    """Check that the root element is that of MJCF; MuJoCo would also read URDF, by other rules.

    Raises:
        FileError: another root element.
    """
    root = recovered_root(content)
    if root is not None and root.tag != "mujoco":
        hint = "; lgsim.formats.load_urdf reads URDF" if root.tag == "robot" else ""
        raise FileError(
            file, root.sourceline, f"<{root.tag}>: expected <mujoco>, the root of an MJCF file, got <{root.tag}>{hint}"
        )


@contextmanager
def _collected_warnings(mujoco: ModuleType) -> Iterator[list[str]]:
    """A context that collects MuJoCo's warnings, which would otherwise be printed and written to a file."""
    collected: list[str] = []
    before = getattr(mujoco, "get_mju_user_warning", lambda: None)()
    mujoco.set_mju_user_warning(lambda message: collected.append(" ".join(str(message).split())))
    try:
        yield collected
    finally:
        mujoco.set_mju_user_warning(before)


def _refusal(file: str, message: str) -> FileError:
    """Convert MuJoCo's message to an error in one line, with the line number that it contains."""
    place = re.search(r",? ?line (?:number=)?(\d+)", message, re.IGNORECASE)
    line = int(place[1]) if place else UNKNOWN_LINE
    if place:
        message = message[: place.start()] + message[place.end() :]
    parts = [re.sub(r"^(XML )?(Error: )+", "", part.strip()) for part in message.splitlines()]
    return FileError(file, line or None, f"MuJoCo: {'; '.join(filter(None, parts))}")


def _spec(mujoco: ModuleType, file: str, text: str | None) -> Any:
    """MuJoCo's uncompiled description of the file, which has line numbers; None if this version lacks it."""
    reader = getattr(getattr(mujoco, "MjSpec", None), "from_file" if text is None else "from_string", None)
    try:
        return None if reader is None else reader(file if text is None else text)
    except (ValueError, RuntimeError, TypeError):
        return None


def _name(mujoco: ModuleType, model: Any, kind: str, index: int) -> str:
    """Name of an element; "" if it has none."""
    return mujoco.mj_id2name(model, getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), index) or ""


def _distinct(kind: str, names: list[str]) -> list[str]:
    """Unique names: kind and number for unnamed elements, with "_" appended to names that are taken."""
    taken, out = set(names), []
    for index, name in enumerate(names):
        if not name:
            name = unused_name(f"{kind}{index}", taken)
        out.append(name)
    return out


def _lines(elements: list[Any], names: list[str]) -> list[int]:
    """Lines of the elements; unknown if the elements do not correspond to those of the compiled model."""
    if [element.name for element in elements] != names:
        return [UNKNOWN_LINE] * len(names)
    found = [re.search(r"line (\d+)", element.info) for element in elements]
    return [UNKNOWN_LINE if line is None else int(line[1]) for line in found]
