"""Tables of a TOML file that are read key by key, with errors that name file, line and key."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import NamedTuple, TypeVar, overload

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike

from lgsim.support import toml_lines
from lgsim.support.messages import LISTED_NAMES, hint, one_line, unknown_choice, unknown_name
from lgsim.support.reading.size_limits import FileSizeError, read_bytes
from lgsim.support.scenario_error import ScenarioError
from lgsim.support.toml_lines import KeyPath

T = TypeVar("T")

KINDS = {bool: "true or false", int: "a whole number", str: "a string", dict: "a table", list: "a list"}
LARGEST_COUNT = 2**31 - 1
"""The largest integer for counts; XLA counts in 32 bits."""
WHERE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


class Document(NamedTuple):
    """A file with the lines of its keys.

    Attributes:
        file: The path of the file.
        text: The content of the file.
        lines: The line of each key, counted from 1.
    """

    file: Path
    text: str
    lines: dict[KeyPath, int]


class Table:
    """A table of a file. Each method that reads a key raises ``ScenarioError`` if the value is not as expected.

    Attributes:
        path: The keys that lead to the table.
        values: The content of the table as ``tomllib`` returns it.
    """

    def __init__(self, document: Document, path: KeyPath, values: Mapping[str, object]) -> None:
        self.document, self.path, self.values = document, path, values

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def fault(self, key: str | None, message: str, *inner: str | int) -> ScenarioError:
        """The error for a key of the table, or with None for the table itself.

        Args:
            key: The key, or None.
            inner: Further keys and indices of entries within the value.
        """
        path = (*self.path, *(() if key is None else (key,)), *inner)
        place = path
        while place and place not in self.document.lines:
            place = place[:-1]
        line = self.document.lines[place] if place else None
        return ScenarioError(self.document.file, line, dotted(path), message)

    def only(self, *keys: str) -> Table:
        """Return the table after checking that it has no other keys than these."""
        for key in self.values:
            if key not in keys:
                raise self.fault(key, f"there is no such key; {hint(key, keys)}")
        return self

    def need(self, *keys: str) -> Table:
        """Return the table after checking that it has these keys."""
        for key in keys:
            if key not in self.values:
                raise self.fault(None, f"the key {key!r} is missing")
        return self

    def known(self, key: str, value: object, names: Sequence[str], what: str, *inner: str | int) -> str:
        """Return the value of a key, or of an inner entry, which must be one of some names.

        Args:
            what: The kind of name, such as "the name of a body".
        """
        if not isinstance(value, str) or value not in names:
            raise self.fault(key, unknown_name(f"expected {what}", str(value), names), *inner)
        return value

    @overload
    def of(self, key: str, kind: type[T]) -> T | None: ...
    @overload
    def of(self, key: str, kind: type[T], default: T) -> T: ...
    def of(self, key: str, kind: type, default: object = None) -> object:
        """Return the value of a key, which must be of one of ``KINDS``, or the default if the key is missing."""
        if key not in self.values:
            return default
        value = self.values[key]
        # in Python booleans are integers
        if isinstance(value, bool) != (kind is bool) or not isinstance(value, kind):
            raise self.fault(key, f"expected {KINDS[kind]}, got {shown(value)}")
        return value

    @overload
    def text(self, key: str) -> str | None: ...
    @overload
    def text(self, key: str, default: str) -> str: ...
    def text(self, key: str, default: str | None = None) -> str | None:
        """Return a string."""
        return self.of(key, str) if default is None else self.of(key, str, default)

    def flag(self, key: str, default: bool) -> bool:
        """Return a boolean."""
        return self.of(key, bool, default)

    def choice(self, key: str, names: Sequence[str], default: str) -> str:
        """Return a string that is one of some names."""
        value = self.of(key, str, default)
        if value not in names:
            raise self.fault(key, unknown_choice("expected one of", value, names))
        return value

    def whole(self, key: str, default: int, least: int = 1, most: int = LARGEST_COUNT) -> int:
        """Return an integer from ``least`` to ``most``."""
        value = self.of(key, int, default)
        if value < least:
            raise self.fault(key, f"expected a whole number from {least} on, got {shown(value)}")
        if value > most:
            raise self.fault(key, f"expected a whole number up to {most}, got {shown(value)}")
        return value

    @overload
    def number(self, key: str, *, least: float = -math.inf, above: float = -math.inf) -> float | None: ...
    @overload
    def number(self, key: str, default: float, least: float = -math.inf, above: float = -math.inf) -> float: ...
    def number(
        self, key: str, default: float | None = None, least: float = -math.inf, above: float = -math.inf
    ) -> float | None:
        """Return a finite number that is at least ``least`` and greater than ``above``."""
        if key not in self.values:
            return default
        value = self._float(self.values[key], key)
        if value < least or value <= above:
            what = "a positive number" if above == 0 else "zero or more" if least == 0 else f"{least:g} or more"
            raise self.fault(key, f"expected {what}, got {value:g}")
        return value

    def needed_number(self, key: str, least: float = -math.inf, above: float = -math.inf) -> float:
        """Return such a number for a key that is required."""
        self.need(key)
        return self.number(key, math.nan, least, above)

    def vector(self, key: str, *lengths: int) -> Float[np.ndarray, " n"] | None:
        """Return a list of finite numbers, of one of the lengths if any are given; None if the key is missing."""
        values = self.of(key, list)
        if values is None:
            return None
        if lengths and len(values) not in lengths:
            raise self.fault(key, f"expected {' or '.join(map(str, lengths))} numbers, got {len(values)}")
        return np.array([self._float(value, key, i) for i, value in enumerate(values)], float)

    def point(self, key: str, default: ArrayLike = (0.0, 0.0, 0.0)) -> Float[np.ndarray, " 3"]:
        """Return a list of three finite numbers, or the default."""
        found = self.vector(key, 3)
        return np.array(default, float) if found is None else found

    def rows(self, key: str, *lengths: int) -> Float[np.ndarray, "rows columns"]:
        """Return a list of lists of finite numbers, which all have the same length, one of those given."""
        found: list[list[float]] = []
        for i, row in enumerate(self.of(key, list, [])):
            if not isinstance(row, list) or len(row) not in lengths:
                wanted = f"a list of {' or '.join(map(str, lengths))} numbers"
                raise self.fault(key, f"expected {wanted}, got {shown(row)}", i)
            if found and len(row) != len(found[0]):
                raise self.fault(key, f"expected {len(found[0])} numbers as in the rows before, got {len(row)}", i)
            found.append([self._float(value, key, i, j) for j, value in enumerate(row)])
        return np.array(found, float).reshape(len(found), len(found[0]) if found else lengths[0])

    def by_joint(
        self, key: str, slices: Mapping[str, slice], start: Float[np.ndarray, " n"]
    ) -> tuple[Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
        """Return numbers by joint, ``{ elbow = 0.5, ball = [1, 0, 0] }``, or for all joints as one list.

        Args:
            slices: The slice of each joint's numbers.
            start: The numbers of joints that are not named.

        Returns:
            The numbers, and True for those that were given.
        """
        out, given = np.array(start, float), np.zeros(len(start), bool)
        value = self.values.get(key, {})
        if isinstance(value, list):
            if len(value) != len(start):
                own = [f"{name} {part.stop - part.start}" for name, part in slices.items() if part.stop > part.start]
                more = ", ..." if len(own) > LISTED_NAMES else ""
                raise self.fault(
                    key, f"expected {len(start)} numbers ({', '.join(own[:LISTED_NAMES])}{more}), got {len(value)}; or"
                    " name the joints: { joint = value }"
                )  # fmt: skip
            numbers = [self._float(x, key, i) for i, x in enumerate(value)]
            return np.array(numbers, float), np.ones(len(start), bool)
        if not isinstance(value, dict):
            raise self.fault(key, f"expected {{ joint = value }} or a list of {len(start)} numbers, got {shown(value)}")
        for name, entry in value.items():
            part = slices[self.known(key, name, list(slices), "the name of a joint", name)]
            entries = entry if isinstance(entry, list) else [entry]
            if len(entries) != part.stop - part.start:
                raise self.fault(key, f"expected {part.stop - part.start} numbers, got {len(entries)}", name)
            out[part] = [self._float(x, key, name, *((i,) if entries is entry else ())) for i, x in enumerate(entries)]
            given[part] = True
        return out, given

    def table(self, key: str) -> Table:
        """Return a table, empty if the key is missing."""
        return Table(self.document, (*self.path, key), self.of(key, dict, {}))

    def tables(self, key: str) -> list[Table]:
        """Return the tables ``[[key]]``, or the one table ``[key]``."""
        value = self.values.get(key, [])
        if isinstance(value, dict):
            return [self.table(key)]
        if not isinstance(value, list):
            raise self.fault(key, f"expected tables [[{key}]], got {shown(value)}")
        found: list[Table] = []
        for i, each in enumerate(value):
            if not isinstance(each, dict):
                raise self.fault(key, f"expected tables [[{key}]], got {shown(value)}")
            found.append(Table(self.document, (*self.path, key, i), each))
        return found

    @contextmanager
    def at(self, key: str | None, *inner: str | int) -> Iterator[None]:
        """Within the block, a ValueError or TypeError of the library becomes an error for this key."""
        try:
            yield
        except ScenarioError:
            raise
        except (ValueError, TypeError) as error:
            raise self.fault(key, one_line(error), *inner) from error

    def _float(self, value: object, key: str, *inner: str | int) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.fault(key, f"expected a number, got {shown(value)}", *inner)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.fault(key, f"expected a finite number, got {shown(value)}", *inner)
        return number


def read(path: str | PathLike[str]) -> Table:
    """Read a TOML file and return its outermost table.

    Raises:
        ScenarioError: the file cannot be read, or is not TOML; the message gives the line.
    """
    file = Path(path)
    try:
        text = read_bytes(file).decode()
    except FileSizeError as error:
        raise ScenarioError(file, None, "", error.reason) from error
    except OSError as error:
        raise ScenarioError(file, None, "", f"the file cannot be read: {error.strerror or one_line(error)}") from error
    except UnicodeDecodeError as error:
        raise ScenarioError(file, None, "", "expected text in UTF-8") from error
    try:
        values = toml_lines.parse(text)
        lines = toml_lines.lines_of(text)
    except RecursionError as error:
        raise ScenarioError(file, None, "", "not TOML: arrays or tables nested too deeply") from error
    except ValueError as error:
        # TOMLDecodeError, or an integer with thousands of digits
        message = one_line(error)
        where = WHERE.search(message)
        line = where[1] if where and where[1] else text.count("\n") + 1
        raise ScenarioError(file, int(line), "", f"not TOML: {WHERE.sub('', message)}") from error
    return Table(Document(file, text, lines), (), values)


def dotted(path: KeyPath) -> str:
    """A path as it is written in a file; the tables of an array are counted from 1."""
    out = ""
    for part in path:
        out += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if out else part
    return out


def shown(value: object) -> str:
    """A value for a message; a long one is abbreviated."""
    if isinstance(value, int) and abs(value) >= 10**60:
        # Python does not format integers with thousands of digits
        return "a whole number of more than 60 digits"
    text = f"{value!r}" if not isinstance(value, bool) else str(value).lower()
    return text if len(text) < 60 else f"{text[:56]} ..."
