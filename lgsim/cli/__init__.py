"""The command ``lgsim``: look at machines, simulate them, and look at what came of it.

The extra: ``pip install 'lgsim[cli]'``. Nothing but ``main`` is meant for programs.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Run the command with the arguments of the process, and end the process with its exit code."""
    missing = [name for name in ("typer", "rich") if find_spec(name) is None]
    if missing:
        print(
            f"error: the command lgsim is made by the packages {' and '.join(missing)}, which are missing:"
            " pip install 'lgsim[cli]'",
            file=sys.stderr,
        )
        sys.exit(1)
    from lgsim.cli.app import app

    app(prog_name="lgsim")
