"""The page about a fit: the numbers found, what the records show of them, and the residuals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from lgsim.identify import Fit, Recording, TorqueSamples, base_parameters
from lgsim.identify.recording.coordinates import dof_names
from lgsim.identify.verdict import WHITE, WORSE, held_out_ratio
from lgsim.support.messages import counted
from lgsim.support.packages import own_version, package
from lgsim.view.figures import TIME
from lgsim.view.reports import identification_plots as plots
from lgsim.view.reports.number_rows import column_units, number_rows, position_units
from lgsim.view.reports.page import Page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANY = 40
"""The number of rows above which a table is folded."""


def report_fit(
    fit: Fit,
    recording: Recording | None = None,
    motion: Recording | None = None,
    *,
    title: str = "Identification",
    subtitle: str = "",
    files: Sequence[str] = (),
    remarks: Sequence[str] = (),
    step_check: bool = True,
) -> Page:
    """Make one page about a fit: the numbers with their deviations, what the records show, the residuals.

    The page says whether what was held out is told as well as what was fitted, whether the residuals are white, and
    which combinations of the unknowns the records do not show.

    Args:
        fit: What ``identify.fit`` returned.
        recording: The record as it was read, for a section about its repairs; None for no such section.
        motion: The part of the record that was fitted, as ``identify.smooth`` gives it, for the axis of time; None for
            the numbers of the samples, or the regular clock of the records.
        files: Names of the files that were written beside the page.
        remarks: What of the fit those files do not hold.
        step_check: Whether simulated motion is simulated again by shorter steps, to say how wrong the steps make it.

    Returns:
        The page: ``.save("fit.html")`` or ``.html()``.

    Raises:
        ValueError: the motion has not as many samples as were fitted.
        ModuleNotFoundError: matplotlib is missing: ``pip install 'lgsim[plot]'``.
    """
    package("matplotlib", "plot", "a report")
    drawn = fit_figures(fit, recording, motion)
    page = Page(title, subtitle, f"lgsim {own_version()}")
    _summary(page, fit, recording, remarks, step_check)
    if recording is not None:
        _record(page, recording, motion, drawn)
    _numbers(page, fit, drawn)
    _identifiability(page, fit, drawn)
    _residuals(page, fit, drawn)
    if files or remarks:
        page.add_section("Files")
        page.add_list(files)
    if remarks:
        page.add_text("A URDF file has no place for these; the .npz file holds them:")
        page.add_list(remarks)
    return page


def fit_figures(fit: Fit, recording: Recording | None = None, motion: Recording | None = None) -> dict[str, Figure]:
    """The plots of ``report_fit`` by name: record, residuals, whiteness, singular-values, changes.

    Args:
        fit: What ``identify.fit`` returned.
        recording: The record as it was read; without it there is no plot "record".
        motion: The part of the record that was fitted, on smooth curves.

    Raises:
        ValueError: the motion has not as many samples as were fitted.
        ModuleNotFoundError: matplotlib is missing.
    """
    names = fit.estimator.columns(fit.parameters, fit.samples)
    drawn: dict[str, Figure] = {}
    if recording is not None:
        drawn["record"] = plots.record(recording, motion, dof_names(fit.model), position_units(fit))
    time, label = _time(fit, motion)
    drawn["residuals"] = plots.residuals(fit, time, names, column_units(fit), label)
    drawn["whiteness"] = plots.whiteness(fit, names)
    drawn["singular-values"] = plots.singular_values(fit)
    changed = plots.changes(number_rows(fit))
    return drawn if changed is None else drawn | {"changes": changed}


def _time(fit: Fit, motion: Recording | None) -> tuple[Float[np.ndarray, " n"], str]:
    """The time of each row of the residuals, s, or its number; and the label of the axis."""
    count = len(fit.residuals())
    if motion is not None:
        if len(motion) != count:
            raise ValueError(f"motion: expected the {count} samples that were fitted, got {len(motion)}")
        return np.asarray(motion.time, float), TIME
    if isinstance(fit.samples, TorqueSamples):
        return np.arange(count, dtype=float), "sample"
    nodes = next(iter(fit.samples.broadcast(fit.model).channels.values())).weight.shape[1]
    return float(fit.samples.dt) * (np.arange(count) % nodes), TIME


def _summary(page: Page, fit: Fit, recording: Recording | None, remarks: Sequence[str], step_check: bool) -> None:
    """Add the facts that one looks for first, and what they mean."""
    seen, ratio = fit.identifiability, held_out_ratio(fit)
    size = np.sqrt(np.mean(plots.signals(fit) ** 2, axis=0))
    share = (fit.rmse() / np.where(size > 0, size, np.nan))[size > 0]
    page.add_section("Summary")
    page.add_facts([
        ("unknowns", fit.parameters.size),
        ("combinations seen", f"{seen.rank} of {fit.parameters.size}"),
        ("samples fitted", len(fit.residuals())),
        ("residual, part of the signal", f"{100 * np.mean(share):.2g} %" if len(share) else None),
        ("held out / fitted error", "–" if ratio is None else f"{ratio:.3g}"),
        ("whiteness (1: white)", f"{fit.whiteness()[1]:.3g}"),
    ])  # fmt: skip
    page.add_verdict(fit.verdict.sentence, fit.verdict.converged)
    if step_check and fit.step_error is not None:
        page.add_verdict(fit.step_error.summary(), fit.step_error.resolved)
    if recording is not None and recording.report.open:
        count = counted(len(recording.report.open), "finding")
        page.add_remark(f"The record has {count} that only you can answer; see below. Until then, take care.", "bad")
    if ratio is not None and ratio <= WORSE:
        page.add_remark("What was held out is told as well as what was fitted: the numbers hold for this motion.",
                        "good")  # fmt: skip
    elif ratio is not None:
        page.add_remark(
            f"What was held out is told {ratio:.2g} times worse than what was fitted: too many unknowns for this"
            " motion, or a motion that changes its character.", "bad",
        )  # fmt: skip
    if fit.whiteness()[1] > WHITE:
        tells = "count" if fit.estimate.score_covariance is not None else "do not count"
        page.add_remark(
            "The residuals are not white: something moves that the model does not have, such as friction or"
            f" flexibility, or the motion is smoothed too much. Deviations {tells} how long the noise lasts."
        )
    if seen.rank < fit.parameters.size:
        blind = counted(fit.parameters.size - seen.rank, "combination")
        page.add_remark(
            f"{blind} of the unknowns cannot be seen in this record and stayed at the prior; numbers that they touch"
            " count only together with the others."
        )
    if remarks:
        page.add_remark("Not all that was found fits into a URDF file; see Files.")


def _record(page: Page, recording: Recording, motion: Recording | None, drawn: dict[str, Figure]) -> None:
    """Add what was found in the record, and a plot of it."""
    page.add_section("Record")
    page.add_facts([
        ("samples", len(recording)),
        ("duration", f"{recording.time[-1] - recording.time[0]:.4g} s"),
        ("usual rate", f"{1 / recording.dt:.4g} Hz"),
        ("channels", ", ".join(recording.channels)),
    ])  # fmt: skip
    if len(recording.report):
        page.add_table(
            ["what", "where", "samples", "the data show", "done"],
            [
                [("to answer: " if f.open else "") + f.kind, f.where, f.count or "–", f.seen, f.done]
                for f in recording.report
            ],
            caption="All that was found in the record, and what was done about it.",
        )
    else:
        page.add_remark("Nothing was wrong with the record.", "good")
    history = (recording if motion is None else motion).history
    if history:
        page.add_text(f"Steps: {'; '.join(history)}.")
    caption = "Recorded motion."
    if motion is not None:
        caption = (
            "Recorded motion, and the smooth curve whose derivatives are the velocities. Where there is no curve, the"
            " motion is held out."
        )
    page.add_figure(drawn["record"], caption)


def _numbers(page: Page, fit: Fit, drawn: dict[str, Figure]) -> None:
    """Add the table of the physical numbers, and a plot of their changes."""
    rows = number_rows(fit)
    page.add_section("Numbers")
    page.add_text(
        "A deviation is the standard deviation that the noise of the record leaves, other unknowns being free. The last"
        " column is how far the record moved a number, in deviations: below 2 it may be chance."
    )
    if "changes" in drawn:
        page.add_figure(
            drawn["changes"],
            f"How far the numbers moved from the prior: those that are known better than to their own size, at most"
            f" {plots.ROWS} of them.",
        )
    page.add_table(
        ["number", "unit", "prior", "found", "deviation", "moved by (deviations)"],
        [[n.name, n.unit, n.prior, n.found, n.deviation if math.isfinite(n.deviation) else None,
          n.significance] for n in rows],
        folded=f"All {len(rows)} numbers" if len(rows) > MANY else "",
    )  # fmt: skip


def _identifiability(page: Page, fit: Fit, drawn: dict[str, Figure]) -> None:
    """Add what the records show of combinations of the unknowns, and the base parameters."""
    seen = fit.identifiability
    page.add_section("Identifiability")
    page.add_text(
        "Singular values of the sensitivities, each unknown scaled to length one: how strongly each combination of the"
        " unknowns shows in the record. A small one needs more motion or a prior."
    )
    page.add_figure(drawn["singular-values"])
    if seen.unidentifiable:
        page.add_table(
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
        page.add_text(f"No base parameters: {error}.")
        return
    deviation = np.sqrt(
        np.maximum(np.diagonal(np.asarray(base.covariance(fit.parameters, fit.estimate.x, fit.estimate.covariance))), 0)
    )
    before, after = np.asarray(base.values(fit.parameters.plant)), np.asarray(base.values(fit.plant))
    page.add_table(
        ["base parameter", "prior", "found", "deviation"],
        [list(row) for row in zip(base.names, before.tolist(), after.tolist(), deviation.tolist(), strict=True)],
        caption="Base parameters: the sums of numbers that joint forces depend on, whatever the motion.",
        folded=counted(base.rank, "base parameter"),
    )


def _residuals(page: Page, fit: Fit, drawn: dict[str, Figure]) -> None:
    """Add the table and the plots of the residuals."""
    names, units = fit.estimator.columns(fit.parameters, fit.samples), column_units(fit)
    size, own = np.sqrt(np.mean(plots.signals(fit) ** 2, axis=0)), fit.rmse()
    other = np.full(len(names), np.nan) if fit.validation is None else fit.rmse(fit.validation)
    spread = np.sqrt(np.mean(np.asarray(fit.signal_deviations()) ** 2, axis=0))
    rho, _ = fit.whiteness()
    page.add_section("Residuals")
    page.add_table(
        ["signal", "unit", "recorded (rms)", "noise", "fitted error", "held-out error", "held out / fitted",
         "from the fit", "lag 1"],
        [
            [name, units[i], size[i], float(np.asarray(fit.estimate.noise)[i]), own[i], other[i],
             other[i] / own[i] if own[i] else None, spread[i], rho[0, i]]
            for i, name in enumerate(names)
        ],
        caption="Root mean squares. From the fit: what the uncertain numbers make of the signals, their covariance in"
        " the space of signals; it must be small against the noise. Lag 1: autocorrelation of neighbors.",
    )  # fmt: skip
    page.add_figure(drawn["residuals"], "Recorded against computed signals, and their difference.")
    page.add_figure(drawn["whiteness"], "Autocorrelation of the residuals; white noise stays within the band.")
