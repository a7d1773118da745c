"""Operations on the configuration space of a model, for all joints of a kind at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.xla import native_with_derivatives
from lgsim.multibody.joint import Components, Joint
from lgsim.multibody.topology import Topology
from lgsim.support import check

Function = Callable[..., list[Array]]
"""``f(joint, *parts)`` of the components of each array, (..., m) for the m joints of a kind."""


def kinds(topology: Topology) -> Iterator[tuple[Joint, np.ndarray, np.ndarray]]:
    """Joint, indices in q (nq, m) and indices in v (nv, m) of the m independent joints of each kind."""
    found: dict[Joint, list[int]] = {}
    for i, (joint, mimic) in enumerate(zip(topology.joints, topology.mimics, strict=True)):
        if mimic is None and joint.nv:
            found.setdefault(joint, []).append(i)
    for joint, members in found.items():
        q = np.array([range(*topology.q_slice(i).indices(topology.nq)) for i in members]).T
        v = np.array([range(*topology.v_slice(i).indices(topology.nv)) for i in members]).T
        yield joint, q, v


def neutral(topology: Topology, dtype: jnp.dtype) -> Array:
    """See ``Model.neutral``."""
    q = np.zeros(topology.nq)
    for joint, places, _ in kinds(topology):
        q[places] = np.array(joint.neutral)[:, None]
    return jnp.asarray(q, dtype)


def random(topology: Topology, lower: Array, upper: Array, key: Array, shape: tuple[int, ...]) -> Array:
    """See ``Model.random``."""
    q = jnp.zeros((*shape, topology.nq), lower.dtype)
    for joint, places, speeds in kinds(topology):
        key, draw, within = jax.random.split(key, 3)
        values = jnp.stack(joint.random(draw, (*shape, places.shape[1]), lower.dtype), axis=-2)
        if places.shape == speeds.shape:
            low, high = (limit[speeds].reshape((1,) * len(shape) + places.shape) for limit in (lower, upper))
            bounded = jnp.isfinite(low) & jnp.isfinite(high)
            low, high = jnp.where(bounded, low, 0), jnp.where(bounded, high, 0)
            inside = low + (high - low) * jax.random.uniform(within, values.shape, lower.dtype)
            values = jnp.where(bounded, inside, values)
        q = q.at[..., places].set(values)
    return q


def retract(topology: Topology, q: Array, dv: Array) -> Array:
    """``q * exp(dv)`` joint by joint, for a topology; see ``Model.retract``."""
    return by_group(topology, _retract, "q", q=(q, "q"), dv=(dv, "v"))


def retract_rows(topology: Topology, q: Array, dv: Array) -> Array:
    """``retract`` with the coordinates on the first axis and a batch on the last axes."""
    return _rows(topology, _retract, "q", ("q", "v"), q, dv) if topology.groups else q + dv


def difference(topology: Topology, q0: Array, q1: Array) -> Array:
    """The tangent vector dv with ``retract(q0, dv) = q1``, for a topology; see ``Model.difference``."""
    return by_group(topology, _difference, "v", q0=(q0, "q"), q1=(q1, "q"))


def interpolate(topology: Topology, q0: Array, q1: Array, s: Array | float) -> Array:
    """See ``Model.interpolate``."""
    dv = difference(topology, q0, q1)
    return retract(topology, q0, dv * check.floating("s", s, dtype=dv.dtype))


def rate(topology: Topology, q: Array, v: Array) -> Array:
    """The time derivative of q at the velocity v, for a topology; see ``Model.rate``."""
    return _joined(topology, _rate, "q", _rows, q=(q, "q"), v=(v, "v"))


def velocity(topology: Topology, q: Array, dq: Array) -> Array:
    """See ``Model.velocity``."""
    return _joined(topology, _velocity, "v", _rows, q=(q, "q"), dq=(dq, "q"))


def _retract(joint: Joint, q: Components, dv: Components) -> list[Array]:
    return joint.retract(q, dv)


def _difference(joint: Joint, q0: Components, q1: Components) -> list[Array]:
    return joint.difference(q0, q1)


def _rate(joint: Joint, q: Components, v: Components) -> list[Array]:
    return joint.rate(q, v)


def _velocity(joint: Joint, q: Components, dq: Components) -> list[Array]:
    return joint.velocity(q, dq)


def by_joint(topology: Topology, f: Function, **named: tuple[Array, str]) -> Array:
    """``f(joint, *parts)`` (nv, *batch) on component arrays, for all joints of a kind at once.

    ``named`` gives each array and its space, "q" or "v", which is on its first axis.
    """
    arrays, spaces = zip(*named.values(), strict=True)
    return _rows(topology, f, "v", spaces, *arrays)


def by_group(topology: Topology, f: Function, to: str, **named: tuple[Array, str]) -> Array:
    """``f``, an operation on Lie groups, into the space ``to``; coordinates are on the last axis.

    ``f`` is hashable, and is compiled once to a native function with its derivative. Not for ``rate`` and ``velocity``,
    which the derivative rules apply to changes: JAX transposes these directly.
    """
    return _joined(topology, f, to, _native_rows if topology.groups else _rows, **named)


def _joined(topology: Topology, f: Function, to: str, apply: Callable[..., Array], **named: tuple[Any, str]) -> Array:
    """Apply ``f`` to the coordinates of all joints of a kind at once, and write the results to the space ``to``."""
    lengths = {"q": topology.nq, "v": topology.nv}
    spaces = tuple(space for _, space in named.values())
    arrays = check.arguments(**{name: (value, (lengths[space],)) for name, (value, space) in named.items()})
    parts = [jnp.moveaxis(a, -1, 0) for a in _broadcast(arrays)]
    return jnp.moveaxis(apply(topology, f, to, spaces, *parts), 0, -1)


@cache
def _native(topology: Topology, f: Function, to: str, spaces: tuple[str, ...]) -> Callable[..., Array]:
    return native_with_derivatives(partial(_rows, topology, f, to, spaces))


def _native_rows(topology: Topology, f: Function, to: str, spaces: tuple[str, ...], *arrays: Array) -> Array:
    apply = _native(topology, f, to, spaces)
    # the native program is of one state: batch axes would be unrolled into it
    for _ in range(arrays[0].ndim - 1):
        apply = jax.vmap(apply, -1, -1)
    return apply(*arrays)


def _rows(topology: Topology, f: Function, to: str, spaces: tuple[str, ...], *arrays: Array) -> Array:
    """``f`` on arrays whose first axis is that of their space."""
    batch = jnp.broadcast_shapes(*(a.shape[1:] for a in arrays))
    arrays = tuple(jnp.broadcast_to(a, (a.shape[0], *batch)) for a in arrays)
    found, order = [jnp.zeros((0, *batch), arrays[0].dtype)], [np.zeros(0, int)]
    for joint, q_places, v_places in kinds(topology):
        places = {"q": q_places, "v": v_places}
        parts = [[_taken(a, p) for p in places[space]] for a, space in zip(arrays, spaces, strict=True)]
        found += f(joint, *parts)
        order.append(places[to].ravel())
    # at most one gather: XLA compiles a scatter to a loop on CPU
    return _taken(jnp.concatenate(found), np.argsort(np.concatenate(order)))


def _taken(array: Array, places: np.ndarray) -> Array:
    """Entries at static indices of the first axis, as a slice if they are contiguous."""
    if len(places) and np.array_equal(places, np.arange(places[0], places[0] + len(places))):
        return array[places[0] : places[0] + len(places)]
    return array[places]


def _broadcast(arrays: Sequence[Array]) -> list[Array]:
    batch = jnp.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    return [jnp.broadcast_to(a, (*batch, a.shape[-1])) for a in arrays]
