"""One page about the store of a study."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lgsim.cli import pictures, runs
from lgsim.cli.errors import BadInput, counted, one_line
from lgsim.cli.montecarlo import STUDY, opened
from lgsim.cli.montecarlo_progress import LEVEL, estimate, spread_rows
from lgsim.cli.terminal import console, note
from lgsim.lie.group import UnitQuaternion
from lgsim.montecarlo import FinalAttitude, FinalPosition, Results, Store
from lgsim.montecarlo.outputs import OutOfBounds, final_q, final_v, peak_speed, peak_torque
from lgsim.montecarlo.study import DIVERGED, FAILED
from lgsim.multibody import Model
from lgsim.scenarios.machine import keep_compiled
from lgsim.scenarios.outputs import HISTORY
from lgsim.scenarios.study import Loaded
from lgsim.simulation import Trajectory

LEVELS = (0.05, 0.5, 0.95)
BINS = 40
PLOTS = 18
"""Histograms on a page."""
POINTS = 3000
"""Samples that are drawn one by one, the first ones: any of them are as good as others."""
FANNED = 4000
"""Samples in fan charts, at most."""
GROWN = 1e3
"""Of a sample that diverged: it is shown as long as all its numbers are smaller, in SI units."""
SAMPLES_SHOWN = 20
"""Numbers of samples in a list."""


class Case(NamedTuple):
    """A sample that is worth a look.

    Attributes:
        sample: Its number.
        why: What is bad about it.
        motion: Played again.
        diverged: Whether it diverged; the motion is what can be shown of it.
    """

    sample: int
    why: str
    motion: Trajectory
    diverged: bool


def write(store: Path, out: Path | None, cases: int | None) -> int:
    """Writes the page; the exit code.

    Raises:
        BadInput: there is no store, or it is of another version.
        Stop: a package is missing.
    """
    pictures.check_plots()
    keep_compiled()
    loaded, results, machine = opened(store)
    if not results.samples:
        raise BadInput(f"{store}: the store has no samples yet; lgsim montecarlo {STUDY} --resume goes on")
    path = runs.check_file("--out", store.with_suffix(".html") if out is None else out)
    page = _page(store, loaded, results, machine, loaded.cases if cases is None else cases)
    page.save(path)
    console().print(f"{path}: {counted(results.samples, 'sample')}", soft_wrap=True)
    return 0


def _page(store: Path, loaded: Loaded, results: Results, machine: Path | None, cases: int) -> Any:
    from lgsim.reports.page import Replays

    about = Store(store).about
    versions = ", ".join(f"{name} {number}" for name, number in about.versions.items())
    page = Replays(
        f"Dispersions: {store.name}",
        f"{results.samples:,} samples of {loaded.machine.name or 'a machine'}, seed {results.study.seed}",
        f"Made by lgsim montecarlo report from a store of {versions}; study {about.study}, model {about.model}.",
    )
    chosen = list(_cases(loaded, results, cases))
    _overview(page, results)
    if results.running.diverged < results.samples:
        _distributions(page, results)
        _attitudes(page, results)
        _fans(page, results, chosen)
    _failed(page, results)
    _replays(page, chosen, machine)
    page.add_section("Study")
    page.add_text("The file that was run; with the samples and the seed above it gives the same numbers again.")
    page.add_table(["line", "text"], enumerate((store / STUDY).read_text().splitlines(), 1), folded="Show it")
    return page


def _overview(page: Any, results: Results) -> None:
    running, wanted = results.running, results.study
    page.add_section("Summary")
    if not results.finished:
        page.add_remark("The study is not done: these are the samples that are there.", "note")
    facts = [("samples", results.samples), ("diverged", running.diverged)]
    if running.diverged < results.samples:
        facts += [(name, f"{100 * results.failures(name).probability:.3g} %") for name in wanted.failures]
    page.add_facts(facts)
    rule = wanted.stop
    if rule is not None and running.stopped:
        half = float(np.max(running.moments(rule.output).half_width(rule.level)))
        page.add_remark(
            f"Stopped because {rule.output} is known to ± {half:.3g} at {100 * rule.level:g} %, as was asked for"
            f" ({rule.half_width:g}).", "good"
        )  # fmt: skip
    elif rule is not None and results.finished:
        page.add_remark(f"{rule.output} is not known to ± {rule.half_width:g} after all samples: take more.", "note")
    if running.diverged:
        page.add_remark(f"{counted(running.diverged, 'sample')} diverged and count in no statistics.", "bad")
    if running.diverged == results.samples:
        return
    rows = []
    for name, entry, *values in spread_rows(running, LEVEL):
        if not name.startswith((HISTORY, FAILED)) and (text := label(results, name, entry)) is not None:
            rows.append([text, *values])
    page.add_table(
        ["output", "mean", f"± ({100 * LEVEL:g} %)", "standard deviation", "smallest", "largest"], rows,
        "In SI units; ± is half of the interval of confidence of the mean.", folded="All outputs" if len(rows) > PLOTS
        else "",
    )  # fmt: skip


def _distributions(page: Any, results: Results) -> None:
    from lgsim.view import ensemble_plots

    shown = []
    for name in results.running.names:
        if name == HISTORY or name.startswith(FAILED):
            continue
        m = results.moments(name)
        if not m.count:
            continue
        quantiles = results.quantiles(name, LEVELS).reshape(len(LEVELS), -1)
        low, high = np.ravel(m.low), np.ravel(m.high)
        for k in np.flatnonzero(high > low):
            if (text := label(results, name, int(k) if m.mean.size > 1 else None)) is not None and len(shown) < PLOTS:
                edges, mean = np.linspace(low[k], high[k], BINS + 1), float(np.ravel(m.mean)[k])
                found = dict(zip(LEVELS, quantiles[:, k].tolist(), strict=True))
                shown.append(ensemble_plots.HistogramData(text, _counts(results, name, int(k), edges), edges, mean, found))
    if not shown:
        return
    page.add_section("Distributions")
    caption = "The mean (orange), and the levels below which 5 %, 50 % and 95 % of the samples lie (dashed)."
    page.add_figure(ensemble_plots.histograms(shown), caption)


def _counts(results: Results, name: str, k: int, edges: np.ndarray) -> np.ndarray:
    counts = np.zeros(len(edges) - 1)
    for chunk in results.chunks():
        good = chunk.columns[DIVERGED] == 0
        counts += np.histogram(chunk.columns[name].reshape(chunk.count, -1)[good, k], edges)[0]
    return counts


def _attitudes(page: Any, results: Results) -> None:
    from lgsim.view import ensemble_plots

    shown = [(name, f) for name, f in results.study.outputs.items() if isinstance(f, FinalAttitude)]
    if shown:
        page.add_section("Attitudes")
    for name, f in shown:
        found = results.intrinsic(name, UnitQuaternion)
        if not found.converged:
            page.add_remark(f"The {name} is all around: it has no mean.", "note")
            continue
        points = _first(results, name, POINTS)
        figure = ensemble_plots.attitudes(points, found.mean, found.covariance, f.frame)
        degrees = np.degrees(np.sqrt(np.linalg.eigvalsh(found.covariance)))
        sizes = ", ".join(f"{x:.3g}" for x in degrees)
        page.add_figure(
            figure, f"The {name} at the end. Mean and covariance are those on the group, of"
            f" {counted(found.count, 'sample')}; standard deviations along the principal axes: {sizes} degrees."
        )  # fmt: skip


def _fans(page: Any, results: Results, cases: list[Case]) -> None:
    from lgsim.view import ensemble_plots

    if HISTORY not in results.study.outputs:
        return
    rollout: Any = results.study.rollout
    states = _first(results, HISTORY, FANNED)
    saved = rollout.steps // rollout.save_every
    places = np.round(np.linspace(0, saved, states.shape[1])).astype(int)
    time = float(rollout.t0) + float(rollout.dt) * rollout.save_every * places
    marked = [case.motion for case in cases if not case.diverged]
    figure = ensemble_plots.fans(rollout.model, time, states, marked)
    page.add_section("In time")
    dashed = " Dashed: the samples that are replayed below." if marked else ""
    page.add_figure(
        figure, f"The median, the middle half and the middle nine tenths of {counted(len(states), 'sample')}.{dashed}"
    )


def _failed(page: Any, results: Results) -> None:
    if not results.study.failures and not results.running.diverged:
        return
    page.add_section("Failures")
    rows = []
    for name in results.study.failures:
        found = results.failures(name)
        text = estimate(FAILED + name, results.moments(FAILED + name), LEVEL)
        rows.append([name, found.count, text, _listed(found.indices.tolist())])
    if rows:
        page.add_table(["failure", "samples", "probability and its interval (Wilson)", "which"], rows)
    gone = results.diverged
    for how in sorted(set(gone.values())):
        page.add_text(f"Diverged, {how}: {_listed([i for i, each in gone.items() if each == how])}")


def _replays(page: Any, cases: list[Case], machine: Path | None) -> None:
    if not cases:
        return
    page.add_section("Worst cases")
    from importlib.util import find_spec

    if find_spec("viser") is None:
        note("the report plays no motions: pip install 'lgsim[view]'")
        page.add_remark("Nothing is played here: the package viser is missing (pip install 'lgsim[view]').")
    shapes = _shapes(machine, cases[0].motion.model) if find_spec("viser") is not None else None
    for case in cases:
        page.add_heading(f"Sample {case.sample}: {case.why}")
        if find_spec("viser") is not None and len(case.motion) > 1:
            from lgsim.view import to_html

            scene = to_html(case.motion, None, shapes, title=f"Sample {case.sample}")
            page.add_replay(scene, f"Sample {case.sample} played again; drag to turn, scroll to come nearer.")


def _shapes(machine: Path | None, model: Model) -> Any:
    """The machine's own shapes, where its file is still there and still of this machine."""
    try:
        found = pictures.visuals(machine)
    except BadInput as error:
        note(f"the report shows rods in place of the machine's shapes: {one_line(error)}")
        return None
    return found if found and set(found) <= set(model.frame_names) else None


