"""The coordinates of a whole machine in another tool: joint by joint, in that tool's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from lgsim.interop.forms import Form
from lgsim.multibody.joint import Joint
from lgsim.multibody.model import Model
from lgsim.multibody.topology import WORLD
from lgsim.support import check


class _Part(NamedTuple):
    """One joint of the other tool: of which joint of lgsim the coordinates are, and where the parts of q and v stand.

    A joint that mimics has coordinates there: ``q = k q_source + b``.
    """

    form: Form
    source: int
    own: bool
    q: slice
    v: slice
    q_theirs: slice
    v_theirs: slice
    placement: Array
    k: Array
    b: Array


@dataclass(frozen=True)
class Convention:
    """A tool's conventions.

    Methods take arrays with any leading axes, and are differentiable. ``q`` and ``v`` beside other arrays are always
    lgsim's own. ``order`` is the list of the joints' names in the tool's order; without it, the model's order is taken.
    A joint that mimics another one has numbers in the tool where ``order`` names it: ``q = k q_joint + b``.

    All raise ValueError where an array has a wrong length, ``order`` is no list of the model's joints, or the tool has
    no such joint there, and TypeError where an array is not of float32 or float64.

    Attributes:
        forms: How it writes joints of these types, and of types derived from them; all others as lgsim does.
        fixed: Names in its lists of joints that move nothing.
        rooted: Types of joints that it has only between the world and a body.
    """

    forms: Mapping[type[Joint], Form]
    fixed: frozenset[str] = frozenset()
    rooted: tuple[type[Joint], ...] = ()
    _same: Form = field(default_factory=Form)

    def q_to(self, model: Model, q: ArrayLike, order: Sequence[str] | None = None) -> Array:
        """The tool's configuration of lgsim's q (..., nq)."""
        x = check.floating("q", q, model.nq)
        parts = self._parts(model, order, x.dtype)
        return _joined(x, [part.form.q_to(part.placement, _own(part, x)) for part in parts])

    def q_from(self, model: Model, q: ArrayLike, order: Sequence[str] | None = None) -> Array:
        """The q (..., nq) of the tool's configuration."""
        dtype = jnp.asarray(q).dtype
        parts = self._parts(model, order, dtype)
        x = check.floating("q", q, parts[-1].q_theirs.stop if parts else 0)
        found = {p.source: p.form.q_from(p.placement, x[..., p.q_theirs]) for p in parts if p.own}
        return _joined(x, [found[source] for source in sorted(found)])

    def v_to(self, model: Model, q: ArrayLike, v: ArrayLike, order: Sequence[str] | None = None) -> Array:
        """The tool's velocity of lgsim's v (..., nv)."""
        q, v = check.arguments(q=(q, (model.nq,)), v=(v, (model.nv,)))
        return self._to(model, q, v, order, lambda part, q, x: part.k * part.form.turn(part.placement, q, x))

    def v_from(self, model: Model, q: ArrayLike, v: ArrayLike, order: Sequence[str] | None = None) -> Array:
        """The v (..., nv) of the tool's velocity."""
        return self._from(model, q, v, order, True, lambda part, q, x: x)

    def a_to(self, model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, order: Sequence[str] | None = None) -> Array:
        """The tool's acceleration, the derivative of its velocity, of lgsim's a (..., nv)."""
        q, v, a = check.arguments(q=(q, (model.nq,)), v=(v, (model.nv,)), a=(a, (model.nv,)))
        more = self._to(model, q, v, order, lambda part, q, x: part.form.bias(part.placement, q, x))
        return self.v_to(model, q, a, order) + more

    def a_from(
        self, model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, order: Sequence[str] | None = None
    ) -> Array:
        """The acceleration (..., nv) of the tool's."""
        q, v = check.arguments(q=(q, (model.nq,)), v=(v, (model.nv,)))
        more = self._to(model, q, v, order, lambda part, q, x: part.form.bias(part.placement, q, x))
        a = check.floating("a", a, more.shape[-1])
        a, more = jnp.broadcast_arrays(a, more)
        return self.v_from(model, q, a - more, order)

    def tau_to(self, model: Model, q: ArrayLike, tau: ArrayLike, order: Sequence[str] | None = None) -> Array:
        """The tool's joint forces of lgsim's tau (..., nv): the same power. Those on joints that mimic are zero."""
        q, tau = check.arguments(q=(q, (model.nq,)), tau=(tau, (model.nv,)))
        return self._to(model, q, tau, order, _force)

    def tau_from(self, model: Model, q: ArrayLike, tau: ArrayLike, order: Sequence[str] | None = None) -> Array:
        """The tau (..., nv) of the tool's joint forces; those on joints that mimic go to those they follow."""
        return self._from(model, q, tau, order, False, lambda part, q, x: part.k * x)

    def jacobian_to(self, model: Model, q: ArrayLike, J: ArrayLike, order: Sequence[str] | None = None) -> Array:
        """A Jacobian for the tool's velocities of one (..., m, nv) for v: its columns; the rows stay as they are."""
        J = jnp.asarray(J)
        return self.tau_to(model, _beside(q), J, order)

    def jacobian_from(self, model: Model, q: ArrayLike, J: ArrayLike, order: Sequence[str] | None = None) -> Array:
        """A Jacobian (..., m, nv) for v of one for the tool's velocities."""
        return self.tau_from(model, _beside(q), jnp.asarray(J), order)

    def _to(
        self,
        model: Model,
        q: Array,
        x: Array,
        order: Sequence[str] | None,
        f: Callable[[_Part, Array, Array], Array],
    ) -> Array:
        q, x = _together(q, x)
        return _joined(x, [f(part, _own(part, q), x[..., part.v]) for part in self._parts(model, order, x.dtype)])

    def _from(
        self,
        model: Model,
        q: ArrayLike,
        x: ArrayLike,
        order: Sequence[str] | None,
        own: bool,
        f: Callable[[_Part, Array, Array], Array],
    ) -> Array:
        parts = self._parts(model, order, jnp.asarray(x).dtype)
        length = parts[-1].v_theirs.stop if parts else 0
        q, x = _together(*check.arguments(q=(q, (model.nq,)), x=(x, (length,))))
        found: dict[int, Array] = {}
        for part in parts:
            if part.own or not own:
                y = f(part, q, part.form.back(part.placement, _own(part, q), x[..., part.v_theirs]))
                found[part.source] = found[part.source] + y if part.source in found else y
        return _joined(x, [found[source] for source in sorted(found)])

    def _parts(self, model: Model, order: Sequence[str] | None, dtype: jnp.dtype) -> list[_Part]:
        tree, q, v, parts = model.topology, 0, 0, []
        for i in self._order(model, order):
            joint, mimic = tree.joints[i], tree.mimics[i]
            if isinstance(joint, self.rooted) and tree.parents[i] != WORLD:
                raise ValueError(
                    f"joint {tree.joint_names[i]!r}: expected a {type(joint).__name__} joint to carry a body of the"
                    f" world, its parent is {tree.body_names[tree.parents[i]]!r}"
                )
            form = next((self.forms[kind] for kind in type(joint).__mro__ if kind in self.forms), self._same)
            source = i if mimic is None else mimic
            ours = tree.q_slice(source), tree.v_slice(source)
            theirs = slice(q, q + form.nq(joint)), slice(v, v + joint.nv)
            numbers = model.placements[i].astype(dtype), *model.mimic[i].astype(dtype)
            parts.append(_Part(form, source, mimic is None, *ours, *theirs, *numbers))
            q, v = theirs[0].stop, theirs[1].stop
        return parts

    def _order(self, model: Model, order: Sequence[str] | None) -> Iterator[int]:
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


def _force(part: _Part, q: Array, x: Array) -> Array:
    return part.form.turn(part.placement, q, x) if part.own else jnp.zeros_like(x)


def _own(part: _Part, q: Array) -> Array:
    """The joint's coordinates, of one that mimics those that it has."""
    return q[..., part.q] if part.own else part.k * q[..., part.q] + part.b


def _together(q: Array, x: Array) -> tuple[Array, Array]:
    """Both with the same leading axes."""
    batch = jnp.broadcast_shapes(q.shape[:-1], x.shape[:-1])
    return jnp.broadcast_to(q, (*batch, q.shape[-1])), jnp.broadcast_to(x, (*batch, x.shape[-1]))


def _beside(q: ArrayLike) -> Array:
    """An axis for the rows of a Jacobian is added."""
    return jnp.asarray(q)[..., None, :]


def _joined(like: Array, parts: list[Array]) -> Array:
    return jnp.concatenate(parts, axis=-1) if parts else like[..., :0]
