"""The packages that pictures need, imported only when one is made."""

from __future__ import annotations

import importlib
from typing import Any


def package(name: str, extra: str) -> Any:
    """A package of an extra.

    Raises:
        ImportError: it is missing; the message has the command that installs it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        first = name.partition(".")[0]
        raise ImportError(
            f"this picture is made by the package {first}, which is missing: pip install 'lgsim[{extra}]'"
        ) from error
