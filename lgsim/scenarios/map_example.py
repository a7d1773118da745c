"""A map for a given recording and robot: columns matched to joints by name and by number, as TOML with comments."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from lgsim.identify.recording.columns import SENSORS, TIME, UNITS, WORDS, Slot, parse_name, parse_unit, split_unit
from lgsim.identify.recording.map_entries import dimension_of
from lgsim.identify.recording.recording import CHANNELS
from lgsim.identify.recording.tables import read_table
from lgsim.multibody import Model

_COMMANDS = frozenset("target desired des command commanded cmd ref reference setpoint goal".split())
"""Words in names of columns that no sensor measured."""
_ELSEWHERE = frozenset("tcp tool flange ee eef cartesian pose wrench ext external ft temperature voltage".split())
"""Words in names of columns that belong to no joint, or to other forces than those of the drives."""
_SLOWEST, _FASTEST = 1.0, 1e-5
"""Bounds of the usual step of a recording, s, by which the unit of times is guessed."""


class _Match(NamedTuple):
    """The meaning of a column, and the reason if it is a guess."""

    slot: Slot
    unit: str | None
    guess: str = ""


def example_map(path: Path, model: Model) -> str:
    """A map of a recording in TOML, which the command accepts as it is.

    Columns with clear names are matched as ``read_recording`` does. Others are matched by the similarity of their names
    or by their numbers, where as many columns as joints are numbered; each guess is marked. Columns of commands are
    ignored, and other columns are listed as comments, as are positions without a column.

    Args:
        path: A table.

    Raises:
        ValueError: the file cannot be read.
        ModuleNotFoundError: the package that reads parquet files is not installed.
    """
    table = read_table(path)
    matches = {name: _match(name, list(table.columns), model) for name in table.columns}
    lines, taken = [f"# A map for: lgsim identify ROBOT {path.name} --map map.toml"], dict[Slot, str]()
    # columns that are clear come before those that are guessed
    for name, match in sorted(matches.items(), key=lambda pair: bool(pair[1] and pair[1].guess)):
        if match is not None:
            taken.setdefault(match.slot, name)
    for name, match in matches.items():
        if match is not None and taken[match.slot] == name:
            lines.append(f"{_quoted(name)} = {_entry(match, table.columns[name], model)}")
        elif match is not None:
            lines.append(f'{_quoted(name)} = "ignore"   # {taken[match.slot]!r} is {match.slot} already')
        elif _COMMANDS & set(_words(name)):
            lines.append(f'{_quoted(name)} = "ignore"   # a command, which no sensor measured')
        else:
            lines.append(f'# {_quoted(name)} = {{ joint = "...", quantity = "..." }}   # no joint and quantity found')
    lines += [f'{_quoted(name)} = "ignore"   # no numbers' for name in table.texts]
    for name, array in table.arrays.items():
        known = "in the model's order" if name in CHANNELS else f"not read: rename it to one of {', '.join(CHANNELS)}"
        lines.append(f"# {_quoted(name)}: array of {array.shape[1]} columns, {known}")
    left_out = [finding for finding in table.findings if finding.kind == "unused column"]
    lines += [f"# {_quoted(finding.where)}: {finding.seen}" for finding in left_out]
    lines += ["", "[options]"]
    if TIME not in taken:
        lines.append("# rate = 1000.0   # there is no column of times: samples per second")
    slots = [Slot("q", name, i) for name, part in model.q_slices.items() for i in range(part.stop - part.start)]
    absent = [str(slot) for slot in slots if slot not in taken and "q" not in table.arrays]
    if absent:
        lines.append(f"# no column found for {', '.join(absent)}: name one above, lock the joint, or give a constant")
        lines.append(f"# constants = {{ {', '.join(f'{_quoted(name)} = 0.0' for name in absent)} }}")
    return "\n".join([*lines, "", "# further tables: lgsim identify --example", ""])


def _entry(match: _Match, cells: Float[np.ndarray, " n"], model: Model) -> str:
    """The table of a column, with a comment if it is a guess."""
    slot, written, guess = match
    known = parse_unit(written or "")
    unit = written if known is not None and known.dimension == dimension_of(slot, model) else None
    parts = [] if slot == TIME else [f"{'frame' if slot.channel in SENSORS else 'joint'} = {_quoted(slot.owner)}"]
    parts.append(f"quantity = {_quoted(slot.channel)}")
    parts += [f"index = {slot.index}"] if slot.index else []
    if slot == TIME and unit is None:
        steps = np.diff(cells[np.isfinite(cells)])
        usual = float(np.median(steps)) if len(steps) else 0.0
        scaled = {name: UNITS[name].factor * usual for name in ("s", "ms", "us", "ns")}
        unit = next((name for name, step in scaled.items() if _FASTEST <= step < _SLOWEST), None)
        if unit not in (None, "s"):
            guess += f"{', ' * bool(guess)}unit by its usual step of {usual:g}"
        unit = None if unit == "s" else unit
    parts += [f"unit = {_quoted(unit)}"] if unit else []
    return f"{{ {', '.join(parts)} }}" + (f"   # guessed {guess}: check" if guess else "")


def _match(name: str, columns: Sequence[str], model: Model) -> _Match | None:
    """The meaning of a column: as ``read_recording`` understands its name, or by its number, or by its likeness."""
    plain, unit = split_unit(name)
    found, words = parse_name(plain, model), _words(plain)
    if len(found) == 1:
        return _Match(found[0], unit)
    channels = [channel for channel, known in WORDS.items() if known & set(words) and channel not in SENSORS]
    last = name.rpartition("_")[2]
    unit = unit or (last if last in UNITS and not last.isdigit() else None)
    if len(channels) != 1 or (_COMMANDS | _ELSEWHERE) & set(words):
        return None
    if channels == ["time"]:
        return _Match(TIME, unit, "by its name")
    joints = [joint for joint, part in model.v_slices.items() if part.stop - part.start == 1]
    joint = _by_number(plain, [split_unit(other)[0] for other in columns], joints)
    guess = "by its number" if joint else "by its name"
    joint = joint or _by_likeness(words, joints)
    return None if joint is None else _Match(Slot(channels[0], joint, 0), unit, guess)


def _by_number(name: str, columns: Sequence[str], joints: Sequence[str]) -> str | None:
    """The joint of a numbered column, if as many columns as joints differ only in their last number."""
    pattern, number = _numbered(name)
    group = sorted(n for p, n in map(_numbered, columns) if p == pattern and n is not None)
    kinds: dict[str, list[str]] = {}
    for joint in joints:
        kinds.setdefault(_numbered(joint)[0], []).append(joint)
    # all joints in order, or those that differ only in their number
    rows = [joints, *(sorted(own, key=lambda joint: _numbered(joint)[1] or 0) for own in kinds.values())]
    row = next((row for row in rows if len(row) == len(group) and (len(row) > 1 or row == joints)), None)
    if number is None or row is None or group != list(range(group[0], group[0] + len(group))):
        return None
    return row[group.index(number)]


def _by_likeness(words: Sequence[str], joints: Sequence[str]) -> str | None:
    """The joint whose name is contained in that of a column, apart from case, separators and "joint"."""
    cores = {joint: "".join(word for word in _words(joint) if word != "joint") for joint in joints}
    text = "".join(words).replace("joint", "")
    found = [joint for joint, core in cores.items() if core.strip("0123456789") and core in text]
    longest = [joint for joint in found if len(cores[joint]) == max(len(cores[other]) for other in found)]
    return longest[0] if len(longest) == 1 else None


def _words(name: str) -> list[str]:
    """The words and numbers of a name in lower case: "jointPos_1" gives joint, pos, 1."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", name)]


def _numbered(name: str) -> tuple[str, int | None]:
    """A name with its last number replaced, and the number."""
    found = re.fullmatch(r"(.*?)(\d{1,9})(\D*)", name)
    return (f"{found[1]}#{found[3]}", int(found[2])) if found else (name, None)


def _quoted(text: str) -> str:
    """A string as TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
