"""``kill -9`` at ten moments of each command that writes, and a full disk: nothing of before is lost, one sentence."""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lgsim.support.files import TEMPORARY
from tests.cli.machines import lgsim
from tests.cli.test_replacement import REACH, SWING
from tests.scenarios.studies import STUDY

ROOT = Path(__file__).parents[2]
MOMENTS = 10
SHORT = ("--duration", "0.004", "--dt", "0.001", "--no-step-check")
FIT = ("identify", "arm.urdf", "swing.csv", "--fit", "damping", "--held-out", "0", "--no-step-check")
COMMANDS = {
    "convert": ("convert", "motion.npz", "out.csv"),
    "simulate": ("simulate", "arm.urdf", *SHORT, "--q", "elbow=0.2", "--out", "out.npz", "--plot", "--html"),
    "optimize": ("optimize", "reach.toml", "--out", "out.npz", "--plot"),
    "identify": (*FIT, "--out", "out.npz", "--report", "out.html", "--write", "out.urdf", "--plot", "--force"),
    "estimate": (
        "estimate", "arm.urdf", "swing.csv", "--force-noise", "1", "--out", "out.npz", "--report", "out.html", "--plot",
        "--force",
    ),
    "generate": ("generate", "arm.urdf", "--functions", "gravity_forces,mass_matrix", "--out", "out"),
    "plot": ("plot", "motion.npz", "--format", "svg"),
    "view": ("view", "motion.npz", "--html", "out.html"),
    "compare": ("compare", "motion.npz", "motion.npz", "--plot", "out.pdf"),
    "demo": ("demo", "arm.urdf", "--out", "out", "--duration", "0.5"),
    "montecarlo report": ("montecarlo", "report", "store", "--out", "out.html", "--cases", "0"),
}  # fmt: skip


def is_whole(path):
    """Whether a file has its end."""
    content = path.read_bytes()
    if path.suffix == ".npz":
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    ends = {".html": b"</html>", ".png": b"IEND\xaeB`\x82", ".svg": b"</svg>", ".pdf": b"%%EOF", ".urdf": b"</robot>",
            ".parquet": b"PAR1", ".csv": b"\n"}  # fmt: skip
    return path.suffix not in ends or content.rstrip(b"\r\n" if path.suffix != ".csv" else b"").endswith(
        ends[path.suffix]
    )


def command(folder, words, moment=0):
    return subprocess.run(
        [sys.executable, "-m", "tests.cli.interrupted_writes", str(moment), *words], cwd=folder, capture_output=True,
        text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder.parent / "cache")},
    )  # fmt: skip


def content(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def is_temporary(name):
    return name.rpartition("/")[2].startswith(TEMPORARY)


@pytest.fixture
def place(files, run, tmp_path):
    """A folder with what all commands start from."""
    folder = tmp_path / "work"
    folder.mkdir()
    shutil.copy(files / "arm.urdf", folder)
    shutil.copy(run, folder / "motion.npz")
    for name, text in (("reach.toml", REACH), ("study.toml", STUDY), ("swing.csv", SWING)):
        (folder / name).write_text(text)
    return folder


def killed_at_ten_moments(place, words, events):
    """Kill the command at ten of its events, one after another."""
    for moment in sorted({1 + k * (events - 1) // (MOMENTS - 1) for k in range(MOMENTS)}):
        result = command(place, words, moment)
        assert result.returncode == -signal.SIGKILL, (moment, result.returncode, result.stderr[-2000:])
        yield moment


def completed(place, words):
    """The number of events of the command that comes to its end."""
    result = command(place, words)
    assert result.returncode in (0, 3), result.stderr
    return int(re.search(r"events: (\d+)", result.stderr)[1])


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.slow, *([] if case == "convert" else [pytest.mark.exhaustive])])
     for case in COMMANDS],
)  # fmt: skip
def test_killed_at_ten_moments(case, place):
    """What was there is there, each file is an old one or a whole new one, and the same command comes to its end."""
    words = COMMANDS[case]
    if case == "montecarlo report":
        made = lgsim("montecarlo", place / "study.toml", "--out", place / "store", "--samples", 48, "--no-step-check")
        assert made.exit_code == 0
    given = content(place)
    events = completed(place, words)
    before = content(place)
    for _ in killed_at_ten_moments(place, words, events):
        after = content(place)
        assert given.items() <= after.items() and before.keys() <= after.keys()
        for name, text in after.items():
            assert is_temporary(name) or text == before.get(name) or is_whole(place / name), name
    assert command(place, words).returncode in (0, 3)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_study_killed_at_ten_moments(place):
    """From the rest of a store on; each time the same command goes on to the files of a run without a break."""
    words = ("montecarlo", "study.toml", "--out", "out", "--samples", "48", "--resume")

    def begin():
        shutil.rmtree(place / "out", ignore_errors=True)
        (place / "out" / "chunks").mkdir(parents=True)

    def files():
        return {name: text for name, text in content(place / "out").items() if name != "lock"}

    begin()
    events, whole = completed(place, words), files()
    begin()
    for _ in killed_at_ten_moments(place, words, events):
        completed(place, words)
        assert files() == whole
        begin()


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        "convert",
        "view",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("generate", "plot", "compare", "simulate")),
    ],
)
def test_a_full_disk(case, place, monkeypatch):
    """The limit of a file's size in place of the disk's: exit status 1, one sentence, and what was there."""
    monkeypatch.chdir(place)
    for folder in ("TMPDIR", "HOME"):
        monkeypatch.setenv(folder, str(place))
    assert lgsim(*COMMANDS[case]).exit_code == 0
    before = content(place)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        result = lgsim(*COMMANDS[case])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.exit_code == 1, result.output
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and "File too large" in errors[0] and TEMPORARY not in errors[0], errors
    assert content(place) == before
