"""What may import what in lgsim, and which text has no place in it, checked on the syntax tree without importing it.

`violations(root)` returns one line for each fault of the package in the folder `root`.
"""

import ast
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.documentation import misdescribed, undocumented
from tests.syntax import walk

# A file holds one idea that its name says: some 400 lines are the guide, and this is the wall. Tables of numbers may be
# longer, and are named here with their reason.
LINES = 600
TABLES: dict[str, str] = {}

# A folder of more files is one list of one kind, named here, or has sub-folders.
FILES = 20
LISTS = {
    "dynamics": "one algorithm a file",
}

# Adverbs, participles, prepositions and words that fit any file: none of them says what a file holds.
NO_NAMES = {
    "about", "after", "again", "ahead", "along", "before", "beside", "beyond", "by", "down", "from", "here", "in", "of",
    "on", "out", "over", "there", "through", "to", "under", "up", "with",
    "built", "done", "felt", "found", "given", "held", "kept", "made", "moved", "opened", "told", "turned", "watched",
    "common", "core", "extras_", "helpers", "keep", "lower", "main", "misc", "other", "parts", "pieces", "some",
    "things", "tools", "util", "utils", "watch",
}  # fmt: skip
PARTICIPLES = ("ing", "ed", "ly")
# Nouns of the field that end like participles.
NOUNS = {
    "batching", "checkpointing", "packing", "plotting", "reading", "recording", "rounding", "sampling", "smoothing",
    "tiling", "assembly",
    "fixed",  # the joint
    "biped",
}  # fmt: skip

# An import may only run to a smaller number, or stay in its own folder. Two folders of one floor do not see each other.
FLOORS = {
    "data": 0,
    "support": 0,
    "_compile": 0,
    "_compile.xla": 1,
    "_compile.programs": 2,
    "_compile.spatial": 3,
    "_compile.linalg": 3,
    "lie": 4,
    "integrators": 5,
    "multibody": 5,
    "dynamics": 6,
    "actuators": 7,
    "symbolic": 8,
    "formats": 8,
    "simulation": 8,
    "systems": 8,
    "optimize": 9,
    "identify": 9,
    "montecarlo": 9,
    "scenarios": 10,
    "estimate": 10,
    "view": 11,
    "cli": 12,
}
# Downward arrows that are forbidden all the same: the numerics of machines know no method of integration.
FORBIDDEN = {("dynamics", "integrators")}

# What stands beside the floors: it only gathers public names, and nothing below may import it.
FRONT_DOOR = {"__init__.py", "actions.py", "programs.py"}

CORE = {"jax", "jaxlib", "numpy", "equinox", "optax", "jaxtyping"}
THIRD_PARTY = {
    "integrators": {"diffrax"},
    "_compile.programs": {"llvmlite"},
    "support": {"pyarrow"},
    "simulation": {"diffrax", "pyarrow"},
    "optimize": {"optimistix"},
    "montecarlo": {"pyarrow", "ray", "scipy"},
    "identify": {"pyarrow", "scipy"},
    "estimate": {"scipy"},
    "formats": {"lxml", "mujoco"},
    "symbolic": {"sympy"},
    "view": {"matplotlib", "viser"},
    "cli": {"typer", "rich"},
}

# What may change settings: a command runs alone.
SETTERS = {"cli"}

# What belongs into one room: a new JAX then breaks one room at most.
XLA_ROOM = "_compile.xla"
XLA_MODULES = ("jax.ad_checkpoint", "jax.ffi", "jaxlib")
# What no version of JAX promises: one file at most.
INTERNALS = "_compile/xla/jax_internals.py"
INTERNAL_MODULES = ("jax.interpreters", "jax.extend", "jax.experimental.xla_metadata", "jax._src", "jax.core.Primitive")

