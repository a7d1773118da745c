"""Pages of the API, made from lgsim itself: one for each module, and an anchor for every public name.

Modules are imported and their names looked at, not their text: a function that has its module's name, such as
``lgsim.dynamics.forward_dynamics``, is found as any other one.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from sources import public_names
from sphinx.ext.napoleon import Config, GoogleDocstring

TASKS = {
    "Start here": ["lgsim", "lgsim.data", "lgsim.systems"],
    "Groups and manifolds": ["lgsim.lie", "lgsim.actions"],
    "Integration": ["lgsim.integrators"],
    "Machines": ["lgsim.formats", "lgsim.multibody", "lgsim.actuators", "lgsim.formats.interop"],
    "Dynamics": ["lgsim.dynamics"],
    "Simulation": ["lgsim.simulation", "lgsim.view", "lgsim.view.reports", "lgsim.scenarios"],
    "Optimization": ["lgsim.optimize"],
    "Identification": ["lgsim.identify"],
    "Monte Carlo": ["lgsim.montecarlo"],
    "Formulas and programs": ["lgsim.symbolic", "lgsim.programs"],
    "The command": ["lgsim.cli"],
}
"""Modules by what one wants to do; those below them follow on their own."""

_SETTINGS = Config(
    napoleon_use_param=False, napoleon_use_rtype=False, napoleon_custom_sections=[("Attributes", "params_style")]
)
_LITERAL = re.compile(r"``.+?``|`[^`]+`", re.DOTALL)


def anchors(modules: Mapping[str, ModuleType]) -> dict[str, Any]:
    """Every public name by its path, which is its anchor."""
    found = {}
    for home, module in modules.items():
        for name in public_names(module):
            value = getattr(module, name)
            if not inspect.ismodule(value):
                found[f"{home}.{name}"] = value
    return found


class Links(NamedTuple):
    """Where a name leads on to.

    Attributes:
        source: Address of the folder that holds the package.
        notebooks: By identity of a function or class the notebooks that show it, as ``usages`` finds them.
    """

    source: str
    notebooks: Mapping[int, list[str]]


def write(modules: Mapping[str, ModuleType], folder: Path, links: Links) -> None:
    """Write the pages.

    Args:
        modules: The public modules by name.
        folder: Where to.
        links: To the text of a name and to notebooks.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shortest = _shortest(anchors(modules))
    for name, module in modules.items():
        (folder / f"{name}.rst").write_text("\n".join(_page(name, module, shortest, links)) + "\n", encoding="utf-8")
    (folder / "index.rst").write_text("\n".join(_index(modules)) + "\n", encoding="utf-8")


def _shortest(found: Mapping[str, Any]) -> dict[int, str]:
    """By identity of a function or class the path where it is described."""
    first: dict[int, str] = {}
    for path, value in sorted(found.items(), key=lambda pair: (pair[0].count("."), pair[0])):
        if callable(value):
            first.setdefault(id(value), path)
    return first


def _index(modules: Mapping[str, ModuleType]) -> Iterator[str]:
    yield from _title("The API, by task", "=")
    yield ""
    yield "Shapes are written as in :doc:`/docs/notation`. What is promised of a name: :doc:`/docs/versioning`."
    placed = [name for each in TASKS.values() for name in each]
    missing = [name for name in placed if name not in modules]
    if missing:
        raise LookupError(f"api_pages.TASKS names modules that are not public: {missing}")
    for task, tops in TASKS.items():
        yield ""
        yield from _title(task, "-")
        yield ""
        below = [name for name in modules if any(_belongs(name, top, placed) for top in tops)]
        yield from _table(
            (f":doc:`{name}`", _first_sentence(inspect.getdoc(modules[name]) or "")) for name in sorted(below)
        )
    rest = [name for name in modules if not any(_belongs(name, top, placed) for top in placed)]
    if rest:
        raise LookupError(f"api_pages.TASKS has no task for {rest}")
    yield from ("", ".. toctree::", "   :hidden:", "")
    yield from (f"   {name}" for name in modules)


def _belongs(name: str, top: str, placed: list[str]) -> bool:
    """Whether a module's nearest placed parent is this one; the package itself has no others below it."""
    parents = [each for each in placed if name == each or (each != "lgsim" and name.startswith(each + "."))]
    return bool(parents) and max(parents, key=len) == top


