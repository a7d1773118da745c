"""The run of a study, chunk by chunk, in memory or into a store that can be resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax

from lgsim.montecarlo.engine import Chunk, Engine
from lgsim.montecarlo.results import Results, RunningStatistics
from lgsim.montecarlo.rollout import Rollout
from lgsim.montecarlo.store import Store, StoreMetadata, locked
from lgsim.montecarlo.study import Study
from lgsim.multibody.serialization import fingerprint
from lgsim.support.chunks import run_in_chunks
from lgsim.support.version import own_version

Progress = Callable[[RunningStatistics], Any]
"""``progress(running)`` is called after each chunk with the statistics of all samples so far."""


def run(
    study: Study,
    store: str | Path | None = None,
    *,
    resume: bool = False,
    chunk: int | None = None,
    devices: Sequence[Any] | None = None,
    progress: Progress | None = None,
) -> Results:
    """Run a study, or the rest of it.

    The results are the same bit for bit on one device, and to rounding on others, whatever the size of the chunks, and
    however often the run was killed and resumed. An interruption (Ctrl-C) ends the run; the samples computed before it
    are returned.

    Args:
        study: The study.
        store: Folder for the results; without one they stay in memory, 8 bytes for each number.
        resume: Whether to go on with a store that exists, also with more samples than it was made for.
        chunk: Number of samples computed between two writes, a multiple of the tile on all devices; by default what
            fits into a part of the memory. A store that exists has its own.
        devices: Devices of this process, by default all.
        progress: Called after each chunk with the statistics of all samples so far.

    Returns:
        The results, ``finished`` unless interrupted.

    Raises:
        FileExistsError: the store exists, and ``resume`` is False.
        ValueError: the store is of another model, study, or version, or has more samples; chunk does not fit. A study
            is known by the text of its program as JAX traces it, so that other code of lgsim may make another study.
        RuntimeError: another process writes to the store.
        OSError: the disk is full; the store stays readable.
        MemoryError: a tile does not fit into the memory of a device.
        ImportError: pyarrow is missing.
    """
    engine = Engine(study, devices)
    if chunk is not None and (chunk < 1 or chunk % engine.width):
        raise ValueError(f"chunk: expected a multiple of {engine.width}, the tile on all devices, got {chunk}")
    if store is None:
        return _run(engine, None, chunk or engine.chunk_size, progress)
    with open_store(engine, store, resume=resume, chunk=chunk) as kept:
        return fill(engine, kept, progress)


def fill(engine: Engine, store: Store, progress: Progress | None = None) -> Results:
    """Compute in this process the samples that a store lacks, and give the results; within ``open_store``.

    Args:
        engine: Engine of the study.
        store: Store of the study, held for this process.
        progress: See ``run``.

    Raises:
        OSError, MemoryError: see ``run``.
    """
    return _run(engine, store, store.about.chunk, progress)


@contextmanager
def open_store(engine: Engine, path: str | Path, *, resume: bool = False, chunk: int | None = None) -> Iterator[Store]:
    """The store of a study, new or with ``resume`` the one that exists, held for this process.

    ``fill`` computes the samples that it lacks in this process, ``lgsim.montecarlo.ray_cluster.fill`` on a cluster. Own
    code writes ``engine.chunk(*store.bounds(k))`` for each k of ``store.missing()``, in any order, and closes with
    ``collect``.

    Args:
        engine: Engine of the study.
        path: Folder of the store.
        resume, chunk: See ``run``.

    Raises:
        FileExistsError, ValueError, RuntimeError, OSError: see ``run``.
    """
    path = Path(path)
    there = Store.exists(path)
    if there and not resume:
        raise FileExistsError(f"{path}: there is a store already; resume=True goes on with it")
    if not there and not Store.vacant(path):
        raise FileExistsError(f"{path}: expected a path where nothing is yet, or a store")
    path.mkdir(parents=True, exist_ok=True)
    with locked(path / "lock"):
        about = describe(engine, chunk)
        if not Store.exists(path):
            yield Store.create(path, about)
            return
        store = Store(path)
        if (wrong := store.about.differs(about)) is not None:
            raise ValueError(f"{path}: {wrong}")
        if chunk not in (None, store.about.chunk):
            raise ValueError(f"chunk: expected {store.about.chunk}, that of the store, got {chunk}")
        if about.samples < store.about.samples:
            raise ValueError(
                f"samples: expected at least {store.about.samples}, which the store has, got {about.samples}"
            )
        store.clean()
        if about.samples > store.about.samples:
            store.describe(replace(about, chunk=store.about.chunk))
            store.finish(None)
        yield store


def collect(study: Study, store: Store, progress: Progress | None = None) -> Results:
    """The results of a store that has all chunks, or as many as the study's rule to stop asks for; it is then finished.

    Args:
        study: The study.
        store: Store of the study.
        progress: See ``run``.

    Raises:
        FileNotFoundError: a chunk that counts is missing.
        ValueError: a chunk is damaged.
    """
    return _joined(study, store, store.read, store.about.chunk, progress)


def describe(engine: Engine, chunk: int | None = None) -> StoreMetadata:
    """The metadata of a store for a study, with chunks of so many samples or by default of the engine's own size."""
    study = engine.study
    model = fingerprint(study.rollout.model) if isinstance(study.rollout, Rollout) else ""
    columns = {name: (str(kind.dtype), kind.shape) for name, kind in study.columns().items()}
    versions = {"lgsim": own_version(), "jax": version("jax"), "jaxlib": version("jaxlib")}
    return StoreMetadata(
        engine.fingerprint, model, versions, study.seed, study.samples, study.tile, chunk or engine.chunk_size, columns,
        jax.default_backend(),
    )  # fmt: skip


def _run(engine: Engine, store: Store | None, size: int, progress: Progress | None) -> Results:
    """The results of a study, computed where they are not in the store."""

    def chunk(index: int) -> Chunk:
        start = index * size
        if store is None:
            return engine.chunk(start, min(start + size, engine.study.samples))
        if not store.has(index):
            store.write(index, engine.chunk(*store.bounds(index)))
        return store.read(index)

    return _joined(engine.study, store, chunk, size, progress)


def _joined(
    study: Study, store: Store | None, chunk: Callable[[int], Chunk], size: int, progress: Progress | None
) -> Results:
    """The results of the chunks, one after another, until the study stops.

    Args:
        study: The study.
        store: The store that holds the chunks; None where they stay in memory.
        chunk: ``chunk(index)`` gives the samples from ``index * size`` on.
        size: Number of samples in a chunk.
        progress: See ``run``.
    """
    running, kept = RunningStatistics(study), []

    def advance(state: _RunState) -> _RunState:
        found = chunk(state.chunks)
        running.add(found)
        if store is None:
            kept.append(found.part(found.start, running.samples))
        return _RunState(state.chunks + 1, running.stopped)

    _, interrupted = run_in_chunks(
        _RunState(0, False),
        advance,
        lambda state: state.stopped or state.chunks * size >= study.samples,
        progress=None if progress is None else lambda before, after: progress(running),
    )
    if interrupted:
        # without the statistics, which may have been interrupted themselves
        return Results(study, kept if store is None else store, finished=False)
    if store is not None:
        store.finish(running.samples)
    return Results(study, kept if store is None else store, running=running)


class _RunState(NamedTuple):
    """State of a run between two chunks: the number of chunks that are there, and whether the study stops with them."""

    chunks: int
    stopped: bool
