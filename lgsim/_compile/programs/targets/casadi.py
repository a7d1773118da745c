"""CasADi: a ``casadi.Function`` on SX, for nonlinear programs and their exact sparse derivatives."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from lgsim._compile.programs.evaluate import evaluate
from lgsim._compile.programs.program import FUNCTIONS
from lgsim._compile.programs.targets.source import Interface
from lgsim.support.packages import package

_NAMES = {"abs": "fabs", "sign": "sign", "max": "fmax", "min": "fmin", "rem": "fmod", "select": "if_else",
          "and": "logic_and", "or": "logic_or", "not": "logic_not", "pow": "power"}  # fmt: skip

OPERATORS: dict[str, Any] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "convert": lambda x: x,
    **{op: _NAMES.get(op, op) for op in (
        "abs", "sign", "max", "min", "rem", "select", "and", "or", "not", "sqrt", "floor", "ceil",
        *(f for f in FUNCTIONS if f not in ("exp2", "cbrt")),
    )},
}  # fmt: skip
"""A function by operation, or the name of a casadi function."""


class Casadi:
    """CasADi as a target: a ``casadi.Function`` with matrices of the shapes of the program's arrays.

    A vector is a column; for arrays with more axes, all but the last one become rows.
    """

    def __call__(self, interface: Interface) -> Any:
        """Generate the casadi function of a program.

        Args:
            interface: The program and the names of its arguments and results.

        Raises:
            ModuleNotFoundError: casadi is missing; the message has the command to install it.
            NotImplementedError: the program has an operation that CasADi lacks.
        """
        casadi = package("casadi", "casadi", "the target Casadi")
        interface.checked(frozenset())
        symbols = [
            casadi.SX.sym(each.name, *_size(port.shape))
            for each, port in zip(interface.arguments, interface.program.inputs, strict=True)
        ]
        args = [_entries(x, port.shape) for x, port in zip(symbols, interface.program.inputs, strict=True)]
        operations = {op: _of(casadi, f) for op, f in OPERATORS.items()}
        results = evaluate(interface.program, *args, operations=operations)
        matrices = []
        for result, port in zip(results, interface.program.outputs, strict=True):
            matrix = casadi.SX(*_size(port.shape))
            for i, j in np.ndindex(*_size(port.shape)):
                matrix[i, j] = result.reshape(_size(port.shape))[i, j]
            matrices.append(matrix)
        names = [each.name for each in interface.arguments], [each.name for each in interface.results]
        return casadi.Function(interface.name, symbols, matrices, *names)


def _of(casadi: Any, f: Callable | str) -> Callable:
    return getattr(casadi, f) if isinstance(f, str) else f


def _size(shape: tuple[int, ...]) -> tuple[int, int]:
    if len(shape) < 2:
        return (*shape, 1) if shape else (1, 1)
    return int(np.prod(shape[:-1])), shape[-1]


def _entries(x: Any, shape: tuple[int, ...]) -> np.ndarray:
    found = np.empty(_size(shape), object)
    for i, j in np.ndindex(found.shape):
        found[i, j] = x[i, j]
    return found.reshape(shape)
