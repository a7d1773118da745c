"""The module that assigns a public name, the text below the assignment, and annotations as they are written.

A value such as a table or a method has no docstring of its own; its description is the string below its assignment.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple


class Definition(NamedTuple):
    """An assignment.

    Attributes:
        module: Name of the module.
        text: The string below the assignment, or "".
    """

    module: str
    text: str


@cache
def defined(module: str, name: str) -> Definition | None:
    """The assignment of a name that a module assigns or imports, or None.

    Args:
        module: Name of the module.
        name: The name in it.
    """
    for tree in _trees(module):
        for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
            if name in _assigned(node):
                return Definition(module, inspect.cleandoc(_string(after)))
        for source, original in _imports(tree, module, name):
            if found := defined(source, original):
                return found
    return None


def annotations(value: Any) -> dict[str, str]:
    """The annotations of a function's arguments and result (under "return"), or of a class's fields, as written.

    Args:
        value: The function or the class.
    """
    plain = inspect.unwrap(value)
    if not inspect.isclass(plain):
        return _of_function(_node(plain))
    found: dict[str, str] = {}
    for base in reversed(plain.__mro__):
        if base.__module__.split(".")[0] == "lgsim":
            node = _node(base)
            for each in getattr(node, "body", ()):
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                    found[each.target.id] = ast.unparse(each.annotation)
                elif isinstance(each, ast.FunctionDef) and each.name == "__init__":
                    found |= _of_function(each)
    return found


def _of_function(node: ast.AST | None) -> dict[str, str]:
    if not isinstance(node, ast.FunctionDef):
        return {}
    given = node.args
    every = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    found = {each.arg: ast.unparse(each.annotation) for each in every if each is not None and each.annotation}
    return found | ({"return": ast.unparse(node.returns)} if node.returns else {})


def _node(value: Any) -> ast.AST | None:
    """The definition of a function or a class in the source of its module."""
    module, path = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if not str(module).startswith("lgsim") or "<" in path:
        return None
    scope: Any = _trees(str(module))[0]
    for part in path.split("."):
        inner = [each for each in scope.body if getattr(each, "name", None) == part]
        if not inner:
            return None
        scope = inner[-1]
    return scope


@cache
def _trees(module: str) -> list[ast.Module]:
    """The syntax trees of a module and of its stub."""
    file = Path(str(importlib.import_module(module).__file__))
    files = [each for each in (file, file.with_suffix(".pyi")) if each.exists()]
    return [ast.parse(each.read_text(encoding="utf-8")) for each in files]


def _assigned(node: ast.stmt) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {each.id for each in targets if isinstance(each, ast.Name)}


def _string(node: ast.stmt | None) -> str:
    value = node.value if isinstance(node, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _imports(tree: ast.Module, module: str, name: str) -> Iterator[tuple[str, str]]:
    """The modules of lgsim from which a module may import a name, with the name there."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("lgsim") and node.module != module:
            for each in node.names:
                if (each.asname or each.name) == name:
                    yield str(node.module), each.name
                elif each.name == "*" and name in getattr(importlib.import_module(str(node.module)), "__all__", ()):
                    yield str(node.module), name
