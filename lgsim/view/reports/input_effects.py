"""Strongest random inputs of the outputs of a study: a table and scatter plots."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from lgsim.montecarlo import Results
from lgsim.montecarlo.intervals import normal_quantile
from lgsim.montecarlo.study import DIVERGED, INPUT
from lgsim.support.messages import counted
from lgsim.view import ensemble_plots
from lgsim.view.reports.page import Cell, Page

STRONGEST = 3
"""Largest number of inputs of an output in the table."""
SCATTERS = 9
"""Largest number of scatter plots."""
_OPEN_ROWS = 18
"""Number of rows of a table that is not folded."""


def add_input_effects(
    page: Page, results: Results, outputs: Sequence[str], label: Callable[[str, int | None], str | None], points: int
) -> None:
    """Add the strongest inputs of each output, and scatter plots of the strongest of all.

    Args:
        outputs: Names of the outputs.
        label: Text for an entry of an output, None for entries without a meaning of their own.
        points: Largest number of samples in a scatter plot.
    """
    columns = results.head(points)
    if results.study.sampler.tilts or not outputs or not any(name.startswith(INPUT) for name in columns):
        return
    found = results.correlations(outputs)
    sizes = {name: results.running.moments(name).mean.size for name in outputs}
    entries = [(name, k) for name, size in sizes.items() for k in range(size)]
    texts = [label(name, k if sizes[name] > 1 else None) for name, k in entries]
    rows: list[list[Cell]] = []
    pairs: list[tuple[float, int, int]] = []
    for k, text in enumerate(texts):
        if text is None:
            continue
        size = np.nan_to_num(np.abs(found.rank[:, k]))
        # 5 % of the outputs without any effect exceed it, by the normal limit of rank correlations
        chance = normal_quantile(1 - 0.05 / len(size)) / math.sqrt(max(found.samples[k] - 1, 1))
        order = [j for j in np.argsort(-size, kind="stable")[:STRONGEST].tolist() if size[j] > chance]
        rows += [
            [found.inputs[j], text, *(float(x[j, k]) for x in (found.rank, found.partial_rank, found.regression))]
            for j in order
        ]
        pairs += [(float(size[j]), j, k) for j in order[:1]]
    page.add_section("Inputs")
    if not rows:
        page.add_text("No rank correlation of an input with an output exceeds what is due to chance.")
        return
    page.add_table(
        ["input", "output", "rank correlation", "partial rank correlation", "regression coefficient"], rows,
        f"The {STRONGEST} strongest inputs of each output, as far as they exceed what is due to chance (5 % for an"
        " output). Partial: without the effects of the other inputs. The regression coefficient is in standard"
        " deviations of the output per standard deviation of the input.",
        folded="All inputs" if len(rows) > _OPEN_ROWS else "",
    )  # fmt: skip
    shown = []
    for _, j, place in sorted(pairs, key=lambda pair: -pair[0])[:SCATTERS]:
        name, k = entries[place]
        known = results.running.known_values.mask(columns[DIVERGED], columns, name)
        y = columns[name].reshape(len(known), -1)[known, k].astype(float)
        x = columns[INPUT + found.inputs[j]][known].astype(float)
        note = f"rank correlation {found.rank[j, place]:.2f}"
        shown.append(ensemble_plots.ScatterData(x, y, found.inputs[j], str(texts[place]), note))
    count = len(columns[DIVERGED])
    page.add_figure(ensemble_plots.scatters(shown), f"The strongest inputs, of {counted(count, 'sample')}.")
