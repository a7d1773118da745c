"""Names of measured columns: their units as factors to SI, and their slots in a recording."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from lgsim.identify.recording.coordinates import has_quaternion
from lgsim.multibody.joint import Joint
from lgsim.multibody.model import Model


class Unit(NamedTuple):
    """A unit of measurement.

    Attributes:
        factor: Number of SI units in one of this unit.
        dimension: The dimension of the quantity, such as "angle" or "length/time^2".
    """

    factor: float
    dimension: str


_BASE_UNITS = {
    "angle": {"rad": 1.0, "mrad": 1e-3, "deg": math.pi / 180, "rev": 2 * math.pi},
    "length": {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "in": 0.0254},
}
_RATES = {"": ("", 1.0), "/s": ("/time", 1.0), "/min": ("/time", 1 / 60), "/s^2": ("/time^2", 1.0)}

UNITS = {
    f"{name}{per}": Unit(factor * scale, dimension + suffix)
    for dimension, names in _BASE_UNITS.items()
    for name, factor in names.items()
    for per, (suffix, scale) in _RATES.items()
} | {
    "rpm": Unit(2 * math.pi / 60, "angle/time"),
    "g": Unit(9.80665, "length/time^2"),
    "s": Unit(1.0, "time"), "ms": Unit(1e-3, "time"), "us": Unit(1e-6, "time"), "ns": Unit(1e-9, "time"),
    "min": Unit(60.0, "time"),
    "Nm": Unit(1.0, "torque"), "mNm": Unit(1e-3, "torque"), "kNm": Unit(1e3, "torque"), "Ncm": Unit(1e-2, "torque"),
    "N": Unit(1.0, "force"), "mN": Unit(1e-3, "force"), "kN": Unit(1e3, "force"),
    "A": Unit(1.0, "current"), "mA": Unit(1e-3, "current"),
    "-": Unit(1.0, "number"), "1": Unit(1.0, "number"),
}  # fmt: skip
"""All units by name, in the normalized spelling of ``parse_unit``."""

_SPELLINGS = {
    " ": "", "·": "", "*": "", ".": "", "°": "deg", "µ": "u", "μ": "u", "²": "^2", "/sec": "/s", "/s/s": "/s^2",
    "**2": "^2", "degrees": "deg", "radians": "rad",
}  # fmt: skip


def parse_unit(name: str) -> Unit | None:
    """The unit of a text such as "deg/s", "N m" or "rad/s²"; None for an unknown one."""
    plain = name.strip()
    for spelling, own in sorted(_SPELLINGS.items(), key=lambda pair: -len(pair[0])):
        plain = plain.replace(spelling, own)
    plain = f"{plain}^2".replace("s2^2", "s^2") if plain.endswith("/s2") else plain
    return UNITS.get(plain)


def units_of(dimension: str) -> str:
    """Names of the units of a dimension, separated by commas."""
    return ", ".join(name for name, one in UNITS.items() if one.dimension == dimension)


class Slot(NamedTuple):
    """The destination of a column in a recording.

    Attributes:
        channel: A name of ``recording.CHANNELS``, of ``SENSORS``, or "time".
        owner: The joint or frame of the values; "" for the time.
        index: Index of the value among those of its owner, from 0.
    """

    channel: str
    owner: str
    index: int

    def __str__(self) -> str:
        return " ".join(filter(None, [self.channel, self.owner])) + (f"[{self.index}]" if self.index else "")


TIME = Slot("time", "", 0)
SENSORS = {"accelerometer": 0, "gyroscope": 3}
"""The channels of an IMU, with the index of the first component of each among the IMU's six."""

_CHANNELS = {
    "q": "q pos position positions angle angles coordinate",
    "v": "v vel velocity velocities speed dq qd qdot twist",
    "a": "a acc acceleration accelerations ddq qdd qddot",
    "tau": "tau torque torques effort efforts force trq wrench",
    "current": "current currents cur amps",
    "accelerometer": "accelerometer accel acc acceleration",
    "gyroscope": "gyroscope gyro",
    "time": "time t timestamp stamp",
}
WORDS = {channel: frozenset(words.split()) for channel, words in _CHANNELS.items()}
"""The words of each channel in names of columns."""
_IGNORED = frozenset("joint joints state states measured actual meas msr encoder sensor sensors robot imu data".split())
_KINDS = {
    "quaternion": "q", "quat": "q", "orientation": "q", "rotation": "q", "linear": "v", "lin": "v", "angular": "w",
    "ang": "w",
}  # fmt: skip
_LETTERED = frozenset(["x", "y", "z", "w"] + [kind + axis for kind in "pqvwfn" for axis in "xyz"] + ["qw"])
_BASES = ("base", "floating_base", "root")


def _number_labels(joint: Joint, channel: str) -> list[tuple[str, ...]]:
    """The labels, such as "x" or "qw", of each component of a joint in a channel.

    An empty tuple marks a single component, or one that only its index distinguishes from others.
    """
    if joint.nv == 1:
        return [()]
    rows = [("xyz"[row.axis], row.turns) for row in joint.rows]
    same = len({turns for _, turns in rows}) == 1
    if channel == "q" and has_quaternion(joint):
        slides = [(axis, f"p{axis}") for axis, turns in rows if not turns]
        return slides + [(f"q{axis}", axis) if same else (f"q{axis}",) for axis in "wxyz"]
    if len(set(rows)) < len(rows):  # two screw joints about the same axis: only the index distinguishes them
        return [()] * joint.nv
    slide, turn = {"q": ("p", "q"), "tau": ("f", "n")}.get(channel, ("v", "w"))
    bare = same or channel == "q"
    return [(f"{turn if t else slide}{axis}", axis) if bare else (f"{turn if t else slide}{axis}",) for axis, t in rows]


