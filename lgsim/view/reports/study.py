"""The report of a Monte Carlo study: distributions, attitudes, fan charts, failures, replays of the worst samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from lgsim.lie.group import UnitQuaternion
from lgsim.montecarlo import Results, Rollout
from lgsim.montecarlo.outputs import (
    FinalAttitude,
    FinalPosition,
    OutOfBounds,
    Subsampled,
    final_q,
    final_v,
    peak_speed,
    peak_torque,
)
from lgsim.montecarlo.results import EFFECTIVE
from lgsim.montecarlo.store import Chunk, Store
from lgsim.montecarlo.study import DIVERGED, FAILED, WEIGHT
from lgsim.multibody import Model
from lgsim.scenarios import ScenarioError
from lgsim.scenarios.outputs import HISTORY
from lgsim.scenarios.study_store import StoredStudy, open_study
from lgsim.simulation import Trajectory
from lgsim.support.messages import counted
from lgsim.support.packages import own_version, package
from lgsim.view import ensemble_plots
from lgsim.view.panels import panels
from lgsim.view.reports.estimates import LEVEL, estimate, spread_rows
from lgsim.view.reports.input_effects import add_input_effects
from lgsim.view.reports.page import Cell, Page
from lgsim.view.reports.replays import MISSING, add_replay, can_play, finite_part, machine_shapes

LEVELS = (0.05, 0.5, 0.95)
"""Levels of the quantiles in histograms."""
BINS = 40
"""Number of bins of a histogram."""
OUTLYING = 2.0
"""Samples farther from the outer quantiles than this multiple of their distance are beyond a histogram's axes."""
PLOTS = 18
"""Largest number of histograms on a page."""
POINTS = 3000
"""Largest number of samples in scatter plots, the first ones."""
_FANNED = 4000
"""Largest number of samples in fan charts."""
BOUND = 1e3
"""A diverged sample is shown while all its values are smaller, in SI units."""
_LISTED_SAMPLES = 20
"""Largest number of samples in a list."""
CASES = 3
"""Default number of the worst samples."""


class Case(NamedTuple):
    """A sample to replay.

    Attributes:
        why: Reason for the selection.
        motion: Motion of the sample; for a diverged sample its finite part.
        diverged: True if the sample diverged.
    """

    sample: int
    why: str
    motion: Trajectory
    diverged: bool


def report_study(
    store: StoredStudy | Results | str | PathLike[str],
    *,
    cases: int | None = None,
    worst: str | None = None,
    machine: str | PathLike[str] | None = None,
) -> Page:
    """Report of a Monte Carlo study: distributions, attitudes, fan charts, failures, worst samples.

    An interrupted study is reported with its available samples. Diverged samples are excluded from all statistics. They
    come first among the worst samples, and are at most half of them if there are others. Without the package viser
    there are no replays, and one warning reports it.

    Args:
        store: Store of the command ``lgsim montecarlo``, the result of ``open_study`` for it, or results of
            ``montecarlo.run``.
        cases: Number of the worst samples to replay; None for that of the study file, or 3.
        worst: Output that ranks the samples; None for that of the study file, or that of the first failure.
        machine: URDF file with visual shapes; None for that of the store, if it still exists.

    Returns:
        The page: ``.save("study.html")`` or ``.html()``.

    Raises:
        ScenarioError: there is no such store; a subclass of ValueError.
        ValueError: there are no samples, or ``worst`` is not an output.
        ModuleNotFoundError: matplotlib or pyarrow is missing; the message names the extra.
    """
    package("matplotlib", "plot", "a report")
    if isinstance(store, str | PathLike):
        store = open_study(store)
    stored = store if isinstance(store, StoredStudy) else None
    results = store.results if isinstance(store, StoredStudy) else store
    if not results.samples:
        if stored is not None:
            missing = "the store has no samples yet; continue with lgsim montecarlo study.toml --resume"
            raise ScenarioError(stored.path, None, "", missing)
        raise ValueError("store: expected results with samples, got none")
    if worst is not None and worst not in results.study.columns():
        raise ValueError(f"worst: expected one of {', '.join(results.running.names)}, got {worst!r}")
    shapes_file = None if machine is None else Path(machine)
    if stored is not None:
        scenario = stored.scenario
        cases = scenario.cases if cases is None else cases
        worst = scenario.worst if worst is None else worst
        shapes_file = scenario.machine.path if shapes_file is None else shapes_file
    page = _title(results, stored)
    chosen = list(_cases(results, worst, CASES if cases is None else cases))
    _overview(page, results)
    if results.running.diverged < results.samples:
        _distributions(page, results)
        add_input_effects(page, results, _outputs(results), partial(label, results), POINTS)
        if not results.study.sampler.tilts:
            _attitudes(page, results)
            _fans(page, results, chosen)
    _failed(page, results)
    _replays(page, chosen, shapes_file)
    if stored is not None:
        page.add_section("Study")
        page.add_text("The study file; with the samples and the seed above it reproduces these results.")
        page.add_table(
            ["line", "text"], [[i, line] for i, line in enumerate(stored.text.splitlines(), 1)], folded="Show the file"
        )
    return page


