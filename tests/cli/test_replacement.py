"""What a command replaces: its own results, with a note; what others wrote, or of another machine, only by --force."""

import shutil

import numpy as np
import pytest

from lgsim.cli.checks import replacement
from lgsim.cli.checks.replacement import KINDS, Output, check_replaced
from lgsim.cli.errors import BadInput
from tests.cli.machines import lgsim, refused
from tests.scenarios.studies import STUDY

FOREIGN = b"dear\n"
REACH = """
[machine]
file = "arm.urdf"
[start]
q = { shoulder = 0.1 }
[time]
dt = 0.05
duration = 0.2
[[reach]]
frame = "fore"
position = [0.1, 0.0, 0.3]
"""
SWING = "time,shoulder_position,elbow_position\n" + "".join(f"{k / 50},{k * 0.01},{k * k * 1e-4}\n" for k in range(60))
SHORT = ("--duration", 0.002, "--dt", 0.001, "--no-step-check")


@pytest.fixture
def place(files, run, tmp_path):
    """A folder with a machine, a run of it, a scenario, a study, a record."""
    for name in ("arm.urdf", "slider.xml"):
        shutil.copy(files / name, tmp_path)
    shutil.copy(run, tmp_path / "motion.npz")
    for name, text in (("reach.toml", REACH), ("study.toml", STUDY), ("swing.csv", SWING)):
        (tmp_path / name).write_text(text)
    return tmp_path


COMMANDS = {
    "simulate": (("simulate", "arm.urdf", *SHORT, "--out", "run.npz"), "run.npz", "--out", "run"),
    "simulate csv": (("simulate", "arm.urdf", *SHORT, "--out", "swing.csv"), "swing.csv", "--out", "run"),
    "simulate parquet": (("simulate", "arm.urdf", *SHORT, "--out", "run.parquet"), "run.parquet", "--out", "run"),
    "simulate plots": (("simulate", "arm.urdf", *SHORT, "--plot"), "run-energy.png", "--plot", "plot"),
    "simulate scene": (("simulate", "arm.urdf", *SHORT, "--html"), "run.html", "--html", "scene"),
    "optimize": (("optimize", "reach.toml", "--out", "run.npz"), "run.npz", "--out", "run"),
    "optimize plots": (("optimize", "reach.toml", "--plot"), "run-joints.png", "--plot", "plot"),
    "optimize restart": (("optimize", "reach.toml", "--restart"), "run.checkpoint.npz", "--restart", "checkpoint"),
    "identify": (("identify", "arm.urdf", "swing.csv"), "fit.npz", "--out", "fit"),
    "identify report": (
        ("identify", "arm.urdf", "swing.csv", "--report", "notes.html"), "notes.html", "--report", "report",
    ),
    "identify write": (
        ("identify", "arm.urdf", "swing.csv", "--write", "arm.urdf"), "arm.urdf", "--write", "URDF file",
    ),
    "identify plots": (("identify", "arm.urdf", "swing.csv", "--plot"), "fit-changes.png", "--plot", "plot"),
    "identify restart": (
        ("identify", "arm.urdf", "swing.csv", "--restart"), "fit.checkpoint.npz", "--restart", "checkpoint",
    ),
    "estimate": (("estimate", "arm.urdf", "swing.csv"), "estimate.npz", "--out", "estimate"),
    "estimate plots": (
        ("estimate", "arm.urdf", "swing.csv", "--plot"), "estimate-states.png", "--plot", "plot",
    ),
    "convert": (("convert", "motion.npz", "run.csv"), "run.csv", "OUT", "run"),
    "convert mcap": (("convert", "motion.npz", "run.mcap"), "run.mcap", "OUT", "run"),
    "generate": (
        ("generate", "arm.urdf", "--functions", "gravity_forces", "--out", "."), "README.txt", "--out", "code",
    ),
    "generate code": (
        ("generate", "arm.urdf", "--functions", "gravity_forces", "--out", "."), "gravity_forces.c", "--out", "code",
    ),
    "plot": (("plot", "motion.npz", "--format", "svg"), "motion-momentum.svg", "--out", "plot"),
    "plot phase": (("plot", "motion.npz", "--phase", "elbow"), "motion-phase-elbow.png", "--out", "plot"),
    "view": (("view", "motion.npz", "--html", "notes.html"), "notes.html", "--html", "scene"),
    "compare": (("compare", "motion.npz", "motion.npz", "--plot", "gap.pdf"), "gap.pdf", "--plot", "plot"),
    "demo": (("demo", "arm.urdf", "--out", "."), "arm.npz", "--out", "run"),
    "demo scene": (("demo", "arm.urdf", "--out", "."), "arm.html", "--out", "scene"),
}  # fmt: skip


@pytest.mark.parametrize("case", COMMANDS)
def test_a_file_of_others_is_not_replaced(case, place, monkeypatch):
    """One line before anything is computed, and the file as it was."""
    words, name, option, kind = COMMANDS[case]
    monkeypatch.chdir(place)
    if not (place / name).exists():
        (place / name).write_bytes(FOREIGN)
    before = {path: path.read_bytes() for path in place.iterdir()}
    result = lgsim(*words)
    assert result.exit_code == 2, result.output
    assert result.stderr.strip().splitlines()[-1] == (
        f"error: {option}: {name} exists and contains no {kind} written by lgsim; choose another name, or replace it"
        " with --force"
    )
    assert {path: path.read_bytes() for path in place.iterdir()} == before


