"""Joints from joint map matrices: H (6, k), whose columns are the screws (v, w) of a joint, linear first.

The paper has angular components first and counts columns from the child: ``np.roll(H, 3, axis=0)`` converts the rows,
and ``H[:, ::-1]`` the order of a compound joint.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float
from numpy.typing import ArrayLike

from lgsim.lie import se3
from lgsim.multibody.joint import GroupJoint, Joint, Row, bracket
from lgsim.multibody.joints import JOINTS, Compound
from lgsim.multibody.topology import ModelError


class JointMap(NamedTuple):
    """The arguments ``joint``, ``axis`` and ``pitch`` of ``ModelBuilder.add_body``."""

    joint: Joint
    axes: np.ndarray
    """(k, 3)."""
    pitches: np.ndarray
    """(k,), m/rad."""


def compound_joint(H: ArrayLike) -> JointMap:
    """The joint with the screws of H in sequence, the first column next to the parent.

    Its coordinates are the angles (rad) and distances (m) of the columns, its configuration is
    ``exp(h_1 q_1) ... exp(h_k q_k)``.

    Args:
        H: (6, k), columns (v, w): ``|w| = 1`` and ``v = pitch w`` for a rotation, ``|v| = 1`` and ``w = 0`` for a
            translation.

    Raises:
        ModelError: H has a wrong shape or entries that are not finite, a column is not of unit length, or the axis of
            a rotation does not pass through the joint's origin.

    Source: Kwatny and Blankenship 1995, Propositions 1 and 3.
    """
    columns = [_screw(i, h) for i, h in enumerate(_checked(H).T)]
    sequence = tuple(Row(turns, int(np.argmax(np.abs(axis)))) for turns, axis, _ in columns)
    return JointMap(
        Compound(sequence), np.array([axis for _, axis, _ in columns]), np.array([pitch for *_, pitch in columns])
    )


def simple_joint(H: ArrayLike) -> JointMap:
    """The joint with velocities ``V = H v`` with constant H, in the frame of the child.

    Its configurations are the subgroup of SE(3) whose algebra the columns span. If they commute, the coordinates are
    those of ``compound_joint``; otherwise it is the group joint of ``lgsim.joints`` with these columns.

    Args:
        H: (6, k), columns as for ``compound_joint``; for a group joint in the order and the axes of its rows.

    Raises:
        ModelError: see ``compound_joint``; dependent columns; columns that do not span a subalgebra, so that no such
            joint exists; or columns that no joint of ``lgsim.joints`` has.

    Source: Kwatny and Blankenship 1995, Propositions 1 and 2, restricted to subalgebras, which excludes the paper's
    simple universal joint.
    """
    H = _checked(H)
    k = H.shape[1]
    if np.linalg.matrix_rank(H) < k:
        raise ModelError(f"joint map: expected {k} independent columns, got rank {np.linalg.matrix_rank(H)}")
    pairs = [(i, j, bracket(H[:, i], H[:, j])) for i in range(k) for j in range(i + 1, k)]
    inside = H @ np.linalg.pinv(H)
    for i, j, b in pairs:
        if not np.allclose(inside @ b, b):
            raise ModelError(
                f"joint map: the columns do not span a subalgebra: the bracket of columns {i} and {j},"
                f" {np.round(b, 6).tolist()}, is not a combination of the columns, so that no joint has the velocities"
                " H v with constant H; use compound_joint(H), a sequence of the screws"
            )
    if all(np.allclose(b, 0) for _, _, b in pairs):
        return compound_joint(H)
    compound = compound_joint(H)
    turns = [row.turns for row in compound.joint.rows]
    groups = [kind() for kind in JOINTS if issubclass(kind, GroupJoint)]
    for joint in groups:
        frame = _frame(joint, compound.axes)
        right = frame is not None and np.allclose(frame @ frame.T, np.eye(3)) and np.linalg.det(frame) > 0
        if right and turns == [row.turns for row in joint.rows] and not np.any(compound.pitches):
            return JointMap(joint, compound.axes, compound.pitches)
    known = "; ".join(f"{type(joint).__name__}: {_listed(joint)}" for joint in groups)
    raise ModelError(
        "joint map: the columns span a subgroup, but no joint has these columns in this order along the axes x, y, z of"
        f" a right-handed frame; known are {known}; or use compound_joint(H), a sequence of the screws"
    )


def configuration(H: Float[Array, "6 k"], q: Float[Array, " k"]) -> Float[Array, "4 4"]:
    """``exp(h_1 q_1) ... exp(h_k q_k)``, the pose of the child in the parent.

    Source: Kwatny and Blankenship 1995, (12), (15), (26), whose factors are counted from the child.
    """
    T = jnp.eye(4, dtype=q.dtype)
    for factor in se3.exp((H * q[None]).T):
        T = T @ factor
    return T


def velocity_map(H: Float[Array, "6 k"], q: Float[Array, " k"]) -> Float[Array, "6 k"]:
    """``B(q)`` with the child's twist ``V = B(q) dq/dt``: the joint map matrix of the compound joint.

    Column i is ``Ad^-1 h_i`` with the factors of ``configuration`` after it.

    Source: Kwatny and Blankenship 1995, (18), (27)-(28), whose columns are counted from the child.
    """
    back = jnp.eye(4, dtype=q.dtype)
    columns = []
    for h, factor in reversed(list(zip(H.T, se3.exp((-H * q[None]).T), strict=True))):
        columns.append(se3.Ad_action(back, h))
        back = back @ factor
    return jnp.stack(columns[::-1], axis=1)


def kinematic_matrix(H: Float[Array, "6 k"], q: Float[Array, " k"]) -> Float[Array, "k k"]:
    """``Gamma(q) = B^+ H`` with ``dq/dt = Gamma(q) v`` of a simple joint of the configuration ``configuration(H, q)``.

    Exact if the columns of H span a subalgebra, otherwise the least-squares fit of the paper's tables.

    Source: Kwatny and Blankenship 1995, Proposition 2, (16)-(19).
    """
    return jnp.linalg.pinv(velocity_map(H, q)) @ H


def _checked(H: ArrayLike) -> np.ndarray:
    array = np.asarray(H, float)
    if array.ndim != 2 or array.shape[0] != 6 or array.shape[1] < 1:
        raise ModelError(f"joint map: expected shape (6, k) with a column (v, w) for each screw, got {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ModelError(f"joint map: expected finite entries, got {array.tolist()}")
    return array


def _screw(i: int, h: np.ndarray) -> tuple[bool, np.ndarray, float]:
    """Type of a column (True for a rotation), its axis and its pitch."""
    v, w = h[:3], h[3:]
    turns = bool(np.any(w))
    axis = w if turns else v
    if not np.isclose(np.linalg.norm(axis), 1):
        part = "an angular" if turns else "a linear"
        raise ModelError(
            f"joint map: column {i}: expected {part} part of length 1, so that the coordinate is"
            f" {'an angle' if turns else 'a distance'}, got {np.linalg.norm(axis):g}; divide the column by it"
        )
    if not turns:
        return False, axis, 0.0
    point = np.cross(w, v)
    if not np.allclose(point, 0):
        raise ModelError(
            f"joint map: column {i}: its axis passes through {np.round(point, 6).tolist()}, not through the joint's"
            " origin; move the joint there by `placement`, or, if axes do not meet, insert a massless body"
        )
    return True, axis, float(w @ v)


def _frame(joint: GroupJoint, axes: np.ndarray) -> np.ndarray | None:
    """The axes x, y, z of the frame in which the joint's rows have the given axes; None without such a frame."""
    if len(axes) != joint.nv:
        return None
    frame = np.zeros((3, 3))
    for row, axis in zip(joint.rows, axes, strict=True):
        frame[row.axis] = axis
    same = all(np.allclose(frame[row.axis], axis) for row, axis in zip(joint.rows, axes, strict=True))
    return frame if same else None


def _listed(joint: GroupJoint) -> str:
    return ", ".join(("turn " if row.turns else "slide ") + "xyz"[row.axis] for row in joint.rows)
