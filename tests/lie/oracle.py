"""Exact references for lgsim.lie, independent of every closed form the library uses.

Matrix functions are summed as power series of the defining matrices (exp) and of the adjoint matrices (dexp), in
fixed-point integers of 256 bits (77 digits), together with their Taylor coefficients in the components of the
algebra vector, so that one sum gives the value and all derivatives up to the wanted order. dexpinv is the inverse of
dexp. The scalar coefficients are quotients of entire series. `test_oracle.py` proves this file against mpmath and
against published decimals.

Every function takes the exact binary value of its float input. Results are fixed-point integers (`object` arrays);
`double_double` turns them into a pair of float64 arrays whose sum carries 32 digits, and `error` subtracts that pair
from a computed array.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from math import factorial, prod

import numpy as np

BITS = 256
ONE = 1 << BITS


# --- fixed-point numbers


def fixed(values) -> np.ndarray:
    """Fixed-point integers of floats (exact binary value) or decimal strings."""
    return np.vectorize(_fixed_scalar, otypes=[object])(np.asarray(values))


def _fixed_scalar(value) -> int:
    exact = Fraction(str(value)) if isinstance(value, str) else Fraction(float(value))
    return (exact.numerator << BITS) // exact.denominator


def double_double(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nearest float64 and the nearest float64 to what it leaves."""
    high = np.vectorize(lambda n: n / ONE, otypes=[float])(numbers)
    low = np.vectorize(lambda n: n / ONE, otypes=[float])(numbers - fixed(high))
    return high, low


def error(computed, exact: np.ndarray) -> np.ndarray:
    """computed - exact, in float64; `exact` is fixed-point."""
    high, low = double_double(exact)
    return (np.asarray(computed, dtype=np.float64) - high) - low


# --- polynomials in the components of the algebra vector, truncated at a degree


@dataclass(frozen=True)
class Truncation:
    """Monomials of `variables` variables up to `degree`, lowest degrees first."""

    variables: int
    degree: int

    @property
    def monomials(self) -> list[tuple[int, ...]]:
        return _monomials(self.variables, self.degree)

    @property
    def index(self) -> dict[tuple[int, ...], int]:
        return _index(self.variables, self.degree)


@cache
def _monomials(variables: int, degree: int) -> list[tuple[int, ...]]:
    """Each monomial as the sorted tuple of its variables: () is 1, (0, 0, 3) is x0^2 x3."""
    return [m for d in range(degree + 1) for m in combinations_with_replacement(range(variables), d)]


@cache
def _index(variables: int, degree: int) -> dict[tuple[int, ...], int]:
    return {m: i for i, m in enumerate(_monomials(variables, degree))}


def _multiply(left: np.ndarray, right: np.ndarray, truncation: Truncation) -> np.ndarray:
    """Product of two polynomials with matrix coefficients, (monomials, n, k) and (monomials, k, m)."""
    out = np.zeros((len(truncation.monomials), left.shape[1], right.shape[2]), dtype=object)
    for i in range(len(truncation.monomials)):
        if not left[i].any():
            continue
        target = _targets(truncation, i)
        entries = np.argwhere(left[i] != 0)
        if len(entries) < left[i].size // 4:  # basis matrices are mostly zero
            for r, c in entries:
                out[target, r] += left[i, r, c] * right[: len(target), c]
        else:
            out[target] += left[i] @ right[: len(target)]
    return out >> BITS


@cache
def _targets(truncation: Truncation, i: int) -> list[int]:
    """Where monomial i sends the monomials, from the first on, that it may be multiplied with."""
    factor, monomials = truncation.monomials[i], truncation.monomials
    room = [b for b in monomials if len(factor) + len(b) <= truncation.degree]
    return [truncation.index[tuple(sorted(factor + b))] for b in room]


