"""Line numbers of the keys of a TOML file, which Python's TOML parser does not provide."""

from __future__ import annotations

import re
import tomllib
from typing import Any, NamedTuple

KeyPath = tuple[str | int, ...]
"""The keys from the outermost table inwards; the entries of arrays are numbers from 0."""

_TOKEN = re.compile(
    r'''(?P<string>"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*')|(?P<comment>\#[^\n]*)'''
    r"""|(?P<newline>\n)|(?P<mark>[\[\]{}=.,])|(?P<bare>[A-Za-z0-9_+:-]+)|(?P<space>[^\S\n]+)""",
    re.DOTALL,
)


class Token(NamedTuple):
    """A token of the text, neither a comment nor whitespace.

    Attributes:
        kind: The group of ``_TOKEN`` that matched, or "end".
        line: The line of the first character, counted from 1.
    """

    kind: str
    text: str
    line: int


_LONGEST_KEY = 100
"""The largest number of parts of a dotted key; the time that ``tomllib`` takes is quadratic in it."""


def parse(text: str) -> dict[str, Any]:
    """The content of a document, as ``tomllib`` returns it.

    Raises:
        ValueError: it is not TOML, or has a key with more parts than ``_LONGEST_KEY``.
        RecursionError: arrays or tables are nested too deeply.
    """
    parts = 1
    # a key is within one line; tokens of text that is not TOML may take long to find
    keys = any(line.count(".") >= _LONGEST_KEY for line in text.splitlines())
    for token in _tokens(text) if keys else ():
        parts = parts + 1 if token.text == "." else parts if token.kind in ("bare", "string") else 1
        if parts > _LONGEST_KEY:
            raise ValueError(f"a key of more than {_LONGEST_KEY} parts (at line {token.line}, column 1)")
    return tomllib.loads(text)


def lines_of(text: str) -> dict[KeyPath, int]:
    """Find the line, counted from 1, of each table, key and entry of an array, by its path.

    Args:
        text: A document that ``tomllib`` reads.
    """
    scanner = _Scanner(_tokens(text))
    scanner.document()
    return scanner.lines


def _tokens(text: str) -> list[Token]:
    found, line = [], 1
    for match in _TOKEN.finditer(text):
        if match.lastgroup not in ("comment", "space"):
            found.append(Token(str(match.lastgroup), match.group(), line))
        line += match.group().count("\n")
    return [*found, Token("end", "", line)]


class _Scanner:
    """A walk over the tokens that notes the line of each path."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.place = tokens, 0
        self.lines: dict[KeyPath, int] = {}
        self.last: dict[KeyPath, int] = {}

    @property
    def now(self) -> Token:
        """The current token."""
        return self.tokens[self.place]

    def document(self) -> None:
        """Read all tokens."""
        table: KeyPath = ()
        while self.now.kind != "end":
            if self.now.text == "[":
                table = self.header()
            elif self.now.kind == "newline":
                self.place += 1
            else:
                self.entry(table)

    def header(self) -> KeyPath:
        """Read ``[table]`` or ``[[table]]`` and return its path."""
        line, start = self.now.line, self.place
        while self.now.text == "[":
            self.place += 1
        double = self.place - start == 2
        *outer, name = self.key()
        path: KeyPath = ()
        for part in outer:
            path = self.inside((*path, part))
        path = (*path, name)
        if double:
            self.last[path] = self.last.get(path, -1) + 1
            path = self.inside(path)
        while self.now.text == "]":
            self.place += 1
        self.lines[path] = line
        return path

    def inside(self, path: KeyPath) -> KeyPath:
        """Append the index of the latest table if the path is an array of tables."""
        return (*path, self.last[path]) if path in self.last else path

    def key(self) -> list[str]:
        """Read a dotted key and return its parts."""
        parts = []
        while self.now.kind in ("bare", "string") or self.now.text == ".":
            if self.now.kind == "string":
                parts.append(tomllib.loads(f"key = {self.now.text}")["key"])
            elif self.now.kind == "bare":
                parts.append(self.now.text)
            self.place += 1
        return parts

    def entry(self, table: KeyPath) -> None:
        """Read ``key = value``."""
        path = table
        line = self.now.line
        for part in self.key():
            path = (*path, part)
            self.lines.setdefault(path, line)
        self.place += 1
        self.value(path)

    def value(self, path: KeyPath) -> None:
        """Read a value: an array, an inline table or a scalar."""
        if self.now.text == "[":
            self.array(path)
        elif self.now.text == "{":
            self.place += 1
            while self.now.text != "}":
                if self.now.text == "," or self.now.kind == "newline":
                    self.place += 1
                else:
                    self.entry(path)
            self.place += 1
        else:
            while self.now.kind not in ("newline", "end") and self.now.text not in (",", "]", "}"):
                self.place += 1

    def array(self, path: KeyPath) -> None:
        """Read an array and note the line of each entry."""
        self.place += 1
        index = 0
        while self.now.text != "]":
            if self.now.kind == "newline":
                self.place += 1
            elif self.now.text == ",":
                self.place += 1
                index += 1
            else:
                self.lines[(*path, index)] = self.now.line
                self.value((*path, index))
        self.place += 1
