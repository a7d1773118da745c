"""Pages of the API, made from lgsim itself: one for each module or section of a module, and a plain text of all names.

Modules are imported and their names are read from them, not from their text: a function that has its module's name,
such as ``lgsim.dynamics.forward_dynamics``, is found as well as any other. A large module has one page a section; the
module's own page is a table of its names.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import definitions
from sources import public_names
from sphinx.ext.napoleon import Config, GoogleDocstring

from lgsim import Method

TASKS = {
    "Groups and integrators API": ["lgsim.lie", "lgsim.actions", "lgsim.integrators"],
    "Models and files API": ["lgsim.multibody", "lgsim.actuators", "lgsim.formats", "lgsim.data"],
    "Dynamics API": ["lgsim.dynamics"],
    "Simulation API": ["lgsim.simulation", "lgsim.view", "lgsim.systems", "lgsim.cli"],
    "Optimization API": ["lgsim.optimize", "lgsim.scenarios"],
    "Identification API": ["lgsim.identify", "lgsim.estimate"],
    "Monte Carlo API": ["lgsim.montecarlo"],
    "Symbolic and programs API": ["lgsim.symbolic", "lgsim.programs"],
}
"""Top modules by task; a module below another one follows it. The overview has the package itself."""

SECTIONS = {
    "lgsim": {
        "groups": ["lgsim.lie"],
        "integration": ["lgsim.integrators"],
        "integration methods": ["lgsim.integrators.methods"],
        "models and files": ["lgsim.multibody", "lgsim.formats"],
        "dynamics": ["lgsim.dynamics"],
        "simulation": ["lgsim.simulation"],
        "compilation": ["lgsim._compile", "lgsim"],
    },
    "lgsim.optimize": {
        "problems": ["lgsim.optimize"],
        "system dynamics": ["lgsim.optimize.dynamics", "lgsim.optimize.euler_dynamics"],
        "costs": ["lgsim.optimize.cost", "lgsim.optimize.standard_costs"],
        "constraints": ["lgsim.optimize.constraints"],
        "solvers": [
            "lgsim.optimize.augmented_lagrangian", "lgsim.optimize.direct_shooting", "lgsim.optimize.ilqr",
            "lgsim.optimize.interior_point",
        ],
        "free time, start and parameters": ["lgsim.optimize.unknowns"],
    },
    "lgsim.identify": {
        "fits": ["lgsim.identify", "lgsim.support"],
        "estimators and sensors": ["lgsim.identify.estimators"],
        "recordings": ["lgsim.identify.recording"],
        "unknown parameters": ["lgsim.identify.unknowns"],
        "posterior": ["lgsim.identify.posterior"],
    },
    "lgsim.montecarlo": {
        "studies": ["lgsim.montecarlo"],
        "distributions": [
            "lgsim.montecarlo.body_distributions", "lgsim.montecarlo.distributions", "lgsim.montecarlo.low_discrepancy",
            "lgsim.montecarlo.processes",
        ],
    },
}  # fmt: skip
"""Sections of large modules by the modules that define their names; the longest beginning of a module's name counts."""

_SETTINGS = Config(
    napoleon_use_param=False, napoleon_use_rtype=False, napoleon_custom_sections=[("Attributes", "params_style")]
)
_PROPERTIES = (property, cached_property)
_LITERAL = re.compile(r"``.+?``|`[^`]+`", re.DOTALL)
_KINDS = {
    "crouch_grossman": "Crouch-Grossman method",
    "CommutatorFree": "Commutator-free method",
    "MuntheKaas": "Munthe-Kaas method",
    "ReducedMuntheKaas": "Munthe-Kaas method",
    "ImplicitMuntheKaas": "Gauss collocation in the Lie algebra",
    "LinearlyImplicit": "Linearly implicit (Rosenbrock) Munthe-Kaas method",
    "Symplectic": "Symplectic method",
    "Variational": "Variational integrator",
}
"""Families of methods by their module or class."""


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
    """Addresses and pages that an entry links to.

    Attributes:
        source: Address of the folder that holds the package.
        notebooks: The notebooks that show a function or class, by its identity, as ``usages`` finds them.
    """

    source: str
    notebooks: Mapping[int, list[str]]


