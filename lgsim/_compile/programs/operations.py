"""The kinds of values and the operations of straight-line programs, by name."""

from __future__ import annotations

KINDS = ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64")

FUNCTIONS = (
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "exp", "exp2", "expm1", "log", "log1p", "pow", "cbrt",
)  # fmt: skip
"""Functions that a target takes from its math library."""

OPS = (
    "add", "sub", "mul", "div", "rem", "neg", "abs", "sign", "sqrt", "floor", "ceil", "round", "max", "min",
    "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "not",
    "shift_left", "shift_right_arithmetic", "shift_right_logical",
    "select", "convert", "bitcast", "signbit", *FUNCTIONS,
)  # fmt: skip
"""The operations. ``select(c, x, y)`` is x if c is true, else y; ``round`` rounds a half to even."""

_UNARY = {"neg", "abs", "sign", "sqrt", "floor", "ceil", "round", "not", "convert", "bitcast", "signbit"}
_UNARY |= set(FUNCTIONS) - {"atan2", "pow"}

OPERANDS = {op: 1 if op in _UNARY else 3 if op == "select" else 2 for op in OPS}
"""The number of operands of each operation."""
