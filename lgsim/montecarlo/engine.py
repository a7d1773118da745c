"""The engine: a study compiled once for the devices of a process, and its samples chunk by chunk."""

from __future__ import annotations

import hashlib
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.stages import Compiled
from jaxtyping import PyTree, Shaped

from lgsim.montecarlo.study import Study, tile_indices
from lgsim.xla import xla_options
from lgsim.xla.program_text import ClosedJaxpr, program_texts

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# what a text says of a program of batch_last is its class alone: as in stores written before the class was moved
_PROGRAM = re.compile(r"<[\w.]+\._Program object")


@runtime_checkable
class Device(Protocol):
    """A device of JAX, as of ``jax.devices()``."""

    @property
    def platform(self) -> str:
        """The kind of the device, such as "cpu"."""
        ...

    def memory_stats(self) -> dict[str, int] | None:
        """The memory in use and its limit, bytes, where the device says it."""
        ...


def fingerprint(study: Study, programs: list[ClosedJaxpr]) -> str:
    """Sixteen hexadecimal digits that differ between studies of other programs, numbers, seeds or tiles.

    They are the same in every process. The number of samples, and when a study stops, does not count but for a Latin
    hypercube.

    Args:
        study: The study.
        programs: The programs that it runs on a tile, traced.
    """
    digest = hashlib.sha256(f"tile {study.tile} bound {study.bound!r}".encode())
    for program in programs:
        text = _ADDRESS.sub("", "\n".join(program_texts(program)))
        digest.update(_PROGRAM.sub("<lgsim.spatial.batching._Program object", text).encode())
        for const in program.consts:
            digest.update(_bytes(const))
    parts = study.sampler, study.rollout, study.outputs, study.failures
    names = study.sampler.names, [(name, kind.shape, str(kind.dtype)) for name, kind in study.columns().items()]
    digest.update(repr(names).encode())
    for leaf in jax.tree.leaves(eqx.filter(parts, eqx.is_array)):
        digest.update(_bytes(leaf))
    return digest.hexdigest()[:16]


def program_key(program: ClosedJaxpr) -> str:
    """A digest of a traced program in this process: equal for programs that may share one compilation."""
    digest = hashlib.sha256(str(program.jaxpr).encode())
    for const in program.consts:
        digest.update(_bytes(const))
    return digest.hexdigest()


def _bytes(x: Shaped[Array, " ..."] | Shaped[np.ndarray, " ..."]) -> bytes:
    array = np.ascontiguousarray(x)
    return f"{array.dtype.str} {array.shape}".encode() + array.tobytes()


_MEMORY_SHARE = 16
"""A chunk takes at most this part of the memory."""
_LARGEST_CHUNK = 2**16
"""Samples in a chunk at most: what is lost when a run is killed."""
_CACHED_PROGRAMS = 8
_compiled: OrderedDict[Hashable, tuple[Compiled, ClosedJaxpr]] = OrderedDict()
"""Compiled programs by their text and devices, with what they were made of, so that no address in a text is reused."""


class Chunk(NamedTuple):
    """The results of samples ``start`` to ``start + count``.

    Attributes:
        start: The first sample.
        columns: Arrays of NumPy (count, ...) by name.
    """

    start: int
    columns: dict[str, Shaped[np.ndarray, "count ..."]]

    @property
    def count(self) -> int:
        """The number of samples."""
        return len(next(iter(self.columns.values())))

    def part(self, first: int, stop: int) -> Chunk:
        """The samples ``first`` to ``stop`` of the study, which this chunk must have."""
        cut = slice(first - self.start, stop - self.start)
        return Chunk(first, {name: x[cut] for name, x in self.columns.items()})


