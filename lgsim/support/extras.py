"""The packages of the extras, imported only when they are needed."""

from __future__ import annotations

import importlib
from typing import Any


def package(name: str, extra: str, what: str = "this") -> Any:
    """A package or a module of an extra.

    Args:
        name: Such as ``scipy.signal``.
        extra: The extra of lgsim that brings it.
        what: What needs it, for the message.

    Raises:
        ModuleNotFoundError: it is missing; the message has the command that installs it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        first = name.partition(".")[0]
        raise ModuleNotFoundError(
            f"{what} needs the package {first}, which is missing: pip install 'lgsim[{extra}]'", name=first
        ) from error
