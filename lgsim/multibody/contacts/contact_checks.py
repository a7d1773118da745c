"""Checks of contacts: unknown frames, both sides on one body, invalid parameters."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lgsim.multibody.contacts.contact import LAW, OPTIONS, USUAL_LAW, Contact, Shape, Sized, Surface
from lgsim.multibody.contacts.sizes import grids, height_slices
from lgsim.multibody.topology import WORLD, ModelError, Topology
from lgsim.support.check import is_traced
from lgsim.support.messages import unknown_name

SMOOTH = 1.5
"""Exponent below which derivatives of fixed steps through an impact are useless."""

_ROUGH = (
    "contact {name!r}: exponent: {exponent:g} is below 3/2, where the force has a kink at touchdown and derivatives of"
    " fixed steps are wrong by 5e-2 and more (a ball dropped 0.4 m at 0.5 ms, exponent 1); use 1.5 or 2"
)
_POSITIVE = {
    "slip_speed": "m/s: friction reaches 0.7 of its limit at this speed",
    "stribeck_speed": "m/s: the Stribeck friction decreases to 0.37 at this speed",
    "spin_speed": "rad/s: torsion and rolling resistance reach 0.7 of their limit at this speed",
}


def described(
    name: str, frame: str, shape: Any, surface: Any, against: str, law: Mapping[str, Any], smooth: bool = False
) -> tuple[Contact, dict[str, float], Any]:
    """The contact, its values by column name, and the heights of its surface or None, for ``ModelBuilder.add_contact``.

    Raises:
        ModelError: an invalid shape or surface, or an unknown, missing or invalid parameter.
    """
    for what, given, kind, made in (
        ("shape", shape, Shape, "lgsim.contacts.sphere(0.05)"), ("surface", surface, Surface, "lgsim.contacts.plane()"),
    ):  # fmt: skip
        if not (isinstance(given, Sized) and isinstance(given.kind, kind)):
            raise ModelError(f"contact {name!r}: {what}: expected a {what} such as {made}, got {given!r}")
    known = (*LAW, *(key for group in OPTIONS for key in group))
    unknown = [key for key in law if key not in known]
    if unknown:
        raise ModelError(unknown_name(f"contact {name!r}: expected a contact parameter", unknown[0], known))
    if smooth:
        if "exponent" in law:
            raise ModelError(f"contact {name!r}: smooth, exponent: expected one of them; smooth is an exponent of 2")
        law = {"exponent": 2.0, **law}
    if law.get("stiffness") is None:
        raise ModelError(
            f"contact {name!r}: stiffness: expected a number, N/m^exponent; lgsim.suggest_contact computes one"
        )
    options = tuple(key for group in OPTIONS if set(group) & law.keys() for key in group)
    contact = Contact(name, frame, shape.kind, surface.kind, against, options)
    given = {**USUAL_LAW, **law, **shape.sizes, **{f"surface_{key}": x for key, x in surface.sizes.items()}}
    numbers = {}
    for key in contact.columns:
        value = np.asarray(given[key], float)
        if value.shape != ():
            raise ModelError(f"contact {name!r}: {key}: expected one number, got shape {value.shape}")
        numbers[key] = float(value)
        _check_number(contact, key, float(value))
    if numbers["exponent"] < SMOOTH:
        warnings.warn(_ROUGH.format(name=name, exponent=numbers["exponent"]), stacklevel=3)
    return contact, numbers, surface.heights


def new_heights(known: Sequence[Contact], heights: Any, contact: Contact, given: Any) -> Any:
    """The heights (n,) of a contact's surface if its frame has none yet, else None.

    Args:
        known: Existing contacts.
        heights: Their ``Model.heights``.
        contact: The new contact.
        given: The heights on its grid, or None.

    Raises:
        ModelError: the frame has another height field.
    """
    if given is None:
        return None
    place = height_slices(known).get(contact.against)
    if place is None:
        return np.ravel(given)
    same = grids(known)[contact.against] == contact.surface.grid
    if not same or not (is_traced(heights) or np.allclose(heights[place], np.ravel(given), rtol=1e-6, atol=0)):
        raise ModelError(
            f"contact {contact.name!r}: surface: expected the one height field of the frame {contact.against!r}, got"
            " another one; give the same heights, or add a frame for it"
        )
    return None


def _check_number(contact: Contact, column: str, value: float) -> None:
    """Check a contact parameter.

    Raises:
        ModelError: an invalid value.
    """
    size = column.removeprefix("surface_")
    signed = column != size and size in contact.surface.signed
    if column == "exponent":
        right, expected = value >= 1, "1 or more (1.5 for accurate derivatives of fixed steps)"
    elif column in _POSITIVE:
        right, expected = value > 0, f"a positive number, {_POSITIVE[column]}"
    elif column != size and size in contact.surface.positive:
        right, expected = value > 0, "a positive number"
    elif signed:
        right, expected = True, "a finite number"
    else:
        right, expected = value >= 0, "a nonnegative number"
    if not (right and np.isfinite(value)):
        raise ModelError(f"contact {contact.name!r}: {column}: expected {expected}, got {value:g}")


def check_rows(contacts: Sequence[Contact], array: Any) -> None:
    """Check the values (..., c, k) of contacts.

    Raises:
        ModelError: an invalid value.
    """
    for row in np.asarray(array, float).reshape(-1, *np.shape(array)[-2:]):
        for contact, numbers in zip(contacts, row, strict=True):
            for column, value in zip(contact.columns, numbers, strict=False):
                _check_number(contact, column, float(value))


def check_contacts(tree: Topology) -> None:
    """Check that the contacts of a topology can act.

    Raises:
        ModelError: an unknown frame, or both frames of a contact on one body or on the world.
    """
    for contact in tree.contacts:
        ends = (("frame", contact.frame), ("against", contact.against))
        bodies = [tree.carrier(frame, f"contact {contact.name!r}: {what}") for what, frame in ends]
        if bodies[0] == bodies[1]:
            holder = "the world" if bodies[0] == WORLD else f"the body {tree.body_names[bodies[0]]!r}"
            raise ModelError(
                f"contact {contact.name!r}: frame, against: expected frames on two bodies or on a body and the world,"
                f" got {contact.frame!r} and {contact.against!r}, both on {holder}: their contact force has no effect"
            )
