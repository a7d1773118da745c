"""Tables and figures of the README and the pages, from the records of the benchmarks.

    python benchmarks/records.py              write the tables and figures of the README and the pages
    python benchmarks/records.py --check      compare them with results/*.json, and fail where they differ
    python benchmarks/records.py --outdated   print the benchmarks whose records are older than their code

The pages Accuracy, Speed and Thresholds of the site are made from all records; records.toml has the text for each
table. A page is written atomically, and no page is written if a record is invalid. In the README and in the pages of
docs/ a table stands between `<!-- records: name -->` and `<!-- end of records -->`, and a number of a sentence between
`<!-- figure: name -->` and `<!-- end -->`; records.toml names these numbers. A table shows the records of one computer:
rows of another one are left out, and the line below counts them. The table of the versions comes from results/lanes,
which .ci/lane writes. `--quick` is `--check`.
"""

import harness

import argparse
import datetime
import json
import math
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reporting.bar_chart import bar_chart
from reporting.measured_files import outdated

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent
PAGES = ("accuracy", "speed", "checks")
PARTS = ("date", "commit", "machine", "figures", "bounds", "tables")
GPUS = ("gpu", "cuda", "rocm")
LANES = ("oldest", "lock", "newest")
COMMAND = "python benchmarks/records.py"
CHART = harness.RESULTS / "speed.svg"
MARKED = re.compile(r"<!-- records: (\w+) -->\n(.*?)<!-- end of records -->", re.DOTALL)
FIGURE = re.compile(r"<!-- figure: (\w+) -->([^<]*)<!-- end -->")

INTRODUCTIONS = {
    "accuracy": """# Accuracy

Errors of lgsim against exact solutions, other libraries and published results. Each table names the computer, the
versions and the command that reproduces it. [Third-party reference values](others_numbers.md) compares with published
results, [Thresholds](checks.md) lists the limits that each run must meet, and [Speed](speed.md) has the run
times.""",
    "speed": """# Speed

Run times of lgsim, compared with other libraries. Each table names the computer, the versions and the command that
reproduces it. Libraries take turns on one core, so that interference affects all of them; times are medians. The
computers differ: compare within a table, not across tables. [Thresholds](checks.md) lists the limits that each run must
meet, and [Accuracy](accuracy.md) has the errors.""",
    "checks": """# Thresholds

Each benchmark checks its results against thresholds, and exits with an error status if one is not met. This page
lists the thresholds of the last full run of each benchmark, whether they were met, and the figures of the run.
Thresholds on speed assume an otherwise idle computer.""",
}


REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]


class RecordError(Exception):
    """An invalid record, text or picture; the message names the file."""


@dataclass(frozen=True)
class Record:
    """One file of results, with its text in records.toml."""

    name: str
    path: Path
    content: dict
    text: dict

    def pages(self, page: str) -> list[tuple[dict, str]]:
        """The tables of a page, each with its sentence."""
        found = []
        for table in self.content["tables"]:
            place, sentence = _sentence(self, table["title"])
            if place == page:
                found.append((table, sentence))
        return found

    def table(self, beginning: str) -> dict:
        """The first table whose title begins with this text."""
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

    @property
    def computer(self) -> str:
        """The processor, or the GPU and the processor."""
        machine = self.content["machine"]
        return f"{machine['device']['kind']}, {machine['cpu']}" if self.measured_on_gpu() else machine["cpu"]

    @property
    def run(self) -> tuple[str, str, str]:
        """The computer, the day and the commit."""
        return self.computer, self.content["date"][:10], self.content["commit"] or "unknown"

    def measured_on_gpu(self) -> bool:
        """True if the record was measured on a GPU."""
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
        RecordError: a record cannot be read, is incomplete or has no text; a text has no record; a picture belongs to
            no record.
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
            raise RecordError(f"{path}: the figure has no record; name it in {texts.name} with the record of its run")
    for name in sorted(owned):
        if not (results / name).exists():
            raise RecordError(f"{results / name}: the figure is not there, and {texts.name} names it")
    return records, asked


