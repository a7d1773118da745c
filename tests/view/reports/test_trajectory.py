"""The page about a trajectory: the limits that it uses, its plots and its motion, also where it diverged."""

from importlib.util import find_spec

import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("matplotlib")

import lgsim
from lgsim.simulation import Trajectory
from lgsim.view import reports
from lgsim.view.reports import replays
from lgsim.view.reports.trajectory import add_limits, energy_drift
from tests.scenarios.machines import ARM, BALL
from tests.view.reports.pages import cells, facts, headings, needs_no_network, pictures, remarks, rows


@pytest.fixture(scope="module")
def arm():
    """Two links; the shoulder has no limits, the elbow goes from -2 to 1.5 at up to 5 rad/s and 10 N m."""
    return lgsim.load_urdf(text=ARM)


@pytest.fixture
def still(monkeypatch):
    """No motion is played: the package for it is missing, which a warning says."""
    monkeypatch.setattr(replays, "find_spec", lambda name: None if name == "viser" else find_spec(name))


def motion(model, count=5, **changes):
    """Both joints move evenly, the elbow from 0 to 1 rad at 2 rad/s and 5 N m."""
    time = np.linspace(0, 0.5, count) if count > 1 else np.zeros(1)
    q, v, tau = (np.tile(x, (count, 1)) for x in ([0.0, 0.0], [-1.0, 2.0], [0.5, 5.0]))
    q[:, 0], q[:, 1] = -time, 2 * time
    arrays = {"q": q, "v": v, "tau": tau} | changes
    return Trajectory(model, time, **arrays, method="MK4", dt=0.01)


@pytest.mark.quick
def test_limits_facts_and_plots(arm, still, tmp_path):
    """Shares of the limits by hand: 1 rad is 1.25 from the middle of -2 and 1.5, whose half length is 1.75."""
    with pytest.warns(UserWarning, match="no replays, since viser is missing: pip install 'lgsim.view.'"):
        report = reports.report_trajectory(motion(arm), title="A <swing>", subtitle="by hand")
    page = report.save(tmp_path / "motion.html").read_text(encoding="utf-8")
    assert page == report.html() and "<h1>A &lt;swing&gt;</h1><p>by hand</p>" in page
    assert headings(page) == ["Summary", "Limits", "Joints", "Energy", "Motion"]
    assert facts(page) == {
        "states": "5",
        "duration": "0.5 s",
        "degrees of freedom": "2",
        "method": "MK4",
        "step": "0.01 s",
    }
    table = rows(page)
    assert table["shoulder (rad)"] == ["−0.5", "0", "–", "1", "–", "0.5", "–"]
    assert table["elbow (rad)"] == ["0", "1", "71.4 %", "2", "40 %", "5", "50 %"]
    assert pictures(page) == 2 and needs_no_network(page) and "<iframe" not in page
    assert remarks(page) == [("note", replays.MISSING)]


def limits(motion):
    """The page with nothing but the table of limits."""
    page = reports.Page("title")
    add_limits(page, motion)
    return page.html()


def test_beyond_a_limit_is_bad(arm):
    """Ten percent too fast; a number at its limit but for rounding is not beyond it."""
    fast = np.tile([0.0, 5.5], (5, 1))
    page = limits(motion(arm, v=fast))
    assert remarks(page) == [("bad", "Beyond a limit: elbow.")] and rows(page)["elbow (rad)"][4] == "110 %"
    assert remarks(limits(motion(arm, v=fast * (5 / 5.5) * (1 + 1e-9)))) == []


def test_quaternions_have_no_positions():
    """A ball joint and a wheel: speeds and forces of all, positions of the wheel alone."""
    model = lgsim.load_urdf(text=BALL.replace('izz="9"', 'izz="1"'))
    q = np.tile(np.asarray(model.neutral()), (3, 1))
    v = np.tile([1.0, -2.0, 3.0, 4.0], (3, 1))
    table = [row for row in cells(limits(Trajectory(model, np.arange(3.0), q, v, 0 * v))) if row]
    assert [row[0].split()[0] for row in table] == ["socket", "socket", "socket", "wheel"]
    assert [row[1] for row in table] == ["–", "–", "–", "0"]
    assert [row[4] for row in table] == ["1", "2", "3", "4"]


@pytest.mark.skipif(find_spec("viser") is None, reason="the package viser is missing")
def test_a_single_state_is_shown_and_played(arm, tmp_path):
    """One sample makes a whole page; shapes come from the machine's file."""
    (tmp_path / "arm.urdf").write_text(ARM)
    page = reports.report_trajectory(motion(arm, 1), machine=tmp_path / "arm.urdf").html()
    assert facts(page)["states"] == "1" and facts(page)["duration"] == "0 s"
    assert pictures(page) == 2 and page.count("<iframe srcdoc=") == 1 and needs_no_network(page)
    assert remarks(page) == []


