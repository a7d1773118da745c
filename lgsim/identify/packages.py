"""The packages of the extras, imported only when they are needed."""

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
        raise ImportError(f"this needs the package {first}, which is missing: pip install 'lgsim[{extra}]'") from error
