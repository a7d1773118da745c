"""No reader ends in an error of another kind than its own, or takes long, whatever a file holds.

`python -m tests.fuzz_readers --count 20000` runs more variants than these, each reader in a process of its own.
"""

import pytest

pytest.importorskip("mcap")

from tests import fuzz_readers, valid_files
from tests.file_variants import mutate

FEW, MANY = 20, 500


def shown(found):
    return "\n".join(f"{fault.reader} {fault.number}: {fault.kind}: {fault.text}" for fault in found)


@pytest.mark.repeats(
    "fit", "recording npz", "table csv", "map", "scenario", "study", "urdf", "sdf", "mjcf", "stl", "checkpoint", "store"
)
@pytest.mark.parametrize("name", [name for name in valid_files.READERS if valid_files.COSTLY.get(name, FEW)])
def test_variants(name, tmp_path):
    found = fuzz_readers.faults(name, range(valid_files.COSTLY.get(name, FEW)), tmp_path)
    assert not found, shown(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", valid_files.READERS)
def test_many_variants(name, tmp_path):
    found = fuzz_readers.faults(name, range(MANY), tmp_path)
    assert not found, shown(found)


FOUND = [("mcap zstd", 50188), ("checkpoint", 346), ("stl", 60398), ("loops", 60175)]


@pytest.mark.parametrize(("name", "number"), FOUND)
def test_variants_that_only_many_have_found(name, number, tmp_path):
    """A record within the head of a damaged chunk; a checkpoint's member that is no array; a mesh of points that are
    almost a line; JSON in a TOML file."""
    found = fuzz_readers.faults(name, range(number, number + 1), tmp_path)
    assert not found, shown(found)


def test_a_variant_is_the_same_in_every_run():
    content = valid_files.URDF.encode()
    assert mutate("x.urdf", content, "a 1") == mutate("x.urdf", content, "a 1") != content
    assert len({mutate("x.urdf", content, f"a {i}") for i in range(50)}) > 40


@pytest.mark.parametrize(
    ("error", "own"),
    [
        (lambda at: KeyError("method"), False),
        (lambda at: RecursionError(f"{at}: deep"), False),
        (lambda at: UnicodeDecodeError("utf-8", b"", 0, 1, "x"), False),
        (lambda at: ValueError("no file in front"), False),
        (lambda at: ValueError(f"{at}: two\nlines"), False),
        (lambda at: ValueError(f"{at}/x.npz: expected this, got that"), True),
        (lambda at: FileNotFoundError(2, "no such file", f"{at}/x.npz"), True),
        (lambda at: OSError(36, "File name too long", "nnn"), False),
    ],
)
def test_what_is_an_error_of_a_reader(error, own, tmp_path):
    """The judge of the fuzz, by errors made for it."""

    def read(folder):
        raise error(folder)

    reader = valid_files.Reader({"x.csv": b"a,b\n1,2\n"}, ("x.csv",), read)
    found = fuzz_readers.attempt("made", reader, 0, tmp_path / "x")
    assert (found is None) == own


def test_a_slow_reader_is_a_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz_readers, "SECONDS", 1e-9)
    reader = valid_files.Reader({"x.csv": b"a,b\n1,2\n"}, ("x.csv",), lambda folder: sum(range(1000)))
    assert fuzz_readers.attempt("made", reader, 0, tmp_path / "x").kind == "slow"
