"""Whether the tests see a fault: lgsim with one operator, constant or comparison changed, in a copy of this folder.

    python -m tests.mutations 20                 20 of the mutants in tests/data/mutants.jsonl, other ones each day
    python -m tests.mutations draw 200 --seed 1  mutants of functions at random, added to that list

Each line of the list is a mutant and the test that saw it first. A mutant whose test passes is run against the tests
that name its function or module, those of its folder, then all of make test; one that lives is named, and the exit
status is 1. Mutants of code that has changed since are counted and left out. With ``--coverage FILE`` (coverage.py's
data with a context for each test) the tests of a new mutant are those that reach its line.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "data" / "mutants.jsonl"
OPERATORS = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.Pow: ("**", "*")}
COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}  # fmt: skip
CHOICES = {ast.And: ("and", "or"), ast.Or: ("or", "and")}
SIGNS = {ast.USub: "-", ast.Not: "not", ast.Invert: "~"}
TIMEOUT = 900
"""Seconds after which a mutant that runs on and on counts as seen."""


@dataclass(frozen=True)
class Mutant:
    """One change of one function.

    Attributes:
        file: The module, from the root.
        function: The function's qualified name.
        place: Which of the function's places that can be changed, from 0.
        line: The line's number when the mutant was drawn.
        was: The text of the line.
        becomes: The text of the changed line.
        test: The test that saw it first; empty where none did.
    """

    file: str
    function: str
    place: int
    line: int
    was: str
    becomes: str
    test: str = ""

    @property
    def name(self) -> str:
        """What is changed, for a person."""
        return f"{self.file}:{self.line} {self.function}: {self.was.strip()}  ->  {self.becomes.strip()}"


def functions(tree: ast.AST, name: str = "") -> Iterator[tuple[str, ast.AST]]:
    """The outermost functions of a module, methods included, with their qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield f"{name}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{name}{node.name}.")


