"""A command that is killed by SIGKILL at one of its writes: ``python -m tests.cli.interrupted_writes MOMENT WORDS``.

A moment is the number of an event at which the system is about to change the working folder: a file is opened to be
written, brought to the disk, renamed or removed, a folder is made. The events that there were go to the standard error.
"""

import os
import signal
import sys

FOLDER = os.getcwd() + os.sep
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.chmod", "lgsim.fsync"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def main(moment, words):
    count = 0

    def watch(event, arguments):
        nonlocal count
        if not (event in CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES)):
            return
        path = arguments[0]
        if not isinstance(path, str | os.PathLike) or not os.path.abspath(path).startswith(FOLDER):
            return
        count += 1
        if count == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    sync = os.fsync

    def fsync(handle):
        sys.audit("lgsim.fsync", os.readlink(f"/proc/self/fd/{handle}"))
        sync(handle)

    os.fsync = fsync
    from lgsim.cli.app import app

    sys.addaudithook(watch)
    try:
        app(words)
    finally:
        print(f"events: {count}", file=sys.stderr)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
