"""Launches and bytes moved by an optimized XLA program for a GPU, counted from its text.

A launch is a fusion, a copy or a library call in a scheduled computation, times the known lengths of the loops
around it. A fusion operand that is only sliced counts by its slices, an in-place update by the size of the update.
"""

import re
from typing import NamedTuple

SIZES = {
    "pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "f16": 2, "bf16": 2, "s32": 4, "u32": 4, "f32": 4,
    "s64": 8, "u64": 8, "f64": 8, "c64": 8, "c128": 16,
}  # fmt: skip
LAUNCHED = {
    "fusion", "custom-call", "copy", "copy-start", "sort", "reduce", "gather", "scatter", "dynamic-update-slice",
    "dynamic-slice", "concatenate", "transpose", "convert", "iota", "broadcast", "rng-bit-generator", "cholesky",
    "triangular-solve", "conditional",
}  # fmt: skip
SLICES = ("dynamic-slice", "slice", "gather")

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{\s*$")
_LINE = re.compile(r"^\s*(ROOT )?%?([\w.\-]+) = (.*?) ([a-z][\w\-]*)\((.*)$")


class Instruction(NamedTuple):
    """One line of a computation."""

    op: str
    shape: str
    operands: list[str]
    line: str
    root: bool


class Counts(NamedTuple):
    """Counts of a whole program.

    Attributes:
        launches: Number of kernels and library calls.
        bytes: Bytes that they read and write.
        trips: Length of each loop, None if it is unknown before the run.
        targets: Names of custom calls.
    """

    launches: int
    bytes: int
    trips: tuple[int | None, ...]
    targets: tuple[str, ...]


def count(text):
    """``Counts`` of a program's text."""
    computations, entry = _parsed(text)
    trips = []

    def total(name):
        launches = moved = 0
        for each in computations[name].values():
            if each.op == "while":
                body = re.search(r"body=%?([\w.\-]+)", each.line)[1]
                known = re.search(r'known_trip_count":\{"n":"(\d+)"', each.line)
                trips.append(int(known[1]) if known else None)
                inside = total(body)
                launches, moved = (a + (trips[-1] or 1) * b for a, b in zip((launches, moved), inside, strict=True))
                continue
            if each.op == "call":
                inside = total(re.search(r"to_apply=%?([\w.\-]+)", each.line)[1])
                launches, moved = launches + inside[0], moved + inside[1]
            elif each.op in LAUNCHED:
                launches, moved = launches + 1, moved + _moved(computations, computations[name], each)
        return launches, moved

    launches, moved = total(entry)
    targets = tuple(sorted(set(re.findall(r'custom_call_target="([^"]+)"', text))))
    return Counts(launches, moved, tuple(trips), targets)


def _parsed(text):
    computations, name, entry = {}, None, None
    for line in text.splitlines():
        head = _COMPUTATION.match(line)
        if head:
            name = head[2]
            computations[name] = {}
            entry = name if head[1] else entry
        elif line.startswith("}"):
            name = None
        elif name is not None:
            line = re.sub(r"/\*index=\d+\*/", "", line)
            found = _LINE.match(line)
            if found:
                root, own, shape, op, rest = found.groups()
                operands = re.findall(r"%([\w.\-]+)", rest[: _end(rest)])
                computations[name][own] = Instruction(op, shape, operands, line, bool(root))
    return computations, entry


def _end(rest):
    """Position of the closing parenthesis that belongs to an opening one before the text."""
    depth = 1
    for i, letter in enumerate(rest):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if not depth:
            return i
    return len(rest)


def _bytes(shape):
    total = 0
    for kind, axes in re.findall(r"(\w+)\[([\d,]*)\]", re.sub(r"\{[^}]*\}", "", shape)):
        size = SIZES.get(kind, 0)
        for axis in filter(None, axes.split(",")):
            size *= int(axis)
        total += size
    return total


def _moved(computations, around, each):
    called = re.search(r"calls=%?([\w.\-]+)", each.line)
    if not called:
        return _bytes(each.shape) + sum(_bytes(around[x].shape) for x in each.operands if x in around)
    body = computations[called[1]]
    read = sum(_read(body, name) for name, x in body.items() if x.op == "parameter")
    return read + sum(_written(body, name) for name, x in body.items() if x.root)


def _read(body, parameter):
    users = [(name, x) for name, x in body.items() if parameter in x.operands]
    seen, whole, part = {parameter}, False, 0
    while users:
        name, x = users.pop()
        if name in seen:
            continue
        in_place = x.op == "dynamic-update-slice" and x.operands[0] in seen
        seen.add(name)
        if x.op in SLICES:
            part += _bytes(x.shape)
        elif x.op == "bitcast":
            users += [(other, y) for other, y in body.items() if name in y.operands]
        elif not in_place:
            whole = True
    size = _bytes(body[parameter].shape)
    return size if whole else min(part, size)


def _written(body, name):
    x = body[name]
    if x.op == "tuple":
        return sum(_written(body, each) for each in x.operands)
    if x.op == "bitcast" and x.operands and body[x.operands[0]].op == "dynamic-update-slice":
        return _written(body, x.operands[0])
    if x.op == "dynamic-update-slice":
        return _bytes(body[x.operands[1]].shape)
    return 0 if x.op == "parameter" else _bytes(x.shape)
