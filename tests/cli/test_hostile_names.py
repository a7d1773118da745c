"""No name of a file, a joint, a key or a column begins a line or steers the terminal, whatever the command writes."""

import ast
import csv
import html
import io
import json
import re
import warnings
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.color import ColorSystem
from rich.table import Table
from rich.text import Text

import lgsim
from lgsim import cli, joints
from lgsim.cli import terminal
from lgsim.simulation import Trajectory
from tests.cli.machines import lgsim as command
from tests.hostile_names import HOSTILE, IN_XML, UNSEEN, faults

SHOULDER, ELBOW, FORE = "a\nplanted\x9b31m*/", 'b"\u202e\r\nplanted()\n"', "f\x85planted\u2028</script>\u200b"
JOINTS = (HOSTILE[0], "a\x00\n\x1b[31mplanted/\u202e", "</script><script>planted()</script>")
KEY = "k\x1b[2J\nplanted\x9b\u202e"

INERTIA = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
LINK = f"<link name={{}}>{INERTIA}</link>"
JOINT = '<joint name={} type={}><parent link={}/><child link={}/><axis xyz="0 1 0"/></joint>'


def attribute(name):
    """A name as an attribute of XML that is read back as it is."""
    return '"' + "".join(f"&#{ord(x)};" if not x.isalnum() else x for x in name) + '"'


def quoted(name):
    """A name as a string of TOML."""
    return json.dumps(name)


