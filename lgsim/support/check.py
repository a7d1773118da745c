"""Argument checks, with messages that give the argument, the expected value and the actual one."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, dtypes
from jax.core import Tracer
from jax.errors import JAXTypeError
from jax.typing import DTypeLike

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
"""The supported dtypes."""


def floating(name: str, value: Any, *trailing: int, dtype: DTypeLike | None = None) -> Array:
    """``value`` as an array of shape (..., *trailing) and of type float32 or float64.

    Args:
        name: The argument's name in errors.
        value: An array, or Python numbers, single or in lists.
        trailing: The last axes.
        dtype: The dtype of Python numbers; arrays keep theirs. By default JAX's own.

    Raises:
        TypeError: the entries are not float32, float64 or Python numbers.
        ValueError: the last axes are not ``trailing``.
    """
    array = value if isinstance(value, Array) else _converted(name, value, trailing, dtype)
    if array.dtype not in FLOATS:
        remedy = f"convert it, e.g. {name}.astype(float)" if hasattr(value, "dtype") else "give floats"
        if getattr(array.dtype, "kind", "") == "c":
            remedy = "take its real part"
        raise TypeError(f"{name}: expected an array of float32 or float64, got {array.dtype}; {remedy}")
    if array.ndim < len(trailing) or array.shape[array.ndim - len(trailing) :] != trailing:
        raise ValueError(f"{name}: expected shape {_shape(trailing)}, got {array.shape}")
    return array


def cast(name: str, value: Any, dtype: DTypeLike) -> Array:
    """``value``, real numbers of any type, as an array of ``dtype``.

    Raises:
        TypeError: it is not an array of real numbers.
        ValueError: lists in it differ in length.
    """
    array = value if isinstance(value, Array) else _converted(name, value, (), dtype)
    if jnp.issubdtype(array.dtype, jnp.complexfloating):
        raise TypeError(f"{name}: expected real numbers, got {array.dtype}; take the real part")
    return jnp.asarray(array, dtype)


def _shape(trailing: tuple[int, ...]) -> str:
    return f"({', '.join(['...', *map(str, trailing)])})"


def _converted(name: str, value: Any, trailing: tuple[int, ...], dtype: DTypeLike | None) -> Array:
    """A value that is not a JAX array as one, Python numbers as floats."""
    kinds = {type(x) for x in _entries(value)}
    numbers = kinds <= {int, float}
    fault = next((kind for kind in (type(None), str, bytes) if kind in kinds), None)
    if fault is None:
        try:
            if not numbers:
                return jnp.asarray(value)
            own = None if dtype is None else dtypes.canonicalize_dtype(dtype)
            # a single Python number stays weakly typed, as usual in JAX
            return jnp.asarray(float(value) if kinds == {type(value)} else np.asarray(value, float), own)
        except JAXTypeError:  # for tracers, with JAX's own message
            raise
        except (TypeError, ValueError, OverflowError) as error:
            if numbers and isinstance(error, ValueError):
                raise ValueError(f"{name}: expected shape {_shape(trailing)}, got lists of different lengths") from None
    remedy = f"give e.g. jnp.zeros({trailing})" if trailing else "give one of these"
    raise TypeError(
        f"{name}: expected an array of float32 or float64, or Python numbers, got {_described(value, fault)}; {remedy}"
    )


def _entries(value: Any) -> Iterator[Any]:
    """The entries of nested lists."""
    if not isinstance(value, list | tuple):
        yield value
        return
    for x in value:
        yield from _entries(x)


def _described(value: Any, fault: type | None) -> str:
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__}" + (f" with {_called(fault)} in it" if fault else "")
    return f"the string {value[:40]!r}" if isinstance(value, str) else _called(type(value))


def _called(kind: type) -> str:
    return {type(None): "None", str: "a string"}.get(kind, kind.__name__)


def float_dtype(dtype: jnp.dtype | type) -> jnp.dtype:
    """``dtype`` in the form that JAX uses; TypeError unless it is float32 or float64."""
    found = jnp.zeros((), dtype).dtype
    if found not in FLOATS:
        raise TypeError(f"dtype: expected float32 or float64, got {found}")
    return found


def arguments(dtype: DTypeLike | None = None, /, **named: tuple[Any, tuple[int, ...]]) -> tuple[Array, ...]:
    """Several arrays, given as ``name=(value, trailing axes)``, of one dtype and with leading axes that broadcast.

    The results have leading axes of equal rank, so that their components combine without rank promotion. Python numbers
    take the type ``dtype``, by default that of the first array.

    Raises:
        TypeError: an array is not float32 or float64, or the dtypes differ.
        ValueError: trailing axes are wrong, or leading axes do not broadcast.
    """
    if dtype is None:
        found = (value.dtype for value, _ in named.values() if hasattr(value, "dtype"))
        dtype = next((each for each in found if each in FLOATS), None)
    arrays = {name: floating(name, value, *trailing, dtype=dtype) for name, (value, trailing) in named.items()}
    if len({a.dtype for a in arrays.values()}) > 1:
        kinds = ", ".join(f"{name} is {a.dtype}" for name, a in arrays.items())
        raise TypeError(f"{' and '.join(arrays)}: expected one dtype, but {kinds}; convert one with .astype")
    batches = {name: a.shape[: a.ndim - len(named[name][1])] for name, a in arrays.items()}
    if len(set(batches.values())) == 1:
        return tuple(arrays.values())
    try:
        rank = len(jnp.broadcast_shapes(*batches.values()))
    except ValueError:
        shapes = ", ".join(f"{name} has {shape}" for name, shape in batches.items())
        raise ValueError(f"{' and '.join(arrays)}: leading axes must broadcast, but {shapes}") from None
    return tuple(a.reshape((1,) * (rank - len(batches[name])) + a.shape) for name, a in arrays.items())


def is_traced(*values: Any) -> bool:
    """True if a leaf of these pytrees is being traced, so that its value is unknown."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(values))


def number(name: str, value: Any) -> None:
    """Check that ``value`` is a single real number, in Python or in an array.

    Raises:
        TypeError: it is not a real number, or a boolean.
        ValueError: there are several.
    """
    if isinstance(value, np.ndarray | np.generic | Array):
        real = jnp.issubdtype(value.dtype, jnp.floating) or jnp.issubdtype(value.dtype, jnp.integer)
        found: Any = value.dtype
    else:
        real = isinstance(value, int | float | list | tuple) and not isinstance(value, bool)
        found = f"the truth value {value}" if isinstance(value, bool) else _described(value, None)
    if not real:
        raise TypeError(f"{name}: expected a number, got {found}; give a float such as 0.1")
    if np.shape(value):
        raise ValueError(f"{name}: expected a single number, got shape {np.shape(value)}; use jax.vmap for many")


def count(name: str, value: Any) -> int:
    """``value`` as an integer of at least 1; ``name`` is the argument's name in errors.

    Raises:
        TypeError: it is not an integer that is known before compilation.
        ValueError: it is less than 1.
    """
    if isinstance(value, bool):
        raise TypeError(f"{name}: expected an integer, got the truth value {value}; give a number such as 1")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an integer known before compilation, got {type(value).__name__}") from None
    if number < 1:
        raise ValueError(f"{name}: expected at least 1, got {number}")
    return number


def unknown_name(what: str, name: str, names: Sequence[str]) -> ValueError:
    """A ValueError for an unknown name, with similar names or else all names.

    Args:
        what: The argument and what it should be.
        name: The name that was given.
        names: The valid names.
    """
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(names)}"
    return ValueError(f"{what}, got {name!r}; {hint}")
