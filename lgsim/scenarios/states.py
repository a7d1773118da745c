"""Configurations and velocities as text: numbers separated by commas, or values by joint name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Bool, Float

from lgsim.formats.mjcformat.keyframes import load_keyframes
from lgsim.multibody import Model
from lgsim.multibody.number_checks import ROUNDED
from lgsim.support.messages import LISTED_NAMES, unknown_name
from lgsim.support.toml_table import Table


def configuration(text: str | None, model: Model, seed: int) -> Float[np.ndarray, " nq"]:
    """The configuration of "0.1,0.2", "elbow=0.2" or "random"; None for the neutral one. Quaternions are normalized.

    Raises:
        ValueError: invalid text.
    """
    if text is not None and text.strip() == "random":
        return np.asarray(model.random(jax.random.key(seed)))
    return unit_quaternions(model, _entries(text, model.q_slices, np.array(model.neutral())))


def unit_quaternions(model: Model, q: Float[np.ndarray, " nq"]) -> Float[np.ndarray, " nq"]:
    """Normalize quaternions that were rounded to a few digits.

    Raises:
        ValueError: the norm of a quaternion differs from one by more than rounding.
    """
    q = q.copy()
    for name, joint in zip(model.joint_names, model.topology.joints, strict=True):
        part = model.q_slices[name]
        if joint.nq == joint.nv or part.start == part.stop:
            continue
        quaternion = slice(part.stop - 4, part.stop)
        norm = float(np.linalg.norm(q[quaternion]))
        if abs(norm - 1) > ROUNDED:
            raise ValueError(
                f"expected a unit quaternion (w, x, y, z) in the last four values of the joint {name!r}, got"
                f" norm {norm:g}"
            )
        q[quaternion] /= norm
    return q


def read_configuration(
    table: Table, key: str, model: Model, start: Float[np.ndarray, " nq"]
) -> tuple[Float[np.ndarray, " nq"], Bool[np.ndarray, " nq"]]:
    """The configuration of a key, by joint or for all joints, and a mask of the given values.

    Args:
        start: Values of joints that are not named.

    Raises:
        ScenarioError: with file, line and key.
    """
    q, given = table.by_joint(key, model.q_slices, start)
    with table.at(key):
        return unit_quaternions(model, q), given


def read_start(table: Table, model: Model, file: Path) -> tuple[Float[np.ndarray, " nq"], Float[np.ndarray, " nv"]]:
    """The initial configuration and velocity of the table `[start]`, by default neutral and zero.

    The key ``keyframe`` names a keyframe of the robot's MJCF file; ``q`` and ``v`` by joint take the place of its
    values.

    Raises:
        ScenarioError: with file, line and key.
    """
    q, v = np.array(model.neutral()), np.zeros(model.nv)
    name = table.text("keyframe")
    if name is not None:
        with table.at("keyframe"):
            q, v = keyframe(name, model, file)
    return read_configuration(table, "q", model, q)[0], table.by_joint("v", model.v_slices, v)[0]


def keyframe(name: str, model: Model, file: Path) -> tuple[Float[np.ndarray, " nq"], Float[np.ndarray, " nv"]]:
    """Configuration and velocity of a keyframe of the robot's MJCF file.

    Raises:
        ValueError: there is no such keyframe.
        FileError: the file is no MJCF file.
    """
    found = load_keyframes(model, file)
    if name not in found:
        raise ValueError(unknown_name("expected the name of a keyframe", name, list(found)))
    return np.array(found[name].q), np.array(found[name].v)


def velocities(text: str | None, model: Model) -> Float[np.ndarray, " nv"]:
    """The velocities or joint forces of "0.1,0.2" or "elbow=0.2"; None for zero.

    Raises:
        ValueError: invalid text.
    """
    return _entries(text, model.v_slices, np.zeros(model.nv, model.dtype))


def numbers(text: str, separator: str = ",") -> list[float]:
    """Parse finite numbers between separators.

    Raises:
        ValueError: a part is not a finite number.
    """
    found = []
    for part in text.split(separator):
        try:
            value = float(part)
        except ValueError:
            raise ValueError(f"expected numbers, got {part.strip()!r} in {text!r}") from None
        if not math.isfinite(value):
            raise ValueError(f"expected finite numbers, got {part.strip()!r} in {text!r}")
        found.append(value)
    return found


def _entries(text: str | None, slices: Mapping[str, slice], start: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Values of all joints, in the order of ``slices`` or by name; ``start`` where none are given."""
    if text is None:
        return start
    if "=" in text:
        return _named(text, slices, start)
    found = numbers(text)
    if len(found) != len(start):
        own = [f"{name} {part.stop - part.start}" for name, part in slices.items() if part.stop > part.start]
        more = ", ..." if len(own) > LISTED_NAMES else ""
        raise ValueError(
            f"expected {len(start)} numbers ({', '.join(own[:LISTED_NAMES])}{more}), got {len(found)};"
            " or name the joints: joint=value"
        )
    return np.array(found, start.dtype)


def _named(text: str, slices: Mapping[str, slice], start: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Values of "elbow=0.2,ball=1:0:0"; those of other joints are kept."""
    out, seen = start.copy(), set()
    for entry in text.split(","):
        name, mark, values = (part.strip() for part in entry.rpartition("="))
        if not mark:
            raise ValueError(f"expected joint=value, got {entry.strip()!r}; numbers and names cannot be mixed")
        if name not in slices:
            raise ValueError(unknown_name("expected the name of a joint", name, list(slices)))
        if name in seen:
            raise ValueError(f"expected each joint once, got {name!r} twice")
        seen.add(name)
        part = slices[name]
        count = part.stop - part.start
        if not count:
            raise ValueError(f"the joint {name!r} mimics another joint and has no value of its own")
        try:
            found = numbers(values, ":")
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        if len(found) != count:
            shape = f"{count} numbers, {name}={':'.join('abcdefg'[:count])}" if count > 1 else "one number"
            raise ValueError(f"the joint {name!r} takes {shape}, got {len(found)}")
        out[part] = found
    return out
