"""Files that a command may replace: its own results of the same machine or study; others ask for ``--force``."""

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
    typer.Option("--force", help="Replace files that are no result of this kind, or one of another machine or study."),
]
"""The option of all commands that write files."""

PLOT_MARK = "lgsim plot"
"""The program that plots name as their maker."""
CODE_PAGE = "README.txt"
"""The page in a folder of generated code, which names its files."""
_PART = 2**16
"""Bytes at the beginning and at the end of a file that tell who wrote it."""


class Output(NamedTuple):
    """A file that a command is going to write.

    Attributes:
        option: The word that names it, for messages.
        kind: What it will hold, a key of ``KINDS``.
        subject: The names of the machine's joints, or the study's fingerprint; empty where it does not matter.
    """

    option: str
    path: Path
    kind: str
    subject: str = ""


def check_replaced(outputs: Iterable[Output], force: bool) -> None:
    """End the command before it has written anything where it would replace what is no result of its own.

    A file without content, a device and a pipe have nothing to lose.

    Args:
        force: Whether the user allows it.

    Raises:
        BadInput: a file is there that lgsim did not write, or one of another kind, machine or study.
    """
    replaced = []
    for option, path, kind, subject in outputs:
        if force or not path.is_file() or not path.stat().st_size:
            continue
        found, (word, of) = _subject(path, kind), KINDS[kind][:2]
        if found is None:
            raise BadInput(
                f"{option}: {path} is there and is no {word} that lgsim wrote; take another name, or --force replaces"
                " it"
            )
        if subject and found and found != subject:
            raise BadInput(
                f"{option}: {path} is the {word} of another {of} ({_short(found)}, not {_short(subject)}); take another"
                " name, or --force replaces it"
            )
        replaced.append(str(path))
    if replaced:
        note(f"will be replaced: {listed(replaced)}")


def code_outputs(folder: Path, names: Iterable[str]) -> list[Output]:
    """The files of ``lgsim generate`` but those that the folder's page names, where lgsim wrote it."""
    page = folder / CODE_PAGE
    own: list[str] = []
    if page.is_file() and _subject(page, "code") is not None:
        own = [name for row in re.findall("^Files: (.*)$", _text(page), re.MULTILINE) for name in row.split(", ")]
    return [Output("--out", folder / name, "code") for name in names if name not in own]


def _short(subject: str) -> str:
    return listed(subject.split("\n"))


def _subject(path: Path, kind: str) -> str | None:
    """What a file is about, empty where it does not say so; None where it is not of the kind."""
    try:
        return KINDS[kind][2](path)
    except Exception:  # whatever readers raise of files that are not what they expect
        return None


def _run(path: Path) -> str | None:
    """The joints of a run; those of formats that hold no machine are unknown."""
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
    """The names of the joints in the header of a file with a machine; None for a header of another format."""
    about = json.loads(header)
    return "\n".join(json.loads(about["topology"])["joint_names"]) if about["format"].startswith(form) else None


def _npz_header(path: Path) -> str:
    """The text of an archive's array "about"."""
    from lgsim.support.reading.npz import open_npz  # brings numpy, which help and --version do without

    with open_npz(path, "a file that lgsim wrote") as arrays:
        return "\n".join(map(str, arrays["about"].ravel()))


def _page(path: Path) -> str | None:
    study = re.search(rb"; study ([0-9a-f]{16}), model ", _ends(path)[-_PART:])
    return _marked(path, b'<meta name="generator" content="lgsim report">', study[1].decode() if study else "")


def _marked(path: Path, mark: bytes, subject: str = "") -> str | None:
    return subject if mark in _ends(path) else None


def _ends(path: Path) -> bytes:
    """The first and the last bytes of a file."""
    with open_regular(path) as file:
        first = file.read(_PART)
        file.seek(max(0, path.stat().st_size - _PART))
        return first + file.read(_PART)


def _text(path: Path) -> str:
    with open_regular(path) as file:  # whose last letter may be cut
        return file.read(_PART).decode("utf-8", "replace")


KINDS: dict[str, tuple[str, str, Callable[[Path], str | None]]] = {
    "run": ("run", "machine", _run),
    "fit": ("fit", "machine", lambda path: _joints(_npz_header(path), "lgsim fit ")),
    "report": ("report", "study", _page),
    "scene": ("scene", "machine", lambda path: _marked(path, b'<meta name="generator" content="lgsim scene">')),
    "plot": ("plot", "machine", lambda path: _marked(path, PLOT_MARK.encode())),
    "code": (
        "code",
        "machine",
        lambda path: _marked(path, b", generated by lgsim ") if path.name == CODE_PAGE else None,
    ),
    "checkpoint": ("checkpoint", "problem", lambda path: "" if _is_checkpoint(path) else None),
    # a file that lgsim edits stays as it was written: none tells whose it is
    "urdf": ("machine's file", "machine", lambda path: None),
}
"""The word for a kind, that for its subject, and the function that finds the subject of a file, None for another's."""
