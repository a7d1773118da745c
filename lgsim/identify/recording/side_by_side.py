"""Several tables of one recording, side by side: their columns at the times of the first one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from lgsim.identify.logs.streams import resample
from lgsim.identify.recording.columns import Slot
from lgsim.identify.recording.tables import Table, digest


class TimedTable(NamedTuple):
    """A table with its times.

    Attributes:
        time: The times of its rows, s.
        slots: Slots in a recording and factors to SI of columns whose own names are sufficient.
    """

    table: Table
    time: Float[np.ndarray, " n"]
    slots: Mapping[str, tuple[Slot, float]]


def join_columns(path: Path, main: Table, time: Float[np.ndarray, " n"], others: Mapping[Path, TimedTable]) -> Table:
    """The columns of a table, and those of others as "<file name without ending>/<column>", at its times.

    Values are interpolated linearly, and are NaN outside of the range of a file and in its gaps.

    Args:
        path: The file of the main table, for messages.
        time: The times of its rows, s.
        others: The further tables by file.

    Raises:
        ValueError: the times of two files do not overlap, two have one name, or one has no named columns.
    """
    columns, findings, texts = dict(main.columns), list(main.findings), dict(main.texts)
    slots, scales = dict(main.slots), dict(main.scales)
    for file, (table, stamps, own) in others.items():
        prefix = f"{file.stem}/"
        if not table.columns or any(name.startswith(prefix) for name in columns):
            raise ValueError(
                f"{file}: expected named columns, in a file of another name, got {len(table.columns)} columns"
            )
        values = resample(time, stamps, np.stack(list(table.columns.values()), axis=1))
        if len(time) and np.all(np.isnan(values)):
            spans = [f"{np.nanmin(t):.6g} to {np.nanmax(t):.6g} s" for t in (time, stamps) if np.isfinite(t).any()]
            raise ValueError(
                f"{file}: expected times that overlap with those of {path.name}, got {' and '.join(spans[::-1])}"
            )
        columns |= {prefix + name: values[:, i] for i, name in enumerate(table.columns)}
        slots |= {prefix + name: slot for name, (slot, _) in own.items()}
        scales |= {prefix + name: scale for name, (_, scale) in own.items()}
        texts |= {prefix + name: why for name, why in table.texts.items()}
        findings += [replace(finding, where=prefix + finding.where) for finding in table.findings]
    source = main.source or "; ".join(map(digest, (path, *others)))
    return main._replace(
        columns=columns, findings=tuple(findings), slots=slots, scales=scales, texts=texts, source=source
    )
