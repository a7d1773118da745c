"""The pages of accuracy, speed and checks show the records of the benchmarks, and a bad record is named."""

import json
import os
import re
import shutil
import subprocess
from datetime import UTC, datetime

import pytest
import records
from reporting import measured_files

from benchmarks.harness import RESULTS

MARKS = "# Title\n\n<!-- records: {} -->\nold\n<!-- end of records -->\n\nrest\n"


@pytest.fixture(scope="module")
def known():
    return records.read()


@pytest.fixture
def copy(tmp_path):
    return shutil.copytree(RESULTS, tmp_path / "results")


def change(path, f):
    content = json.loads(path.read_text(encoding="utf-8"))
    f(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def test_readme_and_pages_show_the_records():
    for path, text in records.made():
        assert path.read_text(encoding="utf-8") == text, f"{path}: {records.COMMAND}"


def test_every_record_has_its_place_with_machine_and_command(known):
    made = records.pages(known[0])
    assert {path.stem for path in RESULTS.glob("*.json")} == set(known[0])
    for record in known[0].values():
        heading = f"## {record.text['heading']}\n"
        assert heading in made["checks"] and any(heading in made[page] for page in ("accuracy", "speed"))
        command = records.script(record)
        assert (records.ROOT / command.split()[1]).exists(), command
        place = made["checks"].split(heading)[1].split("\n## ")[0]
        assert f"`{command}`" in place and record.content["machine"]["versions"]["lgsim"] in place
        for bound in record.content["bounds"]:
            assert bound["name"].replace("|", r"\|") in place


def test_every_table_stands_once_under_a_sentence(known):
    made = records.pages(known[0])
    text = " ".join(" ".join(made[page].split()) for page in ("accuracy", "speed"))
    for record in known[0].values():
        for table in record.content["tables"]:
            assert f"**{table['title']}.** " in text, (record.path, table["title"])
    count = sum(len(record.content["tables"]) for record in known[0].values())
    assert sum(made[page].count("\n| ---") for page in ("accuracy", "speed")) == count


def test_changed_record_is_found(copy, known):
    change(copy / "loops.json", lambda content: content["tables"][0]["rows"][0].__setitem__(1, 123.0))
    other, before = records.pages(records.read(copy)[0]), records.pages(known[0])
    assert other["speed"] != before["speed"] and other["accuracy"] == before["accuracy"]


def test_check_finds_a_page_of_old_and_writes_nothing(tmp_path, monkeypatch, capsys):
    page = tmp_path / "speed.md"
    page.write_text("old", encoding="utf-8")
    monkeypatch.setattr(records, "made", lambda: iter([(page, "| a |\n| --- |\n")]))
    assert records.main(["--check"]) == 1 and page.read_text(encoding="utf-8") == "old"
    assert str(page) in capsys.readouterr().err
    assert records.main([]) == 0 and records.main(["--quick"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "records: 1 files, 1 tables, 0 differ"


BAD = {
    "machine": lambda content: content.pop("machine"),
    "empty machine": lambda content: content.update(machine={}),
    "figures": lambda content: content.pop("figures"),
    "sentence": lambda content: content["tables"][0].update(title="unknown"),
    "lgsim": lambda content: content["machine"]["versions"].pop("lgsim"),
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_record_is_named(fault, copy):
    change(copy / "loops.json", BAD[fault])
    with pytest.raises(records.RecordError, match=rf"loops\.json: .*{fault.split()[-1]}"):
        records.pages(records.read(copy)[0])


def test_figure_without_its_record_and_record_without_its_text_are_named(copy):
    (copy / "new.json").write_text("{}", encoding="utf-8")
    with pytest.raises(records.RecordError, match=r"new\.json: has no text"):
        records.read(copy)
    (copy / "new.json").rename(copy / "new.png")
    with pytest.raises(records.RecordError, match=r"new\.png: the figure has no record"):
        records.read(copy)
    (copy / "new.png").unlink()
    (copy / "lie.json").unlink()
    with pytest.raises(records.RecordError, match=r"lie\.json: is not there"):
        records.read(copy)


def test_no_json_is_named(copy):
    (copy / "lie.json").write_text("{", encoding="utf-8")
    with pytest.raises(records.RecordError, match=r"lie\.json: is not JSON"):
        records.read(copy)


@pytest.mark.parametrize("name", ["speed", "accuracy"])
def test_readme_is_filled_between_its_marks(name, known):
    text = records.filled(MARKS.format(name), *known)
    assert text.startswith("# Title\n") and text.endswith("<!-- end of records -->\n\nrest\n")
    assert "\nold\n" not in text and records.filled(text, *known) == text
    rows = [line for line in text.splitlines() if line.startswith("|")][2:]
    assert len(rows) == {"speed": 0, "accuracy": 3}[name]


def test_chart_shows_the_records_numbers(known):
    """Of one computer and one commit, which the line below the picture names."""
    table = known[0]["dynamics"].table("Forward dynamics, float64")
    (row,) = (row for row in table["rows"] if row[:3] == ["Talos", 38, 1024])
    picture = records.CHART.read_text(encoding="utf-8")
    assert f"{row[4] / row[3]:.3g}x: {row[3]:.3g} against {row[4]:.3g} µs" in picture
    caption = records.filled(MARKS.format("speed"), *known)
    commits = {known[0][name].content["commit"] for name in ("dynamics", "simulation")}
    assert sum(f"commit {commit}" in " ".join(caption.split()) for commit in commits) == caption.count("commit ") == 1


def test_a_table_shows_one_computer(known):
    """Rows of another one are left out, and counted; a row that mixes two is refused."""
    one, other = "lie | Largest error in rounding units of the norm, float64 | lgsim | exp", "versions | The same"
    (row,) = ([*map(str, r)] for r in known[0]["versions"].content["tables"][0]["rows"][:1])
    column = known[0]["versions"].content["tables"][0]["columns"][1]
    other = f"{other} | {row[0]} | {column}"
    assert known[0]["lie"].computer != known[0]["versions"].computer

    def filled(*rows):
        return records.filled(MARKS.format("x"), known[0], {"x": {"columns": ["", ""], "rows": [*rows]}})

    text = filled(["a", one], ["b", other], ["c", "text"])
    assert "| a |" in text and "| c |" in text and "| b |" not in text
    assert "another computer: 1." in " ".join(text.split()) and known[0]["versions"].computer not in text
    with pytest.raises(records.RecordError, match="mixes records of"):
        filled([one, other])


def test_cells_that_no_record_has_are_refused(known):
    def filled(cell):
        return records.filled(MARKS.format("x"), known[0], {"x": {"columns": ["", ""], "rows": [["a", cell]]}})

    table = known[0]["dynamics"].table("Forward dynamics, float64")
    (right,) = (row[3] for row in table["rows"] if row[:3] == ["Panda", 7, 1])
    assert f"| a | {records.shown(right)} |" in filled("dynamics | Forward dynamics, float64 | Panda; 7; 1 | lgsim")
    assert "| a | b | c |" in filled("b | c").replace("\\|", "|")
    with pytest.raises(records.RecordError, match="has no column 'ours', only robot, nv"):
        filled("dynamics | Forward dynamics, float64 | Panda; 7; 1 | ours")
    with pytest.raises(records.RecordError, match="has no row"):
        filled("dynamics | Forward dynamics, float64 | Panda; 7; 3 | lgsim")
    with pytest.raises(records.RecordError, match=r"none\.json: is not there"):
        filled("none | Forward dynamics, float64 | Panda; 7; 3 | lgsim")


def test_marks_that_nothing_fills_are_refused(known):
    with pytest.raises(records.RecordError, match="has no end"):
        records.filled("<!-- records: speed -->\n", *known)
    with pytest.raises(records.RecordError, match="no such table, only speed, accuracy, precision"):
        records.filled(MARKS.format("size"), *known)


def test_versions_of_the_lanes_stand_in_one_table(tmp_path):
    assert records.lanes(tmp_path).startswith("No lane has a record yet")
    oldest = {"lane": "oldest", "date": "2026-01-02", "failed": [], "versions": {"jax": "0.6.0", "Python": "3.11.7"}}
    newest = oldest | {"lane": "newest", "failed": ["demo", "tests"], "versions": {"jax": "0.12.0", "lxml": "6.1"}}
    for content in (newest, oldest):
        (tmp_path / f"{content['lane']}.json").write_text(json.dumps(content), encoding="utf-8")
    rows = [line for line in records.lanes(tmp_path).splitlines() if line.startswith("|")]
    assert rows[0] == "|  | oldest | newest |" and rows[3:6] == [
        "| state | passed | failed: demo; tests |", "| Python | 3.11.7 | - |", "| jax | 0.6.0 | 0.12.0 |",
    ]  # fmt: skip
    assert rows[-1] == "| lxml | - | 6.1 |"
    (tmp_path / "newest.json").write_text("{}", encoding="utf-8")
    with pytest.raises(records.RecordError, match=r"newest\.json: is not a record of a lane"):
        records.lanes(tmp_path)


def test_gpu_table_stands_only_where_a_record_has_one(copy):
    before = records.pages(records.read(copy)[0])["speed"]
    assert "No record was measured on a GPU" in before and "Measured on a GPU" not in before
    shutil.copy(copy / "distances.json", copy / "gpu.json")
    change(copy / "gpu.json", lambda content: content["machine"]["device"].update(platform="gpu", kind="Card X"))
    after = records.pages(records.read(copy)[0])["speed"]
    assert (
        "No record was measured" not in after
        and "### Measured on a GPU\n\nMeasured by `python benchmarks/gpu.py` on 2026" in after
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2494000.0, "2,490,000"),
        (0.06738, "0.0674"),
        (2.2e-16, "2.2e-16"),
        (0.0, "0"),
        (81, "81"),
        (1000000, "1,000,000"),
        (True, "yes"),
        ("nan", "nan"),
    ],
)
def test_numbers_have_three_digits(value, text):
    assert records.shown(value) == text


@pytest.mark.parametrize(
    ("value", "limit", "cells"),
    [
        (1170.4, 1170, ["1,170.4", "at most 1170", "**no**"]),
        (0.50001, 0.5, ["0.50001", "at most 0.5", "**no**"]),
        (1.00001e-6, 1e-6, ["1.00001e-06", "at most 1.00000e-06", "**no**"]),
        (0.4, 0.5, ["0.4", "at most 0.5", "yes"]),
    ],
)
def test_a_broken_bound_looks_broken(value, limit, cells):
    bound = {"name": "x", "value": value, "at_least": None, "at_most": limit, "holds": value <= limit}
    assert records._bound(bound)[1:] == cells


def test_no_bound_of_the_page_contradicts_its_verdict(known):
    text = records.pages(known[0])["checks"]
    rows = re.findall(r"^\| .* \| (\S+) \| at (least|most) (\S+) \| (yes|\*\*no\*\*) \|$", text, re.MULTILINE)
    assert len(rows) > 500
    for value, side, limit, held in rows:
        a, b = (float(x.replace(",", "")) for x in (value, limit))
        assert (a <= b if side == "most" else a >= b) == (held == "yes"), (value, side, limit, held)


def test_figures_of_sentences_are_filled(known):
    asked = {"figures": {"times": "dynamics | Forward dynamics, float64 | Panda; 7; 1024 | lgsim", "bad": "no number"}}
    text = "It takes <!-- figure: times -->9<!-- end --> us.\n"
    (row,) = (r for r in known[0]["dynamics"].table("Forward dynamics, float64")["rows"] if r[:3] == ["Panda", 7, 1024])
    made = records.filled(text, known[0], asked)
    assert made == text.replace(">9<", f">{records.shown(row[3])}<") and records.filled(made, known[0], asked) == made
    faults = {
        "has no end": "It takes <!-- figure: times -->9 us.\n",
        "has no such figure": "It takes <!-- figure: other -->9<!-- end --> us.\n",
        "is first on its line": "It takes\n<!-- figure: times -->9<!-- end --> us.\n",
        "expected `record": "It takes <!-- figure: bad -->9<!-- end --> us.\n",
    }
    for fault, text in faults.items():
        with pytest.raises(records.RecordError, match=fault):
            records.filled(text, known[0], asked)


def test_every_table_and_figure_that_is_named_is_shown(known):
    text = "".join(path.read_text(encoding="utf-8") for path in [records.ROOT / "README.md", *prose()])
    assert [name for name in known[1]["figures"] if f"<!-- figure: {name} -->" not in text] == []
    assert [name for name in known[1] if name != "figures" and f"<!-- records: {name} -->" not in text] == []


@pytest.fixture
def repository(tmp_path):
    """A package of two modules, a benchmark of each, and their dates in git."""

    def git(*words, date="2026-01-01T00:00:00+00:00"):
        names = {f"GIT_{role}_{part}": "x@x" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
        env = os.environ | names | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        subprocess.run(["git", "-C", str(tmp_path), *words], env=env, check=True, capture_output=True)

    files = {
        "lgsim/__init__.py": "",
        "lgsim/__init__.pyi": "from lgsim.lie.group import exp as exp\nfrom lgsim import optimize as optimize\n",
        "lgsim/lie/__init__.py": "",
        "lgsim/lie/group.py": "from lgsim.lie.series import sinc\n",
        "lgsim/lie/series.py": "",
        "lgsim/optimize/__init__.py": "import lgsim.optimize.solver",
        "lgsim/optimize/solver.py": "",
        "benchmarks/groups.py": "import lgsim\nfrom cases import angles\nlgsim.exp(angles.all)\n",
        "benchmarks/cases/angles.py": "all = 1\n",
        "benchmarks/plans.py": 'TEXT = "import lgsim; lgsim.optimize.solve()"\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    (tmp_path / "lgsim" / "lie" / "series.py").write_text("sinc = 1\n", encoding="utf-8")
    git("commit", "-qam", "second", date="2026-03-01T00:00:00+00:00")
    return tmp_path


def test_measured_files_follow_imports(repository):
    def named(script):
        found = measured_files.measured(repository / "benchmarks" / script, repository)
        return sorted(str(path.relative_to(repository / "lgsim")) for path in found)

    assert named("groups.py") == ["__init__.py", "lie/__init__.py", "lie/group.py", "lie/series.py"]
    assert named("plans.py") == ["__init__.py", "optimize/__init__.py", "optimize/solver.py"]


def test_records_older_than_their_code_are_named(repository):
    """The benchmark of groups measures a file of March, that of plans files of January only."""
    groups, plans = (repository / "benchmarks" / name for name in ("groups.py", "plans.py"))
    date = "2026-02-01T12:00:00+00:00"
    found = measured_files.outdated({"groups": (groups, date), "plans": (plans, date)}, repository)
    assert list(found) == ["groups"] and [f"{day:%m-%d}" for day in found["groups"]] == ["02-01", "03-01"]
    assert not measured_files.outdated({"groups": (groups, "2026-03-01T00:00:00+00:00")}, repository)


def test_outdated_benchmarks_are_listed(known, monkeypatch, capsys):
    """One line a benchmark, as `make records` runs them."""
    days = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC))
    monkeypatch.setattr(records, "outdated", lambda dates, root: {"peers": days, "lie": days})
    assert records.main(["--outdated"]) == 0
    said = capsys.readouterr()
    assert said.out.split() == ["benchmarks/against_jax.py", "benchmarks/lie.py"]
    assert "lie.json of 2026-01-01 is older than its code of 2026-02-01" in said.err


def test_every_record_has_a_day_and_measures_files(known):
    for name, record in known[0].items():
        assert datetime.fromisoformat(record.content["date"]).tzinfo, name
        script = records.ROOT / records.script(record).split()[1]
        assert len(measured_files.measured(script, records.ROOT)) > 40, name


def prose():
    """The pages that are written by hand."""
    made = {f"{name}.md" for name in (*records.PAGES, "others_numbers")}
    return [path for path in sorted((records.ROOT / "docs").rglob("*.md")) if path.name not in made]


MEASURED = re.compile(r"\d ?(?:[uµn]s|MiB|kB|GFLOP/s)\b|\d (?:times as (?:fast|long)|operations each)|\b\d\d\.\d %")


def test_what_was_measured_comes_from_a_record():
    """Times of computing, sizes, ratios of speed and shares: in a marked table, a marked figure, or code."""
    found = []
    notebooks = sorted((records.ROOT / "notebooks").glob("*.ipynb"))
    for path in [records.ROOT / "README.md", *prose(), *notebooks]:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            cells = (cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")
            text = "\n".join("".join(cell["source"]) for cell in cells)
        text = re.sub(r"```.*?```|<!-- records: .*?<!-- end of records -->", "", text, flags=re.DOTALL)
        text = " ".join(re.sub(r"<!-- figure: \w+ -->[^<]*<!-- end -->", "a figure", text).split())
        found += [(path.name, text[max(0, m.start() - 40) : m.end() + 10]) for m in MEASURED.finditer(text)]
    assert not found, "\n".join(f"{name}: {part}" for name, part in found)
