"""Quantiles of a store, in one pass and constant memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgsim.montecarlo.store import Store, flat_names
from lgsim.montecarlo.study import DIVERGED, SAMPLE
from lgsim.simulation.extras import package

_DELTA = 1000
"""Centroids of the digest: the error in the level is about ``q (1 - q) / 1000``."""


def stored_quantiles(store: Store, name: str, levels: np.ndarray, samples: int) -> np.ndarray:
    """Quantiles (levels, ...) of an output of the first samples that did not diverge, by a t-digest of pyarrow.

    Source: Dunning, Ertl, Computing extremely accurate quantiles using t-digests, arXiv:1902.04023, 2019.
    """
    compute, acero, dataset = _arrow()
    _, shape = store.about.columns[name]
    flat = flat_names(name, shape)
    field = compute.field
    counts = (field(DIVERGED) == 0) & (field(SAMPLE) < samples)
    files = dataset.dataset([str(file) for file in store.files()], format="parquet")
    options = compute.TDigestOptions(q=levels.tolist(), delta=_DELTA)
    # one file ahead: by default the buffers of four grow with a store until they hold as much as its chunks
    scan = acero.ScanNodeOptions(files, columns=[*flat, DIVERGED, SAMPLE], filter=counts, fragment_readahead=1)
    plan = acero.Declaration.from_sequence([
        acero.Declaration("scan", scan),
        acero.Declaration("filter", acero.FilterNodeOptions(counts)),
        acero.Declaration("aggregate", acero.AggregateNodeOptions([(x, "tdigest", options, x) for x in flat])),
    ])  # fmt: skip
    # one thread: batches come in their order, and the digest is the same each time
    table = plan.to_table(use_threads=False)
    return np.stack([table[x].to_numpy() for x in flat], axis=1).reshape(len(levels), *shape)


def _arrow() -> tuple[Any, Any, Any]:
    compute, acero, dataset = (
        package(f"pyarrow.{name}", "montecarlo", "a store") for name in ("compute", "acero", "dataset")
    )
    return compute, acero, dataset
