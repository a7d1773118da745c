"""Public names and how they are called change only with a line in the CHANGELOG."""

from functools import partial

import jax
import pytest

import lgsim
from tests import public_record as record

RECORDED = record.RECORD.read_text(encoding="utf-8").splitlines()


def test_public_names_are_the_recorded_ones():
    found = record.changed(RECORDED, record.lines())
    assert not found, "changed: say so in CHANGELOG.md under Unreleased, then `make public-names`\n" + "\n".join(found)


def test_every_name_of_the_front_door_is_recorded():
    recorded = {path for line in RECORDED for path in record.changed([line], [])}
    assert {f"lgsim.{name}" for name in lgsim.__all__} <= recorded
    assert len(set(RECORDED)) == len(RECORDED)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("lgsim.forward_dynamics(model, q, v, tau, wrenches=0.0)", "lgsim.forward_dynamics"),  # a default
        ("lgsim.Model.retract(q, dv, /)", "lgsim.Model.retract"),  # a kind
        ("lgsim.Model.dtype", "lgsim.Model.dtype"),  # no longer a property
        ("lgsim.forwad_dynamics(model)", "lgsim.forwad_dynamics"),  # a name
    ],
)
def test_a_change_is_found_and_wants_a_line(line, path):
    others = [each for each in RECORDED if record.changed([each], []) != [path]]
    assert record.changed(RECORDED, [*others, line]) == [path]
    told = f"# Changelog\n\n## [Unreleased]\n\n- `{path.rpartition('.')[2]}` is another.\n\n## [1.0.0]\n"
    silent = f"# Changelog\n\n## [Unreleased]\n\n## [1.0.0]\n\n- `{path.rpartition('.')[2]}` is another.\n"
    assert record.untold([path], told) == [] and record.untold([path], silent) == [path]


def test_the_record_is_not_drawn_without_a_line(tmp_path, monkeypatch):
    other = tmp_path / "names.txt"
    other.write_text("lgsim.long_gone_name()\n")
    monkeypatch.setattr(record, "RECORD", other)
    monkeypatch.setattr(record, "lines", lambda: [])
    with pytest.raises(SystemExit, match=r"CHANGELOG.md does not say so[^$]*lgsim.long_gone_name"):
        record.draw()
    assert other.read_text() == "lgsim.long_gone_name()\n"


def test_arguments_are_written_as_they_are_given():
    def all_kinds(a, /, b, c=1.5, *, d="x", e=(1, 2), **f): ...

    assert record._signature(all_kinds) == "(a, /, b, c=1.5, *, d='x', e=..., **f)"
    assert record._signature(jax.jit(all_kinds)) == "(a, /, b, c=1.5, *, d='x', e=..., **f)"
    assert record._signature(partial(all_kinds, 0)) == "(b, c=1.5, *, d='x', e=..., **f)"
    assert record._signature(lambda self, *a, b: None, method=True) == "(*a, b)"
