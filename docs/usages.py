"""The notebooks that use a public name, read from their code."""

from __future__ import annotations

import ast
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def usages(notebooks: list[Path]) -> dict[int, list[str]]:
    """The notebooks that name a function or class of lgsim, in their order, by its identity.

    Args:
        notebooks: Paths of notebooks.
    """
    found: dict[int, list[str]] = {}
    for notebook in notebooks:
        for value in {id(value): value for value in named(_code(notebook))}.values():
            found.setdefault(id(value), []).append(notebook.stem)
    return found


def named(tree: ast.Module) -> Iterator[Any]:
    """The functions and classes of lgsim that a program names, once for each occurrence."""
    known: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                if each.name.split(".")[0] == "lgsim":
                    module = importlib.import_module(each.name)
                    known[each.asname or "lgsim"] = module if each.asname else importlib.import_module("lgsim")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lgsim":
            module = importlib.import_module(node.module or "")
            known |= {each.asname or each.name: getattr(module, each.name) for each in node.names}
    for node in ast.walk(tree):
        value = _value(node, known)
        if callable(value) and str(getattr(value, "__module__", "")).startswith("lgsim"):
            yield value


def _value(node: ast.AST, known: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, known), node.attr, None)
    return None


def _code(notebook: Path) -> ast.Module:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ast.parse("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"))
