"""Names that a user gives are shown as they are by every command, plot and report, whatever marks they hold."""

import ast
import html
import io
import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from rich.console import Console

from lgsim import cli
from lgsim.montecarlo import Normal, StopAtConfidence, Study
from lgsim.view import figures
from tests.cli.machines import ARM, lgsim

MARKS = ("[b]", "[/b]", "[m]", "$x$", r"sh$\frac$x", "%", "%s", "{x}", "{}", ":smile:", "🤖")
SHOULDER, ELBOW = r"sh$\frac$x [b] {x}", "el[/b] {} % :smile: 🤖"
FORE, TIP, DISTANCE, FAILURE = "fo[m] $x$ %s", "ti[/b] {x} %", "gap[/b] $x$ {}", "fa[m] %s :smile:"
NAMES = (SHOULDER, ELBOW, FORE, TIP, DISTANCE, FAILURE)
FOLDER, FILE = "fo[b]ld $x$ {}", "ar[m] {x} %s :smile: 🤖"

MACHINE = ARM
for old, new in (("shoulder", SHOULDER), ("elbow", ELBOW), ("fore", FORE), ("tip", TIP)):
    MACHINE = MACHINE.replace(f'"{old}"', f'"{new}"')


def quoted(name):
    """A name as a string of TOML."""
    return json.dumps(name, ensure_ascii=False)


MOTION = f"""
[machine]
file = {quoted(FILE + ".urdf")}
[start]
q = {{ {quoted(SHOULDER)} = 0.4, {quoted(ELBOW)} = -0.3 }}
[time]
dt = 0.02
steps = 4
[control]
law = "pd"
stiffness = {{ {quoted(ELBOW)} = 3.0 }}
damping = 0.1
torque = {{ {quoted(SHOULDER)} = 0.5 }}
"""
STUDY = f"""{MOTION}
[dispersions]
q = {{ std = {{ {quoted(SHOULDER)} = 0.1 }} }}
masses = {{ relative = {{ {quoted(FORE)} = 0.1 }} }}
[outputs]
keep = ["final_q"]
attitudes = [{quoted(TIP)}]
positions = [{quoted(TIP)}]
history = 3
[[outputs.distance]]
name = {quoted(DISTANCE)}
frame = {quoted(TIP)}
point = [0.1, 0, 0.6]
[[failures]]
name = {quoted(FAILURE)}
output = {quoted(DISTANCE)}
above = 0.1
[sampling]
samples = 32
tile = 16
"""
REACH = f"""
[machine]
file = {quoted(FILE + ".urdf")}
[start]
q = {{ {quoted(SHOULDER)} = 0.4, {quoted(ELBOW)} = 0.5 }}
[time]
dt = 0.1
horizon = 4
[[reach]]
frame = {quoted(TIP)}
position = [0.35, 0.0, 0.45]
weight = 1e3
[weights]
effort = 1e-3
[limits]
torque = {{ {quoted(SHOULDER)} = 30, {quoted(ELBOW)} = 12 }}
"""


def packed(text):
    """A text without its frames and breaks."""
    return re.sub(r"[\s│─]", "", text)


def shows(text, *names):
    lost = [name for name in names if packed(name) not in packed(text)]
    assert not lost, f"{lost} in\n{text}"


def ran(*words):
    result = lgsim(*words)
    assert result.exit_code in (0, 3), result.output
    return result


def texts(svg):
    """The texts of a picture."""
    return [html.unescape(re.sub(r"<.*?>", "", text)) for text in re.findall(r"<text.*?</text>", svg, re.DOTALL)]


