"""What is asked before a simulation that takes long or much memory, and what is refused where nobody can answer."""

import numpy as np
import pytest

import lgsim
from lgsim.cli.checks import run_size
from lgsim.cli.checks.run_size import RunSize, confirm
from lgsim.cli.errors import BadInput
from lgsim.simulation import Trajectory
from tests.cli.machines import ARM, refused
from tests.cli.machines import lgsim as command


def test_a_long_simulation_needs_a_word(files, tmp_path):
    """Steps and states by hand: 1e12 steps, and as many states of time, two q, two v, two forces, three times."""
    out = tmp_path / "run.npz"
    text = refused("simulate", files / "arm.urdf", "--q", "1,1", "--duration", "1e9", "--out", out)
    assert text.startswith("--duration: 1e+12 steps take about ") and " steps/s, and the 1e+12 saved states" in text
    assert text.endswith(
        "need about 168 TB of memory; a larger --save-every saves fewer, --yes starts without confirmation"
    )
    assert any(unit in text for unit in (" days", " years"))
    assert not out.exists()


def test_memory_alone(files, tmp_path, monkeypatch):
    monkeypatch.setattr(run_size, "_memory", lambda: 1e6)
    asked = ("simulate", files / "arm.urdf", "--duration", 10, "--dt", 0.001, "--out", tmp_path / "run.npz")
    text = refused(*asked)
    assert text == "--duration: the 1e+04 saved states need about 1.68 MB of memory; a larger --save-every" \
        " saves fewer, --yes starts without confirmation"  # fmt: skip
    assert command(*asked, "--save-every", 100).exit_code == 0
    assert command(*asked, "--yes").exit_code == 0


def test_the_question(monkeypatch):
    """On a terminal it is asked; yes begins, no ends; a small simulation asks nothing."""
    asked = []
    large, small = RunSize(10**10, 1e5, 10**10, 1e12), RunSize(1000, None, 1000, 1e6)
    monkeypatch.setattr(run_size, "_can_ask", lambda: True)
    monkeypatch.setattr(run_size, "_memory", lambda: 1e9)
    monkeypatch.setattr(run_size.typer, "confirm", lambda text, err: asked.append(text) or len(asked) == 1)
    confirm(small, False)
    confirm(large, True)
    assert not asked
    confirm(large, False)
    assert asked == [
        "1e+10 steps take about 1.16 days at 100,000 steps/s, and the 1e+10 saved states need about 1 TB of"
        " memory. Start anyway?"
    ]
    with pytest.raises(BadInput, match="--duration: run canceled; a larger --save-every saves fewer"):
        confirm(large, False)
    confirm(RunSize(3 * 10**8, 1e5, 10, 1e3), False)
    with pytest.raises(BadInput, match="run canceled"):
        confirm(RunSize(4 * 10**8, 1e5, 10, 1e3), False)


def test_steps_are_timed_only_where_they_are_many():
    model = lgsim.load_urdf(text=ARM)

    def never(count, watch):
        pytest.fail("few steps were timed")

    assert run_size.run_size(model, 999_999, 1, False, never).rate is None
    assert run_size.run_size(model, 10**7, 1, True, never) == RunSize(None, None, 10**7, 3 * 10**7 * 7 * 8.0)

    def trial(count, watch):
        for done in range(0, count + 1, 512):
            watch(done, 10**6)
        return True

    found = run_size.run_size(model, 10**6, 10, False, trial)
    assert found.rate > 0 and found.states == 10**5 and found.seconds == 10**6 / found.rate
    # a motion that diverges at once takes no time
    assert run_size.run_size(model, 10**6, 1, False, lambda count, watch: False).rate is None


@pytest.mark.parametrize("seconds, text", [(0.5, "0.5 seconds"), (120.0, "2 minutes"), (86400 * 400.0, "1.1 years")])
def test_words_of_times(seconds, text):
    assert run_size._duration(seconds) == text


@pytest.mark.parametrize("count, text", [(0.0, "0 bytes"), (999.0, "999 bytes"), (1e3, "1 kB"), (5e16, "5e+04 TB")])
def test_words_of_sizes(count, text):
    assert run_size._bytes(count) == text


def test_ctrl_c_while_steps_are_timed_ends_all(files, tmp_path, monkeypatch):
    from lgsim.cli.progress import Watch

    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Watch, "__call__", pressed)
    monkeypatch.setattr(run_size, "TIMED_STEPS", 100)
    asked = ("simulate", files / "arm.urdf", "--duration", 10, "--out", tmp_path / "run.npz")
    assert refused(*asked, code=130) == "interrupted"
    assert not (tmp_path / "run.npz").exists()


def test_the_timed_steps_change_nothing(files, tmp_path, monkeypatch):
    """A run whose steps were timed first is the run without."""
    asked = ("simulate", files / "arm.urdf", "--q", "0.3,0.2", "--duration", 0.6, "--dt", 0.001)
    assert command(*asked, "--out", tmp_path / "a.npz").exit_code == 0
    monkeypatch.setattr(run_size, "TIMED_STEPS", 100)
    assert command(*asked, "--out", tmp_path / "b.npz").exit_code == 0
    np.testing.assert_array_equal(*(Trajectory.load(tmp_path / name).q for name in ("a.npz", "b.npz")))
