"""What lgsim promises, as text: every public name, and how it is called.

    python -m tests.public_record        draws tests/data/public_names.txt anew

A name that came, went or changed since the record was drawn must stand in the CHANGELOG under Unreleased, or the record
is not drawn. The text depends on lgsim alone: names of arguments, their kinds, defaults that are plain values; neither
types nor what other packages add.
"""

import dataclasses
import functools
import importlib
import inspect
import pkgutil
import re
import sys
import types
from collections.abc import Iterable, Iterator
from pathlib import Path

import lgsim

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "tests" / "data" / "public_names.txt"
HEAD = "# What lgsim promises (docs/versioning.md), drawn by: make public-names\n"
PLAIN = (bool, int, float, str, type(None))


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
    """One line for each public name and each public member of a class, described where its path is shortest."""
    found = modules()
    paths = [(f"{home}.{name}", getattr(module, name)) for home, module in found.items() for name in names(module)]
    first: dict[int, str] = {}
    text = []
    for path, value in sorted(paths, key=lambda pair: (pair[0].count("."), pair[0])):
        if inspect.ismodule(value):
            text.append(f"{path}: module")
        elif callable(value) and first.setdefault(id(value), path) != path:
            text.append(f"{path} = {first[id(value)]}")
        elif inspect.isclass(value):
            text += _of_class(path, value)
        elif _ours(value) and (inspect.isroutine(value) or _wraps(value)):
            text.append(path + _signature(value))
        else:
            text += _of_value(path, value)
    return sorted(text)


def changed(before: Iterable[str], now: Iterable[str]) -> list[str]:
    """The paths whose lines came, went or changed."""
    return sorted({re.split(r"[(:= ]", line)[0] for line in {*before} ^ {*now} if not line.startswith("#")})


def untold(paths: Iterable[str], changelog: str) -> list[str]:
    """Those of the paths whose last word does not stand under Unreleased."""
    unreleased = re.split(r"^## ", changelog, flags=re.MULTILINE)[1]
    assert unreleased.startswith("[Unreleased]"), "the CHANGELOG begins with another section than Unreleased"
    words = set(re.findall(r"\w+", unreleased))
    return [path for path in paths if path.rpartition(".")[2] not in words]


def draw() -> None:
    """Write the record, unless the CHANGELOG keeps silent about a change of it."""
    now = lines()
    if RECORD.exists():
        before = RECORD.read_text(encoding="utf-8").splitlines()
        silent = untold(changed(before, now), (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
        if silent:
            sys.exit("changed, and CHANGELOG.md does not say so under Unreleased:\n" + "\n".join(silent))
    RECORD.write_text(HEAD + "\n".join(now) + "\n", encoding="utf-8")


def _ours(value) -> bool:
    """Whether a function or a class was written in lgsim; what JAX makes is another thing in another version of it."""
    return str(getattr(value, "__module__", "")).split(".")[0] == "lgsim"


def _wraps(value) -> bool:
    """Whether a callable stands for a function, as what `jax.jit` returns does."""
    return callable(value) and hasattr(value, "__wrapped__")


def _signature(function, *, method: bool = False) -> str:
    """The arguments with their kinds, of a method without the first one."""
    arguments = list(inspect.signature(function).parameters.values())[1 if method else 0 :]
    words, kinds = [], inspect.Parameter
    for i, each in enumerate(arguments):
        if each.kind is kinds.KEYWORD_ONLY and not any(
            other.kind in (kinds.KEYWORD_ONLY, kinds.VAR_POSITIONAL) for other in arguments[:i]
        ):
            words.append("*")
        star = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(each.kind, "")
        words.append(star + each.name + ("" if each.default is kinds.empty else f"={_default(each.default)}"))
        if each.kind is kinds.POSITIONAL_ONLY and (
            i + 1 == len(arguments) or arguments[i + 1].kind is not kinds.POSITIONAL_ONLY
        ):
            words.append("/")
    return f"({', '.join(words)})"


def _default(value) -> str:
    return repr(value) if type(value) in PLAIN else "..."


def _of_class(path: str, cls: type) -> Iterator[str]:
    own = [base for base in cls.__mro__ if base.__module__.split(".")[0] == "lgsim"]
    yield f"{path}: class"
    if dataclasses.is_dataclass(cls) and not any(_written(base) for base in own):
        yield f"{path}{_fields(cls)}"
    else:
        for base in cls.__mro__:
            if "__init__" in vars(base):
                if base in own:
                    yield path + _signature(vars(base)["__init__"], method=True)
                break
    members: dict[str, object] = {}
    for base in own:
        for name, value in vars(base).items():
            members.setdefault(name, value)
    for name, value in members.items():
        if name.startswith("_"):
            continue
        if isinstance(value, staticmethod | classmethod):
            yield f"{path}.{name}{_signature(value.__func__, method=isinstance(value, classmethod))}"
        elif inspect.isfunction(value) or _wraps(value) or _bound(value):
            yield f"{path}.{name}{_signature(_bound(value) or value, method=True)}"
        elif isinstance(value, property | functools.cached_property):
            yield f"{path}.{name}: property"


def _bound(value):
    """The function in what equinox wraps around a method."""
    return getattr(value, "method", None) if type(value).__module__.split(".")[0] == "equinox" else None


def _written(cls: type) -> bool:
    """Whether a class says by hand how it is made, where a dataclass has it made from its fields."""
    made = vars(cls).get("__init__")
    made = inspect.unwrap(made) if made is not None else None
    code = getattr(made, "__code__", None)
    return code is not None and Path(code.co_filename).is_relative_to(Path(lgsim.__file__).parent)


def _fields(cls: type) -> str:
    words, missing = [], dataclasses.MISSING
    by_name = False
    for each in (each for each in dataclasses.fields(cls) if each.init):
        if each.kw_only and not by_name:
            words.append("*")
            by_name = True
        optional = each.default is not missing or each.default_factory is not missing
        default = _default(each.default) if each.default is not missing else "..."
        words.append(f"{each.name}={default}" if optional else each.name)
    return f"({', '.join(words)})"


def _of_value(path: str, value) -> Iterator[str]:
    """Codes and lists of names are promised with what they hold, other values by their kind alone."""
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        yield f"{path}: names {', '.join(sorted(value))}"
    elif isinstance(value, dict | tuple | list) and all(isinstance(each, PLAIN) for each in _flat(value)):
        yield f"{path}: {value!r}"
    else:
        yield f"{path}: {type(value).__name__ if _ours(type(value)) else 'value'}"


def _flat(value):
    return [*value.keys(), *value.values()] if isinstance(value, dict) else value


if __name__ == "__main__":
    draw()
