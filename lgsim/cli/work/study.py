"""``lgsim montecarlo run``: check the study, run it, print a summary."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.table import Table

from lgsim.cli import files
from lgsim.cli.checks import starts
from lgsim.cli.errors import BadInput, Stop, needs
from lgsim.cli.exit_status import Exit
from lgsim.cli.montecarlo_progress import SampleWatch
from lgsim.cli.requests import Computer, StudyRequest
from lgsim.cli.terminal import console, note, show_facts
from lgsim.dynamics.joint_inertia import describe_missing_inertia
from lgsim.montecarlo import Engine, Results, Rollout, Study, open_store
from lgsim.montecarlo.engine import fill
from lgsim.montecarlo.limits import study_limit_uses
from lgsim.montecarlo.low_discrepancy import Antithetic, LatinPoints, SobolPoints
from lgsim.montecarlo.store import Store
from lgsim.montecarlo.study import DIVERGED, FAILED
from lgsim.scenarios import load_study
from lgsim.scenarios.study import StudyScenario
from lgsim.scenarios.study_store import changed_keys, describe_study
from lgsim.simulation.limits import limit_rows, limit_warnings
from lgsim.support.messages import counted, one_line

PIECES = 50
"""Smallest number of chunks of a study, so that progress is visible and an interruption loses little."""
SHOWN = 12
"""Largest number of rows of the table of results."""


def run_study(asked: StudyRequest, study: Path) -> Exit:
    """Run a study into its store, print a table, and return the reason why it ended.

    Raises:
        ScenarioError: the file is invalid.
        BadInput: an argument is invalid, or the store belongs to another study.
        Stop: a package is missing, or the store cannot be written.
    """
    files.configure_jax()
    needs("pyarrow", "montecarlo", "a store")
    if asked.engine is Computer.ray:
        needs("ray", "ray", "the engine ray")
    elif asked.address is not None:
        raise BadInput("--address: expected --engine ray")
    files.check_folder("--out", asked.out.absolute().parent)
    if asked.resume and not (asked.out.is_dir() and any(asked.out.iterdir())):
        raise BadInput(f"--resume: expected an existing store, got {str(asked.out)!r}; omit --resume to create one")
    for option, value, least in (("--samples", asked.samples, 1), ("--seed", asked.seed, 0)):
        if value is not None and value < least:
            raise BadInput(f"{option}: expected an integer of at least {least}, got {value}")
    loaded = load_study(study, samples=asked.samples, seed=asked.seed)
    files.remark(loaded.machine.report, loaded.machine.floating_base)
    starts.remark_study(_rollout(loaded.study))
    console(error=True).print(f"{study}: {_summary(loaded)}", soft_wrap=True)
    if loaded.remark:
        note(loaded.remark)
    if asked.check:
        return Exit.DONE
    files.keep_compiled()
    engine = Engine(loaded.study)
    try:
        with open_store(engine, asked.out, resume=asked.resume, chunk=_chunk(engine, asked.out)) as store:
            describe_study(store, loaded, study.read_bytes())
            return _run(asked, engine, store)
    except FileExistsError as error:
        text = one_line(error).replace("resume=True", "--resume")
        raise BadInput(f"--out: {text}") from error
    except (ValueError, RuntimeError, MemoryError) as error:
        keys = changed_keys(asked.out, study.read_bytes()) if "the store belongs to another" in str(error) else []
        changed = f"; keys that differ from its study.toml: {', '.join(keys)}" if keys else ""
        raise BadInput(f"{one_line(error)}{changed}") from error
    except OSError as error:
        raise Stop(error.strerror if error.errno and error.strerror else one_line(error)) from error


def _run(asked: StudyRequest, engine: Engine, store: Store) -> Exit:
    """Compute the missing samples, print a table, and return the reason why it ended."""
    known = [store.bounds(k) for k in range(store.chunks) if store.has(k)]
    checked = not asked.no_step_check
    with SampleWatch(engine.study, sum(stop - start for start, stop in known)) as watch:
        if asked.engine is Computer.ray:
            from lgsim.montecarlo import ray_cluster

            results = ray_cluster.fill(engine, store, address=asked.address, progress=watch, step_check=checked)
        else:
            results = fill(engine, store, watch, step_check=checked)
    if not results.finished:
        note(f"interrupted after {counted(results.samples, 'sample')}; the same command with --resume continues")
    if results.running.diverged < results.samples:
        _show(results, watch, asked.out)
    elif results.samples:
        flipped = 0.0 if results.step_error is None else results.step_error.flipped[DIVERGED]
        less = f"; {100 * flipped:.3g} % do not with dt/2" if flipped else ""
        motion = _rollout(engine.study)
        advice = describe_missing_inertia(motion.model, motion.q0) or "reduce dt"
        note(f"all samples diverged{less}: {advice}, or inspect one: lgsim montecarlo report {asked.out}")
        return Exit.ALL_DIVERGED if results.finished else Exit.INTERRUPTED
    if not results.finished:
        return Exit.INTERRUPTED
    undecided, found = results.undecided(watch.level), results.step_error
    for message in undecided.values():
        note(f"{message}: reduce dt, or inspect a sample: lgsim montecarlo report {asked.out}")
    if found is None or found.resolved:
        return Exit.PROBABILITY_OPEN if undecided else Exit.DONE
    note(found.summary())
    return Exit.NOT_RESOLVED


def _chunk(engine: Engine, path: Path) -> int | None:
    """Number of samples in a chunk, a multiple of the tiles on all devices; None for that of an existing store."""
    if Store.exists(path):
        return None
    tiles = engine.study.samples // (PIECES * engine.width)
    return max(1, min(tiles, engine.chunk_size // engine.width)) * engine.width


def _summary(loaded: StudyScenario) -> str:
    """Summary of the study in one line."""
    kinds = {SobolPoints: "Sobol", LatinPoints: "Latin hypercube", Antithetic: "antithetic"}
    wanted, rollout = loaded.study, _rollout(loaded.study)
    sampler = wanted.sampler
    kind = "random" if sampler.points is None else kinds[type(getattr(sampler.points, "parts", sampler.points))]
    rule = wanted.stop
    until = (
        "" if rule is None else f", until {rule.output} has a {100 * rule.level:g} % interval of ±{rule.half_width:g}"
    )
    return (
        f"{counted(wanted.samples, 'sample')} ({kind}, seed {wanted.seed}){until};"
        f" {loaded.machine.path.name},"
        f" {counted(rollout.steps, 'step')} of {float(rollout.dt):g} s; random {', '.join(sampler.names)}"
    )


def _rollout(study: Study) -> Rollout:
    """The rollout of a study that was read from a file."""
    assert isinstance(study.rollout, Rollout)
    return study.rollout


def _show(results: Results, watch: SampleWatch, path: Path) -> None:
    """Print a table of the outputs and the number of samples."""
    from lgsim.view.reports.estimates import failure_interval, spread_rows
    from lgsim.view.reports.study import label

    half, found = f"± {100 * watch.level:g} %", results.step_error
    steps = () if found is None else ("steps",)
    table = Table("output", "mean", half, *steps, "std", "smallest", "largest", box=box.SIMPLE_HEAD)
    for column in table.columns[1:]:
        column.justify = "right"
    rows = spread_rows(results.running, watch.level)
    # the output of the stopping rule first, time histories last
    rows.sort(key=lambda row: (row.output != watch.shown, results.running.moments(row.output).mean.size))
    for row in rows[:SHOWN]:
        cells = [f"{x:.5g}" for x in row[2:]]
        if row.output.startswith(FAILED):
            cells[1] = failure_interval(results.running.moments(row.output), watch.level)
        if found is not None:
            cells.insert(2, found.mean_error(row.output, row.entry))
        plain = row.output if row.entry is None else f"{row.output}[{row.entry}]"
        table.add_row(known if (known := label(results, row.output, row.entry)) is not None else plain, *cells)
    output = console()
    output.print(table)
    if len(rows) > SHOWN:
        output.print(f"and {len(rows) - SHOWN} more values", soft_wrap=True)
    uses = study_limit_uses(results)
    facts: list[tuple[str, str]] = [("samples", f"{results.samples:,}, {results.running.diverged:,} diverged")]
    facts += [(name, f"{text}, worst sample") for name, text in limit_rows(uses)]
    if found is not None:
        facts.append(("steps", found.summary().partition(": ")[2] if found.resolved else "not converged, see below"))
    if watch.rate is not None:
        facts.append(("rate", f"{watch.rate:,.0f} samples/s after the first chunk, {watch.wall:.1f} s in total"))
    show_facts([*facts, ("store", str(path)), ("report", f"lgsim montecarlo report {path}")])
    for warning in limit_warnings(uses):
        note(warning)
