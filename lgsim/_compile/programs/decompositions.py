"""Reading rules for decompositions and triangular systems of small matrices, which skip what is known to be zero."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, no_type_check

import numpy as np

from lgsim._compile.programs.arrays import Values
from lgsim._compile.programs.program import Builder, UnsupportedProgramError
from lgsim._compile.xla.jax_internals import parameter

ROTATION = 20
"""The cost of a root and two quotients, in products."""


@no_type_check
def _qr(reader: Any, equation: Any, values: list[Values]) -> list[Values]:
    """R of a QR decomposition, by reflections of Householder or rotations of Givens, whichever costs less.

    Rotations from the last row upward keep a triangle that is already there.

    Source: Golub, Van Loan, Matrix Computations, 2013, sections 5.1 and 5.2.
    """
    if equation.outvars[0] not in reader.unused or values[0].ndim != 2:
        raise UnsupportedProgramError("the factor Q of a QR decomposition, or several of them")
    b: Builder = reader.builder
    A = values[0].copy()
    m, n = A.shape
    zero = b.constant(b.kind(int(A[0, 0])), 0) if A.size else 0
    rotations = min((False, True), key=lambda rotations: _cost(np.not_equal(A, zero), rotations))
    zero_rows = _rotate if rotations else _reflect
    for k in range(min(m, n)):
        for rows in _groups(np.not_equal(A[:, k], zero), k, rotations):
            zero_rows(b, A, k, rows, zero)
    return [A, A[: min(m, n)]]


def _groups(filled: np.ndarray, k: int, rotations: bool) -> list[list[int]]:
    """The rows below k of a column that are to be zeroed: one after the other from the last, or all at once."""
    rows = [int(i) for i in np.flatnonzero(filled[k + 1 :])[::-1] + k + 1]
    return [[row] for row in rows] if rotations else [rows] if rows else []


def _cost(filled: np.ndarray, rotations: bool) -> int:
    """The number of products for a matrix with these entries."""
    filled, cost = filled.copy(), 0
    for k in range(min(filled.shape)):
        for rows in _groups(filled[:, k], k, rotations):
            any_of = np.any(filled[[k, *rows]], axis=0)
            cost += ROTATION + (2 if rotations else len(rows) + 1) * int(np.sum(any_of[k + 1 :])) * 2
            filled[[k, *rows]] = any_of
            filled[rows, k] = False
    return cost


@no_type_check
def _reflect(b: Builder, A: np.ndarray, k: int, rows: list[int], zero: int) -> None:
    """Zero the entries (rows, k) by a reflection, so that (k, k) is not negative; without cancellation."""
    one, two = (b.constant(b.kind(zero), number) for number in (1, 2))
    pivot, below = int(A[k, k]), [int(x) for x in A[rows, k]]
    rest = _sum(b, [b("mul", x, x) for x in below])
    length = b("sqrt", b("add", b("mul", pivot, pivot), rest))
    other = b("neg", b("div", rest, b("add", pivot, length)))
    first = b("select", b("le", pivot, zero), b("sub", pivot, length), other)
    size = b("add", b("mul", first, first), rest)
    none = b("eq", size, zero)
    scale = b("select", none, zero, b("div", two, b("select", none, one, size)))
    normal = [first, *below]
    scaled = [b("mul", scale, x) for x in normal]
    places = [k, *rows]
    for j in range(k + 1, A.shape[1]):
        column = [int(x) for x in A[places, j]]
        share = _sum(b, [b("mul", x, y) for x, y in zip(scaled, column, strict=True)])
        A[places, j] = [b("sub", y, b("mul", share, x)) for x, y in zip(normal, column, strict=True)]
    A[places, k] = [length, *[zero] * len(rows)]


@no_type_check
def _rotate(b: Builder, A: np.ndarray, k: int, rows: list[int], zero: int) -> None:
    """Zero the entry (row, k) by a rotation of two rows."""
    (row,) = rows
    one = b.constant(b.kind(zero), 1)
    x, y = int(A[k, k]), int(A[row, k])
    length = b("sqrt", b("add", b("mul", x, x), b("mul", y, y)))
    none = b("eq", length, zero)
    inverse = b("div", one, b("select", none, one, length))
    c, s = b("select", none, one, b("mul", x, inverse)), b("mul", y, inverse)
    for j in range(k + 1, A.shape[1]):
        u, v = int(A[k, j]), int(A[row, j])
        A[k, j] = b("add", b("mul", c, u), b("mul", s, v))
        A[row, j] = b("sub", b("mul", c, v), b("mul", s, u))
    A[k, k], A[row, k] = length, zero


@no_type_check
def _triangular_solve(reader: Any, equation: Any, values: list[Values]) -> list[Values]:
    """``A^-1 B`` of a triangular A by substitution."""
    A, B = values
    if A.ndim != 2:
        raise UnsupportedProgramError("several triangular systems")
    b: Builder = reader.builder
    left, lower = parameter(equation, "left_side"), parameter(equation, "lower")
    # every case is that of a lower triangle on the left
    if parameter(equation, "transpose_a") is not (not left):
        A, lower = A.T, not lower
    B = B if left else B.T
    if not lower:
        A, B = A[::-1, ::-1], B[::-1]
    X = np.array(B)
    for i in range(len(A)):
        inverse = None if parameter(equation, "unit_diagonal") else b("div", b.constant(b.kind(A[i, i]), 1), A[i, i])
        for j in range(X.shape[1]):
            x = int(X[i, j])
            for k in range(i):
                x = b("sub", x, b("mul", int(A[i, k]), int(X[k, j])))
            X[i, j] = x if inverse is None else b("mul", x, inverse)
    X = X if lower else X[::-1]
    return [X if left else X.T]


@no_type_check
def _sum(b: Builder, terms: list[int]) -> int:
    """The sum of values, by pairs."""
    while len(terms) > 1:
        last = terms[-1:] if len(terms) % 2 else []
        terms = [b("add", x, y) for x, y in list(pairwise(terms))[::2]] + last
    return terms[0]


DECOMPOSITIONS = {"qr": _qr, "triangular_solve": _triangular_solve}
"""Rules by the name of the primitive, see ``arrays.RULES``."""