def _cases(loaded: Loaded, results: Results, count: int) -> Iterator[Case]:
    """Those that diverged first, then the worst by an output: the one that the study names, or its first failure's."""
    gone = dict(list(results.diverged.items())[:count])
    found = dict(gone)
    name, entry, up = _badness(loaded, results)
    for i, value in _extreme(results, name, entry, up, count - len(found)):
        found[i] = f"{name} {value:.4g}"
    for i, why in found.items():
        motion = results.replay(i)
        motion = _visible(motion) if i in gone else motion
        if len(motion):
            yield Case(i, why, motion, i in gone)


def _badness(loaded: Loaded, results: Results) -> tuple[str, int | None, bool]:
    """(output, entry, whether large is bad)."""
    wanted = results.study
    if loaded.worst is not None:
        rule = next((f for f in wanted.failures.values() if _rule(f).output == loaded.worst), None)
        return loaded.worst, None, rule is None or bool(np.isfinite(_rule(rule).high))
    if wanted.failures:
        rule = _rule(next(iter(wanted.failures.values())))
        return rule.output, rule.entry, bool(np.isfinite(rule.high))
    sizes = {name: results.moments(name).mean.size for name in wanted.outputs if name != HISTORY}
    return min(sizes, key=lambda name: sizes[name]) if sizes else HISTORY, None, True


