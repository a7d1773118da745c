"""What one step does to small changes of the state and the control, in the form that costs least to work with.

All arrays have their own axes first and any batch after them.
"""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from lgsim.dynamics.matrices import product
from lgsim.multibody import blocks
from lgsim.multibody.topology import Topology
from lgsim.optimize.lower import Lower
from lgsim.optimize.small import turned
from lgsim.spatial import batch_last, cut

Hessian = tuple[Lower, Array, Array]
"""(F_xx (n, n), F_ux (m, n), F_uu (m, m)), the batch last."""


class Transition(eqx.Module):
    """The matrix ``G = (A, B)`` of ``x_next = A x + B u``."""

    @abstractmethod
    def pulled(self, v: Array) -> tuple[Array, Array]:
        """(A^T v, B^T v) of columns v (n, columns)."""

    @abstractmethod
    def around(self, V: Lower, H: Array) -> Hessian:
        """``G^T V G + H``, V in the blocks of ``Dynamics.cuts``; none of H above its diagonal blocks is read."""

    @abstractmethod
    def matrices(self) -> tuple[Array, Array]:
        """(A, B)."""


class Dense(Transition):
    """Any A (n, n) and B (n, m)."""

    A: Array
    B: Array

    def pulled(self, v: Array) -> tuple[Array, Array]:
        return product(turned(self.A), v), product(turned(self.B), v)

    def around(self, V: Lower, H: Array) -> Hessian:
        n, At, Bt = len(self.A), turned(self.A), turned(self.B)
        VA, VB = cut((product(V[0][0], self.A), product(V[0][0], self.B)))
        xx = product(At, VA, start=H[:n, :n])
        return ((xx,),), product(Bt, VA, start=H[n:, :n]), product(Bt, VB, start=H[n:, n:])

    def matrices(self) -> tuple[Array, Array]:
        return self.A, self.B


class Stepped(Transition):
    """Of a machine whose new velocity moves its configuration: ``w = W (q, v, u)``, ``q_next = T q + S w``.

    T and S are the identity and dt but for joints that are groups, where they are small matrices, so that
    ``G = ((1, S), (0, 1)) ((T, 0, 0), W)`` costs little more than W, its lower half: V is taken through the left factor
    and the products are those of W.

    Attributes:
        W: (nv, 2 nv + controls).
        turn, shift: T and S / dt by joints.
        dt: The step, s.
        topology: The tree.
    """

    W: Array
    turn: blocks.Blocks
    shift: blocks.Blocks
    dt: Array
    topology: Topology = eqx.field(static=True)

    def pulled(self, v: Array) -> tuple[Array, Array]:
        nv = self.topology.nv
        back = product(turned(self.W), cut(v[nv:] + self._shifted_back(v[:nv])))
        return jnp.concatenate([back[:nv] + self._turned_back(v[:nv]), back[nv : 2 * nv]]), back[2 * nv :]

    def around(self, V: Lower, H: Array) -> Hessian:
        n = self.topology.nv
        (qq,), (vq, vv) = V
        # of ((1, S), (0, 1)), and of T with what is above
        cross = cut(vq + self._shifted_back(qq))
        inner = cut(vv + self._shifted_back(turned(vq)) + turned(self._shifted_back(turned(cross))))
        above = cut(self._turned_back(turned(cross)))
        top = self._turned_back(turned(self._turned_back(qq)))
        W, Wt = self.W, turned(self.W)
        by_x, by_u = product(inner, W[:, : 2 * n]), product(inner, W[:, 2 * n :])
        by_x, by_u = cut((jnp.concatenate([by_x[:, :n] + turned(above), by_x[:, n:]], axis=1), by_u))
        q, v, u = slice(n), slice(n, 2 * n), slice(2 * n, None)
        qq = product(above, W[:, q], start=product(Wt[q], by_x[:, q], start=H[q, q] + top))
        vq = product(Wt[v], by_x[:, q], start=H[v, q])
        vv = product(Wt[v], by_x[:, v], start=H[v, v])
        ux = product(Wt[u], by_x, start=H[u, : 2 * n])
        return ((qq,), (vq, vv)), ux, product(Wt[u], by_u, start=H[u, u])

    def matrices(self) -> tuple[Array, Array]:
        tree, n = self.topology, self.topology.nv
        above = blocks.applied(tree, self.shift, self.dt[None, None] * self.W)
        above = jnp.concatenate([above[:, :n] + blocks.matrix(tree, self.turn, self.W[:, 0]), above[:, n:]], axis=1)
        both = jnp.concatenate([above, self.W])
        return both[:, : 2 * n], both[:, 2 * n :]

    def _turned_back(self, X: Array) -> Array:
        return blocks.applied(self.topology, blocks.transposed(self.turn), X)

    def _shifted_back(self, X: Array) -> Array:
        return blocks.applied(self.topology, blocks.transposed(self.shift), self.dt[None, None] * X)


@batch_last
def matrices(step: Transition) -> tuple[Array, Array]:
    """(A, B) of one transition, as a native function."""
    return step.matrices()
