"""``lgsim generate``: the dynamics of a robot as code in another language."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lgsim import dynamics
from lgsim.cli.checks.replacement import CODE_PAGE, check_replaced, code_outputs
from lgsim.cli.errors import bad_input
from lgsim.cli.terminal import console, lines, show_facts
from lgsim.cli.work.example_program import example_program, page
from lgsim.multibody import Model
from lgsim.simulation import rollout
from lgsim.support.files import write_whole
from lgsim.support.messages import counted
from lgsim.support.packages import own_version
from lgsim.symbolic import compile, targets


class NextState(NamedTuple):
    """State after one step."""

    q_new: Any
    v_new: Any


def step(model: Model, q: Any, v: Any, tau: Any, dt: Any) -> NextState:
    """The state after one step dt of the method MK4, under joint forces tau and the forces of the model itself."""
    motion = rollout(model, q, v, dt=dt, steps=1, torques=tau)
    return NextState(motion.q[-1], motion.v[-1])


def write_code(file: Path, model: Model, names: list[str], language: str, out: Path, limit: int, force: bool) -> None:
    """Generate all code first, then write each file atomically."""
    target = {"c": targets.C, "numpy": targets.NumPy, "casadi": targets.Casadi}[language]()
    progress, start = console(error=True), time.perf_counter()
    progress.print(f"{file}: {counted(model.nv, 'degree')} of freedom, {counted(len(names), 'function')}")
    contents: dict[str, bytes] = {}
    codes, rows = [], []
    for name in names:
        function: Callable[..., Any] = step if name == "step" else getattr(dynamics, name)
        kept: list[Any] = []

        def keep(interface: Any, kept: list[Any] = kept) -> Any:
            kept.append(interface)
            return target(interface)

        with bad_input("--functions: "):
            made = compile(function, model, keep, limit=limit)
        interface = kept[0]
        if language == "casadi":
            contents[f"{name}.casadi"] = made.serialize().encode()
        else:
            contents |= made.files()
            codes.append(made)
        rows.append((name, interface.operations, interface.about[0].partition(": ")[2]))
        progress.print(f"{name}: {interface.operations} operations")
    if language == "c":
        contents["example.c"] = example_program(codes, model).encode()
    contents[CODE_PAGE] = page(file.name, language, rows, list(contents), own_version()).encode()
    check_replaced(code_outputs(out, contents), force)
    out.mkdir(exist_ok=True)
    for name, content in contents.items():
        write_whole(out / name, content)
    _show(rows, contents, out, time.perf_counter() - start)


def _show(rows: list[tuple[str, int, str]], contents: dict[str, bytes], out: Path, wall: float) -> None:
    facts = [(name, f"{operations} operations") for name, operations, _ in rows]
    made = lines(out / name for name in contents)
    show_facts([*facts, ("wall time", f"{wall:.2f} s"), ("files", made)])
