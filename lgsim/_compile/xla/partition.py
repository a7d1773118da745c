"""Partitioning for several devices under one ``jit``: each computes its part of a batch.

XLA's partitioner divides only operations that it knows. It would run a call to machine code on every device for the
whole batch, and insert communication into a call that the CPU backend compiles as one function. This module
declares the batch axes of a primitive, whose entries are independent; all other axes are not divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import permutations
from math import prod
from typing import Any, NamedTuple

import numpy as np
from jax import Array
from jax.experimental.custom_partitioning import ArrayMapping, SdyShardingRule, custom_partitioning
from jax.sharding import Mesh, NamedSharding, PartitionSpec

Axes = tuple[int | None, ...]
"""The batch along each axis of an array, None for an axis of its own."""

Slices = Callable[[Any, tuple[int, ...]], Mapping[Any, tuple[slice, ...]]]
"""``slices(sharding, shape)``: the part of an array on each device, in the order of the program."""


class BatchAxes(NamedTuple):
    """The batch axes of a primitive.

    Attributes:
        operands: Axes of each operand.
        results: Axes of each result.
    """

    operands: Sequence[Axes]
    results: Sequence[Axes]


def divided(run: Callable[..., list[Array]], axes: BatchAxes, slices: Slices) -> Callable[..., list[Array]]:
    """``run(*operands)`` as a function whose batches XLA's partitioner may divide among devices.

    Each device runs it on its part of the operands, traced and lowered for the shapes of that part.
    """
    whole = custom_partitioning(lambda *operands: tuple(run(*operands)))
    division = partial(_division, axes, slices)

    def partition(mesh: Mesh, operands: Any, results: Any) -> tuple[Any, ...]:
        found, of_operands, of_results = division(mesh, operands, results)
        return found, lambda *parts: tuple(run(*parts)), of_results, of_operands

    whole.def_partition(
        partition,
        infer_sharding_from_operands=lambda *given: division(*given)[2],
        sharding_rule=_rule(axes),
    )
    return lambda *operands: list(whole(*operands))


def _rule(axes: BatchAxes) -> SdyShardingRule:
    """The rule for the partitioner Shardy: a batch has one name in all arrays, every other axis its own."""

    def names(kind: str, arrays: Sequence[Axes]) -> tuple[ArrayMapping, ...]:
        return tuple(
            ArrayMapping(*(f"{kind}{i}axis{k}" if axis is None else f"batch{axis}" for k, axis in enumerate(each)))
            for i, each in enumerate(arrays)
        )

    return SdyShardingRule(names("operand", axes.operands), names("result", axes.results))


def _division(axes: BatchAxes, slices: Slices, mesh: Mesh, operands: Any, results: Any) -> tuple[Mesh, tuple, tuple]:
    """A mesh with the batches as axes, and the sharding of operands and results on it.

    It is the finest of the divisions of batches in the arrays.
    """
    known = [*zip(axes.operands, operands, strict=True), *zip(axes.results, results, strict=True)]
    found = max(_parts(known, slices), key=lambda parts: prod(parts[1].values()), default=None)
    if found is not None:
        mesh = _mesh(*found)

    def of(arrays: Sequence[Axes]) -> tuple[NamedSharding, ...]:
        specs = (PartitionSpec(*(_name(k) if k in counts else None for k in each)) for each in arrays)
        return tuple(NamedSharding(mesh, spec) for spec in specs)

    counts = {} if found is None else found[1]
    return mesh, of(axes.operands), of(axes.results)


def _name(batch: int | None) -> str:
    return f"batch{batch}"


def _parts(
    known: Iterable[tuple[Axes, Any]], slices: Slices
) -> Iterator[tuple[dict[Any, dict[int, int]], dict[int, int]]]:
    """For each array: the part of each batch that a device has, and the number of parts."""
    for axes, x in known:
        sharding = getattr(x, "sharding", None)
        if sharding is None:
            continue
        try:
            found = slices(sharding, tuple(x.shape))
        except (AttributeError, ValueError):  # a JAX whose shardings are unknown, or parts of unequal size
            continue
        starts = {k: [each[i].start or 0 for each in found.values()] for i, k in enumerate(axes) if k is not None}
        orders = {k: {start: i for i, start in enumerate(sorted(set(each)))} for k, each in starts.items()}
        of_device = {device: {k: orders[k][starts[k][i]] for k in starts} for i, device in enumerate(found)}
        yield of_device, {k: len(order) for k, order in orders.items()}


def _mesh(of_device: dict[Any, dict[int, int]], counts: dict[int, int]) -> Mesh:
    """The devices ordered by their parts; devices with the same part are along an axis of their own.

    If possible the devices are in the order of the program: XLA treats a mesh as a list of devices, and would move
    every part for another order.
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
