"""The public names of lgsim, and their record.

python -m tests.public_record        writes tests/data/public_names.txt anew
"""

import importlib
import inspect
import pkgutil
import types
from pathlib import Path

import lgsim

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "tests" / "data" / "public_names.txt"


def modules() -> dict[str, types.ModuleType]:
    """Modules with a list ``__all__``, and those that such a list names."""
    found = {"lgsim": lgsim}
    for each in pkgutil.walk_packages(lgsim.__path__, "lgsim."):
        if not any(part.startswith("_") for part in each.name.split(".")):
            module = importlib.import_module(each.name)
            if hasattr(module, "__all__"):
                found[each.name] = module
    for module in list(found.values()):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.ismodule(value) and value.__name__.startswith("lgsim"):
                found.setdefault(value.__name__, value)
    return dict(sorted(found.items()))


def names(module: types.ModuleType) -> list[str]:
    """The public names of a module: those of its list, else its own."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    return [name for name, value in own.items() if getattr(value, "__module__", None) == module.__name__]


def lines() -> list[str]:
    """The path of each public name."""
    return sorted(f"{home}.{name}" for home, module in modules().items() for name in names(module))


if __name__ == "__main__":
    RECORD.write_text("\n".join(lines()) + "\n", encoding="utf-8")
