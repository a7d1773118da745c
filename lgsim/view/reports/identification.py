"""The report of a fit: parameters, identifiability and residuals."""

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
"""Number of rows above which a table is folded."""


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
    """Report of a fit: parameters with standard errors, identifiability, residuals.

    The page compares the held-out error with the training error, tests the whiteness of the residuals, and lists the
    combinations of unknowns that are not identifiable from the recordings.

    Args:
        fit: Result of ``identify.fit``.
        recording: Recording as it was read, for a section about its corrections; None to omit the section.
        motion: Part of the recording that was fitted, as returned by ``identify.smooth``, for the time axis; None for
            sample indices, or the clock of the recordings.
        files: Names of files that were written with the page.
        remarks: Results of the fit that those files do not contain.
        step_check: True to estimate the integration error of simulated motions by shorter steps.

    Returns:
        The page: ``.save("fit.html")`` or ``.html()``.

    Raises:
        ValueError: the number of samples of the motion is not that of the fit.
        ModuleNotFoundError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
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
        page.add_text("A URDF file cannot represent these results; the .npz file contains them:")
        page.add_list(remarks)
    return page


def fit_figures(fit: Fit, recording: Recording | None = None, motion: Recording | None = None) -> dict[str, Figure]:
    """Plots of ``report_fit`` by name: record, residuals, whiteness, singular-values, changes.

    Args:
        fit: Result of ``identify.fit``.
        recording: Recording as it was read; without it there is no plot "record".
        motion: Part of the recording that was fitted, smoothed.

    Raises:
        ValueError: the number of samples of the motion is not that of the fit.
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
    """Time of each row of the residuals, s, or its index, and the label of the axis."""
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
    """Add the key figures and their interpretation."""
    seen, ratio = fit.identifiability, held_out_ratio(fit)
    size = np.sqrt(np.mean(plots.signals(fit) ** 2, axis=0))
    share = (fit.rmse() / np.where(size > 0, size, np.nan))[size > 0]
    page.add_section("Summary")
    page.add_facts([
        ("unknowns", fit.parameters.size),
        ("identifiable combinations", f"{seen.rank} of {fit.parameters.size}"),
        ("samples fitted", len(fit.residuals())),
        ("residual relative to the signal", f"{100 * np.mean(share):.2g} %" if len(share) else None),
        ("held-out / training error", "–" if ratio is None else f"{ratio:.3g}"),
        ("whiteness (1: white)", f"{fit.whiteness()[1]:.3g}"),
    ])  # fmt: skip
    page.add_verdict(fit.verdict.sentence, fit.verdict.converged)
    if step_check and fit.step_error is not None:
        page.add_verdict(fit.step_error.summary(), fit.step_error.resolved)
    if recording is not None and recording.report.open:
        count = counted(len(recording.report.open), "open question")
        page.add_remark(f"The recording has {count}, see below. Answer them before you use the results.", "bad")
    if ratio is not None and ratio <= WORSE:
        page.add_remark("The held-out error is close to the training error: the parameters are valid for this motion.",
                        "good")  # fmt: skip
    elif ratio is not None:
        page.add_remark(
            f"The held-out error is {ratio:.2g} times the training error: there are too many unknowns for this"
            " motion, or the motion changes its character.", "bad",
        )  # fmt: skip
    if fit.whiteness()[1] > WHITE:
        account = "account" if fit.data_information.estimate.score_covariance is not None else "do not account"
        page.add_remark(
            "The residuals are not white: the model lacks an effect, such as friction or flexibility, or the motion"
            f" is smoothed too much. Standard errors {account} for the correlation of the noise."
        )
    if seen.rank < fit.parameters.size:
        blind = counted(fit.parameters.size - seen.rank, "combination")
        page.add_remark(
            f"{blind} of the unknowns are not identifiable from this recording and keep the prior; parameters in them"
            " are valid only in combination with the others."
        )
    if remarks:
        page.add_remark("A URDF file cannot represent all results; see Files.")


def _record(page: Page, recording: Recording, motion: Recording | None, drawn: dict[str, Figure]) -> None:
    """Add the findings about the recording, and its plot."""
    add_recording(page, recording, (recording if motion is None else motion).history)
    caption = "Recorded motion."
    if motion is not None:
        caption = (
            "Recorded and smoothed motion; the velocities are derivatives of the smoothed motion. The motion without a"
            " curve is held out."
        )
    page.add_figure(drawn["record"], caption)