def _series(argument: np.ndarray, truncation: Truncation, offset: int) -> np.ndarray:
    """sum_j A^j/(j + offset)! of a polynomial A with square matrix coefficients."""
    size = argument.shape[-1]
    term = np.zeros((len(truncation.monomials), size, size), dtype=object)
    term[0] = np.eye(size, dtype=int).astype(object) * (ONE // factorial(offset))
    total = term.copy()
    j = 0
    while np.any((term > 1) | (term < -1)):
        j += 1
        term = _multiply(argument, term, truncation) // (j + offset)
        total = total + term
    return total


def _halvings(argument: np.ndarray) -> int:
    """How often to halve the argument so that its entries are at most about 2."""
    return max(0, int(max(abs(v) for v in argument[0].flat)).bit_length() - BITS - 1)


def _exp(argument: np.ndarray, truncation: Truncation) -> np.ndarray:
    """exp(A), with exp(2 A) = exp(A)^2."""
    halvings = _halvings(argument)
    out = _series(argument >> halvings, truncation, 0)
    for _ in range(halvings):
        out = _multiply(out, out, truncation)
    return out


def _dexp(argument: np.ndarray, truncation: Truncation) -> np.ndarray:
    """(exp(A) - 1)/A, whose value at 2 A is (exp(A) + 1)/2 times that at A."""
    halvings = _halvings(argument)
    out = _series(argument >> halvings, truncation, 1)
    if halvings:
        power = _series(argument >> halvings, truncation, 0)
        one = np.zeros_like(power)
        one[0] = np.eye(power.shape[-1], dtype=int).astype(object) * ONE
        for _ in range(halvings):
            out = _multiply(power + one, out, truncation) >> 1
            power = _multiply(power, power, truncation)
    return out


def _invert(matrix: np.ndarray, truncation: Truncation) -> np.ndarray:
    """Inverse of a polynomial with square matrix coefficients, by Newton's iteration."""
    size = matrix.shape[-1]
    scaled = np.vectorize(lambda n: n / ONE, otypes=[float])(matrix[0])
    inverse = np.zeros_like(matrix)
    inverse[0] = fixed(np.linalg.inv(scaled))
    two = np.zeros_like(matrix)
    two[0] = np.eye(size, dtype=int).astype(object) * (2 * ONE)
    for _ in range(7):
        inverse = _multiply(inverse, two - _multiply(matrix, inverse, truncation), truncation)
    return inverse


# --- the algebras, each given by the matrices of its basis


@dataclass(frozen=True, eq=False)
class Algebra:
    """A Lie algebra: `basis` (dim, n, n) of the defining representation, `adjoint` (dim, dim, dim) of ad."""

    name: str
    basis: np.ndarray
    adjoint: np.ndarray

    @property
    def dim(self) -> int:
        return len(self.basis)

    def argument(self, u, degree: int, matrices: np.ndarray) -> tuple[np.ndarray, Truncation]:
        """sum_i (u_i + x_i) E_i as a polynomial in x."""
        truncation = Truncation(self.dim, degree)
        matrices = fixed(matrices)
        out = np.zeros((len(truncation.monomials), *matrices.shape[1:]), dtype=object)
        out[0] = np.tensordot(fixed(u), matrices, axes=(0, 0)) >> BITS
        if degree:
            out[1 : 1 + self.dim] = matrices
        return out, truncation

    def exp(self, u, degree: int = 0) -> np.ndarray:
        """Taylor coefficients (monomials, n, n) of exp(hat(u + x))."""
        return _exp(*self.argument(u, degree, self.basis))

    def dexp(self, u, degree: int = 0) -> np.ndarray:
        """Taylor coefficients (monomials, dim, dim) of dexp_{u+x} = sum_j ad^j/(j+1)!."""
        return _dexp(*self.argument(u, degree, self.adjoint))

    def dexpinv(self, u, degree: int = 0) -> np.ndarray:
        """Taylor coefficients (monomials, dim, dim) of the inverse of dexp_{u+x}."""
        return _invert(self.dexp(u, degree), Truncation(self.dim, degree))

    def Ad(self, u, degree: int = 0) -> np.ndarray:
        """Taylor coefficients (monomials, dim, dim) of Ad of exp(u + x), the exponential of ad."""
        return _exp(*self.argument(u, degree, self.adjoint))

    def log_along(self, u, degree: int) -> np.ndarray:
        """Taylor coefficients (monomials, dim, 1) in s of L(s) = log(exp(u) exp(s)).

        Along a ray, d/dr L(r s) = dexpinv_{-L}(s); the part of degree d of L is 1/d of that of dexpinv_{-L}(s).
        """
        full = Truncation(self.dim, degree)
        adjoint = fixed(self.adjoint)
        log = np.zeros((len(full.monomials), self.dim, 1), dtype=object)
        log[0, :, 0] = fixed(u)
        for d in range(1, degree + 1):
            lower = Truncation(self.dim, d - 1)
            known = log[: len(lower.monomials), :, 0]
            minus = -(np.tensordot(known, adjoint, axes=(1, 0)) >> BITS)
            inverse = _invert(_dexp(minus, lower), lower)
            for monomial, coefficient in zip(lower.monomials, inverse, strict=True):
                if len(monomial) == d - 1:
                    for i in range(self.dim):
                        log[full.index[tuple(sorted((*monomial, i)))], :, 0] += coefficient[:, i] // d
        return log


def derivatives(coefficients: np.ndarray, dim: int, degree: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The derivatives of every order up to the degree, (*value shape, dim, ..., dim), each as a double double."""
    monomials, index = _monomials(dim, degree), _index(dim, degree)
    # the derivative along a monomial is its coefficient times the factorials of its exponents
    factors = [prod(factorial(m.count(i)) for i in set(m)) for m in monomials]
    parts = double_double(np.stack([c * f for c, f in zip(coefficients, factors, strict=True)]))
    tensors = []
    for order in range(degree + 1):
        where = [index[tuple(sorted(directions))] for directions in np.ndindex((dim,) * order)]
        shape = (dim,) * order + coefficients.shape[1:]
        moved = [np.moveaxis(part[where].reshape(shape), range(order), range(-order, 0)) for part in parts]
        tensors.append((moved[0], moved[1]))
    return tensors


def _cross(axis: int) -> np.ndarray:
    out = np.zeros((3, 3))
    i, j = (axis + 1) % 3, (axis + 2) % 3
    out[j, i], out[i, j] = 1.0, -1.0
    return out


def _commutators(basis: np.ndarray) -> np.ndarray:
    """ad matrices of a matrix algebra, from [E_i, E_j] = sum_k (ad_i)_kj E_k."""
    dim = len(basis)
    flat = basis.reshape(dim, -1)
    dual = np.linalg.pinv(flat)
    ad = [[(a @ b - b @ a).ravel() @ dual for b in basis] for a in basis]
    return np.round(np.swapaxes(np.array(ad), 1, 2))


def _se(rotations: np.ndarray, dimension: int) -> np.ndarray:
    """Basis of se(n), translations first."""
    basis = np.zeros((dimension + len(rotations), dimension + 1, dimension + 1))
    for i in range(dimension):
        basis[i, i, dimension] = 1.0
    basis[dimension:, :dimension, :dimension] = rotations
    return basis


def _extended_poses(count: int) -> np.ndarray:
    """Basis of se_k(3) as matrices [[hat(w), x_1, ..., x_k], [0, 0]], the vectors first."""
    basis = np.zeros((3 * count + 3, 3 + count, 3 + count))
    for i in range(3 * count):
        basis[i, i % 3, 3 + i // 3] = 1.0
    basis[3 * count :, :3, :3] = _SPACE
    return basis


def _half_quaternions() -> np.ndarray:
    """Left multiplication by i/2, j/2, k/2 on quaternions wxyz: [i, j] = 2k becomes e1 x e2 = e3."""
    out = np.zeros((3, 4, 4))
    for a in range(3):
        out[a, 0, 1 + a], out[a, 1 + a, 0] = -0.5, 0.5
        out[a, 1:, 1:] = 0.5 * _cross(a)
    return out


_PLANE = np.array([[[0.0, -1.0], [1.0, 0.0]]])
_SPACE = np.stack([_cross(i) for i in range(3)])
BASES = {
    "so2": _PLANE,
    "se2": _se(_PLANE, 2),
    "so3": _SPACE,
    "se3": _se(_SPACE, 3),
    "se23": _extended_poses(2),
    "quaternion": _half_quaternions(),
}
ALGEBRAS = {name: Algebra(name, basis, _commutators(basis)) for name, basis in BASES.items()}


# --- the scalar coefficients of x = theta^2, vectorised over x


def _entire(x: np.ndarray, first, ratio, orders: int) -> list[np.ndarray]:
    """f^(m)(x)/m!, m = 0..orders, of f = sum_j c_j x^j with c_0 = 1/first and c_j = -c_{j-1}/ratio(j)."""
    largest = float(max(abs(int(v)) for v in x.flat) / ONE) if x.size else 0.0
    room = int(2 * np.sqrt(largest) / np.log(2)) + 64  # an alternating series cancels up to exp(sqrt(x))
    x, bits = x << room, BITS + room
    values = []
    start = (1 << bits) // first
    for m in range(orders + 1):
        term = np.full(x.shape, start, dtype=object)
        total, j = term.copy(), m
        while np.any((term > 1) | (term < -1)):
            j += 1
            term = -((term * x) >> bits) * j // (ratio(j) * (j - m))
            total = total + term
        values.append(total >> room)
        start = -start // ratio(m + 1)
    return values


def stumpff(x, k: int, orders: int) -> list[np.ndarray]:
    """Derivatives 0..orders in x of sum_j (-x)^j/(2j + k)!, as fixed-point arrays."""
    taylor = _entire(fixed(x), factorial(k), lambda j: (2 * j + k - 1) * (2 * j + k), orders)
    return [value * factorial(m) for m, value in enumerate(taylor)]


def stumpff_large(x: float, k: int, orders: int) -> list:
    """The same for one large x in mpmath, by c_{k+2} = (1/k! - c_k)/x and c_k' = (k c_{k+2} - c_{k+1})/2."""
    import mpmath as mp

    with mp.workdps(120):
        x = mp.mpf(float(x))
        theta = mp.sqrt(x)
        level = [mp.cos(theta), mp.sin(theta) / theta]
        for i in range(k + 2 * orders + 1):
            level.append((1 / mp.factorial(i) - level[i]) / x)
        out = [level[k]]
        for _ in range(orders):
            level = [(i * level[i + 2] - level[i + 1]) / 2 for i in range(len(level) - 2)]
            out.append(level[k])
        return out


def dexpinv_coefficient(x, orders: int) -> list[np.ndarray]:
    """Derivatives 0..orders in x of (1 - (t/2) cot(t/2))/t^2, x = t^2, as fixed-point arrays.

    With y = x/4 it is N(y)/(4 S(y)), N = sum_j (-y)^j (2j+2)/(2j+3)!, S = sum_j (-y)^j/(2j+1)!, both entire.
    """
    y = fixed(x) >> 2
    top = [value // 3 for value in _entire(y, 1, lambda j: 2 * j * (2 * j + 3), orders)]
    bottom = _entire(y, 1, lambda j: 2 * j * (2 * j + 1), orders)
    quotient: list[np.ndarray] = []
    for m in range(orders + 1):
        rest = top[m] - sum((quotient[i] * bottom[m - i] >> BITS for i in range(m)), start=0)
        quotient.append((rest << BITS) // bottom[0])
    return [value * factorial(m) >> (2 * m + 2) for m, value in enumerate(quotient)]


def dexpinv_coefficient_large(x: float, orders: int) -> list:
    """The same for one large x, by the closed form and mpmath's Taylor coefficients."""
    import mpmath as mp

    with mp.workdps(150):

        def closed(z):
            half = mp.sqrt(z) / 2
            return (1 - half * mp.cot(half)) / z

        taylor = mp.taylor(closed, mp.mpf(float(x)), orders)
        return [value * mp.factorial(m) for m, value in enumerate(taylor)]
