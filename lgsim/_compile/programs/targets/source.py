"""The input of all targets that write text: a program with the names of its arguments and results."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from lgsim._compile.programs.program import Port, Program, Statement
from lgsim.support.printable import comment_lines

_ARITHMETIC = ("add", "sub", "mul", "div")


class Described(NamedTuple):
    """The description of an argument or a result.

    Attributes:
        name: Its name in the generated code.
        about: Lines of a comment: order, units, frames.
    """

    name: str
    about: tuple[str, ...] = ()


class Interface(NamedTuple):
    """A program with the names of a generated function.

    Attributes:
        name: The name of the function.
        program: The program.
        arguments: Descriptions of the program's inputs, in order.
        results: Descriptions of the program's outputs, in order.
        about: Lines of a comment on the function.
    """

    name: str
    program: Program
    arguments: tuple[Described, ...]
    results: tuple[Described, ...]
    about: tuple[str, ...] = ()

    def counts(self) -> str:
        """The number of operations of each kind, as text."""
        counts = _operation_counts(self.program)
        return ", ".join(f"{n} {op}" for op, n in counts.items())

    @property
    def operations(self) -> int:
        """The total number of sums, differences, products and quotients."""
        return sum(n for op, n in _operation_counts(self.program).items() if op in _ARITHMETIC)

    def checked(self, reserved: frozenset[str]) -> Interface:
        """This interface, after a check of its names for a language.

        Args:
            reserved: Keywords of the language.

        Raises:
            ValueError: a name is not an identifier, is reserved, or occurs twice.
        """
        names = [self.name, *(x.name for x in (*self.arguments, *self.results))]
        for i, name in enumerate(names):
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
                raise ValueError(f"name {name!r}: expected letters, digits and underscores, a letter first")
            if name in reserved or keyword.iskeyword(name) or re.fullmatch(r"t[0-9]+", name):
                raise ValueError(f"name {name!r}: it is reserved in the generated code; take another one")
            if name in names[:i]:
                raise ValueError(f"name {name!r}: it occurs twice among the function, its arguments and its results")
        return self


class Code(NamedTuple):
    """Generated code of a function.

    Attributes:
        name: The name of the function.
        header: The header for callers in other files; empty for languages without headers.
        suffix: Suffix of the source file, such as ``.c``.
        interface: The program and names of the code.
    """

    name: str
    source: str
    header: str
    suffix: str
    interface: Interface

    @property
    def program(self) -> Program:
        """The program of the code."""
        return self.interface.program

    @property
    def counts(self) -> dict[str, int]:
        """The number of operations of each kind."""
        return _operation_counts(self.program)

    @property
    def operations(self) -> int:
        """``Interface.operations``."""
        return self.interface.operations

    def files(self) -> dict[str, bytes]:
        """The contents of the files by file name."""
        made = {self.name + self.suffix: self.source.encode()}
        if self.header:
            made[f"{self.name}.h"] = self.header.encode()
        return made


def comment(texts: Iterable[str], begin: str) -> str:
    """The lines of a comment in any language, see ``comment_lines``.

    Args:
        texts: Lines of the comment.
        begin: Prefix of each line.
    """
    return "\n".join(f"{begin}{line}".rstrip() for text in texts for line in comment_lines(text))


def _operation_counts(program: Program) -> dict[str, int]:
    """The number of occurrences of each operation: sums, differences, products and quotients first."""
    counts = program.counts()
    order = [*_ARITHMETIC, *sorted(counts.keys() - set(_ARITHMETIC))]
    return {op: counts[op] for op in order if counts.get(op)}


def place(port: Port, entry: int) -> tuple[int, ...]:
    """The indices of an entry of an array, from 0."""
    return tuple(int(i) for i in np.unravel_index(entry, port.shape)) if port.shape else ()


def kinds(program: Program) -> list[str]:
    """The kind of each value that is not a constant."""
    return [p.kind for p in program.inputs for _ in p.values] + [s.kind for s in program.statements]


def used_inputs(program: Program) -> set[int]:
    """Input values that a statement or an output uses."""
    needed = {x for s in program.statements for x in s.operands} | {x for p in program.outputs for x in p.values}
    return {x for x in needed if 0 <= x < program.entries}


def expression(
    statement: Statement, given: str, operands: list[str], operators: Mapping[str, Any], language: str
) -> str:
    """The text of the right-hand side of a statement.

    Args:
        given: Kind of the first operand.
        operands: Texts of the operands.
        operators: Patterns by operation with ``{0}``, ``{1}``, ``{2}`` for operands. Of several patterns, the first one
            is for floats, the second one for integers and the last one for booleans.
        language: Name of the language, for the message.

    Raises:
        NotImplementedError: the language lacks the operation.
    """
    pattern = operators.get(statement.op)
    if isinstance(pattern, tuple):
        pattern = pattern[0 if given.startswith("float") else -1 if given == "bool" else 1]
    if pattern is None:
        raise NotImplementedError(f"the target {language} has no operation {statement.op} of {given}")
    return pattern.format(*operands)
