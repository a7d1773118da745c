"""A folder with files of machines, beside which scenarios are written."""

import pytest

from tests.scenarios import machines


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with ``arm.urdf``, ``ball.urdf`` and ``slider.xml``."""
    folder = tmp_path_factory.mktemp("scenarios")
    for name in ("ARM.urdf", "BALL.urdf", "SLIDER.xml"):
        (folder / name.lower()).write_text(getattr(machines, name.partition(".")[0]))
    return folder


@pytest.fixture
def write(folder):
    """A function that writes a TOML file beside the machines and returns its path."""

    def write(text, name="scenario.toml"):
        (folder / name).write_text(text)
        return folder / name

    return write
