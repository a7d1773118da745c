"""XML elements that know their line and report errors with it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from lgsim.formats.report import Finding
from lgsim.formats.xacro_file import expand
from lgsim.multibody.builder import ModelBuilder
from lgsim.multibody.model import Model
from lgsim.multibody.topology import ModelError
from lgsim.support.messages import one_line
from lgsim.support.printable import printable
from lgsim.support.reading.size_limits import read_bytes

TEXT = "<text>"
"""Name of the file in messages about text."""


class FileError(ModelError):
    """An invalid file: ``file:line: element: expected, got``.

    Attributes:
        line: Line of the error, from 1; None for an error of the whole file.
        message: Expected and actual content.
    """

    def __init__(self, file: str, line: int | None, message: str) -> None:
        super().__init__(file, line, message)
        self.file, self.line, self.message = file, line, message

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return printable(f"{place}: {self.message}")


class Element:
    """An element of a file that records which attributes and children were read; ``unread`` reports the others."""

    def __init__(
        self, file: str, node: etree._Element, subject: str | None = None, owner: Element | None = None
    ) -> None:
        self.file = file
        self.node = node
        self._subject, self._owner = subject, owner
        self._read: set[str] = set()
        self._tags: set[str] = set()
        self._again: list[Element] = []
        self._spaced: list[str] = []

    # computed on demand: a file has far more elements than messages

    @property
    def tag(self) -> str:
        """Tag of the element."""
        return str(self.node.tag)

    @property
    def line(self) -> int:
        """Line of the element; exact up to 65535 lines, within one or two beyond."""
        return int(self.node.sourceline or 1)

    @property
    def subject(self) -> str:
        """Description of the element for messages: by default that of its owner, the tag and the name."""
        if self._subject is None and self._owner is not None:
            return f"{self._owner.subject}: <{self.tag}>"
        name = self.node.get("name")
        return self._subject or (f"<{self.tag}>" if name is None else f"{self.tag} {name!r}")

    def error(self, message: str) -> FileError:
        """An error about this element: its file, line and subject, then the message."""
        return FileError(self.file, self.line, f"{self.subject}: {message}")

    def finding(self, text: str) -> Finding:
        """A finding about this element."""
        return Finding(self.line, self.subject, text)

    def children(self, tag: str) -> list[Element]:
        """The children with a tag."""
        self._tags.add(tag)
        return [Element(self.file, node) for node in self.node.iterchildren(tag)]

    def child(self, tag: str) -> Element | None:
        """The first child with a tag, whose subject includes this element's; further ones are not read."""
        self._tags.add(tag)
        nodes = self.node.iterchildren(tag)
        first = next(nodes, None)
        if first is None:
            return None
        self._again.extend(Element(self.file, node, owner=self) for node in nodes)
        return Element(self.file, first, owner=self)

    def required(self, tag: str) -> Element:
        """The only child with a tag.

        Raises:
            FileError: no such child, or more than one.
        """
        found = self.child(tag)
        if found is None:
            raise self.error(f"expected a <{tag}>, got none")
        if self._again and self._again[-1].tag == tag:
            raise self._again[-1].error(f"expected only one, there is another one in line {found.line}")
        return found

    def text(self, attribute: str, default: str | None = None) -> str | None:
        """The text of an attribute."""
        self._read.add(attribute)
        return self.node.get(attribute, default)

    def name(self, attribute: str = "name") -> str:
        """The text of an attribute that is a name.

        Raises:
            FileError: the attribute is missing or empty.
        """
        value = self.text(attribute)
        if not value or not value.strip():
            raise self.error(f"expected an attribute {attribute!r} that is a name, got {_shown(value)}")
        return value

    def choice(self, attribute: str, known: Iterable[str], more: str = "") -> str:
        """The text of an attribute with a fixed set of values; ``more`` is appended to an error.

        Raises:
            FileError: the attribute is missing or has another value.
        """
        value, words = self.text(attribute), list(known)
        if value not in words:
            raise self.error(f"{attribute}: expected one of {', '.join(words)}, got {_shown(value)}{more}")
        return value

    def numbers(self, attribute: str, count: int, default: tuple[float, ...]) -> tuple[float, ...]:
        """The finite numbers of an attribute.

        Args:
            count: Number of values.
            default: Values of a missing attribute.

        Raises:
            FileError: other content.
        """
        value = self.text(attribute)
        if value is None:
            return default
        found = tuple(map(_number, value.split()))
        if len(found) != count or not all(map(math.isfinite, found)):
            raise self.error(f"{attribute}: expected {count} finite numbers, got {value!r}")
        return found

    @property
    def words(self) -> str:
        """The text between the tags, stripped."""
        return (self.node.text or "").strip()

    def content(self, *counts: int) -> tuple[float, ...]:
        """The finite numbers between the tags.

        Args:
            counts: Allowed numbers of values.

        Raises:
            FileError: other content.
        """
        found = tuple(map(_number, self.words.split()))
        if len(found) not in counts or not all(map(math.isfinite, found)):
            raise self.error(f"expected {' or '.join(map(str, counts))} finite numbers, got {self.words!r}")
        return found

    def value(self, holds: Callable[[float], bool] = math.isfinite) -> float:
        """The number between the tags.

        Args:
            holds: Condition on the number.

        Raises:
            FileError: other content, or the condition fails.
        """
        found = _number(self.words)
        if not holds(found):
            raise self.error(f"expected {_EXPECTED.get(holds, 'a number')}, got {self.words!r}")
        return found

    def flag(self) -> bool:
        """The boolean between the tags.

        Raises:
            FileError: other content.
        """
        known = {"true": True, "1": True, "false": False, "0": False}
        if self.words.lower() not in known:
            raise self.error(f"expected true or false, got {self.words!r}")
        return known[self.words.lower()]

    def number(
        self, attribute: str, default: float | None = None, holds: Callable[[float], bool] = math.isfinite
    ) -> float:
        """The number in an attribute.

        Args:
            default: Value of a missing attribute; None for a required attribute.
            holds: Condition on the number.

        Raises:
            FileError: other content, a missing required attribute, or the condition fails.
        """
        value = self.text(attribute)
        if value is None and default is not None:
            return default
        found = _number(value or "")
        if value is not None and value != value.strip():
            self._spaced.append(attribute)
        if not holds(found):
            raise self.error(f"{attribute}: expected {_EXPECTED.get(holds, 'a number')}, got {_shown(value)}")
        return found

    def unread(self, quiet: frozenset[str] = frozenset()) -> Iterator[Finding]:
        """Findings about unread children and attributes, except children with the tags in ``quiet``.

        Also about numbers that were read and that other readers refuse.
        """
        read = self._tags | quiet
        for node in self.node.iterchildren(etree.Element):
            if node.tag not in read:
                yield Element(self.file, node, f"in {self.subject}").finding(f"<{node.tag}>")
        for again in self._again:
            yield Finding(again.line, f"in {self.subject}", f"a second <{again.tag}>")
        for attribute in self.node.attrib:
            if attribute not in self._read:
                yield self.finding(f"attribute {attribute!r} of <{self.tag}>")
        for attribute in self._spaced:
            yield self.finding(f"{attribute}: a number with white space around it, which other readers refuse")


