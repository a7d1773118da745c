"""Reading rules for JAX primitives that move array entries, or that sum and multiply them.

A rule takes the reader, the equation and the operands, arrays of values or one ``int`` for a scalar, and returns the
results. Loops and elementwise primitives are elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lgsim._compile.programs.gather_scatter import gathered_places, scattered_places
from lgsim._compile.programs.program import Builder, UnsupportedProgramError
from lgsim._compile.xla.jax_internals import parameter, parameters

Values = Any
"""An array of values, or an ``int`` for a scalar."""


def _moved(move: Callable[..., Any]) -> Callable[..., list[Values]]:
    """A rule from ``move(equation, *arrays)``, which returns one array."""

    def rule(reader: Any, equation: Any, values: list[Values]) -> list[Values]:
        return [_plain(move(equation, *map(np.asarray, values)))]

    return rule


def _plain(values: Any) -> Values:
    return int(values) if np.ndim(values) == 0 else values


def _as_shaped(equation: Any, x: np.ndarray) -> np.ndarray:
    return x.reshape(equation.outvars[0].aval.shape)


def _slice(equation: Any, x: np.ndarray) -> np.ndarray:
    p = parameters(equation)
    strides = p["strides"] or (1,) * x.ndim
    return x[tuple(slice(*each) for each in zip(p["start_indices"], p["limit_indices"], strides, strict=True))]


def _broadcast(equation: Any, x: np.ndarray) -> np.ndarray:
    shape, own = parameter(equation, "shape"), [1] * len(parameter(equation, "shape"))
    for axis, size in zip(parameter(equation, "broadcast_dimensions"), x.shape, strict=True):
        own[axis] = size
    return np.broadcast_to(x.reshape(own), shape)


def _pad(equation: Any, x: np.ndarray, fill: np.ndarray) -> np.ndarray:
    out = np.full(equation.outvars[0].aval.shape, int(fill))
    places, kept = [], []
    for size, total, (low, _, inner) in zip(x.shape, out.shape, parameter(equation, "padding_config"), strict=True):
        at = low + (inner + 1) * np.arange(size)
        inside = (at >= 0) & (at < total)
        places.append(at[inside])
        kept.append(np.flatnonzero(inside))
    out[np.ix_(*places)] = x[np.ix_(*kept)]
    return out


def _barrier(reader: Any, equation: Any, values: list[Values]) -> list[Values]:
    return values


def _split(reader: Any, equation: Any, values: list[Values]) -> list[Values]:
    ends = np.cumsum(parameter(equation, "sizes"))[:-1]
    return list(np.split(values[0], ends, parameter(equation, "axis")))


def _unstack(reader: Any, equation: Any, values: list[Values]) -> list[Values]:
    return [_plain(x) for x in np.moveaxis(values[0], parameter(equation, "axis"), 0)]


def _iota(reader: Any, equation: Any, values: list[Values]) -> list[Values]:
    p = parameters(equation)
    own = [-1 if axis == p["dimension"] else 1 for axis in range(len(p["shape"]))]
    along = reader.builder.array(np.arange(p["shape"][p["dimension"]], dtype=p["dtype"]))
    return [np.broadcast_to(along.reshape(own), p["shape"])]


def _numbers(b: Builder, values: Values) -> np.ndarray:
    values = np.asarray(values)
    return np.array([b.number(x) for x in values.ravel().tolist()], int).reshape(values.shape)


def _dynamic_slice(reader: Any, equation: Any, values: list[Values]) -> list[Values]:
    x, sizes = np.asarray(values[0]), parameter(equation, "slice_sizes")
    return [x[_window(reader.builder, values[1:], x.shape, sizes)]]


def _dynamic_update_slice(reader: Any, equation: Any, values: list[Values]) -> list[Values]:
    x, update = np.array(values[0]), np.asarray(values[1])
    x[_window(reader.builder, values[2:], x.shape, update.shape)] = update
    return [_plain(x)]


def _window(b: Builder, starts: list[Values], shape: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[slice, ...]:
    firsts = (min(max(int(b.number(i)), 0), n - s) for i, n, s in zip(starts, shape, sizes, strict=True))
    return tuple(slice(first, first + size) for first, size in zip(firsts, sizes, strict=True))


def _gather(reader: Any, equation: Any, values: list[Values]) -> list[Values]:
    p, x = parameters(equation), np.asarray(values[0])
    indices = _numbers(reader.builder, values[1])
    places, inside = gathered_places(x.shape, indices, p["dimension_numbers"], p["slice_sizes"], p["mode"])
    out = x.ravel()[places]
    if not inside.all():
        out = np.where(inside, out, reader.builder.constant(equation.outvars[0].aval.dtype.name, _fill(equation)))
    return [_plain(out)]


def _fill(equation: Any) -> Any:
    value, dtype = parameter(equation, "fill_value"), equation.outvars[0].aval.dtype
    if value is not None:
        return value
    if dtype.kind == "f":
        return np.nan
    return True if dtype.kind == "b" else np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max


def _scatter(op: str | None) -> Callable[..., list[Values]]:
    def rule(reader: Any, equation: Any, values: list[Values]) -> list[Values]:
        b, p, x, updates = reader.builder, parameters(equation), np.array(values[0]), np.asarray(values[2])
        indices = _numbers(b, values[1])
        places, inside = scattered_places(x.shape, indices, updates.shape, p["dimension_numbers"], p["mode"])
        flat = x.reshape(-1)
        for place, update in zip(places[inside].tolist(), updates[inside].tolist(), strict=True):
            flat[place] = update if op is None else b(op, int(flat[place]), update)
        return [_plain(x)]

    return rule


def _reduced(op: str, start: Any) -> Callable[..., list[Values]]:
    def rule(reader: Any, equation: Any, values: list[Values]) -> list[Values]:
        b, x = reader.builder, np.asarray(values[0])
        axes = tuple(parameter(equation, "axes"))
        rest = [axis for axis in range(x.ndim) if axis not in axes]
        shape = equation.outvars[0].aval.shape
        count = int(np.prod([x.shape[axis] for axis in axes], dtype=int))
        lines = np.transpose(x, (*rest, *axes)).reshape(-1, count) if count else np.empty((x.size, 0), int)
        if not count:
            kind = equation.outvars[0].aval.dtype.name
            return [_plain(np.full(shape, b.constant(kind, start)))]
        out = []
        for line in lines.tolist():
            total = line[0]
            for value in line[1:]:
                total = b(op, total, value)
            out.append(total)
        return [_plain(np.array(out, int).reshape(shape))]

    return rule


def _cumulative(op: str) -> Callable[..., list[Values]]:
    def rule(reader: Any, equation: Any, values: list[Values]) -> list[Values]:
        b, axis = reader.builder, parameter(equation, "axis")
        x = np.moveaxis(np.array(values[0]), axis, 0)
        order = range(1, len(x))
        if parameter(equation, "reverse"):
            x = x[::-1]
        flat = x.reshape(len(x), -1)
        for i in order:
            flat[i] = [b(op, one, other) for one, other in zip(flat[i - 1].tolist(), flat[i].tolist(), strict=True)]
        x = flat.reshape(x.shape)
        return [np.moveaxis(x[::-1] if parameter(equation, "reverse") else x, 0, axis)]

    return rule


def _dot(reader: Any, equation: Any, values: list[Values]) -> list[Values]:
    b, (x, y) = reader.builder, map(np.asarray, values)
    out = equation.outvars[0].aval
    if x.size and (b.kind(int(x.flat[0])) != out.dtype.name or b.kind(int(y.flat[0])) != out.dtype.name):
        raise UnsupportedProgramError("a product of mixed dtypes")
    (of_x, of_y), (batch_x, batch_y) = parameter(equation, "dimension_numbers")

    def sorted_axes(a: np.ndarray, batch: Any, summed: Any) -> tuple[np.ndarray, list[int]]:
        free = [axis for axis in range(a.ndim) if axis not in batch and axis not in summed]
        shape = [int(np.prod([a.shape[i] for i in axes], dtype=int)) for axes in (batch, free, summed)]
        return np.transpose(a, (*batch, *free, *summed)).reshape(shape), shape

    (x, (count, rows, length)), (y, (_, columns, _)) = sorted_axes(x, batch_x, of_x), sorted_axes(y, batch_y, of_y)
    found = np.empty((count, rows, columns), int)
    for i, r, c in np.ndindex(found.shape):
        total = b.constant(out.dtype.name, 0)
        for k in range(length):
            total = b("add", total, b("mul", int(x[i, r, k]), int(y[i, c, k])))
        found[i, r, c] = total
    return [_plain(found.reshape(out.shape))]


RULES: dict[str, Callable[..., list[Values]]] = {
    **dict.fromkeys(("reshape", "squeeze", "expand_dims"), _moved(_as_shaped)),
    "slice": _moved(_slice),
    "broadcast_in_dim": _moved(_broadcast),
    "transpose": _moved(lambda equation, x: np.transpose(x, parameter(equation, "permutation"))),
    "rev": _moved(lambda equation, x: np.flip(x, parameter(equation, "dimensions"))),
    "concatenate": _moved(lambda equation, *xs: np.concatenate(xs, parameter(equation, "dimension"))),
    "stack": _moved(lambda equation, *xs: np.stack(xs, parameter(equation, "axis"))),
    "pad": _moved(_pad),
    "unstack": _unstack,
    "split": _split,
    "iota": _iota,
    "optimization_barrier": _barrier,
    "device_put": _barrier,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": _scatter(None),
    "scatter-add": _scatter("add"),
    "scatter_add": _scatter("add"),
    "scatter_mul": _scatter("mul"),
    "reduce_sum": _reduced("add", 0),
    "reduce_prod": _reduced("mul", 1),
    "reduce_max": _reduced("max", -np.inf),
    "reduce_min": _reduced("min", np.inf),
    "reduce_and": _reduced("and", True),
    "reduce_or": _reduced("or", False),
    "cumsum": _cumulative("add"),
    "cumprod": _cumulative("mul"),
    "dot_general": _dot,
}
"""Rules ``rule(reader, equation, operands)`` by the name of the primitive.

Raises:
    UnsupportedProgramError: an index depends on an input, or no operation matches the equation's parameters.
"""