def write(modules: Mapping[str, ModuleType], folder: Path, links: Links) -> None:
    """Write the pages.

    Args:
        modules: The public modules by name.
        folder: Folder of the pages.
        links: Links to the source and to notebooks.

    Raises:
        LookupError: ``TASKS`` or ``SECTIONS`` names a module that is not public, or lacks one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shortest = _shortest(anchors(modules))
    pages = {"index": _index(modules)}
    for task in TASKS:
        pages[file_of(task)] = _task(task, modules)
    for name, module in modules.items():
        pages |= _pages(name, module, modules, shortest, links)
    for stem, lines in pages.items():
        (folder / f"{stem}.rst").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _key(path: str, value: Any) -> Any:
    """The identity of a function or class; of a value, where it is assigned."""
    if callable(value):
        return id(value)
    home, _, name = path.rpartition(".")
    found = definitions.defined(home, name)
    return (found.module, name) if found else path


def _shortest(found: Mapping[str, Any]) -> dict[Any, str]:
    """The path under which a public name is described, by its key."""
    first: dict[Any, str] = {}
    for path, value in sorted(found.items(), key=lambda pair: (pair[0].count("."), pair[0])):
        first.setdefault(_key(path, value), path)
    return first


def summary(path: str, value: Any) -> str:
    """The first sentence of the description of a public name.

    Args:
        path: Its path.
        value: Its value.
    """
    return _first_sentence(text_of(path, value))


def text_of(path: str, value: Any) -> str:
    """The description of a public name: its docstring, or the string below its assignment; of a method also its order.

    Args:
        path: Its path.
        value: Its value.
    """
    if inspect.isclass(value) or _is_function(value):
        return inspect.getdoc(value) or ""
    home, _, name = path.rpartition(".")
    found = definitions.defined(home, name)
    text = found.text if found else ""
    if isinstance(value, Method) and found:
        text = f"{_order(value, found.module)}.\n\n{text}".strip()
    if not text and inspect.cleandoc(value.__doc__ or "") != inspect.cleandoc(type(value).__doc__ or ""):
        text = inspect.cleandoc(value.__doc__)
    return text


def _order(method: Method, module: str) -> str:
    """Family, order and stages of a method, from its coefficients."""
    tableau = method.tableau
    kind = _KINDS.get(module.rpartition(".")[2], _KINDS[type(method).__name__])
    text = f"{kind} of order {method.order}"
    stages = getattr(tableau, "stages", None)
    if stages is not None:
        count = stages if isinstance(stages, int) else len(stages)
        text += f" with {count} stage{'s' if count > 1 else ''}"
    elif hasattr(tableau, "substeps"):
        text += f" with {len(tableau.substeps)} substep{'s' if len(tableau.substeps) > 1 else ''}"
    elif len(getattr(tableau, "fractions", ())) > 1:
        text += f" with {len(tableau.fractions)} substeps"
    elif hasattr(tableau, "nodes"):
        text += f" with {len(tableau.nodes)} nodes a step"
    if method.embedded_order is not None:
        text += f" and an embedded estimate of order {method.embedded_order}"
    return text


def file_of(title: str) -> str:
    """The name of the page of a task or section, without ending.

    Args:
        title: Its title.
    """
    return re.sub(r"\W+", "-", title.lower())


def _index(modules: Mapping[str, ModuleType]) -> Iterator[str]:
    tops = [name for each in TASKS.values() for name in each]
    if missing := [name for name in [*tops, *SECTIONS] if name not in modules]:
        raise LookupError(f"api_pages: TASKS and SECTIONS name modules that are not public: {missing}")
    if rest := [name for name in modules if name != "lgsim" and not _top(name, tops)]:
        raise LookupError(f"api_pages.TASKS has no task for {rest}")
    yield from _title("API overview", "=")
    yield ""
    yield "All public modules by task. Notation of shapes: :doc:`/docs/notation`. Stability of names:"
    yield ":doc:`/docs/versioning`. All names on one page of plain text: `api.txt <../api.txt>`__."
    yield ""
    yield "The names that most programs need are names of :doc:`lgsim` itself."
    for task in TASKS:
        yield ""
        yield from _title(f":doc:`{file_of(task)}`", "-")
        yield ""
        yield from _module_table(task, modules)
    yield from _toctree(["lgsim"])


def _task(task: str, modules: Mapping[str, ModuleType]) -> Iterator[str]:
    yield from _title(task, "=")
    yield ""
    yield from _module_table(task, modules)
    yield from _toctree(TASKS[task])


def _module_table(task: str, modules: Mapping[str, ModuleType]) -> Iterator[str]:
    tops = [name for each in TASKS.values() for name in each]
    inner = [name for top in TASKS[task] for name in modules if _top(name, tops) == top]
    return _table((f":doc:`{name}`", _first_sentence(inspect.getdoc(modules[name]) or "")) for name in inner)


def _top(name: str, tops: list[str]) -> str | None:
    """The nearest module of TASKS."""
    parents = [each for each in tops if name == each or name.startswith(each + ".")]
    return max(parents, key=len, default=None)


def _pages(
    name: str,
    module: ModuleType,
    modules: Mapping[str, ModuleType],
    shortest: Mapping[Any, str],
    links: Links,
) -> dict[str, Iterator[str]]:
    """The page of a module and those of its sections, by their files."""
    public = {each: getattr(module, each) for each in public_names(module)}
    inner = {each: value for each, value in public.items() if inspect.ismodule(value)}
    outer = {each: value for each, value in sorted(public.items()) if not inspect.ismodule(value)}
    parts: dict[str, dict[str, Any]] = {}
    for each, value in outer.items():
        parts.setdefault(_section(name, each, value), {})[each] = value
    order = [part for part in SECTIONS.get(name, {"": []}) if part in parts]
    below = [each for each in modules if each.rpartition(".")[0] == name and name != "lgsim"]

    def main() -> Iterator[str]:
        yield from _title(name, "=")
        yield from ("", f".. py:module:: {name}", "")
        yield from description(inspect.getdoc(module) or "")
        yield ""
        if inner:
            yield "Modules: " + ", ".join(_module_link(value) for value in inner.values())
            yield ""
        elsewhere = [
            f"{name}.{each}"
            for part in order
            for each, value in parts[part].items()
            if part or _described(f"{name}.{each}", value, shortest) != f"{name}.{each}"
        ]
        if elsewhere:
            spans = "".join(f'<span id="{each}"></span>' for each in elsewhere)
            yield from (".. raw:: html", "", f"   {spans}", "")
        for part in order:
            if part:
                yield from _title(f":doc:`{part.capitalize()} <{_part_file(name, part)}>`", "-")
                yield ""
            yield from _table(
                (
                    f":py:obj:`{each} <{_described(f'{name}.{each}', value, shortest)}>`",
                    summary(f"{name}.{each}", value),
                )
                for each, value in parts[part].items()
            )
            yield ""
        if "" in parts:
            yield from _entries(name, parts[""], shortest, links)
        yield from _toctree([*(_part_file(name, part) for part in order if part), *below])

    def section(part: str) -> Iterator[str]:
        yield from _title(f"{name}: {part}", "=")
        yield from ("", f".. py:currentmodule:: {name}", "")
        yield f"Section of :py:mod:`{name}`."
        yield from _entries(name, parts[part], shortest, links)

    return {name: main()} | {_part_file(name, part): section(part) for part in order if part}


def _part_file(name: str, part: str) -> str:
    return f"{name}-{file_of(part)}"


def _section(module: str, name: str, value: Any) -> str:
    """The section of a module that describes a name; "" for a module without sections."""
    if module not in SECTIONS:
        return ""
    home = getattr(value, "__module__", None) if callable(value) else None
    found = definitions.defined(module, name)
    home = home or (found.module if found else module)
    fits = {
        part: max((len(each) for each in starts if home == each or home.startswith(each + ".")), default=0)
        for part, starts in SECTIONS[module].items()
    }
    part = max(fits, key=lambda each: fits[each])
    if not fits[part]:
        raise LookupError(f"api_pages.SECTIONS[{module!r}] has no section for {name}, which {home} defines")
    return part


def _entries(name: str, public: Mapping[str, Any], shortest: Mapping[Any, str], links: Links) -> Iterator[str]:
    """The descriptions of names; a name that another path describes has its row in the table only."""
    for each, value in public.items():
        if _described(f"{name}.{each}", value, shortest) == f"{name}.{each}":
            yield ""
            yield from _entry(f"{name}.{each}", value, shortest, links)


def _described(path: str, value: Any, shortest: Mapping[Any, str]) -> str:
    """The path under which a name is described: it may have several."""
    return shortest.get(_key(path, value), path)


def _module_link(module: ModuleType) -> str:
    return f":py:mod:`{module.__name__}`" if module.__name__.startswith("lgsim") else f"``{module.__name__}``"


def _entry(path: str, value: Any, shortest: Mapping[Any, str], links: Links) -> Iterator[str]:
    name = path.rpartition(".")[2]
    kind = "class" if inspect.isclass(value) else "function" if _is_function(value) else "data"
    yield f".. py:{kind}:: {name}{'' if kind == 'data' else signature(value, shortest)}"
    yield ""
    body = list(description(text_of(path, value)))
    own = _source(value, links.source)
    found = [f"`Source <{own}>`__"] if own else []
    found += [f":doc:`{_label(stem)} </notebooks/{stem}>`" for stem in links.notebooks.get(id(value), ())]
    if found:
        body += ["", " | ".join(found)]
    yield from textwrap.indent("\n".join(body), "   ").splitlines()
    if inspect.isclass(value):
        own_members, inherited = _members(value)
        for each, member in own_members:
            yield ""
            yield from _member(f"{name}.{each}", member, shortest)
        if inherited:
            yield from ("", "   Inherited or overridden:", "")
            rows = ((f"``{_short(each, member)}``", _first_sentence(_doc(member))) for each, member in inherited)
            yield from textwrap.indent("\n".join(_table(rows)), "   ").splitlines()


def _label(stem: str) -> str:
    """The label of a notebook: ``Notebook 4, simulate``."""
    number, _, title = stem.partition("_")
    return f"Notebook {int(number)}, {title.replace('_', ' ')}"


def _member(path: str, member: Any, shortest: Mapping[Any, str]) -> Iterator[str]:
    plain = _plain_member(member)
    if isinstance(plain, _PROPERTIES):
        yield f"   .. py:property:: {path}"
    else:
        yield f"   .. py:method:: {path}{signature(plain, shortest, method=not isinstance(member, staticmethod))}"
    yield ""
    yield from textwrap.indent("\n".join(description(_doc(member))), "      ").splitlines()


def _plain_member(member: Any) -> Any:
    return member.__func__ if isinstance(member, staticmethod | classmethod) else member


def _doc(member: Any) -> str:
    return inspect.getdoc(_plain_member(member)) or ""


def _short(name: str, member: Any) -> str:
    """A method with the names of its arguments; a property by its name."""
    plain = _plain_member(member)
    if isinstance(plain, _PROPERTIES):
        return name
    given = list(inspect.signature(plain).parameters)
    return f"{name}({', '.join(given if isinstance(member, staticmethod) else given[1:])})"


def _members(cls: type) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    """Public methods and properties of lgsim that a class documents itself, and the others that it has."""
    own, other = [], {}
    for base in reversed(cls.__mro__):
        if base.__module__.split(".")[0] == "lgsim":
            for name, member in vars(base).items():
                plain = _plain_member(member)
                if not name.startswith("_") and (isinstance(plain, _PROPERTIES) or _is_function(plain)):
                    other[name] = member if plain.__doc__ or name not in other else other[name]
                    if base is cls and plain.__doc__:
                        own.append((name, member))
    named = {name for name, _ in own}
    return own, [(name, member) for name, member in other.items() if name not in named]


def _is_function(value: Any) -> bool:
    return inspect.isroutine(value) or hasattr(value, "__wrapped__")


def signature(value: Any, shortest: Mapping[Any, str], method: bool = False) -> str:
    """The arguments of a function or a class, with their types as they are written; empty if there are none to read.

    Args:
        value: The function or the class.
        shortest: The path of a public name by its identity, for links.
        method: True if the first argument is the object itself.
    """
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    known, written = _globals(value), definitions.annotations(value)

    def shown(name: str, annotation: Any) -> Any:
        if annotation is inspect.Parameter.empty:
            return annotation
        text = written.get(name, annotation)
        if isinstance(text, str) and text.startswith("Annotated["):
            text = ast.unparse(ast.parse(text, mode="eval").body.slice.elts[0])  # the rest is for the shell
        return _Text(_linked(text, known, shortest)) if isinstance(text, str) else text

    parameters = [
        each.replace(default=_default(each.default), annotation=shown(each.name, each.annotation))
        for each in list(found.parameters.values())[1 if method else 0 :]
    ]
    result = inspect.Signature.empty if inspect.isclass(value) else shown("return", found.return_annotation)
    text = str(found.replace(parameters=parameters, return_annotation=result))
    return " ".join(text.split())


def _globals(value: Any) -> Mapping[str, Any]:
    """The names that annotations of a function or a class may use."""
    plain = inspect.unwrap(value)
    if inspect.isclass(plain):
        return vars(inspect.getmodule(plain) or inspect)
    return getattr(plain, "__globals__", {})


def _linked(annotation: str, known: Mapping[str, Any], shortest: Mapping[Any, str]) -> str:
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


def plain_text(modules: Mapping[str, ModuleType]) -> str:
    """The whole public API as plain text: every name once, with its arguments and its description.

    Args:
        modules: The public modules by name.
    """
    shortest = _shortest(anchors(modules))
    return "\n".join(_plain_lines(modules, shortest)) + "\n"


def _plain_lines(modules: Mapping[str, ModuleType], shortest: Mapping[Any, str]) -> Iterator[str]:
    yield from _title("Public API of lgsim", "=")
    for home, module in modules.items():
        yield from ("", "", *_title(home, "="), "", inspect.getdoc(module) or "")
        for name in sorted(public_names(module)):
            value, path = getattr(module, name), f"{home}.{name}"
            if inspect.ismodule(value) or _described(path, value, shortest) != path:
                continue
            arguments = signature(value, {}) if callable(value) else ""
            yield from ("", f"{path}{arguments}")
            yield from textwrap.indent(text_of(path, value), "    ").splitlines()
            if inspect.isclass(value):
                own, inherited = _members(value)
                for each, member in own:
                    plain = _plain_member(member)
                    is_property = isinstance(plain, _PROPERTIES)
                    given = "" if is_property else signature(plain, {}, method=not isinstance(member, staticmethod))
                    yield from ("", f"    .{each}{given}")
                    yield from textwrap.indent(_doc(member), "        ").splitlines()
                if inherited:
                    yield from ("", "    Inherited or overridden: " + ", ".join(_short(*each) for each in inherited))


def description(text: str) -> Iterator[str]:
    """A docstring as text of Sphinx: its sections by napoleon, and nothing in it a mark that was not meant as one."""
    yield from GoogleDocstring(_escaped(inspect.cleandoc(text)), _SETTINGS).lines()


def _escaped(text: str) -> str:
    # a literal may run over the end of a line, so that whole paragraphs are read
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


def _toctree(pages: Iterable[str]) -> Iterator[str]:
    pages = list(pages)
    if pages:
        yield from ("", ".. toctree::", "   :hidden:", "", *(f"   {each}" for each in pages))


def _title(text: str, mark: str) -> Iterator[str]:
    yield text
    yield mark * len(text)