def _title(results: Results, stored: StoredStudy | None) -> Page:
    """A page with title, subtitle and footer."""
    name = "a study" if stored is None else stored.path.name
    machine = "" if stored is None else f" of {stored.scenario.machine.path.name or 'a model'}"
    foot = f"Made by lgsim {own_version()}"
    if isinstance(results.source, Store):
        about = results.source.metadata
        versions = ", ".join(f"{name} {number}" for name, number in about.versions.items())
        foot += f" from a store of {versions}; study {about.study}, model {about.model}"
    return Page(f"Monte Carlo: {name}", f"{results.samples:,} samples{machine}, seed {results.study.seed}", f"{foot}.")


def _rollout(results: Results) -> Rollout | None:
    """The rollout of a model; None if the study has a function instead."""
    return results.study.rollout if isinstance(results.study.rollout, Rollout) else None


def _outputs(results: Results) -> list[str]:
    """Names of the outputs, without failures and histories."""
    return [name for name in results.running.names if name != HISTORY and not name.startswith(FAILED)]


def _overview(page: Page, results: Results) -> None:
    """Add the number of samples, the result of the stopping rule, and the table of all outputs."""
    running, wanted = results.running, results.study
    page.add_section("Summary")
    if not results.finished:
        page.add_remark("The study is incomplete: this page shows the available samples.", "note")
    facts: list[tuple[str, Cell]] = [("samples", results.samples), ("diverged", running.diverged)]
    if running.diverged < results.samples:
        facts += [(name, f"{100 * results.failures(name).probability:.3g} %") for name in wanted.failures]
    if results.step_error is not None:
        facts.append(("not converged", f"{results.step_error.faults} of {results.step_error.statistics} statistics"))
    page.add_facts(facts)
    rule = wanted.stop
    if rule is not None and running.stopped:
        half = float(np.max(running.moments(rule.output).half_width(rule.level)))
        page.add_remark(
            f"Stopped because the mean of {rule.output} is known to ± {half:.3g} at {100 * rule.level:g} %, within the"
            f" requested ± {rule.half_width:g}.", "good"
        )  # fmt: skip
    elif rule is not None and results.finished:
        page.add_remark(
            f"The mean of {rule.output} is not known to ± {rule.half_width:g} after all samples; increase the number.",
            "note",
        )
    if wanted.sampler.tilts:
        page.add_remark("Statistics use the weights of importance sampling; quantiles and single samples are omitted.")
        effective = running.moments(running.names[0]).effective
        if 0 < effective < EFFECTIVE:
            page.add_remark(
                f"The weighted samples have an effective number of {effective:.3g}, below {EFFECTIVE}: intervals of"
                " means are too narrow.", "bad"
            )  # fmt: skip
    if running.diverged:
        page.add_remark(f"{counted(running.diverged, 'sample')} diverged and are excluded from all statistics.", "bad")
    if missing := [f"{name} {running.moments(name).missing - running.diverged}" for name in _outputs(results)
                   if running.moments(name).missing > running.diverged]:  # fmt: skip
        page.add_remark(
            f"Samples without a finite value, which count in all other statistics: {', '.join(missing)}.", "note"
        )
    for message in results.undecided(LEVEL).values():
        page.add_remark(f"{message[0].upper()}{message[1:]}.", "bad")
    if running.diverged == results.samples:
        if results.step_error is not None and not results.step_error.resolved:
            _steps(page, results)
        return
    _steps(page, results)
    rows: list[list[Cell]] = []
    known, found = _outputs(results), results.step_error
    for row in spread_rows(running, LEVEL):
        if row.output in known and (text := label(results, row.output, row.entry)) is not None:
            rows.append([text, *row[2:], *([] if found is None else [found.mean_error(row.output, row.entry)])])
    columns = ["output", "mean", f"± ({100 * LEVEL:g} %)", "standard deviation", "smallest", "largest"]
    caption = "In SI units; ± is the half width of the confidence interval of the mean."
    if found is not None:
        columns.append("integration error")
        caption = f"{caption.removesuffix('.')}, the integration error is that of the mean."
    page.add_table(columns, rows, caption, folded="All outputs" if len(rows) > PLOTS else "")


