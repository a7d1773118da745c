"""docs/errors.md and docs/command.md: every result code, class of errors, verdict, exit status, and nothing else."""

import re

import pytest

from lgsim.support.verdict import RESOLVED, Outcome
from tests import errors_page as made

TEXT = made.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [made.PAGE, made.COMMAND], ids=lambda path: path.name)
def test_tables_are_those_of_the_library(path):
    text = path.read_text(encoding="utf-8")
    assert made.drawn(text) == text, "python -m tests.errors_page draws them anew"
    assert made.exit_table() in text


def test_there_are_codes():
    assert len(made.codes()) >= 6 and "successful" in made.codes()["lgsim.RESULTS"]


def test_every_class_has_a_row():
    section = TEXT[TEXT.index("## Classes of errors") :]
    assert set(re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE)) == set(made.errors())


def test_what_is_said_of_the_classes_holds():
    others = {path for path, value in made.errors().items() if not issubclass(value, ValueError | TypeError | Warning)}
    assert others == {"lgsim.programs.UnsupportedProgramError"}


def test_verdicts_have_one_list():
    assert made.verdict_table() in TEXT and len(Outcome) == 6
    conventions = (made.DOCS.parent / "CONVENTIONS.md").read_text(encoding="utf-8")
    assert "[verdicts](docs/errors.md)" in conventions and "exits with" not in conventions


def test_the_limit_of_the_command_page_is_that_of_the_code():
    text = " ".join(made.COMMAND.read_text(encoding="utf-8").split())
    assert f"more than {100 * RESOLVED:g} % of the motion" in text
