"""The folder of compiled programs: nobody else writes it, and what is no sound entry of its own name is ignored."""

import os
import stat
import subprocess
import sys
import threading
import warnings

import pytest

from lgsim._compile.programs import store

posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes are POSIX")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A folder that does not exist yet."""
    place = tmp_path / "above" / "programs"
    monkeypatch.setenv("LGSIM_CACHE_DIR", str(place))
    monkeypatch.setattr(store, "_refused", set(), raising=False)
    return place


def within(seconds, call):
    """What a call gives, which must not hang."""
    found = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "it hangs"
    return found[0]


@posix
@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o077])
def test_the_folder_is_the_users_only(cache, mask):
    before = os.umask(mask)
    try:
        store.write_entry("name", b"code")
    finally:
        os.umask(before)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert stat.S_IMODE((cache / "name").stat().st_mode) & 0o077 == 0
    assert store.read_entry("name") == b"code"
    assert [path.name for path in cache.iterdir()] == ["name"]


def refused(cache, why):
    """Nothing is read or written, and one warning says why and what to do."""
    before = sorted(path.name for path in cache.iterdir()) if cache.is_dir() else None
    with pytest.warns(RuntimeWarning, match=why) as told:
        assert store.read_entry("name") is None
    assert len(told) == 1 and str(cache) in str(told[0].message) and "LGSIM_CACHE_DIR" in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.write_entry("other", b"code")
        assert store.read_entry("name") is None
    assert before == (sorted(path.name for path in cache.iterdir()) if cache.is_dir() else None)


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o720, 0o1777])
def test_a_folder_that_others_may_write_is_refused(cache, mode):
    store.write_entry("name", b"code")
    cache.chmod(mode)
    refused(cache, "others have write access")


@posix
def test_a_folder_that_others_may_read_is_taken(cache):
    store.write_entry("name", b"code")
    cache.chmod(0o755)
    assert store.read_entry("name") == b"code"


@posix
def test_a_folder_of_another_user_is_refused(cache, monkeypatch):
    store.write_entry("name", b"code")
    me = os.geteuid()
    if me == 0:
        os.chown(cache, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    refused(cache, "belongs to another user")


@posix
def test_a_link_in_place_of_the_folder_is_refused(cache):
    store.write_entry("name", b"code")
    cache.rename(cache.parent / "elsewhere")
    cache.symlink_to(cache.parent / "elsewhere")
    refused(cache, "not a folder but a link")


def test_a_file_in_place_of_the_folder_is_refused(cache):
    cache.parent.mkdir()
    cache.write_bytes(b"")
    refused(cache, "not a folder but a file")


@posix
def test_an_entry_of_another_user_or_that_others_may_write_is_ignored(cache, monkeypatch):
    store.write_entry("name", b"code")
    (cache / "name").chmod(0o666)
    assert store.read_entry("name") is None
    (cache / "name").chmod(0o600)
    assert store.read_entry("name") == b"code"
    found = os.fstat

    def foreign(handle):
        values = list(found(handle))
        values[stat.ST_UID] += 1
        return os.stat_result(values)

    monkeypatch.setattr(os, "fstat", foreign)
    assert store.read_entry("name") is None


def test_any_byte_that_flips_is_noticed(cache):
    store.write_entry("name", b"some code")
    sound = (cache / "name").read_bytes()
    for place in range(len(sound)):
        for bit in (1, 128):
            (cache / "name").write_bytes(sound[:place] + bytes([sound[place] ^ bit]) + sound[place + 1 :])
            assert store.read_entry("name") is None, place
        (cache / "name").write_bytes(sound[:place])
        assert store.read_entry("name") is None, place
    (cache / "name").write_bytes(sound + b"\0")
    assert store.read_entry("name") is None
    (cache / "name").write_bytes(sound)
    assert store.read_entry("name") == b"some code"


def test_entries_that_are_swapped_or_moved_are_ignored(cache):
    """The hash is of the name too: what another one's code computes has other arguments, and ends the process."""
    for name in ("one", "two"):
        store.write_entry(name, name.encode())
    (cache / "one").rename(cache / "aside")
    (cache / "two").rename(cache / "one")
    (cache / "aside").rename(cache / "two")
    assert store.read_entry("one") is None and store.read_entry("two") is None
    store.write_entry("one", b"one")
    (cache / "three").write_bytes((cache / "one").read_bytes())
    assert store.read_entry("one") == b"one" and store.read_entry("three") is None


@posix
@pytest.mark.parametrize("kind", ["a pipe", "a link", "a folder", "a link to nothing", "a device"])
def test_what_is_no_regular_file_is_ignored_and_replaced(cache, kind, tmp_path):
    store.write_entry("name", b"code")
    entry, aside = cache / "name", tmp_path / "aside"
    entry.rename(aside)
    sound = aside.read_bytes()
    make = {
        "a pipe": lambda: os.mkfifo(entry),
        "a link": lambda: entry.symlink_to(aside),
        "a folder": entry.mkdir,
        "a link to nothing": lambda: entry.symlink_to(tmp_path / "nothing"),
        "a device": lambda: entry.symlink_to("/dev/zero"),
    }
    make[kind]()
    assert within(5, lambda: (store.read_entry("name"),)) == (None,)
    assert within(5, lambda: (store.write_entry("name", b"new"),)) == (None,)
    assert aside.read_bytes() == sound and not (tmp_path / "nothing").exists()
    assert store.read_entry("name") == (None if kind == "a folder" else b"new")
    assert [path.name for path in cache.iterdir()] == ["name"]


def test_an_entry_beyond_the_bound_is_neither_read_nor_written(cache, monkeypatch):
    store.write_entry("large", bytes(1000))
    monkeypatch.setattr(store, "MOST_BYTES", 100)
    assert store.read_entry("large") is None
    store.write_entry("larger", bytes(101))
    assert [path.name for path in cache.iterdir()] == ["large"]
    store.write_entry("small", bytes(100 - 32))
    assert store.read_entry("small") == bytes(100 - 32)


WRITER = """
import sys
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("store", sys.argv[1])  # without the rest of lgsim, whose import takes seconds
store = module_from_spec(spec)
spec.loader.exec_module(store)
for i in range(400):
    name = f"entry{i % 10}"
    store.write_entry(name, name.encode() * 5000)
    found = store.read_entry(name)
    assert found == name.encode() * 5000, (i, found and found[:20])
"""


def test_two_processes_write_one_cache_at_once(cache):
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", WRITER, store.__file__]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    for process in both:
        _, error = process.communicate(timeout=120)
        assert process.returncode == 0, error.decode()[-1000:]
    assert sorted(path.name for path in cache.iterdir()) == [f"entry{i}" for i in range(10)]