def _content(path):
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RecordError(f"{path}: is not JSON: {error}") from None
    for part in PARTS:
        if not isinstance(content, dict) or part not in content:
            raise RecordError(f"{path}: has no {part!r}")
    machine = content["machine"]
    if not isinstance(machine, dict) or not all(
        machine.get(part) for part in ("device", "cpu", "platform", "versions")
    ):
        raise RecordError(f"{path}: has no `machine` with device, cpu, platform and versions")
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
    says = "No record was measured on a GPU. The programs below were compiled for a GPU on a computer without one: no"
    says += " time is a run time on a GPU."
    if measured:
        says = f"Measured: {', '.join(record.text['heading'] for record in measured)}. The rest was only compiled."
    parts = [f"#{part}" if part.startswith("## ") else part for part in parts]
    return "\n" + "\n\n".join(["## GPUs", _wrapped(says), *parts]) + "\n"


def script(record: Record) -> str:
    """The command that reproduces a record."""
    return f"python benchmarks/{record.text.get('script', record.name)}.py"


def _origin(record):
    """One paragraph: the command, the computer, the commit, the versions."""
    machine = record.content["machine"]
    system = machine["platform"].partition("-")[0]
    computer, date, commit = record.run
    core = ", one core" if machine.get("pinned_to_core") is not None else ""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items() if version)
    text = f"Measured by `{script(record)}` on {date} at commit {commit}: {computer}, {system}{core}, with {versions}."
    if lowering := record.content.get("lowering"):
        text += f" lgsim's algorithms were compiled by {lowering}."
    if unknown := [name for name in harness.PACKAGES if name not in machine["versions"]]:
        text += f" The record lacks the versions of {', '.join(unknown)}."
    if peers := record.text.get("peers"):
        text += f" In separate environments: {', '.join(f'{name} {pinned(name)}' for name in peers)}."
    return _wrapped(text)


def _wrapped(text):
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def pinned(name: str) -> str:
    """The version of a peer that runs in a separate environment."""
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
        f"{total[1]:,} of {total[0]:,} thresholds were met. The table counts them by benchmark.",
        markdown(["benchmark", "command", "thresholds", "met"], summary),
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
        yield "Figures of the run, as its last line prints them:"
        yield markdown(["figure", "value", "unit"], [[name, f["value"], f["unit"]] for name, f in figures.items()])
    bounds = record.content["bounds"]
    broken = [bound for bound in bounds if not bound["holds"]]
    if broken:
        yield f"{len(broken)} of {len(bounds)} thresholds were not met in this run:"
        yield markdown(["quantity", "value", "threshold"], [row[:3] for row in map(_bound, broken)])
    else:
        yield f"All {len(bounds)} thresholds were met."
    yield f"<details><summary>The {len(bounds)} thresholds of this run</summary>"
    yield markdown(["quantity", "value", "threshold", "met"], [_bound(bound) for bound in bounds])
    yield "</details>"


def _bound(bound):
    sides = [side for side in ("at_least", "at_most") if bound[side] is not None]
    digits = next((n for n in range(3, 17) if all(_kept(bound["value"], bound[side], n) for side in sides)), 17)
    limits = [f"{side.replace('_', ' ')} {shown(bound[side], digits)}" for side in sides]
    return [bound["name"], shown(bound["value"], digits), " and ".join(limits), "yes" if bound["holds"] else "**no**"]


def _kept(value, limit, digits):
    """True if so many digits keep the order of a value and its limit: a broken bound must not look met."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return True
    a, b = (float(shown(x, digits).replace(",", "")) for x in (value, limit))
    return (a > b) - (a < b) == (value > limit) - (value < limit)


def shown(value: object, digits: int = 3) -> str:
    """A number with some digits; any other value as text."""
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
    """A table in Markdown; vertical bars in cells are escaped."""
    lines = [[shown(cell).replace("|", r"\|") for cell in row] for row in [columns, *rows]]
    lines.insert(1, ["---"] * len(columns))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def lanes(folder: Path = harness.RESULTS / "lanes") -> str:
    """A table of the versions of each lane of .ci/lane that has a record, and of its state.

    Raises:
        RecordError: a file is not a record of a lane.
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
            raise RecordError(f"{path}: is not a record of a lane: {error!r}") from None
    if not columns:
        return "No lane has a record yet; `make oldest newest RECORD=1` writes them.\n"
    first = ["", "run on", "state", "Python", "jax", "jaxlib"]
    names = first + sorted({name for column in columns for name in column} - set(first), key=str.lower)
    rows = [[name, *(column.get(name, "-") for column in columns)] for name in names]
    made_by = ", ".join(f"`make {column['']} RECORD=1`" for column in columns)
    return f"{markdown(rows[0], rows[1:])}\n\n{_wrapped(f'Made by {made_by}.')}\n"


