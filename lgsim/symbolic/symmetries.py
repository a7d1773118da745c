"""Conserved momenta of a model, each proved: its time derivative is zero as a polynomial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import sympy
from sympy import Expr, Matrix, Symbol
from sympy.polys.matrices import DomainMatrix

from lgsim.multibody.joint import GroupJoint
from lgsim.multibody.model import Model
from lgsim.symbolic.evaluate import evaluate
from lgsim.symbolic.mechanics import Mechanics, mechanics


class Conserved(NamedTuple):
    """A momentum that is constant for all motions while some joints have no force."""

    momentum: Expr
    """``a(q) . M(q) v``, kg m/s or kg m^2/s."""
    symmetry: Matrix
    """(nv, 1): a(q), the velocity along which neither the kinetic nor the potential energy changes."""
    unforced: tuple[str, ...]
    """The joints that must have no force; those of all others are arbitrary."""
    cyclic: tuple[Symbol, ...]
    """The cyclic coordinate that this is the momentum of, absent from all equations, if there is just one."""


def conserved(
    model: Model, names: Sequence[str] | None = None, rates: Sequence[str] | None = None
) -> tuple[Conserved, ...]:
    """The conserved momenta of cyclic coordinates and of motions of the whole model, with gravity, dampers and springs.

    Candidates are the momentum of each coordinate, and the momenta of rotations and translations about the axes of the
    frame of each group joint on the world. The result contains all linear combinations of them, with functions of the
    model's symbols as coefficients, whose derivative along every motion vanishes. This is Noether's theorem with its
    condition proved: ``d/dt (a . M v) = a' . M v + a . (M' v - h - p) = 0`` in exact normal form, with the forces p of
    dampers, springs and dry friction. Joint limits are ignored: the result is valid between them.

    Args:
        model: The model, with symbols or numbers.
        names: Names of the coordinates, by default q1, q2, ...
        rates: Names of the velocities, by default v1, v2, ...

    Raises:
        ValueError: the number of names is wrong, or one is a symbol of the model.
    """
    found = mechanics(model, names, rates)
    v = Matrix(found.v)
    dq = found.V * v
    candidates = [*_coordinates(found), *_whole(found)]
    momentum = found.M * v
    change = Matrix(
        [sum((entry.diff(x) * rate for x, rate in zip(found.q, dq, strict=True)), sympy.S.Zero) for entry in momentum]
    )
    # dry friction is a function of its own speed only, and is represented by that speed
    dry = found.drive("friction") + found.drive("stribeck")
    resistance = found.passive + dry.multiply_elementwise(v)
    slopes = []
    for a in candidates:
        da = a.jacobian(found.q) * dq
        slopes.append(found.tidied(sympy.expand((da.T * momentum + a.T * (change - found.bias - resistance))[0])))
    out = []
    for weights in _kernel(found, slopes):
        a: Any = sum((w * c for w, c in zip(weights, candidates, strict=True)), sympy.zeros(model.nv, 1))
        out.append(_conserved(found, a.applyfunc(sympy.expand), momentum))
    return tuple(out)


def _conserved(found: Mechanics, a: Any, momentum: Matrix) -> Conserved:
    model = found.model
    forced = tuple(
        name for name, part in model.v_slices.items() if any(a[i] != 0 for i in range(*part.indices(model.nv)))
    )
    places = [i for i in range(model.nv) if a[i] != 0]
    cyclic: tuple[Symbol, ...] = ()
    if len(places) == 1 and a[places[0]].is_number and model.nq == model.nv:
        cyclic = (found.q[places[0]],)
    return Conserved(found.tidied((a.T * momentum)[0]), a, forced, cyclic)


def _coordinates(found: Mechanics) -> list[Matrix]:
    """A unit velocity for each degree of freedom whose velocity is the rate of its own coordinate."""
    tree, out = found.model.topology, []
    for i, joint in enumerate(tree.joints):
        if tree.mimics[i] is None and not isinstance(joint, GroupJoint):
            out += [_unit(found, k) for k in range(*tree.v_slice(i).indices(tree.nv))]
    return out


def _whole(found: Mechanics) -> list[Matrix]:
    """The velocities of group joints on the world that rotate and translate all they carry about their frame axes."""
    tree, out = found.model.topology, []
    for i, joint in enumerate(tree.joints):
        if tree.parents[i] >= 0 or not isinstance(joint, GroupJoint):
            continue
        q = found.q[tree.q_slice(i)]
        R, p = _pose(found, joint, q)
        places = list(range(*tree.v_slice(i).indices(tree.nv)))
        rows = [3 * row.turns + row.axis for row in joint.rows]
        for row in joint.rows:
            e = sympy.eye(3)[:, row.axis]
            linear, angular = (R.T * e.cross(p), R.T * e) if row.turns else (R.T * e, sympy.zeros(3, 1))
            twist = Matrix.vstack(linear, angular)
            a = sympy.zeros(tree.nv, 1)
            for place, entry in zip(places, rows, strict=True):
                a[place] = twist[entry]
            out.append(a)
    return out


def _pose(found: Mechanics, joint: GroupJoint, q: Sequence[Symbol]) -> tuple[Matrix, Matrix]:
    """The rotation and position of a joint's child relative to its frame on the parent."""

    def pose(*parts: Any) -> tuple[Any, Any]:
        T = joint.transform(parts)
        return [list(row) for row in T.R], list(T.p)

    R, p = evaluate(pose, found.ring)(*found.ring.symbols([x.name for x in q]))
    return (
        Matrix(3, 3, [found.ring.expression(x.item()) for row in R for x in row]),
        Matrix([found.ring.expression(x.item()) for x in p]),
    )


def _unit(found: Mechanics, place: int) -> Matrix:
    return sympy.eye(found.model.nv)[:, place]


def _kernel(found: Mechanics, slopes: list[Expr]) -> list[list[Expr]]:
    """A basis of coefficients, functions of the model's symbols, for which the weighted derivatives sum to zero."""
    if not slopes:
        return []
    # a common denominator, so that each derivative is a polynomial in the functions of the motion
    moving = {x.name for x in (*found.q, *found.v)}
    bottom = sympy.S.One
    for slope in slopes:
        bottom = sympy.lcm(bottom, sympy.fraction(sympy.together(slope))[1])
    tables = []
    for slope in slopes:
        table: dict[tuple, Any] = {}
        for place, coefficient in found.terms(
            slope if bottom == 1 else sympy.expand(sympy.cancel(slope * bottom)), moving
        ):
            table[place] = table.get(place, 0) + coefficient
        tables.append(table)
    # one equation per function of the motion: sum_i c_i slope_i = 0; c spans the null space
    rows = sorted({key for table in tables for key in table}, key=str)
    if not rows:
        return [list(sympy.eye(len(slopes))[i, :]) for i in range(len(slopes))]
    matrix = Matrix(len(rows), len(tables), lambda i, j: tables[j].get(rows[i], sympy.S.Zero))
    kernel = DomainMatrix.from_Matrix(matrix).to_field().nullspace().to_Matrix()
    return [_primitive(list(kernel[i, :])) for i in range(kernel.rows)]


def _primitive(weights: list[Expr]) -> list[Expr]:
    """The coefficients without a common factor, and with a positive first one."""
    first = next(w for w in weights if w != 0)
    return [sympy.cancel(w / first) for w in weights]
