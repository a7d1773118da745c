"""A horizontal bar chart as SVG text, without a plotting package: equal input gives equal text on every computer."""

from html import escape

WIDTH, ROW, TOP, LABEL, BAR = 760, 26, 34, 250, 250
"""Pixels: the chart, a row, the title, the labels, the longest bar."""
STYLE = "font-family:system-ui,'Segoe UI',Helvetica,Arial,sans-serif;font-size:12px"
SHORTEST = 2.0
"""Pixels of the shortest bar."""


def bar_chart(title: str, rows: list[tuple[str, float, str]], reference: float) -> str:
    """A chart with one bar a row.

    Args:
        title: The quantity, with its unit.
        rows: (label, length of the bar, text behind the bar).
        reference: A value that a vertical line marks, such as a speed-up of 1.
    """
    scale = BAR / max(value for _, value, _ in rows)
    height = TOP + ROW * len(rows) + 10
    line = LABEL + reference * scale
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        f' role="img" aria-label="{escape(title)}" style="{STYLE}">',
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#ffffff"/>',
        f'<text x="{LABEL}" y="22" font-weight="600" fill="#1b1f24">{escape(title)}</text>',
    ]
    for i, (label, value, text) in enumerate(rows):
        y, length = TOP + ROW * i, max(value * scale, SHORTEST)
        parts += [
            f'<text x="{LABEL - 8}" y="{y + 17}" text-anchor="end" fill="#1b1f24">{escape(label)}</text>',
            f'<rect x="{LABEL}" y="{y + 4}" width="{length:.1f}" height="{ROW - 8}" fill="#2f6fb0"/>',
            f'<text x="{LABEL + length + 6:.1f}" y="{y + 17}" fill="#57606a">{escape(text)}</text>',
        ]
    parts.append(
        f'<line x1="{line:.1f}" x2="{line:.1f}" y1="{TOP}" y2="{height - 10}" stroke="#c23b22" stroke-dasharray="3 3"/>'
    )
    return "\n".join([*parts, "</svg>"]) + "\n"
