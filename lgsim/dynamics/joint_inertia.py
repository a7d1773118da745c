"""The inertia that each joint feels, and the joints that feel none: their machine has a singular mass matrix.

This is numpy on one state, for messages: nothing is traced or compiled.
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
"""Rounding units of the largest term by which a sum of products may be off."""


class JointInertia(NamedTuple):
    """What the rows of a machine feel, (k,) each, in kg m^2 where the row turns and kg where it slides.

    Attributes:
        felt: ``S^T I^A S`` + armature, what the row carries being free to move.
        rounding: By how much that is off because what was summed was rounded; no inertia below it is known.
    """

    felt: Float[np.ndarray, " rows"]
    rounding: Float[np.ndarray, " rows"]


def joint_inertia(model: Model, q: ArrayLike) -> JointInertia:
    """The inertia that each row of a machine feels, and its rounding in the model's dtype.

    ``D = S^T I^A S + armature`` with the articulated inertia ``I^A`` of what the row carries. The mass matrix is
    ``L diag(D) L^T`` with a unit triangular L, so that it is singular where a D is zero. Joints that mimic another one
    count as joints of their own.

    Args:
        model: The machine, k rows.
        q: Configuration (nq,).

    Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, (7.43); Ploen and Park 1999, Proposition 1.
    """
    tree = model.topology
    unit = OPERATIONS * float(np.finfo(np.dtype(model.dtype)).eps)
    inertias = [_spatial(p) for p in np.asarray(model.inertias, float)]
    # |x . dA x| <= x . E x for all twists x and the error dA of A: the bound moves like an inertia
    bounds = [unit * _size(A) for A in inertias]
    felt, rounding = np.zeros(tree.rows), np.zeros(tree.rows)
    # what is not finite is no fault of this kind: it is found by other checks
    with np.errstate(all="ignore"):
        _eliminate(model, np.asarray(q, float), unit, inertias, bounds, felt, rounding)
    return JointInertia(felt, rounding)


def joints_without_inertia(model: Model, q: ArrayLike) -> tuple[str, ...]:
    """The joints that feel no inertia beyond rounding: forces on them have no finite acceleration.

    A joint that others mimic is named only where they feel none either.

    Args:
        q: Configuration (nq,).

    Returns:
        Names of joints; empty where the mass matrix can be solved.
    """
    tree = model.topology
    found = joint_inertia(model, q)
    weak = np.abs(found.felt) <= found.rounding
    borne = set(tree.row_source[~weak].tolist())
    rows = [row for row in np.flatnonzero(weak) if tree.row_source[row] not in borne]
    return tuple(dict.fromkeys(tree.joint_names[tree.row_joint[row]] for row in rows))


def describe_missing_inertia(model: Model, q: ArrayLike) -> str:
    """Which joints move without inertia and what to do, in words; empty where none does.

    It says where this is so only in this configuration, as of links without mass between axes that meet in one line.

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
    """Fill in what the rows feel and its rounding, from the tips inwards; ``unit`` is the rounding of a sum."""
    tree, armature = model.topology, _own_armature(model)
    for body in reversed(range(tree.bodies)):
        A, E = inertias[body], bounds[body]
        for row, S, R, p in _steps_inwards(model, body, q):
            if row is not None:
                U = A @ S
                felt[row], rounding[row] = S @ U + armature[row], S @ E @ S + unit * armature[row]
                if abs(felt[row]) > rounding[row]:
                    free = np.eye(6) - np.outer(S, U) / felt[row]
                    A, E = A - np.outer(U, U) / felt[row], free.T @ E @ free + unit * _size(A)
            X = np.block([[R.T, -R.T @ _hat(p)], [np.zeros((3, 3)), R.T]])
            A, E = X.T @ A @ X, X.T @ E @ X
            E = E + unit * _size(A)
        parent = tree.parents[body]
        if parent != WORLD:
            inertias[parent] = inertias[parent] + A
            bounds[parent] = bounds[parent] + E


def _own_armature(model: Model) -> Float[np.ndarray, " rows"]:
    """The armature of each row; of joints that mimic it is that of the joint that they follow, added there."""
    tree = model.topology
    own = tree.row_source == np.arange(tree.rows)
    # parts of an array of numpy are taken without a program for each
    armature = np.asarray(model.drives, float)[:, DRIVES.index("armature")]
    return np.where(own, armature[tree.row_v], 0.0)


def _steps_inwards(
    model: Model, body: int, q: Float[np.ndarray, " nq"]
) -> Iterator[tuple[int | None, Float[np.ndarray, " 6"], Float[np.ndarray, "3 3"], Float[np.ndarray, " 3"]]]:
    """From a body to its parent: (row or None, its screw, pose R, p of the present frame in the one before it)."""
    tree = model.topology
    joint, rows = tree.joints[body], range(tree.row_starts[body], tree.row_starts[body + 1])
    screws = np.asarray(model.screws, float)
    axes, pitches = screws[:, :3], screws[:, 3]
    units = {row: axes[row] / np.linalg.norm(axes[row]) for row in rows}
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
    """The turn about a unit axis."""
    K = _hat(axis)
    return np.eye(3) + np.sin(angle) * K + 2 * np.sin(angle / 2) ** 2 * (K @ K)


def _hat(x: Float[np.ndarray, " 3"]) -> Float[np.ndarray, "3 3"]:
    """The matrix of the cross product with x."""
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def _spatial(p: Float[np.ndarray, " 10"]) -> Matrix:
    """The inertia (6, 6) of a body of ten parameters on twists (v, w)."""
    h = _hat(p[1:4])
    return np.block([[p[0] * np.eye(3), -h], [h, p[PLACES]]])


def _size(A: Matrix) -> Matrix:
    """Mass and rotational inertia of A in every direction: the size of what its entries are sums of."""
    return np.diag(np.repeat([np.linalg.norm(A[:3, :3]), np.linalg.norm(A[3:, 3:])], 3))
