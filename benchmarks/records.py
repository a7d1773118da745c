"""The pages of figures, and the figures of all other pages, from the records of the benchmarks and lanes.

    python benchmarks/records.py            write the figures of the README and of the pages
    python benchmarks/records.py --check    compare them with results/*.json, and fail where they differ

The pages Accuracy, Speed and Checks are made for the site, of all records; what they say about each table stands in
records.toml, and every number is one of a record. A page is written whole or not at all, and none of them if a record
is bad. In the README and in the pages of docs/ a table stands between `<!-- records: name -->` and
`<!-- end of records -->`, and a number of a sentence between `<!-- figure: name -->` and
`<!-- end -->`; records.toml says which numbers these are. The table of the lanes comes from results/lanes, which
.ci/lane writes. `--quick` is `--check`.
"""

import harness

import argparse
import json
import math
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent
PAGES = ("accuracy", "speed", "checks")
PARTS = ("machine", "figures", "bounds", "tables")
GPUS = ("gpu", "cuda", "rocm")
LANES = ("oldest", "lock", "newest")
COMMAND = "python benchmarks/records.py"
MARKED = re.compile(r"<!-- records: (\w+) -->\n(.*?)<!-- end of records -->", re.DOTALL)
FIGURE = re.compile(r"<!-- figure: (\w+) -->([^<]*)<!-- end -->")

INTRODUCTIONS = {
    "accuracy": """# Accuracy

How exact lgsim is: each table with the machine, the versions and the command that makes it again.
[Others' numbers](others_numbers.md) has values that nobody of lgsim made, [Checks](checks.md) the bounds that each run
is held to, [Speed](speed.md) what it takes.""",
    "speed": """# Speed

What lgsim takes, beside other libraries: each table with the machine, the versions and the command that makes it again.
Libraries take turns on one core, so that a slow moment hits all of them; times are medians. Machines differ: compare
within a table, not across tables. [Checks](checks.md) has the bounds that each run is held to, [Accuracy](accuracy.md)
what the results are worth.""",
    "checks": """# Checks

Every run of a benchmark is held to bounds, and a run that breaks one ends with another exit code. Here are the bounds
of the last full run of each benchmark, whether they held, and its figures. Bounds on speed are for a quiet machine.""",
}


class RecordError(Exception):
    """A record, a text or a picture that no page can be made of; the message names the file."""


@dataclass(frozen=True)
class Record:
    """One file of results and what records.toml says about it."""

    name: str
    path: Path
    content: dict
    text: dict

    def pages(self, page: str) -> list[tuple[dict, str]]:
        """The tables that stand on a page, each with its sentence."""
        found = []
        for table in self.content["tables"]:
            place, sentence = _sentence(self, table["title"])
            if place == page:
                found.append((table, sentence))
        return found

    def table(self, beginning: str) -> dict:
        """The first table whose title begins so."""
        for table in self.content["tables"]:
            if table["title"].startswith(beginning):
                return table
        raise RecordError(f"{self.path}: has no table {beginning!r}, which records.toml asks for")

    def row(self, beginning: str, cells: list) -> list:
        """The row of a table that begins with these cells."""
        for row in self.table(beginning)["rows"]:
            if [*map(str, row[: len(cells)])] == [*map(str, cells)]:
                return row
        raise RecordError(f"{self.path}: the table {beginning!r} has no row {cells}, which records.toml asks for")

    def measured_on_gpu(self) -> bool:
        return self.content["machine"]["device"]["platform"] in GPUS


def _sentence(record, title):
    """(page, sentence) of a table: of the longest text that its title begins with."""
    texts = [
        (beginning, page, sentence)
        for page in ("accuracy", "speed")
        for beginning, sentence in record.text.get(page, {}).items()
        if title.startswith(beginning)
    ]
    if not texts:
        raise RecordError(f"{record.path}: the table {title!r} has no sentence in records.toml")
    return max(texts, key=lambda text: len(text[0]))[1:]