def add_recording(page: Page, recording: Recording, history: Sequence[str]) -> None:
    """Add a section about a recording: its size, the findings about it, and the steps of its processing."""
    page.add_section("Recording")
    page.add_facts([
        ("samples", len(recording)),
        ("duration", f"{recording.time[-1] - recording.time[0]:.4g} s"),
        ("sampling rate", f"{1 / recording.dt:.4g} Hz"),
        ("channels", ", ".join(recording.channels)),
    ])  # fmt: skip
    if len(recording.report):
        page.add_table(
            ["finding", "where", "samples", "evidence", "correction"],
            [
                [("open: " if f.open else "") + f.kind, f.where, f.count or "–", f.seen, f.done]
                for f in recording.report
            ],
            caption="Findings about the recording, and corrections.",
        )
    else:
        page.add_remark("The recording needed no corrections.", "good")
    if history:
        page.add_text(f"Processing: {'; '.join(history)}.")


def _numbers(page: Page, fit: Fit, drawn: dict[str, Figure]) -> None:
    """Add the table of the physical parameters, and a plot of their changes."""
    rows = number_rows(fit)
    page.add_section("Parameters")
    page.add_text(
        "The standard error is due to the noise of the recording, with all other unknowns free. The last column is the"
        " change from the prior in standard errors; a change below 2 may be due to noise."
    )
    if "changes" in drawn:
        page.add_figure(
            drawn["changes"],
            f"Changes from the prior with 95 % confidence intervals, for parameters with standard errors below half of"
            f" their prior, at most {plots.ROWS}.",
        )
    page.add_table(
        ["parameter", "unit", "prior", "estimate", "standard error", "change (standard errors)"],
        [[n.name, n.unit, n.prior, n.found, n.deviation if math.isfinite(n.deviation) else None,
          n.significance] for n in rows],
        folded=f"All {len(rows)} parameters" if len(rows) > MANY else "",
    )  # fmt: skip


def _identifiability(page: Page, fit: Fit, drawn: dict[str, Figure]) -> None:
    """Add the identifiability of combinations of unknowns, and the base parameters."""
    seen = fit.identifiability
    page.add_section("Identifiability")
    page.add_text(
        "Singular values of the sensitivities, with columns scaled to unit length: the effect of each combination of"
        " the unknowns on the recording. A small value needs a more exciting motion or a prior."
    )
    page.add_figure(drawn["singular-values"])
    if seen.unidentifiable:
        page.add_table(
            ["combination", "coefficients of the unknowns"],
            [
                [i, ", ".join(f"{share:+.2f} {name}" for name, share in combination.items())]
                for i, combination in enumerate(seen.unidentifiable, start=1)
            ],
            caption="Combinations that are not identifiable from this recording: they keep the prior.",
            folded=counted(len(seen.unidentifiable), "unidentifiable combination")
            if len(seen.unidentifiable) > 3
            else "",
        )
    if not isinstance(fit.samples, TorqueSamples):
        return
    try:
        base = base_parameters(fit.parameters)
    except ValueError as error:
        page.add_text(f"No base parameters: {error}.")
        return
    covariance = fit.data_information.estimate.covariance
    rows = base.table(fit.parameters, fit.estimate.x, covariance)
    before = np.asarray(base.values(fit.parameters.plant)).tolist()
    page.add_table(
        ["base parameter", "prior", "estimate", "standard error"],
        [[name, prior, *row] for (name, row), prior in zip(rows.items(), before, strict=True)],
        caption="Base parameters: the combinations of inertial parameters that joint forces depend on.",
        folded=counted(base.rank, "base parameter"),
    )


def _residuals(page: Page, fit: Fit, drawn: dict[str, Figure]) -> None:
    """Add the table and the plots of the residuals."""
    names, units = fit.estimator.columns(fit.parameters, fit.samples), column_units(fit)
    size, own = np.sqrt(np.mean(plots.signals(fit) ** 2, axis=0)), fit.rmse()
    other = np.full(len(names), np.nan) if fit.validation is None else fit.rmse(fit.validation)
    spread = np.sqrt(np.mean(np.asarray(fit.signal_deviations()) ** 2, axis=0))
    rho, _ = fit.whiteness()
    shares = np.full(len(names), np.nan) if fit.goodness is None else fit.goodness.explained
    page.add_section("Residuals")
    page.add_table(
        ["signal", "unit", "recorded", "explained", "noise", "training error", "held-out error", "held-out / training",
         "parameter error", "lag 1"],
        [
            [name, units[i], size[i], shares[i], float(np.asarray(fit.estimate.noise)[i]), own[i], other[i],
             other[i] / own[i] if own[i] else None, spread[i], rho[0, i]]
            for i, name in enumerate(names)
        ],
        caption="Root mean squares. Explained: 1 minus mean squared residual relative to the variance of the signal."
        " Parameter error: the effect of the parameter covariance on the signals; it should"
        " be small relative to the noise. Lag 1: autocorrelation at a lag of one sample.",
    )  # fmt: skip
    page.add_figure(drawn["residuals"], "Recorded and computed signals, and residuals.")
    page.add_figure(drawn["whiteness"], "Autocorrelation of the residuals; white noise stays within the band.")