def drawn(figure):
    """The texts of a figure as it is drawn."""
    from matplotlib import rc_context

    file = io.StringIO()
    with rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg")
    return texts(file.getvalue())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with files for each command."""
    made = tmp_path_factory.mktemp("names") / FOLDER
    made.mkdir()
    (made / f"{FILE}.urdf").write_text(MACHINE, encoding="utf-8")
    for name, text in (("motion", MOTION), ("study", STUDY), ("reach", REACH)):
        (made / f"{FILE} {name}.toml").write_text(text, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def machine(folder):
    return folder / f"{FILE}.urdf"


@pytest.fixture(scope="module")
def run(folder, machine):
    """A run, whose start is given by the names of the joints."""
    out = folder / f"{FILE}.npz"
    start = f"{SHOULDER}=0.3,{ELBOW}=-0.2"
    shows(ran("simulate", machine, "--q", start, "--duration", 0.3, "--dt", 0.001, "--out", out).output, str(out))
    return out


@pytest.fixture(scope="module")
def store(folder):
    """(store, what the command wrote)."""
    out = folder / f"{FILE} store"
    return out, ran("montecarlo", folder / f"{FILE} study.toml", "--out", out).output


def test_the_names_hold_all_marks():
    together = " ".join((*NAMES, FOLDER, FILE))
    assert all(mark in together for mark in MARKS)


def test_info(machine):
    result = ran("info", machine)
    shows(result.stdout, SHOULDER, ELBOW, FORE, TIP, str(machine))


def test_a_wrong_name_is_shown_with_the_right_ones(machine):
    result = lgsim("simulate", machine, "--q", "[b]=1")
    assert result.exit_code == 2
    shows(result.stderr, "got '[b]'", repr(SHOULDER)[1:-1].replace("\\\\", "\\"), ELBOW)


def test_a_motion_of_a_scenario(folder):
    path = folder / f"{FILE} motion.toml"
    shows(ran("simulate", path, "--out", folder / "scenario.npz").output, FILE)


@pytest.mark.slow
def test_compare_and_convert(folder, machine, run):
    other = folder / "other [b].npz"
    ran("simulate", machine, "--q", f"{ELBOW}=-0.1", "--duration", 0.3, "--dt", 0.001, "--out", other)
    figure = folder / "gap [b] $x$.svg"
    plot = ("--plot", figure) if find_spec("matplotlib") else ()
    result = ran("compare", run, other, *plot)
    assert any(packed(name) in packed(result.stdout) for name in (SHOULDER, ELBOW))
    if plot:
        shows(result.stdout, figure.name)
    table = folder / "run [b].csv"
    shows(ran("convert", run, table).stdout, str(table))
    shows(table.read_text(encoding="utf-8").splitlines()[0], f"q {SHOULDER} [rad]", f"tau {ELBOW} [N m]")


def test_plots(run, folder):
    pytest.importorskip("matplotlib")
    result = ran("plot", run, "--format", "svg", "--phase", SHOULDER, "--phase", ELBOW)
    joints = texts((folder / f"{FILE}-joints.svg").read_text(encoding="utf-8"))
    assert {SHOULDER, ELBOW} <= set(joints)
    for name in (SHOULDER, ELBOW):
        path = folder / f"{FILE}-phase-{name.replace('/', '-')}.svg"
        assert name in texts(path.read_text(encoding="utf-8"))
        shows(result.stdout, str(path))
    if "🤖" in result.stderr or "Glyph" in result.stderr:
        assert all(line.startswith("note: ") for line in result.stderr.splitlines()), result.stderr


def test_a_dollar_sign_is_drawn_as_it_is():
    pytest.importorskip("matplotlib")
    for name in ("$x$", r"sh$\frac$x", r"a\$b", "$", "$$", r"\$\$", "[b] %s {}"):
        figure = figures.figure(3.0, 2.0)
        ax = figure.subplots()
        ax.set_title(figures.literal(name))
        ax.plot([0, 1], [0, 1], label=figures.literal(name))
        ax.legend()
        assert drawn(figure).count(name) == 2, name


def test_changes_of_a_fit():
    pytest.importorskip("matplotlib")
    from lgsim.view.reports.identification_plots import changes
    from lgsim.view.reports.number_rows import Number

    names = [f"mass of {name}" for name in (FORE, TIP, SHOULDER)]
    figure = changes([Number(name, "kg", 1.0, 1.1, 0.01) for name in names])
    assert set(names) <= set(drawn(figure))


@pytest.mark.slow
def test_scenes(machine, run, folder):
    pytest.importorskip("viser")
    made = folder / "scene [b] $x$.html"
    shows(ran("view", run, "--visuals", machine, "--trace", TIP, "--follow", TIP, "--html", made).stdout, str(made))
    assert f"<title>{html.escape(made.stem)}</title>" in made.read_text(encoding="utf-8")


@pytest.fixture
def seen(monkeypatch):
    """The texts of the figures of a page."""
    pytest.importorskip("matplotlib")
    from lgsim.view.reports.page import Page

    found, add = [], Page.add_figure

    def watched(self, figure, *words, **options):
        found.extend(drawn(figure))
        add(self, figure, *words, **options)

    monkeypatch.setattr(Page, "add_figure", watched)
    return found


def words_of(page):
    """The text of a page."""
    return html.unescape(re.sub(r"<.*?>", "", page.read_text(encoding="utf-8")))


@pytest.mark.slow
def test_a_study_and_its_report(store, folder, seen):
    """Two failures of a terminal: markup in an output's name, and a formula in a joint's."""
    path, written = store
    shows(written, DISTANCE, f"failed {FAILURE}", f"final_q {SHOULDER} (rad)", f"position of {TIP} x (m)", str(path))
    made = folder / "report [b] $x$.html"
    shows(ran("montecarlo", "report", path, "--out", made, "--cases", 0).output, str(made))
    shows(words_of(made), DISTANCE, FAILURE, SHOULDER, TIP)
    shows("\n".join(seen), DISTANCE, SHOULDER, ELBOW, f"{TIP}: axes", f"position of {TIP} x (m)")


def test_the_bar_of_a_study(monkeypatch):
    """On a terminal the names of outputs go through the columns of a bar."""
    from lgsim.cli import montecarlo_progress, progress

    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=200, markup=False, emoji=False, highlight=False)
    monkeypatch.setattr(progress, "console", lambda error=False: terminal)
    for name in MARKS:
        study = Study(
            {"x": Normal(0.0, 1.0)}, lambda x, n=name: {n: x["x"]}, samples=10, stop=StopAtConfidence(name, 1.0)
        )
        watch = montecarlo_progress.SampleWatch(study, 0)
        with watch:
            watch._bar.update(watch._task, description=name, rate=name, left=name, estimate=f"{name} 1 ± 2")
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
        assert f"{name} {name} {name} 1 ± 2" in " ".join(shown.split()), name


@pytest.mark.slow
def test_a_fit_and_its_report(machine, run, folder, seen):
    pytest.importorskip("scipy")
    record = folder / "record [b].csv"
    ran("convert", run, record)
    out, made = folder / "fit [b].npz", folder / "fit [b].html"
    words = ("--fit", "damping", "--method", "linear", "--out", out, "--report", made)
    result = ran("identify", machine, record, *words)
    shows(result.output, f"damping of {SHOULDER}", f"damping of {ELBOW}", str(out), str(record))
    shows(words_of(made), f"damping of {SHOULDER}", ELBOW)
    shows("\n".join(seen), SHOULDER, ELBOW)


@pytest.mark.slow
def test_an_optimization(folder):
    out = folder / "found [b].npz"
    result = ran("optimize", folder / f"{FILE} reach.toml", "--out", out)
    shows(result.output, f"{TIP} to a position", ELBOW, str(out), FILE)


def test_generated_code(machine, folder):
    out = folder / "code [b] $x$"
    words = ("--functions", "gravity_forces", "--language", "numpy", "--out", out)
    shows(ran("generate", machine, *words).stdout, str(out))
    shows((out / "README.txt").read_text(encoding="utf-8"), machine.name)


@pytest.mark.slow
def test_the_demo(machine, folder):
    pytest.importorskip("viser")
    shows(ran("demo", machine, "--out", folder / "demo [b]", "--duration", 0.5).stdout, machine.name, "demo [b]")


def test_no_code_of_the_command_makes_marks_of_style():
    """Texts of rich that read marks: a column of a bar unless it is told, markup, another console than the one."""
    found = []
    for path in sorted(Path(cli.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name in ("TextColumn", "Console", "from_markup", "render_str", "SpinnerColumn", "Panel"):
                    words = {word.arg: getattr(word.value, "value", None) for word in node.keywords}
                    if words.get("markup") is not False:
                        found.append(f"{path.name}:{node.lineno}: {name}")
    assert not found, found
