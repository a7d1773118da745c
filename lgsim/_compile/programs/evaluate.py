"""Evaluation of a program in any arithmetic: numpy floats and arrays, multiple-precision numbers, symbols."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lgsim._compile.programs.program import Program, fold


def evaluate(
    program: Program,
    *args: Any,
    operations: Mapping[str, Callable[..., Any]] | None = None,
    constant: Callable[[str, Any], Any] = lambda kind, number: number,
) -> list[np.ndarray]:
    """Evaluate a program; the outputs are arrays of numbers of the arithmetic.

    Args:
        *args: The inputs, arrays with the shapes of the program's inputs and entries of any number type.
        operations: The arithmetic: a function for each operation of ``operations.OPS``, such as
            ``python_operations(mpmath)``; by default numpy floats, rounded to the kinds of the program.
        constant: ``constant(kind, number)`` converts a constant to the arithmetic.

    Raises:
        ValueError: an input has another shape than in the program.
        NotImplementedError: the arithmetic lacks an operation.
    """
    if len(args) != len(program.inputs) or any(
        np.shape(x) != port.shape for x, port in zip(args, program.inputs, strict=True)
    ):
        raise ValueError(
            f"inputs: expected shapes {[p.shape for p in program.inputs]}, got {list(map(np.shape, args))}"
        )
    values = [x for arg in args for x in np.asarray(arg).ravel().tolist()]
    kinds = [port.kind for port in program.inputs for _ in port.values]

    def number(value: int) -> Any:
        return values[value] if value >= 0 else constant(*program.constants[-1 - value])

    with np.errstate(all="ignore"):
        for op, kind, operands in program.statements:
            if operations is None:
                given = [(kinds[x] if x >= 0 else program.constants[-1 - x][0], number(x)) for x in operands]
                values.append(fold(op, kind, given))
            else:
                if op not in operations:
                    raise NotImplementedError(f"the arithmetic has no operation {op}")
                values.append(operations[op](*map(number, operands)))
            kinds.append(kind)
    dtype = None if operations is None else object
    return [_array([number(x) for x in p.values], p.shape, dtype or p.kind) for p in program.outputs]


def _array(entries: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    out = np.empty(len(entries), dtype)
    for i, entry in enumerate(entries):
        out[i] = entry
    return out.reshape(shape)


def python_operations(functions: Any) -> dict[str, Callable[..., Any]]:
    """An arithmetic from Python's operators, and from the functions of a module with the names of mpmath.

    ``select`` evaluates the truth of a number, so that it works on numbers but not on symbols.

    Args:
        functions: A module such as ``mpmath`` or ``math``; functions that it lacks are left out.
    """
    found: dict[str, Callable[..., Any]] = {
        "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg,
        "abs": abs, "max": max, "min": min, "sign": lambda x: x if x == 0 else (1 if x > 0 else -1),
        "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
        "ge": operator.ge, "and": lambda x, y: x and y, "or": lambda x, y: x or y, "not": operator.not_,
        "select": lambda choice, x, y: x if choice else y, "signbit": lambda x: x < 0, "convert": lambda x: x,
        "pow": operator.pow,
    }  # fmt: skip
    other = {"round": "nint"}
    for op in (
        "sqrt", "floor", "ceil", "round", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh",
        "asinh", "acosh", "atanh", "exp", "expm1", "log", "log1p", "cbrt",
    ):  # fmt: skip
        function = getattr(functions, other.get(op, op), None)
        if function is not None:
            found[op] = function
    return found
