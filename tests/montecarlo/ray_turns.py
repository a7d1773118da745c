"""Turns of tests that use Ray: a process joins any cluster of the machine, and dies with one that a test stops."""

import tempfile
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone():
    """Wait until no other test of Ray runs on this machine."""
    import fcntl  # Ray's tests run on Linux alone

    with (Path(tempfile.gettempdir()) / "lgsim_ray.lock").open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
