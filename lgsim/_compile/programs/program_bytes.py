"""Serialization of straight-line programs to bytes, which are pure data and are checked on reading.

A header line names the format; counts and the arrays of ports, statements, operands and constants follow. Memory is
allocated only for bytes that exist, so that damaged counts cost no memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any, NoReturn

import numpy as np

from lgsim._compile.programs.operations import KINDS, OPERANDS, OPS

_HEAD = b"lgsim program 1\n"
_OP_CODES = {op: i for i, op in enumerate(OPS)}
_KIND_CODES = {kind: i for i, kind in enumerate(KINDS)}
_OPERANDS = np.array([OPERANDS[op] for op in OPS])
_LONGEST_AXIS = 2**31

_Port = tuple[str, tuple[int, ...], tuple[int, ...]]
_Statement = tuple[str, str, tuple[int, ...]]
_Constant = tuple[str, Any]
_Parts = tuple[list[_Port], list[_Statement], tuple[_Constant, ...], list[_Port]]


class ProgramFormatError(ValueError):
    """The bytes are not a program: they were truncated, changed, or have another format."""


def pack(
    inputs: Sequence[_Port], statements: Sequence[_Statement], constants: Sequence[_Constant], outputs: Sequence[_Port]
) -> bytes:
    """The bytes of the parts of a ``Program``."""
    ports = [*inputs, *outputs]
    arrays = [
        np.array([len(inputs), len(outputs), len(statements), len(constants)], "<i8"),
        _codes(_KIND_CODES[kind] for kind, _, _ in ports),
        np.array([len(shape) for _, shape, _ in ports], "<i8"),
        np.array([n for _, shape, _ in ports for n in shape], "<i8"),
        np.array([len(values) for _, _, values in ports], "<i8"),
        np.array([value for _, _, values in ports for value in values], "<i4"),
        _codes(_OP_CODES[op] for op, _, _ in statements),
        _codes(_KIND_CODES[kind] for _, kind, _ in statements),
        _codes(len(operands) for _, _, operands in statements),
        np.array(list(chain.from_iterable(operands for _, _, operands in statements)), "<i4"),
        _codes(_KIND_CODES[kind] for kind, _ in constants),
    ]
    numbers = b"".join(np.array(value, kind).tobytes().ljust(8, b"\0") for kind, value in constants)
    return _HEAD + b"".join(array.tobytes() for array in arrays) + numbers


def unpack(content: bytes) -> _Parts:
    """The parts of a ``Program`` from the bytes of ``pack``.

    Raises:
        ProgramFormatError: ``pack`` did not write the bytes.
    """
    if not content.startswith(_HEAD):
        _refuse(f"the line {_HEAD.decode().strip()!r}", repr(content[:20]))
    reader = _Reader(content)
    inputs, outputs, statements, constants = reader.counts(4)
    # ports: kind, rank, shape and size of each input and output, and the values of their entries
    kinds = reader.codes(inputs + outputs, len(KINDS), "kinds")
    ranks = reader.counts(inputs + outputs)
    axes = reader.counts(sum(ranks))
    sizes = reader.counts(inputs + outputs)
    shapes = [tuple(axes[a:b]) for a, b in pairwise(accumulate(ranks, initial=0))]
    for shape, size in zip(shapes, sizes, strict=True):
        if math.prod(shape) != size or max(shape, default=0) >= _LONGEST_AXIS:
            _refuse(f"ports with an entry for each place of their shape {shape}", str(size))
    ends = list(accumulate(sizes, initial=0))
    entries = ends[inputs]
    values = reader.values(ends[-1])
    if not np.array_equal(values[:entries], np.arange(entries)):
        _refuse("inputs whose entries are 0, 1, ...", "others")
    _check_values(values[entries:], constants, entries + statements)
    # statements: operation, result kind and operands, which must be earlier values
    ops = reader.codes(statements, len(OPS), "operations")
    results = reader.codes(statements, len(KINDS), "kinds")
    counts = reader.codes(statements, 4, "operands")
    if not np.array_equal(counts, _OPERANDS[ops]):
        _refuse("as many operands as an operation has", "others")
    operands = reader.values(int(np.sum(counts)))
    _check_values(operands, constants, entries + np.repeat(np.arange(statements), counts))
    # constants: kind and eight bytes each
    numbers = _constants(reader.codes(constants, len(KINDS), "kinds"), reader.take("u1", 8 * constants))
    reader.finish()
    flat = tuple(values.tolist())
    ports = [(KINDS[k], shape, flat[a:b]) for k, shape, (a, b) in zip(kinds, shapes, pairwise(ends), strict=True)]
    given = tuple(operands.tolist())
    starts = pairwise(accumulate(counts.tolist(), initial=0))
    made = [(OPS[op], KINDS[k], given[a:b]) for op, k, (a, b) in zip(ops, results, starts, strict=True)]
    return ports[:inputs], made, numbers, ports[inputs:]


class _Reader:
    """Reads consecutive arrays from bytes."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, len(_HEAD)

    def take(self, dtype: str, count: int) -> np.ndarray:
        size = count * np.dtype(dtype).itemsize
        if size > len(self._content) - self._at:
            _refuse(f"{size} bytes more", str(len(self._content) - self._at))
        self._at += size
        return np.frombuffer(self._content, dtype, count, self._at - size)

    def counts(self, count: int) -> list[int]:
        found = self.take("<i8", count)
        if np.any(found < 0):
            _refuse("counts of zero or more", str(found.min()))
        return found.tolist()

    def codes(self, count: int, below: int, what: str) -> np.ndarray:
        found = self.take("u1", count)
        if np.any(found >= below):
            _refuse(f"numbers of {what} below {below}", str(found.max()))
        return found

    def values(self, count: int) -> np.ndarray:
        return self.take("<i4", count)

    def finish(self) -> None:
        if self._at != len(self._content):
            _refuse("no bytes after the constants", f"{len(self._content) - self._at} bytes")


def _check_values(values: np.ndarray, constants: int, end: Any) -> None:
    """Check that values are constants or below ``end``."""
    if np.any(values < -constants) or np.any(values >= end):
        _refuse("values of inputs, constants or earlier statements", "others")


def _constants(kinds: np.ndarray, raw: np.ndarray) -> tuple[_Constant, ...]:
    found: list[Any] = [None] * len(kinds)
    rows = raw.reshape(-1, 8)
    for code, kind in enumerate(KINDS):
        (places,) = np.nonzero(kinds == code)
        own = np.ascontiguousarray(rows[places, : np.dtype(kind).itemsize])
        numbers = own[:, 0] != 0 if kind == "bool" else own.view(kind)[:, 0]
        for place, number in zip(places.tolist(), numbers.tolist(), strict=True):
            found[place] = kind, number
    return tuple(found)


def _codes(numbers: Iterable[int]) -> np.ndarray:
    return np.fromiter(numbers, "u1")


def _refuse(expected: str, got: str) -> NoReturn:
    raise ProgramFormatError(f"expected the bytes of a program, {expected}, got {got}")