# Where a comparison with a small number is no small-angle branch, and why.
SMALL_NUMBERS = {
    "lie/series.py": "the one place where a series takes over from a closed form",
    "lie/polynomial.py": "terms below a rounding unit are dropped from exact coefficients, once",
    "integrators/tableau.py": "residuals of the order conditions, compared once in numpy when a tableau is built",
    "multibody/geometry/forms.py": "which of equally far points stands for an edge; no formula changes",
    "multibody/geometry/hulls.py": "which points are on a face is found once in numpy when a hull is built",
}
SMALL_COMPARED = 1e-2
SMALL_ADDED = 1e-4
CLAMPS = ("maximum", "minimum", "clip", "max", "min")
EPSILONS = {"eps", "tiny", "smallest_normal"}


def violations(root: Path) -> list[str]:
    """Every fault of the package in `root`, as lines `file:line: what is wrong`."""
    files = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))}
    trees = {name: ast.parse(text) for name, text in files.items()}
    for stub in root.rglob("*.pyi"):
        # what a package imports when it is used first
        trees[stub.relative_to(root).with_suffix(".py").as_posix()].body += ast.parse(stub.read_text("utf-8")).body
    modules = {_module(root.name, name): name for name in files}
    found, graph, origins = [], {}, {}
    for name, tree in trees.items():
        nodes = walk(tree)
        imported = list(_imports(nodes, _module(root.name, name), name, modules))
        arrows = sorted({(target, line) for target, line, _, _ in imported})
        origins[name] = {alias: (modules[target], inner) for target, _, alias, inner in imported if target in modules}
        graph[name] = {modules[target]: line for target, line in arrows if target in modules}
        found += _arrow_faults(root.name, name, arrows, modules)
        found += _setting_faults(name, nodes)
        found += _internal_faults(name, nodes)
        found += _name_faults(name)
        if name not in SMALL_NUMBERS:
            found += _small_number_faults(name, nodes)
        lines = files[name].count("\n")
        if lines > LINES and name not in TABLES:
            found.append(f"{name}:{lines}: more than {LINES} lines: cut it where its second idea begins")
    found += undocumented(trees, origins)
    found += misdescribed(trees)
    for folder in sorted({Path(name).parent.as_posix() for name in files}):
        if (Path(folder) / "__init__.py").as_posix() not in files:
            found.append(f"{folder}:1: the folder has no __init__.py, so a wheel would leave it out")
        count = sum(Path(name).parent.as_posix() == folder and Path(name).stem != "__init__" for name in files)
        if count > FILES and folder not in LISTS:
            found.append(f"{folder}:1: {count} files, more than {FILES}: give it sub-folders")
    return found + _cycles(graph)


def room(parts: Sequence[str]) -> str:
    """The room of a folder or module by the parts of its path; the private package holds four."""
    return ".".join(parts[: 2 if parts and parts[0] == "_compile" else 1])


def _module(package, name):
    parts = name.removesuffix(".py").removesuffix("__init__").rstrip("/")
    return ".".join([package, *filter(None, parts.split("/"))])


def _imports(nodes, module, name, modules):
    """(absolute name of the module, line, the name it gets here, the name inside the module or "" for the module).

    One for each imported name, also inside functions.
    """
    package = module if name.endswith("__init__.py") else module.rpartition(".")[0]
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, alias.asname or alias.name, ""
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                target = (inner, "") if inner in modules else (base, alias.name)
                yield target[0], node.lineno, alias.asname or alias.name, target[1]


def _arrow_faults(package, name, arrows, modules):
    folder = room(name.split("/")[:-1]) or None
    if folder is None and name not in FRONT_DOOR:
        yield f"{name}:1: lies on no floor: a module belongs into one of {', '.join(FLOORS)}"
    elif folder is not None and folder not in FLOORS:
        yield f"{name}:1: the folder {folder} is on no floor"
    for target, line in arrows:
        first, _, rest = target.partition(".")
        if first in sys.stdlib_module_names:
            continue
        if target.startswith(XLA_MODULES) and folder != XLA_ROOM:
            yield f"{name}:{line}: imports {target}: what touches XLA belongs into {XLA_ROOM.replace('.', '/')}/"
        if target.startswith(INTERNAL_MODULES) and name != INTERNALS:
            yield f"{name}:{line}: imports {target}: what JAX does not promise belongs into {INTERNALS}"
        if first != package:
            if first not in CORE | THIRD_PARTY.get(folder, set()):
                yield f"{name}:{line}: imports the third-party package {first}"
        elif name in FRONT_DOOR:
            if target not in modules:
                yield f"{name}:{line}: imports {target}, which does not exist"
        elif target not in modules:
            yield f"{name}:{line}: imports {target}, which does not exist"
        else:
            to = room(rest.split("."))
            below = FLOORS.get(to, sys.maxsize) < FLOORS.get(folder, -1)
            if to != folder and (not below or (folder, to) in FORBIDDEN):
                yield f"{name}:{line}: the import of {target} runs up or sideways"


