"""Base parameters as formulas: the identifiable combinations of masses, moments and inertias."""

from __future__ import annotations

from typing import Any, NamedTuple

import sympy
from sympy import Matrix, Symbol
from sympy.polys.matrices import DomainMatrix

from lgsim.dynamics.regressor import torque_regressor
from lgsim.multibody.inertia import PARAMETERS
from lgsim.multibody.model import Model
from lgsim.symbolic.mechanics import Mechanics, mechanics


class LinearParameters(NamedTuple):
    """The minimal form ``tau = Y(q, v, a) combinations``, with independent columns."""

    Y: Matrix
    """(nv, p)."""
    combinations: Matrix
    """(p, 1): linear in ``parameters``, with coefficients that depend on lengths, placement angles and gravity."""
    parameters: tuple[Symbol, ...]
    """The ten parameters of each body, ``m1, mx1, ..., Izz1, m2, ...``, as in ``lgsim.multibody.inertia``."""
    q: tuple[Symbol, ...]
    """The configuration in Y."""
    v: tuple[Symbol, ...]
    """The velocity in Y."""
    a: tuple[Symbol, ...]
    """The acceleration in Y."""


def linear_parameters(model: Model) -> LinearParameters:
    """The minimal regressor form of inverse dynamics, with a combination of parameters for each remaining column.

    Columns of the regressor are functions of the motion. Those that depend on preceding columns are eliminated exactly,
    over the field of the model's own symbols, and their parameters are added to those of the preceding columns.

    Args:
        model: The model; its inertias and armatures are not used.

    Raises:
        ModelError: a symbol of the model has the name of a coordinate (q1, v1, a1, ...).
        SymbolicError: a model parameter that must be a polynomial in symbols is another function.

    Source: Khalil and Dombre, Modeling, Identification and Control of Robots, 2002, chapter 9, in exact arithmetic.
    """
    found = mechanics(model, None)
    Y = Matrix(found.expressions(torque_regressor, found.q, found.v, found.a))
    names = tuple(Symbol(f"{name}{i + 1}", real=True) for i in range(len(model.body_names)) for name in PARAMETERS)
    columns = [_coefficients(found, [Y[i, j] for i in range(Y.rows)]) for j in range(Y.cols)]
    rows = sorted({key for column in columns for key in column}, key=str)
    table = Matrix(len(rows), len(columns), lambda i, j: columns[j].get(rows[i], sympy.S.Zero))
    if not rows:
        return LinearParameters(Matrix(Y.rows, 0, []), Matrix(0, 1, []), names, found.q, found.v, found.a)
    reduced, pivots = DomainMatrix.from_Matrix(table).to_field().rref()
    share = reduced.to_Matrix()
    combinations = [
        sum((share[i, j] * names[j] for j in range(pivot + 1, len(names))), names[pivot])
        for i, pivot in enumerate(pivots)
    ]
    return LinearParameters(
        Y.extract(range(Y.rows), list(pivots)), Matrix(combinations).applyfunc(sympy.expand), names,
        found.q, found.v, found.a,
    )  # fmt: skip


def _coefficients(found: Mechanics, column: list[Any]) -> dict[tuple, Any]:
    """The coefficients of the independent functions of the motion, by (row, function): polynomials of parameters."""
    out: dict[tuple, Any] = {}
    moving = {x.name for x in (*found.q, *found.v, *found.a)}
    for row, x in enumerate(column):
        if x == 0:
            continue
        for place, coefficient in found.terms(x, moving):
            key = (row, place)
            out[key] = out.get(key, 0) + coefficient
    return out
