"""Several devices under one ``jit``: each computes its part of a batch.

XLA's partitioner divides operations that it knows. A call to machine code it would run on every device for the whole
batch, and into a call that its CPU back end compiles as one function it would put communication. What is said here of
a primitive is all that the partitioner needs: which axes are those of a batch, whose entries know nothing of each
other; all other axes are whole on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import permutations
from math import prod
from typing import Any, NamedTuple

import numpy as np
from jax import Array
from jax.experimental.custom_partitioning import ArrayMapping, SdyShardingRule, custom_partitioning
from jax.sharding import Mesh, NamedSharding, PartitionSpec

Axes = tuple[int | None, ...]
"""Of each axis of an array, which batch runs along it, None for an axis of the array's own."""


class BatchAxes(NamedTuple):
    """Where the batches of a primitive are.

    Attributes:
        operands: Of each operand.
        results: Of each result.
    """

    operands: Sequence[Axes]
    results: Sequence[Axes]


def divided(run: Callable[..., list[Array]], axes: BatchAxes) -> Callable[..., list[Array]]:
    """``run(*operands)`` as a function whose batches XLA's partitioner may divide among devices.

    Each device then runs it for its part of the operands, traced and lowered for the shapes of that part.
    """
    whole = custom_partitioning(lambda *operands: tuple(run(*operands)))

    def partition(mesh: Mesh, operands: Any, results: Any) -> tuple[Any, ...]:
        found, of_operands, of_results = _division(mesh, axes, operands, results)
        return found, lambda *parts: tuple(run(*parts)), of_results, of_operands

    whole.def_partition(
        partition,
        infer_sharding_from_operands=lambda mesh, operands, results: _division(mesh, axes, operands, results)[2],
        sharding_rule=_rule(axes),
    )
    return lambda *operands: list(whole(*operands))


def _rule(axes: BatchAxes) -> SdyShardingRule:
    """The axes for the partitioner Shardy: a batch has one name in all arrays, every other axis a name of its own."""

    def names(kind: str, arrays: Sequence[Axes]) -> tuple[ArrayMapping, ...]:
        return tuple(
            ArrayMapping(*(f"{kind}{i}axis{k}" if axis is None else f"batch{axis}" for k, axis in enumerate(each)))
            for i, each in enumerate(arrays)
        )

    return SdyShardingRule(names("operand", axes.operands), names("result", axes.results))


def _division(mesh: Mesh, axes: BatchAxes, operands: Any, results: Any) -> tuple[Mesh, tuple, tuple]:
    """A mesh whose axes are the batches, and how operands and results are divided on it.

    Of the divisions of batches that the arrays come with the finest is taken.
    """
    known = [*zip(axes.operands, operands, strict=True), *zip(axes.results, results, strict=True)]
    found = max(_parts(known), key=lambda parts: prod(parts[1].values()), default=None)
    if found is not None:
        mesh = _mesh(*found)

    def of(arrays: Sequence[Axes]) -> tuple[NamedSharding, ...]:
        specs = (PartitionSpec(*(_name(k) if k in counts else None for k in each)) for each in arrays)
        return tuple(NamedSharding(mesh, spec) for spec in specs)

    counts = {} if found is None else found[1]
    return mesh, of(axes.operands), of(axes.results)


def _name(batch: int | None) -> str:
    return f"batch{batch}"


def _parts(known: Iterable[tuple[Axes, Any]]) -> Iterator[tuple[dict[Any, dict[int, int]], dict[int, int]]]:
    """Of each array: which part of each batch a device has, and how many parts there are."""
    for axes, x in known:
        sharding = getattr(x, "sharding", None)
        if sharding is None:
            continue
        try:
            slices = sharding.devices_indices_map(tuple(x.shape))
        except ValueError:  # parts of unequal size
            continue
        starts = {k: [each[i].start or 0 for each in slices.values()] for i, k in enumerate(axes) if k is not None}
        orders = {k: {start: i for i, start in enumerate(sorted(set(each)))} for k, each in starts.items()}
        of_device = {device: {k: orders[k][starts[k][i]] for k in starts} for i, device in enumerate(slices)}
        yield of_device, {k: len(order) for k, order in orders.items()}


def _mesh(of_device: dict[Any, dict[int, int]], counts: dict[int, int]) -> Mesh:
    """The devices by the parts that they have; those with the same part are on an axis of their own.

    Where it can be, its axes are in the order in which the program knows its devices: XLA takes a mesh for a list of
    them, and would move every part in another order.
    """
    batches = sorted(counts)
    same: dict[tuple[int, ...], list[Any]] = {}
    for device, parts in of_device.items():
        same.setdefault(tuple(parts[k] for k in batches), []).append(device)
    grid = np.empty((*(counts[k] for k in batches), len(of_device) // prod(counts.values())), dtype=object)
    for place, devices in same.items():
        grid[place] = devices
    orders = list(permutations(range(grid.ndim)))
    order = next((each for each in orders if [*grid.transpose(each).flat] == [*of_device]), orders[0])
    names = (*map(_name, batches), "copies")
    return Mesh(grid.transpose(order), tuple(names[axis] for axis in order))
