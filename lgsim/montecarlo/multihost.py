"""Studies on several hosts with ``jax.distributed``: a GPU cluster under Slurm, a TPU pod.

Each host starts the same program:

    jax.distributed.initialize()  # or with coordinator_address, num_processes, process_id
    results = lgsim.montecarlo.multihost.run(study, "store")

Samples are independent: hosts compute whole chunks, each on its own devices by the program of a single host, and only
results are exchanged. A host that dies ends the run, as in any program of ``jax.distributed``; restart with
``resume=True``. If workers come and go, use ``lgsim.montecarlo.ray_cluster``.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jaxtyping import Shaped

from lgsim.montecarlo.engine import Engine, Progress, checked, collect, open_store
from lgsim.montecarlo.results import Results, RunningStatistics
from lgsim.montecarlo.store import Chunk, Store
from lgsim.montecarlo.study import Study


def run(
    study: Study,
    store: str | Path,
    *,
    resume: bool = False,
    chunk: int | None = None,
    progress: Progress | None = None,
    step_check: bool = True,
) -> Results | None:
    """Run a study on all hosts; each host calls it with the same arguments.

    Only the first host writes the store. The results are those of one host, bitwise if the hosts' devices are of equal
    kind and number.

    Args:
        store: See ``lgsim.montecarlo.run``; used on the first host only.
        resume: See ``lgsim.montecarlo.run``; used on the first host only.
        chunk: See ``lgsim.montecarlo.run``; used on the first host only.
        progress: See ``lgsim.montecarlo.run``; used on the first host only.
        step_check: See ``lgsim.montecarlo.run``; only the first host checks the steps.

    Returns:
        The results on the first host, None on the others.

    Raises:
        ValueError: the hosts have different studies.
        FileExistsError, RuntimeError, OSError, MemoryError: on the first host, see ``lgsim.montecarlo.run``.
    """
    engine, first = Engine(study), jax.process_index() == 0
    digests = _all_gather(np.frombuffer(bytes.fromhex(engine.fingerprint), np.uint8))
    if np.any(digests != digests[0]):
        found = ", ".join(sorted({bytes(row.tolist()).hex() for row in digests}))
        raise ValueError(f"study: expected the same one on all hosts, got {found}")
    with open_store(engine, store, resume=resume, chunk=chunk) if first else nullcontext() as kept:
        _fill(engine, kept, progress)
        if kept is None:
            return None
        results = collect(study, kept)
        return checked(engine, results) if step_check else results


def _fill(engine: Engine, store: Store | None, progress: Progress | None) -> None:
    """Compute the missing chunks of the first host's store: in each round one on each host."""
    hosts, here = jax.process_count(), jax.process_index()
    running, read = RunningStatistics(engine.study), 0
    while True:
        missing: list[int] = []
        if store is not None:
            while read < store.chunks and store.has(read) and not running.stopped:
                running.add(store.read(read))
                read += 1
                if progress is not None:
                    progress(running)
            missing = [] if running.stopped else store.missing()[:hosts]
        bounds = [store.bounds(k) for k in missing] if store is not None else []
        ahead = _all_gather(np.array(bounds + [(0, 0)] * (hosts - len(bounds)), np.int64))[0]
        if not np.any(ahead):
            return
        start, stop = ahead[here].tolist()
        own = engine.chunk(start, stop) if stop > start else None
        columns = _gather_columns(engine, own, int(np.max(ahead[:, 1] - ahead[:, 0])))
        if store is not None:
            for host, index in enumerate(missing):
                count = int(ahead[host, 1] - ahead[host, 0])
                store.write(index, Chunk(int(ahead[host, 0]), {name: x[host, :count] for name, x in columns.items()}))


def _gather_columns(engine: Engine, own: Chunk | None, count: int) -> dict[str, Shaped[np.ndarray, "hosts count ..."]]:
    """The columns of all hosts' chunks; those of a host with no chunk or a shorter one are padded with zeros."""
    found = {}
    for name, kind in engine.columns.items():
        x = np.zeros((count, *kind.shape), kind.dtype)
        if own is not None:
            x[: own.count] = own.columns[name]
        found[name] = _all_gather(x)
    return found


def _all_gather(x: Shaped[np.ndarray, "*shape"]) -> Shaped[np.ndarray, " hosts *shape"]:
    """The arrays of all hosts, sent as bytes, so that no number is converted."""
    plain = np.frombuffer(np.ascontiguousarray(x).tobytes(), np.uint8)
    found: Any = multihost_utils.process_allgather(plain, tiled=False)
    return np.frombuffer(np.asarray(found).tobytes(), x.dtype).reshape(-1, *x.shape)
