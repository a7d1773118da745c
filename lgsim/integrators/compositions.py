"""Symplectic steps and their compositions as data: a theta and a fraction of the step for each substep.

Source: Celledoni et al. 2021, (15)-(17); Yoshida 1990 and Suzuki 1990 (compositions); Hairer, Lubich, Wanner, Geometric
Numerical Integration, II.4.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeVar, cast


class Composable(ABC):
    """A scheme that can be repeated within a step; symmetric ones give higher orders by composition.

    Attributes:
        order: the order of convergence.
    """

    name: str
    order: int

    @property
    @abstractmethod
    def symmetric(self) -> bool:
        """True if a step backwards inverts a step."""

    @abstractmethod
    def repeated(self, name: str, fractions: tuple[float, ...], order: int) -> Composable:
        """This scheme repeated with each fraction of the step, as one scheme."""


Scheme = TypeVar("Scheme", bound=Composable)


@dataclass(frozen=True)
class ThetaScheme(Composable):
    """A composition of steps of the symplectic theta family.

    The adjoint of the step with theta is the step with 1 - theta.

    Attributes:
        substeps: (theta, fraction of dt) in chronological order; the fractions add up to one and may be negative.
        order: the order of convergence.

    Raises:
        ValueError: theta is not a number in [0, 1], or the fractions do not add up to one.
    """

    name: str
    substeps: tuple[tuple[float, float], ...]
    order: int

    def __post_init__(self) -> None:
        for theta, _ in self.substeps:
            if not 0 <= theta <= 1:
                raise ValueError(f"theta: expected a number from 0 to 1, got {theta}")
        check_fractions(self.name, [fraction for _, fraction in self.substeps])

    @property
    def embedded_order(self) -> None:
        """None: a composition has no error estimate."""
        return None

    @property
    def adjoint(self) -> ThetaScheme:
        """The adjoint scheme: the inverse of a step backwards."""
        substeps = tuple((1 - theta, fraction) for theta, fraction in reversed(self.substeps))
        return ThetaScheme(f"adjoint of {self.name}", substeps, self.order)

    @property
    def symmetric(self) -> bool:
        """True if the scheme is its own adjoint, up to the rounding of 1 - theta."""
        pairs = zip(self.substeps, self.adjoint.substeps, strict=True)
        return all(abs(a - b) <= math.ulp(1) and f == g for (a, f), (b, g) in pairs)

    def repeated(self, name: str, fractions: tuple[float, ...], order: int) -> ThetaScheme:
        """This scheme repeated with each fraction of the step, as one scheme."""
        return ThetaScheme(name, tuple(substep for part in fractions for substep in _scaled(self, part)), order)


def theta_scheme(theta: float | int) -> ThetaScheme:
    """One step of the symplectic theta family, of order 2 for theta = 1/2 and of order 1 for all others in [0, 1].

    Raises:
        ValueError: theta is not a number in [0, 1].

    Source: Celledoni et al. 2021, (15)-(17).
    """
    theta = float(theta)
    return ThetaScheme(f"symplectic, theta = {theta:g}", ((theta, 1.0),), 2 if theta == 1 / 2 else 1)


def with_adjoint(scheme: ThetaScheme) -> ThetaScheme:
    """Half a step of a scheme followed by half a step of its adjoint: a symmetric scheme, hence of even order.

    Source: Hairer, Lubich, Wanner, Geometric Numerical Integration, II.3.
    """
    substeps = (*_scaled(scheme, 1 / 2), *_scaled(scheme.adjoint, 1 / 2))
    return ThetaScheme(f"{scheme.name} with its adjoint", substeps, scheme.order + scheme.order % 2)


def triple_jump(scheme: Scheme) -> Scheme:
    """Three steps ``g, 1 - 2 g, g`` with ``g = 1/(2 - 2^(1/(p+1)))`` of a symmetric scheme of order p: order p + 2.

    Raises:
        ValueError: the scheme is not symmetric.

    Source: Yoshida 1990; Hairer, Lubich, Wanner, Geometric Numerical Integration, (II.4.4).
    """
    g = 1 / (2 - 2 ** (1 / (scheme.order + 1)))
    return _compose("triple jump", scheme, (g, 1 - 2 * g, g))


def suzuki(scheme: Scheme) -> Scheme:
    """Five steps ``g, g, 1 - 4 g, g, g`` with ``g = 1/(4 - 4^(1/(p+1)))`` of a symmetric scheme: order p + 2.

    Its backward steps are shorter than those of the triple jump, and its errors are smaller.

    Raises:
        ValueError: the scheme is not symmetric.

    Source: Suzuki 1990; Hairer, Lubich, Wanner, Geometric Numerical Integration, (II.4.5).
    """
    g = 1 / (4 - 4 ** (1 / (scheme.order + 1)))
    return _compose("Suzuki", scheme, (g, g, 1 - 4 * g, g, g))


def _compose(kind: str, scheme: Scheme, fractions: tuple[float, ...]) -> Scheme:
    """The composition of a symmetric scheme with the given fractions of the step; two orders higher."""
    if not scheme.symmetric:
        raise ValueError(f"scheme: expected a symmetric one, got {scheme.name}; take with_adjoint(scheme)")
    composed = scheme.repeated(f"{kind} of {scheme.name}", fractions, scheme.order + 2)
    return cast(Scheme, composed)  # ``repeated`` returns the same type


def check_fractions(name: str, fractions: list[float]) -> None:
    """Raise ValueError unless the fractions of a step add up to one."""
    total = math.fsum(fractions)
    if not abs(total - 1) <= math.fsum(map(math.ulp, fractions)):
        raise ValueError(f"{name}: the fractions of the step add up to {total}, expected 1")


def _scaled(scheme: ThetaScheme, fraction: float) -> tuple[tuple[float, float], ...]:
    """The substeps of a scheme over a fraction of the step."""
    return tuple((theta, fraction * part) for theta, part in scheme.substeps)