def read(results: Path = harness.RESULTS, texts: Path = FOLDER / "records.toml") -> tuple[dict[str, Record], dict]:
    """The records by name in the order of records.toml, and the texts.

    Raises:
        RecordError: A record cannot be read, lacks a part or its machine, or has no text; a text has no record; a
            picture belongs to no record.
    """
    said = tomllib.loads(texts.read_text(encoding="utf-8"))
    pictures, figures = said.pop("pictures"), said.pop("figures")
    asked = said.pop("readme") | said.pop("decisions") | said.pop("others") | {"figures": figures}
    for path in sorted(results.glob("*.json")):
        if path.stem not in said:
            raise RecordError(f"{path}: has no text in {texts.name}")
    records = {}
    for name, text in said.items():
        path = results / f"{name}.json"
        if path.exists():
            records[name] = Record(name, path, _content(path), text)
        elif not text.get("optional"):
            raise RecordError(f"{path}: is not there, and {texts.name} has a text for it")
    owned = {*pictures, *(picture for record in records.values() for picture in record.text.get("pictures", ()))}
    for path in sorted(results.iterdir()):
        if path.suffix in (".png", ".html", ".svg") and path.name not in owned:
            raise RecordError(f"{path}: the figure has no record; name it in {texts.name} beside the record of its run")
    for name in sorted(owned):
        if not (results / name).exists():
            raise RecordError(f"{results / name}: the figure is not there, and {texts.name} names it")
    return records, asked


def _content(path):
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RecordError(f"{path}: is no JSON: {error}") from None
    for part in PARTS:
        if not isinstance(content, dict) or part not in content:
            raise RecordError(f"{path}: has no {part!r}")
    machine = content["machine"]
    if not isinstance(machine, dict) or not all(
        machine.get(part) for part in ("device", "cpu", "platform", "versions")
    ):
        raise RecordError(f"{path}: has no machine; expected device, cpu, platform and versions")
    if not machine["versions"].get("lgsim") or not content["tables"]:
        raise RecordError(f"{path}: expected tables and the version of lgsim that made them")
    return content


def pages(records: dict[str, Record]) -> dict[str, str]:
    """The text of each page of ``PAGES``.

    Raises:
        RecordError: a record is bad.
    """
    return {
        "accuracy": _page_of_tables("accuracy", records.values()),
        "speed": _page_of_tables("speed", [r for r in records.values() if not _about_gpu(r)]) + _gpu(records),
        "checks": _checks(records),
    }


def _about_gpu(record):
    return record.measured_on_gpu() or record.text.get("compiled", False)


def _page_of_tables(page, records):
    return "\n\n".join([INTRODUCTIONS[page], *(part for record in records for part in _section(page, record))]) + "\n"


def _section(page, record):
    """The heading of a record on a page, where it comes from, and its tables."""
    tables = record.pages(page)
    if not tables:
        return
    yield f"## {record.text['heading']}"
    yield _origin(record)
    for table, sentence in tables:
        yield _wrapped(f"**{table['title']}.** {sentence}")
        yield markdown(table["columns"], table["rows"])


def _gpu(records):
    parts = [part for record in records.values() if _about_gpu(record) for part in _section("speed", record)]
    measured = [record for record in records.values() if record.measured_on_gpu()]
    says = "No record was measured on a GPU. What follows was compiled for one on a machine without one: no time of it"
    says += " is a time on a card."
    if measured:
        says = f"Measured: {', '.join(record.text['heading'] for record in measured)}. The rest was compiled alone."
    parts = [f"#{part}" if part.startswith("## ") else part for part in parts]
    return "\n" + "\n\n".join(["## GPUs", _wrapped(says), *parts]) + "\n"


def script(record: Record) -> str:
    """The command that makes a record again."""
    return f"python benchmarks/{record.text.get('script', record.name)}.py"


