"""Common base of geometries, contact shapes and surfaces: sizes, registry of kinds, serialization."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar


class ShapeKind:
    """Base of the interfaces of shapes, which registers their subclasses in ``kinds``. Static except for sizes."""

    sizes: ClassVar[tuple[str, ...]] = ()
    """Names of its values, nonnegative, m unless documented otherwise."""
    positive: ClassVar[tuple[str, ...]] = ()
    """Sizes that must be positive."""
    kinds: ClassVar[dict[str, Any]] = {}
    """Subclasses of one interface by class name."""

    def __init_subclass__(cls, **rest: Any) -> None:
        """Create the registry of an interface, or register a subclass."""
        super().__init_subclass__(**rest)
        if ShapeKind in cls.__bases__:
            cls.kinds = {}
        else:
            cls.kinds[cls.__name__] = cls

    @classmethod
    def example(cls) -> Any:
        """An instance for generated tests."""
        return cls()

    def plain(self) -> dict[str, Any]:
        """Serializable static data: text, numbers and lists."""
        names = [f.name for f in fields(self) if f.init and f.repr]  # pyright: ignore[reportArgumentType]
        return {"kind": type(self).__name__} | {name: getattr(self, name) for name in names if name not in self.sizes}

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Any:
        """Create an instance without values from a ``plain`` description.

        Raises:
            KeyError: an unknown kind.
        """
        static = {name: with_tuples(x) for name, x in plain.items() if name != "kind"}
        return cls.kinds[plain["kind"]].of_static(static)

    @classmethod
    def of_static(cls, static: Mapping[str, Any]) -> Any:
        """An instance without values, from static data."""
        return cls(**static)


def with_tuples(value: Any) -> Any:
    """Convert lists to tuples, so that the result is hashable."""
    return tuple(map(with_tuples, value)) if isinstance(value, list | tuple) else value