def marked_table(name: str, records: dict[str, Record], asked: dict) -> str:
    """The table of this name, or the chart of the README, with a line about its records.

    Raises:
        RecordError: a row names a number that no record has.
    """
    if name == "lanes":
        return lanes()
    if name not in asked:
        raise RecordError(f"<!-- records: {name} -->: records.toml has no such table, only {', '.join(asked)}")
    if name == "speed":
        return _chart_of(records, asked[name])[1]
    in_pages = isinstance(asked[name]["rows"][0], list)
    rows, used, missing = _one_computer(asked[name]["rows"], records, _cells if in_pages else _readme_row)
    scripts = ", ".join(f"`{script(record).split()[1]}`" for record in used)
    text = f"Measured by {scripts} {_measured_on(used)}." if used else ""
    if missing:
        text += f" Rows left out, whose records are of another computer: {missing}."
    text += " Details: [speed](speed.md), [accuracy](accuracy.md)." if in_pages else ""
    return f"{markdown(asked[name]['columns'], rows)}\n\n{_wrapped(text)}\n"


def _one_computer(rows, records, read, key=lambda record: record.computer):
    """The rows whose records are of the computer of the first one, these records, and the number of other rows."""
    kept, used, missing, first = [], {}, 0, None
    for row in rows:
        own: dict[str, Record] = {}
        cells = read(row, records, own)
        runs = {key(record) for record in own.values()}
        first = first or next(iter(runs), None)
        if len(runs) > 1:
            raise RecordError(f"records.toml: the row {row!r} mixes records of {' and '.join(map(str, sorted(runs)))}")
        if runs and runs != {first}:
            missing += 1
            continue
        kept.append(cells)
        used |= own
    return kept, list(used.values()), missing


def _measured_on(used):
    """The computer, the days, the commits and the lowerings of some records, in one phrase."""
    runs = sorted({record.run for record in used}, key=lambda run: run[1:])
    when = ", ".join(f"{date} at commit {commit}" for _, date, commit in runs)
    lowerings = sorted({record.content.get("lowering") or "" for record in used} - {""})
    return f"on {runs[0][0]}, {when}" + (f", compiled by {' and '.join(lowerings)}" if lowerings else "")


def _chart_of(records, asked):
    """The chart of speed as SVG, and its place on the README: the picture and a line about the records."""
    peers: list[str] = []

    def read(row, records, own):
        record = records[row["record"]]
        own[record.name] = record
        peers.append(_peer(row, record))
        ours, theirs = _pair(row, record)
        ratio = ours / theirs if row.get("rate") else theirs / ours
        return row["what"], ratio, f"{ratio:.3g}x: {shown(ours)} against {shown(theirs)} {row['unit']}"

    rows, used, _ = _one_computer(asked["rows"], records, read, key=lambda record: record.run)
    versions = used[0].content["machine"]["versions"]
    caption = (
        f"lgsim {versions['lgsim']} with JAX {versions['jax']}, {', '.join(dict.fromkeys(peers))}; one core, float64,"
        f" {_measured_on(used)}; by"
        f" {' and '.join(f'`{script(record).split()[1]}`' for record in used)}. {asked['note']}"
    )
    address = f"{REPOSITORY.replace('github.com', 'raw.githubusercontent.com')}/main/{CHART.relative_to(ROOT)}"
    return bar_chart(asked["title"], rows, 1.0), f"![{asked['title']}]({address})\n\n{_wrapped(caption)}\n"


