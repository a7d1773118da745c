"""Ploen and Park's matrices: the mass matrix as their products, its square factors, and other frames of the bodies."""

import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.dynamics.factorization import change_frames, global_matrices, square_factors
from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.lie import se3
from lgsim.multibody import joints
from lgsim.multibody.builder import ModelBuilder
from tests.dynamics.machines import close, lanes, mass_by_columns, mimicking
from tests.multibody import trees


def product(m):
    return m.S.T @ m.G.T @ m.J @ m.G @ m.S


@pytest.mark.slow
@pytest.mark.parametrize("case", lanes(["floating chain"], ["screws", "two free bodies", "floating"]))
def test_products_are_the_mass_matrix_and_its_inverse(case):
    model = trees.build(*trees.CASES[case], armature=True)
    q, _, _ = trees.state(model)
    mass = np.asarray(mass_by_columns(model, q))
    m = global_matrices(model, q)
    close(product(m) + np.diag(model.armature), mass)
    close(m.G @ (np.eye(len(m.G)) - m.Gamma), np.eye(len(m.G)))
    still = jnp.zeros(model.nv)
    gravity = inverse_dynamics(model, q, still, still)
    fall = np.concatenate([-np.asarray(model.gravity), np.zeros(3)])
    close(m.S.T @ m.G.T @ m.J @ m.G @ m.P0 @ fall, gravity)
    factor, omega, inverse_factor = square_factors(model, q)
    close(factor @ np.diag(omega) @ factor.T, mass)
    np.testing.assert_array_equal(np.tril(factor), np.eye(model.nv))
    inverse = np.linalg.inv(mass)
    bound = max(1e-12, 1e-15 * np.linalg.cond(mass))
    close(inverse_factor.T @ np.diag(1 / omega) @ inverse_factor, inverse, bound)
    close(inverse_factor @ factor, np.eye(model.nv), 1e-11)


def test_chain_has_the_blocks_of_the_paper():
    """``G_ij = Ad_{f_ji}^-1`` for i >= j, G_ij = G_i,i-1 ... G_j+1,j, and Gamma is nilpotent."""
    model = trees.build(["revolute", "prismatic", "helical"], [-1, 0, 1])
    q, _, _ = trees.state(model)
    G, Gamma, *_ = global_matrices(model, q)
    block = lambda A, i, j: A[6 * i : 6 * i + 6, 6 * j : 6 * j + 6]  # noqa: E731
    close(block(G, 2, 0), block(G, 2, 1) @ block(G, 1, 0))
    close(block(G, 1, 0), block(Gamma, 1, 0))
    assert not np.any(np.linalg.matrix_power(Gamma, 3))
    assert not np.any(np.triu(G, 1)[:6, 6:])


def described(turns, slides):
    """An arm whose bodies are described in frames that are turned about any axis and slid along the joints' axes."""
    rng = np.random.default_rng(5)
    builder = ModelBuilder()
    before = np.eye(4)
    kinds = [joints.Revolute(), joints.Prismatic(), joints.Helical()]
    for i, kind in enumerate(kinds):
        placement, axis, body = trees.pose(rng), trees.unit(rng), trees.body(rng)
        Q = np.eye(4)  # pose of the old frame in the new one
        Q[:3, :3] = turns[i]
        Q[:3, 3] = turns[i] @ axis * slides[i]
        back = np.linalg.inv(Q)
        builder.add_body(
            f"body{i}",
            f"body{i - 1}" if i else "world",
            kind,
            placement=before @ placement @ back,
            axis=Q[:3, :3] @ axis,
            pitch=0.2 if i == 2 else 0.0,
            mass=body["mass"],
            center=Q[:3, :3] @ body["center"] + Q[:3, 3],
            inertia=Q[:3, :3] @ body["inertia"] @ Q[:3, :3].T,
        )
        before = Q
    return builder.build()


def test_another_description_of_the_bodies_changes_the_matrices_by_Q_and_no_result():
    rng = np.random.default_rng(6)
    model = described([np.eye(3)] * 3, np.zeros(3))
    other = described([trees.rotation(rng) for _ in range(3)], [0.3, -0.5, 0.7])
    q = jnp.asarray(rng.normal(size=3))
    old, new = global_matrices(model, q), global_matrices(other, q)
    assert np.abs(new.G - old.G).max() > 0.1
    close(product(new), product(old))
    for a, b in zip(square_factors(model, q), square_factors(other, q), strict=True):
        close(b, a)
    # the rows' frames slide along their screws and turn about them: A = Q S keeps S
    close(new.S, old.S)


def test_any_change_of_frames_cancels():
    model = trees.build(["revolute", "prismatic", "spherical"], [-1, 0, 0])
    q, _, _ = trees.state(model)
    old = global_matrices(model, q)
    rng = np.random.default_rng(7)
    Q = jnp.asarray([trees.pose(rng) for _ in range(model.topology.rows)])
    new = change_frames(old, Q)
    close(product(new), product(old))
    close(new.S.T @ new.G.T @ new.J @ new.G @ new.P0, old.S.T @ old.G.T @ old.J @ old.G @ old.P0)
    close(new.G @ (np.eye(len(new.G)) - new.Gamma), np.eye(len(new.G)))
    close(new.S[6:12, 1], se3.Ad_action(Q[1], old.S[6:12, 1]))
    assert np.abs(new.G - old.G).max() > 0.1
    with pytest.raises(ValueError, match="Q: expected 5 poses, one per row, got 4"):
        change_frames(old, Q[:4])


def test_batch_is_one_by_one_and_mimic_is_refused():
    model = trees.build(["revolute", "prismatic", "helical"], [-1, 0, 1])
    q, _, _ = trees.state(model, batch=(3,))
    factors, matrices = square_factors(model, q), global_matrices(model, q)
    for found, one in zip(
        (*factors, *matrices), (*square_factors(model, q[1]), *global_matrices(model, q[1])), strict=True
    ):
        close(found[1], one, 1e-13)
    with pytest.raises(ValueError, match="got 'joint2', which mimics another one"):
        square_factors(mimicking(), jnp.zeros(2))