def _steps(page: Page, results: Results) -> None:
    """Add the verdict on the integration error of the statistics."""
    found = results.step_error
    if found is None:
        if results.finished and results.study.stepped is not None:
            page.add_remark("The integration error of these statistics was not estimated (--no-step-check).", "note")
        return
    page.add_verdict(found.summary(), found.resolved)


def _distributions(page: Page, results: Results) -> None:
    """Add histograms of the components of all outputs."""
    shown: list[ensemble_plots.HistogramData] = []
    omitted = 0
    for name in _outputs(results):
        m = results.running.moments(name)
        low, high = np.ravel(m.low), np.ravel(m.high)
        texts = {k: label(results, name, k if m.mean.size > 1 else None) for k in np.flatnonzero(high > low).tolist()}
        entries = [k for k, text in texts.items() if text is not None]
        room = PLOTS - len(shown)
        omitted += len(entries[room:])
        quantiles = np.zeros((0, m.mean.size))
        if entries[:room] and not results.study.sampler.tilts:
            quantiles = results.quantiles(name, LEVELS).reshape(len(LEVELS), -1)
        for k in entries[:room]:
            levels = {p: x for p, x in zip(LEVELS, quantiles[:, k].tolist(), strict=False) if np.isfinite(x)}
            mean = float(np.ravel(m.mean)[k])
            edges = np.linspace(*_shown_range(float(low[k]), float(high[k]), levels), BINS + 1)
            counts, total = _counts(results, name, k, edges)
            text = str(texts[k])
            shown.append(ensemble_plots.HistogramData(text, counts, edges, mean, levels, total - counts.sum()))
    if not shown:
        return
    page.add_section("Distributions")
    caption = "Mean (orange)"
    if not results.study.sampler.tilts:
        caption += ", and quantiles of 5 %, 50 % and 95 % (dashed)"
    if any(each.beyond for each in shown):
        caption += "; outliers are beyond the axes"
    caption += f". {counted(omitted, 'more value')} in the table above" if omitted else ""
    page.add_figure(ensemble_plots.histograms(shown), f"{caption}.")


def _shown_range(low: float, high: float, levels: Mapping[float, float]) -> tuple[float, float]:
    """The range of a histogram: all samples, without those farther from the quantiles than twice their distance."""
    ends = [levels.get(level, np.nan) for level in (LEVELS[0], LEVELS[-1])]
    margin = OUTLYING * (ends[1] - ends[0])
    # all samples, if most of them are equal or the quantiles are unknown
    if not margin > 0:
        return low, high
    return max(low, ends[0] - margin), min(high, ends[1] + margin)


def _counts(
    results: Results, name: str, k: int, edges: Float[np.ndarray, " edges"]
) -> tuple[Float[np.ndarray, " bins"], float]:
    """Histogram of the k-th component of an output and the number of its samples, weighted if they have weights."""
    counts, total = np.zeros(len(edges) - 1), 0.0
    for chunk in results.chunks():
        good = _known(results, chunk, name)
        w = np.exp(chunk.columns[WEIGHT][good].astype(float)) if WEIGHT in chunk.columns else np.ones(good.sum())
        counts += np.histogram(chunk.columns[name].reshape(chunk.count, -1)[good, k], edges, weights=w)[0]
        total += float(w.sum())
    return counts, total


