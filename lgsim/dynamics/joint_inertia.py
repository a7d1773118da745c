"""The inertia that each joint feels, and the joints that feel none, which make the mass matrix singular.

This module uses numpy on one state, for messages: nothing is traced or compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.multibody.inertia import PLACES
from lgsim.multibody.joint import GroupJoint
from lgsim.multibody.model import DRIVES, Model
from lgsim.multibody.topology import WORLD
from lgsim.support.messages import listed

Matrix = Float[np.ndarray, "6 6"]

OPERATIONS = 4
"""Rounding error of a sum of products, in rounding units of its largest term."""


class JointInertia(NamedTuple):
    """Articulated inertia of each row (k,), kg m^2 for revolute and kg for prismatic rows.

    Attributes:
        felt: ``S^T I^A S`` + armature, with all that the row carries free to move.
        rounding: Rounding error of ``felt``; a smaller inertia cannot be distinguished from zero.
    """

    felt: Float[np.ndarray, " rows"]
    rounding: Float[np.ndarray, " rows"]


def joint_inertia(model: Model, q: ArrayLike) -> JointInertia:
    """The articulated inertia of each row, and its rounding error in the model's dtype.

    ``D = S^T I^A S + armature`` with the articulated-body inertia ``I^A`` of the subtree of the row. The mass matrix is
    ``L diag(D) L^T`` with a unit triangular L, so that it is singular where a D is zero. Mimic joints count as
    independent joints.

    Args:
        model: A model with k rows.
        q: Configuration (nq,).

    Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, (7.43); Ploen and Park 1999, Proposition 1.
    """
    tree = model.topology
    unit = OPERATIONS * float(np.finfo(np.dtype(model.dtype)).eps)
    inertias = [_spatial(p) for p in np.asarray(model.inertias, float)]
    # |x . dA x| <= x . E x for all twists x and the error dA of A: E transforms like an inertia
    bounds = [unit * _size(A) for A in inertias]
    felt, rounding = np.zeros(tree.rows), np.zeros(tree.rows)
    # non-finite values are found by other checks
    with np.errstate(all="ignore"):
        _eliminate(model, np.asarray(q, float), unit, inertias, bounds, felt, rounding)
    return JointInertia(felt, rounding)


def joints_without_inertia(model: Model, q: ArrayLike) -> tuple[str, ...]:
    """The joints without inertia beyond rounding: forces on them have no finite acceleration.

    A joint that others mimic is included only if they have no inertia either.

    Args:
        q: Configuration (nq,).

    Returns:
        Names of joints; empty if the mass matrix is nonsingular.
    """
    tree = model.topology
    found = joint_inertia(model, q)
    weak = np.abs(found.felt) <= found.rounding
    borne = set(tree.row_source[~weak].tolist())
    rows = [row for row in np.flatnonzero(weak) if tree.row_source[row] not in borne]
    return tuple(dict.fromkeys(tree.joint_names[tree.row_joint[row]] for row in rows))


def describe_missing_inertia(model: Model, q: ArrayLike) -> str:
    """A message that names the joints without inertia and the remedy; empty if there are none.

    It says if this is so only in this configuration, as for massless links between axes that become collinear.

    Args:
        q: Configuration (nq,).
    """
    joints = joints_without_inertia(model, q)
    if not joints:
        return ""
    away = model.retract(jnp.asarray(q, model.dtype), jnp.linspace(0.3, 0.7, model.nv, dtype=model.dtype))
    here = "" if set(joints) & set(joints_without_inertia(model, away)) else " in this configuration"
    names = listed([repr(name) for name in joints])
    one = len(joints) == 1
    return (
        f"{'joint' if one else 'joints'} {names} {'moves' if one else 'move'} without inertia{here}: give the"
        f" {'link' if one else 'links'} behind {'it' if one else 'them'} mass and inertia, or the"
        f" {'joint' if one else 'joints'} an armature"
    )


def _eliminate(
    model: Model,
    q: Float[np.ndarray, " nq"],
    unit: float,
    inertias: list[Matrix],
    bounds: list[Matrix],
    felt: Float[np.ndarray, " rows"],
    rounding: Float[np.ndarray, " rows"],
) -> None:
    """Compute the articulated inertia of the rows and its rounding error inward; ``unit`` is the rounding of a sum."""
    tree, armature = model.topology, _own_armature(model)
    for body in reversed(range(tree.bodies)):
        A, E = inertias[body], bounds[body]
        for row, S, R, p in _steps_inwards(model, body, q):
            if row is not None:
                # U = I^A S, D = S . U + armature, and the bound of its error
                U = A @ S
                felt[row], rounding[row] = S @ U + armature[row], S @ E @ S + unit * armature[row]
                if abs(felt[row]) > rounding[row]:
                    free = np.eye(6) - np.outer(S, U) / felt[row]
                    A, E = A - np.outer(U, U) / felt[row], free.T @ E @ free + unit * _size(A)
            # to the previous frame: X^T I^A X
            X = np.block([[R.T, -R.T @ _hat(p)], [np.zeros((3, 3)), R.T]])
            A, E = X.T @ A @ X, X.T @ E @ X
            E = E + unit * _size(A)
        parent = tree.parents[body]
        if parent != WORLD:
            inertias[parent] = inertias[parent] + A
            bounds[parent] = bounds[parent] + E


def _own_armature(model: Model) -> Float[np.ndarray, " rows"]:
    """The armature of each row; for mimic joints, added up at the joint that they follow."""
    tree = model.topology
    own = tree.row_source == np.arange(tree.rows)
    # slicing a numpy array needs no compiled program per slice
    armature = np.asarray(model.drives, float)[:, DRIVES.index("armature")]
    return np.where(own, armature[tree.row_v], 0.0)


def _steps_inwards(
    model: Model, body: int, q: Float[np.ndarray, " nq"]
) -> Iterator[tuple[int | None, Float[np.ndarray, " 6"], Float[np.ndarray, "3 3"], Float[np.ndarray, " 3"]]]:
    """Steps from a body to its parent: (row or None, its screw, pose R, p of the present frame in the previous one)."""
    tree = model.topology
    joint, rows = tree.joints[body], range(tree.row_starts[body], tree.row_starts[body + 1])
    screws = np.asarray(model.screws, float)
    axes, pitches = screws[:, :3], screws[:, 3]
    units = {row: axes[row] / np.linalg.norm(axes[row]) for row in rows}
    # a group: all rows at one pose, then its transform
    if isinstance(joint, GroupJoint):
        for row in reversed(rows):
            turns = bool(tree.row_turns[row])
            yield row, _screw(turns, units[row], float(not turns)), np.eye(3), np.zeros(3)
        T = joint.transform(list(jnp.asarray(q[tree.q_slice(body)], model.dtype)))
        named = {kind.axis: units[row] for kind, row in zip(joint.rows, rows, strict=True)}
        E = np.stack([named[i] for i in range(3)], axis=1)
        R = np.array([[float(x) for x in r] for r in T.R])
        yield None, np.zeros(6), E @ R @ E.T, E @ np.array([float(x) for x in T.p])
    else:
        # rows in sequence, each after its own displacement; then the placement
        k, b = (1.0, 0.0) if tree.mimics[body] is None else np.asarray(model.mimic[body], float)
        for row in reversed(rows):
            x, turns = float(k * q[tree.row_q[row]] + b), bool(tree.row_turns[row])
            slide = pitches[row] if turns else 1.0
            R = _rotation(units[row], x) if turns else np.eye(3)
            yield row, _screw(turns, units[row], slide), R, units[row] * slide * x
    T = np.asarray(model.placements[body], float)
    yield None, np.zeros(6), T[:3, :3], T[:3, 3]


def _screw(turns: bool, axis: Float[np.ndarray, " 3"], slide: float) -> Float[np.ndarray, " 6"]:
    """The screw (v, w) of a row about or along an axis."""
    return np.concatenate([slide * axis, turns * axis])


def _rotation(axis: Float[np.ndarray, " 3"], angle: float) -> Float[np.ndarray, "3 3"]:
    """The rotation about a unit axis."""
    K = _hat(axis)
    return np.eye(3) + np.sin(angle) * K + 2 * np.sin(angle / 2) ** 2 * (K @ K)


def _hat(x: Float[np.ndarray, " 3"]) -> Float[np.ndarray, "3 3"]:
    """The matrix of the cross product with x."""
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def _spatial(p: Float[np.ndarray, " 10"]) -> Matrix:
    """The 6x6 inertia of a body with ten parameters on twists (v, w)."""
    h = _hat(p[1:4])
    return np.block([[p[0] * np.eye(3), -h], [h, p[PLACES]]])


def _size(A: Matrix) -> Matrix:
    """Mass and rotational inertia of A in every direction: the magnitude of the terms in its entries."""
    return np.diag(np.repeat([np.linalg.norm(A[:3, :3]), np.linalg.norm(A[3:, 3:])], 3))
