"""Whole-body quantities: center of mass, centroidal momentum, and the centroidal momentum matrix."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.spatial import Force, Transform, Vec, pack, to_parent
from lgsim._compile.xla import batch_last, fusion_barrier
from lgsim.dynamics import row_tree, validation
from lgsim.dynamics import rows as row
from lgsim.dynamics.composite import all_momenta, composite
from lgsim.dynamics.inverse_dynamics import body_force
from lgsim.dynamics.kinematics import at_rest, row_accelerations, row_twists
from lgsim.dynamics.row_tree import full
from lgsim.multibody.model import Model


def center_of_mass(model: Model, q: Float[Array, "*batch nq"]) -> Float[Array, "*batch 3"]:
    """The center of mass in world coordinates, ``c = sum_i m_i c_i / sum_i m_i``.

    Args:
        q: Configuration.

    Returns:
        m; not finite for a model without mass.

    Raises:
        ValueError: q has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.
    """
    return validation.call(_center, model, q=(q, "q"))


def center_of_mass_velocity(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]
) -> Float[Array, "*batch 3"]:
    """The velocity of the center of mass in world axes: linear momentum over mass.

    Args:
        q: Configuration.
        v: Velocity, rad/s or m/s; for group joints and a floating base in the child's frame.

    Returns:
        m/s.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.
    """
    return validation.call(_velocity, model, q=(q, "q"), v=(v, "v"))


def center_of_mass_jacobian(model: Model, q: Float[Array, "*batch nq"]) -> Float[Array, "*batch 3 nv"]:
    """The Jacobian of the center of mass: ``c' = J(q) v``.

    Args:
        q: Configuration.

    Returns:
        World axes, m or 1.

    Raises:
        ValueError: q has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.
    """
    return validation.call(_jacobian, model, q=(q, "q"))


def centroidal_momentum(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]
) -> Float[Array, "*batch 6"]:
    """The centroidal momentum (linear, angular) about the center of mass, in world axes: ``A(q) v``.

    The armature is not included.

    Args:
        q: Configuration.
        v: Velocity, rad/s or m/s; for group joints and a floating base in the child's frame.

    Returns:
        kg m/s and kg m^2/s.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Orin, Goswami and Lee, Centroidal dynamics of a humanoid robot, Autonomous Robots 35, 2013.
    """
    return validation.call(_momentum, model, q=(q, "q"), v=(v, "v"))


def centroidal_momentum_rate(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"], a: Float[Array, "*#batch nv"]
) -> Float[Array, "*batch 6"]:
    """The time derivative of ``centroidal_momentum``, ``A a + A' v``.

    It equals the total external wrench about the center of mass, gravity included. In free flight it is
    ``(m g, 0)``.

    Args:
        q: Configuration.
        v: Velocity, rad/s or m/s; for group joints and a floating base in the child's frame.
        a: Time derivative of v, componentwise.

    Returns:
        (force, moment) in world axes, N and N m.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.
    """
    return validation.call(_momentum_rate, model, q=(q, "q"), v=(v, "v"), a=(a, "v"))


def centroidal_momentum_matrix(model: Model, q: Float[Array, "*batch nq"]) -> Float[Array, "*batch 6 nv"]:
    """The centroidal momentum matrix A(q): ``centroidal_momentum = A(q) v``.

    Column j is the momentum ``I_j S_j`` of all that joint j carries, as one rigid body at unit rate of the joint.

    Args:
        q: Configuration.

    Returns:
        Rows (linear, angular) in world axes.

    Raises:
        ValueError: q has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Orin, Goswami and Lee, Centroidal dynamics of a humanoid robot, Autonomous Robots 35, 2013.
    """
    return validation.call(_matrix, model, q=(q, "q"))


def centroidal_momentum_matrix_rate(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]
) -> Float[Array, "*batch 6 nv"]:
    """The time derivative of ``centroidal_momentum_matrix`` at velocity v.

    Args:
        q: Configuration.
        v: Velocity, rad/s or m/s; for group joints and a floating base in the child's frame.

    Returns:
        Componentwise derivative of the matrix.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.
    """
    return validation.call(lambda model, q, v: _matrix_along(model, q, model.rate(q, v)), model, q=(q, "q"), v=(v, "v"))


def mass_moment(model: Model, m: row_tree.Machine) -> tuple[Array, Vec]:
    """(mass, sum of ``m_i c_i``) of the whole model, (*batch), in the frame of its base or else of the world."""

    def inward(children: tuple[Array, Vec], x: tuple[Transform, Array, Vec]) -> tuple[tuple[Array, Vec], None]:
        T, own, h = x
        mass, moment = fusion_barrier((children[0] + own, children[1] + h))
        return fusion_barrier((mass, T.R @ moment + T.p * mass)), None

    zero = jnp.zeros(m.batch, m.a.dtype)
    start = (zero, Vec(zero, zero, zero))
    (mass, h), _ = row_tree.sweep(model.topology).inward(inward, start, (m.poses, m.inertias.m, m.inertias.h), m.batch)
    return (mass, h) if m.base is None else (mass + m.base.inertia.m, h + m.base.inertia.h)


def momentum(model: Model, m: row_tree.Machine, v: Array) -> Force:
    """The momentum of the whole model, in and about the frame of its base or else of the world."""
    base, rows = row_twists(model, m, v)
    of_base = None if m.base is None else m.base.inertia.momentum(base)
    return _summed(model, m, of_base, fusion_barrier(m.inertias.momentum(rows)))


def momentum_rate(model: Model, m: row_tree.Machine, v: Array, a: Array) -> Force:
    """The total wrench on the model, in and about the frame of its base or else of the world."""
    base, rows = row_accelerations(model, m, v, a)
    of_base = None if m.base is None else body_force(m.base.inertia, *base, None)
    return _summed(model, m, of_base, body_force(m.inertias, *rows, None))


def _summed(model: Model, m: row_tree.Machine, base: Force | None, rows: Force) -> Force:
    def inward(children: Force, x: tuple[Transform, Force]) -> tuple[Force, None]:
        T, F = x
        return fusion_barrier(to_parent(T, fusion_barrier(F + children))), None

    nothing = Force(*at_rest(m))
    total, _ = row_tree.sweep(model.topology).inward(inward, nothing, (m.poses, rows), m.batch)
    return total if base is None else fusion_barrier(total + base)


def _centered(model: Model, m: row_tree.Machine, F: Force) -> Force:
    """A wrench about the base or world origin, transformed to the center of mass and world axes."""
    mass, h = mass_moment(model, m)
    n = F.n - (h * (1 / mass)).cross(F.f)
    return Force(F.f, n) if m.base is None else Force(m.base.pose.R @ F.f, m.base.pose.R @ n)


@batch_last
def _place(model: Model, q: Array) -> Vec:
    (q,) = full(model, q)
    m = row_tree.machine(model, q)
    mass, h = mass_moment(model, m)
    c = h * (1 / mass)
    return c if m.base is None else m.base.pose.R @ c + m.base.pose.p


@batch_last
def _about_center(model: Model, q: Array, v: Array) -> Force:
    q, v = full(model, q, v)
    m = row_tree.machine(model, q)
    return _centered(model, m, momentum(model, m, v))


@batch_last
def _rate_about_center(model: Model, q: Array, v: Array, a: Array) -> Force:
    q, v, a = full(model, q, v, a)
    # the moving reference point adds nothing: the linear momentum is parallel to its velocity
    m = row_tree.machine(model, q)
    return _centered(model, m, momentum_rate(model, m, v, a))


@batch_last
def _speed(model: Model, q: Array, v: Array) -> Vec:
    q, v = full(model, q, v)
    m = row_tree.machine(model, q)
    mass, _ = mass_moment(model, m)
    f = momentum(model, m, v).f * (1 / mass)
    return f if m.base is None else m.base.pose.R @ f


def _center(model: Model, q: Array) -> Array:
    return pack(list(_place(model, q)), (3,))


def _velocity(model: Model, q: Array, v: Array) -> Array:
    return pack(list(_speed(model, q, v)), (3,))


def _momentum(model: Model, q: Array, v: Array) -> Array:
    F = _about_center(model, q, v)
    return pack([*F.f, *F.n], (6,))


def _momentum_rate(model: Model, q: Array, v: Array, a: Array) -> Array:
    F = _rate_about_center(model, q, v, a)
    return pack([*F.f, *F.n], (6,))


@batch_last
def _matrix(model: Model, q: Array) -> Array:
    return _momentum_matrix(model, q)


@batch_last
def _jacobian(model: Model, q: Array) -> Array:
    (q,) = full(model, q)
    mass, _ = mass_moment(model, row_tree.machine(model, q))
    return _momentum_matrix(model, q)[:3] * (1 / mass)[None, None]


@batch_last
def _matrix_along(model: Model, q: Array, dq: Array) -> Array:
    q, dq = full(model, q, dq)
    return jax.jvp(lambda q: _momentum_matrix(model, q), (q,), (dq,))[1]


def _momentum_matrix(model: Model, q: Array) -> Array:
    """A (6, nv, *batch) of q (nq, *batch)."""
    (q,) = full(model, q)
    m = row_tree.machine(model, q)
    c = composite(model, m)
    f, n = all_momenta(model, m, c)
    center, R = jax.tree.map(lambda x: x[None], (c.total.h * (1 / c.total.m), c.axes.R))
    n = fusion_barrier(n - center.cross(f))
    rows = [*(R @ f), *(R @ n)]
    return jnp.stack([row.gathered(model, x) for x in rows])
