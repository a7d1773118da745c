"""Fallback to XLA if another compiler fails for any reason; an unexpected failure causes one warning."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import jax

Result = TypeVar("Result")

ISSUES = "https://github.com/lgsim/lgsim/issues"

_told = threading.Event()


class LoweringWarning(RuntimeWarning):
    """lgsim could not compile a program by itself and left it to XLA: the results are right, but slower."""


def attempt(f: Callable[..., Result | None], *args: Any) -> Result | None:
    """``f(*args)``, or None if it raises: XLA then compiles the program.

    The first failure in a process causes a ``LoweringWarning`` with the version of JAX and, if it is known, the
    primitive.

    Args:
        f: A function that reads or compiles a program; None leaves it to XLA.

    Raises:
        Warning: if warnings are errors.
    """
    try:
        return f(*args)
    except Warning:
        raise
    except Exception as error:
        failure = error
    if not _told.is_set():
        _told.set()
        notes = "".join(f", {note}" for note in getattr(failure, "__notes__", ()))
        text = " ".join(str(failure).split())[:300]
        warnings.warn(
            f"lgsim: XLA compiles a program that lgsim could not, with JAX {jax.__version__}{notes}: "
            f"{type(failure).__name__}: {text}. Results are right, but slower. Please report this text at {ISSUES}; "
            "lgsim.llvm_lowering(False) uses only XLA. Further programs may be affected without a warning.",
            LoweringWarning,
            stacklevel=3,
        )
    return None


def note_primitive(error: Exception, name: str) -> None:
    """Add the primitive to an error as a note, unless it has one.

    Args:
        name: The name of the primitive.
    """
    if not getattr(error, "__notes__", ()):
        error.add_note(f"at the primitive {name}")
