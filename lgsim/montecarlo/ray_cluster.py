"""Studies on a Ray cluster: each chunk is a task that may run anywhere, more than once, with the same result.

The extra: ``pip install 'lgsim[ray]'``. Ray schedules the tasks and repeats those whose worker or host dies; only this
process writes the store, so that nothing is lost or written twice.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax

from lgsim.montecarlo.engine import Engine, Progress, checked, collect, store_metadata
from lgsim.montecarlo.results import Results, RunningStatistics
from lgsim.montecarlo.store import Chunk, Store, StoreMetadata
from lgsim.montecarlo.study import Study
from lgsim.support.packages import package

_TASKS_PER_CPU = 2
"""Number of tasks for each CPU of the cluster that are submitted to Ray at once: enough to keep all busy without piling
up results.
"""
_COPIED_VARIABLES = ("XLA_FLAGS", "JAX_PLATFORMS")
"""Environment variables that workers inherit: some of them affect the last bits of results."""

_engines: dict[tuple[str, int], Engine] = {}
"""The engines of a worker by fingerprint and number of samples: a process compiles a study once."""


def fill(
    engine: Engine,
    store: Store,
    *,
    address: str | None = None,
    resources: Mapping[str, Any] | None = None,
    retries: int = -1,
    progress: Progress | None = None,
    step_check: bool = True,
) -> Results:
    """Compute the missing samples of a store on a Ray cluster and return the results; within ``open_store``.

    The results are those of one device of the cluster's kind, bitwise if its hosts have the same processor and the same
    versions. An interruption (Ctrl-C) ends it with the chunks computed so far.

    Args:
        store: The store, locked by this process.
        address: The cluster's address as in ``ray.init``; by default the connected cluster, or else a new one on this
            host.
        resources: Resources of a task, such as ``{"num_cpus": 1}`` or ``{"num_gpus": 1}``; by default one CPU.
        retries: Maximum number of repetitions of a chunk whose worker died; -1 for no limit.
        progress: See ``run``; it covers the samples before the first missing chunk.
        step_check: See ``run``; this process does it after the last sample.

    Returns:
        The results, ``finished`` unless interrupted.

    Raises:
        ImportError: ray is not installed.
        RuntimeError: a worker has other versions, or its study differs after serialization.
        ray.exceptions.RayTaskError: a chunk failed for another reason; completed chunks are kept.
    """
    study = engine.study
    expected = store_metadata(engine, store.metadata.chunk)
    running, index = RunningStatistics(study), 0
    pending: dict[Any, int] = {}
    try:
        with _connect(address) as ray, _cancel_on_exit(ray, pending):
            task = ray.remote(_chunk).options(
                max_retries=retries, runtime_env={"env_vars": _worker_environment()}, **(resources or {"num_cpus": 1})
            )
            missing = iter(store.missing())
            shared = ray.put((study, expected))
            while True:
                while index < store.chunks and store.has(index) and not running.stopped:
                    running.add(store.read(index))
                    index += 1
                    if progress is not None:
                        progress(running)
                if running.stopped or index == store.chunks:
                    break
                most = _TASKS_PER_CPU * max(1, int(ray.cluster_resources().get("CPU", 1)))
                while len(pending) < most and (k := next(missing, None)) is not None:
                    pending[task.remote(shared, *store.bounds(k))] = k
                done, _ = ray.wait(list(pending), num_returns=1)
                for each in done:
                    store.write(pending.pop(each), ray.get(each))
    except KeyboardInterrupt:
        return Results(study, store, finished=False)
    results = collect(study, store)
    return checked(engine, results) if step_check else results


def _chunk(shared: tuple[Study, StoreMetadata], start: int, stop: int) -> Chunk:
    """Compute the samples start to stop on a worker: a task.

    Raises:
        RuntimeError: the worker has other versions, or its study differs after serialization.
    """
    study, expected = shared
    key = expected.study, study.samples
    if (engine := _engines.get(key)) is None:
        engine = Engine(study)
        if (wrong := expected.mismatch(store_metadata(engine, expected.chunk))) is not None:
            wrong = wrong.partition(";")[0].replace("the store belongs to", "the worker has")
            wrong = wrong.replace("it has", "the study has").replace("in the store", "in the study")
            raise RuntimeError(f"{os.uname().nodename}: {wrong.replace('this run has', 'the worker has')}")
        _engines.clear()
        _engines[key] = engine
    return engine.chunk(start, stop)


@contextmanager
def _cancel_on_exit(ray: Any, pending: Mapping[Any, int]) -> Iterator[None]:
    """Cancel, on exit, the tasks that are no longer needed."""
    try:
        yield
    finally:
        for each in pending:
            ray.cancel(each, force=True)


def _worker_environment() -> dict[str, str]:
    """The environment variables that a worker needs for the same results."""
    found = {name: os.environ[name] for name in _COPIED_VARIABLES if name in os.environ}
    settings = jax.config.values
    if settings["jax_compilation_cache_dir"] is not None:
        found["JAX_COMPILATION_CACHE_DIR"] = settings["jax_compilation_cache_dir"]
    return found | {"JAX_ENABLE_X64": str(int(settings["jax_enable_x64"]))}


@contextmanager
def _connect(address: str | None) -> Iterator[Any]:
    """Connect to a Ray cluster; a new connection is closed afterwards."""
    ray = package("ray", "ray", "a cluster")
    if ray.is_initialized():
        yield ray
        return
    with warnings.catch_warnings():
        # Ray starts its processes by fork, of which JAX warns; each of them calls exec at once
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        if address is None:
            ray.init(log_to_driver=False, include_dashboard=False)
        else:
            ray.init(address=address, log_to_driver=False)
    try:
        yield ray
    finally:
        ray.shutdown()
