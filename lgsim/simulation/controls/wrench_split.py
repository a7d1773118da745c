"""Distribution of a total wrench among several feet."""

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
    """A rule that distributes a total wrench among the feet."""

    @abstractmethod
    def __call__(
        self, feet: Sequence[Foot], on_body: Float[Array, "feet 6 6"], total: Float[Array, " 6"]
    ) -> Float[Array, "feet 6"]:
        """The ground wrenches on the feet.

        Args:
            on_body: For each foot the map from a wrench in its frame to one on the central body; columns of components
                that it cannot exert are zero.
            total: The required total wrench on the central body, N and N m.

        Returns:
            For each foot (f, n) in and about its frame, zero in the components that it cannot exert, N and N m.
        """


class LeastNorm(WrenchSplit):
    """The minimum-norm wrenches, ``min sum_i share_i^-1 (f.f + n.n / arm^2)``, without regard to friction cones.

    Linear in the total and in closed form. Nothing prevents pulling, sliding or tilting feet: where they occur, the
    robot does not do what the controller assumes.

    Attributes:
        arm: The length that makes moments comparable with forces, m.
        shares: Relative load of each foot, a number for all or one for each (feet,), positive.
    """

    arm: Number = 1.0
    shares: Number = 1.0

    def __call__(
        self, feet: Sequence[Foot], on_body: Float[Array, "feet 6 6"], total: Float[Array, " 6"]
    ) -> Float[Array, "feet 6"]:
        """The wrenches ``D B^T (B D B^T)^-1 total``; not finite unless the feet can exert all six components."""
        weights = _foot_weights(self.arm, self.shares, on_body)
        weighted = on_body * weights[:, None, :]
        gram = jnp.sum(weighted @ jnp.swapaxes(on_body, 1, 2), axis=0)
        return jnp.sum(weighted * jnp.linalg.solve(gram, total)[None, :, None], axis=1)


def _foot_weights(arm: Number, shares: Number, like: Float[Array, "feet 6 6"]) -> Float[Array, "feet 6"]:
    """The relative size of each wrench component, the inverse of its weight."""
    arm, shares = (jnp.asarray(x, like.dtype) for x in (arm, shares))
    lengths = jnp.concatenate([jnp.ones(3, like.dtype), jnp.broadcast_to(arm * arm, (3,))])
    return jnp.broadcast_to(shares, like.shape[:1])[:, None] * lengths[None]


class ConeSplit(WrenchSplit):
    """The smallest wrenches that neither lift, slide nor tilt a foot, within the cones ``Foot.cone``.

    A quadratic program whose solution is a smooth function of all inputs, at a prescribed distance from the faces of
    the cones:

        min sum_i share_i^-1 (f.f + n.n / arm^2) / 2 + |missing|^2 / (2 give) - rounding^2 sum log (C_i (f_i, n_i))

    with ``missing = total - sum_i wrench_i on the body``, moments divided by arm. At the solution a row of the cone and
    its multiplier l satisfy ``C_i (f, n) l = rounding^2``: an active row with the force l stays ``rounding^2 / l`` from
    its face, and an inactive row acts with ``rounding^2`` divided by its slack.

    The part of the total that lies outside the cones is missing, least in the mean square:
    ``WorkspaceForces.missing`` returns it, and the central body then deviates from the desired acceleration. Inside the
    cones the fraction ``give`` of the load is missing.

    Attributes:
        arm: The length that makes moments comparable with forces, m.
        shares: Relative load of each foot, a number for all or one for each (feet,), positive.
        give: Fraction of the load that is missing inside the cones, positive.
        rounding: Smoothing of the faces, N, positive: much less than the weight. With 1 N, the distance from a face
            with the reaction 10 N is 0.1 N.

    The iterations resolve the missing part up to ``1e7 give rounding``, in float32 ``1e3 give rounding``: 1000 N by
    default, 10 N in float32 with ``give=1e-2``. Beyond that, results may not be finite.
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
            ValueError: a parameter is not positive.
        """
        for name in ("arm", "shares", "give", "rounding"):
            _check_positive(name, getattr(self, name))
        dtype = on_body.dtype
        roots = jnp.sqrt(_foot_weights(self.arm, self.shares, on_body))
        lengths = jnp.concatenate([jnp.ones(3, dtype), jnp.broadcast_to(jnp.asarray(self.arm, dtype), (3,))])
        cones = [foot.cone().astype(dtype) for foot in feet]
        most = max(map(len, cones))
        # shorter cones are padded with rows 1 >= 0
        C = jnp.stack([jnp.pad(cone, ((0, most - len(cone)), (0, 0))) for cone in cones], axis=-1)
        none = jnp.asarray(np.array([[row >= len(cone) for cone in cones] for row in range(most)]), dtype)
        # in scaled components: unit weights, and moments divided by arm
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
    """Check a parameter of a split unless it is traced.

    Raises:
        ValueError: it is not positive.
    """
    if not is_traced(number) and not np.all(np.asarray(number) > 0):
        raise ValueError(f"{name}: expected a positive number, got {number}")
