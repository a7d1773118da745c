"""One simulation for all tests of the command, and the files that it starts from."""

from importlib.util import find_spec

import pytest

from tests.cli import machines


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder with machines."""
    folder = tmp_path_factory.mktemp("machines")
    for name in ("ARM.urdf", "BALL.urdf", "SLIDER.xml", "LIGHT.urdf"):
        (folder / name.lower()).write_text(getattr(machines, name.partition(".")[0]))
    return folder


@pytest.fixture(scope="session")
def simulated(files, tmp_path_factory):
    """(result of the command, folder with ``run.npz`` and its pictures)."""
    folder = tmp_path_factory.mktemp("runs")
    result = machines.lgsim(
        "simulate", files / "arm.urdf", "--q", "elbow=0.3,shoulder=-0.5", "--torque", "0.7,-0.2", "--gravity", "0,0,-5",
        "--duration", 0.004, "--dt", 0.001, "--save-every", 2, "--out", folder / "run.npz", "--plot",
        *(["--html"] if find_spec("viser") else []),
    )  # fmt: skip
    return result, folder


@pytest.fixture(scope="session")
def run(simulated):
    """The path of the run."""
    return simulated[1] / "run.npz"
