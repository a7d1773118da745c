"""The version of lgsim."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def own_version() -> str:
    """The version of the installed lgsim, or "0+unknown" for a source tree that was not installed."""
    try:
        return version("lgsim")
    except PackageNotFoundError:
        return "0+unknown"
