"""Rules for JAX's linear algebra primitives on entries of an arithmetic: exact elimination, without iterations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, no_type_check

import numpy as np

from lgsim._compile.xla.jax_internals import parameter, parameters


@no_type_check
def _triangular_solve(reader: Any, equation: Any, values: list[Any]) -> list[Any]:
    p = parameters(equation)
    a, b = (np.asarray(x) for x in values)
    if p["transpose_a"]:
        a = np.swapaxes(a, -1, -2)
    if not p["left_side"]:  # x a = b is a^T x^T = b^T
        a, b = np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)
    lower = p["lower"] != p["transpose_a"]
    lower = lower if p["left_side"] else not lower
    out = np.array(b)
    for at in np.ndindex(b.shape[:-2]):
        out[at] = _substituted(reader.builder, a[at], b[at], lower, p["unit_diagonal"])
    return [out if p["left_side"] else np.swapaxes(out, -1, -2)]


@no_type_check
def _substituted(builder: Any, a: np.ndarray, b: np.ndarray, lower: bool, unit: bool) -> np.ndarray:
    n, x = len(a), np.array(b)
    order = range(n) if lower else range(n - 1, -1, -1)
    for column in range(b.shape[1]):
        for i in order:
            total = int(b[i, column])
            for j in range(i) if lower else range(i + 1, n):
                total = builder("sub", total, builder("mul", int(a[i, j]), int(x[j, column])))
            x[i, column] = total if unit else builder("div", total, int(a[i, i]))
    return x


@no_type_check
def _lu(reader: Any, equation: Any, values: list[Any]) -> list[Any]:
    """LU factors; the pivot is the first entry that is not zero, since symbols have no magnitudes to compare."""
    b, a = reader.builder, np.array(values[0])
    n, m = a.shape[-2:]
    pivots = np.zeros((*a.shape[:-2], min(n, m)), int)
    orders = np.zeros((*a.shape[:-2], n), int)
    for at in np.ndindex(a.shape[:-2]):
        part, order = a[at], list(range(n))
        for k in range(min(n, m)):
            row = next((i for i in range(k, n) if part[i, k] >= 0 or b.number(int(part[i, k])) != 0), k)
            part[[k, row]], pivots[(*at, k)] = part[[row, k]], row
            order[k], order[row] = order[row], order[k]
            for i in range(k + 1, n):
                part[i, k] = b("div", int(part[i, k]), int(part[k, k]))
                for j in range(k + 1, m):
                    part[i, j] = b("sub", int(part[i, j]), b("mul", int(part[i, k]), int(part[k, j])))
        a[at], orders[at] = part, order
    return [a, b.array(pivots.astype(np.int32)), b.array(orders.astype(np.int32))]


@no_type_check
def _linear_solve(reader: Any, equation: Any, values: list[Any]) -> list[Any]:
    lengths = parameter(equation, "const_lengths")
    first = lengths.matvec + lengths.vecmat
    rest = first + lengths.solve + lengths.transpose_solve
    given = [*values[first : first + lengths.solve], *values[rest:]]
    return reader.closed(parameter(equation, "jaxprs").solve, given)


LINEAR_ALGEBRA: dict[str, Callable[..., list[Any]]] = {
    "triangular_solve": _triangular_solve, "lu": _lu, "custom_linear_solve": _linear_solve,
}  # fmt: skip
"""Rules ``rule(reader, equation, operands)`` by the name of the primitive."""