class Engine:
    """A study on some devices, compiled once.

    Each device computes whole tiles, by the program that one device alone would run.

    Attributes:
        study: The study.
        devices: The devices of this process that compute.
    """

    def __init__(self, study: Study, devices: Sequence[Device] | None = None) -> None:
        """An engine.

        Args:
            study: The study.
            devices: Devices of this process, by default all of JAX's default kind.
        """
        self.study = study
        self.devices = list(jax.local_devices() if devices is None else devices)
        arrays, static = eqx.partition(study, eqx.is_array)
        # leaves alone: programs do not depend on how many samples there are to be
        leaves, structure = jax.tree.flatten(arrays)

        def combined(leaves: list[Array]) -> Study:
            return eqx.combine(jax.tree.unflatten(structure, leaves), static)

        def draw(leaves: list[Array], indices: Array) -> PyTree:
            return jax.vmap(combined(leaves).sampler.draw)(indices)

        def evaluate(leaves: list[Array], samples: PyTree) -> PyTree:
            return jax.vmap(combined(leaves).evaluate)(samples)

        self._mesh = Mesh(np.array(self.devices), ("samples",))
        self._leaves = jax.device_put(leaves, NamedSharding(self._mesh, PartitionSpec()))
        indices = jax.ShapeDtypeStruct((study.tile,), jnp.uint32)
        drawn, samples = jax.make_jaxpr(draw, return_shape=True)(leaves, indices)
        self._traced = [(draw, indices, drawn), (evaluate, samples, jax.make_jaxpr(evaluate)(leaves, samples))]

    @property
    def width(self) -> int:
        """The number of samples that all devices compute at once: a tile each."""
        return self.study.tile * len(self.devices)

    @cached_property
    def fingerprint(self) -> str:
        """The study's ``fingerprint``."""
        return fingerprint(self.study, [jaxpr for _, _, jaxpr in self._traced])

    @cached_property
    def chunk_size(self) -> int:
        """The number of samples, whole tiles on all devices, whose results take a small part of the memory."""
        kinds = self.study.columns().values()
        each = sum(kind.size * kind.dtype.itemsize for kind in kinds)
        most = min(_LARGEST_CHUNK, physical_memory() // (_MEMORY_SHARE * each))
        return max(1, most // self.width) * self.width

    def chunk(self, start: int, stop: int) -> Chunk:
        """The results of samples ``start`` to ``stop``, which depend on nothing else.

        Args:
            start: A multiple of ``study.tile``.
            stop: The sample after the last one.

        Raises:
            ValueError: start is no such multiple, or there are no such samples.
            MemoryError: a tile does not fit into the memory of a device.
        """
        if start % self.study.tile or not 0 <= start < stop <= self.study.samples:
            raise ValueError(
                f"chunk: expected samples from a multiple of {self.study.tile} up to {self.study.samples} at most, got"
                f" {start} to {stop}"
            )
        draw, evaluate = self._programs
        parts, pending = [], None
        for first in range(start, stop, self.width):
            ahead = evaluate(self._leaves, draw(self._leaves, self._indices(first)))
            if pending is not None:
                parts.append(jax.device_get(pending))
            pending = ahead
        parts.append(jax.device_get(pending))
        names = parts[0]
        return Chunk(start, {name: np.concatenate([p[name] for p in parts])[: stop - start] for name in names})

    def _indices(self, first: int) -> Array:
        given = tile_indices(first, self.width, self.study.samples)
        return jax.device_put(given, NamedSharding(self._mesh, PartitionSpec("samples")))

    @cached_property
    def _programs(self) -> tuple[Compiled, Compiled]:
        """The compiled programs that draw the samples of a tile on each device, and that evaluate them."""
        limit = device_memory(self.devices[0])
        found = [self._compile(*traced) for traced in self._traced]
        for program in found:
            sizes = program.memory_analysis()
            if sizes is None:
                continue
            needs = sizes.temp_size_in_bytes + sizes.output_size_in_bytes + sizes.argument_size_in_bytes
            if needs > limit:
                raise MemoryError(
                    f"tile: {self.study.tile} samples need {needs / 2**20:.0f} MiB, but a device has"
                    f" {limit / 2**20:.0f} MiB; take a smaller tile or keep fewer states of each motion (save_every)"
                )
        return found[0], found[1]

    def _compile(self, f: Callable[..., PyTree], tile: PyTree, jaxpr: ClosedJaxpr) -> Compiled:
        """``f(leaves, tile)``, compiled for a tile on each device."""
        key = program_key(jaxpr), str(jax.tree.structure(tile)), tuple(self.devices)
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
            _compiled[key] = f.lower(self._leaves, given).compile(), jaxpr
            if len(_compiled) > _CACHED_PROGRAMS:
                _compiled.popitem(last=False)
        _compiled.move_to_end(key)
        return _compiled[key][0]


def run_chunk(study: Study, start: int, stop: int, devices: Sequence[Device] | None = None) -> Chunk:
    """Samples ``start`` to ``stop`` of a study: a pure function of its arguments, the same whoever runs it when.

    A worker that runs many chunks makes one ``Engine`` and calls its ``chunk``, which says what is raised.

    Args:
        study: The study.
        start: A multiple of ``study.tile``.
        stop: The sample after the last one.
        devices: See ``Engine``.
    """
    return Engine(study, devices).chunk(start, stop)


def physical_memory() -> int:
    """The memory of this machine, bytes; 8 GiB where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # no such question on this system
        return 2**33


def device_memory(device: Device) -> int:
    """The memory of a device, bytes; of a CPU that of the machine."""
    stats = device.memory_stats() or {}
    return stats.get("bytes_limit", physical_memory())
