"""Geometric control of systems ``dx/dt = f(x) + g(x) u``: Lie brackets, relative degree, feedback linearization.

All results are exact: a function is zero if its normal form is, and a claimed rank is attained at a point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import sympy
from sympy import Expr, Matrix, Symbol
from sympy.polys.matrices import DomainMatrix

from lgsim.symbolic.control.jets import Jets


def lie_derivative(f: Any, h: Any, x: Sequence[Symbol], order: int = 1) -> Expr:
    """The Lie derivative ``L_f^order h``, with ``L_f h = dh/dx f``.

    Args:
        f: A vector field, n expressions.
        h: A function, an expression.
        x: The n coordinates.
        order: Number of differentiations.

    Raises:
        ValueError: f does not have one entry for each coordinate.
    """
    field, found = _column("f", f, x), sympy.sympify(h)
    for _ in range(order):
        found = normal_form((Matrix([found]).jacobian(list(x)) * field)[0])
    return found


def lie_bracket(f: Any, g: Any, x: Sequence[Symbol]) -> Matrix:
    """The Lie bracket ``[f, g] = dg/dx f - df/dx g``, (n, 1).

    Args:
        f: A vector field, n expressions.
        g: A vector field, n expressions.
        x: The n coordinates.

    Raises:
        ValueError: a field does not have one entry for each coordinate.
    """
    f, g = _column("f", f, x), _column("g", g, x)
    return (g.jacobian(list(x)) * f - f.jacobian(list(x)) * g).applyfunc(normal_form)


class RelativeDegree(NamedTuple):
    """The number of differentiations of each output until inputs appear."""

    degrees: tuple[int, ...]
    """Relative degree of each output."""
    decoupling: Matrix
    """(p, m): the entries ``L_gj L_f^(r_i - 1) h_i``, the coefficients of the inputs in those derivatives."""
    fails: tuple[Expr, ...]
    """The degrees are valid where none of these functions is zero."""


def relative_degree(f: Any, g: Any, h: Any, x: Sequence[Symbol]) -> RelativeDegree:
    """The (vector) relative degree of outputs ``h`` of ``dx/dt = f + g u``, at a point in general position.

    Args:
        f: The drift, n expressions.
        g: (n, m): a column for each input.
        h: An output, or p of them.
        x: The n coordinates.

    Raises:
        ValueError: shapes do not match; no input appears in any derivative of an output; or there are as many outputs
            as inputs, but the decoupling matrix is singular everywhere, so that there is no vector relative degree.

    Source: Isidori, Nonlinear Control Systems, 3rd ed., 4.1, 5.1.
    """
    drift, inputs = _column("f", f, x), _columns("g", g, x)
    degrees, rows = [], []
    for i, output in enumerate(_outputs(h)):
        degree, row, value = 0, sympy.zeros(1, inputs.cols), output
        while row.is_zero_matrix:
            if degree == len(x):
                raise ValueError(f"h: no input appears in any derivative of output {i}, {output}: no relative degree")
            slope = Matrix([value]).jacobian(list(x))
            row, value = (slope * inputs).applyfunc(normal_form), normal_form((slope * drift)[0])
            degree += 1
        degrees.append(degree)
        rows.append(row)
    decoupling = Matrix.vstack(*rows)
    if decoupling.rows != decoupling.cols:
        return RelativeDegree(tuple(degrees), decoupling, _zeros_of(list(decoupling), x))
    determinant = normal_form(decoupling.det(method="berkowitz"))
    if determinant == 0:
        raise ValueError(
            f"h: the inputs enter the derivatives of orders {degrees} dependently everywhere, so that there is no"
            " vector relative degree; choose other outputs, or extend the system by integrators at its inputs"
        )
    return RelativeDegree(tuple(degrees), decoupling, _zeros_of([determinant], x))


class LinearizingFeedback(NamedTuple):
    """A feedback that makes derivatives of the outputs the new inputs, ``d^r_i h_i/dt^r_i = v_i``."""

    u: Matrix
    """(m, 1): the input as a function of x and v."""
    v: tuple[Symbol, ...]
    """The new inputs."""
    outputs: tuple[tuple[Expr, ...], ...]
    """``h, L_f h, ..., L_f^(r - 1) h`` of each output: coordinates in which the system is chains of integrators."""
    degrees: tuple[int, ...]
    """Lengths of the chains."""
    hidden: int
    """Dimension of the zero dynamics, not observable from the outputs; 0 for full linearization."""
    fails: tuple[Expr, ...]
    """The feedback is defined where none of these functions is zero."""


def feedback_linearize(f: Any, g: Any, h: Any, x: Sequence[Symbol]) -> LinearizingFeedback:
    """Exact input-output linearization ``u = A(x)^-1 (v - L_f^r h)``, A being the decoupling matrix.

    Args:
        f: The drift, n expressions.
        g: (n, m): a column for each input.
        h: As many outputs as inputs.
        x: The n coordinates.

    Raises:
        ValueError: as ``relative_degree``, or the numbers of outputs and inputs differ.

    Source: Isidori, Nonlinear Control Systems, 3rd ed., 4.2, 5.2-5.3.
    """
    outputs, inputs = _outputs(h), _columns("g", g, x)
    if len(outputs) != inputs.cols:
        raise ValueError(f"h: expected as many outputs as inputs, {inputs.cols}, got {len(outputs)}")
    found = relative_degree(f, g, h, x)
    chains = []
    for output, degree in zip(outputs, found.degrees, strict=True):
        chain = [output]
        for _ in range(degree):
            chain.append(lie_derivative(f, chain[-1], x))
        chains.append(chain)
    taken = {s.name for s in Matrix([f, *outputs, inputs.reshape(len(inputs), 1)]).free_symbols | set(x)}
    v = tuple(Symbol(_free(f"v{i + 1}", taken), real=True) for i in range(len(outputs)))
    rest = Matrix([new - chain[-1] for new, chain in zip(v, chains, strict=True)])
    A = found.decoupling
    u = (A.adjugate() * rest).applyfunc(lambda y: normal_form(y / A.det(method="berkowitz")))
    return LinearizingFeedback(
        u, v, tuple(tuple(chain[:-1]) for chain in chains), found.degrees, len(x) - sum(found.degrees), found.fails
    )


def accessibility_rank(f: Any, g: Any, x: Sequence[Symbol], seed: int = 0) -> int:
    """The rank of strong accessibility: of the smallest distribution with g that is closed under [f, .] and [g, .].

    If it is n, the states reached at a fixed time fill open sets from every point in general position. The rank is
    computed at one rational point, where sines and cosines are rational. The generic rank is at least as large, and
    larger only if the point is in a set of measure zero.

    Args:
        f: The drift, n expressions.
        g: (n, m): a column for each input.
        x: The n coordinates.
        seed: Seed of the point.

    Raises:
        ValueError: shapes do not match, or a field is not rational in symbols and their sines and cosines.

    Source: Sussmann and Jurdjevic, Controllability of nonlinear systems, J. Diff. Eq. 12, 1972; Isidori, 2.2.
    """
    drift, inputs = _column("f", f, x), _columns("g", g, x)
    jets = Jets(x, len(x), seed)
    fields = [jets.field(field) for field in (drift, *(inputs[:, j] for j in range(inputs.cols)))]
    values: list[list[Any]] = []
    waiting = fields[1:]
    while waiting and len(values) < len(x):
        grown = []
        for field in waiting:
            more = [*values, jets.value(field)]
            if DomainMatrix(more, (len(more), len(x)), sympy.QQ).rank() > len(values):
                values = more
                grown.append(field)
        waiting = [jets.bracket(one, field) for field in grown for one in fields]
    return len(values)


def controllability_rank(A: Any, B: Any) -> int:
    """The rank of ``[B, A B, ..., A^(n-1) B]`` for matrices of rational functions of symbols in general position.

    Args:
        A: (n, n).
        B: (n, m).

    Raises:
        ValueError: shapes do not match.

    Source: Kalman, Ho, Narendra 1963.
    """
    A, B = Matrix(A), Matrix(B)
    if A.rows != A.cols or B.rows != A.rows:
        raise ValueError(f"A, B: expected shapes (n, n) and (n, m), got {A.shape} and {B.shape}")
    blocks = [B]
    for _ in range(A.rows - 1):
        blocks.append((A * blocks[-1]).applyfunc(normal_form))
    return _rank(Matrix.hstack(*blocks))


def _rank(M: Matrix) -> int:
    return DomainMatrix.from_Matrix(M).to_field().rank()


def normal_form(x: Any) -> Expr:
    """A form that is 0 if the function is: a quotient of polynomials in normal form, with 1 - cos^2 for sin^2."""
    if x.is_Atom:
        return x
    x = sympy.expand_trig(x)
    numerator, denominator = sympy.fraction(sympy.cancel(sympy.together(x)))
    numerator, denominator = _without_squares(numerator), _without_squares(denominator)
    if numerator == 0:
        return sympy.S.Zero
    return sympy.factor_terms(sympy.cancel(numerator / denominator))


def _without_squares(x: Any) -> Expr:
    """Replace ``sin^2`` by ``1 - cos^2`` in a polynomial."""
    sines = sorted(x.atoms(sympy.sin), key=str)
    x = sympy.expand(x)
    for sine in sines:
        polynomial = sympy.Poly(x, sine)
        cosine = sympy.cos(sine.args[0])
        x = sympy.expand(
            sum(c * sine ** (n % 2) * (1 - cosine**2) ** (n // 2) for (n,), c in polynomial.terms())
        )  # fmt: skip
    return x


def _zeros_of(functions: Sequence[Expr], x: Sequence[Symbol]) -> tuple[Expr, ...]:
    """The factors of numerators, in the coordinates, at whose zeros all functions vanish or one does."""
    found: list[Expr] = []
    common = sympy.S.Zero
    for function in functions:
        common = sympy.gcd(common, sympy.fraction(sympy.together(function))[0])
    for factor, _ in sympy.factor_list(_without_squares(common))[1] if common != 0 else ():
        if factor.free_symbols & set(x) and not factor.is_nonzero:
            found.append(factor)
    return tuple(found)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _outputs(h: Any) -> list[Expr]:
    return [sympy.sympify(y) for y in (h if isinstance(h, Sequence | sympy.MatrixBase) else [h])]


def _column(name: str, f: Any, x: Sequence[Symbol]) -> Matrix:
    field = Matrix(f)
    if field.shape != (len(x), 1):
        raise ValueError(f"{name}: expected {len(x)} entries, one for each coordinate, got shape {field.shape}")
    return field


def _columns(name: str, g: Any, x: Sequence[Symbol]) -> Any:
    found = Matrix(g)
    if found.rows != len(x) or found.cols < 1:
        raise ValueError(f"{name}: expected shape ({len(x)}, m), a column for each input, got {found.shape}")
    return found
