"""The files of lgsim that a benchmark measures, by its imports, and the records that are older than those files.

Everything is read from syntax trees: nothing is imported. A name that lgsim imports on first use (``lgsim.simulate``)
leads to its module by ``lgsim/__init__.pyi``; programs that a benchmark runs as text are searched for names of modules.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path

DOTTED = re.compile(r"\b[a-z_]\w*(?:\.\w+)+")
FROM = re.compile(r"\bfrom (\w+) import (\w+)")


def measured(script: Path, root: Path) -> set[Path]:
    """The files of the package ``root / "lgsim"`` that a script imports, directly or through other files.

    Args:
        script: A benchmark in ``root / "benchmarks"``.
        root: The repository.
    """
    seen: set[Path] = set()
    pending = [script]
    while pending:
        path = pending.pop()
        if path not in seen:
            seen.add(path)
            pending += _imported(path, root)
    return {path for path in seen if path.is_relative_to(root / "lgsim")}


def last_commit(paths: set[Path], root: Path) -> datetime | None:
    """The date of the last commit that changed one of these files; None if git knows none of them."""
    names = sorted(str(path.relative_to(root)) for path in paths)
    command = ["git", "-C", str(root), "log", "-1", "--format=%cI", "--", *names]
    done = subprocess.run(command, capture_output=True, text=True)
    text = done.stdout.strip() if done.returncode == 0 and names else ""
    return datetime.fromisoformat(text) if text else None


def outdated(records: dict[str, tuple[Path, str]], root: Path) -> dict[str, tuple[datetime, datetime]]:
    """Names of the records that are older than the code that they measure: (date of the record, date of the code).

    Args:
        records: By name the benchmark that writes it, and its date in ISO 8601 with a time zone.
        root: The repository; the dates of the code are those of its git history.
    """
    dates: dict[Path, datetime | None] = {}
    older = {}
    for name, (script, date) in records.items():
        if script not in dates:
            dates[script] = last_commit(measured(script, root), root)
        code, made = dates[script], datetime.fromisoformat(date)
        if code is not None and made < code:
            older[name] = made, code
    return older


@cache
def _imported(path: Path, root: Path) -> frozenset[Path]:
    return frozenset(_imports(path, root))


def _imports(path: Path, root: Path) -> Iterator[Path]:
    """The files of the repository that one file imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    outside = path.is_relative_to(root / "benchmarks")
    public = _public_names(root) if outside else {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield from _files(name.name, root)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from _files(node.module, root)
            for name in node.names:
                if node.module == "lgsim" and name.name in public:
                    yield from _files(public[name.name], root)
                yield from _files(f"{node.module}.{name.name}", root)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "lgsim":
            yield from _files(public.get(node.attr, f"lgsim.{node.attr}"), root)
        elif outside and isinstance(node, ast.Constant) and isinstance(node.value, str):
            dotted = [*DOTTED.findall(node.value), *map(".".join, FROM.findall(node.value))]
            for name in dotted:
                head, _, rest = name.partition(".")
                yield from _files(public.get(rest.partition(".")[0], name) if head == "lgsim" else name, root)


@cache
def _public_names(root: Path) -> dict[str, str]:
    """The module of each name that ``lgsim/__init__.pyi`` lists."""
    stub = root / "lgsim" / "__init__.pyi"
    tree = ast.parse(stub.read_text(encoding="utf-8")) if stub.exists() else ast.Module([], [])
    return {
        name.asname or name.name: f"lgsim.{name.name}" if node.module == "lgsim" else node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for name in node.names
    }


@cache
def _files(module: str, root: Path) -> tuple[Path, ...]:
    """The files that an import of this module runs: its own and those of the packages above it."""
    parts = module.split(".")
    files: list[Path] = []
    for base in (root, root / "benchmarks"):
        for i in range(1, len(parts) + 1):
            stem = base.joinpath(*parts[:i])
            found = [path for path in (stem / "__init__.py", stem.with_name(f"{stem.name}.py")) if path.is_file()]
            # a package inside lgsim may import on first use as well: all of its stub counts
            stub = stem / "__init__.pyi"
            files += [*found, *([stub] if stub.is_file() and stem != root / "lgsim" else [])]
    return tuple(files)
