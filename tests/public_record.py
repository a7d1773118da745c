"""The public names of lgsim, and their record.

python -m tests.public_record        writes tests/data/public_names.txt anew
"""

import ast
import importlib
import inspect
import pkgutil
import types
from functools import cache
from pathlib import Path

import lgsim

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "tests" / "data" / "public_names.txt"


@cache
def modules() -> dict[str, types.ModuleType]:
    """Modules that list public names, and those among these names."""
    found = {"lgsim": lgsim}
    for each in pkgutil.walk_packages(lgsim.__path__, "lgsim."):
        if not any(part.startswith("_") for part in each.name.split(".")):
            module = importlib.import_module(each.name)
            if listed(module):
                found[each.name] = module
    for module in list(found.values()):
        for name in listed(module):
            value = getattr(module, name)
            if inspect.ismodule(value) and value.__name__.startswith("lgsim"):
                found.setdefault(value.__name__, value)
    return dict(sorted(found.items()))


def names(module: types.ModuleType) -> tuple[str, ...]:
    """The public names of a module: those that it lists, else its own."""
    own = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    return listed(module) or tuple(
        name for name, value in own.items() if getattr(value, "__module__", None) == module.__name__
    )


@cache
def listed(module: types.ModuleType) -> tuple[str, ...]:
    """The names of a list ``__all__``, or those that a door imports as themselves, ``from x import y as y``.

    A door is a package, or a module that defines nothing.
    """
    if hasattr(module, "__all__"):
        return tuple(module.__all__)
    body = ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body
    if not hasattr(module, "__path__") and not all(isinstance(x, ast.Expr | ast.Import | ast.ImportFrom) for x in body):
        return ()
    found = [name for node in body if isinstance(node, ast.ImportFrom) for name in node.names]
    return tuple(name.name for name in found if name.name == name.asname)


def lines() -> list[str]:
    """The path of each public name."""
    return sorted(f"{home}.{name}" for home, module in modules().items() for name in names(module))


if __name__ == "__main__":
    RECORD.write_text("\n".join(lines()) + "\n", encoding="utf-8")
