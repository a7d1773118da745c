"""How several feet share a wrench that they must give together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.dynamics.workspace.feet import Foot

Number = int | float | Float[np.ndarray, "..."] | Float[Array, "..."]


class WrenchSplit(eqx.Module):
    """A rule by which feet share a wrench."""

    @abstractmethod
    def __call__(
        self, feet: Sequence[Foot], on_body: Float[Array, "feet 6 6"], total: Float[Array, " 6"]
    ) -> Float[Array, "feet 6"]:
        """The wrenches of the ground on the feet.

        Args:
            feet: The feet.
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
        weights = foot_weights(self.arm, self.shares, on_body)
        weighted = on_body * weights[:, None, :]
        gram = jnp.sum(weighted @ jnp.swapaxes(on_body, 1, 2), axis=0)
        return jnp.sum(weighted * jnp.linalg.solve(gram, total)[None, :, None], axis=1)


def foot_weights(arm: Number, shares: Number, like: Float[Array, "feet 6 6"]) -> Float[Array, "feet 6"]:
    """What each number of the wrenches may be beside the others, the inverse of its weight."""
    arm, shares = (jnp.asarray(x, like.dtype) for x in (arm, shares))
    lengths = jnp.concatenate([jnp.ones(3, like.dtype), jnp.broadcast_to(arm * arm, (3,))])
    return jnp.broadcast_to(shares, like.shape[:1])[:, None] * lengths[None]