def _rule(failure: Any) -> OutOfBounds:
    return failure


def _extreme(results: Results, name: str, entry: int | None, up: bool, count: int) -> list[tuple[int, float]]:
    """(sample, value) of the largest or smallest values; of several numbers the one that is farthest from the mean."""
    if count < 1:
        return []
    mean, several = np.ravel(results.moments(name).mean), entry is None and results.moments(name).mean.size > 1
    kept: list[tuple[float, int]] = []
    for chunk in results.chunks():
        good = np.flatnonzero(chunk.columns[DIVERGED] == 0)
        x = chunk.columns[name].reshape(chunk.count, -1)[good].astype(float)
        value = np.linalg.norm(x - mean, axis=1) if several else x[:, entry or 0]
        order = np.argsort(-value if up or several else value, kind="stable")[:count]
        kept += [(float(value[j]), int(chunk.start + good[j])) for j in order]
        kept.sort(key=lambda pair: (-pair[0] if up or several else pair[0], pair[1]))
        del kept[count:]
    return [(i, value) for value, i in kept]


def _visible(motion: Trajectory) -> Trajectory:
    """The part of a motion that diverged before the first state that nobody can look at."""
    size = np.maximum(np.abs(motion.q).max(axis=1), np.abs(motion.v).max(axis=1))
    bad = ~(size < GROWN)
    return motion[: int(np.argmax(bad))] if bad.any() else motion


def _first(results: Results, name: str, count: int) -> np.ndarray:
    """An output of the first samples that did not diverge."""
    parts, found = [], 0
    for chunk in results.chunks():
        good = chunk.columns[name][chunk.columns[DIVERGED] == 0][: count - found]
        parts.append(good)
        found += len(good)
        if found >= count:
            break
    return np.concatenate(parts)


def _listed(samples: list[int]) -> str:
    more = f" and {len(samples) - SAMPLES_SHOWN} more" if len(samples) > SAMPLES_SHOWN else ""
    return ", ".join(map(str, samples[:SAMPLES_SHOWN])) + more if samples else "none"


def label(results: Results, name: str, entry: int | None) -> str | None:
    """What a number of an output is, with its joint and unit where these are known; None of a quaternion's."""
    if isinstance(results.study.outputs.get(name), FinalAttitude):
        return None
    if entry is None:
        return name
    f: Any = results.study.outputs.get(name)
    if isinstance(f, FinalPosition):
        return f"{name} {'xyz'[entry]} (m)"
    rollout: Any = results.study.rollout
    places = ((final_q, 0), (final_v, 1), (peak_speed, 1), (peak_torque, 2))
    kind = next((kind for each, kind in places if f is each), None)
    return f"{name}[{entry}]" if kind is None else _of_joint(rollout.model, name, kind, entry)


def _of_joint(model: Model, name: str, kind: int, entry: int) -> str | None:
    from lgsim.view.panels import panels

    for panel in panels(model):
        places, letters = (panel.q, panel.q_names) if kind == 0 else (panel.v, panel.v_names)
        if entry in places:
            if panel.quaternion and kind == 0:
                return None
            letter = letters[places.index(entry)]
            return f"{name} {panel.joint}{' ' * bool(letter)}{letter} ({panel.units[kind]})"
    return f"{name}[{entry}]"
