"""Which public names of a package lack a docstring, and whose arguments it tells otherwise, from the syntax trees.

A method is documented, as for `help`, if a base class of the package documents a method of that name.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.syntax import below, walk

Trees = Mapping[str, ast.Module]
# for each file, where a name that it imports from the package was written: (file, name there)
Origins = Mapping[str, Mapping[str, tuple[str, str]]]


def undocumented(trees: Trees, origins: Origins) -> Iterator[str]:
    """One line for each public module, class, function and method without documentation."""
    for name, tree in trees.items():
        if ast.get_docstring(tree) is None:
            yield f"{name}:1: the module is undocumented"
        if Path(name).stem == "__init__" or not Path(name).stem.startswith("_"):
            yield from _in(tree, name, "", trees, origins)


def misdescribed(trees: Trees) -> Iterator[str]:
    """One line for each docstring that describes an argument that is none, or several in one entry, or out of order.

    An argument whose name and type say all needs no entry.
    """
    for name, tree in trees.items():
        for parent in walk(tree):
            for node in below(parent):
                if isinstance(node, ast.ClassDef):
                    init = next((x for x in node.body if getattr(x, "name", "") == "__init__"), None)
                    yield from _compared(name, node, "Args", _fields(node) if init is None else _arguments(init, node))
                    yield from _compared(name, node, "Attributes", None)
                elif isinstance(node, ast.FunctionDef):
                    yield from _compared(name, node, "Args", _arguments(node, parent))


def _compared(name, node, section, wanted):
    found = _entries(ast.get_docstring(node) or "", section)
    several = [each for each in found or () if "," in each]
    if several:
        yield f"{name}:{node.lineno}: {node.name}: one line each for {several[0]}"
    elif found is not None and wanted is not None and found != [each for each in wanted if each in found]:
        yield f"{name}:{node.lineno}: {node.name} describes {', '.join(found)} and takes {', '.join(wanted)}"


def _entries(text, section):
    """What is described in a section of a docstring, or None if it has no such section."""
    parts = re.split(rf"^{section}:\n", text, maxsplit=1, flags=re.MULTILINE)
    if len(parts) == 1:
        return None
    body = re.split(r"^\S", parts[1], maxsplit=1, flags=re.MULTILINE)[0]
    return [each.replace("*", "") for each in re.findall(r"^ {4}(\*{0,2}\w+(?:, \*{0,2}\w+)*):", body, re.MULTILINE)]


def _arguments(node, owner):
    own, given = node.args, [*node.args.posonlyargs, *node.args.args]
    static = any(getattr(each, "id", "") == "staticmethod" for each in node.decorator_list)
    given = given[1:] if isinstance(owner, ast.ClassDef) and not static else given
    return [each.arg for each in (*given, own.vararg, *own.kwonlyargs, own.kwarg) if each is not None]


def _fields(node):
    return [each.target.id for each in node.body if isinstance(each, ast.AnnAssign)]


def _in(parent, name, prefix, trees, origins):
    for node in parent.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        inherited = isinstance(parent, ast.ClassDef) and _inherits(node.name, parent, name, trees, origins)
        if ast.get_docstring(node) is None and not inherited and not _documented_elsewhere(node):
            yield f"{name}:{node.lineno}: {prefix}{node.name} is undocumented"
        if isinstance(node, ast.ClassDef):
            yield from _in(node, name, f"{prefix}{node.name}.", trees, origins)


def _inherits(method, owner, name, trees, origins):
    """Whether a base of the class `owner`, written in the file `name`, documents `method`."""
    for base in owner.bases:
        base = base.value if isinstance(base, ast.Subscript) else base
        found = _find_class(ast.unparse(base), name, trees, origins)
        if found is not None:
            file, node = found
            own = (inner for inner in node.body if getattr(inner, "name", None) == method)
            if any(ast.get_docstring(inner) for inner in own) or _inherits(method, node, file, trees, origins):
                return True
    return False


def _find_class(dotted, name, trees, origins):
    """(file, node) of the class that `dotted` means in the file `name`, or None outside the package."""
    first, _, rest = dotted.partition(".")
    if not rest:
        for node in trees[name].body:
            if isinstance(node, ast.ClassDef) and node.name == first:
                return name, node
    if first not in origins[name]:
        return None
    file, original = origins[name][first]
    remaining = ".".join(filter(None, [original, rest]))
    return _find_class(remaining, file, trees, origins) if remaining else None


def _documented_elsewhere(node):
    """An overload, an override that says so, or a property's setter carries no docstring of its own."""
    names = {getattr(d, "attr", getattr(d, "id", "")) for d in node.decorator_list}
    return bool(names & {"overload", "override", "setter"})