def _origin(record):
    """One paragraph: the command, the machine, the versions."""
    machine = record.content["machine"]
    system = machine["platform"].partition("-")[0]
    place = f"{machine['device']['kind']}, {machine['cpu']}" if record.measured_on_gpu() else machine["cpu"]
    core = ", one core" if machine.get("pinned_to_core") is not None else ""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items() if version)
    text = f"Made by `{script(record)}` on {place}, {system}{core}, with {versions}."
    if unknown := [name for name in harness.PACKAGES if name not in machine["versions"]]:
        text += f" The record does not say which {', '.join(unknown)} were there."
    if peers := record.text.get("peers"):
        text += f" In environments of their own: {', '.join(f'{name} {pinned(name)}' for name in peers)}."
    return _wrapped(text)


def _wrapped(text):
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def pinned(name: str) -> str:
    """The version of a peer that runs in an environment of its own."""
    for path in sorted((FOLDER / "peers").glob("requirements-*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith(f"{name}=="):
                return line.partition("==")[2].strip()
    raise RecordError(f"{FOLDER / 'peers'}: no requirements-*.txt has the version of {name}")


def _checks(records):
    summary = []
    for record in records.values():
        bounds = record.content["bounds"]
        kept = sum(bound["holds"] for bound in bounds)
        summary.append([f"[{record.text['heading']}](#{_anchor(record)})", f"`{script(record)}`", len(bounds), kept])
    total = [sum(row[2] for row in summary), sum(row[3] for row in summary)]
    parts = [
        INTRODUCTIONS["checks"],
        f"Of {total[0]:,} bounds {total[1]:,} held. The table counts them by benchmark.",
        markdown(["benchmark", "made by", "bounds", "held"], summary),
        *(part for record in records.values() for part in _checks_of(record)),
    ]
    return "\n\n".join(parts) + "\n"


def _anchor(record):
    return re.sub(r"[^\w\- ]", "", record.text["heading"].lower()).replace(" ", "-")


def _checks_of(record):
    yield f"## {record.text['heading']}"
    yield _origin(record)
    figures = record.content["figures"]
    if figures:
        yield "The figures of the run, as its last line prints them:"
        yield markdown(["figure", "value", "unit"], [[name, f["value"], f["unit"]] for name, f in figures.items()])
    bounds = record.content["bounds"]
    broken = [bound for bound in bounds if not bound["holds"]]
    if broken:
        yield f"{len(broken)} of {len(bounds)} bounds did not hold in this run:"
        yield markdown(["bound", "found", "limit"], [row[:3] for row in map(_bound, broken)])
    else:
        yield f"All {len(bounds)} bounds held."
    yield f"<details><summary>The {len(bounds)} bounds of this run</summary>"
    yield markdown(["bound", "found", "limit", "held"], [_bound(bound) for bound in bounds])
    yield "</details>"


def _bound(bound):
    sides = [side for side in ("at_least", "at_most") if bound[side] is not None]
    digits = next((n for n in range(3, 17) if all(_kept(bound["value"], bound[side], n) for side in sides)), 17)
    limits = [f"{side.replace('_', ' ')} {shown(bound[side], digits)}" for side in sides]
    return [bound["name"], shown(bound["value"], digits), " and ".join(limits), "yes" if bound["holds"] else "**no**"]


def _kept(value, limit, digits):
    """Whether so many digits leave the order of a value and its limit as it is: no broken bound looks held."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return True
    a, b = (float(shown(x, digits).replace(",", "")) for x in (value, limit))
    return (a > b) - (a < b) == (value > limit) - (value < limit)


def shown(value: object, digits: int = 3) -> str:
    """A number to some digits; anything else as it is."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if not isinstance(value, float):
        return str(value).strip()
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if 1000 <= size < 1e9:
        return f"{float(f'{value:.{digits}g}'):,.{max(0, digits - len(str(int(size))))}f}"
    if size < 1e-3 or size >= 1e9:
        return "0" if size == 0 else f"{value:.{digits - 2}e}"
    return f"{value:.{digits}g}"


def markdown(columns: list, rows: list[list]) -> str:
    """A table; a bar inside of a cell is escaped."""
    lines = [[shown(cell).replace("|", r"\|") for cell in row] for row in [columns, *rows]]
    lines.insert(1, ["---"] * len(columns))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def lanes(folder: Path = harness.RESULTS / "lanes") -> str:
    """The versions of each lane of .ci/lane that has a record, and whether it passed.

    Raises:
        RecordError: A record is not one of a lane.
    """
    columns = []
    for lane in LANES:
        path = folder / f"{lane}.json"
        if not path.exists():
            continue
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            state = f"failed: {'; '.join(content['failed'])}" if content["failed"] else "passed"
            columns.append({"": content["lane"], "run on": content["date"], "state": state} | content["versions"])
        except (ValueError, KeyError, TypeError) as error:
            raise RecordError(f"{path}: is no record of a lane: {error!r}") from None
    if not columns:
        return "No lane has a record yet; `make oldest newest RECORD=1` writes them.\n"
    first = ["", "run on", "state", "Python", "jax", "jaxlib"]
    names = first + sorted({name for column in columns for name in column} - set(first), key=str.lower)
    rows = [[name, *(column.get(name, "-") for column in columns)] for name in names]
    made_by = ", ".join(f"`make {column['']} RECORD=1`" for column in columns)
    return f"{markdown(rows[0], rows[1:])}\n\n{_wrapped(f'Made by {made_by}.')}\n"


def marked_table(name: str, records: dict[str, Record], asked: dict) -> str:
    """The table of this name, below it where it comes from.

    Raises:
        RecordError: A row asks for what no record has.
    """
    if name == "lanes":
        return lanes()
    if name not in asked:
        raise RecordError(f"<!-- records: {name} -->: records.toml has no such table, only {', '.join(asked)}")
    used: dict[str, Record] = {}
    if isinstance(asked[name]["rows"][0], list):
        rows = [[_cell(cell, records, used) for cell in row] for row in asked[name]["rows"]]
        scripts = ", ".join(f"`{script(record).split()[1]}`" for record in used.values())
        says = f"Measured by {scripts}; machines and versions: [speed](speed.md), [accuracy](accuracy.md)."
        return f"{markdown(asked[name]['columns'], rows)}\n\n{_wrapped(says)}\n"
    rows = []
    for row in asked[name]["rows"]:
        record = records.get(row["record"])
        if record is None:
            path = harness.RESULTS / f"{row['record']}.json"
            raise RecordError(f"{path}: is not there, and the README's row {row['what']!r} is made from it")
        used[record.name] = record
        rows.append(list(_readme_row(row, record, name == "speed")))
    machines = sorted({record.content["machine"]["cpu"] for record in used.values()})
    versions = sorted({record.content["machine"]["versions"]["lgsim"] for record in used.values()})
    jax = sorted({record.content["machine"]["versions"]["jax"] for record in used.values()})
    scripts = ", ".join(f"`{script(record).split()[1]}`" for record in used.values())
    says = (
        f"lgsim {', '.join(versions)} with jax {', '.join(jax)} on {' and '.join(machines)}; made by `{COMMAND}` from"
        f" the records of {scripts}, which the page {name.capitalize()} shows."
    )
    return f"{markdown(asked[name]['columns'], rows)}\n\n{_wrapped(says)}\n"


def _cell(cell, records, used):
    """A text, or the number that `record | table | first cells; of its row | column` names, or `record | figure`."""
    parts = cell.split(" | ")
    if len(parts) == 2 and parts[0] in records:
        used[parts[0]] = records[parts[0]]
        return _single({"figure": parts[1]}, records[parts[0]])
    if len(parts) != 4:
        return cell
    name, table, row, column = parts
    record = records.get(name)
    if record is None:
        raise RecordError(f"{harness.RESULTS / name}.json: is not there, and records.toml asks for {cell!r}")
    used[name] = record
    columns = record.table(table)["columns"]
    if column not in columns:
        raise RecordError(f"{record.path}: the table {table!r} has no column {column!r}, only {', '.join(columns)}")
    found = record.row(table, row.split("; "))[columns.index(column)]
    try:
        return float(found) if isinstance(found, str) else found
    except ValueError:
        return found


def _readme_row(row, record, fast):
    """The cells of a row: what, ours, theirs, and how many times as fast."""
    if "figure" in row or "bound" in row:
        yield row["what"]
        yield shown(_single(row, record))
        yield _peer(row, record) if "peer" in row else ""
        return
    ours = record.row(row["table"], row["row"])[row["ours"]]
    theirs = record.row(row["table"], row.get("other", row["row"]))[row["theirs"]]
    for value in (ours, theirs):
        if not isinstance(value, int | float):
            raise RecordError(f"{record.path}: the row {row['what']!r} of the README has {value!r} for a number")
    unit = f" {row['unit']}" if "unit" in row else ""
    yield row["what"]
    yield f"{shown(ours)}{unit}"
    yield f"{_peer(row, record)}: {shown(theirs)}{unit}"
    if fast:
        yield f"{ours / theirs if row.get('rate') else theirs / ours:.3g}"


def _single(row, record):
    """A figure or the value of a bound."""
    if "figure" in row:
        found = record.content["figures"].get(row["figure"])
    else:
        found = next((b for b in record.content["bounds"] if b["name"] == row["bound"]), None)
    if found is None:
        raise RecordError(f"{record.path}: has no {row.get('figure') or row['bound']!r}, which a page shows")
    return found["value"]


def _peer(row, record):
    """The peer with its version; records of old lack some."""
    version = pinned(row["pinned"]) if "pinned" in row else record.content["machine"]["versions"].get(row["version"])
    return row["peer"].format(version or "(version not in the record)")


def filled(text: str, records: dict[str, Record], asked: dict) -> str:
    """A text with its marked tables made anew.

    Raises:
        RecordError: A mark has no end, or names no table or figure; a figure is first on its line, where Markdown
            takes the mark for the beginning of a block.
    """
    if text.count("<!-- records: ") != len(MARKED.findall(text)):
        raise RecordError("a table between `<!-- records: ... -->` and `<!-- end of records -->` has no end")
    if text.count("<!-- figure: ") != len(FIGURE.findall(text)):
        raise RecordError("a figure between `<!-- figure: ... -->` and `<!-- end -->` has no end")
    text = MARKED.sub(
        lambda m: f"<!-- records: {m[1]} -->\n\n{marked_table(m[1], records, asked)}\n<!-- end of records -->", text
    )
    return FIGURE.sub(lambda m: _figure(m, records, asked.get("figures", {})), text)


def _figure(mark, records, figures):
    """A mark with the number of its name."""
    name = mark[1]
    if name not in figures:
        raise RecordError(f"<!-- figure: {name} -->: records.toml has no such figure")
    if mark.string[: mark.start()][-1:] in ("", "\n"):
        raise RecordError(f"<!-- figure: {name} -->: it is first on its line")
    found = _cell(figures[name], records, {})
    if found == figures[name]:
        raise RecordError(f"<!-- figure: {name} -->: expected `record | table | cells | column`, got {found!r}")
    return f"<!-- figure: {name} -->{shown(found)}<!-- end -->"


def made(root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """Each file and the text that it should have."""
    records, asked = read()
    for page in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        text = page.read_text(encoding="utf-8")
        if "<!-- records: " in text or "<!-- figure: " in text:
            yield page, filled(text, records, asked)


def main(argv: list[str] | None = None) -> int:
    """Write or compare; the exit code."""
    parser = argparse.ArgumentParser(description="pages of figures from the benchmarks' records")
    parser.add_argument("--check", "--quick", action="store_true", help="compare, write nothing")
    check = parser.parse_args(argv).check
    try:
        files = list(made())
    except RecordError as error:
        print(f"records: {error}", file=sys.stderr)
        return 1
    differ = [(path, text) for path, text in files if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path, text in differ:
        if check:
            print(f"records: {path} is not what the records say; `{COMMAND}` writes it", file=sys.stderr)
        else:
            harness.write_whole(path, text)
    tables = sum(text.count("\n| ---") for _, text in files)
    print(f"records: {len(files)} files, {tables} tables, {len(differ)} {'differ' if check else 'written'}")
    return 1 if check and differ else 0


if __name__ == "__main__":
    sys.exit(main())
