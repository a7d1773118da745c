"""Public names of a package that are imported on first use (PEP 562), as listed in its stub ``__init__.pyi``."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any


def public_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose names are imported from elsewhere on first use.

    The stub in the folder of the package's file holds statements ``from module import name as name``; type checkers
    read the same. ``__all__`` lists these names and the declarations of the stub. After ``from module import *`` the
    names in that module's ``__all__`` belong to the package too, and to its ``__all__``; that module is imported only
    for a name that is listed nowhere else. All modules in the package are attributes of it too.

    Args:
        package: The package's ``__name__``.
        file: The package's ``__file__``.
    """
    modules: dict[str, str] = {}
    stars: list[str] = []
    listed: list[str] = []
    for statement in ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ImportFrom):
            for name in statement.names:
                if name.name == "*":
                    stars.append(str(statement.module))
                else:
                    modules[name.name] = str(statement.module)
                    listed.append(name.name)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            listed.append(statement.target.id)

    def all_names() -> list[str]:
        return [*listed, *(name for module in stars for name in import_module(module).__all__)]

    def find(name: str) -> Any:
        if name == "__all__":
            return all_names()
        if name in modules:
            home = None if modules[name] == package else import_module(modules[name])
            # a module is an attribute of its package only after its import
            return getattr(home, name) if hasattr(home, name) else import_module(f"{modules[name]}.{name}")
        if not name.startswith("_"):
            if find_spec(f"{package}.{name}") is not None:
                return import_module(f"{package}.{name}")
            for module in map(import_module, stars):
                if name in module.__all__:
                    return getattr(module, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)

    def get(name: str) -> Any:
        value = find(name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        parts = (part.name for part in iter_modules([str(Path(file).parent)]))
        return sorted({*filter(_special, vars(sys.modules[package])), *all_names(), *parts})

    return get, names


def _special(name: str) -> bool:
    """True for Python's own names, such as ``__file__``."""
    return name.startswith("__")