def changes(function: ast.AST, lines: list[bytes]) -> list[tuple[int, int, int, bytes]]:
    """(line, first byte, last byte, new text) of each place of a function that can be changed, in one line each."""
    found: list[tuple[int, int, int, bytes]] = []

    def between(left: ast.expr, right: ast.expr, pair: tuple[str, str]) -> None:
        if left.end_lineno == right.lineno:
            line, start, end = right.lineno, left.end_col_offset, right.col_offset
            at = lines[line - 1].find(pair[0].encode(), start, end)
            if at >= 0:
                found.append((line, at, at + len(pair[0]), pair[1].encode()))

    def look(node: ast.AST) -> None:
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            between(node.left, node.right, OPERATORS[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            between(node.values[0], node.values[1], CHOICES[type(node.op)])
        elif isinstance(node, ast.Compare):
            between(node.left, node.comparators[0], COMPARISONS[type(node.ops[0])])
        elif isinstance(node, ast.UnaryOp) and type(node.op) in SIGNS:
            sign = SIGNS[type(node.op)]
            found.append((node.lineno, node.col_offset, node.col_offset + len(sign), b""))
        elif isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
            value = not node.value if isinstance(node.value, bool) else node.value + 1
            found.append((node.lineno, node.col_offset, node.end_col_offset or 0, repr(value).encode()))
        for child in ast.iter_child_nodes(node):
            if not (isinstance(child, ast.expr) and child in skipped):
                look(child)

    skipped: set[ast.AST] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.FunctionDef):
            skipped |= {node.returns} if node.returns else set()
            skipped |= set(node.decorator_list)
        elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation:
            skipped.add(node.annotation)
    look(function)
    return sorted(set(found))


def mutants(path: Path) -> list[list[Mutant]]:
    """The mutants of each function of a module that has any."""
    content = path.read_bytes()
    lines = content.split(b"\n")
    found = []
    for name, node in functions(ast.parse(content)):
        each = []
        for i, (line, start, end, new) in enumerate(changes(node, lines)):
            was = lines[line - 1]
            becomes = was[:start] + new + was[end:]
            each.append(Mutant(str(path.relative_to(ROOT)), name, i, line, was.decode(), becomes.decode()))
        if each:
            found.append(each)
    return found


def draw(count: int, seed: int) -> list[Mutant]:
    """Mutants of functions at random, each function as likely as another."""
    rng = random.Random(seed)
    everything = [each for path in sorted((ROOT / "lgsim").rglob("*.py")) for each in mutants(path)]
    return [rng.choice(each) for each in rng.sample(everything, count)]


def today(mutant: Mutant) -> Mutant | None:
    """The mutant in the code as it is, or None where that has changed."""
    path = ROOT / mutant.file
    if not path.exists():
        return None
    for each in mutants(path):
        if each[0].function == mutant.function and mutant.place < len(each):
            now = each[mutant.place]
            if (now.was, now.becomes) == (mutant.was, mutant.becomes):
                return now
    return None


def copied(folder: Path) -> Path:
    """A copy of what git has here, and of what was changed since."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True,
        check=True,
    ).stdout.decode().split("\0")  # fmt: skip
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def killer(there: Path, mutant: Mutant, tests: list[str], workers: int = 0, marks: str = "not slow") -> str | None:
    """The test that fails first in a copy with this change; None where all pass."""
    path = there / mutant.file
    before = path.read_bytes()
    lines = before.split(b"\n")
    lines[mutant.line - 1] = mutant.becomes.encode()
    path.write_bytes(b"\n".join(lines))
    words = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-m", marks]
    words += ["-n", str(workers), "--dist", "worksteal"] if workers else []
    try:
        done = subprocess.run(
            [*words, *tests], cwd=there, capture_output=True, text=True, timeout=TIMEOUT,
            env={**os.environ, "PYTHONPATH": str(there)},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "it did not end"
    finally:
        path.write_bytes(before)
    if done.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return None
    for line in done.stdout.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split(" ", 1)[1].split(" - ")[0]
    raise RuntimeError(f"pytest does not run (status {done.returncode}):\n{done.stdout}{done.stderr}")


def rings(mutant: Mutant) -> list[list[str]]:
    """Its tests, from near to far: in files that name the function or its module, in its folder, all."""
    module, function = Path(mutant.file), mutant.function.rpartition(".")[2]
    words = {function, module.stem, mutant.function.partition(".")[0]} - {"__init__", "__call__"}
    named = re.compile(rf"\b({'|'.join(map(re.escape, words))})\b")
    folder = "/".join(module.parts[1 : 3 if module.parts[1] == "_compile" else 2])
    near = [f"tests/{folder}"] if (ROOT / "tests" / folder).is_dir() else []
    files = (ROOT / (near or ["tests"])[0]).rglob("test_*.py")
    naming = sorted(str(path.relative_to(ROOT)) for path in files if named.search(path.read_text(encoding="utf-8")))
    return [each for each in (naming, near, ["tests"]) if each]


def reaching(data: Path) -> dict[tuple[str, int], list[str]]:
    """The tests that reach each line, from coverage.py's data."""
    import coverage

    found: dict[tuple[str, int], list[str]] = {}
    read = coverage.CoverageData(str(data))
    read.read()
    for file in read.measured_files():
        name = "lgsim" + file.rpartition("/lgsim")[2]
        for line, tests in read.contexts_by_lineno(file).items():
            found[name, line] = [test for test in tests if test]
    return found


def kill(there: Path, mutant: Mutant, reach: dict[tuple[str, int], list[str]] | None) -> str:
    """The test that sees a mutant, or nothing."""
    if mutant.test and (seen := killer(there, mutant, [mutant.test.partition("[")[0]])):
        return seen
    if reach is not None:
        tests = reach.get((mutant.file, mutant.line), [])
        return (killer(there, mutant, tests) or "") if tests else ""
    for i, tests in enumerate(rings(mutant)):
        if seen := killer(there, mutant, tests, workers=(os.cpu_count() or 1) if i else 0):
            return seen
    return ""


def main() -> int:
    """Draw mutants, run them, say which live."""
    parser = argparse.ArgumentParser(description="Whether the tests see a fault.")
    parser.add_argument("what", help="draw, or how many of the list")
    parser.add_argument("count", nargs="?", type=int, default=200)
    parser.add_argument("--seed", type=int, default=date.today().toordinal())
    parser.add_argument("--coverage", type=Path)
    args = parser.parse_args()
    reach = reaching(args.coverage) if args.coverage else None
    if args.what == "draw":
        chosen, gone = draw(args.count, args.seed), 0
    else:
        listed = [Mutant(**json.loads(line)) for line in LIST.read_text(encoding="utf-8").splitlines()]
        now = [
            (each, today(each)) for each in random.Random(args.seed).sample(listed, min(int(args.what), len(listed)))
        ]
        chosen = [Mutant(**{**asdict(new), "test": old.test}) for old, new in now if new is not None]
        gone = len(now) - len(chosen)
    done, lives = [], []
    with tempfile.TemporaryDirectory() as folder:
        there = copied(Path(folder))
        for mutant in chosen:
            seen = kill(there, mutant, reach)
            done.append(Mutant(**{**asdict(mutant), "test": seen}))
            if args.what == "draw":
                with LIST.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(done[-1])) + "\n")
            print(f"{'seen by ' + seen if seen else 'LIVES':70}  {mutant.name}", flush=True)
            if not seen:
                lives.append(mutant)
    print(
        f"{len(done) - len(lives)} of {len(done)} mutants are seen, {len(lives)} live, {gone} are of code that changed"
    )
    return 1 if lives and args.what != "draw" else 0


if __name__ == "__main__":
    sys.exit(main())
