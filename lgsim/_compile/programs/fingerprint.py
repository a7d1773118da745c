"""A hash of a traced function, equal for equal functions in every process, so that its program is read only once."""

from __future__ import annotations

import enum
import hashlib
import sys
from functools import cache
from pathlib import Path
from typing import Any, no_type_check

import jax
import numpy as np
from jax.core import Tracer

from lgsim._compile.xla import expansion
from lgsim._compile.xla.jax_internals import called_program, calls_program, parameters
from lgsim.support.full_repr import full_reprs

_PLAIN = (str, bytes, int, float, complex, bool, type(None), np.dtype, np.generic, enum.Enum)


class _Nameless(Exception):
    """An object whose text differs between processes."""


def fingerprint(closed: Any) -> str | None:
    """The hash of a ``ClosedJaxpr``, or None if it contains an object without a reproducible text, such as a function.

    Functions with the same hash have the same program. The hash includes the sources of this folder and the versions of
    Python and JAX.

    Args:
        closed: The traced function.
    """
    try:
        return hashlib.sha256(f"{_versions()} {_Walk().closed(closed)}".encode()).hexdigest()
    except _Nameless:
        return None


@cache
def _versions() -> str:
    folder = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return f"{digest.hexdigest()} {sys.version_info[:3]} {jax.__version__}"


@no_type_check  # at run time: checking a call takes ten times as much as the call
class _Walk:
    """Texts of jaxprs, with each inner jaxpr hashed once."""

    def __init__(self) -> None:
        # each with the object, so that its id is not reused
        self._closed: dict[int, tuple[str, Any]] = {}
        self._open: dict[int, tuple[str, Any]] = {}

    def closed(self, closed: Any) -> str:
        """The hash of a ``ClosedJaxpr`` or of a jaxpr without constants."""
        if not hasattr(closed, "jaxpr"):
            return self._jaxpr(closed)
        if id(closed) not in self._closed:
            consts = [self._value(x) for x in closed.consts]
            self._closed[id(closed)] = self._hash([*consts, self._jaxpr(closed.jaxpr)]), closed
        return self._closed[id(closed)][0]

    def _hash(self, texts: list[str]) -> str:
        return hashlib.sha256("\n".join(texts).encode()).hexdigest()

    def _jaxpr(self, jaxpr: Any) -> str:
        if id(jaxpr) in self._open:
            return self._open[id(jaxpr)][0]
        numbers: dict[Any, int] = {}

        def name(variable: Any) -> str:
            if hasattr(variable, "val"):  # a literal
                return f"{variable.aval.dtype}:{self._value(variable.val)}"
            return f"v{numbers.setdefault(variable, len(numbers))}"

        def kind(variable: Any) -> str:
            aval = variable.aval
            if not hasattr(aval, "shape"):
                raise _Nameless
            return f"{name(variable)}{aval.dtype}{aval.shape}"

        lines = [" ".join(map(kind, (*jaxpr.constvars, *jaxpr.invars)))]
        for equation in jaxpr.eqns:
            given, made = " ".join(map(name, equation.invars)), " ".join(map(kind, equation.outvars))
            lines.append(f"{made} = {self._operation(equation)} {given}")
        lines.append(" ".join(map(name, jaxpr.outvars)))
        self._open[id(jaxpr)] = self._hash(lines), jaxpr
        return self._open[id(jaxpr)][0]

    def _operation(self, equation: Any) -> str:
        operation, params = equation.primitive.name, parameters(equation)
        if calls_program(operation):
            return f"call {self.closed(called_program(equation))}"
        found = expansion(equation)
        if found is not None:
            return f"call {self.closed(found)}"
        return f"{operation}[{' '.join(f'{key}={self._value(params[key])}' for key in sorted(params))}]"

    def _value(self, value: Any) -> str:
        if isinstance(value, _PLAIN):
            return repr(value)
        if hasattr(value, "eqns") or hasattr(value, "jaxpr"):
            return self.closed(value)
        if isinstance(value, Tracer):
            raise _Nameless
        if isinstance(value, tuple | list):
            return f"({' '.join(map(self._value, value))})"
        if isinstance(value, dict):
            return f"{{{' '.join(f'{key!r}={self._value(value[key])}' for key in sorted(value, key=repr))}}}"
        if isinstance(value, np.ndarray | jax.Array):
            array = np.asarray(value)
            return f"{array.dtype}{array.shape}{hashlib.sha256(array.tobytes()).hexdigest()}"
        with full_reprs():
            text = repr(value)
        # numpy abbreviates long arrays, also inside of other objects, by "..."
        if " at 0x" in text or "..." in text or (callable(value) and not isinstance(value, type)):
            raise _Nameless
        return text
