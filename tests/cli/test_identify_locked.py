"""``lgsim identify --lock`` and ``--loops``: where joints are locked, what is refused, what is written."""

import numpy as np
import pytest

pytest.importorskip("scipy")

from lgsim.formats import read_urdf
from tests.cli.machines import lgsim as command
from tests.cli.machines import refused
from tests.cli.test_identify import DAMPING, FRICTION, torques, write
from tests.cli.test_loop_machines import ARMS, LOOPS

HELD = 0.5


def record(path, elbow=HELD, noise=1e-4, column=True):
    """The arm whose elbow is held, in closed form, with the shoulder's torque."""
    time, rng = 0.01 * np.arange(300), np.random.default_rng(0)
    rate, size = np.array([1.7, 4.1]), np.array([1.2, 0.3])
    angle = time[:, None] * rate
    x = [np.sum(size * f, axis=1) for f in (np.sin(angle), rate * np.cos(angle), -(rate**2) * np.sin(angle))]
    q, v, a = (np.stack([one, np.full(len(time), held)], axis=1) for one, held in zip(x, (HELD, 0, 0), strict=True))
    tau = torques(q, v, a)[:, 0] + 0.02 * rng.normal(size=len(time))
    columns = {"time": time, "q shoulder": q[:, 0] + 1e-5 * rng.normal(size=len(time)), "tau shoulder": tau}
    if column:
        columns["q elbow"] = elbow + noise * rng.normal(size=len(time))
    return write(path, columns)


@pytest.mark.parametrize(
    ("given", "options", "shown"),
    [
        ("elbow", {}, "elbow 0.5"),
        ("elbow=0.25", {}, "elbow 0.25"),
        ("elbow", {"column": False}, "elbow 0"),
        ("elbow=-1", {"column": False}, "elbow -1"),
    ],
)
def test_where_a_joint_is_locked(files, tmp_path, given, options, shown):
    """At the given position, else where it stands in the record, else at the neutral position."""
    path = record(tmp_path / "run.csv", noise=0.0, **options)
    result = command("identify", files / "arm.urdf", path, "--lock", given, "--check")
    assert result.exit_code == 0, result.output
    assert f"1 joint locked: {shown}\n" in result.stderr


def test_what_cannot_be_locked(files, tmp_path):
    path = record(tmp_path / "run.csv", noise=0.1)
    given = ("identify", files / "arm.urdf", path, "--check", "--lock")
    assert "run.csv: joint 'elbow': expected a joint that stands, got one that moves by 0.4" in refused(*given, "elbow")
    assert "--lock: expected names of joints, got 'elbo'; did you mean 'elbow'?" in refused(*given, "elbo")
    assert "--lock: elbow: expected numbers, got 'x'" in refused(*given, "elbow=x")
    assert "--lock: " in refused(*given, "elbow=0,shoulder=0")
    still, other = record(tmp_path / "still.csv"), record(tmp_path / "other.csv", elbow=0.7)
    message = refused("identify", files / "arm.urdf", still, other, "--check", "--lock", "elbow")
    assert "other.csv: joint 'elbow': expected a joint that stands" in message


@pytest.mark.slow
def test_a_fit_of_a_locked_arm(files, tmp_path):
    """Friction and damping within four deviations, and a URDF file whose elbow is fixed at half a radian."""
    result = command(
        "identify", files / "arm.urdf", record(tmp_path / "run.csv"), "--lock", "elbow", "--fit",
        "bodies,friction,damping", "--out", tmp_path / "fit.npz", "--write", tmp_path / "new.urdf",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    with np.load(tmp_path / "fit.npz") as file:
        found = {n: (v, d) for n, v, d in zip(file["names"], file["values"], file["deviations"], strict=True)}
    for name, true in (("damping of shoulder, N m s/rad", DAMPING[0]), ("friction of shoulder, N m", FRICTION[0])):
        value, deviation = found[name]
        assert abs(value - true) < 4 * deviation < 0.1
    model, _ = read_urdf(tmp_path / "new.urdf")
    assert model.joint_names == ("shoulder",)
    tip = np.asarray(model.frames[model.topology.frame_names.index("tip")])
    np.testing.assert_allclose(tip[:3, 3], [0.3 * np.sin(HELD), 0, 0.4 + 0.3 * np.cos(HELD)], atol=1e-5)


def test_a_file_of_loops(tmp_path):
    """The positions of both arms that the rod joins; a wrong file of loops is named with its line."""
    (tmp_path / "arms.urdf").write_text(ARMS)
    (tmp_path / "loops.toml").write_text(LOOPS)
    time = 0.01 * np.arange(200)
    angle = 0.3 * np.sin(3 * time)
    path = write(tmp_path / "run.csv", {"time": time, "q ja": angle, "q jb": angle, "tau ja": angle, "tau jb": angle})
    given = ("identify", tmp_path / "arms.urdf", path, "--check", "--force", "--loops", tmp_path / "loops.toml")
    result = command(*given)
    assert result.exit_code == 0, result.output
    (tmp_path / "loops.toml").write_text(LOOPS.replace('"b"', '"c"'))
    assert "loops.toml:6: " in refused(*given)
