"""The engine of a study: it compiles once for the devices of a process and runs chunk by chunk."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.stages import Compiled
from jaxtyping import Integer, PyTree, Shaped

from lgsim._compile.xla import SWITCHES, with_arrays, xla_options
from lgsim._compile.xla.expansion import ClosedJaxpr
from lgsim.montecarlo.accuracy.step_check import plan, study_step_error
from lgsim.montecarlo.accuracy.step_error import StudyStepError
from lgsim.montecarlo.results import Results, RunningStatistics
from lgsim.montecarlo.rollout import Rollout
from lgsim.montecarlo.store import LOCK, Chunk, Store, StoreMetadata, package_versions
from lgsim.montecarlo.study import INPUT, SAMPLE, RandomNumber, Sampler, Study, flat_names, input_columns, tile_indices
from lgsim.montecarlo.traced_programs import (
    TracedProgram,
    array_leaves,
    program_key,
    study_fingerprint,
    traced_programs,
)
from lgsim.multibody import serialization
from lgsim.support.chunks import run_in_chunks
from lgsim.support.files import file_lock


@runtime_checkable
class Device(Protocol):
    """A JAX device, as in ``jax.devices()``."""

    @property
    def platform(self) -> str:
        """The kind of the device, such as "cpu"."""
        ...

    def memory_stats(self) -> dict[str, int] | None:
        """The memory in use and its limit, bytes, if the device reports them."""
        ...


_MEMORY_SHARE = 16
"""Maximum fraction of the memory for a chunk."""
_LARGEST_CHUNK = 2**16
"""Maximum number of samples in a chunk: the loss when a run is killed."""
_CACHED_PROGRAMS = 8
_compiled: OrderedDict[Hashable, tuple[Compiled, ClosedJaxpr]] = OrderedDict()
"""Compiled programs by their text and devices, with the traced objects, so that no address in a text is reused."""


class Engine:
    """A study on some devices, compiled once.

    Each device computes whole tiles, by the program that a single device would run.

    Attributes:
        devices: The devices of this process that are used.
    """

    def __init__(self, study: Study, devices: Sequence[Device] | None = None) -> None:
        """Compile a study for devices.

        Args:
            devices: Devices of this process, by default all of JAX's default kind.
        """
        self.study = study = with_arrays(study)  # other values of an output use the same program
        self.devices = list(jax.local_devices() if devices is None else devices)
        self._mesh = Mesh(np.array(self.devices), ("samples",))
        # if a loop of dynamic length is free, the program that runs the study also checks its steps
        self._checks = study.stepped is not None and self.devices[0].platform == "cpu"
        computed = study.with_substeps(1) if self._checks else study
        self._leaves = self._placed(computed)
        self._traced = traced_programs(computed)

    def _placed(self, study: Study) -> list[Array]:
        """The arrays of a study on all devices."""
        return jax.device_put(array_leaves(study), NamedSharding(self._mesh, PartitionSpec()))

    @property
    def width(self) -> int:
        """The number of samples that all devices compute at once: a tile each."""
        return self.study.tile * len(self.devices)

    @cached_property
    def fingerprint(self) -> str:
        """The study's ``fingerprint``."""
        return study_fingerprint(self.study)

    @cached_property
    def _random_numbers(self) -> dict[str, RandomNumber]:
        return self.study.sampler.random_numbers()

    @property
    def columns(self) -> dict[str, jax.ShapeDtypeStruct]:
        """The shape and dtype of each column of a sample, by name: those of the study, and of its random numbers."""
        inputs = self._random_numbers.items()
        return self.study.columns() | {INPUT + name: jax.ShapeDtypeStruct((), each.dtype) for name, each in inputs}

    @cached_property
    def chunk_size(self) -> int:
        """The number of samples, whole tiles on all devices, whose results need a small fraction of the memory."""
        kinds = self.columns.values()
        each = sum(kind.size * kind.dtype.itemsize for kind in kinds)
        most = min(_LARGEST_CHUNK, _physical_memory() // (_MEMORY_SHARE * each))
        return max(1, most // self.width) * self.width

    def chunk(self, start: int, stop: int) -> Chunk:
        """Compute the samples ``start`` to ``stop``; a pure function of its arguments.

        Args:
            start: A multiple of ``study.tile``.
            stop: The sample after the last one.

        Raises:
            ValueError: start is not a multiple of the tile, or stop is out of range.
            MemoryError: a tile exceeds the memory of a device.
        """
        if start % self.study.tile or not 0 <= start < stop <= self.study.samples:
            raise ValueError(
                f"chunk: expected samples from a multiple of {self.study.tile} to at most {self.study.samples}, got"
                f" {start} to {stop}"
            )
        draw, evaluate = self._programs
        parts, pending = [], None
        random = {each.distribution for each in self._random_numbers.values()}
        for first in range(start, stop, self.width):
            drawn = draw(self._leaves, self._indices(first))
            ahead = evaluate(self._leaves, drawn), {name: drawn.values[name] for name in random}
            if pending is not None:
                parts.append(jax.device_get(pending))
            pending = ahead
        parts.append(jax.device_get(pending))
        columns, values = jax.tree.map(lambda *x: np.concatenate(x)[: stop - start], *parts)
        return Chunk(start, {**columns, **input_columns(self._random_numbers, values)})

    def refined(self, samples: Integer[np.ndarray, " n"], substeps: int) -> dict[str, Shaped[np.ndarray, "n ..."]]:
        """The columns of some samples with the step divided by ``substeps``, which is an operand of one program.

        Args:
            samples: Indices of samples, in any order.
            substeps: Number of steps within each step of the study.

        Raises:
            TypeError: the study's rollout is a function.
        """
        leaves = self._placed(self.study.with_substeps(substeps))
        draw, evaluate = self._substepped_programs
        parts = []
        for first in range(0, len(samples), self.width):
            part = samples[first : first + self.width]
            padded = np.concatenate([part, np.repeat(part[-1:], self.width - len(part))]).astype(np.uint32)
            found = jax.device_get(evaluate(leaves, draw(leaves, self._on_devices(padded))))
            parts.append({name: x[: len(part)] for name, x in found.items()})
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def from_sampler(self, sampler: Sampler, count: int) -> dict[str, Shaped[np.ndarray, "n ..."]]:
        """The columns of the first samples of a sampler that differs from that of the study in its numbers only.

        Args:
            count: Number of samples, at most a tile.
        """
        study = eqx.tree_at(lambda s: s.sampler, self.study, sampler)
        leaves = self._placed(study.with_substeps(1) if self._checks else study)
        draw, evaluate = self._programs
        indices = self._on_devices(tile_indices(0, self.width, count))
        return {name: x[:count] for name, x in jax.device_get(evaluate(leaves, draw(leaves, indices))).items()}

    def _indices(self, first: int) -> Array:
        return self._on_devices(tile_indices(first, self.width, self.study.samples))

    def _on_devices(self, indices: Integer[np.ndarray, " width"]) -> Array:
        return jax.device_put(indices, NamedSharding(self._mesh, PartitionSpec("samples")))

    @cached_property
    def _programs(self) -> tuple[Compiled, Compiled]:
        """The compiled programs that draw the samples of a tile on each device, and that evaluate them."""
        return self._build(self._traced, self._leaves)

    @cached_property
    def _substepped_programs(self) -> tuple[Compiled, Compiled]:
        """The same with a number of substeps; on CPU these programs run the study."""
        if self._checks:
            return self._programs
        study = self.study.with_substeps(1)
        return self._build(traced_programs(study), self._placed(study))

    def _build(self, traced: list[TracedProgram], leaves: list[Array]) -> tuple[Compiled, Compiled]:
        """The two programs of ``_traced``, compiled for these devices."""
        limit = device_memory(self.devices[0])
        found = [self._compile(f, leaves, tile, jaxpr) for f, tile, jaxpr in traced]
        for program in found:
            sizes = program.memory_analysis()
            if sizes is None:
                continue
            needs = sizes.temp_size_in_bytes + sizes.output_size_in_bytes + sizes.argument_size_in_bytes
            if needs > limit:
                raise MemoryError(
                    f"tile: {self.study.tile} samples need {needs / 2**20:.0f} MiB, but a device has"
                    f" {limit / 2**20:.0f} MiB; use a smaller tile or save fewer states of each motion (save_every)"
                )
        return found[0], found[1]

    def _compile(self, f: Callable[..., PyTree], leaves: list[Array], tile: PyTree, jaxpr: ClosedJaxpr) -> Compiled:
        """Compile ``f(leaves, tile)`` for a tile on each device."""
        choices = tuple(
            switch.value for _, switch in SWITCHES.values()
        )  # the compiler choice does not appear in the text
        key = program_key(jaxpr), str(jax.tree.structure(tile)), tuple(self.devices), choices
        if key not in _compiled:
            samples = PartitionSpec("samples")
            if len(self.devices) > 1:
                f = jax.shard_map(
                    f, mesh=self._mesh, in_specs=(PartitionSpec(), samples), out_specs=samples, check_vma=False
                )
            sharding = NamedSharding(self._mesh, samples)
            given = jax.tree.map(
                lambda x: jax.ShapeDtypeStruct((self.width, *x.shape[1:]), x.dtype, sharding=sharding), tile
            )
            f = jax.jit(f, compiler_options=xla_options(self.devices[0].platform))
            _compiled[key] = f.lower(leaves, given).compile(), jaxpr
            if len(_compiled) > _CACHED_PROGRAMS:
                _compiled.popitem(last=False)
        _compiled.move_to_end(key)
        return _compiled[key][0]


def _physical_memory() -> int:
    """The memory of this computer, bytes; 8 GiB if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not available on this system
        return 2**33


def device_memory(device: Device) -> int:
    """The memory of a device, bytes; for a CPU that of the computer."""
    stats = device.memory_stats() or {}
    return stats.get("bytes_limit", _physical_memory())


Progress = Callable[[RunningStatistics], object]
"""Callback ``progress(running)``, called after each chunk with the statistics of all samples so far."""


def run(
    study: Study,
    store: str | Path | None = None,
    *,
    resume: bool = False,
    chunk: int | None = None,
    devices: Sequence[Device] | None = None,
    progress: Progress | None = None,
    step_check: bool = True,
) -> Results:
    """Run a study, or resume it.

    The results are bitwise identical on one device, and equal to rounding on others, for any chunk size and after any
    interruption. An interruption (Ctrl-C) ends the run and returns the samples computed so far.

    Args:
        store: Folder for the results; None to keep them in memory, 8 bytes for each number.
        resume: Resume an existing store, also with more samples than before.
        chunk: Number of samples between two writes, a multiple of the tile on all devices; by default chosen from the
            memory. An existing store keeps its own.
        devices: Devices of this process, by default all.
        progress: Called after each chunk with the statistics of all samples so far.
        step_check: Run some samples of a ``Rollout`` again with shorter steps at the end, see ``check_steps``; the
            result is in ``Results.step_error``.

    Returns:
        The results, ``finished`` unless interrupted.

    Raises:
        FileExistsError: the store exists, and ``resume`` is False.
        ValueError: the store belongs to another model, study, or version, or has more samples; or chunk is invalid. A
            study is identified by the text of its JAX program, so that another version of lgsim may change it.
        RuntimeError: another process is writing to the store.
        OSError: the disk is full; the store stays readable.
        MemoryError: a tile exceeds the memory of a device.
        ImportError: pyarrow is not installed.
    """
    engine = Engine(study, devices)
    if chunk is not None and (chunk < 1 or chunk % engine.width):
        raise ValueError(f"chunk: expected a multiple of {engine.width}, the tile on all devices, got {chunk}")
    if store is None:
        results = _run(engine, None, chunk or engine.chunk_size, progress)
        return checked(engine, results) if step_check else results
    with open_store(engine, store, resume=resume, chunk=chunk) as kept:
        return fill(engine, kept, progress, step_check=step_check)


def fill(engine: Engine, store: Store, progress: Progress | None = None, *, step_check: bool = True) -> Results:
    """Compute the missing samples of a store in this process and return the results; within ``open_store``.

    Args:
        store: Store of the study, locked by this process.

    Raises:
        OSError, MemoryError: see ``run``.
    """
    results = _run(engine, store, store.metadata.chunk, progress)
    return checked(engine, results) if step_check else results


def check_steps(engine: Engine, results: Results) -> StudyStepError | None:
    """Estimate the integration error of all statistics by running some samples again with dt/2 and a few with dt/4.

    For studies of some thousand samples or more it takes at most 15 % of the work of the study, on CPU in the program
    that ran the study. ``run`` calls it; call it for results of other schedulers.

    Returns:
        The errors; None if the rollout is a function, whose steps are unknown, or the study is not finished.
    """
    study = engine.study
    stepped = study.stepped
    if stepped is None or not results.finished or not results.samples:
        return None
    work = stepped.steps * max(1, stepped.model.nv)
    chosen = plan(results, engine.width, work)
    runner = engine
    if chosen.tile is not None:
        runner = Engine(study.with_tile(chosen.tile), engine.devices[:1])
    return study_step_error(results, chosen, runner.refined)


def checked(engine: Engine, results: Results) -> Results:
    """Results with their integration error, read from the store if available; omitted after an interruption."""
    store = results.source if isinstance(results.source, Store) else None
    if not results.finished or engine.study.stepped is None:
        return results
    results.step_error = None if store is None else store.step_error
    if results.step_error is None:
        with suppress(KeyboardInterrupt):
            results.step_error = check_steps(engine, results)
            if store is not None and results.step_error is not None:
                store.write_step_error(results.step_error)
    return results


@contextmanager
def open_store(engine: Engine, path: str | Path, *, resume: bool = False, chunk: int | None = None) -> Iterator[Store]:
    """Open the store of a study, new or, with ``resume``, an existing one, locked by this process.

    ``fill`` computes the missing samples in this process, ``lgsim.montecarlo.ray_cluster.fill`` on a cluster. User code
    writes ``engine.chunk(*store.bounds(k))`` for each k of ``store.missing()``, in any order, and ends with
    ``collect``.

    Raises:
        FileExistsError, ValueError, RuntimeError, OSError: see ``run``.
    """
    path = Path(path)
    _check_place(path, resume)
    path.mkdir(parents=True, exist_ok=True)
    with file_lock(path / LOCK) as lock:
        # read again, since another process may have written before this one got the lock
        _check_place(path, resume)
        metadata = store_metadata(engine, chunk)
        if not Store.exists(path):
            lock.sign()
            yield Store.create(path, metadata)
            return
        store = Store(path)
        if (wrong := store.metadata.mismatch(metadata)) is not None:
            raise ValueError(f"{path}: {wrong}")
        if chunk not in (None, store.metadata.chunk):
            raise ValueError(f"chunk: expected {store.metadata.chunk} as in the store, got {chunk}")
        if metadata.samples < store.metadata.samples:
            raise ValueError(
                f"samples: expected at least {store.metadata.samples} as in the store, got {metadata.samples}"
            )
        lock.sign()
        store.clean()
        if metadata.samples > store.metadata.samples:
            columns = store.metadata.columns
            store.write_metadata(replace(metadata, chunk=store.metadata.chunk, columns=columns))
            store.finish(None)
        yield store


def _check_place(path: Path, resume: bool) -> None:
    """Raise FileExistsError if a study can neither start nor resume a store at a path."""
    there = Store.exists(path)
    if there and not resume:
        raise FileExistsError(f"{path}: the store exists already; resume it with resume=True")
    if not there and not Store.vacant(path):
        raise FileExistsError(f"{path}: expected a new path or a store")


def collect(study: Study, store: Store, progress: Progress | None = None) -> Results:
    """The results of a store with all chunks, or as many as the study's rule to stop requires; marks it as finished.

    Raises:
        FileNotFoundError: a required chunk is missing.
        ValueError: a chunk is damaged.
    """
    return _run_chunks(study, store, store.read, store.metadata.chunk, progress)


def store_metadata(engine: Engine, chunk: int | None = None) -> StoreMetadata:
    """The metadata of a study's store, with the given or the default chunk size."""
    study = engine.study
    model = serialization.fingerprint(study.rollout.model) if isinstance(study.rollout, Rollout) else ""
    columns = {name: (str(kind.dtype), kind.shape) for name, kind in engine.columns.items()}
    flat = [SAMPLE, *(each for name, (_, shape) in columns.items() for each in flat_names(name, shape))]
    if twice := {name for name in flat if flat.count(name) > 1}:
        raise ValueError(f"outputs: expected names other than those of entries of arrays, got {sorted(twice)}")
    return StoreMetadata(
        engine.fingerprint, model, package_versions(), study.seed, study.samples, study.tile,
        chunk or engine.chunk_size, columns, jax.default_backend(),
    )  # fmt: skip


def _run(engine: Engine, store: Store | None, size: int, progress: Progress | None) -> Results:
    """The results of a study; samples that are not in the store are computed."""

    def chunk(index: int) -> Chunk:
        start = index * size
        if store is None:
            return engine.chunk(start, min(start + size, engine.study.samples))
        if store.has(index):
            return store.read(index)
        found = engine.chunk(*store.bounds(index))
        store.write(index, found)
        return found

    return _run_chunks(engine.study, store, chunk, size, progress)


def _run_chunks(
    study: Study, store: Store | None, chunk: Callable[[int], Chunk], size: int, progress: Progress | None
) -> Results:
    """Collect the results of the chunks in order, until the study stops.

    Args:
        store: The store with the chunks; None for chunks in memory.
        chunk: ``chunk(index)`` returns the samples from ``index * size`` on.
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
        # without the statistics, whose update may have been interrupted
        return Results(study, kept if store is None else store, finished=False)
    if store is not None:
        store.finish(running.samples)
    return Results(study, kept if store is None else store, running=running)


class _RunState(NamedTuple):
    """State of a run between two chunks: the number of chunks so far, and True if the study stops there."""

    chunks: int
    stopped: bool
