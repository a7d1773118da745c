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
from lgsim.optimize.small import turned
from lgsim.spatial import batch_last, cut

Hessian = tuple[Array, Array, Array]
"""(F_xx (n, n), F_ux (m, n), F_uu (m, m)), the batch last."""


class Transition(eqx.Module):
    """The matrix ``G = (A, B)`` of ``x_next = A x + B u``."""

    @abstractmethod
    def pulled(self, v: Array) -> tuple[Array, Array]:
        """(A^T v, B^T v) of columns v (n, columns)."""

    @abstractmethod
    def around(self, V: Array) -> Hessian:
        """``G^T V G`` of a symmetric V."""

    @abstractmethod
    def matrices(self) -> tuple[Array, Array]:
        """(A, B)."""

    @abstractmethod
    def parts(self) -> tuple[Array, Array]:
        """Arrays that are finite where A and where B is."""


class Dense(Transition):
    """Any A (n, n) and B (n, m)."""

    A: Array
    B: Array

    def pulled(self, v: Array) -> tuple[Array, Array]:
        return product(turned(self.A), v), product(turned(self.B), v)

    def around(self, V: Array) -> Hessian:
        At, Bt = turned(self.A), turned(self.B)
        VA, VB = cut((product(V, self.A), product(V, self.B)))
        return product(At, VA), product(Bt, VA), product(Bt, VB)

    def matrices(self) -> tuple[Array, Array]:
        return self.A, self.B

    def parts(self) -> tuple[Array, Array]:
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

    def around(self, V: Array) -> Hessian:
        n = self.topology.nv
        # of ((1, S), (0, 1)), and of T with what is above
        cross = V[n:, :n] + self._shifted_back(V[:n, :n])
        inner = cut(V[n:, n:] + self._shifted_back(V[:n, n:]) + turned(self._shifted_back(turned(cross))))
        above = cut(self._turned_back(turned(cross)))
        top = self._turned_back(turned(self._turned_back(V[:n, :n])))
        W, Wt = self.W, turned(self.W)
        half = product(inner, W)
        half = cut(jnp.concatenate([half[:, :n] + turned(above), half[:, n:]], axis=1))
        qq = top + product(Wt[:n], half[:, :n]) + product(above, W[:, :n])
        of_v = cut(product(Wt[n : 2 * n], half))
        of_u = cut(product(Wt[2 * n :], jnp.concatenate([half[:, :n], half[:, 2 * n :]], axis=1)))
        vq, vv, vu = of_v[:, :n], of_v[:, n : 2 * n], of_v[:, 2 * n :]
        uq, uu = of_u[:, :n], of_u[:, n:]
        xx = jnp.concatenate([jnp.concatenate([qq, turned(vq)], axis=1), jnp.concatenate([vq, vv], axis=1)])
        return xx, jnp.concatenate([uq, turned(vu)], axis=1), uu

    def matrices(self) -> tuple[Array, Array]:
        tree, n = self.topology, self.topology.nv
        above = blocks.applied(tree, self.shift, self.dt[None, None] * self.W)
        above = jnp.concatenate([above[:, :n] + blocks.matrix(tree, self.turn, self.W[:, 0]), above[:, n:]], axis=1)
        both = jnp.concatenate([above, self.W])
        return both[:, : 2 * n], both[:, 2 * n :]

    def parts(self) -> tuple[Array, Array]:
        n = 2 * self.topology.nv
        return self.W[:, :n], self.W[:, n:]

    def _turned_back(self, X: Array) -> Array:
        return blocks.applied(self.topology, blocks.transposed(self.turn), X)

    def _shifted_back(self, X: Array) -> Array:
        return blocks.applied(self.topology, blocks.transposed(self.shift), self.dt[None, None] * X)


@batch_last
def matrices(step: Transition) -> tuple[Array, Array]:
    """(A, B) of one transition, as a native function."""
    return step.matrices()