def urdf():
    """A machine whose joints, links and frames have hostile names, with what a report remarks on."""
    base, upper, fore, shoulder, elbow = map(attribute, ("base", IN_XML[0], FORE, SHOULDER, ELBOW))
    parts = [
        f'<link name={base}><odd name={fore}/></link>',
        LINK.format(upper), LINK.format(fore),
        JOINT.format(shoulder, '"continuous"', base, upper), JOINT.format(elbow, '"revolute"', upper, fore),
    ]  # fmt: skip
    parts[-1] = parts[-1].replace("<axis", '<limit lower="-90" upper="90"/><axis')
    for i, name in enumerate(name for name in IN_XML[1:] if name.strip()):
        frame = attribute(name)
        parts += [f"<link name={frame}/>", JOINT.format(f'"weld{i}"', '"fixed"', fore, frame)]
    return f"<robot name={fore}>{''.join(parts)}<transmission name={elbow}/><gazebo reference={elbow}/></robot>"


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """No line is broken, so that each one is a line that the command began."""
    monkeypatch.setattr(terminal, "WIDE", 100_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("names") / "fo\x1b[31m\nplanted"
    made.mkdir()
    (made / "m\nplanted\x9b.urdf").write_text(urdf(), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def machine(folder):
    return folder / "m\nplanted\x9b.urdf"


def motion(names, speed=1.0):
    """A run of three states of a machine whose joints have these names."""
    builder = lgsim.ModelBuilder()
    for i, name in enumerate(names):
        parent = names[i - 1] if i else "world"
        builder.add_body(name, parent, joints.Prismatic(), mass=1.0, upper=0.05, lower=-0.1)
    model = builder.build()
    time, v = np.arange(3) / 10, np.full((3, len(names)), speed)
    return Trajectory(model, time, time[:, None] * v, v, np.zeros_like(v), method="MK4\nplanted", result=KEY)


@pytest.fixture(scope="module")
def runs(folder):
    """Files of runs: two of one machine, one of another."""
    places = [folder / f"run{i}\nplanted\x1b.npz" for i in range(3)]
    for place, made in zip(places, (motion(JOINTS), motion(JOINTS, 2.0), motion(JOINTS[::-1])), strict=True):
        made.save(place)
    return places


def run(*words, code=0):
    """What a command wrote, without a fault."""
    result = command(*words)
    assert result.exit_code in (code, 3), result.output
    assert not faults(result.stdout + result.stderr)
    return result.stdout + result.stderr


def refused(*words, code=2):
    """The one line of an error."""
    text = run(*words, code=code)
    assert text.startswith("error: "), text
    assert text.count("\n") == 1, text
    return text


def test_info(machine):
    shown = run("info", machine)
    assert r"a\nplanted\x9b31m*/ (continuous) → a*\\n/ void planted(void) { } /\\n*b" in shown
    assert r"f\x85planted\u2028</script>\u200b" in shown
    assert "Gelenk_äöü" in shown
    # a table has one line for each joint
    assert sum(line.lstrip().startswith((r"a\nplanted", r"b\"\u202e", 'b"\\u202e')) for line in shown.splitlines()) == 2


def test_info_of_loops(machine, folder):
    path = folder / "loops\nplanted.toml"
    text = f'[[loop]]\nname = {quoted(KEY)}\nframe_a = {quoted(FORE)}\nframe_b = "base"\nlength = 0.5\n'
    path.write_text(text, encoding="utf-8")
    assert r"k\x1b[2J\nplanted\x9b\u202e" in run("info", machine, "--loops", path)
    path.write_text(text.replace(quoted(FORE), quoted(KEY)), encoding="utf-8")
    refused("info", machine, "--loops", path)


@pytest.mark.parametrize("language", ("c", "numpy", "casadi"))
def test_generate(machine, folder, language):
    if language == "casadi":
        pytest.importorskip("casadi")
    out = folder / f"{language}\nplanted"
    run("generate", machine, "--functions", "gravity_forces", "--language", language, "--out", out)
    for path in out.iterdir():
        assert not faults(path.read_text(encoding="utf-8"))
    assert r"m\nplanted\x9b.urdf" in (out / "README.txt").read_text(encoding="utf-8")


@pytest.mark.slow
def test_simulate(machine, folder):
    out = folder / "simulated\nplanted.npz"
    shown = run("simulate", machine, "--duration", 0.02, "--dt", 0.01, "--v", "90,1", "--out", out, "--no-step-check")
    assert r"simulated\nplanted.npz" in shown


def test_names_of_no_joint(machine):
    assert r"\x1b[31m" in refused("simulate", machine, "--q", "x\x1b[31m\nplanted=1")


@pytest.mark.slow
def test_plot_compare_convert(runs, folder):
    pytest.importorskip("matplotlib")
    picture = folder / "gap\nplanted.svg"
    run("compare", runs[0], runs[1], "--plot", picture)
    refused("compare", runs[0], runs[2])
    run("convert", runs[0], folder / "table\nplanted.csv")
    out = folder / "plots\nplanted"
    words = [word for name in JOINTS for word in ("--phase", name)]
    run("plot", runs[0], "--out", out, "--format", "svg", *words)
    for path in out.iterdir():
        assert re.fullmatch(r"[ -~]*", path.name.partition("-phase-")[2])
        assert not UNSEEN.search(html.unescape(path.read_text(encoding="utf-8")))


def taking_turns(names, commands):
    """Each name with one of the commands."""
    return [(name, commands[i % len(commands)]) for i, name in enumerate(names)]


@pytest.mark.parametrize(
    ("name", "words"),
    taking_turns(
        [name for name in HOSTILE if "\x00" not in name and len(name) < 200],
        (("info",), ("plot",), ("optimize",), ("montecarlo",), ("identify", "a.urdf"), ("simulate",), ("compare", "a")),
    ),
)
def test_files_that_are_not_there(name, words, tmp_path):
    path = tmp_path / f"{name.replace('/', '')}x.urdf"
    result = command(*words, path)
    assert result.exit_code != 0
    assert not faults(result.output)
    assert result.stderr.count("\n") == 1, result.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    taking_turns(
        HOSTILE, (("{}",), ("info", "--{}"), ("info", "a", "{}"), ("plot", "a.npz", "--width={}"),
                  ("generate", "a", "--language", "{}"), ("montecarlo", "a", "--samples", "{}")),
    ),
)  # fmt: skip
def test_words_of_the_command(name, words):
    result = command(*(word.replace("{}", name) for word in words))
    assert result.exit_code in (1, 2)
    assert not faults(result.output)


def test_broken_machines(tmp_path):
    path = tmp_path / "m\nplanted.urdf"
    for old, new in (
        ("<parent link", "<sparent link"),
        ('"revolute"', attribute(KEY.replace("\x1b", ""))),
        ("<link", "<lin"),
    ):
        text = urdf()
        place = text.rindex(old)
        path.write_text(text[:place] + new + text[place + len(old) :], encoding="utf-8")
        refused("info", path)


SCENARIO = """
[machine]
file = {file}
[start]
q = {{ {shoulder} = 0.4 }}
[time]
dt = 0.02
steps = 4
{more}
"""


@pytest.mark.parametrize(
    "more",
    [
        f"[{quoted(KEY)}]\na = 1", f"{quoted(KEY)} = 1", f"[control]\nlaw = {quoted(KEY)}",
        f"[control]\nlaw = 'pd'\nstiffness = {{ {quoted(KEY)} = 1 }}", f"[control]\n{quoted(KEY)} = 2", "[contr\x9bol",
    ],
)  # fmt: skip
def test_keys_of_scenarios(machine, folder, more):
    path = folder / "s\nplanted.toml"
    text = SCENARIO.format(file=quoted(machine.name), shoulder=quoted(SHOULDER), more=more)
    path.write_text(text, encoding="utf-8")
    refused("simulate", path)


@pytest.mark.parametrize("start", range(3))
def test_heads_of_a_csv_file(machine, folder, start):
    path = folder / f"record{start}\nplanted.csv"
    heads = [name.replace("\x00", "") for name in HOSTILE[start::3]]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["time", *heads], [0, *map(len, heads)], [0.1, *map(len, heads)]])
    result = command("identify", machine, path)
    assert result.exit_code in (1, 2, 4)
    assert not faults(result.output)


REACH = f"""
[machine]
file = {{file}}
[start]
q = {{{{ {quoted(SHOULDER)} = 0.4, {quoted(ELBOW)} = 0.5 }}}}
[time]
dt = 0.1
horizon = 4
[[reach]]
frame = {quoted(FORE)}
position = [0.0, 0.0, 0.0]
weight = 1e3
"""


