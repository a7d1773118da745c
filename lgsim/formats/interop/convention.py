"""Conventions of other tools: conversion of whole models joint by joint, in the order of the tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.formats.interop.forms import Form
from lgsim.multibody.joint import Joint
from lgsim.multibody.model import Model
from lgsim.multibody.topology import WORLD
from lgsim.support import check


class _ToolJoint(NamedTuple):
    """One joint of the tool; a mimic joint has coordinates ``q = k q_source + b`` there.

    Attributes:
        form: Coordinates of the joint in the tool.
        source: Index of the joint of lgsim with the independent coordinates.
        is_source: True for a joint that is not a mimic joint.
        q: Slice of lgsim's q.
        v: Slice of lgsim's v.
        q_theirs: Slice of the tool's configuration.
        v_theirs: Slice of the tool's velocity.
        placement: Pose of the joint's frame in its parent, (4, 4).
        k: Multiplier of a mimic joint, else 1.
        b: Offset of a mimic joint, rad or m, else 0.
    """

    form: Form
    source: int
    is_source: bool
    q: slice
    v: slice
    q_theirs: slice
    v_theirs: slice
    placement: Float[Array, "4 4"]
    k: Float[Array, ""]
    b: Float[Array, ""]


@dataclass(frozen=True)
class Convention:
    """Coordinate conventions of a tool.

    Methods accept arrays with any leading axes and are differentiable. ``q`` and ``v`` next to other arrays are in
    lgsim's convention. ``order`` lists the joint names in the tool's order, by default the order of the model. A mimic
    joint has coordinates in the tool if ``order`` contains it: ``q = k q_joint + b``.

    All methods raise ValueError if an array has a wrong length, if ``order`` is not a list of the model's joints, or if
    the tool does not support a joint there, and TypeError if an array is neither float32 nor float64.

    Attributes:
        forms: Forms of joint types and their subclasses; all others are as in lgsim.
        fixed: Names in the tool's lists of joints without degrees of freedom.
        rooted: Joint types that the tool supports only between the world and a body.
        absent: Joint types that the tool does not support, with an alternative.
    """

    forms: Mapping[type[Joint], Form]
    fixed: frozenset[str] = frozenset()
    rooted: tuple[type[Joint], ...] = ()
    absent: Mapping[type[Joint], str] = field(default_factory=dict)
    _same: Form = field(default_factory=Form)

    def q_to(self, model: Model, q: ArrayLike, order: Sequence[str] | None = None) -> Float[Array, "*batch nq_theirs"]:
        """Convert lgsim's q (..., nq) to the tool's configuration."""
        x = check.floating("q", q, model.nq)
        parts = self._joints(model, order, x.dtype)
        return _concatenate(x, [part.form.q_to(part.placement, _source_q(part, x)) for part in parts])

    def q_from(self, model: Model, q: ArrayLike, order: Sequence[str] | None = None) -> Float[Array, "*batch nq"]:
        """Convert the tool's configuration to lgsim's q."""
        x = check.floating("q", q)
        parts = self._joints(model, order, x.dtype)
        x = check.floating("q", x, parts[-1].q_theirs.stop if parts else 0)
        found = {p.source: p.form.q_from(p.placement, x[..., p.q_theirs]) for p in parts if p.is_source}
        return _concatenate(x, [found[source] for source in sorted(found)])

    def v_to(
        self, model: Model, q: ArrayLike, v: ArrayLike, order: Sequence[str] | None = None
    ) -> Float[Array, "*batch nv_theirs"]:
        """Convert lgsim's v (..., nv) to the tool's velocity."""
        q, v = check.arguments(q=(q, (model.nq,)), v=(v, (model.nv,)))
        return self._to(model, q, v, order, lambda part, q, x: part.k * part.form.to_theirs(part.placement, q, x))

    def v_from(
        self, model: Model, q: ArrayLike, v: ArrayLike, order: Sequence[str] | None = None
    ) -> Float[Array, "*batch nv"]:
        """Convert the tool's velocity to lgsim's v, at lgsim's q."""
        return self._from(model, q, v, order, True, lambda part, q, x: x)

    def a_to(
        self, model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, order: Sequence[str] | None = None
    ) -> Float[Array, "*batch nv_theirs"]:
        """Convert lgsim's a (..., nv) to the tool's acceleration, the derivative of its velocity."""
        q, v, a = check.arguments(q=(q, (model.nq,)), v=(v, (model.nv,)), a=(a, (model.nv,)))
        more = self._to(model, q, v, order, lambda part, q, x: part.form.bias(part.placement, q, x))
        return self.v_to(model, q, a, order) + more

    def a_from(
        self, model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, order: Sequence[str] | None = None
    ) -> Float[Array, "*batch nv"]:
        """Convert the tool's acceleration to lgsim's a, at lgsim's q and v."""
        q, v = check.arguments(q=(q, (model.nq,)), v=(v, (model.nv,)))
        more = self._to(model, q, v, order, lambda part, q, x: part.form.bias(part.placement, q, x))
        a = check.floating("a", a, more.shape[-1])
        a, more = jnp.broadcast_arrays(a, more)
        return self.v_from(model, q, a - more, order)

    def tau_to(
        self, model: Model, q: ArrayLike, tau: ArrayLike, order: Sequence[str] | None = None
    ) -> Float[Array, "*batch nv_theirs"]:
        """Convert lgsim's tau (..., nv) to the tool's joint forces with the same power; zero on mimic joints."""
        q, tau = check.arguments(q=(q, (model.nq,)), tau=(tau, (model.nv,)))
        return self._to(model, q, tau, order, _force)

    def tau_from(
        self, model: Model, q: ArrayLike, tau: ArrayLike, order: Sequence[str] | None = None
    ) -> Float[Array, "*batch nv"]:
        """Convert the tool's joint forces to lgsim's tau; forces on mimic joints act on their source joints."""
        return self._from(model, q, tau, order, False, lambda part, q, x: part.k * x)

    def jacobian_to(
        self, model: Model, q: ArrayLike, J: ArrayLike, order: Sequence[str] | None = None
    ) -> Float[Array, "*batch m nv_theirs"]:
        """Convert a Jacobian (..., m, nv) with respect to v to one with respect to the tool's velocity."""
        J = jnp.asarray(J)
        return self.tau_to(model, _with_row_axis(q), J, order)

    def jacobian_from(
        self, model: Model, q: ArrayLike, J: ArrayLike, order: Sequence[str] | None = None
    ) -> Float[Array, "*batch m nv"]:
        """Convert a Jacobian with respect to the tool's velocity to one with respect to v."""
        return self.tau_from(model, _with_row_axis(q), jnp.asarray(J), order)

    def _to(
        self,
        model: Model,
        q: Array,
        x: Array,
        order: Sequence[str] | None,
        f: Callable[[_ToolJoint, Array, Array], Array],
    ) -> Array:
        """Concatenate ``f(joint, q, x)`` over the tool's joints, q and x in lgsim's convention."""
        q, x = _broadcast(q, x)
        return _concatenate(
            x, [f(part, _source_q(part, q), x[..., part.v]) for part in self._joints(model, order, x.dtype)]
        )

    def _from(
        self,
        model: Model,
        q: ArrayLike,
        x: ArrayLike,
        order: Sequence[str] | None,
        sources_only: bool,
        f: Callable[[_ToolJoint, Array, Array], Array],
    ) -> Array:
        """Sum ``f(joint, q, x)`` over the tool's joints of each source joint; the result is in lgsim's convention.

        Args:
            q: Configuration in lgsim's convention.
            x: Velocities or forces in the tool's convention.
            order: The tool's order of the joints.
            sources_only: True omits mimic joints.
        """
        parts = self._joints(model, order, jnp.asarray(x).dtype)
        length = parts[-1].v_theirs.stop if parts else 0
        q, x = _broadcast(*check.arguments(q=(q, (model.nq,)), x=(x, (length,))))
        found: dict[int, Array] = {}
        for part in parts:
            if part.is_source or not sources_only:
                y = f(part, q, part.form.from_theirs(part.placement, _source_q(part, q), x[..., part.v_theirs]))
                found[part.source] = found[part.source] + y if part.source in found else y
        return _concatenate(x, [found[source] for source in sorted(found)])

    def _joints(self, model: Model, order: Sequence[str] | None, dtype: jnp.dtype) -> list[_ToolJoint]:
        """The joints of the tool in its order.

        Raises:
            ValueError: see ``Convention``.
        """
        tree, q, v, parts = model.topology, 0, 0, []
        for i in self._order(model, order):
            joint, mimic = tree.joints[i], tree.mimics[i]
            if isinstance(joint, self.rooted) and tree.parents[i] != WORLD:
                raise ValueError(
                    f"joint {tree.joint_names[i]!r}: expected a {type(joint).__name__} joint with the world as parent,"
                    f" got the parent {tree.body_names[tree.parents[i]]!r}"
                )
            instead = next((self.absent[kind] for kind in type(joint).__mro__ if kind in self.absent), None)
            if instead is not None:
                raise ValueError(
                    f"joint {tree.joint_names[i]!r}: expected a joint type of the tool, got a {type(joint).__name__}"
                    f" joint; {instead}"
                )
            form = next((self.forms[kind] for kind in type(joint).__mro__ if kind in self.forms), self._same)
            source = i if mimic is None else mimic
            ours = tree.q_slice(source), tree.v_slice(source)
            theirs = slice(q, q + form.nq(joint)), slice(v, v + joint.nv)
            ratio = model.mimic[i] if mimic is not None else jnp.array([1, 0])
            numbers = model.placements[i].astype(dtype), *ratio.astype(dtype)
            parts.append(_ToolJoint(form, source, mimic is None, *ours, *theirs, *numbers))
            q, v = theirs[0].stop, theirs[1].stop
        return parts

    def _order(self, model: Model, order: Sequence[str] | None) -> Iterator[int]:
        """Indices of the model's joints in the tool's order.

        Raises:
            ValueError: ``order`` is not a list of the model's joints.
        """
        tree = model.topology
        own = [name for name, mimic in zip(tree.joint_names, tree.mimics, strict=True) if mimic is None]
        names = own if order is None else [name for name in order if name not in self.fixed]
        unknown = [name for name in names if name not in tree.joint_names]
        lacking = [name for name in own if name not in names]
        twice = [name for name in names if names.count(name) > 1]
        if unknown or twice:
            raise ValueError(
                f"order: expected the names of the model's joints, each once, got {(unknown + twice)[0]!r}"
                f"{'' if unknown else ' twice'}; the model has {', '.join(tree.joint_names)}"
            )
        if lacking:
            raise ValueError(f"order: expected all joints of the model, {lacking[0]!r} is missing")
        return (tree.joint_names.index(name) for name in names)


