"""Objects whose ``repr`` is a short name for people and their full content for fingerprints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_FULL: ContextVar[bool] = ContextVar("full", default=False)


def is_full() -> bool:
    """True if ``repr`` must show the full content of an object instead of its name."""
    return _FULL.get()


@contextmanager
def full_reprs() -> Iterator[None]:
    """A context in which ``repr`` distinguishes objects that have the same name."""
    token = _FULL.set(True)
    try:
        yield
    finally:
        _FULL.reset(token)
