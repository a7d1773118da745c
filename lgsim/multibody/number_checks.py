"""Checks of parameters: negative masses and damping, placements that are not poses, reversed limits.

Concrete values are checked, traced values pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.dtypes import float0
from jaxtyping import Float

from lgsim.multibody.contacts.sizes import height_slices
from lgsim.multibody.topology import ModelError, Topology
from lgsim.support.check import FLOATS, is_traced

_NOT_NEGATIVE = ("armature", "damping", "friction", "limit_stiffness", "limit_damping")
"""Finite nonnegative parameters of degrees of freedom."""
LIMITS = ("velocity_limit", "effort_limit")
"""Nonnegative parameters of degrees of freedom, infinite for no limit."""
RIGID = 1e-3
"""Tolerance of the rotation of a placement, sufficient for numbers with four digits."""
_APART = ("contacts", "solids", "solid_poses", "grids")
"""Parameters with checks of their own."""
ROUNDED = 0.01
"""Tolerance of the norm of a quaternion, sufficient for numbers with three digits."""


def check_numbers(topology: Topology, numbers: dict[str, Array], columns: Sequence[str]) -> None:
    """Check parameters by their names in ``Model``, as far as they are concrete.

    Args:
        columns: Names of the columns of ``drives``.

    Raises:
        ModelError: an invalid parameter; the message names it and its joint, body or frame.
    """
    known = {name: np.asarray(x) for name, x in numbers.items() if name not in _APART and not is_traced(x)}
    if "drives" in known:
        drives = known.pop("drives")
        known |= {name: drives[..., i] for i, name in enumerate(columns)}
    for name, values in known.items():
        fault = FAULTS.get(name, _not_finite)(values)
        bad = np.argwhere(fault)
        if len(bad):
            at = tuple(int(i) for i in bad[0])
            owner = _owner(topology, name, at)
            raise ModelError(
                f"{name}{owner}: expected {EXPECTED.get(name, 'finite numbers')}, got {_shown(values[at])}"
            )
    if "loops" in known:
        check_loop_numbers(topology, known["loops"])
    if {"lower", "upper"} <= known.keys():
        wrong = np.argwhere(known["lower"] > known["upper"])
        if len(wrong):
            at = tuple(int(i) for i in wrong[0])
            ends = f"{known['lower'][at]:g} and {known['upper'][at]:g}"
            raise ModelError(f"lower, upper{_owner(topology, 'lower', at)}: expected lower <= upper, got {ends}")


def check_loop_numbers(topology: Topology, numbers: Any) -> None:
    """Check the finite parameters (..., k) of all loops, by their kinds.

    Raises:
        ModelError: an invalid parameter, such as a rod without length.
    """
    count = topology.loop_number_starts[-1]
    for values in np.reshape(np.asarray(numbers, float), (-1, count)) if count else ():
        for i, loop in enumerate(topology.loops):
            fault = loop.kind.fault(values[topology.loop_number_starts[i] : topology.loop_number_starts[i + 1]])
            if fault:
                raise ModelError(f"loop {loop.name!r}: {fault}")


def check_quaternions(topology: Topology, name: str, q: Any) -> None:
    """Check that the quaternions of a configuration (nq,) have norm one, up to few digits; no check inside of ``jit``.

    Raises:
        ValueError: another norm; the message names the argument ``name`` and the joint.
    """
    if is_traced(q):
        return
    values = np.asarray(q)
    for joint, kind in enumerate(topology.joints):
        part = topology.q_slice(joint)
        if kind.nq == kind.nv or part.start == part.stop:
            continue
        norm = float(np.linalg.norm(values[part.stop - 4 : part.stop]))
        if abs(norm - 1) > ROUNDED:
            raise ValueError(
                f"{name}: expected a unit quaternion (w, x, y, z) in the last four values of the joint"
                f" {topology.joint_names[joint]!r}, got norm {norm:g}; divide it by its norm"
            )


def _not_finite(x: Float[np.ndarray, ...]) -> np.ndarray:
    return ~np.isfinite(x)


def _negative(x: Float[np.ndarray, ...]) -> np.ndarray:
    return ~(np.isfinite(x) & (x >= 0))


def not_rigid(T: Float[np.ndarray, "*many 4 4"]) -> np.ndarray:
    """True for matrices that are not rigid displacements."""
    R = np.where(np.isfinite(T[..., :3, :3]), T[..., :3, :3], np.inf)
    with np.errstate(all="ignore"):
        turned = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-1, -2)) <= RIGID
        right = turned & (np.linalg.det(np.where(turned[..., None, None], R, np.eye(3))) > 0)
    last = np.abs(T[..., 3, :] - np.array([0, 0, 0, 1])).max(axis=-1) <= RIGID
    return ~(right & last & np.isfinite(T).all(axis=(-1, -2)))


FAULTS: dict[str, Callable[[np.ndarray], Any]] = {
    **dict.fromkeys(_NOT_NEGATIVE, _negative),
    **dict.fromkeys(LIMITS, lambda x: ~(x >= 0)),
    "friction_speed": lambda x: ~(np.isfinite(x) & (x > 0)),
    "lower": np.isnan,
    "upper": np.isnan,
    "inertias": lambda x: ~np.isfinite(x).all(axis=-1) | ~(x[..., 0] >= 0),
    "placements": not_rigid,
    "frames": not_rigid,
    "axes": lambda x: ~np.isfinite(x).all(axis=-1) | ~x.any(axis=-1),
    "screws": lambda x: ~np.isfinite(x).all(axis=-1) | ~x[..., :3].any(axis=-1),
}
"""Function for each name that marks invalid values; those of other names must be finite."""

EXPECTED = {
    **dict.fromkeys(_NOT_NEGATIVE, "a finite nonnegative number"),
    **dict.fromkeys(LIMITS, "a nonnegative number, infinite for none"),
    "friction_speed": "a positive number",
    "lower": "a number, infinite for none",
    "upper": "a number, infinite for none",
    "inertias": "ten finite parameters with a nonnegative mass",
    "placements": "a pose: a rotation and a position, the last row 0, 0, 0, 1",
    "frames": "a pose: a rotation and a position, the last row 0, 0, 0, 1",
    "axes": "a finite nonzero vector",
    "screws": "a finite nonzero axis and a finite pitch",
}


def _owner(tree: Topology, name: str, at: tuple[int, ...]) -> str:
    """Description of the owner of a parameter, from its last indices."""
    if name == "gravity":
        return ""
    if name == "heights":
        own = height_slices(tree.contacts)
        return f" of frame {next(frame for frame, part in own.items() if at[-1] < part.stop)!r}"
    if name == "loops":
        return f", {tree.loop_number(at[-1])}"
    if name == "inertias":
        return f" of body {tree.body_names[at[-1]]!r}"
    if name == "frames":
        return f" of frame {tree.frame_names[at[-1]]!r}"
    if name in ("axes", "screws", "pitches"):
        joint = int(tree.row_joint[at[-1]])
    elif name == "placements":
        joint = at[-1]
    elif name == "mimic":
        joint = at[-2]
    else:
        joint = next(j for j in range(tree.bodies) if at[-1] < tree.v_starts[j + 1])
    return f" of joint {tree.joint_names[joint]!r}"


def _shown(value: Any) -> str:
    """Values for a message, in one line."""
    return f"{value:g}" if np.ndim(value) == 0 else " ".join(np.array2string(value, precision=4).split())


def check_types(numbers: Mapping[str, Any]) -> None:
    """Check that the floats of a model, by their names in ``Model``, are all float32 or all float64.

    Integers, booleans and None pass.

    Raises:
        TypeError: several types, or another one.
    """
    types = {name: np.dtype(x.dtype) for name, x in numbers.items() if _floats(x)}
    if "inertias" not in types or types["inertias"] not in FLOATS:
        found = getattr(numbers["inertias"], "dtype", type(numbers["inertias"]).__name__)
        raise TypeError(
            f"model: expected parameters of float32 or float64, got {found} as inertias; masks and axes of jax.vmap are"
            " not models"
        )
    usual = Counter(types.values()).most_common(1)[0][0]
    others = [f"{name} is {dtype}" for name, dtype in types.items() if dtype != usual]
    if others:
        raise TypeError(
            f"model: expected parameters of one dtype, got {usual}, but {' and '.join(others)}; Model.replace converts"
            f" its arguments, and jax.tree.map(lambda x: x.astype({usual.name!r}), model) converts all"
        )


def _floats(x: Any) -> bool:
    return hasattr(x, "dtype") and x.dtype != float0 and bool(jnp.issubdtype(x.dtype, jnp.floating))
