"""Split of a program in two: the part that depends only on shared inputs of a batch, and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lgsim._compile.programs.program import Port, Program, Statement


def hoisted(program: Program, shared: Sequence[bool]) -> tuple[Program, Program]:
    """(the program of the shared inputs, the program of a state).

    The first program has the shared inputs, in order, and returns the intermediate values that the states need, as one
    array for each kind. The second program has the inputs of the whole, followed by these arrays.

    Args:
        shared: Flags of the inputs that all states share.
    """
    entries = program.entries
    once = [each for port, each in zip(program.inputs, shared, strict=True) for _ in port.values]
    for statement in program.statements:
        once.append(all(x < 0 or once[x] for x in statement.operands))
    wanted = [x for i, s in enumerate(program.statements, start=entries) if not once[i] for x in s.operands]
    wanted += [x for port in program.outputs for x in port.values]
    by_kind: dict[str, list[int]] = {}
    for value in dict.fromkeys(x for x in wanted if x >= entries and once[x]):
        by_kind.setdefault(program.statements[value - entries].kind, []).append(value)
    arrays = [Port(kind, (len(values),), tuple(values)) for kind, values in by_kind.items()]

    needed = {x for port in arrays for x in port.values}
    for i in range(len(program.statements) - 1, -1, -1):
        if entries + i in needed:
            needed.update(program.statements[i].operands)
    places = range(entries, entries + len(program.statements))
    given = [port for port, each in zip(program.inputs, shared, strict=True) if each]
    first = _part(program, given, [i for i in places if i in needed], arrays)
    second = _part(program, [*program.inputs, *arrays], [i for i in places if not once[i]], program.outputs)
    return first, second


def _part(program: Program, inputs: Iterable[Port], values: Iterable[int], outputs: Iterable[Port]) -> Program:
    """The program of some statements; the ports have values of the whole program."""
    names: dict[int, int] = {}
    ports: list[Port] = []
    for port in inputs:
        own = tuple(range(len(names), len(names) + len(port.values)))
        names |= dict(zip(port.values, own, strict=True))
        ports.append(port._replace(values=own))

    def renamed(old: Iterable[int]) -> tuple[int, ...]:
        return tuple(x if x < 0 else names[x] for x in old)

    statements = []
    for value in values:
        statement = program.statements[value - program.entries]
        statements.append(Statement(statement.op, statement.kind, renamed(statement.operands)))
        names[value] = len(names)
    made = tuple(port._replace(values=renamed(port.values)) for port in outputs)
    return Program(tuple(ports), tuple(statements), program.constants, made)
