"""What another compiler than XLA cannot do, for whatever reason, XLA does; what was not foreseen is told once."""

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
    """lgsim could not compile a program by itself and left it to XLA: the results are right, and come more slowly."""


def attempt(f: Callable[..., Result | None], *args: Any) -> Result | None:
    """``f(*args)``, or None where it raises: XLA then takes the program.

    The first failure of a process is a ``LoweringWarning`` that names the version of JAX and, where it is known, the
    primitive.

    Args:
        f: What reads or compiles a program; None where XLA is to do it.

    Raises:
        Warning: where warnings are errors.
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
            f"{type(failure).__name__}: {text}. Results are right, and slower. Please report this text at {ISSUES}; "
            "lgsim.llvm_lowering(False) goes to XLA without trying. Further programs may be concerned without a word.",
            LoweringWarning,
            stacklevel=3,
        )
    return None


def note_primitive(error: Exception, name: str) -> None:
    """Note in an error of which primitive it comes, unless that is known.

    Args:
        name: The name of the primitive.
    """
    if not getattr(error, "__notes__", ()):
        error.add_note(f"at the primitive {name}")
