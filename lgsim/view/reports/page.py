"""Reports in one HTML file with text, tables and plots, without network access or scripts."""

from __future__ import annotations

import base64
import html
import io
import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lgsim.support.files import write_whole
from lgsim.support.printable import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = str | int | float | np.number | None
"""A text, a number, or None for a dash."""

KINDS = ("good", "note", "bad")
"""Kinds of remarks: a check that passed, a note, a fault."""

DIGITS = 5
"""Significant digits of numbers in tables."""

_STYLE = """
:root { color-scheme: light; --ink: #20252c; --soft: #5b6570; --line: #e3e6ea; --back: #f6f7f9; --blue: #1a78d1; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1060px; margin: 0 auto; padding: 36px 28px 60px; }
header { border-bottom: 3px solid var(--blue); padding-bottom: 14px; margin-bottom: 22px; }
h1 { font-size: 27px; line-height: 1.25; margin: 0; letter-spacing: -0.01em; overflow-wrap: anywhere; }
header p { color: var(--soft); margin: 6px 0 0; overflow-wrap: anywhere; }
nav { margin: 12px 0 0; font-size: 13.5px; }
nav a { color: var(--blue); text-decoration: none; margin-right: 18px; white-space: nowrap; }
section { background: #fff; border: 1px solid var(--line); border-radius: 8px;
  padding: 20px 24px 22px; margin: 20px 0; }
h2 { font-size: 18px; margin: 0 0 10px; }
h3 { font-size: 15px; margin: 20px 0 6px; }
p { margin: 8px 0; max-width: 78ch; }
ul { margin: 8px 0; padding-left: 20px; }
li { margin: 3px 0; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px; margin: 14px 0; }
dl div { background: var(--back); border-radius: 6px; padding: 10px 14px; }
dt { color: var(--soft); font-size: 12.5px; }
dd { margin: 2px 0 0; font-size: 19px; font-weight: 600; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.remark { border-left: 4px solid; border-radius: 4px; padding: 8px 14px; margin: 12px 0; max-width: none; }
.good { border-color: #2a9d5c; background: #eef8f2; }
.note { border-color: #c99a06; background: #fdf8e8; }
.bad { border-color: #c0392b; background: #fcefed; }
.wide { overflow-x: auto; margin: 12px 0; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; min-width: 50%; }
caption, figcaption { text-align: left; color: var(--soft); font-size: 13px; padding: 0 0 6px; }
figcaption { padding: 6px 0 0; }
th { text-align: left; color: var(--soft); font-weight: 600; border-bottom: 2px solid var(--line); padding: 5px 12px; }
td { border-bottom: 1px solid var(--line); padding: 4px 12px; vertical-align: top; }
tbody tr:hover { background: var(--back); }
.number { text-align: right; white-space: nowrap; }
figure { margin: 16px 0; }
img { max-width: 100%; height: auto; display: block; }
summary { cursor: pointer; color: var(--blue); margin: 10px 0; }
footer { color: var(--soft); font-size: 12.5px; margin-top: 26px; }
@media print {
  body { background: #fff; font-size: 11px; } main { max-width: none; padding: 0; }
  section { border: none; padding: 8px 0; } figure, tr, .remark { break-inside: avoid; } nav { display: none; }
}
"""

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""Content security policy of a page without replays: nothing is loaded, no script runs."""

_PLAYING = (
    "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline' data:; font-src data:; media-src data: blob:;"
    " script-src 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' data: blob:; worker-src data: blob:;"
    " child-src data: blob:; frame-src data: blob:; connect-src data: blob:"
)
"""Content security policy of a page with replays: scripts are in the file, nothing is loaded."""


class Page:
    """A report in one HTML file: ``page.save("report.html")`` writes it, ``page.html()`` returns its text.

    Elements are added from top to bottom. Texts are plain text, with HTML escaped. A page loads no external resources.

    Args:
        foot: Footer, such as the program that made the page.
    """

    def __init__(self, title: str, subtitle: str = "", foot: str = "") -> None:
        self._title, self._subtitle, self._foot = title, subtitle, foot
        self._sections: list[tuple[str, list[str]]] = []
        self._plays = False

    def add_section(self, heading: str) -> None:
        """Add a section for the following elements, with an entry in the table of contents."""
        self._sections.append((heading, []))

    def add_heading(self, text: str) -> None:
        """Add a heading within a section."""
        self._add(f"<h3>{escape(text)}</h3>")

    def add_text(self, text: str) -> None:
        """Add a paragraph."""
        self._add(f"<p>{escape(text)}</p>")

    def add_remark(self, text: str, kind: str = "note") -> None:
        """Add a highlighted line.

        Raises:
            ValueError: ``kind`` is not in ``KINDS``.
        """
        if kind not in KINDS:
            raise ValueError(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}")
        self._add(f'<p class="remark {kind}">{escape(text)}</p>')

    def add_verdict(self, text: str, good: bool) -> None:
        """Add a highlighted sentence about a check that passed or failed."""
        self.add_remark(f"{text[:1].upper()}{text[1:].removesuffix('.')}.", "good" if good else "bad")

    def add_list(self, items: Iterable[str]) -> None:
        """Add a bullet list."""
        self._add("<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>")

    def add_facts(self, facts: Iterable[tuple[str, Cell]]) -> None:
        """Add key figures, names and values in large type; values as for ``add_table``."""
        shown = "".join(f"<div><dt>{escape(name)}</dt><dd>{_shown(value)}</dd></div>" for name, value in facts)
        self._add(f"<dl>{shown}</dl>")

    def add_table(
        self, columns: Sequence[str], rows: Iterable[Sequence[Cell]], caption: str = "", folded: str = ""
    ) -> None:
        """Add a table.

        Args:
            rows: Text, or numbers, which are shown to ``DIGITS`` digits; NaN and None as a dash. Columns with numbers
                are aligned to the right.
            folded: Text of a closed disclosure element that contains the table; empty for an open table.

        Raises:
            ValueError: a row has more or fewer cells than there are columns.
        """
        body = [list(row) for row in rows]
        for row in body:
            if len(row) != len(columns):
                raise ValueError(f"rows: expected {len(columns)} cells, got {len(row)}: {row}")
        numeric = [any(_is_number(row[i]) for row in body) for i in range(len(columns))]
        marks = [' class="number"' if right else "" for right in numeric]
        head = "".join(f"<th{mark}>{escape(name)}</th>" for name, mark in zip(columns, marks, strict=True))
        lines = "".join(
            "<tr>" + "".join(f"<td{mark}>{_shown(x)}</td>" for x, mark in zip(row, marks, strict=True)) + "</tr>"
            for row in body
        )
        above = f"<caption>{escape(caption)}</caption>" if caption else ""
        made = f'<div class="wide"><table>{above}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'
        self._add(f"<details><summary>{escape(folded)}</summary>{made}</details>" if folded else made)

    def add_figure(self, figure: Figure, caption: str = "", dpi: float = 160) -> None:
        """Add a matplotlib figure as an embedded picture.

        Args:
            dpi: Resolution, dots per inch.
        """
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=dpi, facecolor="white")
        source = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
        width = round(figure.get_size_inches()[0] * 96)
        below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        self._add(f'<figure><img src="{source}" width="{width}" alt="{escape(caption or "plot")}">{below}</figure>')

    def add_replay(self, scene: str, caption: str, height: int = 420) -> None:
        """Add a 3D replay.

        Args:
            scene: HTML text of ``lgsim.view.to_html``.
            height: Height, pixels.
        """
        self._plays = True
        self._add(
            f'<figure><iframe srcdoc="{html.escape(scene)}" title="{escape(caption)}" loading="lazy"'
            f' style="width:100%;height:{height}px;border:1px solid var(--line);border-radius:6px"></iframe>'
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )

    def html(self) -> str:
        """HTML text of the page."""
        parts = [(f"part{i}", heading, body) for i, (heading, body) in enumerate(self._sections)]
        links = "".join(f'<a href="#{mark}">{escape(name)}</a>' for mark, name, _ in parts if name)
        sections = "\n".join(
            f'<section id="{mark}">{f"<h2>{escape(name)}</h2>" if name else ""}\n{chr(10).join(body)}\n</section>'
            for mark, name, body in parts
        )
        subtitle = f"<p>{escape(self._subtitle)}</p>" if self._subtitle else ""
        policy = _PLAYING if self._plays else _POLICY
        foot = f"<footer>{escape(self._foot)}</footer>" if self._foot else ""
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            '<meta name="generator" content="lgsim report">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self._title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
            f"<header><h1>{escape(self._title)}</h1>{subtitle}<nav>{links}</nav></header>\n"
            f"{sections}\n{foot}\n</main>\n</body>\n</html>\n"
        )

    def save(self, path: str | Path) -> Path:
        """Write the page atomically.

        Raises:
            OSError: the file cannot be written.
        """
        write_whole(Path(path), self.html().encode("utf-8"))
        return Path(path)

    def _add(self, piece: str) -> None:
        """Append HTML to the last section."""
        if not self._sections:
            self.add_section("")
        self._sections[-1][1].append(piece)


def escape(text: str) -> str:
    """HTML of a single line of text."""
    return html.escape(printable(text))


def _is_number(value: Cell) -> bool:
    """True for a number that is not a boolean."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _shown(value: Cell) -> str:
    """HTML of a cell."""
    if value is None:
        return "–"
    if not isinstance(value, Real) or isinstance(value, bool):
        return escape(str(value))
    if isinstance(value, Integral):
        return f"{value}".replace("-", "−")
    number = float(value) + 0.0  # no minus before zero
    return "–" if math.isnan(number) else f"{number:.{DIGITS}g}".replace("-", "−").replace("inf", "∞")
