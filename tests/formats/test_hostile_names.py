"""Remarks and errors of readers are one line each, whatever a file names."""

import pytest

from lgsim.formats import FileError
from lgsim.formats.report import Dropped, FileWarning, Finding, Report
from lgsim.support.messages import listed, one_line
from lgsim.support.scenario_error import ScenarioError
from lgsim.support.verdict import Outcome, Verdict
from tests.hostile_names import HOSTILE, faults


def report(name):
    """Remarks of all kinds with a name."""
    finding = Finding(3, f"link {name}", f"is {name}")
    return Report(f"f{name}", (), (finding,), (finding,), (finding,), (finding,), (Dropped(1, name, name), finding))


@pytest.mark.parametrize("name", HOSTILE)
def test_texts_with_a_name(name):
    made, plain = report(name), report("plain")
    assert str(made).count("\n") == str(plain).count("\n")
    texts = [str(made), *made.lines, made.dropped, *map(str, made)]
    texts += map(str, (FileError(f"f{name}", 1, name), FileError(f"f{name}", None, name), FileWarning(f"f{name}")))
    texts += [str(ScenarioError(f"f{name}", 2, name, name)), one_line(ValueError(f"f{name}")), listed([f"f{name}"])]
    texts += [str(Verdict(Outcome.FAILED, f"f{name}", remarks=(name,)))]
    for text in texts:
        assert not faults(text)
    assert not any("\n" in text for text in texts[1:])
