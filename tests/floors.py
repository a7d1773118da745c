"""The figure of the floors, ``docs/floors.svg``, from the tables that the test of the architecture enforces.

``python -m tests.floors`` writes it.
"""

from __future__ import annotations

import ast
from html import escape
from pathlib import Path

from tests.architecture import FLOORS

ROOT = Path(__file__).parents[1]
FIGURE = ROOT / "docs" / "floors.svg"

WIDTH, ROW, GAP, LEFT, TOP = 1000, 66, 10, 36, 46
COLORS = ("#f4ede4", "#efe3d3", "#e8dac5", "#dfe3cf", "#d3dfcd", "#c9dbd3", "#c3d6dd", "#c4cfe2", "#cbc8e3", "#d6c5df",
          "#e0c4d5", "#e8c6c6")  # fmt: skip
FONT = "font-family='DejaVu Sans, Helvetica, Arial, sans-serif'"


def rooms() -> dict[int, list[tuple[str, str]]]:
    """Of each floor its folders with what they say of themselves, from the top floor down."""
    found: dict[int, list[tuple[str, str]]] = {}
    for name, floor in FLOORS.items():
        door = ROOT / "lgsim" / name.replace(".", "/") / "__init__.py"
        if door.exists():
            text = ast.get_docstring(ast.parse(door.read_text(encoding="utf-8"))) or ""
            first = " ".join(text.partition("\n\n")[0].replace("`", "").split())
            found.setdefault(floor, []).append((name, first.rstrip(".")))
    return dict(sorted(found.items(), reverse=True))


def figure() -> str:
    """The figure as SVG: a row for each floor, a box for each folder, imports run down."""
    house = rooms()
    height = TOP + len(house) * (ROW + GAP) + 34
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' {FONT}>",
        f"<rect width='{WIDTH}' height='{height}' fill='white'/>",
        f"<text x='{LEFT}' y='28' font-size='15' fill='#333'>lgsim: what stands on what. "
        "An import runs down, or stays in its room.</text>",
    ]
    for row, names in enumerate(house.values()):
        y, span = TOP + row * (ROW + GAP), (WIDTH - 2 * LEFT + GAP) / len(names)
        for column, (name, text) in enumerate(names):
            x, w = LEFT + column * span, span - GAP
            parts.append(
                f"<rect x='{x:.1f}' y='{y}' width='{w:.1f}' height='{ROW}' rx='5' "
                f"fill='{COLORS[len(COLORS) - 1 - row % len(COLORS)]}' stroke='#8a8a8a' stroke-width='0.8'/>"
            )
            parts.append(f"<text x='{x + 10:.1f}' y='{y + 21}' font-size='15' font-weight='bold'>{name}</text>")
            for line, words in enumerate(_lines(text, int(w / 6.0))):
                place = f"x='{x + 10:.1f}' y='{y + 38 + 13 * line}'"
                parts.append(f"<text {place} font-size='10.5' fill='#333'>{escape(words)}</text>")
    ground = TOP + len(house) * (ROW + GAP)
    parts.append(f"<line x1='14' y1='{TOP + 8}' x2='14' y2='{ground - 18}' stroke='#666' stroke-width='1.5'/>")
    parts.append(f"<path d='M 9 {ground - 20} L 19 {ground - 20} L 14 {ground - 10} Z' fill='#666'/>")
    parts.append(
        f"<text x='{LEFT}' y='{ground + 16}' font-size='11' fill='#555'>dynamics and multibody know no integrator, "
        "integrators know no machine; simulation is where they meet.</text>"
    )
    return "\n".join([*parts, "</svg>", ""])


def _lines(text: str, length: int, most: int = 2) -> list[str]:
    """Text cut into at most ``most`` lines between words; a longer one ends with three dots."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) + 1 <= length:
            lines[-1] = f"{lines[-1]} {word}".strip()
        else:
            lines.append(word)
    return lines if len(lines) <= most else [*lines[: most - 1], lines[most - 1].rstrip(",;:") + " ..."]


if __name__ == "__main__":
    FIGURE.parent.mkdir(exist_ok=True)
    FIGURE.write_text(figure(), encoding="utf-8")
