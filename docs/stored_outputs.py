"""Rules for the outputs that are stored in the notebooks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

FIGURE, STORED = 100_000, 600_000
"""Largest size of a stored figure and of a stored notebook, bytes."""

TIMED = re.compile(r"\b(perf_counter|process_time|monotonic)\b")
"""Code that measures computing time: the output of its cell differs from run to run and is not stored."""

PLACES = re.compile(r"(?<![\w.])/(tmp|root|home|Users|work|usr|var|opt)/|[A-Z]:\\\\|0x[0-9a-f]{6,}")
"""Absolute paths and addresses of objects, which differ between computers."""


def faults(content: Mapping[str, Any], size: int) -> list[str]:
    """Reasons against the stored outputs of a notebook.

    Args:
        content: The notebook.
        size: Bytes of its file.
    """
    found = [] if size <= STORED else [f"{size} bytes, expected at most {STORED}"]
    outputs = 0
    for cell in content["cells"]:
        for output in cell.get("outputs", ()):
            outputs += 1
            if output["output_type"] == "error" or output.get("name") == "stderr":
                found.append(f"{cell['id']}: an error or a text on stderr")
            data = output.get("data", {})
            if "text/html" in data:
                found.append(f"{cell['id']}: HTML")
            for kind, value in {"text": output.get("text", ""), **data}.items():
                text = value if isinstance(value, str) else "".join(value)
                if kind.startswith("image/"):
                    if len(text) * (3 / 4 if kind == "image/png" else 1) > FIGURE:
                        found.append(f"{cell['id']}: a figure of {len(text)} characters, expected {FIGURE} bytes")
                elif place := PLACES.search(text):
                    found.append(f"{cell['id']}: a path or an address {text[place.start() : place.start() + 60]!r}")
                elif text.startswith("<Figure"):
                    found.append(f"{cell['id']}: a figure is the text {text!r}")
    return found if outputs else [*found, "no outputs"]
