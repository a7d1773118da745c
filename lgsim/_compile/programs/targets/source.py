"""What every target that writes text takes: a program with the names of its arguments and results."""

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
    """An argument or a result.

    Attributes:
        name: Its name in the text.
        about: What it is, in lines: order, units, frames.
    """

    name: str
    about: tuple[str, ...] = ()


class Interface(NamedTuple):
    """A program as a function of a language.

    Attributes:
        name: The name of the function.
        program: What it computes.
        arguments: The program's inputs, in order.
        results: The program's outputs, in order.
        about: What the function is, in lines.
    """

    name: str
    program: Program
    arguments: tuple[Described, ...]
    results: tuple[Described, ...]
    about: tuple[str, ...] = ()

    def counts(self) -> str:
        """How many operations there are, in words."""
        counts = _operation_counts(self.program)
        return ", ".join(f"{n} {op}" for op, n in counts.items())

    @property
    def operations(self) -> int:
        """Sums, differences, products and quotients, all together."""
        return sum(n for op, n in _operation_counts(self.program).items() if op in _ARITHMETIC)

    def checked(self, reserved: frozenset[str]) -> Interface:
        """This, if its names serve in a language.

        Args:
            reserved: Words of the language.

        Raises:
            ValueError: a name is no name, a word of the language, one of the text's own, or occurs twice.
        """
        names = [self.name, *(x.name for x in (*self.arguments, *self.results))]
        for i, name in enumerate(names):
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
                raise ValueError(f"name {name!r}: expected letters, digits and underscores, a letter first")
            if name in reserved or keyword.iskeyword(name) or re.fullmatch(r"t[0-9]+", name):
                raise ValueError(f"name {name!r}: it has a meaning of its own in the generated text; take another one")
            if name in names[:i]:
                raise ValueError(f"name {name!r}: it occurs twice among the function, its arguments and its results")
        return self


class Code(NamedTuple):
    """The text of a function.

    Attributes:
        name: The name of the function.
        header: What other files include to call it; empty where the language has no such files.
        suffix: How the name of the file of the text ends, such as ``.c``.
        interface: What the text says.
    """

    name: str
    source: str
    header: str
    suffix: str
    interface: Interface

    @property
    def program(self) -> Program:
        """The program that the text is."""
        return self.interface.program

    @property
    def counts(self) -> dict[str, int]:
        """``_operation_counts`` of the program."""
        return _operation_counts(self.program)

    @property
    def operations(self) -> int:
        """``Interface.operations``."""
        return self.interface.operations

    def files(self) -> dict[str, bytes]:
        """The files of the function by their names."""
        made = {self.name + self.suffix: self.source.encode()}
        if self.header:
            made[f"{self.name}.h"] = self.header.encode()
        return made


def comment(texts: Iterable[str], begin: str) -> str:
    """The lines of a comment of any language, see ``comment_lines``.

    Args:
        texts: What the comment says.
        begin: How each line begins.
    """
    return "\n".join(f"{begin}{line}".rstrip() for text in texts for line in comment_lines(text))


def _operation_counts(program: Program) -> dict[str, int]:
    """How often each operation occurs: sums, differences, products and quotients first."""
    counts = program.counts()
    order = [*_ARITHMETIC, *sorted(counts.keys() - set(_ARITHMETIC))]
    return {op: counts[op] for op in order if counts.get(op)}


def place(port: Port, entry: int) -> tuple[int, ...]:
    """The indices of an entry of an array, from 0."""
    return tuple(int(i) for i in np.unravel_index(entry, port.shape)) if port.shape else ()


def kinds(program: Program) -> list[str]:
    """The kind of each value that is no constant."""
    return [p.kind for p in program.inputs for _ in p.values] + [s.kind for s in program.statements]


def used_inputs(program: Program) -> set[int]:
    """Values of inputs that a statement or an output needs."""
    needed = {x for s in program.statements for x in s.operands} | {x for p in program.outputs for x in p.values}
    return {x for x in needed if 0 <= x < program.entries}


def expression(
    statement: Statement, given: str, operands: list[str], operators: Mapping[str, Any], language: str
) -> str:
    """The text of a statement's right side.

    Args:
        given: Kind of its first operand.
        operands: Their texts.
        operators: By operation a pattern with ``{0}``, ``{1}``, ``{2}`` for operands, or several: the first one for
            numbers with a point, the second one for whole numbers, the last one for truth.
        language: Its name, for the message.

    Raises:
        NotImplementedError: the language has no such operation.
    """
    pattern = operators.get(statement.op)
    if isinstance(pattern, tuple):
        pattern = pattern[0 if given.startswith("float") else -1 if given == "bool" else 1]
    if pattern is None:
        raise NotImplementedError(f"the target {language} has no operation {statement.op} of {given}")
    return pattern.format(*operands)
