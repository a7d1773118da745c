"""``lgsim generate``: a machine's equations as code of another language."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from lgsim.cli.checks.replacement import CODE_PAGE, Force, check_replaced, code_outputs
from lgsim.cli.errors import BadInput, bad_input, needs
from lgsim.cli.options import FloatingBase, MachineArgument
from lgsim.cli.terminal import console, lines, show_facts
from lgsim.support.messages import counted, unknown_choice

if TYPE_CHECKING:
    from lgsim.multibody import Model

FUNCTIONS = (
    "inverse_dynamics", "forward_dynamics", "mass_matrix", "bias_forces", "gravity_forces", "forward_kinematics",
    "inverse_dynamics_derivatives", "forward_dynamics_derivatives", "step",
)  # fmt: skip
_LANGUAGES = ("c", "numpy", "casadi")


class NextState(NamedTuple):
    """The state after a step."""

    q_new: Any
    v_new: Any


def step(model: Model, q: Any, v: Any, tau: Any, dt: Any) -> NextState:
    """The state one step dt later under joint forces tau and the machine's own, by the method MK4 on its groups."""
    from lgsim.simulation import rollout

    motion = rollout(model, q, v, dt=dt, steps=1, torques=tau)
    return NextState(motion.q[-1], motion.v[-1])


def generate(
    file: MachineArgument,
    functions: Annotated[
        str, typer.Option(help=f"What is written, names with commas: {', '.join(FUNCTIONS)}.")
    ] = "inverse_dynamics,forward_dynamics",
    language: Annotated[str, typer.Option(help=f"One of {', '.join(_LANGUAGES)}.")] = "c",
    out: Annotated[Path, typer.Option(help="The folder for the files; it is made if it is not there.")] = Path("code"),
    float32: Annotated[bool, typer.Option("--float32", help="Single precision, float instead of double.")] = False,
    floating_base: FloatingBase = False,
    limit: Annotated[int, typer.Option(min=1, help="The largest number of operations of a function.")] = 100_000,
    force: Force = False,
) -> None:
    """Write a machine's equations as code for controllers and other languages, without dependencies.

    The numbers of the machine are constants of the code. In C each function has a .c and a .h file, and example.c calls
    all of them: `cc -std=c99 -O3 code/*.c -o example -lm`.
    """
    from lgsim.cli import files

    names = [name.strip() for name in functions.split(",")]
    for name in names:
        if name not in FUNCTIONS:
            raise BadInput(unknown_choice("--functions: expected some of", name, FUNCTIONS))
        if names.count(name) > 1:
            raise BadInput(f"--functions: {name!r} occurs twice")
    if language not in _LANGUAGES:
        raise BadInput(unknown_choice("--language: expected one of", language, _LANGUAGES))
    if language == "casadi":
        needs("casadi", "casadi", "--language casadi")
    if out.exists() and not out.is_dir():
        raise BadInput(f"--out: expected a folder, got the file {str(out)!r}")
    files.check_folder("--out", out if out.is_dir() else out.absolute().parent)
    model, report = files.read_machine(file, floating_base=floating_base, float32=float32)
    files.remark(report, floating_base)
    _write(file, model, names, language, out, limit, force)


def _write(file: Path, model: Model, names: list[str], language: str, out: Path, limit: int, force: bool) -> None:
    """All text first, then all files, each of them whole."""
    from lgsim import dynamics
    from lgsim.cli.generate.example_program import example_program, page
    from lgsim.support.files import write_whole
    from lgsim.support.packages import own_version
    from lgsim.symbolic import compile, targets

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
