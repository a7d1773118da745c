"""Blocks of inertial parameters of bodies, as coordinates that are zero at the prior plant."""

from __future__ import annotations

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int

from lgsim.identify.unknowns.block import Block, select_names
from lgsim.identify.unknowns.plant import NumbersLike, Plant
from lgsim.multibody import inertia
from lgsim.multibody.inertia import COORDINATES, EDGES, from_log_cholesky
from lgsim.multibody.model import Model
from lgsim.support.check import is_traced
from lgsim.support.verdict import first_names


class BodyBlock(Block):
    """Unknown inertial parameters of bodies.

    Attributes:
        bodies: Names of the bodies, by default all.
    """

    bodies: Sequence[str] | None = eqx.field(static=True, default=None)
    prior_deviation: NumbersLike | None = None

    def names(self, model: Model) -> list[str]:
        """Names of the bodies; raises ValueError for an unknown one."""
        return select_names("bodies", self.bodies, model.body_names)

    def indices(self, model: Model) -> Int[np.ndarray, " bodies"]:
        """Indices of the bodies in the model."""
        return np.array([model.body_names.index(name) for name in self.names(model)])

    def affine_indices(self, model: Model) -> Int[np.ndarray, " moved"]:
        return (10 * self.indices(model)[:, None] + np.arange(10)).reshape(-1)


