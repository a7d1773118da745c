"""How several feet share a wrench that they must give together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.linalg.cone_qp import ConeQP, cone_minimum
from lgsim.dynamics.workspace.feet import Foot
from lgsim.support.check import is_traced

Number = int | float | Float[np.ndarray, "..."] | Float[Array, "..."]


class WrenchSplit(eqx.Module):
    """A rule by which feet share a wrench."""

    @abstractmethod
    def __call__(
        self, feet: Sequence[Foot], on_body: Float[Array, "feet 6 6"], total: Float[Array, " 6"]
    ) -> Float[Array, "feet 6"]:
        """The wrenches of the ground on the feet.

        Args:
            on_body: Of each foot the map from a wrench in its frame to one on the central body; columns of numbers
                that it cannot press are zero.
            total: The wrench on the central body that all must give, N and N m.

        Returns:
            Of each foot (f, n) in and about its frame, zero where it cannot press, N and N m.
        """


class LeastNorm(WrenchSplit):
    """The smallest wrenches in the mean of squares, ``min sum_i share_i^-1 (f.f + n.n / arm^2)``, whatever the cones.

    Linear in the total and in closed form. Nothing keeps feet from pulling, sliding or tilting: where they would, the
    machine does not do what the law assumes.

    Attributes:
        arm: The length that makes moments comparable with forces, m.
        shares: What each foot may carry beside the others, a number for all or one for each (feet,), positive.
    """

    arm: Number = 1.0
    shares: Number = 1.0

    def __call__(
        self, feet: Sequence[Foot], on_body: Float[Array, "feet 6 6"], total: Float[Array, " 6"]
    ) -> Float[Array, "feet 6"]:
        """The wrenches ``D B^T (B D B^T)^-1 total``; not finite where the feet cannot press in six directions."""
        weights = _foot_weights(self.arm, self.shares, on_body)
        weighted = on_body * weights[:, None, :]
        gram = jnp.sum(weighted @ jnp.swapaxes(on_body, 1, 2), axis=0)
        return jnp.sum(weighted * jnp.linalg.solve(gram, total)[None, :, None], axis=1)


def _foot_weights(arm: Number, shares: Number, like: Float[Array, "feet 6 6"]) -> Float[Array, "feet 6"]:
    """What each number of the wrenches may be beside the others, the inverse of its weight."""
    arm, shares = (jnp.asarray(x, like.dtype) for x in (arm, shares))
    lengths = jnp.concatenate([jnp.ones(3, like.dtype), jnp.broadcast_to(arm * arm, (3,))])
    return jnp.broadcast_to(shares, like.shape[:1])[:, None] * lengths[None]


class ConeSplit(WrenchSplit):
    """The smallest wrenches that neither lift, slide nor tilt a foot: those of ``Foot.cone`` alone.

    A quadratic program whose solution is a smooth function of all numbers, at a stated distance from the faces of the
    cones:

        min sum_i share_i^-1 (f.f + n.n / arm^2) / 2 + |missing|^2 / (2 give) - rounding^2 sum log (C_i (f_i, n_i))

    with ``missing = total - sum_i wrench_i on the body``, moments divided by arm. At the solution a row of the cone and
    its multiplier l come to ``C_i (f, n) l = rounding^2``: a row that keeps back the force l stays ``rounding^2 / l``
    from its face, and the others keep back ``rounding^2`` by what they have left.

    What the feet cannot give within their cones is missing, least in the mean of squares: ``WorkspaceForces.missing``
    says how much, and the central body accelerates otherwise than the law wants. Where they can, ``give`` of the load
    is missing.

    Attributes:
        arm: The length that makes moments comparable with forces, m.
        shares: What each foot may carry beside the others, a number for all or one for each (feet,), positive.
        give: Share of the load that is missing where none had to be, positive.
        rounding: How closely the faces are met, N, positive: much less than the weight. With 1 N, a face against which
            10 N press is met to 0.1 N.

    The steps of the program resolve what is missing up to ``1e7 give rounding``, in float32 ``1e3 give rounding``:
    1000 N by default, 10 N in float32 with ``give=1e-2``. Beyond, numbers may not be finite.
    """

    arm: Number = 1.0
    shares: Number = 1.0
    give: Number = 1e-4
    rounding: Number = 1.0

    def __call__(
        self, feet: Sequence[Foot], on_body: Float[Array, "feet 6 6"], total: Float[Array, " 6"]
    ) -> Float[Array, "feet 6"]:
        """The wrenches, strictly inside the cones.

        Raises:
            ValueError: a number is not positive.
        """
        for name in ("arm", "shares", "give", "rounding"):
            _check_positive(name, getattr(self, name))
        dtype = on_body.dtype
        roots = jnp.sqrt(_foot_weights(self.arm, self.shares, on_body))
        lengths = jnp.concatenate([jnp.ones(3, dtype), jnp.broadcast_to(jnp.asarray(self.arm, dtype), (3,))])
        cones = [foot.cone().astype(dtype) for foot in feet]
        most = max(map(len, cones))
        # shorter cones end with rows that say 1 >= 0
        C = jnp.stack([jnp.pad(cone, ((0, most - len(cone)), (0, 0))) for cone in cones], axis=-1)
        none = jnp.asarray(np.array([[row >= len(cone) for cone in cones] for row in range(most)]), dtype)
        problem = ConeQP(
            B=jnp.moveaxis(on_body * roots[:, None, :], 0, -1) / lengths[:, None, None],
            b=total / lengths,
            C=C * roots.T[None],
            d=none,
            give=jnp.asarray(self.give, dtype),
            rounding=jnp.asarray(self.rounding, dtype),
        )
        return cone_minimum(problem).x.T * roots


def _check_positive(name: str, number: Number) -> None:
    """Check a number of a split where it is known.

    Raises:
        ValueError: it is not positive.
    """
    if not is_traced(number) and not np.all(np.asarray(number) > 0):
        raise ValueError(f"{name}: expected a positive number, got {number}")
