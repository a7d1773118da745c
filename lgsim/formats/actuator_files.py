"""Actuators from robot description files."""

from __future__ import annotations

import os

import jax.numpy as jnp
import numpy as np

from lgsim.actuators import Actuators, Transmission
from lgsim.actuators.actuators import ActuatorSum
from lgsim.formats.mjcformat.actuators import read_mjcf_actuators
from lgsim.formats.report import Finding
from lgsim.formats.xml import Element, FileError, file_content, is_factor, read, recovered_root
from lgsim.multibody.model import Model

_KNOWN = ("SimpleTransmission", "DifferentialTransmission")
"""Suffixes of the supported types of <transmission>."""


def load_actuators(
    model: Model, path: str | os.PathLike[str] | None = None, *, text: str | None = None, stops: float | None = None
) -> Actuators | ActuatorSum:
    """The actuators of an MJCF or URDF file, for the model of that file.

    MJCF <actuator>: see ``lgsim.formats.mjcformat.actuators.read_mjcf_actuators``; commands are MuJoCo's ctrl, and
    springs of tendons are further terms. URDF
    <transmission>: commands are motor torques, N m. A transmission is a reduction, ``SimpleTransmission``, or a
    differential of two motors and two joints, ``DifferentialTransmission``, with the signs of ros2_control. URDF has no
    motor parameters.

    Args:
        model: The model of the file from ``load_mjcf`` or ``load_urdf``.
        text: The XML itself instead of a path.
        stops: Duration of a bounce at the limits of tendons, s, which become stops as those of joints by
            ``lgsim.with_stops``; None, the default, ignores these limits.

    Raises:
        FileError: the file is missing, is not XML, or has no supported actuators.
        ImportError: the package ``mujoco`` is missing, for an MJCF file.
        TypeError: both or neither of ``path`` and ``text`` are given.
        ValueError: the model lacks a joint of the file, or the duration is not positive.
    """
    found, remarks = read_actuators(model, path, text=text, stops=stops)
    if found is None:
        file = "<text>" if path is None else os.fspath(path)
        why = f"; the first of {len(remarks)} that are not represented: {remarks[0]}" if remarks else ""
        raise FileError(file, None, f"expected supported actuators, got none{why}")
    return found


def read_actuators(
    model: Model, path: str | os.PathLike[str] | None = None, *, text: str | None = None, stops: float | None = None
) -> tuple[Actuators | ActuatorSum | None, tuple[Finding, ...]]:
    """The actuators as in ``load_actuators``, or None, and findings about actuators that are not represented.

    Args:
        text: The XML itself instead of a path.
        stops: See ``load_actuators``.

    Raises:
        FileError, ImportError, TypeError, ValueError: see ``load_actuators``.
    """
    if stops is not None and not stops > 0:
        raise ValueError(f"stops: expected a positive number of seconds, got {stops}")
    if (path is None) != (text is None):
        root = recovered_root(file_content(path, text)[1])
        if root is not None and root.tag == "mujoco":
            return read_mjcf_actuators(model, path, text=text, stops=stops)
    file, node, _ = read(path, text)
    if node.tag != "robot":
        raise FileError(file, node.sourceline, f"<{node.tag}>: expected <mujoco> or <robot>, got <{node.tag}>")
    rows, names, remarks = [], [], []
    for element in Element(file, node).children("transmission"):
        found = _transmission(element, model)
        if isinstance(found, str):
            remarks.append(element.finding(found))
            continue
        for name, row in found.items():
            names.append(name)
            rows.append(row)
    if not rows:
        return None, tuple(remarks)
    return Actuators(Transmission(jnp.asarray(np.array(rows), model.dtype)), names=names), tuple(remarks)


def _transmission(element: Element, model: Model) -> dict[str, np.ndarray] | str:
    """Rows of the coupling matrix of a <transmission> by actuator name, or the reason why it is not represented."""
    kind = element.child("type")
    given = element.text("type") if kind is None else kind.words
    name = (given or "").strip().split("/")[-1]
    if name not in _KNOWN:
        return f"is not represented: expected the type {' or '.join(_KNOWN)}, got {(given or '').strip()!r}"
    joints, motors = _parts(element, "joint"), _parts(element, "actuator")
    if (len(joints), len(motors)) != ((1, 1) if name == _KNOWN[0] else (2, 2)):
        return f"is not represented: a {name} with {len(motors)} actuators and {len(joints)} joints"
    places = []
    for part in joints:
        joint = part.name()
        if joint not in model.v_slices:
            raise part.error(f"the model has no joint {joint!r}")
        own = model.v_slices[joint]
        if own.stop - own.start != 1:
            return f"is not represented: the joint {joint!r} has {own.stop - own.start} degrees of freedom"
        places.append(own.start)
    at_joints, at_motors = ([_reduction(part) for part in parts] for parts in (joints, motors))
    rows = np.zeros((len(motors), model.nv))
    if name == _KNOWN[0]:
        rows[0, places[0]] = at_joints[0] * at_motors[0]
    else:
        # motor angles are the sum and the difference of the joint angles
        rows[:, places[0]] += np.array(at_motors) * at_joints[0]
        rows[:, places[1]] += np.array([1.0, -1.0]) * at_motors * at_joints[1]
    return {part.name(): row for part, row in zip(motors, rows, strict=True)}


def _parts(element: Element, tag: str) -> list[Element]:
    """The joints or actuators, ordered by their roles if given."""
    return sorted(
        element.children(tag), key=lambda part: (part.node.findtext("role") or part.text("role") or "").strip()
    )


def _reduction(part: Element) -> float:
    """The mechanical reduction of an element; 1 by default."""
    for tag in ("mechanicalReduction", "mechanical_reduction"):
        found = part.child(tag)
        if found is not None:
            return found.value(is_factor)
    return 1.0
