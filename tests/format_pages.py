"""docs/file_elements.md: what the readers of URDF, SDF and MJCF read, state and refuse, seen while they read.

python -m tests.format_pages        draws the tables again

The readers of URDF and SDF ask each element for its attributes and children, and report what they did not ask for.
Files with every element of the specifications show which ones; see ``tests.mjcf_elements`` for MJCF.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import mujoco as mujoco_module
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from lgsim.formats import FileError, read_mjcf, read_sdf, read_urdf
from lgsim.formats.actuator_files import read_actuators
from lgsim.formats.report import Dropped, Finding, Report
from lgsim.formats.xml import Element
from tests import mjcf_elements

mujoco: Any = mujoco_module
VERSION = mjcf_elements.VERSION
PAGE = Path(__file__).parents[1] / "docs" / "file_elements.md"
SPECIMENS = Path(__file__).parent / "formats" / "specimens"
"""Files with every element of the specifications."""

Place = tuple[str, str]
"""Tags of an element's parent and of the element."""


class Asked(NamedTuple):
    """What readers did with the elements of a file, by their places: names of attributes, and of children in <>."""

    read: dict[Place, set[str]]
    stated: dict[Place, set[str]]
    quiet: dict[Place, set[str]]


def place(node: etree._Element) -> Place:
    parent = node.getparent()
    return ("" if parent is None else str(parent.tag), str(node.tag))


@contextmanager
def watched() -> Iterator[Asked]:
    """A context in which all elements record what they are asked for."""
    asked = Asked(*(defaultdict(set) for _ in range(3)))
    children, child, text, value, unread = (
        Element.children, Element.child, Element.text, Element.value, Element.unread
    )  # fmt: skip

    def see_children(self: Element, tag: str) -> list[Element]:
        asked.read[place(self.node)].add(f"<{tag}>")
        return children(self, tag)

    def see_child(self: Element, tag: str) -> Element | None:
        asked.read[place(self.node)].add(f"<{tag}>")
        return child(self, tag)

    def see_text(self: Element, attribute: str, default: str | None = None) -> str | None:
        asked.read[place(self.node)].add(attribute)
        return text(self, attribute, default)

    def see_value(self: Element, *given: Any) -> float:
        asked.read[place(self.node)].add("")
        return value(self, *given)

    def see_unread(self: Element, quiet: frozenset[str] = frozenset()) -> Any:
        found = list(unread(self, quiet))
        names = [re.match(r"attribute '(.+)' of|(<.+>)$", finding.text) for finding in found]
        asked.stated[place(self.node)].update(name[1] or name[2] for name in names if name)
        asked.quiet[place(self.node)].update(f"<{tag}>" for tag in quiet)
        return iter(found)

    seen = {"children": see_children, "child": see_child, "text": see_text, "value": see_value, "unread": see_unread}
    with mock.patch.multiple(Element, **seen):
        yield asked


class Format(NamedTuple):
    """A format of elements: its specimen, and the calls that read it by what reads them, which return reports."""

    name: str
    specimen: str
    calls: dict[str, Callable[[Path], list[Report]]]


def _urdf_actuators(path: Path) -> list[Report]:
    read_actuators(read_urdf(path)[0], path)
    return []


def _shapes(read: Callable[..., Any]) -> Callable[[Path], list[Report]]:
    law = {"stiffness": 1e5}
    return lambda path: [read(path, solids=True)[1], read(path, contacts=["arm"], contact_law=law)[1]]


SHAPES = "`contacts=`, `solids=`"
FORMATS = (
    Format("URDF", "all.urdf", {"": lambda path: [read_urdf(path)[1]], SHAPES: _shapes(read_urdf),
                                "`load_actuators`": _urdf_actuators}),
    Format("SDF", "all.sdf", {"": lambda path: [read_sdf(path)[1]], SHAPES: _shapes(read_sdf)}),
)  # fmt: skip


class Row(NamedTuple):
    """What becomes of the attributes and children of an element.

    Attributes:
        by_call: What only other calls read.
        unread: What no reader asks for, states or leaves out on purpose.
    """

    read: frozenset[str]
    by_call: tuple[tuple[str, frozenset[str]], ...]
    stated: frozenset[str]
    quiet: frozenset[str]
    unread: frozenset[str]


def rows(own: Format) -> dict[Place, Row]:
    """The elements of a format's specimen, without those in elements that are stated or without effect."""
    path = SPECIMENS / own.specimen
    seen: dict[str, Asked] = {}
    findings: list[Finding] = []
    for name, call in own.calls.items():
        with watched() as asked:
            findings += [finding for report in call(path) for finding in report.ignored]
        seen[name] = asked
    found: dict[Place, Row] = {}

    def visit(node: etree._Element) -> None:
        at, children = place(node), list(node.iterchildren(etree.Element))
        inner = {f"<{child.tag}>": place(child) for child in children}
        here = {*node.attrib, *inner}
        stated = here & set().union(*(asked.stated[at] for asked in seen.values()))
        stated |= {f"<{child.tag}>" for child in children if any(_is_about(child, x) for x in findings)}
        left, by_call = here - stated, {}
        for name, asked in seen.items():
            by_call[name] = (left & asked.read[at]) | {x for x in left if x in inner and asked.read.get(inner[x])}
            left -= by_call[name]
        quiet = left & set().union(*(asked.quiet[at] for asked in seen.values()))
        calls = tuple((name, frozenset(names)) for name, names in by_call.items() if name and names)
        row = Row(frozenset(by_call[""]), calls, frozenset(stated), frozenset(quiet), frozenset(left - quiet))
        found[at] = row if at not in found else _joined(found[at], row)
        for child in children:
            if f"<{child.tag}>" not in stated | left:
                visit(child)

    visit(etree.parse(str(path)).getroot())
    return {at: row for at, row in found.items() if any(row)}


