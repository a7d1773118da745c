"""Evaluation of functions in another arithmetic, as ``jax.vmap`` evaluates them on batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, no_type_check

import jax
import jax.numpy as jnp
import numpy as np

from lgsim._compile.programs.program import UnsupportedProgramError
from lgsim._compile.programs.read import Reader
from lgsim.symbolic.arithmetic import Arithmetic
from lgsim.symbolic.calls import CALLS
from lgsim.symbolic.entries import Entries, SymbolicError
from lgsim.symbolic.linear_algebra import LINEAR_ALGEBRA

_ROOT = Path(__file__).parents[1]
_PLUMBING = tuple(str(_ROOT / name) for name in ("_compile/xla", "_compile/programs", "symbolic"))


def evaluate(f: Callable[..., Any], arithmetic: Arithmetic) -> Callable[..., Any]:
    """Evaluate ``f`` in another arithmetic: symbols, multiple precision, CasADi expressions.

    ``f`` is traced once and its program executed on entries of the arithmetic. Parts that depend only on numbers are
    computed before, exactly. Loops are unrolled; branches must not depend on symbols.

    Args:
        f: A function of pytrees of arrays and models that JAX can trace.
        arithmetic: Such as ``Expressions()``.

    Returns:
        A function with the arguments of ``f``. The entries of its arrays, also of those in a model, are numbers or
        entries of the arithmetic (dtype object). It returns the pytree that ``f`` returns, with arrays of dtype object;
        results that are not floats are numbers.

    Raises:
        SymbolicError: (a TypeError, by the returned function) a branch, a loop or an index depends on a symbol, or the
            arithmetic has no rule for an operation; the message has the primitive, the function and line of lgsim.
    """

    def evaluated(*args: Any) -> Any:
        leaves, structure = jax.tree.flatten(args)
        arrays = [np.asarray(x) for x in leaves]
        kinds = [jax.ShapeDtypeStruct(x.shape, _dtype(x)) for x in arrays]
        closed, shapes = jax.make_jaxpr(f, return_shape=True)(*jax.tree.unflatten(structure, kinds))
        entries = Entries(arithmetic)
        reader = _LocatingReader(entries, CALLS)
        given = [entries.given(k.dtype.name, x) for k, x in zip(kinds, arrays, strict=True)]
        with np.errstate(all="ignore"):
            found = reader.closed(closed, [int(x) if x.ndim == 0 else x for x in given])
        out = [_array(entries, np.asarray(x)) for x in found]
        return jax.tree.unflatten(jax.tree.structure(shapes), out)

    return evaluated


def _dtype(x: np.ndarray) -> Any:
    """The dtype for tracing an argument; all floats have the same one, so that a model may have symbols."""
    return jnp.zeros(()).dtype if x.dtype == object or x.dtype.kind == "f" else x.dtype


def _array(entries: Entries, values: np.ndarray) -> np.ndarray:
    out = np.empty(values.size, object)
    for i, value in enumerate(values.ravel().tolist()):
        out[i] = entries.entry(value)
    return out.reshape(values.shape)


class _LocatingReader(Reader):
    """A reader that records the function and line of lgsim being read in the entries."""

    def step(self, equation: Any) -> tuple[Any, Any, Any]:
        name, builder, where = equation.primitive.name, self.builder, _Place(equation)
        try:
            found = (None, LINEAR_ALGEBRA[name], equation) if name in LINEAR_ALGEBRA else super().step(equation)
        except UnsupportedProgramError as error:
            raise _located(error, where) from error
        scalar, whole, own = found

        @no_type_check
        def located(*args: Any) -> Any:
            builder.where = where
            try:
                return scalar(*args) if scalar is not None else whole(*args)
            except UnsupportedProgramError as error:
                raise _located(error, where) from error

        return (located, None, None) if scalar is not None else (None, located, own)


def _located(error: UnsupportedProgramError, where: _Place) -> SymbolicError:
    return SymbolicError(f"{error}, in {where}; the primitives with rules: see lgsim.programs")


class _Place:
    """The source location of an equation, computed on demand."""

    def __init__(self, equation: Any) -> None:
        self._equation = equation

    def __str__(self) -> str:
        traceback = self._equation.source_info.traceback
        primitive = f"the primitive {self._equation.primitive.name}"
        frames = [] if traceback is None else list(traceback.frames)
        inside = [x for x in frames if x.file_name.startswith(str(_ROOT)) and not x.file_name.startswith(_PLUMBING)]
        others = [x for x in frames if "/jax/" not in x.file_name and not x.file_name.startswith(_PLUMBING)]
        for frame in (*inside, *others):
            path = Path(frame.file_name)
            name = path.relative_to(_ROOT.parent) if path.is_relative_to(_ROOT.parent) else path.name
            return f"{frame.function_name} ({name}, line {frame.line_num}; {primitive})"
        return primitive
