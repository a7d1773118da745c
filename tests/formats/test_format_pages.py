"""docs/file_elements.md is what the readers do, and nothing that acts in a file is passed over in silence."""

import pytest

from tests import format_pages as made

SILENT = {
    "URDF": {
        ("robot", "transmission"): {"name", "type"},
        ("transmission", "joint"): {"<hardwareInterface>"},
        ("transmission", "actuator"): {"<hardwareInterface>", "<motorTorqueConstant>"},
    },
    "SDF": {("geometry", "plane"): {"<size>"}},
}
"""What readers need not know: words of drivers, a type that is an element too, and how large a plane is drawn."""


@pytest.mark.usefixtures("without_import_hook")
def test_tables_are_those_of_the_readers():
    page = made.PAGE.read_text(encoding="utf-8")
    other = made.VERSION not in page and made.mujoco.__version__[0] != "4"  # a lane with an older MuJoCo
    assert made.drawn(page, skip_mujoco=other) == page, "python -m tests.format_pages draws them again"


@pytest.mark.skipif(made.mujoco.__version__[0] != "4", reason="of MuJoCo 4's schema")
def test_every_attribute_of_mujoco_is_in_the_table():
    assert made.mjcf_elements.unmapped() == []


@pytest.mark.skipif(made.mujoco.__version__[0] != "4", reason="of MuJoCo 4's schema")
@pytest.mark.usefixtures("without_import_hook")  # a watched model is none of MuJoCo's
def test_what_readers_look_at_is_seen(monkeypatch):
    """A reader that no longer states the plasticity of tendons changes the table."""
    seen = made.mjcf_elements.watched(made.mjcf_elements.CALLS[""])
    assert "opt.gravity" in seen[0] and "tendon_springyield" in seen[1] and "key_qpos" not in seen[0] | seen[1]
    monkeypatch.setattr(made.mjcf_elements.reader, "unread_of_tendon", lambda *_: [])
    assert "tendon_springyield" not in made.mjcf_elements.watched(made.mjcf_elements.CALLS[""])[1]


@pytest.mark.parametrize("own", made.FORMATS, ids=lambda own: own.name)
def test_nothing_is_silent(own):
    unread = {at: set(row.unread) for at, row in made.rows(own).items() if row.unread}
    assert unread == SILENT[own.name]


def test_a_silent_reader_is_seen(monkeypatch):
    """A reader that reports nothing is silent about all that it does not ask for."""
    monkeypatch.setattr(made.Element, "unread", lambda self, quiet=frozenset(): iter(()))
    assert set(made.rows(made.FORMATS[0])["joint", "limit"].unread) == {"acceleration"}
