"""Tables of a TOML file that are read key by key, with errors that name file, line and key."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lgsim.cli.errors import SHOWN, BadInput, listed, one_line, unknown
from lgsim.scenarios import toml_lines

KINDS = {bool: "true or false", int: "a whole number", str: "a text", dict: "a table", list: "a list"}
WHERE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


class Document(NamedTuple):
    """A file with the lines of its keys.

    Attributes:
        file: Where it is.
        text: What it says.
        lines: Of each key, from 1.
    """

    file: Path
    text: str
    lines: dict[toml_lines.Path, int]


class Table:
    """A table of a file. Each reader of a key raises BadInput where the value is not what it expects.

    Attributes:
        document: The file.
        path: Where the table is in it.
        values: What it holds.
    """

    def __init__(self, document: Document, path: toml_lines.Path, values: Mapping[str, Any]) -> None:
        self.document, self.path, self.values = document, path, values

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def fault(self, key: str | None, message: str, *inner: str | int) -> BadInput:
        """The error for a key, or for the table itself: ``file:line: table.key: message``."""
        path = (*self.path, *(() if key is None else (key,)), *inner)
        place = path
        while place and place not in self.document.lines:
            place = place[:-1]
        line = f":{self.document.lines[place]}" if place else ""
        return BadInput(f"{self.document.file}{line}: {dotted(path)}{': ' if path else ''}{message}")

    def only(self, *keys: str) -> Table:
        """The table itself, which has no other keys than these."""
        for key in self.values:
            if key not in keys:
                near = get_close_matches(key, keys, n=3, cutoff=0.6)
                hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {listed(keys)}"
                raise self.fault(key, f"there is no such key; {hint}")
        return self

    def need(self, key: str) -> Any:
        """What a key holds."""
        if key not in self.values:
            raise self.fault(None, f"the key {key!r} is missing")
        return self.values[key]

    def of(self, key: str, kind: type, default: Any = None) -> Any:
        """What a key holds, of a kind; the default where there is no such key."""
        if key not in self.values:
            return default
        value = self.values[key]
        # to Python true and false are whole numbers
        if isinstance(value, bool) != (kind is bool) or not isinstance(value, kind):
            raise self.fault(key, f"expected {KINDS[kind]}, got {shown(value)}")
        return value

    def text(self, key: str, default: str | None = None) -> str | None:
        """A text."""
        return self.of(key, str, default)

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        return self.of(key, bool, default)

    def choice(self, key: str, names: Sequence[str], default: str) -> str:
        """One of some names."""
        value = self.of(key, str, default)
        if value not in names:
            with self.at(key):
                raise unknown(f"expected one of {listed(names)}", value, names)
        return value

    def whole(self, key: str, default: int, least: int = 1) -> int:
        """A whole number that is not less than another."""
        value = self.of(key, int, default)
        if value < least:
            raise self.fault(key, f"expected a whole number from {least} on, got {value}")
        return value

    def number(self, key: str, default: Any = None, least: float = -math.inf, above: float = -math.inf) -> Any:
        """A finite number, not less than one, above another."""
        if key not in self.values:
            return default
        value = self._float(self.values[key], key)
        if value < least or value <= above:
            what = "a positive number" if above == 0 else "zero or more" if least == 0 else f"{least:g} or more"
            raise self.fault(key, f"expected {what}, got {value:g}")
        return value

    def vector(self, key: str, *lengths: int) -> np.ndarray | None:
        """A list of so many finite numbers; None where there is no such key."""
        if key not in self.values:
            return None
        values = self.of(key, list)
        if lengths and len(values) not in lengths:
            raise self.fault(key, f"expected {' or '.join(map(str, lengths))} numbers, got {len(values)}")
        return np.array([self._float(value, key, i) for i, value in enumerate(values)])

    def rows(self, key: str, *lengths: int) -> np.ndarray:
        """A list of lists of so many finite numbers, of one length."""
        found = []
        for i, row in enumerate(self.of(key, list, [])):
            if not isinstance(row, list) or len(row) not in lengths:
                wanted = f"a list of {' or '.join(map(str, lengths))} numbers"
                raise self.fault(key, f"expected {wanted}, got {shown(row)}", i)
            if found and len(row) != len(found[0]):
                raise self.fault(key, f"expected {len(found[0])} numbers as in the rows before, got {len(row)}", i)
            found.append([self._float(value, key, i, j) for j, value in enumerate(row)])
        return np.array(found)

    def by_joint(self, key: str, slices: Mapping[str, slice], start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(numbers, which of them were given), by joint ``{ elbow = 0.5, ball = [1, 0, 0] }`` or as one whole list.

        Args:
            key: Its name.
            slices: The place of each joint's numbers.
            start: What the numbers are that are not given.
        """
        out, given = np.array(start, float), np.zeros(len(start), bool)
        value = self.values.get(key, {})
        if isinstance(value, list):
            if len(value) != len(start):
                own = [f"{name} {part.stop - part.start}" for name, part in slices.items() if part.stop > part.start]
                more = ", ..." if len(own) > SHOWN else ""
                raise self.fault(
                    key, f"expected {len(start)} numbers ({', '.join(own[:SHOWN])}{more}), got {len(value)}; or name"
                    " the joints: { joint = value }"
                )  # fmt: skip
            return np.array([self._float(x, key, i) for i, x in enumerate(value)]), np.ones(len(start), bool)
        if not isinstance(value, dict):
            raise self.fault(key, f"expected {{ joint = value }} or a list of {len(start)} numbers, got {shown(value)}")
        for name, entry in value.items():
            if name not in slices:
                with self.at(key, name):
                    raise unknown("expected the name of a joint", name, list(slices))
            part = slices[name]
            entries = entry if isinstance(entry, list) else [entry]
            if len(entries) != part.stop - part.start:
                raise self.fault(key, f"expected {part.stop - part.start} numbers, got {len(entries)}", name)
            out[part] = [self._float(x, key, name, *((i,) if entries is entry else ())) for i, x in enumerate(entries)]
            given[part] = True
        return out, given

    def table(self, key: str) -> Table:
        """A table, empty where there is none."""
        return Table(self.document, (*self.path, key), self.of(key, dict, {}))

    def tables(self, key: str) -> list[Table]:
        """The tables ``[[key]]``, or the one ``[key]``."""
        value = self.values.get(key, [])
        if isinstance(value, dict):
            return [self.table(key)]
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.fault(key, f"expected tables [[{key}]], got {shown(value)}")
        return [Table(self.document, (*self.path, key, i), each) for i, each in enumerate(value)]

    @contextmanager
    def at(self, key: str | None, *inner: str | int) -> Iterator[None]:
        """What is refused inside is said of this key."""
        try:
            yield
        except (BadInput, ValueError, TypeError) as error:
            raise self.fault(key, one_line(error), *inner) from error

    def _float(self, value: Any, key: str, *inner: str | int) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.fault(key, f"expected a number, got {shown(value)}", *inner)
        if not math.isfinite(value):
            raise self.fault(key, f"expected a finite number, got {value}", *inner)
        return float(value)


def read(file: Path) -> Table:
    """The outermost table of a file.

    Raises:
        BadInput: it cannot be read, or is not TOML; the line is named.
    """
    try:
        text = file.read_bytes().decode()
        values = tomllib.loads(text)
    except OSError as error:
        raise BadInput(f"{file}: the file cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file}: expected a text in UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        message = one_line(error)
        where = WHERE.search(message)
        line = where[1] if where and where[1] else text.count("\n") + 1
        raise BadInput(f"{file}:{line}: not TOML: {WHERE.sub('', message)}") from error
    return Table(Document(file, text, toml_lines.lines_of(text)), (), values)


def dotted(path: toml_lines.Path) -> str:
    """A path as a user writes it, counting the tables of an array from 1."""
    out = ""
    for part in path:
        out += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if out else part
    return out


def shown(value: Any) -> str:
    """A value for a message; of a long one the beginning."""
    text = f"{value!r}" if not isinstance(value, bool) else str(value).lower()
    return text if len(text) < 60 else f"{text[:56]} ..."