def split_unit(name: str) -> tuple[str, str | None]:
    """The name without its unit in brackets, and the text of the unit or None: "q j1 [deg]" gives ("q j1", "deg")."""
    found = re.fullmatch(r"(.*?)\s*[\[(]([^\[\]()]+)[\])]\s*", name)
    if found and parse_unit(found[2]) is not None and not found[2].strip().isdigit():
        return found[1], found[2]
    return name, None


def parse_name(name: str, model: Model, quaternion_order: str = "wxyz") -> list[Slot]:
    """The slots that a column's name may mean: none if it cannot be parsed, one if it is unambiguous.

    Args:
        name: The name without its unit.
        model: The model whose joints and frames own the columns.
        quaternion_order: "wxyz" or "xyzw", the order of quaternion components that have an index and no letter.
    """
    if name.strip().lower() in WORDS["time"]:
        return [TIME]
    found = []
    for owner, alias, is_frame in _owners(model):
        rest = re.sub(rf"(?<![A-Za-z0-9]){re.escape(alias)}(?![A-Za-z0-9])", " ", name, count=1)
        if rest != name:
            found += [(len(alias), slot) for slot in _owner_slots(rest, owner, is_frame, model, quaternion_order)]
    # the longest match wins: "arm_left" before "arm"
    longest = max((length for length, _ in found), default=0)
    return sorted({slot for length, slot in found if length == longest})


def _owners(model: Model) -> Iterator[tuple[str, str, bool]]:
    """(owner, name used in columns, True for a frame) of all joints and frames."""
    tree = model.topology
    for name, joint, mimic in zip(tree.joint_names, tree.joints, tree.mimics, strict=True):
        if mimic is None and joint.nv:
            yield name, name, False
            if joint.nv == 6 and joint.nq == 7:
                yield from ((name, alias, False) for alias in _BASES if alias not in tree.joint_names)
    for name in model.frame_names:
        yield name, name, True


def _owner_slots(rest: str, owner: str, is_frame: bool, model: Model, quaternion_order: str) -> list[Slot]:
    """The slots of one owner that the rest of a column's name may mean."""
    words = [word.lower() for word in re.split(r"[^A-Za-z0-9]+", rest.replace("q_dot", "qdot")) if word]
    words = [word for word in words if word not in _IGNORED]
    channels = [c for c, names in WORDS.items() if (c in SENSORS) == is_frame and c != "time" and names & set(words)]
    if is_frame and "gyroscope" not in channels and "angular" in words:
        channels = ["gyroscope"]
    kind = next((_KINDS[word] for word in words if word in _KINDS), None)
    left = [word for word in words if word not in _KINDS and not any(word in WORDS[c] for c in channels)]
    if not channels and left and left[0] in _LETTERED:  # "base_vx", "base_qw"
        channels = [{"p": "q", "q": "q", "v": "v", "w": "v", "f": "tau", "n": "tau"}.get(left[0][0], "")]
        channels = ["q"] if left[0] in ("x", "y", "z") else channels * (len(left[0]) == 2)
    if not channels and kind is not None:
        channels = ["q"] if kind == "q" else ["v"]
    if len(channels) != 1 or len(left) > 1:
        return []
    channel = channels[0]
    if is_frame:
        return [Slot(channel, owner, "xyz".index(left[0][-1]) if not left[0].isdigit() else int(left[0]))] * (
            bool(left) and (left[0] in ("x", "y", "z", "0", "1", "2"))
        )
    joint = model.topology.joints[model.topology.joint_names.index(owner)]
    return [Slot(channel, owner, i) for i in _number_indices(joint, channel, left, kind, quaternion_order)]


def _number_indices(joint: Joint, channel: str, left: list[str], kind: str | None, quaternion_order: str) -> list[int]:
    """The components of a joint that the remaining word of a name may mean."""
    named = _number_labels(joint, channel)
    if not left:
        return [0] if len(named) == 1 else []
    word = left[0]
    if kind is not None and channel == "tau":
        kind = {"v": "f", "w": "n"}.get(kind, kind)
    if word.isdigit() and len(named) > 1:
        among = [i for i, own in enumerate(named) if kind is None or any(len(x) == 2 and x[0] == kind for x in own)]
        return [file_to_own_index(joint, channel, among[int(word)], quaternion_order)] if int(word) < len(among) else []
    if kind is not None and len(word) == 1:
        word = kind + word
    return [i for i, own in enumerate(named) if word in own]


def file_to_own_index(joint: Joint, channel: str, index: int, quaternion_order: str) -> int:
    """The index in lgsim's order of a joint component with a given index in a file."""
    first = joint.nq - 4
    if channel != "q" or not has_quaternion(joint) or index < first:
        return index
    return first + "wxyz".index(quaternion_order[index - first])
