"""Public names come and go only with their record."""

from tests import public_record


def test_public_names_are_the_recorded_ones():
    recorded = public_record.RECORD.read_text(encoding="utf-8").splitlines()
    changed = sorted({*recorded} ^ {*public_record.lines()})
    assert not changed, "changed: `make public-names`, and a line in CHANGELOG.md\n" + "\n".join(changed)