def _page(name: str, module: ModuleType, shortest: Mapping[int, str], links: Links) -> Iterator[str]:
    yield from _title(name, "=")
    yield from ("", f".. py:module:: {name}", "")
    yield from description(inspect.getdoc(module) or "")
    yield ""
    public = {each: getattr(module, each) for each in public_names(module)}
    inner = {each: value for each, value in public.items() if inspect.ismodule(value)}
    outer = {each: value for each, value in public.items() if not inspect.ismodule(value)}
    if inner:
        yield "Modules: " + ", ".join(_module_link(value) for value in inner.values())
        yield ""
    yield from _table(
        (f":py:obj:`{each} <{_described(f'{name}.{each}', value, shortest)}>`", _first_sentence(_own_text(value)))
        for each, value in sorted(outer.items())
    )
    for each, value in sorted(outer.items()):
        yield ""
        yield from _entry(f"{name}.{each}", value, shortest, links)


def _described(path: str, value: Any, shortest: Mapping[int, str]) -> str:
    """The path under which a name is described: it may have several."""
    return shortest.get(id(value), path)


def _module_link(module: ModuleType) -> str:
    return f":py:mod:`{module.__name__}`" if module.__name__.startswith("lgsim") else f"``{module.__name__}``"


def _entry(path: str, value: Any, shortest: Mapping[int, str], links: Links) -> Iterator[str]:
    described, name = _described(path, value, shortest), path.rpartition(".")[2]
    if described != path:
        yield from (".. raw:: html", "", f'   <span id="{path}"></span>', "")
        yield f"``{name}`` is :py:obj:`{described}`."
        return
    kind = "class" if inspect.isclass(value) else "function" if _is_function(value) else "data"
    yield f".. py:{kind}:: {name}{'' if kind == 'data' else signature(value, shortest)}"
    yield ""
    body = list(description(_own_text(value)))
    own = _source(value, links.source)
    found = [f"`Source <{own}>`__"] if own else []
    found += [f":doc:`{_told(stem)} </notebooks/{stem}>`" for stem in links.notebooks.get(id(value), ())]
    if found:
        body += ["", " | ".join(found)]
    yield from textwrap.indent("\n".join(body), "   ").splitlines()
    if inspect.isclass(value):
        for each, member in _members(value):
            yield ""
            yield from _member(f"{name}.{each}", member, shortest)


def _told(stem: str) -> str:
    """A notebook in words: ``Notebook 4, simulate``."""
    number, _, title = stem.partition("_")
    return f"Notebook {int(number)}, {title.replace('_', ' ')}"


def _member(path: str, member: Any, shortest: Mapping[int, str]) -> Iterator[str]:
    plain = member.__func__ if isinstance(member, staticmethod | classmethod) else member
    if isinstance(plain, property):
        yield f"   .. py:property:: {path}"
    else:
        yield f"   .. py:method:: {path}{signature(plain, shortest, method=not isinstance(member, staticmethod))}"
    yield ""
    yield from textwrap.indent("\n".join(description(inspect.getdoc(plain) or "")), "      ").splitlines()


def _members(cls: type) -> list[tuple[str, Any]]:
    """Public methods and properties that lgsim wrote a text for, in the order of the class."""
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__.split(".")[0] == "lgsim":
            for name, member in vars(base).items():
                plain = member.__func__ if isinstance(member, staticmethod | classmethod) else member
                if not name.startswith("_") and (isinstance(plain, property) or _is_function(plain)):
                    found[name] = member
    return list(found.items())


def _is_function(value: Any) -> bool:
    return inspect.isroutine(value) or hasattr(value, "__wrapped__")


def signature(value: Any, shortest: Mapping[int, str], method: bool = False) -> str:
    """The arguments of a function or a class, with their types as they are written; empty where there are none to read.

    Args:
        value: The function or the class.
        shortest: By identity of a public name its path, for links.
        method: Whether the first argument is the object itself.
    """
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    known = _globals(value)

    def shown(annotation: Any) -> Any:
        if isinstance(annotation, str) and annotation.startswith("Annotated["):
            annotation = ast.unparse(ast.parse(annotation, mode="eval").body.slice.elts[0])  # the rest is for the shell
        return _Text(_linked(annotation, known, shortest)) if isinstance(annotation, str) else annotation

    parameters = [
        each.replace(default=_default(each.default), annotation=shown(each.annotation))
        for each in list(found.parameters.values())[1 if method else 0 :]
    ]
    text = str(found.replace(parameters=parameters, return_annotation=shown(found.return_annotation)))
    return " ".join(text.split())


