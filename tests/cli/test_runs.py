"""What becomes of runs: ``plot``, ``view``, ``compare`` and ``convert``."""

import csv
import errno
import os
import re
import tempfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.simulation import Trajectory
from tests.cli.machines import lgsim, refused


def squeezed(text):
    return " ".join(text.split())


def still(model, q):
    """A run of one state."""
    return Trajectory(model, np.zeros(1), np.asarray(q)[None], np.zeros((1, model.nv)), np.zeros((1, model.nv)))


def test_largest_differences(run, tmp_path):
    one = Trajectory.load(run)
    shift = np.array([[0, 0], [0, -0.25], [0.125, 0]])
    other = replace(one, q=one.q + shift, v=one.v + 2 * shift[::-1])
    text = squeezed(lgsim("compare", run, other.save(tmp_path / "other.npz")).stdout)
    assert "3 common times, from 0 s to 0.004 s" in text
    assert "q 0.25 rad 0.002 s elbow" in text
    assert "v 0.5 rad/s 0.002 s elbow" in text
    change = np.abs(other.energy - one.energy)
    assert f"energy {change.max():.4g} J {one.time[change.argmax()]:g} s" in text


def test_only_common_times_count(run, tmp_path):
    one = Trajectory.load(run)
    part = replace(one[1:], q=one.q[1:] + 1.0, time=one.time[1:] * (1 + 1e-12))
    text = squeezed(lgsim("compare", run, part.save(tmp_path / "part.npz")).stdout)
    assert "2 common times, from 0.002 s to 0.004 s" in text
    assert "q 1 rad" in text
    later = replace(one, time=one.time + 0.0005).save(tmp_path / "later.npz")
    message = refused("compare", run, later)
    assert "have no common times" in message
    assert f"{later} has 3 times from 0.0005 s to 0.0045 s" in message


def test_configurations_are_compared_on_the_group(files, tmp_path):
    """q and -q are one rotation; the angle between two others is that of rotation vectors."""
    from lgsim.scenarios.machine import read_machine

    model, _ = read_machine(files / "ball.urdf")
    turned = np.array([np.cos(0.2), 0, np.sin(0.2), 0, 0])
    first = still(model, turned).save(tmp_path / "first.npz")
    same = still(model, turned * [-1, -1, -1, -1, 1]).save(tmp_path / "same.npz")
    neutral = still(model, model.neutral()).save(tmp_path / "neutral.npz")
    words = squeezed(lgsim("compare", first, same).stdout).split()
    assert float(words[words.index("q") + 1]) < 1e-15
    assert "q 0.4 rad 0 s socket[1]" in squeezed(lgsim("compare", first, neutral).stdout)


def test_precisions_may_differ(run, tmp_path):
    one = Trajectory.load(run)
    model = jax.tree.map(lambda x: x.astype(jnp.float32), one.model)
    single = Trajectory(model, *(np.float32(x) for x in (one.time, one.q, one.v, one.tau)))
    result = lgsim("compare", run, single.save(tmp_path / "single.npz"))
    assert result.exit_code == 0, result.output
    assert "3 common times" in result.stdout


def test_different_machines_are_refused(run, files, tmp_path):
    from lgsim.scenarios.machine import read_machine

    one = Trajectory.load(run)
    light = replace(one, model=one.model.replace(gravity=jnp.zeros(3), damping=jnp.ones(2))).save(
        tmp_path / "light.npz"
    )
    message = refused("compare", run, light)
    assert "are of different robots" in message
    assert one.fingerprint in message
    assert message.endswith("they differ in drives, gravity")

    ball = read_machine(files / "ball.urdf")[0]
    other = still(ball, ball.neutral()).save(tmp_path / "ball.npz")
    assert "the joints are shoulder, elbow and socket, wheel, shadow" in refused("compare", run, other)


