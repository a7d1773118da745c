"""Numbers as a user writes them: between commas, or by names of joints."""

from __future__ import annotations

import math
from collections.abc import Mapping

import jax
import numpy as np

from lgsim.cli.errors import SHOWN, BadInput, unknown
from lgsim.multibody import Model

ROUNDED = 0.01
"""How far the norm of a quaternion that a user wrote may be from one."""


def configuration(option: str, text: str | None, model: Model, seed: int) -> np.ndarray:
    """The q (nq,) of "0.1,0.2", "elbow=0.2", "random" or None, which is the neutral one; quaternions get the norm one.

    Raises:
        BadInput: it is none of these.
    """
    if text is not None and text.strip() == "random":
        return np.asarray(model.random(jax.random.key(seed)))
    q = _entries(option, text, model.q_slices, np.array(model.neutral()))
    try:
        return unit_quaternions(model, q)
    except BadInput as error:
        raise BadInput(f"{option}: {error}") from None


def unit_quaternions(model: Model, q: np.ndarray) -> np.ndarray:
    """The q (nq,) whose quaternions have the norm one, from one where rounding of it is all that they lack.

    Raises:
        BadInput: they lack more.
    """
    q = q.copy()
    for name, joint in zip(model.joint_names, model.topology.joints, strict=True):
        part = model.q_slices[name]
        if joint.nq == joint.nv or part.start == part.stop:
            continue
        quaternion = slice(part.stop - 4, part.stop)
        norm = float(np.linalg.norm(q[quaternion]))
        if abs(norm - 1) > ROUNDED:
            raise BadInput(
                f"expected a unit quaternion (w, x, y, z) in the last four numbers of the joint {name!r}, got one of"
                f" norm {norm:g}"
            )
        q[quaternion] /= norm
    return q


def velocities(option: str, text: str | None, model: Model) -> np.ndarray:
    """The v or joint forces (nv,) of "0.1,0.2", "elbow=0.2" or None, which is zero.

    Raises:
        BadInput: it is none of these.
    """
    return _entries(option, text, model.v_slices, np.zeros(model.nv, model.dtype))


def numbers(option: str, text: str, separator: str = ",") -> list[float]:
    """Finite numbers between separators.

    Raises:
        BadInput: they are none.
    """
    found = []
    for part in text.split(separator):
        try:
            value = float(part)
        except ValueError:
            raise BadInput(f"{option}: expected numbers, got {part.strip()!r} in {text!r}") from None
        if not math.isfinite(value):
            raise BadInput(f"{option}: expected finite numbers, got {part.strip()!r} in {text!r}")
        found.append(value)
    return found


def vector(option: str, text: str | None) -> list[float] | None:
    """Three numbers, or None.

    Raises:
        BadInput: they are none.
    """
    if text is None:
        return None
    found = numbers(option, text)
    if len(found) != 3:
        raise BadInput(f"{option}: expected three numbers such as 0,0,-9.81, got {len(found)}")
    return found


def positive(option: str, value: float) -> float:
    """A finite number above zero.

    Raises:
        BadInput: it is none.
    """
    if not (math.isfinite(value) and value > 0):
        raise BadInput(f"{option}: expected a positive number of seconds, got {value:g}")
    return value


def _entries(option: str, text: str | None, slices: Mapping[str, slice], start: np.ndarray) -> np.ndarray:
    if text is None:
        return start
    if "=" in text:
        return _named(option, text, slices, start)
    found = numbers(option, text)
    if len(found) != len(start):
        own = [f"{name} {part.stop - part.start}" for name, part in slices.items() if part.stop > part.start]
        more = ", ..." if len(own) > SHOWN else ""
        raise BadInput(
            f"{option}: expected {len(start)} numbers ({', '.join(own[:SHOWN])}{more}), got {len(found)};"
            " or name the joints: joint=value"
        )
    return np.array(found, start.dtype)


def _named(option: str, text: str, slices: Mapping[str, slice], start: np.ndarray) -> np.ndarray:
    out, seen = start.copy(), set()
    for entry in text.split(","):
        name, mark, values = (part.strip() for part in entry.rpartition("="))
        if not mark:
            raise BadInput(f"{option}: expected joint=value, got {entry.strip()!r}; numbers and names cannot be mixed")
        if name not in slices:
            raise unknown(f"{option}: expected the name of a joint", name, list(slices))
        if name in seen:
            raise BadInput(f"{option}: the joint {name!r} is named twice")
        seen.add(name)
        part = slices[name]
        count = part.stop - part.start
        if not count:
            raise BadInput(f"{option}: the joint {name!r} follows another one and has no number of its own")
        found = numbers(f"{option}: {name}", values, ":")
        if len(found) != count:
            shape = f"{count} numbers, {name}={':'.join('abcdefg'[:count])}" if count > 1 else "one number"
            raise BadInput(f"{option}: the joint {name!r} takes {shape}, got {len(found)}")
        out[part] = found
    return out
