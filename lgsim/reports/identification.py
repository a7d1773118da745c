"""The page about a fit: the numbers found, what the records show of them, and the residuals."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from lgsim.cli.errors import counted
from lgsim.cli.identify_preparation import Motion
from lgsim.identify import Fit, TorqueSamples, base_parameters
from lgsim.reports import identification_plots as plots
from lgsim.reports.identification_plots import Figure
from lgsim.reports.number_rows import numbers, units
from lgsim.reports.page import Page

ALIKE = 1.3
"""Held-out errors up to so many times those of the fit are no worse."""
WHITE = 2.0
"""Statistic of whiteness up to which deviations can be believed as they are."""
MANY = 40
"""Rows from which on a table is folded."""


def figures(fit: Fit, motion: Motion) -> dict[str, Figure]:
    """All plots by name."""
    names = fit.estimator.columns(fit.parameters, fit.samples)
    lengths, forces = units(fit)
    torques = isinstance(fit.samples, TorqueSamples)
    joints = [name.removeprefix("position ") for name in names][: fit.model.nv]
    drawn = {"record": plots.record(motion.recording, motion.shown, joints, lengths)}
    time = np.asarray(motion.shown.time)
    of_columns = forces if torques else [*lengths, *(f"{unit}/s" for unit in lengths)][: len(names)]
    drawn["residuals"] = plots.residuals(fit, time, names, of_columns)
    drawn["whiteness"] = plots.whiteness(fit, names)
    drawn["singular-values"] = plots.singular_values(fit)
    changed = plots.changes(numbers(fit))
    return drawn if changed is None else drawn | {"changes": changed}


def page(
    fit: Fit, motion: Motion, machine: str, what: str, files: list[str], lost: tuple[str, ...], version: str
) -> Page:
    """All that was found, on one page.

    Args:
        fit: What was found.
        motion: Of what.
        machine: Name of the machine's file.
        what: The unknowns and the method, in a line.
        files: That were written beside the page.
        lost: What the URDF file could not hold.
        version: Of lgsim.
    """
    drawn = figures(fit, motion)
    made = Page(f"Identification of {Path(machine).stem}", f"{motion.recording.source} · {what}", f"lgsim {version}")
    _summary(made, fit, motion, lost)
    _record(made, motion, drawn)
    _numbers(made, fit, drawn)
    _identifiability(made, fit, drawn)
    _residuals(made, fit, drawn)
    made.add_section("Files")
    made.add_list(files)
    if lost:
        made.add_text("A URDF file has no place for these; the .npz file holds them:")
        made.add_list(lost)
    return made


def _summary(made: Page, fit: Fit, motion: Motion, lost: tuple[str, ...]) -> None:
    seen, ratio = fit.identifiability, _held_out(fit)
    size = np.sqrt(np.mean(plots.signals(fit) ** 2, axis=0))
    share = (fit.rmse() / np.where(size > 0, size, np.nan))[size > 0]
    made.add_section("Summary")
    made.add_facts([
        ("unknowns", fit.parameters.size),
        ("combinations seen", f"{seen.rank} of {fit.parameters.size}"),
        ("samples fitted", len(motion.shown)),
        ("residual, part of the signal", f"{100 * np.mean(share):.2g} %" if len(share) else None),
        ("held out / fitted error", "–" if ratio is None else f"{ratio:.3g}"),
        ("whiteness (1: white)", f"{fit.whiteness()[1]:.3g}"),
    ])  # fmt: skip
    if fit.message:
        made.add_remark(fit.message, "bad")
    if motion.recording.report.open:
        count = counted(len(motion.recording.report.open), "finding")
        made.add_remark(f"The record has {count} that only you can answer; see below. Until then, take care.", "bad")
    if ratio is not None and ratio <= ALIKE:
        made.add_remark("What was held out is told as well as what was fitted: the numbers hold for this motion.",
                        "good")  # fmt: skip
    elif ratio is not None:
        made.add_remark(
            f"What was held out is told {ratio:.2g} times worse than what was fitted: too many unknowns for this"
            " motion, or a motion that changes its character.", "bad",
        )  # fmt: skip
    if fit.whiteness()[1] > WHITE:
        made.add_remark(
            "The residuals are not white: something moves that the model does not have, such as friction or"
            " flexibility, or the motion is smoothed too much. Deviations are then too small, unless --lags"
            " counts how long the noise lasts."
        )
    if seen.rank < fit.parameters.size:
        blind = counted(fit.parameters.size - seen.rank, "combination")
        made.add_remark(
            f"{blind} of the unknowns cannot be seen in this record and stayed at the prior; numbers that they touch"
            " count only together with the others."
        )
    if lost:
        made.add_remark("Not all that was found fits into a URDF file; see Files.")


def _held_out(fit: Fit) -> float | None:
    """Held-out over fitted errors, in the noise of each column."""
    if fit.validation is None:
        return None
    noise = np.asarray(fit.estimate.noise)
    own, other = fit.rmse() / noise, fit.rmse(fit.validation) / noise
    return float(np.sqrt(np.mean(other**2) / np.mean(own**2)))


def _record(made: Page, motion: Motion, drawn: dict[str, Figure]) -> None:
    recording = motion.recording
    made.add_section("Record")
    made.add_facts([
        ("samples", len(recording)),
        ("duration", f"{recording.time[-1] - recording.time[0]:.4g} s"),
        ("usual rate", f"{1 / recording.dt:.4g} Hz"),
        ("channels", ", ".join(recording.channels)),
    ])  # fmt: skip
    if len(recording.report):
        made.add_table(
            ["what", "where", "samples", "the data show", "done"],
            [
                [("to answer: " if f.open else "") + f.kind, f.where, f.count or "–", f.seen, f.done]
                for f in recording.report
            ],
            caption="All that was found in the record, and what was done about it.",
        )
    else:
        made.add_remark("Nothing was wrong with the record.", "good")
    made.add_text(f"Steps: {'; '.join(motion.shown.history)}.")
    made.add_figure(
        drawn["record"],
        "Recorded motion, and the smooth curve whose derivatives are the velocities. Where there is no curve, the"
        " motion is held out.",
    )


def _numbers(made: Page, fit: Fit, drawn: dict[str, Figure]) -> None:
    rows = numbers(fit)
    made.add_section("Numbers")
    made.add_text(
        "A deviation is the standard deviation that the noise of the record leaves, other unknowns being free. The last"
        " column is how far the record moved a number, in deviations: below 2 it may be chance."
    )
    if "changes" in drawn:
        made.add_figure(
            drawn["changes"],
            f"How far the numbers moved from the prior: those that are known better than to their own size, at most"
            f" {plots.ROWS} of them.",
        )
    made.add_table(
        ["number", "unit", "prior", "found", "deviation", "moved by (deviations)"],
        [[n.name, n.unit, n.prior, n.found, n.deviation if math.isfinite(n.deviation) else None, n.sure] for n in rows],
        folded=f"All {len(rows)} numbers" if len(rows) > MANY else "",
    )  # fmt: skip


def _identifiability(made: Page, fit: Fit, drawn: dict[str, Figure]) -> None:
    seen = fit.identifiability
    made.add_section("Identifiability")
    made.add_text(
        "Singular values of the sensitivities, each unknown scaled to length one: how strongly each combination of the"
        " unknowns shows in the record. A small one needs more motion or a prior."
    )
    made.add_figure(drawn["singular-values"])
    if seen.unidentifiable:
        made.add_table(
            ["combination", "the unknowns in it, with their shares"],
            [
                [i, ", ".join(f"{share:+.2f} {name}" for name, share in combination.items())]
                for i, combination in enumerate(seen.unidentifiable, start=1)
            ],
            caption="Combinations that the record does not show at all: they stay at the prior.",
            folded=counted(len(seen.unidentifiable), "invisible combination") if len(seen.unidentifiable) > 3 else "",
        )
    if not isinstance(fit.samples, TorqueSamples):
        return
    try:
        base = base_parameters(fit.parameters)
    except ValueError as error:
        made.add_text(f"No base parameters: {error}.")
        return
    deviation = np.sqrt(
        np.maximum(np.diagonal(np.asarray(base.covariance(fit.parameters, fit.estimate.x, fit.estimate.covariance))), 0)
    )
    before, after = np.asarray(base.values(fit.parameters.plant)), np.asarray(base.values(fit.plant))
    made.add_table(
        ["base parameter", "prior", "found", "deviation"],
        [list(row) for row in zip(base.names, before.tolist(), after.tolist(), deviation.tolist(), strict=True)],
        caption="Base parameters: the sums of numbers that joint forces depend on, whatever the motion.",
        folded=counted(base.rank, "base parameter"),
    )


def _residuals(made: Page, fit: Fit, drawn: dict[str, Figure]) -> None:
    names, (_, forces) = fit.estimator.columns(fit.parameters, fit.samples), units(fit)
    torques = isinstance(fit.samples, TorqueSamples)
    size, own = np.sqrt(np.mean(plots.signals(fit) ** 2, axis=0)), fit.rmse()
    other = np.full(len(names), np.nan) if fit.validation is None else fit.rmse(fit.validation)
    spread = np.sqrt(np.mean(np.asarray(fit.signal_deviations()) ** 2, axis=0))
    rho, _ = fit.whiteness()
    made.add_section("Residuals")
    made.add_table(
        ["signal", "unit", "recorded (rms)", "noise", "fitted error", "held-out error", "held out / fitted",
         "from the fit", "lag 1"],
        [
            [name, forces[i] if torques else "", size[i], float(np.asarray(fit.estimate.noise)[i]), own[i], other[i],
             other[i] / own[i] if own[i] else None, spread[i], rho[0, i]]
            for i, name in enumerate(names)
        ],
        caption="Root mean squares. From the fit: what the uncertain numbers make of the signals, their covariance in"
        " the space of signals; it must be small against the noise. Lag 1: autocorrelation of neighbours.",
    )  # fmt: skip
    made.add_figure(drawn["residuals"], "Recorded against computed signals, and their difference.")
    made.add_figure(drawn["whiteness"], "Autocorrelation of the residuals; white noise stays within the band.")
