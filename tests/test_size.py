"""How large lgsim may be: bounds that fall, or rise with a feature by its own lines."""

import ast
import inspect
from pathlib import Path

import lgsim
from tests.public_record import listed, modules
from tests.syntax import walk

PACKAGE = Path(lgsim.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
LINES, ROOMS, NAMES, LONG, ARGUMENTS = 107_328, 19, 616, 16, 10


def test_lines_and_rooms():
    assert sum(path.read_text(encoding="utf-8").count("\n") for path in FILES) <= LINES
    assert len({path.relative_to(PACKAGE).parts[0] for path in FILES if path.parent != PACKAGE}) <= ROOMS


def test_public_names():
    """Each object once, however many doors it has."""
    found = {
        ((home, name) if isinstance(value, int | float | str | tuple) else id(value))
        for home, module in modules().items()
        for name in listed(module)
        if not inspect.ismodule(value := getattr(module, name))
    }
    assert len(found) <= NAMES


def test_arguments():
    """Functions with more than ten arguments."""
    found = []
    for path in FILES:
        for node in walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                if len(given) > ARGUMENTS:
                    found.append(f"{path.relative_to(PACKAGE)}: {node.name}")
    assert len(found) <= LONG, found
