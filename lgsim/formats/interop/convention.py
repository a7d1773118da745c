"""Conventions of other tools: the coordinates of a whole machine joint by joint, in the tool's order."""

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
    """One joint of the tool. A joint that mimics has coordinates there: ``q = k q_source + b``.

    Attributes:
        form: How the tool writes the joint.
        source: Index of the joint of lgsim whose coordinates they are.
        is_source: Whether the joint does not mimic.
        q: The part of lgsim's q.
        v: The part of lgsim's v.
        q_theirs: The part of the tool's configuration.
        v_theirs: The part of the tool's velocity.
        placement: Pose of the joint's frame in its parent, (4, 4).
        k: Factor of a joint that mimics, else 1.
        b: Offset of a joint that mimics, rad or m, else 0.
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
    """A tool's conventions.

    Methods take arrays with any leading axes, and are differentiable. ``q`` and ``v`` beside other arrays are always
    lgsim's own. ``order`` is the list of the joints' names in the tool's order; without it, the model's order is taken.
    A joint that mimics another one has numbers in the tool where ``order`` names it: ``q = k q_joint + b``.

    All raise ValueError where an array has a wrong length, ``order`` is no list of the model's joints, or the tool has
    no such joint there, and TypeError where an array is not of float32 or float64.

    Attributes:
        forms: How the tool writes joints of these types, and of types derived from them; all others as lgsim does.
        fixed: Names in the tool's lists of joints that move nothing.
        rooted: Types of joints that the tool has only between the world and a body.
        absent: Types of joints that the tool has not, each with what to do instead.
    """

    forms: Mapping[type[Joint], Form]
    fixed: frozenset[str] = frozenset()
    rooted: tuple[type[Joint], ...] = ()
    absent: Mapping[type[Joint], str] = field(default_factory=dict)
    _same: Form = field(default_factory=Form)

    def q_to(self, model: Model, q: ArrayLike, order: Sequence[str] | None = None) -> Float[Array, "*batch nq_theirs"]:
        """The tool's configuration of lgsim's q (..., nq)."""
        x = check.floating("q", q, model.nq)
        parts = self._joints(model, order, x.dtype)
        return _concatenate(x, [part.form.q_to(part.placement, _source_q(part, x)) for part in parts])

    def q_from(self, model: Model, q: ArrayLike, order: Sequence[str] | None = None) -> Float[Array, "*batch nq"]:
        """The q of lgsim of the tool's configuration q."""
        x = check.floating("q", q)
        parts = self._joints(model, order, x.dtype)
        x = check.floating("q", x, parts[-1].q_theirs.stop if parts else 0)
        found = {p.source: p.form.q_from(p.placement, x[..., p.q_theirs]) for p in parts if p.is_source}
        return _concatenate(x, [found[source] for source in sorted(found)])

    def v_to(
        self, model: Model, q: ArrayLike, v: ArrayLike, order: Sequence[str] | None = None
    ) -> Float[Array, "*batch nv_theirs"]:
        """The tool's velocity of lgsim's v (..., nv)."""
        q, v = check.arguments(q=(q, (model.nq,)), v=(v, (model.nv,)))
        return self._to(model, q, v, order, lambda part, q, x: part.k * part.form.to_theirs(part.placement, q, x))

    def v_from(
        self, model: Model, q: ArrayLike, v: ArrayLike, order: Sequence[str] | None = None
    ) -> Float[Array, "*batch nv"]:
        """The v of lgsim of the tool's velocity v, at lgsim's q."""
        return self._from(model, q, v, order, True, lambda part, q, x: x)

    def a_to(
        self, model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, order: Sequence[str] | None = None
    ) -> Float[Array, "*batch nv_theirs"]:
        """The tool's acceleration, the derivative of its velocity, of lgsim's a (..., nv)."""
        q, v, a = check.arguments(q=(q, (model.nq,)), v=(v, (model.nv,)), a=(a, (model.nv,)))
        more = self._to(model, q, v, order, lambda part, q, x: part.form.bias(part.placement, q, x))
        return self.v_to(model, q, a, order) + more

    def a_from(
        self, model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, order: Sequence[str] | None = None
    ) -> Float[Array, "*batch nv"]:
        """The acceleration of lgsim of the tool's a, at lgsim's q and v."""
        q, v = check.arguments(q=(q, (model.nq,)), v=(v, (model.nv,)))
        more = self._to(model, q, v, order, lambda part, q, x: part.form.bias(part.placement, q, x))
        a = check.floating("a", a, more.shape[-1])
        a, more = jnp.broadcast_arrays(a, more)
        return self.v_from(model, q, a - more, order)

    def tau_to(
        self, model: Model, q: ArrayLike, tau: ArrayLike, order: Sequence[str] | None = None
    ) -> Float[Array, "*batch nv_theirs"]:
        """The tool's joint forces of lgsim's tau (..., nv): the same power. Those on joints that mimic are zero."""
        q, tau = check.arguments(q=(q, (model.nq,)), tau=(tau, (model.nv,)))
        return self._to(model, q, tau, order, _force)

    def tau_from(
        self, model: Model, q: ArrayLike, tau: ArrayLike, order: Sequence[str] | None = None
    ) -> Float[Array, "*batch nv"]:
        """The tau of lgsim of the tool's joint forces; those on a joint that mimics add to its source's."""
        return self._from(model, q, tau, order, False, lambda part, q, x: part.k * x)

    def jacobian_to(
        self, model: Model, q: ArrayLike, J: ArrayLike, order: Sequence[str] | None = None
    ) -> Float[Array, "*batch m nv_theirs"]:
        """The Jacobian for the tool's velocities of a Jacobian (..., m, nv) for v; its rows stay as they are."""
        J = jnp.asarray(J)
        return self.tau_to(model, _with_row_axis(q), J, order)

    def jacobian_from(
        self, model: Model, q: ArrayLike, J: ArrayLike, order: Sequence[str] | None = None
    ) -> Float[Array, "*batch m nv"]:
        """The Jacobian for v of a Jacobian for the tool's velocities; its rows stay as they are."""
        return self.tau_from(model, _with_row_axis(q), jnp.asarray(J), order)

    def _to(
        self,
        model: Model,
        q: Array,
        x: Array,
        order: Sequence[str] | None,
        f: Callable[[_ToolJoint, Array, Array], Array],
    ) -> Array:
        """``f(joint, q, x)`` of lgsim's parts of q and x for each joint of the tool, one after another."""
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
        """The sum of ``f(joint, q, x)`` over the tool's joints of each source, x in lgsim's form.

        Args:
            q: Configuration of lgsim.
            x: Velocities or forces of the tool.
            order: The tool's order of the joints.
            sources_only: Whether joints that mimic are left out.
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
                    f"joint {tree.joint_names[i]!r}: expected a {type(joint).__name__} joint to carry a body of the"
                    f" world, its parent is {tree.body_names[tree.parents[i]]!r}"
                )
            instead = next((self.absent[kind] for kind in type(joint).__mro__ if kind in self.absent), None)
            if instead is not None:
                raise ValueError(
                    f"joint {tree.joint_names[i]!r}: expected a joint that the tool has, got a {type(joint).__name__}"
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
        """The indices of the model's joints in the tool's order.

        Raises:
            ValueError: ``order`` is no list of the model's joints.
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
    """The tool's forces on a joint of lgsim's; zero on a joint that mimics."""
    return part.form.to_theirs(part.placement, q, x) if part.is_source else jnp.zeros_like(x)


def _source_q(part: _ToolJoint, q: Array) -> Array:
    """The joint's coordinates in lgsim's form; of a joint that mimics, those that follow from the source's."""
    return q[..., part.q] if part.is_source else part.k * q[..., part.q] + part.b


def _broadcast(q: Array, x: Array) -> tuple[Array, Array]:
    """Both arrays, broadcast to the same leading axes."""
    batch = jnp.broadcast_shapes(q.shape[:-1], x.shape[:-1])
    return jnp.broadcast_to(q, (*batch, q.shape[-1])), jnp.broadcast_to(x, (*batch, x.shape[-1]))


def _with_row_axis(q: ArrayLike) -> Array:
    """Q with an axis for the rows of a Jacobian."""
    return jnp.asarray(q)[..., None, :]


def _concatenate(like: Array, parts: list[Array]) -> Array:
    """The parts one after another; without parts an empty array with the leading axes of ``like``."""
    return jnp.concatenate(parts, axis=-1) if parts else like[..., :0]
