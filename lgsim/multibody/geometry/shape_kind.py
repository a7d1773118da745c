"""What solids, shapes that touch and surfaces have in common: sizes, a name among their kind, plain text for files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar


class ShapeKind:
    """The base of the contracts of shapes, each of which enters its subclasses in ``kinds``. Static but for sizes."""

    sizes: ClassVar[tuple[str, ...]] = ()
    """Names of its numbers, zero or more, m unless its text says otherwise."""
    positive: ClassVar[tuple[str, ...]] = ()
    """Those of its sizes that may not be zero."""
    kinds: ClassVar[dict[str, Any]] = {}
    """The kinds of one contract by the name of their class."""

    def __init_subclass__(cls, **rest: Any) -> None:
        """Begin the kinds of a contract, or enter one of them."""
        super().__init_subclass__(**rest)
        if ShapeKind in cls.__bases__:
            cls.kinds = {}
        else:
            cls.kinds[cls.__name__] = cls

    @classmethod
    def example(cls) -> Any:
        """One of the kind, as generated tests take it."""
        return cls()

    def plain(self) -> dict[str, Any]:
        """What is static of it as text, numbers and lists, for files."""
        names = [f.name for f in fields(self) if f.init and f.repr]  # pyright: ignore[reportArgumentType]
        return {"kind": type(self).__name__} | {name: getattr(self, name) for name in names if name not in self.sizes}

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Any:
        """What ``plain`` of one of the contract's kinds gave, without numbers.

        Raises:
            KeyError: there is no kind of that name.
        """
        static = {name: with_tuples(x) for name, x in plain.items() if name != "kind"}
        return cls.kinds[plain["kind"]].of_static(static)

    @classmethod
    def of_static(cls, static: Mapping[str, Any]) -> Any:
        """One without numbers of what is static."""
        return cls(**static)


def with_tuples(value: Any) -> Any:
    """Lists as tuples, so that what is made of them is hashable."""
    return tuple(map(with_tuples, value)) if isinstance(value, list | tuple) else value