def test_convert_to_csv_and_back_to_npz(run, tmp_path):
    one = Trajectory.load(run)
    assert lgsim("convert", run, tmp_path / "run.csv").stdout.strip() == str(tmp_path / "run.csv")
    with (tmp_path / "run.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0][:3] == ["time [s]", "q shoulder [rad]", "q elbow [rad]"]
    np.testing.assert_array_equal(np.array(rows[1:], float)[:, 1:3], one.q)
    assert lgsim("convert", run, tmp_path / "copy.npz").exit_code == 0
    np.testing.assert_array_equal(Trajectory.load(tmp_path / "copy.npz").v, one.v)
    assert "a .csv file contains no model; expected a run that ends in .npz or .parquet" in refused(
        "convert", tmp_path / "run.csv", tmp_path / "again.npz"
    )
    assert "OUT: expected a name that ends in .npz or .parquet or .csv or .mcap, got 'run.txt'" in refused(
        "convert", run, tmp_path / "run.txt"
    )


def fill(monkeypatch, *folders):
    """Let no file be written to some folders, as where a disk is full; all of them for none."""
    real = os.fdopen

    class Full:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

        def __getattr__(self, name):
            return getattr(self.file, name)

        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

    def fdopen(handle, *arguments, **named):
        file = real(handle, *arguments, **named)
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        return Full(file) if not folders or path.parent in folders else file

    monkeypatch.setattr("lgsim.support.files.os.fdopen", fdopen)


def test_full_disk_is_one_line(run, tmp_path, monkeypatch):
    """The file is named, not the temporary one, and nothing is left."""
    fill(monkeypatch)
    for ending in ("csv", "npz", "mcap"):
        if ending == "mcap" and not find_spec("mcap_ros2"):
            continue
        out = tmp_path / f"run.{ending}"
        assert refused("convert", run, out, code=1) == f"{out}: No space left on device"
    assert not list(tmp_path.iterdir())


def test_a_finished_run_is_kept_elsewhere_where_the_disk_is_full(run, files, tmp_path, monkeypatch):
    """As .npz in another folder, which the message names; it is the run."""
    folder, other = tmp_path / "full", tmp_path / "other"
    folder.mkdir(), other.mkdir()
    fill(monkeypatch, folder)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(other))
    said = refused("convert", run, folder / "run.csv", code=1)
    assert said.startswith(f"{folder / 'run.csv'}: No space left on device; the run is saved in {other / 'lgsim-run-'}")
    (kept,) = other.iterdir()
    np.testing.assert_array_equal(Trajectory.load(kept).q, Trajectory.load(run).q)
    kept.unlink()
    result = lgsim("simulate", files / "arm.urdf", "--duration", 0.004, "--dt", 0.001, "--out", folder / "run.npz",
                   "--no-step-check")  # fmt: skip
    assert result.exit_code == 1 and "the run is saved in" in " ".join(result.stderr.split())
    (kept,) = other.iterdir()
    assert len(Trajectory.load(kept)) == 5 and not list(folder.iterdir())


