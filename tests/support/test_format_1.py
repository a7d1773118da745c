"""Files that lgsim wrote before its classes had their names of today: they are read, and what they keep goes on.

`tests/data/format_1` holds a trajectory, an interrupted solution, an interrupted fit and an interrupted study, with the
fingerprints that inputs of checkpoints had. A class that is renamed gets a line in
`lgsim/support/checkpoint_format_1.py`.
"""

import ast
import json
import shutil
from pathlib import Path

import chex
import jax.numpy as jnp
import numpy as np
import optax
import pyarrow.parquet
import pytest

import lgsim
from lgsim import identify
from lgsim import montecarlo as mc
from lgsim.multibody import joints
from lgsim.optimize import (
    ILQR,
    AugmentedLagrangian,
    CheckpointError,
    ControlEffort,
    DirectShooting,
    MultibodyDynamics,
    Problem,
    StateDistance,
    solve,
)
from lgsim.simulation import Trajectory, simulate
from lgsim.support.checkpoint_format_1 import NAMES, fingerprint_1
from lgsim.xla import batching
from tests.montecarlo import studies

FILES = Path(__file__).parents[1] / "data" / "format_1"
PACKAGE = Path(lgsim.__file__).parent
SOLVER = ILQR(max_iterations=30)

INPUTS = {
    "AugmentedLagrangian()": AugmentedLagrangian(),
    "DirectShooting(adam)": DirectShooting(optax.adam(0.1)),
    "JointParameter": identify.JointParameter("friction"),
    "CentersOfMass": identify.CentersOfMass(),
    "PositionSensor": identify.PositionSensor(),
    "VelocitySensor": identify.VelocitySensor(),
    "ImuSensor": identify.ImuSensor("tool"),
    "FramePoseSensor": identify.FramePoseSensor("tool"),
    "SimulationFit": identify.SimulationFit(window_steps=20),
    "TorqueFit": identify.TorqueFit(max_iterations=100, lags=0),
    "TorqueFit(Huber)": identify.TorqueFit(loss=identify.Huber(), max_iterations=100, lags=0),
    "Stribeck": identify.Stribeck(),
    "SignalScale": identify.SignalScale(),
    "TorqueOffset": identify.TorqueOffset(),
    "Placements": identify.Placements(),
    "GravityDirection": identify.GravityDirection(),
    "StandardParameters": identify.StandardParameters(),
    "SensorBias": identify.SensorBias("q"),
    "SensorDelay": identify.SensorDelay("q"),
    "InputDelay": identify.InputDelay(),
    **lgsim.METHODS,
}


def arm(**numbers):
    """Two links in a vertical plane, whose numbers are the same in floats of any machine."""
    builder = lgsim.ModelBuilder()
    for name, parent, joint, mass in (("upper", "world", "shoulder", 2.0), ("fore", "upper", "elbow", 1.0)):
        builder.add_body(name, parent, joints.Revolute(), joint_name=joint, axis=[0, 1, 0], mass=mass,
                         center=[0, 0, 0.25], inertia=mass / 16 * np.eye(3))  # fmt: skip
    return builder.build().replace(**numbers)


def problem(target=0.75):
    dynamics = MultibodyDynamics(arm(damping=jnp.full(2, 0.125)), 0.0625)
    goal = jnp.array([target, -0.5, 0, 0])
    return Problem(
        dynamics,
        jnp.zeros(4),
        horizon=8,
        running=ControlEffort(0.125),
        terminal=StateDistance(dynamics.action, goal, 64.0),
    )


@pytest.fixture
def file(tmp_path):
    """A copy of a file of old, to go on with."""
    return lambda name: Path(shutil.copy(FILES / name, tmp_path))


@pytest.mark.parametrize("name", json.loads((FILES / "marks.json").read_text()))
def test_fingerprints_are_those_of_the_format(name):
    assert fingerprint_1(INPUTS[name]) == json.loads((FILES / "marks.json").read_text())[name]


@pytest.mark.slow
def test_the_names_of_today_are_names_of_classes():
    found = {
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    }
    assert set(NAMES) <= found and not set(NAMES.values()) & set(NAMES)


