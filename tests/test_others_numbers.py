"""lgsim finds what others published, and the page of these values shows what is computed."""

import pytest

from tests import others_numbers
from tests.others_numbers import GROUPS, PAGE, Group

CASES = [
    pytest.param(group, marks=pytest.mark.slow if group.slow else (), id=f"{i} {group.name}")
    for i, group in enumerate(GROUPS)
]


def page_row(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.repeats
@pytest.mark.parametrize("group", CASES)
def test_values_are_the_published_ones_and_the_page_shows_them(group):
    found = group.compute()
    lines = others_numbers.sections()[group.title].splitlines()
    assert f"Source: {group.source}. They must agree" in lines[2]
    rows = [page_row(line) for line in lines if line.startswith("|")][2:]
    assert len(rows) == len(group.values) == len(found)
    for (what, digits), number, row in zip(group.values, found, rows, strict=True):
        assert group.holds(digits, number), (what, digits, number)
        assert row[:2] == [what, digits] and row[2] == group.shown(digits, number), "python -m tests.others_numbers"
        # round-off is another on another machine
        assert abs(float(number) / float(digits) - 1) <= 10 * float(row[3].removeprefix("< ")), (what, row)


def test_there_are_enough_of_them_and_the_page_has_no_other():
    assert sum(len(group.values) for group in GROUPS) >= 20
    assert list(others_numbers.sections()) == [group.title for group in GROUPS]


@pytest.mark.parametrize(
    ("within", "digits", "wrong"), [(None, "1.5120E-3", 1.51206e-3), (1e-13, "-6.03692307692308", -6.036923076924)]
)
def test_another_number_is_found(within, digits, wrong):
    group = Group("A title", "a source", (("x", digits),), lambda: [wrong], within)
    assert group.holds(digits, float(digits)) and not group.holds(digits, wrong)


def test_a_page_with_another_number_is_found(tmp_path, monkeypatch):
    other = tmp_path / "page.md"
    other.write_text(PAGE.read_text(encoding="utf-8").replace("-4.905 | -4.905", "-4.905 | -4.906"), encoding="utf-8")
    monkeypatch.setattr(others_numbers, "PAGE", other)
    with pytest.raises(AssertionError, match=r"python -m tests.others_numbers"):
        test_values_are_the_published_ones_and_the_page_shows_them(GROUPS[0])
