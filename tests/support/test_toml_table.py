"""Files that are no TOML, and keys that hold the wrong kind of value: file, line and key of each."""

import copy
import pickle

import numpy as np
import pytest

from lgsim.scenarios import ScenarioError
from lgsim.support.toml_table import read


@pytest.fixture
def table(tmp_path):
    """A function that gives the outermost table of a text."""

    def table(text):
        (tmp_path / "a.toml").write_text(text)
        return read(tmp_path / "a.toml")

    return table


def refused(call, *arguments):
    with pytest.raises(ScenarioError) as caught:
        call(*arguments)
    return caught.value


def test_an_error_has_file_line_key_and_one_line(table, tmp_path):
    error = refused(table("[a]\n\nx = true\n").table("a").number, "x")
    assert isinstance(error, ValueError)
    assert (error.file, error.line, error.key) == (tmp_path / "a.toml", 3, "a.x")
    assert error.reason == "expected a number, got true"
    assert str(error) == f"{tmp_path / 'a.toml'}:3: a.x: expected a number, got true"
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (str(again), again.line, again.key) == (str(error), 3, "a.x")


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b"x = 1\nx = 2\n", 2, "not TOML: Cannot overwrite a value"),
        (b"[a]\n[a]\n", 2, "not TOML: Cannot declare ('a',) twice"),
        (b"x = \n", 1, "not TOML: Invalid value"),
        (b"[a\n", 1, "not TOML: Expected ']' at the end of a table declaration"),
        ("x = 'ü'".encode("latin-1"), None, "expected text in UTF-8"),
        (b"x = " + b"9" * 5000, 1, "not TOML: Exceeds the limit"),
        (b"x = " + b"[" * 5000, None, "not TOML: arrays or tables nested too deeply"),
        (b"\0", 1, "not TOML: Invalid statement"),
        # half a minute for tomllib
        (b"\n" + b"a." * 40_000 + b"a = 1", 2, "not TOML: a key of more than 100 parts"),
        (b"['a'." + b"b. " * 100 + b"b]", 1, "not TOML: a key of more than 100 parts"),
    ],
    ids=[
        "twice",
        "table twice",
        "no value",
        "no end",
        "latin-1",
        "long number",
        "deep",
        "zero byte",
        "dots",
        "table dots",
    ],
)
def test_files_that_are_no_toml(tmp_path, content, line, reason):
    (tmp_path / "a.toml").write_bytes(content)
    error = refused(read, tmp_path / "a.toml")
    assert (error.file, error.line, error.key) == (tmp_path / "a.toml", line, "")
    assert error.reason.startswith(reason), error


def test_files_that_cannot_be_read(tmp_path):
    assert str(refused(read, tmp_path)) == f"{tmp_path}: the file cannot be read: Is a directory"
    assert "the file cannot be read: No such file or directory" in str(refused(read, str(tmp_path / "none.toml")))


