"""Limits on the elements that an MJCF file generates, checked before MuJoCo is called, which has no limits.

``<replicate>``, ``<attach>``, ``<flexcomp>`` and others multiply elements by a number in the file, and MuJoCo's time is
quadratic in their number. MuJoCo crashes on a model file that attaches itself, and on a height field of more than 2^32
points.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import NamedTuple

from lgsim.formats.xml import FileError
from lgsim.support.reading.size_limits import VARIABLE, limit_of, size_limit

_MAX_ELEMENTS = "LGSIM_MAX_BODIES", 50_000
"""Environment variable for the largest number of elements of copies and grids, and its default."""

_DEEPEST = 50
"""Largest nesting depth of models."""

# same as MuJoCo's parser: a comment ends at the first -->, a value at its quote regardless of the text between
_TOKEN = re.compile(
    rb"""<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<!.*?>|(?P<end><\s*/[^>]*>)"""
    rb"""|<\s*(?P<tag>[^\s/>=!?"'<]+)(?P<attributes>(?:\s*[^\s=/>"'<]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(?P<empty>/?)>""",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(rb"""([^\s=/>"'<]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")

_COUNTED = {"composite": ("count",), "flexcomp": ("count", "cellcount"), "size": ("nkey",)}
"""Attributes whose product is the number of generated elements."""

_READ = frozenset({"replicate", "include", "attach", "model", "mesh", "hfield", "texture", *_COUNTED})
"""Elements whose attributes count."""


class _Start(NamedTuple):
    """Start tag of an element, or its end tag, which has no tag name."""

    tag: str
    line: int
    attributes: dict[str, str]
    empty: bool


def check_expansions(file: str, content: bytes, from_path: bool) -> None:
    """Check how many elements an MJCF file and its included and attached files generate.

    Args:
        file: Name of the file for messages, also its path if it has one.
        content: Content of the file.
        from_path: True if other files are relative to the path of the file.

    Raises:
        FileError: copies and grids have too many elements, or height fields and textures too many bytes; or an
            environment variable with a limit is not a positive number.
    """
    path = Path(os.path.realpath(file)) if from_path else None
    folder = Path() if path is None else Path(file).parent
    try:
        count = _Count(folder, {})
    except ValueError as error:
        raise FileError(file, None, str(error)) from None
    count.add(file, content, folder, [path] if path else [], 1)


class _Count:
    """Counts the elements of a file and of the files that it includes.

    Attributes:
        elements: Number of elements, including copies.
    """

    def __init__(self, main: Path, sizes: dict[Path, int]) -> None:
        self.elements = 0
        self._main, self._sizes = main, sizes  # of models, by path
        self._copies, self._bytes = 0, 0
        self._models: dict[str, int] = {}
        self._included: set[Path] = set()
        self._most, self._most_bytes = limit_of(*_MAX_ELEMENTS), size_limit()

    def add(self, file: str, content: bytes, folder: Path, within: list[Path], times: int) -> None:
        """Count the elements of a file.

        Args:
            file: Name of the file.
            content: Content of the file.
            within: Paths of the enclosing models, the innermost last.
            times: Number of copies of the file's elements.

        Raises:
            FileError: see ``check_expansions``.
        """
        for start in _elements(content):  # models may be defined after the elements that attach them
            if start.tag == "model" and "file" in start.attributes:
                self._add_model(file, start, folder, within)
        factors = [times]
        for start in _elements(content):
            if not start.tag:
                factors.pop()
                continue
            copies = factors[-1]
            if start.tag == "replicate":
                copies *= _product(start.attributes.get("count", ""), 1)
            if not start.empty:
                factors.append(copies)
            made = copies * self._made(start)
            self.elements += copies + made
            self._copies += made + (copies if copies > 1 else 0)
            if self._copies > self._most:
                raise FileError(
                    file,
                    start.line,
                    f"<{start.tag}>: expected copies and grids of at most {self._most} elements, got"
                    f" {self._copies:.4g}; to allow more, set the environment variable {_MAX_ELEMENTS[0]}",
                )
            self._add_bytes(file, start)
            if start.tag == "include":
                found = _file(start.attributes.get("file", ""), folder, self._main)
                # MuJoCo rejects a second one of the same name
                if found is not None and found not in self._included:
                    self._included.add(found)
                    self.add(str(found), found.read_bytes(), found.parent, within, copies)

    def _made(self, start: _Start) -> int:
        """Number of elements that MuJoCo generates from one element, for one copy of it."""
        given = start.attributes
        if start.tag == "attach":
            known = self._models or {"": 0}
            return known.get(given.get("model", ""), max(known.values()))
        if start.tag == "mesh" and "builtin" in given:
            # one resolution or two, then angles and lengths
            first = _product(given.get("params", ""), 1)
            return max(first * first, _product(given.get("params", ""), 2))
        made = sum(_product(given[name], 3) for name in _COUNTED.get(start.tag, ()) if name in given)
        if start.tag == "size":
            made += sum(_product(value, 1) for name, value in given.items() if name.startswith("nuser_"))
        return made

    def _add_bytes(self, file: str, start: _Start) -> None:
        """Count the bytes of a height field or a texture."""
        given = start.attributes
        if start.tag == "hfield":
            size = 4 * _product(given.get("nrow", ""), 1) * _product(given.get("ncol", ""), 1)
        elif start.tag == "texture":
            sides = 1 if given.get("type") == "2d" else 6
            size = 3 * sides * _product(given.get("width", ""), 1) * _product(given.get("height", ""), 1)
        else:
            return
        self._bytes += size
        if self._bytes > self._most_bytes:
            raise FileError(
                file,
                start.line,
                f"<{start.tag}>: expected height fields and textures of at most {self._most_bytes} bytes, got"
                f" {self._bytes:.4g}; to allow more, set the environment variable {VARIABLE}",
            )

    def _add_model(self, file: str, start: _Start, folder: Path, within: list[Path]) -> None:
        """Count a model that may be attached."""
        found = _file(start.attributes["file"], folder, self._main)
        if found is None:
            return
        if found in within or len(within) >= _DEEPEST:
            what = "itself" if found in within else f"models nested {_DEEPEST} deep"
            message = f"<model>: expected a file that does not contain itself, got {found.name!r} with {what}"
            raise FileError(file, start.line, message)
        if found not in self._sizes:
            inner = _Count(found.parent, self._sizes)
            inner.add(str(found), found.read_bytes(), found.parent, [*within, found], 1)
            self._sizes[found] = inner.elements
        self._models[start.attributes.get("name", "")] = self._sizes[found]


def _elements(content: bytes) -> Iterator[_Start]:
    """Start and end tags of the first root element, up to the first error, which MuJoCo reports."""
    at, counted, line, depth = content.find(b"<"), 0, 1, 0
    while at >= 0:
        token = _TOKEN.match(content, at)
        if token is None:
            return
        line += content.count(b"\n", counted, at)
        counted = at
        at = content.find(b"<", token.end())
        if token["end"]:
            depth -= 1
            if depth < 0:
                return
            yield _Start("", line, {}, False)
        elif token["tag"]:
            tag, empty = _text(token["tag"]), bool(token["empty"])
            pairs = _ATTRIBUTE.findall(token["attributes"]) if tag in _READ else ()
            depth += not empty
            yield _Start(tag, line, {_text(name): unescape(_text(a or b)) for name, a, b in pairs}, empty)
        else:
            continue
        if not depth:
            return


def _product(text: str, most: int) -> int:
    """Product of the leading integers above one in a text; MuJoCo rejects invalid text."""
    product = 1.0
    for word in text.split()[:most]:
        try:
            number = float(word)
        except ValueError:
            break
        if most == 1 and number <= 0:
            return 0
        product *= number if number > 1 else 1.0
    return int(min(product, 1e18)) if not math.isnan(product) else 1


def _file(name: str, *folders: Path) -> Path | None:
    """The real path of the first regular file with a name; None without one."""
    try:
        found = next((folder / name for folder in folders if name and (folder / name).is_file()), None)
        return None if found is None else Path(os.path.realpath(found))
    except (OSError, ValueError):
        return None


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")