def _force(part: _ToolJoint, q: Array, x: Array) -> Array:
    """Forces on one of the tool's joints from those on lgsim's joint; zero on a mimic joint."""
    return part.form.to_theirs(part.placement, q, x) if part.is_source else jnp.zeros_like(x)


def _source_q(part: _ToolJoint, q: Array) -> Array:
    """Coordinates of the joint in lgsim's form; those of a mimic joint follow from its source joint."""
    return q[..., part.q] if part.is_source else part.k * q[..., part.q] + part.b


def _broadcast(q: Array, x: Array) -> tuple[Array, Array]:
    """Broadcast both arrays to the same leading axes."""
    batch = jnp.broadcast_shapes(q.shape[:-1], x.shape[:-1])
    return jnp.broadcast_to(q, (*batch, q.shape[-1])), jnp.broadcast_to(x, (*batch, x.shape[-1]))


def _with_row_axis(q: ArrayLike) -> Array:
    """The array q with an additional axis for the rows of a Jacobian."""
    return jnp.asarray(q)[..., None, :]


def _concatenate(like: Array, parts: list[Array]) -> Array:
    """Concatenate arrays; an empty list gives an empty array with the leading axes of ``like``."""
    return jnp.concatenate(parts, axis=-1) if parts else like[..., :0]