def test_an_optimization(machine, folder):
    path = folder / "reach\nplanted.toml"
    path.write_text(REACH.format(file=quoted(machine.name)), encoding="utf-8")
    assert r"f\x85planted\u2028</script>\u200b to a position" in run("optimize", path, "--check")
    for old, new in ((FORE, KEY), (SHOULDER, KEY)):
        path.write_text(REACH.format(file=quoted(machine.name)).replace(quoted(old), quoted(new)), encoding="utf-8")
        refused("optimize", path, "--check")


STUDY = f"""
[machine]
file = {{file}}
[start]
q = {{{{ {quoted(SHOULDER)} = 0.4 }}}}
[time]
dt = 0.02
steps = 4
[dispersions]
q = {{{{ std = {{{{ {quoted(SHOULDER)} = 0.1 }}}} }}}}
masses = {{{{ relative = {{{{ {quoted(FORE)} = 0.1 }}}} }}}}
[outputs]
keep = ["final_q"]
[[outputs.distance]]
name = {quoted(KEY)}
frame = {quoted(FORE)}
point = [0.1, 0, 0.6]
[[failures]]
name = {quoted(KEY)}
output = {quoted(KEY)}
above = 0.1
[sampling]
samples = 32
tile = 16
"""


@pytest.mark.slow
def test_a_study_and_its_report(machine, folder):
    pytest.importorskip("matplotlib")
    pytest.importorskip("pyarrow")
    path, store, page = folder / "st\nplanted.toml", folder / "store\nplanted", folder / "page\nplanted.html"
    path.write_text(STUDY.format(file=quoted(machine.name)), encoding="utf-8")
    assert r"k\x1b[2J\nplanted\x9b\u202e" in run("montecarlo", path, "--out", store)
    run("montecarlo", "report", store, "--out", page, "--cases", 0)
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert not UNSEEN.search(html.unescape(text))


@pytest.mark.slow
def test_a_fit_and_its_report(machine, folder):
    pytest.importorskip("matplotlib")
    record, out, page = folder / "r\nplanted.npz", folder / "fit\nplanted.npz", folder / "fit\nplanted.html"
    with pytest.warns(lgsim.formats.FileWarning) as warned:
        model = lgsim.load_urdf(machine)
    assert not faults(str(warned[0].message))
    t = np.arange(0, 2, 0.01)[:, None] * np.array([2.0, 3.0])
    q, v, a = np.sin(t), np.cos(t) * [2, 3], -np.sin(t) * [4, 9]
    tau = np.asarray(jax.vmap(partial(lgsim.inverse_dynamics, model))(*map(jnp.asarray, (q, v, a))))
    np.savez(record, time=t[:, 0] / 2, q=q, v=v, tau=tau)
    words = ("--fit", "damping", "--method", "linear", "--out", out, "--report", page, "--write", folder / "w.urdf")
    run("identify", machine, record, *words)
    estimate = ("--force-noise", 1, "--unknown", "damping", "--out", folder / "e\nplanted.npz", "--report")
    result = command("estimate", machine, record, *estimate, folder / "e\nplanted.html")
    assert result.exit_code in (0, 3) and not faults(result.output)
    for text in (page.read_text(encoding="utf-8"), (folder / "e\nplanted.html").read_text(encoding="utf-8")):
        assert "<script" not in text
        assert not UNSEEN.search(html.unescape(text))


def test_warnings_that_no_one_catches():
    with terminal.printable_warnings():
        text = warnings.formatwarning(UserWarning(KEY), UserWarning, "lgsim.py", 7)
    assert not faults(text)
    assert "lgsim.py:7: UserWarning: k" in text


def test_a_terminal_has_its_colors():
    """The sequences of a console's own styles stay, those of names are shown."""
    screen = io.StringIO()
    console = terminal.PlainConsole()
    console._force_terminal, console._color_system, console.file = True, ColorSystem.STANDARD, screen
    console.print(Text.assemble(("bold", "bold red"), " x\x9b31m"))
    table = Table("a", f"head {KEY}", title=KEY)
    table.add_row(KEY, terminal.lines([KEY, "second"]))
    console.print(table)
    written = screen.getvalue()
    assert "\x1b[1;31mbold\x1b[0m" in written
    plain = re.sub(r"\x1b\[[0-9;]*m", "", written)
    assert not faults(plain)
    assert "bold x\\x9b31m" in plain
    rows = [line for line in plain.splitlines() if "┃" in line or "│" in line]
    assert len({len(line) for line in rows}) == 1, "columns are as wide as what they show"


def test_texts_go_through_one_file():
    """No other file of the command prints, or has a console of its own."""
    found = []
    for path in sorted(Path(cli.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if name in ("print", "typer.echo", "typer.secho", "Console", "sys.stdout.write", "sys.stderr.write"):
                found.append(f"{path.name}: {name}")
    # before typer is there; and where all others write
    assert sorted(set(found)) == ["__init__.py: print", "terminal.py: typer.echo"]