TEXT = """
flag = 1
whole = 2.0
low = 0
huge = 1000000000000000000000
digits = {digits}
text = 3
name = "sprng"
negative = -1
nan = nan
table = 1
tables = [1, 2]
vector = [1, "a"]
rows = [[1, 2], [3]]
bad_rows = [1]
joints = {{ elbw = 1 }}
many = {{ elbow = [1, 2] }}
list = [1]
""".format(digits="9" * 400)
SLICES = {"shoulder": slice(0, 1), "elbow": slice(1, 2)}
WRONG = {
    "flag": (("flag", "flag", False), 2, "flag", "expected true or false, got 1"),
    "whole": (("whole", "whole", 1), 3, "whole", "expected a whole number, got 2.0"),
    "low": (("whole", "low", 1), 4, "low", "expected a whole number from 1 on, got 0"),
    "huge": (("whole", "huge", 1), 5, "huge", "expected a whole number up to 2147483647, got 1000000000000000000000"),
    "digits": (("whole", "digits", 1), 6, "digits", "up to 2147483647, got a whole number of more than 60 digits"),
    "infinite": (("number", "digits"), 6, "digits", "expected a finite number, got a whole number of more than 60"),
    "text": (("text", "text"), 7, "text", "expected a string, got 3"),
    "choice": (
        ("choice", "name", ("spring", "damper"), "spring"), 8, "name",
        "expected one of spring, damper, got 'sprng'; did you mean 'spring'?",
    ),
    "negative": (("number", "negative", 0.0, 0.0), 9, "negative", "expected zero or more, got -1"),
    "nan": (("number", "nan"), 10, "nan", "expected a finite number, got nan"),
    "missing": (("needed_number", "missing"), None, "", "the key 'missing' is missing"),
    "table": (("table", "table"), 11, "table", "expected a table, got 1"),
    "tables": (("tables", "tables"), 12, "tables", "expected tables [[tables]], got [1, 2]"),
    "vector": (("vector", "vector", 2), 13, "vector[2]", "expected a number, got 'a'"),
    "lengths": (("vector", "vector", 3, 6), 13, "vector", "expected 3 or 6 numbers, got 2"),
    "rows": (("rows", "rows", 1, 2), 14, "rows[2]", "expected 2 numbers as in the rows before, got 1"),
    "bad rows": (("rows", "bad_rows", 2), 15, "bad_rows[1]", "expected a list of 2 numbers, got 1"),
    "joints": (
        ("by_joint", "joints", SLICES, np.zeros(2)), 16, "joints.elbw",
        "expected the name of a joint, got 'elbw'; did you mean 'elbow'?",
    ),
    "many": (("by_joint", "many", SLICES, np.zeros(2)), 17, "many.elbow", "expected 1 numbers, got 2"),
    "list": (("by_joint", "list", SLICES, np.zeros(2)), 18, "list", "expected 2 numbers (shoulder 1, elbow 1), got 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_kinds(table, case):
    (method, *arguments), line, key, reason = WRONG[case]
    error = refused(getattr(table(TEXT), method), *arguments)
    assert (error.line, error.key) == (line, key)
    assert reason in error.reason


def test_unknown_keys(table):
    """The nearest ones are asked for, or all are listed, of many the first twelve."""
    near = refused(table("[a]\ndampling = 1\n").table("a").only, "damping", "stiffness")
    assert (near.line, near.key, near.reason) == (2, "a.dampling", "there is no such key; did you mean 'damping'?")
    far = refused(table("x = 1\n").only, *(f"name{i}" for i in range(14)))
    assert far.reason.endswith("there are " + ", ".join(f"name{i}" for i in range(12)) + " and 2 more")


def test_values_that_are_right(table):
    read = table("a = 1\nb = [1, 2]\nc = []\n[[t]]\nx = 1\n[[t]]\n[u]\nq = { elbow = 2 }\n")
    assert read.number("a") == 1.0 and read.number("none") is None and read.number("none", 2.0) == 2.0
    np.testing.assert_array_equal(read.vector("b", 2), [1.0, 2.0])
    assert read.vector("none", 2) is None and read.rows("c", 2).shape == (0, 2)
    assert [each.number("x") for each in read.tables("t")] == [1.0, None]
    values, given = read.table("u").by_joint("q", SLICES, np.array([5.0, 6.0]))
    np.testing.assert_array_equal(values, [5.0, 2.0])
    np.testing.assert_array_equal(given, [False, True])


def test_what_the_library_refuses_is_said_of_the_key(table):
    read = table("[a]\nx = 1\n")
    with pytest.raises(ScenarioError, match=r"a\.toml:2: a\.x: wrong in two lines$") as caught:
        with read.table("a").at("x"):
            raise ValueError("wrong\n in two lines")
    # an error that has a place keeps it
    with pytest.raises(ScenarioError) as again:
        with read.at("other"):
            raise caught.value
    assert again.value is caught.value