def _name_faults(name):
    stem = Path(name).stem
    participle = "_" not in stem and stem.endswith(PARTICIPLES) and stem not in NOUNS
    if stem.lower() in NO_NAMES or participle:
        yield f"{name}:1: {stem} is no name of a file: take the noun for what it holds"


def _cycles(graph):
    """One line for each import that closes a circle in a walk along the arrows."""
    done, path, found = set(), [], []

    def visit(name):
        if name in path:
            found.append(f"{path[-1]}:{graph[path[-1]][name]}: cycle {' -> '.join([*path[path.index(name) :], name])}")
        elif name not in done:
            path.append(name)
            for target in graph[name]:
                visit(target)
            done.add(path.pop())

    for name in graph:
        visit(name)
    return found


def _setting_faults(name, nodes):
    """Writes to JAX's settings or to the environment."""
    for node in nodes:
        targets = []
        if isinstance(node, ast.Call):
            targets = [node.func]
        elif isinstance(node, ast.Assign):
            targets = node.targets
        for target in targets:
            text = _text(target)
            is_call = isinstance(node, ast.Call)
            writes = text.endswith("config.update") if is_call else text.rpartition(".")[0].endswith("jax.config")
            exports = text.endswith(("environ.update", "environ.setdefault", "putenv")) or (
                not is_call and "environ[" in text
            )
            if (writes or exports) and Path(name).parts[0] not in SETTERS:
                yield f"{name}:{node.lineno}: changes a setting: {text}"


def _text(node):
    """What ``ast.unparse`` gives, of names with dots in a tenth of its time."""
    inner, names = node, []
    while isinstance(inner, ast.Attribute):
        names.append(inner.attr)
        inner = inner.value
    return ".".join([inner.id, *reversed(names)]) if isinstance(inner, ast.Name) else ast.unparse(node)


def _internal_faults(name, nodes):
    """Parameters of primitives and attributes of JAX's modules without a promise, read elsewhere than in one file."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and name != INTERNALS:
            text = _text(node)
            if node.attr == "params" and isinstance(node.value, ast.Name) and node.value.id in ("equation", "eqn"):
                yield f"{name}:{node.lineno}: reads {text}: parameters of primitives are read by {INTERNALS}"
            if text.startswith(INTERNAL_MODULES):
                yield f"{name}:{node.lineno}: reads {text}: what JAX does not promise belongs into {INTERNALS}"


def _small_number_faults(name, nodes):
    """Comparisons with a small number, small numbers that are added or serve as a lower bound, machine epsilons."""
    for node in nodes:
        if isinstance(node, ast.Compare):
            operands, limit = [node.left, *node.comparators], SMALL_COMPARED
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            operands, limit = [node.left, node.right], SMALL_ADDED
        elif isinstance(node, ast.Call) and _text(node.func).endswith(CLAMPS):
            operands, limit = node.args, SMALL_ADDED
        else:
            continue
        if any(_is_small(operand, limit) for operand in operands):
            yield f"{name}:{node.lineno}: a switch at a small number outside lie/series.py: {ast.unparse(node)}"


def _is_small(node, limit):
    """A constant below `limit` but not zero, or a multiple of a dtype's epsilon."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return any(isinstance(inner, ast.Attribute) and inner.attr in EPSILONS for inner in walk(node))
    return isinstance(value, int | float) and 0 < abs(value) < limit