def _attitudes(page: Page, results: Results) -> None:
    """Add attitudes of frames on the sphere, with their means and covariances on the group."""
    shown = [(name, f) for name, f in results.study.outputs.items() if isinstance(f, FinalAttitude)]
    if shown:
        page.add_section("Attitudes")
    for name, f in shown:
        found = results.intrinsic(name, UnitQuaternion)
        if not found.converged:
            page.add_remark(f"The samples of {name} are too widely spread for a mean on the group.", "note")
            continue
        points = _first(results, name, POINTS)
        figure = ensemble_plots.attitudes(points, found.mean, found.covariance, f.frame)
        degrees = np.degrees(np.sqrt(np.linalg.eigvalsh(found.covariance)))
        sizes = ", ".join(f"{x:.3g}" for x in degrees)
        page.add_figure(
            figure, f"Final {name}. Mean and covariance on the group, of {counted(found.count, 'sample')}; standard"
            f" deviations along the principal axes: {sizes} degrees."
        )  # fmt: skip


def _fans(page: Page, results: Results, cases: Sequence[Case]) -> None:
    """Add fan charts of the states over time."""
    rollout = _rollout(results)
    if rollout is None or not isinstance(results.study.outputs.get(HISTORY), Subsampled):
        return
    states = _first(results, HISTORY, _FANNED)
    saved = rollout.steps // rollout.save_every
    places = np.round(np.linspace(0, saved, states.shape[1])).astype(int)
    time = float(rollout.t0) + float(rollout.dt) * rollout.save_every * places
    marked = [case.motion for case in cases if not case.diverged]
    figure = ensemble_plots.fans(rollout.model, time, states, marked)
    page.add_section("Fan charts")
    dashed = " Dashed: samples with a replay below." if marked else ""
    page.add_figure(figure, f"Median and bands of 50 % and 90 % of {counted(len(states), 'sample')}.{dashed}")


def _failed(page: Page, results: Results) -> None:
    """Add the probabilities of failures, and the samples that failed or diverged."""
    if not results.study.failures and not results.running.diverged:
        return
    page.add_section("Failures")
    rows: list[list[Cell]] = []
    for name in results.study.failures:
        found = results.failures(name, LEVEL)
        text = estimate(FAILED + name, results.running.moments(FAILED + name), LEVEL)
        if results.study.sampler.tilts:
            text = f"{found.probability:.3g} ({found.interval[0]:.2g} to {found.interval[1]:.2g}, {100 * LEVEL:g} %)"
        steps = [] if results.step_error is None else [results.step_error.mean_error(FAILED + name, None)]
        rows.append([name, found.count, text, *steps, _listed(found.indices.tolist())])
    if rows:
        interval = "probability and confidence interval" + ("" if results.study.sampler.tilts else " (Clopper-Pearson)")
        steps = [] if results.step_error is None else ["integration error"]
        page.add_table(["failure", "samples", interval, *steps, "sample numbers"], rows)
    gone = results.diverged
    for how in sorted(set(gone.values())):
        page.add_text(f"Diverged, {how}: {_listed([i for i, each in gone.items() if each == how])}")


def _replays(page: Page, cases: Sequence[Case], machine: Path | None) -> None:
    """Add replays of the worst samples."""
    if not cases:
        return
    page.add_section("Worst cases")
    playing = can_play()
    if not playing:
        page.add_remark(MISSING)
    shapes = machine_shapes(machine, cases[0].motion.model) if playing else None
    for case in cases:
        page.add_heading(f"Sample {case.sample}: {case.why}")
        if playing and len(case.motion) > 1:
            add_replay(page, case.motion, f"Sample {case.sample}", shapes)


