"""State-space models from the formulas of a model: linear, and affine in the input."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sympy
from sympy import Matrix, Symbol

from lgsim.multibody.model import Model
from lgsim.multibody.topology import ModelError
from lgsim.symbolic.control.vector_fields import normal_form
from lgsim.symbolic.mechanics import Mechanics, mechanics


class LinearModel(NamedTuple):
    """``d/dt (dq, dv) = A (dq, dv) + B dtau`` about an equilibrium."""

    A: Matrix
    """(2 nv, 2 nv); dq is along ``model.retract``, as for all explicit derivatives of lgsim.

    It is a plain difference of coordinates for all joints except planar, ball and free joints."""
    B: Matrix
    """(2 nv, m)."""
    tau: Matrix
    """(m, 1): the joint forces at the equilibrium, N m or N."""


def linearize(
    model: Model,
    equilibrium: Sequence[Any] | Mapping[str, Any] | None = None,
    actuated: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
) -> LinearModel:
    """The linearized model about an equilibrium, ``A21 = -M^-1 dG/dq``, ``A22 = -M^-1 D``, ``B2 = M^-1 S``.

    G are the joint forces against gravity and springs at rest, and D is the damping matrix.

    Args:
        model: The model, with symbols or numbers. Dry friction, which has no linear model at rest, and joint limits are
            ignored.
        equilibrium: The configuration: nq numbers or expressions, or some of them by the names of coordinates; the
            others are neutral. By default the neutral configuration.
        actuated: Names of the joints whose forces are inputs, by default all, in the order of the model.
        names: Names of the coordinates, by default q1, q2, ...

    Raises:
        ModelError: a name or a number of entries is wrong, an entry is not finite, the configuration is not an
            equilibrium (gravity or a spring moves a joint that is not actuated), or the mass matrix is singular there.
    """
    found = mechanics(model, names)
    at = _point(found, equilibrium)
    force = found.bias + found.passive
    static = force.xreplace(dict.fromkeys(found.v, sympy.S.Zero))
    held = static.xreplace(at).applyfunc(sympy.simplify)
    driven = list(range(model.nv)) if actuated is None else found.dofs(actuated)
    for i in range(model.nv):
        if i not in driven and held[i] != 0:
            raise ModelError(
                f"equilibrium: gravity or a spring moves degree of freedom {i}, which is not actuated, by {held[i]};"
                " give a configuration at which that is zero, or actuate the joint"
            )
    slope = (static.jacobian(found.q) * found.V).xreplace(at).applyfunc(sympy.simplify)
    damping = sympy.diag(*found.drive("damping"))
    inverse = _inverse(found.M.xreplace(at).applyfunc(sympy.simplify))
    n, none = model.nv, sympy.zeros(model.nv, model.nv)
    A = Matrix.vstack(
        Matrix.hstack(none, sympy.eye(n)), (-inverse * Matrix.hstack(slope, damping)).applyfunc(normal_form)
    )
    B = Matrix.vstack(sympy.zeros(n, len(driven)), inverse[:, driven])
    return LinearModel(A, B, held.extract(driven, [0]))


class ControlAffine(NamedTuple):
    """``dx/dt = f(x) + g(x) u``, the form that ``lgsim.symbolic.relative_degree`` and related functions take."""

    f: Matrix
    """The drift (nq + nv, 1)."""
    g: Matrix
    """(nq + nv, m): a column for each input."""
    x: tuple[Symbol, ...]
    """The configuration and the velocity."""


def control_affine(
    model: Model,
    actuated: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    rates: Sequence[str] | None = None,
) -> ControlAffine:
    """The control-affine state-space form of a model with few degrees of freedom, solved for the accelerations.

    Args:
        model: The model, with symbols or numbers, with its dampers and springs, without dry friction and joint limits.
        actuated: Names of the joints whose forces are inputs, by default all, in the order of the model.
        names: Names of the coordinates, by default q1, q2, ...
        rates: Names of the velocities, by default v1, v2, ...

    Raises:
        ModelError: a name is wrong, the mass matrix is singular, or the model has a quaternion or more than three
            degrees of freedom: its inverse mass matrix would be too long to read.
    """
    if model.nv > 3 or model.nq != model.nv:
        raise ModelError(
            f"model: expected at most three degrees of freedom, with one coordinate each, got nq = {model.nq} and"
            f" nv = {model.nv}; use linearize, which has no such limit, or lgsim.forward_dynamics for numbers"
        )
    found = mechanics(model, names, rates)
    driven = list(range(model.nv)) if actuated is None else found.dofs(actuated)
    inverse = _inverse(found.M)
    f = Matrix.vstack(found.V * Matrix(found.v), (-inverse * (found.bias + found.passive)).applyfunc(normal_form))
    g = Matrix.vstack(sympy.zeros(model.nq, len(driven)), inverse[:, driven])
    return ControlAffine(f, g, (*found.q, *found.v))


def _inverse(M: Matrix) -> Matrix:
    """The inverse of a mass matrix; entries are quotients in normal form.

    Raises:
        ModelError: the matrix is singular.
    """
    determinant = normal_form(M.det(method="berkowitz"))
    if determinant == 0:
        raise ModelError(
            "the mass matrix is singular: a joint moves no inertia, here or everywhere; give bodies"
            " inertia, joints armature, or another configuration"
        )
    return M.adjugate().applyfunc(lambda x: normal_form(x / determinant))


def _point(found: Mechanics, given: Sequence[Any] | Mapping[str, Any] | None) -> dict[Symbol, Any]:
    start = [sympy.Integer(int(x)) for x in found.neutral]
    if isinstance(given, Mapping):
        known = {x.name: x for x in found.q}
        for name in given:
            if str(name) not in known:
                raise ModelError(f"equilibrium: expected coordinates among {', '.join(known)}, got {name}")
        values = {str(name): _number(value) for name, value in given.items()}
        return {x: values.get(x.name, y) for x, y in zip(found.q, start, strict=True)}
    entries = start if given is None else [_number(x) for x in given]
    if len(entries) != len(start):
        raise ModelError(f"equilibrium: expected {len(start)} entries, got {len(entries)}")
    return dict(zip(found.q, entries, strict=True))


def _number(x: Any) -> Any:
    found = sympy.nsimplify(x, rational=True) if isinstance(x, float) and math.isfinite(x) else sympy.sympify(x)
    if found.is_finite is False or found is sympy.nan:
        raise ModelError(f"equilibrium: expected finite entries, got {x}")
    return found
