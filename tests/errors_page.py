"""The tables of docs/errors.md: every public result code and what it says, every public class of errors.

python -m tests.errors_page        draws them anew
"""

import inspect
from pathlib import Path

import equinox as eqx

from tests.public_record import modules

PAGE = Path(__file__).parents[1] / "docs" / "errors.md"
MARK = "<!-- codes: python -m tests.errors_page -->\n", "<!-- end of codes -->\n"


def public() -> dict[str, type]:
    """Every public class by its shortest path, once."""
    found: dict[int, tuple[str, type]] = {}
    for home, module in sorted(modules().items(), key=lambda pair: pair[0].count(".")):
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isclass(value):
                found.setdefault(id(value), (f"{home}.{name}", value))
    return dict(sorted(found.values()))


def codes() -> dict[str, dict[str, str]]:
    """By path of an enumeration of results its codes and their texts."""
    found = {}
    for path, value in public().items():
        if isinstance(value, type(eqx.Enumeration)):
            names = [name for name in vars(value)["_name_to_item"]]
            found[path] = {name: value[getattr(value, name)] or "It ended as it should." for name in names}
    return found


def errors() -> dict[str, type]:
    """By path the public classes of errors and warnings."""
    return {path: value for path, value in public().items() if issubclass(value, Exception)}


def tables() -> str:
    """What stands between the marks."""
    text = []
    for path, entries in codes().items():
        text += [f"### `{path}`", "", "| code | what it means, and what to do |", "|---|---|"]
        text += [f"| `{name}` | {said} |" for name, said in entries.items()] + [""]
    return "\n".join(["", *text])


def drawn(page: str) -> str:
    """The page with its tables as they are now."""
    begin, end = (page.index(mark) for mark in MARK)
    return page[: begin + len(MARK[0])] + tables() + "\n" + page[end:]


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
