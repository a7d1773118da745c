"""What make test, make typed and make mutations choose."""

from types import SimpleNamespace

import pytest

from tests import conftest, mutations, typed


class Item(SimpleNamespace):
    """As much of a test's item as the choice looks at."""

    def get_closest_marker(self, name):
        return self.marks.get(name)

    def add_marker(self, mark):
        self.marks[mark.name] = mark.mark


def items(function, ids, mark):
    return [
        Item(nodeid=f"{function}[{id}]", callspec=SimpleNamespace(id=id), marks={"repeats": mark.mark}) for id in ids
    ]


@pytest.mark.parametrize(
    ("mark", "kept"),
    [
        (pytest.mark.repeats, ["a-1"]),
        (pytest.mark.repeats("b-1", "c"), ["b-1", "c"]),
        (pytest.mark.repeats("*-1"), ["a-1", "b-1"]),
    ],
    ids=["the first", "those that are named", "a pattern"],
)
def test_cases_that_repeat_a_claim_are_slow(mark, kept):
    every = items("test_x", ["a-1", "a-2", "b-1", "c"], mark)
    conftest._leave_repeats(every, all_cases=True)
    assert [item.callspec.id for item in every if "slow" not in item.marks] == kept


def test_a_case_that_is_kept_exists():
    every = items("test_x", ["a-1", "a-2"], pytest.mark.repeats("a-1", "b-*"))
    with pytest.raises(pytest.UsageError, match="test_x: the mark 'repeats' names 'b-\\*', which is no case"):
        conftest._leave_repeats(every, all_cases=True)
    conftest._leave_repeats(items("test_x", ["a-1"], pytest.mark.repeats("b")), all_cases=False)


SAMPLE = """\
def scale(x: int = 2) -> list[3]:
    if x < 3 and not x:
        return -x * 1.5
    return x is None
class Thing:
    @decorated(4)
    def size(self):
        return self.n[0] + True
"""


def test_each_operator_constant_and_comparison_is_a_mutant(tmp_path, monkeypatch):
    monkeypatch.setattr(mutations, "ROOT", tmp_path)
    (tmp_path / "sample.py").write_text(SAMPLE, encoding="utf-8")
    scale, size = mutations.mutants(tmp_path / "sample.py")
    assert {m.becomes.strip() for m in scale} == {
        "def scale(x: int = 3) -> list[3]:",
        "if x <= 3 and not x:",
        "if x < 4 and not x:",
        "if x < 3 or not x:",
        "if x < 3 and  x:",
        "return x * 1.5",
        "return -x / 1.5",
        "return -x * 2.5",
        "return x is not None",
    }
    assert {m.becomes.strip() for m in size} == {"return self.n[1] + True", "return self.n[0] - True",
                                                 "return self.n[0] + False"}  # fmt: skip
    assert size[0].function == "Thing.size"
    assert mutations.today(size[1]) == size[1]
    (tmp_path / "sample.py").write_text(SAMPLE.replace("self.n[0]", "self.m[0]"), encoding="utf-8")
    assert mutations.today(size[1]) is None


def test_public_functions_that_nothing_calls_are_named():
    never = typed.uncalled([])
    assert "lgsim.dynamics.forward_dynamics.forward_dynamics" in never and len(never) > 150
    assert typed.uncalled(never) == []