class Inertias(BodyBlock):
    """All ten inertial parameters of bodies, always physically consistent.

    The coordinates are log-Cholesky coordinates about the prior.

    The pseudo-inertia of a body is ``U L(x) L(x)^T U^T``, where ``U U^T`` is its prior and ``L L^T`` the matrix of
    ``lgsim.multibody.inertia.from_log_cholesky`` at x. The coordinates are dimensionless and independent of the size of
    the body. The mass is ``exp(2 alpha)`` times the prior mass, and t shifts the center of mass as a fraction of the
    radii of gyration.

    Attributes:
        prior_deviation: Prior standard deviation of the coordinates, by default 1, a weak prior: the mass is known to a
            factor of seven. Parameters that are not identifiable stay at the prior. None for no prior.

    Source: Rucker and Wensing 2022, Smooth parameterization of rigid-body inertia, IEEE RA-L 7(2), for the coordinates.
    """

    prior_deviation: NumbersLike | None = 1.0

    def labels(self, plant: Plant) -> list[str]:
        self.check(plant.model)
        return [f"{c} of {name}" for name in self.names(plant.model) for c in COORDINATES]

    def check(self, model: Model) -> None:
        """Raise ValueError for bodies without a physically consistent inertia."""
        _check_consistency(self.names(model), model.inertias[self.indices(model)])

    def apply(self, plant: Plant, x: Float[Array, " size"]) -> Plant:
        at = self.indices(plant.model)
        U = upper_factor(inertia.pseudo_inertia(plant.model.inertias[at]))
        middle = inertia.pseudo_inertia(from_log_cholesky(x.reshape(-1, 10)))
        return _with_inertias(plant, at, inertia.from_pseudo_inertia(U @ middle @ U.mT))

    def value_limits(self, plant: Plant) -> dict[str, tuple[float, float]]:
        positive = ("m", "Ixx", "Iyy", "Izz")
        return {name: (0.0, np.inf) for name in self.values(plant) if name.split(" of ")[0] in positive}

    def straight(self, x: Float[Array, " size"], dx: Float[Array, " size"]) -> Float[Array, " size"]:
        rows = x.reshape(-1, 10)
        B = jnp.eye(4, dtype=x.dtype)[None] + _relative_change(rows, dx.reshape(-1, 10))
        return _factor_coordinates(log_cholesky_factor(rows) @ upper_factor(B)).reshape(-1)

    def reach(self, x: Float[Array, " size"], dx: Float[Array, " size"]) -> Float[Array, ""]:
        least = jnp.min(jnp.linalg.eigvalsh(_relative_change(x.reshape(-1, 10), dx.reshape(-1, 10))))
        return jnp.where(least < -_LARGEST_FALL, _LARGEST_FALL / jnp.where(least < 0, -least, 1), 1)

    @property
    def has_edge(self) -> bool:
        return True

    def barrier(self, x: Float[Array, " size"]) -> Float[Array, ""]:
        F = log_cholesky_factor(x.reshape(-1, 10))
        return BARRIER * (jnp.sum(F * F) - 2 * jnp.sum(jnp.log(jnp.diagonal(F, axis1=-2, axis2=-1))))

    def outer_map(self, x: Float[Array, " size"]) -> Float[Array, "size size"]:
        slopes = jax.vmap(jax.jacfwd(from_log_cholesky))
        rows = x.reshape(-1, 10)
        maps = jnp.linalg.solve(slopes(rows), slopes(jnp.zeros_like(rows)))
        return jax.scipy.linalg.block_diag(*maps)

    def linear(self, x: Float[np.ndarray, " size"]) -> Float[np.ndarray, " size"]:
        F = np.stack([_log_cholesky_factor_of_one(row) for row in x.reshape(-1, 10)])
        change = F @ F.swapaxes(-1, -2) - np.eye(4)
        return (change.reshape(-1, 16) @ np.linalg.pinv(_slope_at_prior().reshape(16, 10)).T).reshape(-1)

    def from_linear(self, y: Float[np.ndarray, " size"]) -> Float[np.ndarray, " size"]:
        Q = np.eye(4) + np.moveaxis(_slope_at_prior() @ y.reshape(-1, 10).T, -1, 0)
        F = np.flip(np.linalg.cholesky(np.flip(Q, (-2, -1))), (-2, -1))
        size = F[:, 3, 3]
        S = F / size[:, None, None]
        logs = np.log(np.stack([size, *(S[:, i, i] for i in range(3))], axis=-1))
        return np.concatenate([logs, np.stack([S[:, i, j] for i, j in _OFF_DIAGONAL], axis=-1)], axis=-1).reshape(-1)

    def pencils(self, size: int) -> Float[np.ndarray, "bodies n n k"]:
        return np.broadcast_to(_slope_at_prior(), (size // 10, 4, 4, 10))

    def edges(
        self, plant: Plant, x: Float[np.ndarray, " size"], covariance: Float[np.ndarray, "size size"]
    ) -> list[str]:
        found = []
        slope = _slope_at_prior()
        for i, name in enumerate(self.names(plant.model)):
            F = _log_cholesky_factor_of_one(x[10 * i : 10 * i + 10])
            values, vectors = np.linalg.eigh(F @ F.T)
            own = covariance[10 * i : 10 * i + 10, 10 * i : 10 * i + 10]
            along = np.einsum("ik,ijp,jk->kp", vectors, slope, vectors)
            deviations = np.sqrt(np.maximum(np.einsum("kp,pq,kq->k", along, own, along), 0))
            lost = int(np.sum((values < _NEAR_EDGE) & (values < deviations)))
            if lost:
                found.append(f"{name}: its mass {EDGES.get(lost, 'nothing')}")
        return found

    def value_array(self, plant: Plant) -> Float[Array, " values"]:
        return plant.model.inertias[self.indices(plant.model)].reshape(-1)

    def values(self, plant: Plant) -> dict[str, Float[Array, ""]]:
        rows = plant.model.inertias[self.indices(plant.model)]
        units = ("kg", *["kg m"] * 3, *["kg m^2"] * 6)
        return {
            f"{symbol} of {name}, {unit}": rows[i, k]
            for i, name in enumerate(self.names(plant.model))
            for k, (symbol, unit) in enumerate(zip(inertia.PARAMETERS, units, strict=True))
        }


class StandardParameters(BodyBlock):
    """The ten standard inertial parameters of bodies.

    Joint torques are linear in them; physical consistency is not enforced.
    """

    @property
    def is_linear(self) -> bool:
        return True

    def labels(self, plant: Plant) -> list[str]:
        return [f"{c} of {name}" for name in self.names(plant.model) for c in inertia.PARAMETERS]

    def apply(self, plant: Plant, x: Float[Array, " size"]) -> Plant:
        at = self.indices(plant.model)
        return _with_inertias(plant, at, plant.model.inertias[at] + x.reshape(-1, 10))

    def value_limits(self, plant: Plant) -> dict[str, tuple[float, float]]:
        return Inertias(self.bodies).value_limits(plant)

    def value_array(self, plant: Plant) -> Float[Array, " values"]:
        return Inertias(self.bodies).value_array(plant)

    def values(self, plant: Plant) -> dict[str, Float[Array, ""]]:
        return Inertias(self.bodies).values(plant)


class Masses(BodyBlock):
    """Logarithms of the masses of bodies with known centers of mass and inertias per kilogram."""

    def labels(self, plant: Plant) -> list[str]:
        _check_masses("Masses", self.names(plant.model), plant.model.inertias[self.indices(plant.model)])
        return [f"log mass of {name}" for name in self.names(plant.model)]

    def apply(self, plant: Plant, x: Float[Array, " size"]) -> Plant:
        at = self.indices(plant.model)
        return _with_inertias(plant, at, plant.model.inertias[at] * jnp.exp(x)[:, None])

    def value_limits(self, plant: Plant) -> dict[str, tuple[float, float]]:
        return dict.fromkeys(self.values(plant), (0.0, np.inf))

    def search_bounds(self, plant: Plant) -> tuple[ArrayLike, ArrayLike]:
        return self._least(plant.model.dtype), np.inf

    def outer_map(self, x: Float[Array, " size"]) -> Float[Array, "size size"]:
        return jnp.diag(jnp.exp(-jnp.maximum(x, self._least(x.dtype))))

    @staticmethod
    def _least(dtype: jnp.dtype) -> float:
        """The coordinate of a mass that is zero in half of the digits: the information of a smaller one is lost."""
        return -math.log(10) * np.finfo(dtype).precision / 2

    def linear(self, x: Float[np.ndarray, " size"]) -> Float[np.ndarray, " size"]:
        return np.expm1(x)

    def from_linear(self, y: Float[np.ndarray, " size"]) -> Float[np.ndarray, " size"]:
        return np.log1p(y)

    def pencils(self, size: int) -> Float[np.ndarray, "bodies n n k"]:
        return np.ones((size, 1, 1, 1))

    def edges(
        self, plant: Plant, x: Float[np.ndarray, " size"], covariance: Float[np.ndarray, "size size"]
    ) -> list[str]:
        deviations = np.sqrt(np.maximum(np.diagonal(covariance), 0))
        lost = (np.exp(x) < _NEAR_EDGE) & (np.exp(x) < deviations)
        return [
            f"m of {name} at its lower bound" for name, near in zip(self.names(plant.model), lost, strict=True) if near
        ]

    def values(self, plant: Plant) -> dict[str, Float[Array, ""]]:
        rows = plant.model.inertias[self.indices(plant.model)]
        return {f"m of {name}, kg": rows[i, 0] for i, name in enumerate(self.names(plant.model))}


class CentersOfMass(BodyBlock):
    """Centers of mass, m, in the body frames, of bodies with known masses and central inertias."""

    def labels(self, plant: Plant) -> list[str]:
        _check_masses("CentersOfMass", self.names(plant.model), plant.model.inertias[self.indices(plant.model)])
        return [f"{axis} of the center of {name}" for name in self.names(plant.model) for axis in "xyz"]

    def apply(self, plant: Plant, x: Float[Array, " size"]) -> Plant:
        at = self.indices(plant.model)
        mass, center, central = inertia.mass_center_inertia(plant.model.inertias[at])
        return _with_inertias(plant, at, inertia.parameters(mass, center + x.reshape(-1, 3), central))

    def values(self, plant: Plant) -> dict[str, Float[Array, ""]]:
        _, center, _ = inertia.mass_center_inertia(plant.model.inertias[self.indices(plant.model)])
        names = self.names(plant.model)
        return {f"{c} of {name}, m": center[i, k] for i, name in enumerate(names) for k, c in enumerate("xyz")}


BARRIER = 1e-2
"""Weight of the barrier ``tr(Q) - log det(Q)`` of a body without prior, Q being its pseudo-inertia relative to the
prior one. It keeps the body off the edge at a cost of a hundredth of a squared standard deviation for each dimension
that the body would lose there.
"""
_NEAR_EDGE = 0.05
"""Principal values of the relative pseudo-inertia below this value count as close to zero."""
_LARGEST_FALL = 0.5
"""The largest relative decrease of a pseudo-inertia along any direction in one step."""


def log_cholesky_factor(coordinates: Float[Array, "bodies 10"]) -> Float[Array, "bodies 4 4"]:
    """The upper triangular factor F of the pseudo-inertia ``F F^T`` with these log-Cholesky coordinates."""
    alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = jnp.moveaxis(coordinates, -1, 0)
    zero, one = jnp.zeros_like(alpha), jnp.ones_like(alpha)
    rows = [
        [jnp.exp(d1), s12, s13, t1], [zero, jnp.exp(d2), s23, t2], [zero, zero, jnp.exp(d3), t3], [zero] * 3 + [one]
    ]  # fmt: skip
    return jnp.exp(alpha)[:, None, None] * jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)


def _check_consistency(names: list[str], inertias: Float[Array, "bodies 10"]) -> None:
    """Raise ValueError for a prior without log-Cholesky coordinates, such as a massless link or a point mass."""
    if is_traced(inertias) or not np.all(np.isfinite(inertias)):
        return
    rows, matrices = np.asarray(inertias), np.asarray(inertia.pseudo_inertia(inertias))
    lost = [f"{name}, which {_fault(row)}" for name, row, P in zip(names, rows, matrices, strict=True)
            if not _is_definite(P)]  # fmt: skip
    if lost:
        raise ValueError(
            f"blocks: Inertias: expected bodies with a physically consistent inertia, got {first_names(lost)}; start"
            " from the nearest bodies that can exist: nearest_consistent(model), or lgsim identify --physical nearest;"
            " set their inertias in the file or by Model.replace; or list the other bodies: Inertias(bodies=[...])"
        )


def _fault(values: Float[np.ndarray, " 10"]) -> str:
    """The reason why ten parameters have no log-Cholesky coordinates."""
    if not np.any(values):
        return "has neither mass nor inertia"
    return inertia.defect(values) or f"has its mass {EDGES[inertia.directions_without_extent(values) or 1]}"


def _check_masses(kind: str, names: list[str], inertias: Float[Array, "bodies 10"]) -> None:
    """Raise ValueError for bodies without mass, which have no center and no ratio to their mass."""
    if is_traced(inertias) or not np.all(np.isfinite(inertias)):
        return
    lost = [name for name, mass in zip(names, np.asarray(inertias)[:, 0], strict=True) if not mass]
    if lost:
        raise ValueError(
            f"blocks: {kind}: expected bodies with mass, got {first_names(lost)}; start from the nearest bodies that"
            " can exist: nearest_consistent(model), or lgsim identify --physical nearest; or list the other bodies:"
            f" {kind}(bodies=[...])"
        )


def _is_definite(P: Float[np.ndarray, "4 4"]) -> bool:
    """True if a pseudo-inertia has a Cholesky factor."""
    try:
        np.linalg.cholesky(P)
    except np.linalg.LinAlgError:
        return False
    return True


def _factor_coordinates(factor: Float[Array, "bodies 4 4"]) -> Float[Array, "bodies 10"]:
    """The inverse of ``log_cholesky_factor``."""
    size = factor[..., 3, 3]
    S = factor / size[..., None, None]
    d = [jnp.log(S[..., i, i]) for i in range(3)]
    rest = [S[..., i, j] for i, j in _OFF_DIAGONAL]
    return jnp.stack([jnp.log(size), *d, *rest], axis=-1)


def _relative_change(x: Float[Array, "bodies 10"], dx: Float[Array, "bodies 10"]) -> Float[Array, "bodies 4 4"]:
    """``F^-1 dP F^-T`` of the change dP of ``P = F F^T`` to first order, F being the factor at x."""
    F, dF = jax.jvp(log_cholesky_factor, (x,), (dx,))
    W = jax.scipy.linalg.solve_triangular(F, dF, lower=False)
    return W + W.mT


_OFF_DIAGONAL = ((0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3))
"""Positions of s12, s23, s13, t1, t2, t3 in a factor."""


def _log_cholesky_factor_of_one(x: Float[np.ndarray, " 10"]) -> Float[np.ndarray, "4 4"]:
    """``log_cholesky_factor`` of one body in numpy, without compilation."""
    S = np.diag(np.exp([*x[1:4], 0.0]))
    for (i, j), value in zip(_OFF_DIAGONAL, x[4:], strict=True):
        S[i, j] = value
    return np.exp(x[0]) * S


def _slope_at_prior() -> Float[np.ndarray, "4 4 10"]:
    """The derivative of the relative pseudo-inertia with respect to the log-Cholesky coordinates, at zero."""
    slope = np.zeros((4, 4, 10))
    slope[..., 0] = 2 * np.eye(4)
    for k, (i, j) in enumerate((*((i, i) for i in range(3)), *_OFF_DIAGONAL), start=1):
        slope[i, j, k] += 1
        slope[j, i, k] += 1
    return slope


def upper_factor(matrix: Float[Array, "*batch n n"]) -> Float[Array, "*batch n n"]:
    """The upper triangular U with ``U U^T`` equal to a positive definite matrix."""
    # Cholesky factor of the matrix in reverse order
    return jnp.flip(jnp.linalg.cholesky(jnp.flip(matrix, (-2, -1))), (-2, -1))


def _with_inertias(plant: Plant, at: Int[np.ndarray, " bodies"], rows: Float[Array, "bodies 10"]) -> Plant:
    return eqx.tree_at(lambda p: p.model.inertias, plant, plant.model.inertias.at[at].set(rows))
