"""Simplification rules that a program's builder applies before it writes a statement, one per operation.

A rule returns an existing value that equals the operation, or None; see ``program.py`` for the exactness.
Types are not checked at run time: that would take ten times as much as a rule.
"""

from __future__ import annotations

from typing import Any, no_type_check

import numpy as np


@no_type_check
def _is(b: Any, value: int, number: Any) -> bool:
    return value < 0 and b.constants[-1 - value][1] == number


@no_type_check
def _add(b: Any, x: int, y: int) -> int | None:
    if x > y:
        x, y = y, x  # a constant comes first
    if x < 0 and _is(b, x, 0):
        return y
    if y < 0:
        return x if _is(b, y, 0) else None
    minus_y, minus_x = b.negated(y), b.negated(x)
    if minus_y is not None:
        return b("neg", b("add", minus_x, minus_y)) if minus_x is not None else b("sub", x, minus_y)
    if minus_x is not None:
        return b("sub", y, minus_x)
    return b.append("add", (x, y), b.kind(y))


@no_type_check
def _sub(b: Any, x: int, y: int) -> int | None:
    if y < 0 and _is(b, y, 0):
        return x
    if x < 0:
        if y < 0:
            return None
        if _is(b, x, 0):
            return b("neg", y)
    minus_y = b.negated(y)
    return None if minus_y is None else b("add", x, minus_y)


@no_type_check
def _mul(b: Any, x: int, y: int) -> int | None:
    if x > y:
        x, y = y, x
    if y < 0:
        return None
    if x < 0:
        number = b.constants[-1 - x][1]
        if number == 0:
            return b.constant(b.kind(y), 0)
        if number == 1:
            return y
        if number == -1:
            return b("neg", y)
    minus_y, minus_x = b.negated(y), b.negated(x)
    if minus_y is not None:
        return b("mul", minus_x, minus_y) if minus_x is not None else b("neg", b("mul", x, minus_y))
    if minus_x is not None:
        return b("neg", b("mul", minus_x, y))
    return b.append("mul", (x, y), b.kind(y))


@no_type_check
def _div(b: Any, x: int, y: int) -> int | None:
    if x < 0 and y < 0:
        return None
    if y < 0 and _is(b, y, 1):
        return x
    minus_y, minus_x = b.negated(y), b.negated(x)
    if minus_y is not None:
        return b("div", minus_x, minus_y) if minus_x is not None else b("neg", b("div", x, minus_y))
    return None if minus_x is None else b("neg", b("div", minus_x, y))


@no_type_check
def _select(b: Any, choice: int, x: int, y: int) -> int | None:
    if x == y:
        return x
    if choice < 0:
        return x if b.constants[-1 - choice][1] else y
    if x < 0 and y < 0 and b.kind(x) == "bool":
        return choice if b.constants[-1 - x][1] else b("not", choice)
    statement = b.statement(choice)
    if statement is not None and statement.op == "not":
        return b("select", statement.operands[0], y, x)
    return None


@no_type_check
def _neg(b: Any, x: int) -> int | None:
    return b.negated(x)


@no_type_check
def _not(b: Any, x: int) -> int | None:
    statement = b.statement(x)
    return statement.operands[0] if statement is not None and statement.op == "not" else None


@no_type_check
def _and(b: Any, x: int, y: int) -> int | None:
    if x > y:
        x, y = y, x
    if x == y:
        return x
    if x < 0 and b.kind(x) == "bool":
        return y if b.constants[-1 - x][1] else x
    return None


@no_type_check
def _or(b: Any, x: int, y: int) -> int | None:
    if x > y:
        x, y = y, x
    if x == y:
        return x
    if x < 0 and b.kind(x) == "bool":
        return x if b.constants[-1 - x][1] else y
    return None


@no_type_check
def _convert(b: Any, x: int, kind: str) -> int | None:
    given = b.kind(x)
    if given == kind:
        return x
    if kind == "bool" and x >= 0:
        statement = b.statement(x)
        if statement is not None and statement.op == "shift_right_arithmetic":  # JAX's test of the sign bit
            bits, by = statement.operands
            cast = b.statement(bits)
            if cast is not None and cast.op == "bitcast" and by < 0:
                of = b.kind(cast.operands[0])
                if of.startswith("float") and b.constants[-1 - by][1] == 8 * np.dtype(of).itemsize - 1:
                    return b("signbit", cast.operands[0])
        return b("ne", x, b.constant(given, 0))
    return None


SIMPLER = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "neg": _neg, "select": _select, "not": _not, "and": _and,
    "or": _or, "convert": _convert,
}  # fmt: skip
