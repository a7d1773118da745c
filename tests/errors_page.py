"""The tables of docs/errors.md and docs/command.md: result codes, classes of errors, verdicts, exit statuses.

python -m tests.errors_page        draws them anew
"""

import inspect
from pathlib import Path

import equinox as eqx

from lgsim.cli.exit_status import Exit
from lgsim.cli.work.identification import reason_of
from lgsim.support.verdict import Outcome, Verdict
from tests.public_record import listed, modules

DOCS = Path(__file__).parents[1] / "docs"
PAGE, COMMAND = DOCS / "errors.md", DOCS / "command.md"


def public() -> dict[str, type]:
    """Every public class by its shortest path, once."""
    found: dict[int, tuple[str, type]] = {}
    for home, module in sorted(modules().items(), key=lambda pair: pair[0].count(".")):
        for name in listed(module):
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


def code_tables() -> str:
    """The tables of the result codes."""
    text = []
    for path, entries in codes().items():
        text += [f"### `{path}`", "", "| code | what it means, and what to do |", "|---|---|"]
        text += [f"| `{name}` | {said} |" for name, said in entries.items()] + [""]
    return "\n".join(text)


def verdict_table() -> str:
    """The table of the outcomes of a fit."""
    text = ["| outcome | verdict | `converged` | exit status of `lgsim identify` |", "|---|---|---|---|"]
    for outcome in Outcome:
        converged = "yes" if Verdict(outcome, "").converged else "no"
        text.append(f"| `{outcome.name}` | {outcome.value} | {converged} | {reason_of(outcome).status} |")
    return "\n".join([*text, ""])


def exit_table() -> str:
    """The table of the exit statuses."""
    text = ["| exit status | reason | commands |", "|---|---|---|"]
    for reason in Exit:
        commands = ", ".join(f"`{name}`" for name in reason.commands) or "all"
        text.append(f"| {reason.status} | {reason.meaning} | {commands} |")
    return "\n".join([*text, ""])


PARTS = {"codes": code_tables, "verdicts": verdict_table, "exit statuses": exit_table}


def drawn(page: str) -> str:
    """The page with its tables as they are now."""
    for name, part in PARTS.items():
        begin, end = f"<!-- {name}: python -m tests.errors_page -->\n", f"<!-- end of {name} -->\n"
        if begin in page:
            page = page[: page.index(begin) + len(begin)] + f"\n{part()}\n" + page[page.index(end) :]
    return page


if __name__ == "__main__":
    for path in (PAGE, COMMAND):
        path.write_text(drawn(path.read_text(encoding="utf-8")), encoding="utf-8")
