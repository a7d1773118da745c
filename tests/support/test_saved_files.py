"""Files of each format, as the first version wrote them: they are read with the numbers that they were given.

`python -m tests.support.test_saved_files FOLDER` writes them with the lgsim of today, for a new version of a format.
"""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as parquet
import pytest

import lgsim
from lgsim import identify
from lgsim.multibody import joints
from lgsim.simulation import Trajectory

FILES = Path(__file__).parents[1] / "data" / "saved_files"
TIME = np.arange(4) / 8
# exact in binary, so that a file holds them as they are
Q = np.stack([TIME, 1 - TIME**2], axis=1)
V = np.stack([np.ones(4), -2 * TIME], axis=1)
MASSES = (2.0, 1.25)
WEIGHTS = np.array([[1.0, 1], [0, 1], [1, 1], [1, 1]])
FORMATS = {
    "trajectory.npz": "lgsim trajectory 1",
    "trajectory.parquet": "lgsim trajectory 1",
    "recording.npz": "lgsim recording 1",
    "fit.npz": "lgsim fit 1",
}
READERS = {
    "trajectory.npz": Trajectory.load,
    "trajectory.parquet": Trajectory.load,
    "recording.npz": identify.Recording.load,
    "fit.npz": identify.load_plant,
}


def arm(masses=MASSES):
    builder = lgsim.ModelBuilder()
    for name, parent, joint, mass in (("upper", "world", "shoulder", masses[0]), ("fore", "upper", "elbow", masses[1])):
        builder.add_body(name, parent, joints.Revolute(), joint_name=joint, axis=[0, 1, 0], mass=mass,
                         center=[0, 0, 0.25], inertia=mass / 16 * np.eye(3))  # fmt: skip
    return builder.build()


def write(folder):
    """The files of today."""
    motion = Trajectory(arm(), TIME, Q, V, 2 * V, method="MK4", dt=0.125, version=lgsim.__version__)
    motion.save(folder / "trajectory.npz")
    motion.save(folder / "trajectory.parquet")
    recording = identify.Recording(
        arm(), TIME, q=Q, v=V, tau=2 * V, weights={"q": WEIGHTS}, source="a bench", history=("by hand",)
    )
    recording.save(folder / "recording.npz")
    q, v, a = (jnp.asarray(x) for x in (np.arange(240) * 7919 % 997).reshape(3, 40, 2) / 512 - 1.0)
    tau = jax.vmap(lambda *state: lgsim.inverse_dynamics(arm(), *state))(q, v, a)
    unknown = identify.Parameters(arm((1.5, 1.5)), [identify.Masses()])
    identify.fit(unknown, identify.TorqueSamples(q, v, a, tau), identify.TorqueFit(lags=0)).save(folder / "fit.npz")


def about(path):
    """The header of a file."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            return json.loads(str(file["about"]))
    return json.loads(parquet.read_metadata(path).metadata[b"lgsim"])


@pytest.mark.parametrize("name", FORMATS)
def test_the_sample_names_its_format(name):
    assert about(FILES / name)["format"] == FORMATS[name]


@pytest.mark.parametrize("name", ["trajectory.npz", "trajectory.parquet"])
def test_a_trajectory_has_its_numbers(name):
    motion = Trajectory.load(FILES / name)
    for found, given in zip((motion.time, motion.q, motion.v, motion.tau), (TIME, Q, V, 2 * V), strict=True):
        np.testing.assert_array_equal(found, given)
    assert (motion.method, motion.dt, motion.result, motion.version) == ("MK4", 0.125, "", "0.1.0")
    np.testing.assert_array_equal(motion.model.inertias[:, 0], MASSES)
    assert motion.model.joint_names == ("shoulder", "elbow")
    # both turn about one point at 1 rad/s: m (r^2 + 1/16) each, with r = 1/4
    T = 0.5 * MASSES[0] * (1 / 16 + 1 / 16) + 0.5 * MASSES[1] * (1 / 16 + 1 / 16)
    np.testing.assert_allclose(motion.kinetic_energy[0], T, rtol=1e-12)


def test_a_recording_has_its_numbers():
    recording = identify.Recording.load(FILES / "recording.npz")
    for found, given in zip(
        (recording.time, recording.q, recording.v, recording.tau), (TIME, Q, V, 2 * V), strict=True
    ):
        np.testing.assert_array_equal(found, given)
    np.testing.assert_array_equal(recording.weights["q"], WEIGHTS)
    assert recording.source == "a bench" and recording.history == ("by hand",)
    np.testing.assert_array_equal(recording.model.inertias[:, 0], MASSES)


def test_a_fit_has_the_masses_that_made_its_record():
    plant = identify.load_plant(FILES / "fit.npz")
    np.testing.assert_allclose(plant.model.inertias[:, 0], MASSES, rtol=1e-9)
    np.testing.assert_array_equal(plant.scale, np.ones(2))
    with np.load(FILES / "fit.npz") as file:
        found = dict(zip(file["names"].tolist(), file["values"].tolist(), strict=True))
    assert found.keys() == {"m of upper, kg", "m of fore, kg"}
    np.testing.assert_allclose(list(found.values()), MASSES, rtol=1e-9)


@pytest.mark.parametrize("name", FORMATS)
def test_another_version_is_refused_by_its_name(name, tmp_path):
    path, kind = tmp_path / name, FORMATS[name]
    other = {**about(FILES / name), "format": kind.replace(" 1", " 2")}
    if path.suffix == ".npz":
        with np.load(FILES / name, allow_pickle=False) as file:
            np.savez(path, **{**file, "about": np.array(json.dumps(other))})
    else:
        table = parquet.read_table(FILES / name)
        named = {**table.schema.metadata, b"lgsim": json.dumps(other).encode()}
        parquet.write_table(table.replace_schema_metadata(named), path)
    with pytest.raises(
        ValueError, match=rf"{name}: expected the format '{kind}', got '{other['format']}': read it with"
    ):
        READERS[name](path)


@pytest.mark.parametrize(("name", "other"), [("fit.npz", "recording.npz"), ("trajectory.npz", "fit.npz")])
def test_another_kind_is_refused(name, other):
    with pytest.raises(ValueError, match=rf"{other}: expected a \w+ that lgsim wrote, got something else"):
        READERS[name](FILES / other)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    write(Path(sys.argv[1]))
