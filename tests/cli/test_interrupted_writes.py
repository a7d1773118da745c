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
    "convert": ("convert", "motion.npz", "out.csv", "--force"),
    "simulate": ("simulate", "arm.urdf", *SHORT, "--q", "elbow=0.2", "--out", "out.npz", "--plot", "--html"),
    "optimize": ("optimize", "reach.toml", "--out", "out.npz", "--plot"),
    "identify": (*FIT, "--out", "out.npz", "--report", "out.html", "--write", "out.urdf", "--plot", "--force"),
    "generate": ("generate", "arm.urdf", "--functions", "gravity_forces,mass_matrix", "--out", "out"),
    "plot": ("plot", "motion.npz", "--format", "svg"),
    "view": ("view", "motion.npz", "--html", "out.html"),
    "compare": ("compare", "motion.npz", "motion.npz", "--plot", "out.pdf"),
    "demo": ("demo", "arm.urdf", "--out", "out", "--duration", "0.5"),
    "montecarlo run": ("montecarlo", "study.toml", "--out", "out", "--samples", "48", "--resume"),
    "montecarlo report": ("montecarlo", "report", "store", "--out", "out.html", "--cases", "0"),
}
SLOW = {"convert", "montecarlo run"}
"""Those that are not left to the exhaustive tests."""


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


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.slow, *([] if case in SLOW else [pytest.mark.exhaustive])])
     for case in COMMANDS],
)  # fmt: skip
def test_killed_at_ten_moments(case, place):
    """What was there is there, each file is an old one or a whole new one, and the same command comes to its end."""
    words = COMMANDS[case]
    if case == "montecarlo report":
        made = lgsim("montecarlo", place / "study.toml", "--out", place / "store", "--samples", 48, "--no-step-check")
        assert made.exit_code == 0
    if case == "montecarlo run":
        (place / "out" / "chunks").mkdir(parents=True)  # the rest of one that was killed at its start
    given = set(content(place))
    first = command(place, words)
    assert first.returncode in (0, 3), first.stderr
    events = int(re.search(r"events: (\d+)", first.stderr)[1])
    moments = sorted({1 + k * (events - 1) // (MOMENTS - 1) for k in range(MOMENTS)})
    if case == "montecarlo run":
        shutil.rmtree(place / "out")
        (place / "out" / "chunks").mkdir(parents=True)
    before = content(place)
    for moment in moments:
        result = command(place, words, moment)
        assert result.returncode == -signal.SIGKILL, (moment, result.returncode, result.stderr[-2000:])
        after = content(place)
        assert {name for name in before if name not in after and not is_temporary(name)} == set()
        assert {name: after[name] for name in given if name != "out.csv"} == {
            name: before[name] for name in given if name != "out.csv"
        }
        for name, text in after.items():
            assert is_temporary(name) or text == before.get(name) or is_whole(place / name), (moment, name)
    last = command(place, words)
    assert last.returncode == first.returncode, last.stderr
    if case == "montecarlo run":
        assert not any(map(is_temporary, content(place)))


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