def _cases(results: Results, worst: str | None, count: int) -> Iterator[Case]:
    """Diverged samples, then the worst ones by an output."""
    if _rollout(results) is None:
        return
    known = results.running.diverged < results.samples
    worst_ones = dict(_worst(results, worst, count)) if known else {}
    # diverged samples hide no worst ones: at most half of the cases, if there are others
    gone = dict(list(results.diverged.items())[: max(count // 2, count - len(worst_ones))])
    found = dict(list((gone | worst_ones).items())[:count])
    for i, why in found.items():
        motion = results.replay(i)
        motion = finite_part(motion, BOUND if i in gone else np.inf)
        if len(motion):
            yield Case(i, why, motion, i in gone)


def _worst(results: Results, worst: str | None, count: int) -> list[tuple[int, str]]:
    """The worst samples, with the reason, by the named output or that of the first failure."""
    rules = [f for f in results.study.failures.values() if isinstance(f, OutOfBounds)]
    entry, up = None, True
    if worst is not None:
        name = worst
        rule = next((rule for rule in rules if rule.output == worst), None)
        up = rule is None or bool(np.isfinite(rule.high))
    elif rules:
        name, entry, up = rules[0].output, rules[0].entry, bool(np.isfinite(rules[0].high))
    elif known := _outputs(results):
        name = min(known, key=lambda name: results.running.moments(name).mean.size)
    else:
        name = HISTORY
    return [(i, f"{name} {value:.4g}") for i, value in _extreme(results, name, entry, up, count)]


def _extreme(results: Results, name: str, entry: int | None, up: bool, count: int) -> list[tuple[int, float]]:
    """Samples with the largest or smallest values; for an array, those farthest from the mean."""
    if count < 1:
        return []
    mean, several = (
        np.ravel(results.running.moments(name).mean),
        entry is None and results.running.moments(name).mean.size > 1,
    )
    kept: list[tuple[float, int]] = []
    for chunk in results.chunks():
        good = np.flatnonzero(_known(results, chunk, name))
        x = chunk.columns[name].reshape(chunk.count, -1)[good].astype(float)
        value = np.linalg.norm(x - mean, axis=1) if several else x[:, entry or 0]
        order = np.argsort(-value if up or several else value, kind="stable")[:count]
        kept += [(float(value[j]), int(chunk.start + good[j])) for j in order]
        kept.sort(key=lambda pair: (-pair[0] if up or several else pair[0], pair[1]))
        del kept[count:]
    return [(i, value) for value, i in kept]


def _first(results: Results, name: str, count: int) -> Float[np.ndarray, " samples *shape"]:
    """Values of an output of the first samples that have one."""
    parts, found = [], 0
    for chunk in results.chunks():
        good = chunk.columns[name][_known(results, chunk, name)][: count - found]
        parts.append(good)
        found += len(good)
        if found >= count:
            break
    return np.concatenate(parts)


def _known(results: Results, chunk: Chunk, name: str) -> Bool[np.ndarray, " samples"]:
    """True for the samples of a chunk that have a value of an output."""
    return results.running.known_values.mask(chunk.columns[DIVERGED], chunk.columns, name)


def _listed(samples: Sequence[int]) -> str:
    """Sample numbers as text."""
    more = f" and {len(samples) - _LISTED_SAMPLES} more" if len(samples) > _LISTED_SAMPLES else ""
    return ", ".join(map(str, samples[:_LISTED_SAMPLES])) + more if samples else "none"


def label(results: Results, name: str, entry: int | None) -> str | None:
    """Label of a component of an output, with joint and unit if they are known.

    Args:
        entry: Flat index of the component; None for a scalar output.

    Returns:
        The label; None for components of a quaternion, which have no meaning of their own.
    """
    f = results.study.outputs.get(name)
    if isinstance(f, FinalAttitude):
        return None
    if entry is None:
        return name
    if isinstance(f, FinalPosition):
        return f"{name} {'xyz'[entry]} (m)"
    rollout = _rollout(results)
    places = ((final_q, 0), (final_v, 1), (peak_speed, 1), (peak_torque, 2))
    if isinstance(f, Subsampled) and rollout is not None:
        return _of_history(rollout, f, name, entry)
    kind = next((kind for each, kind in places if f is each), None)
    return f"{name}[{entry}]" if kind is None or rollout is None else _of_joint(rollout.model, name, kind, entry)


def _of_history(rollout: Rollout, f: Subsampled, name: str, entry: int) -> str | None:
    """Label of a component of a history: joint and time."""
    model, saved = rollout.model, rollout.steps // rollout.save_every
    moment, place = divmod(entry, model.nq + model.nv)
    kind, place = (0, place) if place < model.nq else (1, place - model.nq)
    times = np.round(np.linspace(0, saved, f.count)).astype(int) * float(rollout.dt) * rollout.save_every
    own = _of_joint(model, f"{name} {'qv'[kind]}", kind, place)
    return None if own is None else f"{own} at {float(rollout.t0) + times[moment]:.4g} s"


def _of_joint(model: Model, name: str, kind: int, entry: int) -> str | None:
    """Label of a component of q (kind 0), v (1) or tau (2); None for components of a quaternion."""
    for panel in panels(model):
        places, letters = (panel.q, panel.q_names) if kind == 0 else (panel.v, panel.v_names)
        if entry in places:
            if panel.quaternion and kind == 0:
                return None
            letter = letters[places.index(entry)]
            return f"{name} {panel.joint}{' ' * bool(letter)}{letter} ({panel.units[kind]})"
    return f"{name}[{entry}]"