@pytest.mark.repeats("simulate", "convert")
@pytest.mark.parametrize("case", ["simulate", "convert", "plot", "view", "compare", "generate code"])
def test_with_force_it_is(case, place, monkeypatch):
    """And so is then, without force, what the command itself wrote; a note says so."""
    words, name, *_ = COMMANDS[case]
    monkeypatch.chdir(place)
    (place / name).write_bytes(FOREIGN)
    result = lgsim(*words, "--force")
    assert result.exit_code == 0, result.output
    assert FOREIGN not in (place / name).read_bytes()[:10] and "replacing" not in result.stderr
    again = lgsim(*words)
    assert again.exit_code == 0, again.output
    notes = [line for line in again.stderr.splitlines() if line.startswith("note: replacing ")]
    assert len(notes) == 1 and (name in notes[0] or "README.txt" in notes[0])


@pytest.mark.slow
def test_a_run_of_another_machine_is_kept(place, monkeypatch):
    monkeypatch.chdir(place)
    assert lgsim("simulate", "slider.xml", *SHORT, "--out", "run.npz").exit_code == 0
    assert lgsim("convert", "run.npz", "run.parquet").exit_code == 0
    line = refused("simulate", "arm.urdf", *SHORT, "--out", "run.npz")
    assert line.startswith("--out: run.npz is the run of another robot (rail, not shoulder, elbow); choose another")
    for out in ("run.npz", "run.parquet"):
        kept = (place / out).read_bytes()
        assert refused("convert", "motion.npz", out).startswith(f"OUT: {out} is the run of another robot (")
        assert (place / out).read_bytes() == kept
        for force in (["--force"], []):
            assert lgsim("convert", "motion.npz", out, *force).exit_code == 0


@pytest.mark.slow
def test_the_report_of_another_study_is_kept(place, monkeypatch):
    """`montecarlo report --out notes.html` overwrote what was there without a word."""
    monkeypatch.chdir(place)
    (place / "notes.html").write_bytes(FOREIGN)
    few = ("--samples", 16, "--no-step-check")
    assert lgsim("montecarlo", "study.toml", "--out", "a", *few).exit_code == 0
    assert lgsim("montecarlo", "study.toml", "--out", "b", "--seed", 9, *few).exit_code == 0
    line = refused("montecarlo", "report", "a", "--out", "notes.html", "--cases", 0)
    assert line.startswith("--out: notes.html exists and contains no report written by lgsim")
    assert (place / "notes.html").read_bytes() == FOREIGN
    assert lgsim("montecarlo", "report", "a", "--out", "notes.html", "--cases", 0, "--force").exit_code == 0
    assert lgsim("montecarlo", "report", "a", "--out", "notes.html", "--cases", 0).exit_code == 0
    line = refused("montecarlo", "report", "b", "--out", "notes.html", "--cases", 0)
    assert line == (
        "--out: notes.html is the report of another study; choose another name, or replace it with --force"
    )  # fmt: skip


def test_a_device_and_an_empty_file_have_nothing_to_lose(place, monkeypatch):
    monkeypatch.chdir(place)
    (place / "run.npz").touch()
    (place / "null.csv").symlink_to("/dev/null")
    for out in ("run.npz", "null.csv"):
        assert lgsim("simulate", "arm.urdf", *SHORT, "--out", out).exit_code == 0
    assert (place / "null.csv").is_char_device()
    assert lgsim("view", "motion.npz", "--html", "/dev/null").exit_code == 0


def wrong_files(folder):
    """Files that are near to results of lgsim."""
    (folder / "recording.csv").write_text("time [s],q shoulder [rad],v shoulder [rad/s]\n0,0,0\n")
    np.savez(folder / "other.npz", about=np.array('{"format": "others trajectory 1"}'))
    np.savez(folder / "recording.npz", about=np.array('{"format": "lgsim recording 1", "topology": "{}"}'))
    np.savez(folder / "deep.npz", about=np.array("[" * 50_000))
    (folder / "page.html").write_text('<meta name="generator" content="others report">')
    (folder / "part.mcap").write_bytes(b"\x89MCAP0\r\n" + b"\0" * 100)
    (folder / "zip.npz").write_bytes(b"PK\x03\x04")
    (folder / "README.txt").write_text("generated by hand")
    (folder / "inverse_dynamics.c").write_text("Code of arm.urdf, generated by lgsim 1")
    return sorted(folder.iterdir())


def test_what_is_near_to_a_result_is_none(tmp_path):
    for path in wrong_files(tmp_path):
        for kind in KINDS:
            with pytest.raises(BadInput, match="contains no"):
                check_replaced([Output("--out", path, kind)], force=False)


def test_results_are_of_one_kind(simulated, tmp_path, capsys):
    """Each file of a simulation is of its own kind and of no other."""
    folder = simulated[1]
    found = {
        path.suffix: {kind for kind in KINDS if replacement._subject(path, kind) is not None}
        for path in folder.iterdir()
    }
    assert found.items() <= {".npz": {"run"}, ".png": {"plot"}, ".html": {"scene"}}.items() and len(found) >= 2
    assert replacement._subject(folder / "run.npz", "run") == "shoulder\nelbow"
    assert capsys.readouterr().err == ""


def test_generated_code_is_known_by_the_page_beside_it(place, monkeypatch):
    """A file that the page does not name is another's."""
    monkeypatch.chdir(place)
    words = ("generate", "arm.urdf", "--language", "numpy", "--out", "code", "--functions")
    assert lgsim(*words, "gravity_forces").exit_code == 0
    (place / "code" / "mass_matrix.py").write_bytes(FOREIGN)
    assert lgsim(*words, "gravity_forces").exit_code == 0
    said = lgsim(*words, "gravity_forces,mass_matrix")
    assert said.exit_code == 2 and "error: --out: code/mass_matrix.py exists and contains no code" in said.stderr
    assert (place / "code" / "mass_matrix.py").read_bytes() == FOREIGN
