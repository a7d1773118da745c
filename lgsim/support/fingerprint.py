"""Fingerprints of plain data, pytrees and functions that are the same in every process."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import re
from collections.abc import Iterable, Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""The memory address in a ``repr``, which differs between processes."""


def fingerprint(*values: Any) -> str:
    """Sixteen hexadecimal digits that differ between values of different structure, class names or entries.

    They do not depend on the process, on where lgsim is installed, or on the modules that define classes and functions.
    For a function they cover its code with the names that it uses, its defaults and its closure, not the values of its
    global variables; for any other object its class name and its attributes, not the code of its methods.
    """
    return _digest(values, {}).hex()[:16]


def _digest(value: Any, known: dict[int, tuple[Any, bytes]]) -> bytes:
    """The digest of a value, from those of its parts.

    Args:
        known: (value, digest) of values by their ids; the values are held, so that no id is reused.
    """
    if id(value) not in known:
        # a value that contains itself
        known[id(value)] = value, b"recursion"
        kind, content, parts = _contents(value)
        digest = hashlib.sha256(f"{kind} {len(content)} {len(parts)} ".encode() + content)
        for part in parts:
            digest.update(_digest(part, known))
        known[id(value)] = value, digest.digest()
    return known[id(value)][1]


def _contents(value: Any) -> tuple[str, bytes, list[Any]]:
    """(the kind of a value, its own content, its parts)."""
    kind = type(value).__name__
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return kind, repr(value).encode(), []
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return "key", b"", [jax.random.key_data(value)]
    if eqx.is_array_like(value):
        array = np.asarray(value)
        return f"{array.dtype}{array.shape}", np.ascontiguousarray(array).tobytes(), []
    if isinstance(value, ModuleType):
        return kind, value.__name__.encode(), []
    if isinstance(value, type):
        return kind, value.__qualname__.encode(), []
    if isinstance(value, CodeType):
        # its parts, since the repr of nested code names a file and a line
        return kind, value.co_code, [value.co_names, value.co_consts]
    if callable(value) and hasattr(value, "__wrapped__"):
        return _contents(inspect.unwrap(value))
    return kind, b"", _parts(value)


def _parts(value: Any) -> list[Any]:
    """The parts of a function, a container or any other object."""
    if isinstance(value, FunctionType):
        return [value.__code__, _closure(value), value.__defaults__, value.__kwdefaults__]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, Mapping):
        return [part for item in sorted(value.items(), key=lambda item: repr(item[0])) for part in item]
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, tuple | list):
        return list(value)
    names: Iterable[str] = sorted(getattr(value, "__dict__", ()))
    if dataclasses.is_dataclass(value):
        names = (field.name for field in dataclasses.fields(value) if hasattr(value, field.name))
    found = [part for name in names for part in (name, getattr(value, name))]
    return found or [_ADDRESS.sub("", repr(value))]


def _closure(function: FunctionType) -> list[Any]:
    """The closure of a function; the name of a variable that is bound later."""
    found = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found.append(cell.cell_contents)
        except ValueError:
            found.append(name)
    return found
