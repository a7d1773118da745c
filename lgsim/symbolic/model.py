"""Models with symbols and exact rationals as parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from lgsim.multibody.inertia import PARAMETERS, PLACES
from lgsim.multibody.model import DRIVES, Model
from lgsim.multibody.topology import ModelError
from lgsim.support.messages import unknown_name
from lgsim.symbolic.arithmetic import rational
from lgsim.symbolic.arithmetics.expressions import sympy_package

_AXES = "xyz"
_ENTRIES = ("xx", "xy", "yy", "xz", "yz", "zz")


def symbols(names: str) -> np.ndarray:
    """Real sympy symbols as an array of dtype object: ``symbols("q1:4")`` or ``symbols("x theta")``."""
    found = sympy_package().symbols(names, real=True, seq=True)
    out = np.empty(len(found), object)
    out[:] = found
    return out


def model(machine: Model, values: Mapping[str, Any] | None = None) -> Model:
    """A copy of a model with symbols in place of some parameters; all others become exact rationals.

    A float is converted to the short decimal that it prints as, else to a fraction of small integers within four
    rounding units, else to its exact value.

    Args:
        values: Replacements of parameters by address: a name, a sympy expression or a number. Addresses are
            ``mass.BODY``; ``center.BODY.x``, the center of mass; ``inertia.BODY.xy``, about the center of mass; one of
            the ten parameters about the body's frame, ``parameters.BODY.mx``, see ``lgsim.multibody.inertia``;
            ``placement.JOINT.z``; ``axis.JOINT.x``; a drive parameter, ``damping.JOINT``, ``armature.JOINT``, ...;
            ``gravity.z``, or ``gravity``, its magnitude. A joint may be named by the body that it moves; names may have
            dots.

    Returns:
        The model, whose arrays have dtype object: for ``lgsim.symbolic.evaluate``.

    Raises:
        ModelError: an address does not exist, two change the same parameter, or a number is not finite.
    """
    parts = _Parts(machine)
    for address, value in (values or {}).items():
        if not isinstance(address, str):
            raise ModelError(f"values: expected addresses such as 'mass.{machine.body_names[0]}', got {address!r}")
        parts.put(address, _value(address, value))
    return parts.model()


def _value(address: str, value: Any) -> Any:
    if isinstance(value, str):
        if not value.isidentifier():
            raise ModelError(f"expected the name of a symbol or an expression of sympy, got the string {value!r}")
        return sympy_package().Symbol(value, real=True)
    if not isinstance(value, (int, float, Fraction, np.number)):
        return value
    if not math.isfinite(value):
        raise ModelError(f"values: {address!r}: expected a finite number, a name or an expression, got {value}")
    return rational(value)


def _exact(array: Any, scale: int) -> np.ndarray:
    given = np.asarray(array)
    out = np.empty(given.size, object)
    for i, x in enumerate(given.ravel().tolist()):
        out[i] = rational(x, scale) if isinstance(x, (int, float)) else x
    return out.reshape(given.shape)


_OF_ROTATIONS = ("placements", "screws", "frames", "solid_poses")
"""Arrays whose entries include sines and cosines, zero up to rounding for a right angle."""


class _Parts:
    """The parameters of a model, in the parts that addresses name."""

    def __init__(self, machine: Model) -> None:
        self.machine = machine
        self.arrays = {
            field.name: _exact(value, field.name in _OF_ROTATIONS)
            for field in fields(machine)
            if field.name != "topology" and (value := getattr(machine, field.name)) is not None
        }
        self._mass: dict[int, list[Any]] = {}  # mass, center, and inertia about it of a changed body
        self._put: set[tuple] = set()

    def put(self, address: str, value: Any) -> None:
        """Replace the parameter at an address."""
        kind, _, rest = address.partition(".")
        if kind == "gravity" and not rest:
            self._once(address, *(("gravity", i) for i in range(3)))
            self.arrays["gravity"] = _directed(self.arrays["gravity"]) * value
            return
        places: Mapping[str, Callable[[str, str, Any], None]] = {
            "mass": self._put_mass, "center": self._put_center, "inertia": self._put_inertia,
            "parameters": self._put_parameter, "placement": self._put_placement, "axis": self._put_axis,
            "gravity": self._put_gravity, **dict.fromkeys(DRIVES, self._put_drive),
        }  # fmt: skip
        if kind not in places:
            raise ModelError(unknown_name(f"values: address {address!r}: expected a kind", kind, list(places)))
        places[kind](address, rest, value)

    def _once(self, address: str, *places: tuple) -> None:
        for place in places:
            if place in self._put:
                raise ModelError(f"values: {address!r} and another address change the same parameter")
            self._put.add(place)

    def _body(self, address: str, name: str) -> int:
        names = self.machine.body_names
        if name not in names:
            raise ModelError(unknown_name(f"values: address {address!r}: expected the name of a body", name, names))
        return names.index(name)

    def _joint(self, address: str, name: str) -> int:
        joints, bodies = self.machine.joint_names, self.machine.body_names
        if name in joints:
            return joints.index(name)
        if name in bodies:
            return bodies.index(name)
        raise ModelError(unknown_name(f"values: address {address!r}: expected the name of a joint", name, joints))

    def _ended(self, address: str, rest: str, ends: tuple[str, ...] | str) -> tuple[str, int]:
        owner, _, end = rest.rpartition(".")
        if end not in tuple(ends):
            raise ModelError(unknown_name(f"values: address {address!r}: expected at its end", end, list(ends)))
        return owner, tuple(ends).index(end)

    def _of_body(self, address: str, name: str) -> list[Any]:
        body = self._body(address, name)
        if (body, "ten") in self._put:
            raise ModelError(f"values: {address!r} and an address of parameters.{name} change the same parameter")
        if body not in self._mass:
            ten = self.arrays["inertias"][body]
            m, h = ten[0], ten[1:4]
            c = h / m if m else h * 0
            about_origin = ten[PLACES]
            shift = m * (c @ c * np.eye(3, dtype=int) - np.outer(c, c))
            self._mass[body] = [m, c, about_origin - shift]
        self._put.add((body, "three"))
        return self._mass[body]

    def _put_mass(self, address: str, rest: str, value: Any) -> None:
        of = self._of_body(address, rest)
        self._once(address, ("mass", rest))
        of[0] = value

    def _put_center(self, address: str, rest: str, value: Any) -> None:
        name, axis = self._ended(address, rest, _AXES)
        of = self._of_body(address, name)
        self._once(address, ("center", name, axis))
        of[1][axis] = value

    def _put_inertia(self, address: str, rest: str, value: Any) -> None:
        name, place = self._ended(address, rest, _ENTRIES)
        of = self._of_body(address, name)
        self._once(address, ("inertia", name, place))
        i, j = (_AXES.index(axis) for axis in _ENTRIES[place])
        of[2][i, j] = of[2][j, i] = value

    def _put_parameter(self, address: str, rest: str, value: Any) -> None:
        name, place = self._ended(address, rest, PARAMETERS)
        body = self._body(address, name)
        if (body, "three") in self._put:
            raise ModelError(f"values: {address!r} and an address of mass, center or inertia change the same parameter")
        self._once(address, ("parameters", body, place))
        self._put.add((body, "ten"))
        self.arrays["inertias"][body, place] = value

    def _put_placement(self, address: str, rest: str, value: Any) -> None:
        name, axis = self._ended(address, rest, _AXES)
        joint = self._joint(address, name)
        self._once(address, ("placement", joint, axis))
        self.arrays["placements"][joint, axis, 3] = value

    def _put_axis(self, address: str, rest: str, value: Any) -> None:
        name, axis = self._ended(address, rest, _AXES)
        joint, starts = self._joint(address, name), self.machine.topology.row_starts
        rows = slice(starts[joint], starts[joint + 1])
        if rows.stop - rows.start != 1:
            raise ModelError(f"values: address {address!r}: the joint has {rows.stop - rows.start} axes, expected one")
        self._once(address, ("axis", rows.start, axis))
        self.arrays["screws"][rows.start, axis] = value

    def _put_gravity(self, address: str, rest: str, value: Any) -> None:
        _, axis = self._ended(address, f".{rest}", _AXES)
        self._once(address, ("gravity", axis))
        self.arrays["gravity"][axis] = value

    def _put_drive(self, address: str, rest: str, value: Any) -> None:
        kind = address.partition(".")[0]
        part = self.machine.topology.v_slice(self._joint(address, rest))
        self._once(address, (kind, part.start))
        self.arrays["drives"][part, DRIVES.index(kind)] = value

    def model(self) -> Model:
        """The model with the replaced parameters."""
        for body, (m, c, inertia) in self._mass.items():
            moved = inertia + m * (c @ c * np.eye(3, dtype=int) - np.outer(c, c))
            ten = self.arrays["inertias"][body]
            ten[0], ten[1:4] = m, m * c
            for i in range(3):
                for j in range(i, 3):
                    ten[PLACES[i, j]] = moved[i, j]
        return replace(self.machine, **self.arrays)


def _directed(gravity: np.ndarray) -> np.ndarray:
    """The direction of gravity, exactly."""
    from lgsim.symbolic.arithmetic import root

    size = root(gravity @ gravity)
    if not size:
        raise ModelError("values: address 'gravity': expected gravity with a rational direction; use gravity.x, .y, .z")
    return gravity / size
