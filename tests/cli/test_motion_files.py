"""``lgsim simulate file.toml``: one motion of the tables that studies have."""

import jax.numpy as jnp
import numpy as np
import pytest

from lgsim import data, load_urdf, rollout
from lgsim.scenarios import ScenarioError
from lgsim.scenarios.study import load_motion
from lgsim.simulation import Trajectory, controls
from tests.cli.machines import lgsim, refused

SCENARIO = """
[machine]
file = "{file}"
[start]
q = {{ elbow = 0.3 }}
[time]
dt = 0.01
duration = 0.2
method = "MK4"
save_every = 2
[control]
{control}
"""
PD = 'law = "pd"\nstiffness = { elbow = 5.0 }\ndamping = 0.5'


def written(folder, files, control, name="motion.toml"):
    path = folder / name
    path.write_text(SCENARIO.format(file=files / "arm.urdf", control=control))
    return path


@pytest.mark.slow
def test_a_law_drives_the_machine(files, tmp_path):
    out = tmp_path / "run.npz"
    result = lgsim("simulate", written(tmp_path, files, PD), "--out", out, "--no-step-check")
    assert result.exit_code == 0, result.output
    run = Trajectory.load(out)
    model = load_urdf(files / "arm.urdf")
    start = model.neutral().at[model.q_slices["elbow"]].set(0.3)
    stiffness = jnp.zeros(2).at[model.v_slices["elbow"]].set(5.0)
    law = controls.PD(start, stiffness, jnp.full(2, 0.5))
    expected = rollout(model, start, jnp.zeros(2), dt=0.01, steps=20, control=law, save_every=2)
    np.testing.assert_allclose(run.q, expected.q, atol=1e-12)
    assert (run.method, run.dt, len(run)) == ("MK4", 0.01, 11)


def test_forces_of_a_file(files, tmp_path):
    """Rows between which forces are straight lines, in any order of columns, with the units that lgsim writes."""
    (tmp_path / "tau.csv").write_text("tau elbow [N m],time [s]\n0,0.0\n1,0.1\n-1,0.15\n")
    motion = load_motion(written(tmp_path, files, 'torques = "tau.csv"'))
    model, torques = motion.machine.model, motion.rollout.torques
    assert torques.shape == (21, 2) and not np.any(np.delete(torques, model.v_slices["elbow"], axis=1))
    at = 0.01 * np.arange(21)
    found = torques[:, model.v_slices["elbow"]][:, 0]
    np.testing.assert_allclose(found, np.interp(at, [0, 0.1, 0.15], [0, 1, -1]), atol=1e-12)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("time,elbo\n0,1\n", "expected time and names of joints, got 'elbo'; did you mean 'elbow'?"),
        ("elbow\n1\n", "expected a column 'time' of increasing times"),
        ("time,elbow\n1,0\n0,0\n", "expected a column 'time' of increasing times"),
        ("time,elbow\n0,nan\n", "expected a header and rows of as many finite numbers"),
        ("time,elbow\n0\n", "expected a header and rows of"),
        ("time,elbow\n0,a\n", "expected a header and rows of the same length"),
        ("", "expected a header"),
        (None, "the file cannot be read: No such file"),
    ],
)
def test_faults_of_such_a_file(files, tmp_path, content, message):
    if content is not None:
        (tmp_path / "tau.csv").write_text(content)
    with pytest.raises(ScenarioError, match=r"motion.toml:12: control.torques: .*tau\.csv: ") as error:
        load_motion(written(tmp_path, files, 'torques = "tau.csv"'))
    assert message in str(error.value)


def test_rows_between_the_steps(files, tmp_path):
    """A pulse of 6 ms in a file of 1 kHz, between two steps, is refused; a slow sine is what its rows say."""
    t = 0.001 * np.arange(201)
    pulse = np.where((t > 0.0415) & (t < 0.0485), 10.0, 0.0)
    rows = "".join(f"{a:.3f},{b}\n" for a, b in zip(t, pulse, strict=True))
    (tmp_path / "tau.csv").write_text(f"time,elbow\n{rows}")
    path = written(tmp_path, files, 'torques = "tau.csv"')
    with pytest.raises(
        ScenarioError, match=r"elbow at 0\.04\d s is 10 from the line .* use a dt of 0\.001 s, the small"
    ):
        load_motion(path)
    path.write_text(path.read_text().replace("dt = 0.01", "dt = 0.001"))
    np.testing.assert_allclose(np.asarray(load_motion(path).rollout.torques).max(axis=1), pulse, atol=1e-12)
    rows = "".join(f"{a:.3f},{np.sin(2 * np.pi * a)}\n" for a in t)
    (tmp_path / "tau.csv").write_text(f"time,elbow\n{rows}")
    assert load_motion(written(tmp_path, files, 'torques = "tau.csv"')).rollout.torques.shape == (21, 2)


def test_words_that_the_file_says_itself(files, tmp_path):
    path = written(tmp_path, files, PD)
    for words in (["--dt", "0.1"], ["--q", "elbow=1"], ["--method", "MK2"], ["--stops"]):
        assert refused("simulate", path, *words).startswith(
            f"{words[0]}: not allowed with {path}, which defines the simulation"
        )
    path.write_text(path.read_text().replace('"MK4"', '"MK44"'))
    assert "did you mean 'MK4'" in refused("simulate", path)
    assert "torque, constant joint forces, or torques, a file" in refused(
        "simulate", written(tmp_path, files, 'torque = { elbow = 1.0 }\ntorques = "tau.csv"')
    )


def test_studies_can_be_tried_once():
    for name in ("arm", "hover"):
        motion = load_motion(data.study(name))
        assert motion.method == {"arm": "auto", "hover": "MK4"}[name] and motion.rollout.control is not None