def test_a_motion_that_diverged_is_shown_up_to_there(arm, still):
    q = np.zeros((5, 2))
    q[3:, 1] = np.nan
    run = Trajectory(arm, np.linspace(0, 0.5, 5), q, np.zeros((5, 2)), np.zeros((5, 2)), result="diverged at 0.375 s")
    with pytest.warns(UserWarning):
        page = reports.report_trajectory(run).html()
    assert remarks(page)[:2] == [
        ("bad", "diverged at 0.375 s"),
        ("bad", "From t = 0.375 s on the motion is not finite: of 5 states 3 are shown."),
    ]
    assert rows(page)["elbow (rad)"][:2] == ["0", "0"] and pictures(page) == 2
    assert facts(page)["method"] == "–" and facts(page)["step"] == "–"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1e200])
def test_the_finite_part_ends_before_the_first_large_number(arm, value):
    """In configurations as in velocities; the bound itself is too large."""
    for name in ("q", "v"):
        numbers = np.zeros((5, 2))
        numbers[3, 1] = value
        assert len(replays.finite_part(motion(arm, **{name: numbers}), 1e100)) == 3
        assert len(replays.finite_part(motion(arm, **{name: numbers}))) == (5 if value == -1e200 else 3)
    assert len(replays.finite_part(motion(arm), 2.0)) == 0 and len(replays.finite_part(motion(arm), 2.1)) == 5


def test_a_motion_without_a_finite_state(arm):
    """The page says so and has nothing to show."""
    page = reports.report_trajectory(motion(arm, q=np.full((5, 2), np.nan))).html()
    assert headings(page) == ["Summary"] and pictures(page) == 0
    assert remarks(page) == [("bad", "From t = 0 s on the motion is not finite: of 5 states 0 are shown.")]


def test_motions_that_are_refused(arm):
    with pytest.raises(ValueError, match="trajectory: expected at least one state, got none"):
        reports.report_trajectory(motion(arm)[:0])
    backwards = motion(arm)
    backwards = Trajectory(arm, backwards.time[::-1], backwards.q, backwards.v, backwards.tau)
    with pytest.raises(ValueError, match="expected finite times that increase"):
        reports.report_trajectory(backwards)


def test_drift_of_the_energy_in_words(arm):
    """Of a motion by hand: the kinetic energy of one that stands is zero, forces and dampers are named."""
    flat = arm.replace(gravity=jnp.zeros(3))
    zero = np.zeros((5, 2))
    assert energy_drift(motion(flat, v=zero, tau=zero)) == "none: nothing moved"
    even = motion(flat, q=zero, tau=zero)
    assert energy_drift(even) == f"0 of the largest kinetic energy, {even.kinetic_energy[0]:.4g} J"
    damped = motion(flat.replace(damping=jnp.ones(2)), q=zero)
    assert energy_drift(damped).endswith(" J; the joint forces and dampers change it too")
    assert energy_drift(motion(arm, v=np.full((5, 2), 1e200))) == "the energy is too large for floats"


def test_long_motions_are_played_faster(arm, monkeypatch):
    """Ten minutes take one; a motion of half a second is played as it is."""
    asked = []
    monkeypatch.setattr(replays, "to_html", lambda *args, **given: asked.append(given["speed"]) or "scene")
    page = reports.Page("title")
    short = motion(arm)
    replays.add_replay(page, short, "Swing", None)
    long = Trajectory(arm, 1200 * short.time, short.q, short.v, short.tau)
    replays.add_replay(page, long, "Swing", None)
    assert asked == [1.0, 10.0]
    assert "Replay of swing; drag" in page.html() and "Replay of swing, 10 times faster than real time;" in page.html()


def test_shapes_come_from_a_file_that_fits(arm, tmp_path):
    """Other machines, files that are gone and files without shapes give rods; a broken one is a warning."""
    file = tmp_path / "arm.urdf"
    assert replays.machine_shapes(None, arm) is None and replays.machine_shapes(file, arm) is None
    file.write_text(ARM)
    assert list(replays.machine_shapes(file, arm)) == ["fore"]
    assert replays.machine_shapes(file, lgsim.load_urdf(lgsim.data.cart_pole())) is None
    file.write_text(ARM[: ARM.index("<visual>")] + "</link></robot>")
    assert replays.machine_shapes(file, arm) is None
    file.write_text(ARM[:100])
    with pytest.warns(UserWarning, match="rods instead of the visual shapes: .*arm.urdf"):
        assert replays.machine_shapes(file, arm) is None


def test_without_matplotlib_the_extra_is_named(arm, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r"a report needs the package matplotlib, .*'lgsim\[plot\]'"):
        reports.report_trajectory(motion(arm))
