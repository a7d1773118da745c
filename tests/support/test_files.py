"""Files of the user: their modes and links stay, a device is written into, a kill at any moment loses none."""

import errno
import os
import pty
import stat
import subprocess
import sys
import threading

import pytest

from lgsim.support import files
from lgsim.support.files import file_lock, open_regular, read_json, write_whole

NOBODY = 65534
LINK = "expected a regular file, got a link"


def child(code, *arguments, **options):
    """The result of a short program that has ``write_whole`` and ``path``, its first argument."""
    head = "import os, sys; from pathlib import Path; from lgsim.support.files import *; path = Path(sys.argv[1])\n"
    command = [sys.executable, "-c", head + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=60, check=False, **options)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o755, 0o666])
def test_the_mode_of_a_file_stays(tmp_path, bits):
    path = tmp_path / "run.npz"
    path.write_bytes(b"old")
    path.chmod(bits)
    write_whole(path, b"new")
    assert (path.read_bytes(), mode(path)) == (b"new", bits)


@pytest.mark.parametrize(("mask", "bits"), [(0o077, 0o600), (0o022, 0o644), (0o007, 0o660)])
def test_a_new_file_has_the_mode_of_the_umask(tmp_path, mask, bits):
    result = child(f"os.umask({mask}); write_whole(path, b'new'); print(oct(os.umask(0)))", tmp_path / "new")
    assert (mode(tmp_path / "new"), result.stdout) == (bits, f"{oct(mask)}\n".encode()), result.stderr


def test_the_umask_is_not_touched(tmp_path, monkeypatch):
    """It is that of the whole process: another thread would make files with it."""

    def touched(mask):
        raise AssertionError("the umask was changed")

    monkeypatch.setattr(os, "umask", touched)
    write_whole(tmp_path / "new", b"new")


def test_a_file_that_nobody_knows_yet_is_never_more_open_than_the_old_one(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with files.whole_file(path) as file:
        file.write(b"new")
        assert {mode(each) for each in tmp_path.iterdir()} == {0o600}


def test_a_pipe_is_written_into(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_whole(pipe, b"content")
    reader.join(10)
    assert read == [b"content"] and stat.S_ISFIFO(os.lstat(pipe).st_mode)


def test_a_device_is_written_into(tmp_path):
    """A terminal, by a link as /dev/stdout is one; as root even the null device became a file."""
    leader, follower = pty.openpty()
    link = tmp_path / "out"
    link.symlink_to(os.ttyname(follower))
    write_whole(link, b"content")
    assert os.read(leader, 100) == b"content" and stat.S_ISCHR(os.stat(link).st_mode) and link.is_symlink()
    os.close(leader)
    os.close(follower)


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_the_standard_output(tmp_path, kind):
    """What a shell's >> had in its file stays."""
    kept = tmp_path / "log"
    kept.write_bytes(b"before ")
    if kind == "pipe":
        assert child("write_whole(path, b'content')", "/dev/stdout").stdout == b"content"
        return
    with open(kept, "ab") as log:
        command = [sys.executable, "-c", "from lgsim.support.files import write_whole; from pathlib import Path\n"
                   "write_whole(Path('/dev/stdout'), b'content'); print(' after')"]  # fmt: skip
        result = subprocess.run(command, stdout=log, timeout=60, check=False)
    assert result.returncode == 0 and kept.read_bytes() == b"before content after\n"


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError, match="expected a file, got a folder") as caught:
        write_whole(tmp_path, b"")
    assert caught.value.filename == str(tmp_path)


def test_a_link_stays_and_the_file_behind_it_is_written(tmp_path):
    (tmp_path / "far").mkdir()
    file, link, second, dangling = (tmp_path / name for name in ("far/file", "link", "second", "dangling"))
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to("far/file")
    second.symlink_to(link)
    write_whole(second, b"new")
    assert second.is_symlink() and link.is_symlink() and not file.is_symlink()
    assert (file.read_bytes(), mode(file)) == (b"new", 0o640)
    dangling.symlink_to("far/made")
    write_whole(dangling, b"made")
    assert dangling.is_symlink() and (tmp_path / "far" / "made").read_bytes() == b"made"
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="symbolic links") as caught:
        write_whole(tmp_path / "loop", b"")
    assert caught.value.errno == errno.ELOOP


def test_where_no_link_is_followed_it_is_refused(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"old")
    link.symlink_to(file)
    for refuse in (
        lambda: write_whole(link, b"new", links=False), lambda: open_regular(link, links=False),
        lambda: file_lock(link).__enter__(),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"link: {LINK}"):
            refuse()
    assert file.read_bytes() == b"old" and link.is_symlink()


@pytest.mark.parametrize("length", [200, 245, 255])
def test_long_names(tmp_path, length):
    path = tmp_path / ("x" * (length - 4) + ".npz")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"


def test_what_a_failure_leaves(tmp_path, monkeypatch):
    """The old file, and nothing else; meanwhile one short name that begins as all temporary ones do."""
    path = tmp_path / "run.npz"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), files.whole_file(path) as file:
        file.write(b"new")
        names = [each.name for each in tmp_path.iterdir() if each != path]
        assert len(names) == 1 and names[0].startswith(files.TEMPORARY) and len(names[0]) < 40
        1 / 0  # noqa: B018
    assert [each.name for each in tmp_path.iterdir()] == ["run.npz"] and path.read_bytes() == b"old"