def test_plots_and_scenes_name_their_file_where_the_disk_is_full(run, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    def full(figure, path, **settings):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    message = refused("plot", run, "--out", tmp_path, code=1)
    assert message == f"{tmp_path / 'run-joints.png'}: No space left on device"
    if find_spec("viser"):
        fill(monkeypatch)
        message = refused("view", run, "--html", tmp_path / "run.html", code=1)
        assert message == f"{tmp_path / 'run.html'}: No space left on device"


@pytest.mark.skipif(not find_spec("mcap_ros2"), reason="needs the extra logs")
def test_convert_to_mcap(run, files, tmp_path):
    """With the machine's URDF for its shapes; it is no run any more, but a recording."""
    from lgsim import load_urdf
    from lgsim.identify import read_recording

    assert lgsim("convert", run, tmp_path / "run.mcap", "--machine", files / "arm.urdf").exit_code == 0
    read = read_recording(tmp_path / "run.mcap", load_urdf(files / "arm.urdf"), checked=False)
    np.testing.assert_array_equal(read.q, Trajectory.load(run).q)
    assert b"<robot" in description(tmp_path / "run.mcap")
    assert "a .mcap file contains no model" in refused("convert", tmp_path / "run.mcap", tmp_path / "again.npz")


def description(path):
    """What the messages on /robot_description say."""
    from mcap.reader import make_reader

    with path.open("rb") as file:
        return b"".join(m.data for _, _, m in make_reader(file).iter_messages(topics=["/robot_description"]))


def test_convert_to_parquet_and_back(run, tmp_path):
    pytest.importorskip("pyarrow")
    assert lgsim("convert", run, tmp_path / "run.parquet").exit_code == 0
    assert lgsim("convert", tmp_path / "run.parquet", tmp_path / "back.npz").exit_code == 0
    np.testing.assert_array_equal(Trajectory.load(tmp_path / "back.npz").q, Trajectory.load(run).q)


def test_plot(run, tmp_path):
    result = lgsim("plot", run, "--out", tmp_path / "pictures", "--phase", "elbow")
    names = [f"run-{name}.png" for name in ("joints", "energy", "momentum", "phase-elbow")]
    assert result.stdout.split() == [str(tmp_path / "pictures" / name) for name in names]
    assert all((tmp_path / "pictures" / name).read_bytes()[:4] == b"\x89PNG" for name in names)


def test_plot_refuses(run, files, tmp_path):
    from lgsim.scenarios.machine import read_machine

    assert "--phase: expected the name of a joint, got 'elbw'; did you mean 'elbow'?" in refused(
        "plot", run, "--out", tmp_path, "--phase", "elbw"
    )
    assert "--out: there is no folder" in refused("plot", run, "--out", tmp_path / "a" / "b")
    ball = read_machine(files / "ball.urdf")[0]
    run = still(ball, ball.neutral()).save(tmp_path / "ball.npz")
    assert "--phase: " in refused("plot", run, "--phase", "socket")
    assert [path.name for path in tmp_path.iterdir()] == ["ball.npz"]


@pytest.mark.parametrize("content", [b"", b"hello", None], ids=["empty", "text", "part"])
def test_what_is_no_run(content, run, tmp_path):
    path = tmp_path / "odd.npz"
    path.write_bytes(run.read_bytes()[:2000] if content is None else content)
    assert refused("plot", path) == f"{path}: expected a run of lgsim, got an incomplete file or one of another kind"


def test_other_archives_and_other_endings(run, tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(2))
    assert f"{tmp_path / 'other.npz'}: expected a trajectory that lgsim wrote" in refused(
        "plot", tmp_path / "other.npz"
    )
    assert refused("compare", run, tmp_path / "none.npz") == f"{tmp_path / 'none.npz'}: no such file"
    assert "run.mat: expected a run that ends in .npz or .parquet" in refused("plot", "run.mat")
    (tmp_path / "folder.npz").mkdir()
    assert "(expected a regular file, got a " in refused("plot", tmp_path / "folder.npz")


@pytest.mark.parametrize("shown", ["run", "machine"])
def test_view_as_a_file(shown, run, files, tmp_path):
    pytest.importorskip("viser")
    out = tmp_path / "scene.html"
    what = (run, "--visuals", files / "arm.urdf") if shown == "run" else (files / "arm.urdf",)
    assert lgsim("view", *what, "--html", out).stdout.strip() == str(out)
    assert "<html" in out.read_text().lower()


def test_view_live(run, monkeypatch):
    """The scene runs until Ctrl-C, which is how it ends and no fault."""
    pytest.importorskip("viser")
    from lgsim.view.scene import Live

    def pressed(scene):
        raise KeyboardInterrupt

    monkeypatch.setattr(Live, "wait", pressed)
    result = lgsim("view", run, "--port", 18080)
    assert result.exit_code == 0, result.output
    assert "note: the scene is at http://localhost:18" in result.stderr


def test_view_refuses(run, files, tmp_path):
    pytest.importorskip("viser")
    assert "--html: there is no folder" in refused("view", run, "--html", tmp_path / "a" / "b.html")
    assert "none.urdf: the file cannot be read" in refused("view", tmp_path / "none.urdf")
    assert "visuals: expected names of frames" in refused(
        "view", files / "ball.urdf", "--html", tmp_path / "x.html", "--visuals", files / "arm.urdf"
    )


def apart(run, gap):
    """A run of the arm and another one whose shoulder is off by a gap over time."""
    one = Trajectory.load(run)
    time = 0.02 * np.arange(600)
    q = np.stack([np.sin(time), np.cos(2 * time)], axis=1)
    first = Trajectory(one.model, time, q, np.zeros_like(q), np.zeros_like(q))
    return first, replace(first, q=q + np.stack([gap(time), 0 * time], axis=1))


@pytest.mark.parametrize(
    ("gap", "rate"),
    [
        (lambda t: np.minimum(1e-12 * np.exp(2.5 * t), 0.8), 2.5),  # chaotic, until it is as large as the motion
        (lambda t: np.minimum(1e-9 * np.exp(1.5 * t), 0.8) * np.abs(np.cos(7 * t)), 1.5),  # with zeros on the way
        (lambda t: 1e-6 * t, None),
        (lambda t: 1e-9 * t**4, None),
        (lambda t: 1e-9 * np.sin(t), None),
        (lambda t: 0 * t, None),
    ],
)
def test_growth_of_the_difference_of_chaotic_runs(run, tmp_path, gap, rate):
    """The time for a factor of ten is ln(10) / rate; powers of the time are no chaos."""
    for name, motion in zip(("a", "b"), apart(run, gap), strict=True):
        motion.save(tmp_path / f"{name}.npz")
    result = lgsim("compare", tmp_path / "a.npz", tmp_path / "b.npz", "--plot", tmp_path / "gap.svg")
    assert result.exit_code == 0
    said = re.search(r"grows tenfold every (\S+) s", squeezed(result.stdout))
    assert (said is None) == (rate is None), result.stdout
    if rate is not None:
        assert abs(float(said[1]) - np.log(10) / rate) < 0.1 * np.log(10) / rate
        assert "the motion is chaotic" in squeezed(result.stdout)
    assert b"<svg" in (tmp_path / "gap.svg").read_bytes()
    assert "--plot: expected one of png, pdf, svg, got 'gif'" in refused(
        "compare", tmp_path / "a.npz", tmp_path / "b.npz", "--plot", tmp_path / "gap.gif"
    )


@pytest.mark.slow
def test_figures_of_a_paper(run, tmp_path):
    """Some joints, as PDF with text that stays text, as wide as a column."""
    result = lgsim("plot", run, "--out", tmp_path, "--joints", "elbow", "--format", "pdf", "--width", 3.4)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "run-joints.pdf").read_bytes()
    assert b"/Type0" in page and b"/Type3" not in page
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", page)
    assert abs(float(box[1]) - 3.4 * 72) < 1
    assert "--joints: expected the name of a joint, got 'elbw'; did you mean 'elbow'" in refused(
        "plot", run, "--out", tmp_path, "--joints", "elbw"
    )
    assert "--format: expected one of png, pdf, svg, got 'eps'" in refused("plot", run, "--format", "eps")
    assert "--width: expected 1 to 40 inches, got 0" in refused("plot", run, "--width", 0)