def test_a_trajectory(file):
    motion = Trajectory.load(file("trajectory.npz"))
    assert (motion.method, motion.dt, motion.result, motion.version) == ("MK4", 0.01, "", "0.1.0")
    again = simulate(motion.model, motion.q[0], motion.v[0], duration=0.1, dt=0.01)
    one, other = ((each.time, each.q, each.v, each.tau) for each in (motion, again))
    chex.assert_trees_all_close(one, other, rtol=1e-7, atol=1e-12)


@pytest.mark.slow
def test_a_solution_goes_on(file):
    """Interrupted after two iterations, it comes to what is found without a break; another problem is refused."""
    rows, more = [], []
    whole = solve(problem(), solver=SOLVER, progress=rows.append)
    path = file("optimize.npz")
    with pytest.raises(CheckpointError, match="this checkpoint is of another problem, guess or solver"):
        solve(problem(0.5), solver=SOLVER, checkpoint=path)
    found = solve(problem(), solver=SOLVER, progress=more.append, checkpoint=path)
    assert [row.number for row in more] == [row.number for row in rows][2:]
    one, other = ((each.us, each.ys, each.cost) for each in (found, whole))
    chex.assert_trees_all_close(one, other, rtol=1e-9, atol=1e-9)
    # what it leaves is a file of today
    with np.load(path) as kept:
        assert kept["about"][0] == "lgsim checkpoint 2"


@pytest.mark.slow
def test_a_fit_goes_on(file):
    q, v, a = (jnp.asarray(x) for x in (np.arange(240) * 7919 % 997).reshape(3, 40, 2) / 512 - 1.0)
    samples = identify.TorqueSamples(q, v, a, jnp.asarray(np.load(FILES / "signals.npy")))
    blocks = [identify.Masses(), identify.JointParameter("damping")]
    given = (
        identify.Parameters(arm(damping=jnp.full(2, 0.0625)), blocks),
        samples,
        identify.TorqueFit(max_iterations=20, lags=0),
    )
    rows, more = [], []
    whole = identify.fit(*given, progress=rows.append)
    path = file("identify.npz")
    with pytest.raises(CheckpointError, match="this checkpoint is of another problem, record or estimator"):
        identify.fit(given[0], samples, identify.TorqueFit(max_iterations=21, lags=0), checkpoint=path)
    found = identify.fit(*given, progress=more.append, checkpoint=path)
    assert [row.number for row in more] == [row.number for row in rows][2:]
    chex.assert_trees_all_close(found.estimate, whole.estimate, rtol=1e-6, atol=1e-9)


def test_a_study_is_read_and_another_one_is_refused(tmp_path):
    """64 of 96 samples. It goes on where the traced program has the same text, which another JAX may change."""
    path = tmp_path / "store"
    shutil.copytree(FILES / "store", path)
    kept = mc.Results.open(studies.plain(96), path)
    assert not kept.finished and kept.samples == 64
    table = pyarrow.parquet.read_table(path / "chunks")
    good = table["sum"].to_numpy()[table["diverged"].to_numpy() == 0]
    m = kept.moments("sum")
    assert m.count == len(good) and m.low == good.min() and m.high == good.max()
    np.testing.assert_allclose([m.mean, m.variance], [good.mean(), good.var(ddof=1)], rtol=1e-12)
    fresh = mc.run(studies.plain(96)).column("pair")[:64]
    np.testing.assert_allclose(kept.column("pair"), fresh, rtol=1e-12)
    with pytest.raises(ValueError, match=r"store: the store is of another (study|version): it has .*, this run has "):
        mc.run(studies.plain(96, seed=4), path, resume=True)


def test_a_study_is_known_wherever_the_classes_of_its_program_are(monkeypatch):
    """The program of a motion tells of its native functions by an object of lgsim."""
    study = mc.Study(
        {"q0": mc.Normal(jnp.zeros(2), 0.1)}, mc.Rollout(arm(), dt=0.01, steps=2), {"q": lambda f: f.q[-1]}, samples=4
    )
    mark = mc.Engine(study).fingerprint
    monkeypatch.setattr(batching._Program, "__module__", "lgsim.elsewhere")
    assert mc.Engine(study).fingerprint == mark
