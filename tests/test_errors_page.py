"""docs/errors.md names every public result code and class of errors, and nothing else."""

import re

from tests import errors_page as made

TEXT = made.PAGE.read_text(encoding="utf-8")


def test_codes_are_those_of_the_library():
    assert made.drawn(TEXT) == TEXT, "python -m tests.errors_page draws them anew"
    assert len(made.codes()) >= 6 and "successful" in made.codes()["lgsim.RESULTS"]


def test_every_class_has_a_row():
    section = TEXT[TEXT.index("## Classes of errors") :]
    assert set(re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE)) == set(made.errors())


def test_what_is_said_of_the_classes_holds():
    others = {path for path, value in made.errors().items() if not issubclass(value, ValueError | TypeError | Warning)}
    assert others == {"lgsim.programs.NotAProgram"}