Error = Callable[[str], FileError]
"""Function from a message to an error about an element."""


@contextmanager
def errors_at(error: Error) -> Iterator[None]:
    """A context that raises errors of the builder as errors of an element."""
    try:
        yield
    except ModelError as fault:
        raise error(str(fault)) from fault


def built(
    builder: ModelBuilder, loops: Mapping[str, Callable[[str], FileError]], otherwise: Callable[[str], FileError]
) -> Model:
    """Build the model; an error about a loop is raised at its element, other errors by ``otherwise``."""
    try:
        return builder.build()
    except ModelError as fault:
        own = (error for name, error in loops.items() if str(fault).startswith(f"loop {name!r}:"))
        raise next(own, otherwise)(str(fault)) from fault


def is_bound(value: float) -> bool:
    """True if a number can be a limit; limits may be infinite."""
    return not math.isnan(value)


def is_size(value: float) -> bool:
    """True if a number is finite and nonnegative."""
    return 0 <= value < math.inf


def is_factor(value: float) -> bool:
    """True if a number is finite and nonzero."""
    return math.isfinite(value) and value != 0


_EXPECTED = {
    math.isfinite: "a finite number",
    is_bound: "a number",
    is_size: "a finite nonnegative number",
    is_factor: "a finite nonzero number",
}


class Document(NamedTuple):
    """A file of XML.

    Attributes:
        root: The root element.
        remarks: Findings about what other readers of XML refuse.
    """

    file: str
    root: etree._Element
    remarks: list[Finding]


