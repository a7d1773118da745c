"""Equations of motion as formulas: Poincare's in quasi-velocities, Lagrange's in a chart, poses and energies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lgsim import dynamics
from lgsim.dynamics.poincare import poincare_equations
from lgsim.multibody.model import Model
from lgsim.support.messages import unknown_name
from lgsim.symbolic.arithmetics.expressions import sympy_package
from lgsim.symbolic.coordinates import Coordinates, coordinates
from lgsim.symbolic.evaluate import evaluate
from lgsim.symbolic.merge import merged


class Poincare(NamedTuple):
    """``q' = V p`` and ``M p' + C p + F = Q_p`` as sympy matrices; Q_p are the forces dual to p."""

    V: Any
    """The vector fields of the quasi-velocities, (nq, nv)."""
    M: Any
    """The mass matrix, (nv, nv)."""
    C: Any
    """The matrix of the velocity terms ``C p``, (nv, nv)."""
    F: Any
    """The gravity forces, (nv, 1)."""
    q: Any
    """The coordinates, (nq, 1)."""
    p: Any
    """The quasi-velocities, (nv, 1)."""

    @property
    def velocity_terms(self) -> Any:
        """``C p``, expanded, (nv, 1)."""
        return (self.C * self.p).expand()

    def latex(self) -> str:
        """The equations in LaTeX."""
        s = sympy_package()
        dot = (
            s.Matrix([s.Symbol(rf"\dot{{{s.latex(x)}}}") for x in self.q]),
            s.Matrix([s.Symbol(rf"\dot{{{s.latex(x)}}}") for x in self.p]),
        )
        rows = (
            rf"{s.latex(dot[0])} &= {s.latex(self.V)} {s.latex(self.p)}",
            rf"Q &= {s.latex(self.M)} {s.latex(dot[1])} + {s.latex(self.velocity_terms)} + {s.latex(self.F)}",
        )
        return r"\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}"

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"


class Lagrange(NamedTuple):
    """``M q'' + c + g = tau`` as sympy matrices."""

    M: Any
    """The mass matrix, (n, n)."""
    c: Any
    """The velocity terms, (n, 1)."""
    g: Any
    """The gravity forces, (n, 1)."""
    q: Any
    """The coordinates, (n, 1)."""
    v: Any
    """Their rates, (n, 1)."""

    def latex(self) -> str:
        """The equations in LaTeX."""
        s = sympy_package()
        rates = s.Matrix([s.Symbol(rf"\ddot{{{s.latex(x)}}}") for x in self.q])
        return rf"\tau = {s.latex(self.M)} {s.latex(rates)} + {s.latex(self.c)} + {s.latex(self.g)}"

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"


def poincare(
    machine: Model, q: Sequence[Any] | None = None, p: Sequence[Any] | None = None, simplify: bool = True
) -> Poincare:
    """Poincare's equations of motion as formulas, see ``lgsim.dynamics.poincare.poincare_equations``.

    Joints with angles use a chart, joints with unit quaternions global coordinates. All entries are exact and in normal
    form, so that zero is printed as zero. ``lgsim.symbolic.model`` returns a model with symbols.

    Args:
        q: Names or symbols of the coordinates; by default q1, q2, ...
        p: Names or symbols of the quasi-velocities; by default p1, p2, ...
        simplify: Merge angles where that reduces the number of terms, as in ``cos(q1 + q2)``.

    Raises:
        ValueError: the number of names is wrong, or one occurs twice, also among the model's symbols.
        SymbolicError: an axis or another parameter of the model has an irrational root.

    Source: Kwatny and Blankenship 1995, (38)-(41), (53), with the signs of ``poincare_equations``.
    """
    at = coordinates(machine, q, "p" if p is None else p)
    found = evaluate(poincare_equations, at.ring)(at.machine, at.q, *at.vectors)
    V, M, C, F = (_matrix(at, x, simplify) for x in found)
    return Poincare(V, M, C, F, _column(at.q), _column(at.vectors[0]))


def lagrange(
    machine: Model, q: Sequence[Any] | None = None, v: Sequence[Any] | None = None, simplify: bool = True
) -> Lagrange:
    """Lagrange's equations of motion as formulas, for a model whose joints all have charts.

    Args:
        q: Names or symbols of the coordinates; by default q1, q2, ...
        v: Names or symbols of their rates; by default v1, v2, ...
        simplify: As for ``poincare``.

    Raises:
        ValueError: a joint has no chart, such as a ball joint; or as ``poincare``.
        SymbolicError: as ``poincare``.
    """
    for i, name in enumerate(machine.joint_names):
        joint = machine.topology.joints[i]
        if joint.nq != joint.nv:
            raise ValueError(
                f"lagrange: expected joints with charts, got {name!r}, a {type(joint).__name__}: its equations are not "
                "Lagrange's; use poincare, or a Compound of three revolute joints in its place"
            )
    at = coordinates(machine, q, "v" if v is None else v)

    def parts(machine: Model, q: Any, v: Any) -> tuple[Any, Any, Any]:
        g = dynamics.gravity_forces(machine, q)
        return dynamics.mass_matrix(machine, q), dynamics.bias_forces(machine, q, v) - g, g

    found = evaluate(parts, at.ring)(at.machine, at.q, *at.vectors)
    M, c, g = (_matrix(at, x, simplify) for x in found)
    return Lagrange(M, c, g, _column(at.q), _column(at.vectors[0]))


def end_effector(machine: Model, frame: str, q: Sequence[Any] | None = None, simplify: bool = True) -> Any:
    """Symbolic forward kinematics: the pose of an end effector or another frame, a sympy matrix (4, 4).

    Args:
        frame: Name of the frame or of a body.
        q: As for ``poincare``.
        simplify: As for ``poincare``.

    Raises:
        ValueError: the frame does not exist, or as ``poincare``.
    """
    names = machine.frame_names
    if frame not in names:
        raise ValueError(unknown_name("frame: expected the name of a frame", frame, names))
    at = coordinates(machine, q)
    place = names.index(frame)

    def pose(machine: Model, q: Any) -> Any:
        return dynamics.forward_kinematics(machine, q)[place]

    return _matrix(at, evaluate(pose, at.ring)(at.machine, at.q), simplify)


def potential(machine: Model, q: Sequence[Any] | None = None, simplify: bool = True) -> Any:
    """The gravitational potential energy as a formula.

    Args:
        q: As for ``poincare``.
        simplify: As for ``poincare``.

    Raises:
        ValueError: as ``poincare``.
    """
    at = coordinates(machine, q)
    return _scalar(at, evaluate(dynamics.potential_energy, at.ring)(at.machine, at.q), simplify)


def kinetic_energy(
    machine: Model, q: Sequence[Any] | None = None, p: Sequence[Any] | None = None, simplify: bool = True
) -> Any:
    """The kinetic energy as a formula.

    Args:
        q: As for ``poincare``.
        p: As for ``poincare``.
        simplify: As for ``poincare``.

    Raises:
        ValueError: as ``poincare``.
    """
    at = coordinates(machine, q, "p" if p is None else p)
    return _scalar(at, evaluate(dynamics.kinetic_energy, at.ring)(at.machine, at.q, *at.vectors), simplify)


def _scalar(at: Coordinates, x: np.ndarray, simplify: bool) -> Any:
    return merged(at.ring, x[()]) if simplify else at.ring.expression(x[()])


def _matrix(at: Coordinates, array: np.ndarray, simplify: bool) -> Any:
    shaped = array.reshape(array.shape[0], -1) if array.size else np.empty((0, 0), object)
    return sympy_package().Matrix(*shaped.shape, [_scalar(at, np.asarray(x, object), simplify) for x in shaped.flat])


def _column(array: np.ndarray) -> Any:
    return sympy_package().Matrix(len(array), 1, list(array))
