"""Discrete Legendre transforms beside given numbers, a Lagrangian of poses, and Moser's and Veselov's equation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.dynamics import ROTATION_MAPS
from tests.dynamics import discrete_reference as reference
from tests.multibody import trees


def discrete_vector(name, R):
    """phi of a rotation matrix, through its quaternion."""
    s = jnp.sqrt(1 + jnp.trace(R)) / 2
    x = jnp.stack([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * s)
    n = jnp.sqrt(x @ x)
    return {"quaternion": 2 * x, "cayley": 2 * x / s, "exp": 2 * jnp.arctan2(n, s) * x / n}[name]


def lagrangian(model, name, q0, q1, h):
    """L_d of the poses of the bodies."""
    poses = [lgsim.forward_kinematics(model, q)[: model.topology.bodies] for q in (q0, q1)]
    total = 0.5 / h * jnp.sum(model.armature * model.difference(q0, q1) ** 2)
    for body, numbers in enumerate(model.inertias):
        m, first = numbers[0], numbers[1:4]
        c = first / m
        xx, xy, yy, xz, yz, zz = numbers[4:]
        I = jnp.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - m * (c @ c * jnp.eye(3) - jnp.outer(c, c))  # noqa: E741
        (R0, p0), (R1, p1) = ((T[body, :3, :3], T[body, :3, 3]) for T in poses)
        ends = R0 @ c + p0, R1 @ c + p1
        phi = discrete_vector(name, R0.T @ R1)
        way = ends[1] - ends[0]
        total += 0.5 / h * (m * way @ way + phi @ I @ phi) + 0.5 * h * m * model.gravity @ (ends[0] + ends[1])
    return total


@pytest.mark.slow
@pytest.mark.parametrize("name", ROTATION_MAPS)
def test_slopes_of_the_lagrangian(name):
    """Of revolute, spherical and screw joints on a free base."""
    kinds = ("free", "revolute", "spherical", "helical")
    model = trees.build(kinds, (-1, 0, 1, 0), armature=False)
    armature = jnp.where(jnp.arange(model.nv) > 5, 0.1, 0.0)
    model = model.replace(armature=armature)
    q0, v, _ = trees.state(model)
    h = 0.05
    q1 = model.retract(q0, h * v)

    def along(e0, e1):
        return lagrangian(model, name, model.retract(q0, e0), model.retract(q1, e1), h)

    zero = jnp.zeros(model.nv)
    D1, D2 = jax.jit(jax.grad(along, (0, 1)))(zero, zero)
    p0, p1 = lgsim.discrete_momenta(model, q0, q1, h, name)
    np.testing.assert_allclose(p0, -D1, rtol=0, atol=2e-12 * np.abs(D1).max())
    np.testing.assert_allclose(p1, D2, rtol=0, atol=2e-12 * np.abs(D2).max())


@pytest.mark.slow
def test_given_steps():
    """The first step of the reference: its momenta from both its ends."""
    name = "floating_tree"
    model = reference.machine(name)
    for run in reference.runs(name):
        q0, v0, _ = reference.start(run)
        first = run["states"]["1"]
        p0, p1 = lgsim.discrete_momenta(model, q0, jnp.array(first["q"]), run["h"], run["map"])
        expected = lgsim.generalized_momentum(model, q0, v0)
        # the displacement comes from poses, whose rounding the step's length divides
        np.testing.assert_allclose(p0, expected, rtol=0, atol=2e-13)
        np.testing.assert_allclose(p1, first["p"], rtol=0, atol=2e-13)


def test_free_body_is_that_of_moser_and_veselov():
    """``h hat(Pi) = F J - J F^T`` with ``J = tr(I)/2 - I``; the momentum at the end is that at the start turned."""
    model = trees.build(("free",), (-1,), gravity=np.zeros(3))
    I = model.inertias[0]  # noqa: E741
    m, c = I[0], I[1:4] / I[0]
    about = np.array([[I[4], I[5], I[7]], [I[5], I[6], I[8]], [I[7], I[8], I[9]]])
    about = about - m * (c @ c * np.eye(3) - np.outer(c, c))
    J = np.trace(about) / 2 * np.eye(3) - about
    q0, v, _ = trees.state(model)
    h = 0.1
    q1 = model.retract(q0, 3 * h * v)
    p0, p1 = lgsim.discrete_momenta(model, q0, q1, h)
    T0, T1 = (lgsim.forward_kinematics(model, q)[0] for q in (q0, q1))
    F = T0[:3, :3].T @ T1[:3, :3]
    ends = [T[:3, :3] @ c + T[:3, 3] for T in (T0, T1)]
    for p, T, side in ((p0, T0, 0), (p1, T1, 1)):
        about_center = p[3:] - np.cross(c, p[:3])
        moser = (F @ J - J @ F.T) / h if side == 0 else (J @ F - F.T @ J) / h
        np.testing.assert_allclose(about_center, [moser[2, 1], moser[0, 2], moser[1, 0]], rtol=0, atol=1e-13)
        np.testing.assert_allclose(p[:3], T[:3, :3].T @ (m * (ends[1] - ends[0]) / h), rtol=0, atol=1e-12)


@pytest.mark.slow
def test_momentum_and_velocity_are_inverse():
    model = trees.build(("free", "revolute", "spherical"), (-1, 0, 1), armature=True)
    q, v, _ = trees.state(model, batch=(3,))
    p = lgsim.generalized_momentum(model, q, v)
    np.testing.assert_allclose(p, np.einsum("bij,bj->bi", lgsim.mass_matrix(model, q), v), rtol=0, atol=1e-12)
    np.testing.assert_allclose(lgsim.velocity_of_momentum(model, q, p), v, rtol=0, atol=1e-11)


def test_bad_arguments():
    model = trees.build(("revolute", "revolute"), (-1, 0))
    q, _, _ = trees.state(model)
    for dt, said in ((0.0, "nonzero"), (np.nan, "finite"), (np.ones(2), "a single number")):
        with pytest.raises(ValueError, match=said):
            lgsim.discrete_momenta(model, q, q, dt)
    with pytest.raises(ValueError, match=r"map: expected one of 'quaternion', 'cayley', 'exp', got 'log'"):
        lgsim.discrete_momenta(model, q, q, 0.1, "log")
