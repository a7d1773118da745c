"""Objects whose ``repr`` is a name for people, and for fingerprints everything that they hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_FULL: ContextVar[bool] = ContextVar("full", default=False)


def is_full() -> bool:
    """Whether ``repr`` is to show everything that an object holds, and not its name."""
    return _FULL.get()


@contextmanager
def full_reprs() -> Iterator[None]:
    """A context in which ``repr`` tells objects apart that have the same name."""
    token = _FULL.set(True)
    try:
        yield
    finally:
        _FULL.reset(token)