def _globals(value: Any) -> Mapping[str, Any]:
    """The names that annotations of a function or a class may use."""
    plain = inspect.unwrap(value)
    if inspect.isclass(plain):
        return vars(inspect.getmodule(plain) or inspect)
    return getattr(plain, "__globals__", {})


def _linked(annotation: str, known: Mapping[str, Any], shortest: Mapping[int, str]) -> str:
    """An annotation whose names of lgsim are whole paths; a shape, which is a string in it, stays as it is."""

    def whole(found: re.Match) -> str:
        if found[0].startswith(('"', "'")):
            return found[0]
        value = known.get(found[0])
        if inspect.isclass(value) and value.__module__.startswith("lgsim."):
            # a class that is not public has no page, and another one may have its name
            return shortest.get(id(value), f"{value.__module__}.{value.__qualname__}")
        return shortest.get(id(value), found[0])

    return re.sub(r"\"[^\"]*\"|'[^']*'|[A-Za-z_]\w*", whole, annotation)


class _Text:
    """A default as it is shown."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _default(value: Any) -> Any:
    if value is inspect.Parameter.empty or type(value) in (bool, int, float, type(None)):
        return value
    if isinstance(value, str):
        return _Text(f'"{value}"')
    return _Text("...")


def _own_text(value: Any) -> str:
    """The docstring, unless it is that of the type of a value."""
    if inspect.isclass(value) or _is_function(value):
        return inspect.getdoc(value) or ""
    text = getattr(value, "__doc__", None) or ""
    return "" if text == (type(value).__doc__ or "") else inspect.cleandoc(text)


def _source(value: Any, source: str) -> str | None:
    plain = inspect.unwrap(value) if callable(value) else value
    try:
        file, line = inspect.getsourcefile(plain), inspect.getsourcelines(plain)[1]
    except (TypeError, OSError):
        return None
    parts = Path(file or "").parts
    if "lgsim" not in parts:
        return None
    last = len(parts) - 1 - parts[::-1].index("lgsim")
    return f"{source}/{'/'.join(parts[last:])}#L{line}"


def description(text: str) -> Iterator[str]:
    """A docstring as text of Sphinx: its sections by napoleon, and nothing in it a mark that was not meant as one."""
    yield from GoogleDocstring(_escaped(inspect.cleandoc(text)), _SETTINGS).lines()


def _escaped(text: str) -> str:
    # a literal may run over the end of a line, so that whole paragraphs are looked at
    return "\n".join(_paragraphs(text.splitlines()))


def _paragraphs(lines: list[str]) -> Iterator[str]:
    literal, held = None, []
    for line in [*lines, ""]:
        indent = len(line) - len(line.lstrip())
        if literal is not None and (not line.strip() or indent > literal):
            yield line
            continue
        literal = None
        if line.strip():
            held.append(line)
            if line.rstrip().endswith("::"):
                yield from _marked("\n".join(held)).split("\n")
                held, literal = [], indent
            continue
        if held:
            yield from _marked("\n".join(held)).split("\n")
            held = []
        yield ""


def _marked(text: str) -> str:
    """Marks outside of literals as plain letters."""
    found, last = [], 0
    for each in _LITERAL.finditer(text):
        literal = each[0] if each[0].startswith("``") else f"`{each[0]}`"
        found += [_plain(text[last : each.start()]), literal]
        last = each.end()
    return "".join([*found, _plain(text[last:])])


def _plain(text: str) -> str:
    text = re.sub(r"([|`]|(?<!^)(?<!\n)\*)", r"\\\1", text)
    return re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", text)


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    end = re.search(r"\.(?= [A-Z`]|$)|:$|; ", paragraph)
    return _marked(paragraph[: end.end()] if end else paragraph).rstrip(":; ")


def _table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    rows = list(rows)
    if not rows:
        return
    yield from (".. list-table::", "   :widths: 30 70", "")
    for name, text in rows:
        yield f"   * - {name}"
        yield f"     - {text}"


def _title(text: str, mark: str) -> Iterator[str]:
    yield text
    yield mark * len(text)