def _cells(row, records, used):
    return [_cell(cell, records, used) for cell in row]


def _cell(cell, records, used):
    """A text, or the number at `record | table | first cells; of its row | column` or at `record | figure`."""
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


def _readme_row(row, records, used):
    """The cells of a row: the quantity, lgsim, the baseline."""
    record = records.get(row["record"])
    if record is None:
        path = harness.RESULTS / f"{row['record']}.json"
        raise RecordError(f"{path}: is not there, and the README's row {row['what']!r} is made from it")
    used[record.name] = record
    if "figure" in row or "bound" in row:
        return [row["what"], shown(_single(row, record)), _peer(row, record) if "peer" in row else ""]
    ours, theirs = _pair(row, record)
    unit = f" {row['unit']}" if "unit" in row else ""
    return [row["what"], f"{shown(ours)}{unit}", f"{_peer(row, record)} {shown(theirs)}{unit}"]


def _pair(row, record):
    """The numbers of lgsim and of the baseline."""
    ours = record.row(row["table"], row["row"])[row["ours"]]
    theirs = record.row(row["table"], row.get("other", row["row"]))[row["theirs"]]
    for value in (ours, theirs):
        if not isinstance(value, int | float):
            raise RecordError(f"{record.path}: the row {row['what']!r} of the README has {value!r} for a number")
    return ours, theirs


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
    """The peer with its version, which some old records lack."""
    version = pinned(row["pinned"]) if "pinned" in row else record.content["machine"]["versions"].get(row["version"])
    return row["peer"].format(version or "(version not in the record)")


def filled(text: str, records: dict[str, Record], asked: dict) -> str:
    """A text with its marked tables and figures filled in.

    Raises:
        RecordError: a mark has no end, or names no table or figure; a figure is first on its line, where Markdown
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
    """A mark with its number."""
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
    yield CHART, _chart_of(records, asked["speed"])[0]
    for page in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        text = page.read_text(encoding="utf-8")
        if "<!-- records: " in text or "<!-- figure: " in text:
            yield page, filled(text, records, asked)


def outdated_records(
    records: dict[str, Record], root: Path = ROOT
) -> dict[str, tuple[datetime.datetime, datetime.datetime]]:
    """Records older than the files of lgsim that their benchmark imports: (date of the record, last commit of a file).

    Args:
        records: The records by name.
        root: The repository.
    """
    scripts = {name: root / script(record).split()[1] for name, record in records.items()}
    dates = {name: (scripts[name], record.content["date"]) for name, record in records.items()}
    return outdated(dates, root)


def main(argv: list[str] | None = None) -> int:
    """Write, compare or list; returns the exit status."""
    parser = argparse.ArgumentParser(description="Tables and figures of the pages from the records of the benchmarks.")
    parser.add_argument("--check", "--quick", action="store_true", help="compare, and write nothing")
    parser.add_argument(
        "--outdated", action="store_true", help="print the benchmarks whose records are older than their code"
    )
    options = parser.parse_args(argv)
    check = options.check
    try:
        if options.outdated:
            known = read()[0]
            older = outdated_records(known)
            for name, (date, code) in older.items():
                print(
                    f"records: {name}.json of {date:%Y-%m-%d} is older than its code of {code:%Y-%m-%d}",
                    file=sys.stderr,
                )
            print(*sorted({script(known[name]).split()[1] for name in older}), sep="\n")
            return 0
        files = list(made())
    except RecordError as error:
        print(f"records: {error}", file=sys.stderr)
        return 1
    differ = [(path, text) for path, text in files if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path, text in differ:
        if check:
            print(f"records: {path} differs from the records; `{COMMAND}` writes it", file=sys.stderr)
        else:
            harness.write_whole(path, text)
    tables = sum(text.count("\n| ---") for _, text in files)
    print(f"records: {len(files)} files, {tables} tables, {len(differ)} {'differ' if check else 'written'}")
    return 1 if check and differ else 0


if __name__ == "__main__":
    sys.exit(main())
