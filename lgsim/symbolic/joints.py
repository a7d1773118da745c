"""The joints of Kwatny and Blankenship as formulas: configuration, kinematic and joint map matrices with symbols.

This module uses the order of the paper, unlike the rest of lgsim: screws are angular first, ``h = (w, v)``, and columns
and coordinates are counted from the child, so that ``X = X_k(q_k) ... X_1(q_1)``. ``lgsim.multibody.joint_map`` has the
same maps for numbers, linear first and counted from the parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import sympy
from sympy import Matrix
from sympy.polys.matrices import DomainMatrix

from lgsim.multibody.topology import ModelError

Columns = Any
"""A matrix (6, k) of numbers or symbols, angular part first: a ``sympy.Matrix`` or nested lists."""


def configuration_matrix(r: Sequence[int], H: Columns, q: Sequence[Any]) -> Matrix:
    """``X(q) = exp(h_k q_k) ... exp(h_1 q_1)``, the pose (4, 4) of the child in the parent.

    Args:
        r: The degrees of freedom of the simple joints in the sequence, the child's first.
        H: (6, k) with k the sum of r: the columns (w, v) of each simple joint, in its child's frame, v in m/rad or 1.
        q: k names or symbols: angles in rad, distances in m.

    Raises:
        ModelError: shapes do not match, a coordinate is given twice or is in H, columns of a part are dependent, or
            they span no subalgebra, so that they belong to no simple joint.

    Source: Kwatny and Blankenship 1995, Proposition 1, Corollary 1, (12), (15), (26).
    """
    joint = _read(r, H, q)
    X = sympy.eye(4)
    for h, x in zip(joint.columns, joint.q, strict=True):
        X = _exponential(h, x) * X
    return X.applyfunc(_tidy)


def joint_map_matrix(r: Sequence[int], H: Columns, q: Sequence[Any]) -> Matrix:
    """The joint map matrix ``H(q)`` (6, k), ``(w, v) = H(q) p``, for quasi-velocities p of the parts.

    Arguments are those of ``configuration_matrix``; (w, v) is the child's body twist.

    Raises:
        ModelError: as ``configuration_matrix``.

    Source: Kwatny and Blankenship 1995, Proposition 3, (27)-(28).
    """
    joint = _read(r, H, q)
    back, found, done = sympy.eye(4), [], 0
    for k in joint.r:
        columns, x = joint.columns[done : done + k], joint.q[done : done + k]
        found += [_adjoint_inverse(back, h) for h in columns]
        for h, angle in zip(columns, x, strict=True):
            back = _exponential(h, angle) * back
        done += k
    return Matrix.hstack(*found).applyfunc(_tidy)


def kinematic_matrix(r: Sequence[int], H: Columns, q: Sequence[Any]) -> Matrix:
    """The kinematic matrix ``Gamma(q)`` (k, k), ``dq/dt = Gamma(q) p``: a block ``B^+ H`` for each part.

    B is the joint map matrix of the part's columns as a sequence, and ``B Gamma = H`` exactly. B remains in the span of
    H, a subalgebra. So with ``H^+ = (H^T H)^-1 H^T`` the block is ``(H^+ B)^-1``, equal to that of a left inverse of B.

    Arguments are those of ``configuration_matrix``.

    Raises:
        ModelError: as ``configuration_matrix``.

    Source: Kwatny and Blankenship 1995, Proposition 2, (16)-(19), (25).
    """
    joint = _read(r, H, q)
    blocks, done = [], 0
    for k in joint.r:
        part = Matrix.hstack(*joint.columns[done : done + k])
        x = joint.q[done : done + k]
        B = joint_map_matrix([1] * k, part, x)
        blocks.append(_inverse((_left_inverse(part) * B).applyfunc(_tidy)))
        done += k
    return sympy.diag(*blocks)


class _Joint(NamedTuple):
    r: tuple[int, ...]
    columns: list[Any]
    q: list[sympy.Symbol]


def _read(r: Sequence[int], H: Columns, q: Sequence[Any]) -> _Joint:
    try:
        matrix = Matrix(H).applyfunc(lambda x: sympy.nsimplify(x, rational=True))
    except (TypeError, ValueError) as error:
        raise ModelError(f"H: expected a matrix (6, k) of numbers or symbols: {error}") from error
    parts = tuple(r)
    if matrix.rows != 6 or matrix.cols < 1:
        raise ModelError(f"H: expected shape (6, k) with a column (w, v) for each screw, got {matrix.shape}")
    if not parts or any(k != int(k) or k < 1 for k in parts) or sum(parts) != matrix.cols:
        raise ModelError(
            f"r: expected the positive numbers of columns of the parts, with the sum {matrix.cols} of the columns of H,"
            f" got {list(parts)}"
        )
    names = [sympy.Symbol(x, real=True) if isinstance(x, str) else x for x in q]
    if len(names) != matrix.cols or len(set(names)) != len(names) or not all(x.is_Symbol for x in names):
        raise ModelError(f"q: expected {matrix.cols} different names or symbols, got {list(q)}")
    clash = {x.name for x in names} & {x.name for x in matrix.free_symbols}
    if clash:
        raise ModelError(f"q: {', '.join(sorted(clash))} is a coordinate and is in H; rename one of the two")
    done = 0
    for i, k in enumerate(parts):
        _check_simple(i, matrix[:, done : done + k])
        done += k
    return _Joint(tuple(int(k) for k in parts), [matrix[:, i] for i in range(matrix.cols)], names)


def _check_simple(part: int, H: Any) -> None:
    """Check that columns are those of a simple joint: independent, and closed under brackets.

    Raises:
        ModelError: they are not.
    """
    k = H.cols
    if H.rank(simplify=True) < k:
        raise ModelError(f"part {part}: expected {k} independent columns of H, got rank {H.rank(simplify=True)}")
    inside = H * _left_inverse(H)
    for i in range(k):
        for j in range(i + 1, k):
            b: Any = _bracket(H[:, i], H[:, j])
            if not (inside * b - b).applyfunc(sympy.simplify).is_zero_matrix:
                raise ModelError(
                    f"part {part}: its {k} columns are not a simple joint: the bracket of columns {i} and {j},"
                    f" {list(b)}, is not in their span, so that the constraint is not holonomic and no joint has the"
                    f" velocities H p; for a sequence of its screws give the compound joint r = {[1] * k}"
                )


def _left_inverse(H: Any) -> Matrix:
    """``(H^T H)^-1 H^T``."""
    return ((H.T * H).inv() * H.T).applyfunc(sympy.simplify)


def _bracket(a: Any, b: Any) -> Matrix:
    """The Lie bracket of screws (w, v)."""
    return Matrix.vstack(a[:3, :].cross(b[:3, :]), a[:3, :].cross(b[3:, :]) + a[3:, :].cross(b[:3, :]))


def _exponential(h: Any, x: Any) -> Matrix:
    """``exp(h x)`` (4, 4) by Rodrigues' formula, exactly."""
    w, v = h[:3, :], h[3:, :]
    square = sympy.simplify(w.dot(w))
    W, eye = w.hat(), sympy.eye(3)
    if square == 0:
        R, p = eye, v * x
    else:
        n = sympy.sqrt(square)
        s, c = sympy.sin(n * x), sympy.cos(n * x)
        R = eye + W * (s / n) + W * W * ((1 - c) / square)
        p = (eye * x + W * ((1 - c) / square) + W * W * ((x - s / n) / square)) * v
    return Matrix.vstack(Matrix.hstack(R, p), Matrix([[0, 0, 0, 1]]))


def _adjoint_inverse(X: Any, h: Any) -> Matrix:
    """``X^-1 h``: the screw in the frame with the pose X."""
    R, p = X[:3, :3], X[:3, 3]
    w, v = h[:3, :], h[3:, :]
    return Matrix.vstack(R.T * w, R.T * (v + w.cross(p)))


def _inverse(C: Matrix) -> Matrix:
    """The inverse of a matrix that is the identity at zero coordinates, by its independent blocks."""
    found = sympy.zeros(*C.shape)
    for places in C.connected_components():
        block = DomainMatrix.from_Matrix(C.extract(places, places)).to_field().inv().to_Matrix().applyfunc(_tidy)
        for (i, row), (j, column) in product(enumerate(places), enumerate(places)):
            found[row, column] = block[i, j]
    return found


def _tidy(x: Any) -> Any:
    return x if x.is_Atom else sympy.trigsimp(sympy.factor(sympy.trigsimp(x)))
