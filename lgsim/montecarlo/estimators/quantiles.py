"""Quantiles of samples in memory and in stores, and their confidence intervals."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from scipy import special

from lgsim.montecarlo.store import Store
from lgsim.montecarlo.study import DIVERGED, SAMPLE, flat_names
from lgsim.support.packages import package

SORTED = 2**20
"""Number of stored values up to which quantiles are those of the sorted samples."""
_DELTA = 1000
"""Number of centroids of the digest: the error in the level is about ``q (1 - q) / 1000``."""


def stored_quantiles(
    store: Store, name: str, levels: Float[np.ndarray, " levels"], samples: int
) -> Float[np.ndarray, " levels *shape"]:
    """Quantiles of an output over the first samples that did not diverge, by a t-digest of pyarrow.

    Args:
        levels: The levels, between 0 and 1.

    Source: Dunning, Ertl, Computing extremely accurate quantiles using t-digests, arXiv:1902.04023, 2019.
    """
    compute, acero, dataset = (
        package(f"pyarrow.{module}", "montecarlo", "a store") for module in ("compute", "acero", "dataset")
    )
    _, shape = store.metadata.columns[name]
    flat = flat_names(name, shape)
    field = compute.field
    counts = (field(DIVERGED) == 0) & (field(SAMPLE) < samples)
    files = dataset.dataset([str(file) for file in store.files()], format="parquet")
    options = compute.TDigestOptions(q=levels.tolist(), delta=_DELTA)
    # read-ahead of one file: the default of four buffers grows with a store to the size of its chunks
    scan = acero.ScanNodeOptions(files, columns=[*flat, DIVERGED, SAMPLE], filter=counts, fragment_readahead=1)
    plan = acero.Declaration.from_sequence([
        acero.Declaration("scan", scan),
        acero.Declaration("filter", acero.FilterNodeOptions(counts)),
        acero.Declaration("aggregate", acero.AggregateNodeOptions([(x, "tdigest", options, x) for x in flat])),
    ])  # fmt: skip
    # one thread: batches in order, so that the digest is reproducible
    table = plan.to_table(use_threads=False)
    return np.stack([table[x].to_numpy() for x in flat], axis=1).reshape(len(levels), *shape)


def sorted_quantiles(
    values: Float[np.ndarray, " n *shape"], levels: Float[np.ndarray, " levels"]
) -> Float[np.ndarray, " levels *shape"]:
    """Quantiles that interpolate linearly between sorted values, which may be infinite; NaN without values."""
    if not len(values):
        return np.full((len(levels), *values.shape[1:]), np.nan)
    if np.isfinite(values).all():
        return np.quantile(values, levels, axis=0)
    low, high = (np.quantile(values, levels, axis=0, method=method) for method in ("lower", "higher"))
    share = np.broadcast_to((levels * (len(values) - 1) % 1.0).reshape(-1, *(1,) * (values.ndim - 1)), low.shape)
    inside = (high > low) & (share > 0)
    gap = np.subtract(high, low, out=np.zeros(low.shape), where=inside)
    return low + np.multiply(share, gap, out=np.zeros(low.shape), where=inside)


def parts_quantiles(
    values: Float[np.ndarray, " n *shape"],
    known: Bool[np.ndarray, " n"],
    levels: Float[np.ndarray, " levels"],
    parts: int,
) -> Float[np.ndarray, " parts levels *shape"]:
    """Quantiles of each part of a sequence; NaN for a part without values.

    Sorted sample i of n, from 1, is the quantile of the level ``(i - 1/2) / n``: a part has so few samples that the
    bias of other definitions may exceed its error.

    Args:
        values: The samples of the parts in turn.
        known: True for samples that count.

    Source: Hyndman, Fan, Sample quantiles in statistical packages, The American Statistician 50(4), 1996, definition 5.
    """
    found = []
    for k in range(parts):
        x = values[k::parts][known[k::parts]]
        unknown = np.full((len(levels), *values.shape[1:]), np.nan)
        with np.errstate(invalid="ignore"):
            found.append(np.quantile(x, levels, axis=0, method="hazen") if len(x) else unknown)
    return np.stack(found)


def order_levels(
    levels: Float[np.ndarray, " levels"], count: int, independent: float, level: float
) -> tuple[Float[np.ndarray, " levels"], Float[np.ndarray, " levels"]]:
    """The levels of the sorted samples between which quantiles lie with a confidence of at least ``level``.

    The number of samples below a quantile is binomial, for any continuous distribution. The results are below 0 or
    above 1 where there are too few samples.

    Args:
        count: Number of samples.
        independent: Fraction of them that are independent.

    Source: David, Nagaraja, Order statistics, 3rd edition, 2003, section 7.1.
    """
    n, tail = round(independent * count), 0.5 - 0.5 * level
    low, high = (_binomial_quantile(p, n, levels) / independent for p in (tail, 1 - tail))
    # as places of sorted samples, from 0
    return (low - 1) / max(count - 1, 1), high / max(count - 1, 1)


def _binomial_quantile(p: float, n: int, q: Float[np.ndarray, " levels"]) -> Float[np.ndarray, " levels"]:
    """The smallest k with a probability of at least p of k or fewer of n events of probability q."""
    inside = (q > 0) & (q < 1)
    safe = np.where(inside, q, 0.5)
    found = np.ceil(special.bdtrik(p, n, safe))
    found = np.where(np.isfinite(found), found, 0.0)
    below = np.maximum(found - 1, 0)
    return np.where(inside, np.where(special.bdtr(below, n, safe) >= p, below, found), n * q)
