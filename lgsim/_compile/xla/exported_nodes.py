"""Serialization by ``jax.export`` of classes that are arguments and results of exported functions, without code."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from typing import Any, TypeVar

import jax
from jax import export

Class = TypeVar("Class", bound=type)

_codes: dict[str, Any] = {}
"""One code of each enumeration of result codes, by name."""


def export_node(
    kind: type, name: str, to_text: Callable[[Any], str], of_text: Callable[[str], Any], make: Callable[..., Any]
) -> None:
    """Register a pytree class with known leaves and static part.

    Args:
        name: Name of the class in files.
        to_text: A function from the static part of its flattening to text.
        of_text: The inverse function; it raises any error for invalid text.
        make: ``make(static, *children)``; children need not be arrays.
    """
    export.register_pytree_node_serialization(
        kind,
        serialized_name=name,
        serialize_auxdata=lambda static: to_text(static).encode(),
        deserialize_auxdata=lambda content: of_text(bytes(content).decode()),
        from_children=lambda aux_data, children: make(aux_data, *children),
    )


def export_module(name: str) -> Callable[[Class], Class]:
    """A decorator that registers an ``equinox.Module`` without static fields under a name."""

    def register(kind: Class) -> Class:
        def make(_: None, *children: Any) -> Any:
            # from placeholders, which a constructor may reject
            made = object.__new__(kind)
            for field, child in zip(fields(kind), children, strict=True):
                object.__setattr__(made, field.name, child)
            return made

        export_node(kind, name, lambda _: "", lambda _: None, make)
        return kind

    return register


def export_tuple(name: str) -> Callable[[Class], Class]:
    """A decorator that registers a ``NamedTuple`` under a name."""

    def register(kind: Class) -> Class:
        export_node(kind, name, lambda _: "", lambda _: None, lambda _, *children: tuple.__new__(kind, children))
        return kind

    return register


def export_codes(name: str) -> Callable[[Class], Class]:
    """A decorator that registers an ``equinox.Enumeration`` of result codes, one of which is ``successful``."""

    def register(kind: Class) -> Class:
        _codes[name] = kind.successful  # type: ignore[attr-defined]
        # one class has the codes of all enumerations; another package may have registered it
        with suppress(ValueError):
            export_node(type(_codes[name]), "lgsim.code", _code_name, _codes.__getitem__, _code)
        return kind

    return register


def _code_name(static: Any) -> str:
    for name, code in _codes.items():
        if jax.tree.structure(code).node_data()[1] == static:  # type: ignore[index]
            return name
    raise ValueError(f"a result code: expected one of {', '.join(_codes)}, got one of another enumeration, {static}")


def _code(like: Any, *children: Any) -> Any:
    return jax.tree.unflatten(jax.tree.structure(like), children)
