"""Optional packages, imported only when they are needed, and the version of lgsim itself."""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import Any


def package(name: str, extra: str, what: str = "this") -> Any:
    """A package or a module of an optional dependency.

    Args:
        name: Such as ``scipy.signal``.
        extra: The extra of lgsim that installs it.
        what: The feature that needs it, for the message.

    Raises:
        ModuleNotFoundError: it is missing; the message gives the command that installs it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        first = name.partition(".")[0]
        raise ModuleNotFoundError(
            f"{what} needs the package {first}, which is missing: pip install 'lgsim[{extra}]'", name=first
        ) from error


def own_version() -> str:
    """The version of the installed lgsim, or "0+unknown" for a source tree that was not installed."""
    try:
        return version("lgsim")
    except PackageNotFoundError:
        return "0+unknown"
