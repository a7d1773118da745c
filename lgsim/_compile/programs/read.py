"""Straight-line programs from JAX functions of one state: loops of known length are unrolled, indices are constants.

The jaxpr of a function is interpreted on arrays of values of a program (``program.py``), a scalar being an ``int``.
Calls and loops are read here, other primitives by their rules in ``RULES``, and lgsim's own primitives by their
expansion in JAX primitives.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, no_type_check

import jax
import numpy as np
from jax.core import Tracer

from lgsim._compile.programs.arrays import RULES as ARRAY_RULES
from lgsim._compile.programs.arrays import Values
from lgsim._compile.programs.decompositions import DECOMPOSITIONS
from lgsim._compile.programs.elementwise import ELEMENTWISE
from lgsim._compile.programs.program import Builder, Program, TooLong, UnsupportedProgramError
from lgsim._compile.xla import expansion
from lgsim._compile.xla.fallback import note_primitive
from lgsim._compile.xla.jax_internals import called_program, calls_program, loop_counts, parameter
from lgsim._compile.xla.named_calls import call_name

RULES = {**ARRAY_RULES, **DECOMPOSITIONS}

SLACK = 2
"""Factor by which a program may exceed the limit during reading: much of it folds or is unused."""

_FOLDED = 8
"""Factor by which a program may exceed the limit before folding; it is four for a step of a legged robot."""


def read(
    f: Callable[..., Any],
    *examples: Any,
    limit: int | None = None,
    calls: Mapping[str, Callable[..., list[Values]]] | None = None,
) -> Program:
    """The program of a function of one state.

    Args:
        f: A function of pytrees of arrays.
        *examples: Its arguments, or ``jax.ShapeDtypeStruct`` for arrays; only shapes and dtypes are used. The inputs of
            the program are the leaves of all arguments, its outputs those of the result.
        limit: The maximum number of statements.
        calls: Rules of named calls, see ``Reader``; ``SINE_AND_COSINE`` for a target with its own functions.

    Raises:
        UnsupportedProgramError: a loop or an index depends on the state, a primitive has no rule, or the limit is
            exceeded.
    """
    return read_jaxpr(jax.make_jaxpr(f)(*examples), limit, calls)


def read_jaxpr(
    closed: Any, limit: int | None = None, calls: Mapping[str, Callable[..., list[Values]]] | None = None
) -> Program:
    """The program of a ``ClosedJaxpr``, see ``read``.

    Raises:
        UnsupportedProgramError: as ``read``.
    """
    if limit is not None and size(closed, _FOLDED * limit) > _FOLDED * limit:
        raise TooLong(f"more than {limit} statements")
    builder = Builder(None if limit is None else SLACK * limit)
    reader = Reader(builder, calls)
    args = [_scalar(builder.input(x.aval.dtype.name, x.aval.shape)) for x in closed.jaxpr.invars]
    with np.errstate(all="ignore"):
        found = reader.closed(closed, args)
    kinds = [x.aval.dtype.name for x in closed.jaxpr.outvars]
    program = builder.program([(kind, np.asarray(x)) for kind, x in zip(kinds, found, strict=True)])
    if limit is not None and len(program.statements) > limit:
        raise TooLong(f"{len(program.statements)} statements, more than {limit}")
    return program


def size(closed: Any, limit: int) -> int:
    """An estimate of the scalar operations of a jaxpr before simplification, without unrolling; at most ``limit``."""
    total = 0
    for equation in getattr(closed, "jaxpr", closed).eqns:
        name = equation.primitive.name
        if name in ELEMENTWISE:
            total += prod(equation.outvars[0].aval.shape)
        elif calls_program(name):
            total += size(called_program(equation), limit)
        elif name == "scan":
            total += parameter(equation, "length") * size(parameter(equation, "jaxpr"), limit)
        elif name == "while":
            total += size(parameter(equation, "body_jaxpr"), limit)
        elif name not in RULES:
            found = expansion(equation)
            total += 0 if found is None else size(found, limit)
        if total > limit:
            break
    return total


class Reader:
    """An interpreter of jaxprs on the values of a builder's program.

    Args:
        builder: The builder of the program.
        calls: ``rule(builder, *which, values)`` returns the results of a call by its name, see ``named_calls``; a call
            without a rule is inlined.
    """

    def __init__(self, builder: Builder, calls: Mapping[str, Callable[..., list[Values]]] | None = None) -> None:
        self.builder = builder
        self._calls = calls or {}
        self._prepared: dict[int, tuple] = {}
        self._consts: dict[int, tuple[Any, Values]] = {}
        self.unused: set[Any] = set()
        """Results of equations that nothing reads, so that a rule need not compute them."""

    def closed(self, closed: Any, args: Sequence[Values]) -> list[Values]:
        """The results of a ``ClosedJaxpr`` or of a jaxpr without constants."""
        jaxpr = getattr(closed, "jaxpr", closed)
        return self.run(jaxpr, [self._const(x) for x in getattr(closed, "consts", ())], args)

    @no_type_check
    def run(self, jaxpr: Any, consts: Sequence[Values], args: Sequence[Values]) -> list[Values]:
        """The results of a jaxpr."""
        found = self._prepared.get(id(jaxpr))
        if found is None:
            found = self._prepared[id(jaxpr)] = (*self._prepare(jaxpr), jaxpr)  # keeps the id of the jaxpr in use
        template, steps, given, outputs, _ = found
        env = template.copy()
        for slot, value in zip(given, (*consts, *args), strict=True):
            env[slot] = value
        _name = ""
        try:
            for _name, scalar, whole, equation, operands, results in steps:
                if scalar is not None:
                    env[results[0]] = scalar(*[env[i] for i in operands])
                    continue
                out = (
                    whole([env[i] for i in operands])
                    if equation is None
                    else whole(self, equation, [env[i] for i in operands])
                )
                for slot, value in zip(results, out, strict=True):
                    env[slot] = value
        except Exception as error:
            note_primitive(error, _name)
            raise
        return [env[i] for i in outputs]

    def _prepare(self, jaxpr: Any) -> tuple[list, list, list[int], list[int]]:
        """(values by slot, steps, slots of constants and arguments, slots of results)."""
        slots: dict[Any, int] = {}
        template: list[Any] = []

        def slot(variable: Any) -> int:
            if hasattr(variable, "val"):  # a literal
                template.append(_scalar(self.builder.array(np.asarray(variable.val, variable.aval.dtype))))
                return len(template) - 1
            if variable not in slots:
                slots[variable] = len(template)
                template.append(None)
            return slots[variable]

        given = [slot(v) for v in (*jaxpr.constvars, *jaxpr.invars)]
        read = {v for x in (*(e.invars for e in jaxpr.eqns), jaxpr.outvars) for v in x if not hasattr(v, "val")}
        steps = []
        for equation in jaxpr.eqns:
            self.unused.update(v for v in equation.outvars if v not in read)
            operands = [slot(v) for v in equation.invars]
            results = [slot(v) for v in equation.outvars]
            name = equation.primitive.name
            try:
                steps.append((name, *self.step(equation), operands, results))
            except Exception as error:
                note_primitive(error, name)
                raise
        return template, steps, given, [slot(v) for v in jaxpr.outvars]

    def step(self, equation: Any) -> tuple[Any, Any, Any]:
        """(function of scalars or None, function of lists of values, equation if the latter needs it)."""
        name = equation.primitive.name
        if self._calls:
            call, _, which = (call_name(equation) or "").partition("(")
            if call in self._calls:
                kinds = literal_eval(f"({which}") if which else ()
                return None, partial(self._calls[call], self.builder, *kinds), None
        made = ELEMENTWISE.get(name)
        if made is not None:
            scalar = made(self.builder, equation)
            if all(v.aval.shape == () for v in (*equation.invars, *equation.outvars)):
                return scalar, None, None
            shape = equation.outvars[0].aval.shape
            return None, lambda values: [_entrywise(scalar, shape, values)], None
        if name in RULES:
            return None, RULES[name], equation
        rule = Reader.call if calls_program(name) else _CONTROL.get(name, Reader._expanded)
        return None, rule, equation

    def _const(self, x: Any) -> Values:
        found = self._consts.get(id(x))
        if found is None:
            if isinstance(x, Tracer):
                raise UnsupportedProgramError("a constant that is traced")
            found = self._consts[id(x)] = x, _scalar(self.builder.array(x))
        return found[1]

    def call(self, equation: Any, values: list[Values]) -> list[Values]:
        """Read a call of a program."""
        return self.closed(called_program(equation), values)

    def _expanded(self, equation: Any, values: list[Values]) -> list[Values]:
        found = expansion(equation)
        if found is None:
            raise UnsupportedProgramError(f"no rule for the primitive {equation.primitive.name}")
        return self.closed(found, values)

    def scan(self, equation: Any, values: list[Values]) -> list[Values]:
        """Read a loop of known length."""
        count, carried = loop_counts(equation)
        body, length = parameter(equation, "jaxpr"), parameter(equation, "length")
        consts, carry, xs = values[:count], values[count : count + carried], values[count + carried :]
        order = range(length)
        entries: list[Any] = [None] * length
        for i in reversed(order) if parameter(equation, "reverse") else order:
            out = self.closed(body, [*consts, *carry, *(_scalar(x[i]) for x in xs)])  # type: ignore[index]
            carry, entries[i] = out[:carried], out[carried:]
        stacked = [v.aval for v in equation.outvars[carried:]]
        ys = [np.array([e[j] for e in entries], int).reshape(y.shape) for j, y in enumerate(stacked)]
        return [*carry, *ys]

    def while_loop(self, equation: Any, values: list[Values]) -> list[Values]:
        """Read a loop whose end does not depend on an input."""
        first = parameter(equation, "cond_nconsts")
        second = first + parameter(equation, "body_nconsts")
        going_on, step = parameter(equation, "cond_jaxpr"), parameter(equation, "body_jaxpr")
        test, body, carry = values[:first], values[first:second], values[second:]
        while True:
            going = self.closed(going_on, [*test, *carry])[0]
            if going >= 0:  # type: ignore[operator]
                raise UnsupportedProgramError("a loop whose end depends on the state")
            if not self.builder.number(going):  # type: ignore[arg-type]
                return carry
            carry = self.closed(step, [*body, *carry])

    def cond(self, equation: Any, values: list[Values]) -> list[Values]:
        """Read a branch; if it depends on an input, all branches and a selection of their results."""
        branches, index = parameter(equation, "branches"), values[0]
        if index < 0:  # type: ignore[operator]
            place = min(max(int(self.builder.number(index)), 0), len(branches) - 1)  # type: ignore[arg-type]
            return self.closed(branches[place], values[1:])
        found = [self.closed(branch, values[1:]) for branch in branches]
        out = found[-1]
        for place in range(len(branches) - 2, -1, -1):
            b, kind = self.builder, self.builder.kind(index)  # type: ignore[arg-type]
            here = b("le", index, b.constant(kind, place))  # type: ignore[arg-type]

            def choice(x: int, y: int, here: int = here) -> int:
                return self.builder("select", here, x, y)

            out = [_entrywise(choice, np.shape(x), [x, y]) for x, y in zip(found[place], out, strict=True)]
        return out


_CONTROL: dict[str, Any] = {"scan": Reader.scan, "while": Reader.while_loop, "cond": Reader.cond}


@no_type_check
def _sine_and_cosine(b: Builder, values: list[Values]) -> list[Values]:
    x = values[0]
    return [_entrywise(lambda x, op=op: b(op, x), np.shape(x), [x]) for op in ("sin", "cos")]


@no_type_check
def _of_twice(b: Builder, values: list[Values]) -> list[Values]:
    def twice(x: int) -> int:
        return b("mul", b.constant(b.kind(x), 2), x)

    return _sine_and_cosine(b, [_entrywise(twice, np.shape(values[0]), values)])


SINE_AND_COSINE: dict[str, Callable[..., list[Values]]] = {"sincos": _sine_and_cosine, "sincos_of_twice": _of_twice}
"""Rules of the named calls of sine and cosine: the operations ``sin`` and ``cos`` instead of polynomials."""


@no_type_check  # at run time: checking a call takes ten times as much as the call
def _scalar(values: Any) -> Values:
    return int(values) if np.ndim(values) == 0 else values


@no_type_check
def _entrywise(scalar: Callable[..., int], shape: tuple[int, ...], values: list[Values]) -> Values:
    if shape == ():
        return scalar(*values)
    flat = [np.broadcast_to(x, shape).ravel().tolist() for x in values]
    return np.array([scalar(*each) for each in zip(*flat, strict=True)], int).reshape(shape)
