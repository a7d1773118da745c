"""Protection of existing files: a command replaces its own results only, other files need ``--force``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from lgsim.cli.errors import BadInput
from lgsim.cli.terminal import note
from lgsim.support.files import open_regular
from lgsim.support.messages import listed
from lgsim.support.packages import package

Force = Annotated[
    bool,
    typer.Option("--force", help="Replace existing files of any kind, also results of another robot or study."),
]
"""The ``--force`` option of all commands that write files."""

PLOT_MARK = "lgsim plot"
"""Program name in the metadata of plots."""
CODE_PAGE = "README.txt"
"""Readme of a folder of generated code; it lists the generated files."""
_PART = 2**16
"""Number of bytes read from each end of a file to identify its writer."""


class Output(NamedTuple):
    """A file that a command will write.

    Attributes:
        option: The option or argument that names the file, for messages.
        kind: A key of ``KINDS``.
        subject: The joint names of the robot, or the fingerprint of the study; "" where it is not compared.
    """

    option: str
    path: Path
    kind: str
    subject: str = ""


def check_replaced(outputs: Iterable[Output], force: bool) -> None:
    """Refuse to replace files that are not results of the same kind and subject, before anything is written.

    Empty files, devices and pipes are accepted.

    Args:
        force: True accepts all files.

    Raises:
        BadInput: a file was not written by lgsim, or holds a result of another kind, robot or study.
    """
    replaced = []
    for option, path, kind, subject in outputs:
        if force or not path.is_file() or not path.stat().st_size:
            continue
        found, (word, of) = _subject(path, kind), KINDS[kind][:2]
        if found is None:
            raise BadInput(
                f"{option}: {path} exists and contains no {word} written by lgsim; choose another name, or replace it"
                " with --force"
            )
        if subject and found and found != subject:
            # the fingerprints of studies mean nothing to a reader
            which = "" if of == "study" else f" ({_short(found)}, not {_short(subject)})"
            raise BadInput(
                f"{option}: {path} is the {word} of another {of}{which}; choose another name, or replace it with"
                " --force"
            )
        replaced.append(str(path))
    if replaced:
        note(f"replacing {listed(replaced)}")


def code_outputs(folder: Path, names: Iterable[str]) -> list[Output]:
    """The files that ``lgsim generate`` will write, without those listed in the folder's own readme."""
    page = folder / CODE_PAGE
    own: list[str] = []
    if page.is_file() and _subject(page, "code") is not None:
        own = [name for row in re.findall("^Files: (.*)$", _text(page), re.MULTILINE) for name in row.split(", ")]
    return [Output("--out", folder / name, "code") for name in names if name not in own]


def _short(subject: str) -> str:
    return listed(subject.split("\n"))


def _subject(path: Path, kind: str) -> str | None:
    """The subject of a file, "" if unknown; None if the file is not of this kind."""
    try:
        return KINDS[kind][2](path)
    except Exception:  # readers raise various errors for malformed files
        return None


def _run(path: Path) -> str | None:
    """The joint names of a run, "" for formats that store no model; None if the file is not a run."""
    if path.suffix == ".npz":
        return _joints(_npz_header(path), "lgsim trajectory ")
    if path.suffix == ".parquet":
        with open_regular(path) as file:
            schema = package("pyarrow.parquet", "data").read_schema(file)
        return _joints(schema.metadata[b"lgsim"].decode(), "lgsim trajectory ")
    if path.suffix == ".csv":
        head = _text(path).partition("\n")[0]
        return "" if head.startswith("time [s]") and "kinetic energy [J],potential energy [J]" in head else None
    return "" if b"\x89MCAP0\r\n" in _ends(path)[:8] and b"\x05\0\0\0lgsim" in _ends(path)[-(2**12) :] else None


def _is_checkpoint(path: Path) -> bool:
    return _npz_header(path).startswith("lgsim checkpoint ")


def _joints(header: str, form: str) -> str | None:
    """The joint names in the header of a file with a model; None for another format."""
    about = json.loads(header)
    return "\n".join(json.loads(about["topology"])["joint_names"]) if about["format"].startswith(form) else None


def _npz_header(path: Path) -> str:
    """The text of the array "about" of an archive."""
    from lgsim.support.reading.npz import open_npz  # imports numpy, which --help and --version do not need

    with open_npz(path, "a file that lgsim wrote") as arrays:
        return "\n".join(map(str, arrays["about"].ravel()))


def _page(path: Path) -> str | None:
    study = re.search(rb"; study ([0-9a-f]{16}), model ", _ends(path)[-_PART:])
    return _marked(path, b'<meta name="generator" content="lgsim report">', study[1].decode() if study else "")


def _marked(path: Path, mark: bytes, subject: str = "") -> str | None:
    return subject if mark in _ends(path) else None


def _ends(path: Path) -> bytes:
    """The first and last bytes of a file."""
    with open_regular(path) as file:
        first = file.read(_PART)
        file.seek(max(0, path.stat().st_size - _PART))
        return first + file.read(_PART)


def _text(path: Path) -> str:
    with open_regular(path) as file:  # the last character may be incomplete
        return file.read(_PART).decode("utf-8", "replace")


KINDS: dict[str, tuple[str, str, Callable[[Path], str | None]]] = {
    "run": ("run", "robot", _run),
    "fit": ("fit", "robot", lambda path: _joints(_npz_header(path), "lgsim fit ")),
    "estimate": ("estimate", "robot", lambda path: _joints(_npz_header(path), "lgsim estimate ")),
    "report": ("report", "study", _page),
    "scene": ("scene", "robot", lambda path: _marked(path, b'<meta name="generator" content="lgsim scene">')),
    "plot": ("plot", "robot", lambda path: _marked(path, PLOT_MARK.encode())),
    "code": (
        "code",
        "robot",
        lambda path: _marked(path, b", generated by lgsim ") if path.name == CODE_PAGE else None,
    ),
    "checkpoint": ("checkpoint", "problem", lambda path: "" if _is_checkpoint(path) else None),
    # lgsim edits URDF files without marking them, so their writer is unknown
    "urdf": ("URDF file", "robot", lambda path: None),
}
"""Noun of a kind, noun of its subject, and a function from a file to its subject, None for files of other kinds."""