def test_content_and_folder_are_on_the_disk_before_the_call_returns(tmp_path, monkeypatch):
    """The content before the name, the name before the return."""
    calls, sync, replace = [], os.fsync, os.replace

    def synced(handle):
        kind = "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else os.fstat(handle).st_size
        calls.append(kind)
        sync(handle)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", lambda *names: (calls.append("replace"), replace(*names)))
    write_whole(tmp_path / "run.npz", b"content")
    assert calls == [7, "replace", "folder"]


KILLED = """
import signal
for moment in range(200):
    if (worker := os.fork()) == 0:
        count = 0
        def watch(event, arguments):
            global count
            if event in ("open", "os.rename", "os.remove", "os.chmod", "os.chown") or event == "write":
                count += 1
                if count > moment:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(watch)
        real = os.fsync
        def fsync(handle):
            sys.audit("write")
            real(handle)
            sys.audit("write")
        os.fsync = fsync
        with whole_file(path) as file:
            file.write(b"n" * 5000)
            sys.audit("write")
            file.write(b"n" * 5000)
        os._exit(0)
    _, status = os.waitpid(worker, 0)
    print(status, path.read_bytes() in (b"old", b"n" * 10000), len(path.read_bytes()))
    if status == 0:
        break
"""


def test_killed_at_any_moment_the_file_is_the_old_or_the_new_one(tmp_path):
    """SIGKILL before each event of the system, one after another, until a process comes to its end."""
    path = tmp_path / "run.npz"
    path.write_bytes(b"old")
    result = child(KILLED, path)
    rows = [line.split() for line in result.stdout.decode().splitlines()]
    assert rows and rows[-1] == ["0", "True", "10000"], (rows, result.stderr[-2000:])
    assert len(rows) >= 6 and all(row[:2] == ["9", "True"] for row in rows[:-1]), rows
    assert {each.name.startswith(files.TEMPORARY) for each in tmp_path.iterdir() if each != path} == {True}


def test_without_rights(tmp_path):
    """A read-only folder, a read-only file: one error that names the file; nothing changes."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("file", "kept"):
        (folder / name).write_bytes(b"old")
        (folder / name).chmod(0o666)
    code = f"""
import stat
if os.geteuid() == 0:
    os.chown(path, {NOBODY}, {NOBODY}); os.chown(path / "kept", {NOBODY}, {NOBODY}); os.setuid({NOBODY})
(path / "kept").chmod(0o444)
for bits, name in ((0o777, "kept"), (0o555, "file"), (0o555, "new")):
    path.chmod(bits)
    try:
        write_whole(path / name, b"new")
    except PermissionError as error:
        print(Path(error.filename).name, error.strerror)
path.chmod(0o777)
"""
    for parent in (tmp_path, *tmp_path.parents):
        if os.geteuid() == 0 and not parent.stat().st_mode & 0o011 == 0o011:
            parent.chmod(mode(parent) | 0o011)  # nobody passes
    result = child(code, folder)
    lines = [f"{name} Permission denied" for name in ("kept", "file", "new")]
    assert result.stdout.decode().splitlines() == lines, result.stderr.decode()[-2000:]
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == {"file": b"old", "kept": b"old"}


def test_a_full_disk(tmp_path):
    """The limit of a file's size, as of a disk without room: the old file stays, the error names it."""
    path = tmp_path / "run.npz"
    path.write_bytes(b"old")
    code = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    write_whole(path, b"n" * 100000)
except OSError as error:
    print(error.errno, error.filename == str(path))
"""
    assert child(code, path).stdout.decode().split() == [str(errno.EFBIG), "True"]
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"run.npz": b"old"}


def test_what_is_no_file_is_not_read(tmp_path):
    """A pipe would be waited for without end."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, kind in (("pipe", "a pipe or a device"), ("folder", "a folder")):
        with pytest.raises(ValueError, match=f"{name}: expected a regular file, got {kind}"):
            open_regular(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "nothing")


@pytest.mark.parametrize(
    "content", [b"[" * 200_000, b"\xff\xfe", b"", b'{"a": ', b"1" * 5000, b'{"a": 1} {}', b'"\\ud800', b"nul"]
)
def test_json_that_is_none_is_one_kind_of_error(tmp_path, content):
    path = tmp_path / "about.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"about.json: expected JSON") as caught:
        read_json(path)
    assert type(caught.value) is ValueError and len(str(caught.value).splitlines()) == 1
    path.write_bytes(b'{"a": [1, NaN]}')
    assert str(read_json(path)) == "{'a': [1, nan]}"


def test_a_lock_keeps_what_is_in_its_file_until_it_is_signed(tmp_path):
    """Another's file of that name is not written to before one knows that it is a store's."""
    path = tmp_path / "lock"
    path.write_bytes(b"a letter\n")
    with file_lock(path) as lock:
        assert path.read_bytes() == b"a letter\n"
        with pytest.raises(RuntimeError, match=r"another process writes to this store \(process unknown\)"):
            file_lock(path).__enter__()
        lock.sign()
        with pytest.raises(RuntimeError, match=rf"\(process {os.getpid()}\); wait for it or end it"):
            file_lock(path).__enter__()
    assert path.read_text() == f"{os.getpid()}\n"
    path.write_bytes(b"\xff\x1b[2J" + b"1" * 10_000)
    with file_lock(path), pytest.raises(RuntimeError, match=r"\(process unknown\)"):
        file_lock(path).__enter__()
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ValueError, match="lock: expected a regular file, got a pipe"):
        file_lock(path).__enter__()