def _is_about(node: etree._Element, finding: Finding) -> bool:
    """True for a finding that states an element itself, such as "<physics>" or "plugin 'p' is not run"."""
    if finding.line not in (node.sourceline, node.getparent().sourceline):
        return False
    named = finding.subject == f"{node.tag} {node.get('name')!r}" and isinstance(finding, Dropped)
    own = named and finding.text in ("is not run", "is not represented")
    return own or bool(re.match(rf"<{node.tag}>(:|$)|is an? {node.tag}\b", finding.text))


def _joined(a: Row, b: Row) -> Row:
    calls = {name: dict(a.by_call).get(name, frozenset()) | dict(b.by_call).get(name, frozenset())
             for name in dict([*a.by_call, *b.by_call])}  # fmt: skip
    return Row(a.read | b.read, tuple(calls.items()), *(x | y for x, y in zip(a[2:], b[2:], strict=True)))


def table(own: Format) -> str:
    """The table of a format's elements; elements of one name that are read alike have one row."""
    alike: dict[tuple[str, Row], list[str]] = {}
    for (parent, tag), row in rows(own).items():
        alike.setdefault((tag, row), []).append(parent)
    several = {tag for tag, _ in alike if sum(other == tag for other, _ in alike) > 1}
    text = ["| element | read | stated in the report | without effect on the motion |", "|---|---|---|---|"]
    for (tag, row), parents in sorted(alike.items(), key=lambda item: (item[0][0], sorted(item[1]))):
        inside = f" in {', '.join(f'`<{parent}>`' for parent in sorted(parents))}" if tag in several else ""
        read = [_names(row.read), *(f"{_names(names)} by {call}" for call, names in row.by_call)]
        cells = [
            f"{_names(frozenset({f'<{tag}>'}))}{inside}",
            "; ".join(filter(None, read)),
            _names(row.stated),
            _names(row.quiet | row.unread),
        ]
        text.append(f"| {' | '.join(cells)} |")
    return "\n".join([*text, ""])


def _names(names: frozenset[str]) -> str:
    drake = {name.replace("{http://drake.mit.edu}", "drake:") for name in names}
    return ", ".join(f"`{name}`" for name in sorted(drake, key=lambda name: (name.startswith("<"), name)))


def dropped_texts(reports: list[Report]) -> str:
    """The sentences about what acts in the file and not in the model."""
    found = {(x.subject.partition(" ")[0], re.sub(r"'[^']*'|\([^)]*\)|\d[\d.e+-]*", "...", x.text))
             for report in reports for x in report.ignored if isinstance(x, Dropped)}  # fmt: skip
    return "\n".join([*(f"- {kind} ... {text}" for kind, text in sorted(found)), ""])


def refusals(cases: dict[str, Callable[[], Any]]) -> str:
    """The sentences with which files are refused."""
    text = ["| file with | sentence |", "|---|---|"]
    for name, call in cases.items():
        try:
            call()
        except FileError as error:
            # of the rest each version of the XML library has its own words
            message = re.sub(r"^not XML: .*", "not XML: ...", error.message)
            text.append(f"| {name} | {_plain(message)} |")
        else:
            raise AssertionError(f"{name}: is read")
    return "\n".join([*text, ""])


def _plain(message: str) -> str:
    """A message as text of a table of Markdown."""
    return re.sub(r"([<>|*_`\[\]])", r"\\\1", message)


def _reports(reader: Callable[..., Any], *names: str) -> list[Report]:
    return [reader(SPECIMENS / name)[1] for name in names]


def refused_urdf() -> str:
    from tests.formats.test_urdf_errors import FAULTS, ROBOT

    cases = {name: ROBOT.replace(old, new) for name, (old, new, _) in FAULTS.items()}
    return refusals({name: (lambda text=text: read_urdf(text=text)) for name, text in cases.items()})


def refused_sdf() -> str:
    from tests.formats.test_sdf import ERRORS
    from tests.formats.test_sdf_models import ERRORS as OF_MODELS

    cases = {name: text for name, (text, *_) in (ERRORS | OF_MODELS).items()}
    return refusals({name: (lambda text=text: read_sdf(text=text)) for name, text in cases.items()})


def refused_mjcf() -> str:
    from tests.formats.test_mjcf_equalities import ERRORS, MORE, text_of

    cases = {name: text_of(tie, MORE) for name, (tie, _) in ERRORS.items() if name != "one body"}
    return refusals({name: (lambda text=text: read_mjcf(text=text)) for name, text in cases.items()})


PARTS: dict[str, Callable[[], str]] = {
    "elements of URDF": lambda: table(FORMATS[0]),
    "refused URDF": refused_urdf,
    "elements of SDF": lambda: table(FORMATS[1]),
    "statements of SDF": lambda: dropped_texts(_reports(read_sdf, "all.sdf")),
    "refused SDF": refused_sdf,
    "elements of MJCF": mjcf_elements.table,
    "statements of MJCF": lambda: dropped_texts(_reports(read_mjcf, "all.xml")),
    "refused MJCF": refused_mjcf,
}


def drawn(page: str, skip_mujoco: bool = False) -> str:
    """The page with its tables as they are now; those of another version of MuJoCo may be skipped."""
    for name, part in PARTS.items():
        if "MJCF" in name and skip_mujoco:
            continue
        begin, end = f"<!-- {name}: python -m tests.format_pages -->\n", f"<!-- end of {name} -->\n"
        page = page[: page.index(begin) + len(begin)] + f"\n{part()}\n" + page[page.index(end) :]
    return page


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