def read(path: str | os.PathLike[str] | None, text: str | None) -> Document:
    """Read a file, from a path or from XML text.

    Entities are not expanded, and neither the network nor any other file is accessed. An XML declaration that is not at
    the start or has another version, "--" in comments and a default namespace are read with a remark.

    Raises:
        FileError: the file cannot be read or is not XML.
        TypeError: both or neither are given.
    """
    if (path is None) == (text is None):
        raise TypeError("expected either a path or text, the XML itself")
    file, content = file_content(path, text)
    remarks: list[Finding] = []
    content = _repaired(content, remarks)
    root = _root(file, content, None if text is None else "utf-8")
    space = root.nsmap.get(None)
    # macros are no XML of another kind, see urdf_elements.robot
    if space and root.tag.startswith("{") and "xacro" not in space:
        remarks.append(Finding(int(root.sourceline or 1), f"the namespace {space!r}", "is ignored"))
        for node in root.iter(f"{{{space}}}*"):
            node.tag = etree.QName(node).localname
    return Document(file, root, remarks)


def file_content(path: str | os.PathLike[str] | None, text: str | None) -> tuple[str, bytes]:
    """The name and the content of a file, from a path or from text.

    Raises:
        FileError: the file cannot be read, or the path is XML.
    """
    if text is not None:
        return TEXT, text.encode("utf-8", "surrogatepass")
    file = os.fspath(path or "")
    if file.lstrip().startswith("<"):
        raise FileError(TEXT, None, "expected the path of a file, got XML; give it as text=...")
    try:
        content = read_bytes(file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or error
        raise FileError(file, None, f"the file cannot be read: {reason}") from error
    try:
        whole = expand(path or "")
    except ValueError as error:
        raise FileError(file, None, str(error)) from error
    return file, content if whole is None else whole.encode()


_DECLARATION = re.compile(rb"<\?xml\s[^>]*\?>")
_COMMENT = re.compile(rb"<!--(.*?)-->", re.DOTALL)
_VERSION = re.compile(rb"version\s*=\s*[\"']1\.\d+[\"']")


def _repaired(content: bytes, remarks: list[Finding]) -> bytes:
    """The content without what XML forbids and a reader need not; lines stay where they are."""

    def blank(match: re.Match[bytes], subject: str, text: str) -> bytes:
        remarks.append(Finding(content.count(b"\n", 0, match.start()) + 1, subject, text))
        return re.sub(rb"[^\n]", b" ", match.group())

    def comment(match: re.Match[bytes]) -> bytes:
        inside = match.group(1)
        if b"--" not in inside and not inside.endswith(b"-"):
            return match.group()
        return blank(match, "comment", 'contains "--"')

    content = _COMMENT.sub(comment, content)
    declaration = _DECLARATION.search(_COMMENT.sub(lambda match: b" " * len(match.group()), content))
    if declaration is None:
        return content
    # a byte order mark may precede it
    if content[: declaration.start()] not in (b"", b"\xef\xbb\xbf"):
        text = "is not at the start"
    elif _VERSION.search(declaration.group()):
        return content
    else:
        text = "has no version 1.0"
    start, end = declaration.span()
    return content[:start] + blank(declaration, "XML declaration", text) + content[end:]


def _root(file: str, content: bytes, encoding: str | None) -> etree._Element:
    """The root element of XML.

    Raises:
        FileError: not XML, or XML with entities.
    """
    # recovery mode only tolerates undeclared tag prefixes, which other readers accept
    parser = etree.XMLParser(
        recover=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        encoding=encoding,
    )
    try:
        root = etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise FileError(file, getattr(error, "lineno", None) or 1, f"not XML: {one_line(error)}") from error
    for entry in parser.error_log:
        if entry.level_name != "WARNING" and entry.type_name != "NS_ERR_UNDEFINED_NAMESPACE":
            raise FileError(file, max(entry.line, 1), f"not XML: {' '.join(entry.message.split())}")
    if root is None:
        raise FileError(file, 1, "not XML: there is no element")
    dtd = root.getroottree().docinfo.internalDTD
    if dtd is not None and any(True for _ in dtd.iterentities()):
        raise FileError(file, 1, "expected no entities in the document type; they are not expanded")
    return root


def recovered_root(content: bytes) -> etree._Element | None:
    """The root of a file that other parsers read and that may not be XML, such as MJCF; None without one."""
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, load_dtd=False)
    try:
        return etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None


def _number(text: str) -> float:
    """The number in a text; NaN for invalid text."""
    try:
        # Python also accepts 1_000 and digits of all scripts
        return math.nan if "_" in text or not text.isascii() else float(text)
    except ValueError:
        return math.nan


def _shown(value: str | None) -> str:
    return "none" if value is None else repr(value)
