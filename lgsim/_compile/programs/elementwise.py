"""Reading rules for elementwise JAX primitives: each returns a function of scalar values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from lgsim._compile.programs.operations import FUNCTIONS, KINDS
from lgsim._compile.programs.program import Builder, UnsupportedProgramError
from lgsim._compile.xla.jax_internals import parameter, parameters

Scalar = Callable[..., int]
"""A function from the operand values to the result value."""


def _same(op: str) -> Callable[[Builder, Any], Scalar]:
    def made(b: Builder, equation: Any) -> Scalar:
        return lambda *values: b(op, *values)

    return made


def _divided(op: str) -> Callable[[Builder, Any], Scalar]:
    """Division; of integers only by a positive constant, since an integer division by zero traps."""

    def made(b: Builder, equation: Any) -> Scalar:
        if equation.invars[0].aval.dtype.kind == "f":
            return lambda x, y: b(op, x, y)

        def divided(x: int, y: int) -> int:
            if b.number(y) <= 0:
                raise UnsupportedProgramError("a division of integers by a divisor that is not a positive constant")
            return b(op, x, y)

        return divided

    return made


def _shifted(op: str) -> Callable[[Builder, Any], Scalar]:
    """A shift by a constant number of bits; LLVM leaves larger shifts than the width undefined."""

    def made(b: Builder, equation: Any) -> Scalar:
        bits = 8 * equation.invars[0].aval.dtype.itemsize

        def shifted(x: int, by: int) -> int:
            if not 0 <= b.number(by) < bits:
                raise UnsupportedProgramError("a shift by more bits than the width")
            return b(op, x, by)

        return shifted

    return made


def _identity(b: Builder, equation: Any) -> Scalar:
    return lambda x: x


def _convert(b: Builder, equation: Any) -> Scalar:
    kind = np.dtype(parameter(equation, "new_dtype")).name
    if kind not in KINDS:
        raise UnsupportedProgramError(f"numbers of dtype {kind}")
    return lambda x: b("convert", x, kind=kind)


def _bitcast(b: Builder, equation: Any) -> Scalar:
    kind, given = np.dtype(parameter(equation, "new_dtype")), equation.invars[0].aval.dtype
    if kind.itemsize != given.itemsize or kind.name not in KINDS:
        raise UnsupportedProgramError(f"the bits of {given} as {kind}")
    return lambda x: x if kind == given else b("bitcast", x, kind=kind.name)


def _select(b: Builder, equation: Any) -> Scalar:
    if len(equation.invars) > 3 or equation.invars[0].aval.dtype != bool:
        raise UnsupportedProgramError("a selection among more than two")
    return lambda choice, no, yes: b("select", choice, yes, no)


def _square(b: Builder, equation: Any) -> Scalar:
    return lambda x: b("mul", x, x)


def _integer_power(b: Builder, equation: Any) -> Scalar:
    exponent = parameter(equation, "y")

    def power(x: int) -> int:
        result, base, left = None, x, abs(exponent)
        while left:
            if left & 1:
                result = base if result is None else b("mul", result, base)
            left >>= 1
            if left:
                base = b("mul", base, base)
        one = b.constant(b.kind(x), 1)
        if result is None:
            return one
        return b("div", one, result) if exponent < 0 else result

    return power


def _inverse_root(b: Builder, equation: Any) -> Scalar:
    return lambda x: b("div", b.constant(b.kind(x), 1), b("sqrt", x))


def _is_finite(b: Builder, equation: Any) -> Scalar:
    return lambda x: b("lt", b("abs", x), b.constant(b.kind(x), np.inf))


def _logistic(b: Builder, equation: Any) -> Scalar:
    def logistic(x: int) -> int:
        one = b.constant(b.kind(x), 1)
        return b("div", one, b("add", one, b("exp", b("neg", x))))

    return logistic


def _round(b: Builder, equation: Any) -> Scalar:
    if parameter(equation, "rounding_method") != jax.lax.RoundingMethod.TO_NEAREST_EVEN:
        raise UnsupportedProgramError("a half rounded away from zero")
    return lambda x: b("round", x)


def _clamp(b: Builder, equation: Any) -> Scalar:
    return lambda low, x, high: b("min", b("max", x, low), high)


def _power(b: Builder, equation: Any) -> Scalar:
    if equation.invars[1].aval.dtype != equation.invars[0].aval.dtype:
        raise UnsupportedProgramError("a power of mixed dtypes")
    return lambda x, y: b("pow", x, y)


def _binary_logarithm(b: Builder, equation: Any) -> Scalar:
    return lambda x: b("mul", b("log", x), b.constant(b.kind(x), _BINARY))


_BINARY = 1.4426950408889634  # 1 / ln 2


def _one_minus_square(b: Builder, equation: Any) -> Scalar:
    def product(x: int) -> int:
        one = b.constant(b.kind(x), 1)
        return b("mul", b("add", one, x), b("sub", one, x))

    return product


def _polynomial(b: Builder, equation: Any) -> Scalar:
    """A polynomial by Horner's rule, from the last coefficient on."""

    def value(x: int, *coefficients: int) -> int:
        *rest, total = coefficients
        for coefficient in reversed(rest):
            total = b("add", b("mul", total, x), coefficient)
        return total

    return value


def _function(op: str) -> Callable[[Builder, Any], Scalar]:
    def made(b: Builder, equation: Any) -> Scalar:
        if getattr(parameters(equation).get("accuracy"), "value", None) is not None:
            raise UnsupportedProgramError(f"{op} with a given accuracy")
        return lambda *values: b(op, *values)

    return made


ELEMENTWISE: dict[str, Callable[[Builder, Any], Scalar]] = {
    **{op: _same(op) for op in (
        "add", "sub", "mul", "neg", "abs", "sign", "sqrt", "floor", "ceil", "max", "min",
        "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "not",
    )},
    **{op: _divided(op) for op in ("div", "rem")},
    **{op: _shifted(op) for op in ("shift_left", "shift_right_arithmetic", "shift_right_logical")},
    **{op: _function(op) for op in FUNCTIONS if op != "pow"},
    "add_any": _same("add"), "copy": _identity, "copy_p": _identity, "stop_gradient": _identity, "name": _identity,
    "convert_element_type": _convert, "bitcast_convert_type": _bitcast, "select_n": _select, "square": _square,
    "integer_pow": _integer_power, "rsqrt": _inverse_root, "is_finite": _is_finite, "logistic": _logistic,
    "round": _round, "clamp": _clamp, "pow": _power,
    # primitives since JAX 0.12, composed of others before
    "log2": _binary_logarithm, "one_minus_square": _one_minus_square, "polynomial": _polynomial,
}  # fmt: skip
"""Rules ``rule(builder, equation)`` by the name of the primitive; each returns a function of scalar values.

Raises:
    UnsupportedProgramError: no operation matches the equation's parameters.
"""
