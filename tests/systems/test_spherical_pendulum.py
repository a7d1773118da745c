"""Chains of spherical pendulums against extended-precision states, dense equations, and each other."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim._compile.linalg import tridiagonal
from lgsim.systems import (
    double_spherical_pendulum,
    pendulum_accelerations,
    spherical_pendulum,
    spherical_pendulum_hamiltonian,
)
from lgsim.systems.spherical_pendulum import generic_start
from tests.systems.checks import check_gradients, floats, solve

DATA = json.loads((Path(__file__).parents[1] / "data" / "spherical_pendulum.json").read_text())["cases"]
BOTH = pytest.mark.parametrize("make", [spherical_pendulum, spherical_pendulum_hamiltonian])


def built(make, case):
    return make(
        masses=case["masses"],
        lengths=case["lengths"],
        gravity=case["gravity"],
        directions=case["directions_0"],
        angular_velocities=case["angular_velocities_0"],
    )


def generic(make, rods, dtype=None, **arguments):
    """A chain of unlike masses and lengths."""
    directions, angular_velocities = generic_start(rods)
    numbers = {"masses": 1.0 + 0.3 * np.cos(np.arange(rods)), "lengths": 0.5 + 0.2 * np.sin(1.0 + np.arange(rods))}
    return make(dtype, **numbers, directions=directions, **{"angular_velocities": angular_velocities, **arguments})


def hat(u):
    return np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])


def dense(chain, q):
    """The paper's matrix R(q), (3 N, 3 N), and M_ij without the identity, (N, N)."""
    masses, lengths = np.asarray(chain.masses), np.asarray(chain.lengths)
    n = len(masses)
    M = np.array([[masses[max(i, j) :].sum() * lengths[i] * lengths[j] for j in range(n)] for i in range(n)])
    blocks = [[M[i, j] * (np.eye(3) if i == j else hat(q[i]).T @ hat(q[j])) for j in range(n)] for i in range(n)]
    return np.block(blocks), M


@pytest.mark.repeats("planar1-spherical_pendulum", "generic2-spherical_pendulum")
@BOTH
@pytest.mark.parametrize("name", DATA)
def test_both_forms_reach_the_reference(make, name):
    case = DATA[name]
    problem = built(make, case)
    steps = 1500 if name == "planar3" else 600
    state = solve(problem, case["t"], steps, drift=1e-9)
    expected, omega = floats(case["directions"]), floats(case["angular_velocities"])
    np.testing.assert_allclose(state[:, :3], expected, rtol=0, atol=1e-9)
    if make is spherical_pendulum:
        np.testing.assert_allclose(state[:, 3:], omega, rtol=0, atol=1e-9 * np.abs(omega).max())
    else:
        momentum = dense(problem.args, expected)[0] @ omega.ravel()
        np.testing.assert_allclose(state[:, 3:].ravel(), momentum, rtol=0, atol=1e-9 * np.abs(momentum).max())


@BOTH
@pytest.mark.parametrize("name", DATA)
def test_invariants_at_the_start(make, name):
    case = DATA[name]
    problem = built(make, case)
    for invariant in ("energy", "vertical_momentum"):
        value = problem.invariants[invariant](problem.initial, problem.args)
        np.testing.assert_allclose(value, case[invariant], rtol=2e-15, atol=1e-14)


@pytest.mark.parametrize("rods", [1, 2, 7])
def test_accelerations_solve_the_papers_dense_equations(rods):
    """R(q) omega' = sum_j M_ij |omega_j|^2 q_i x q_j - sum_{j >= i} m_j g L_i q_i x e3."""
    problem = generic(spherical_pendulum, rods)
    y, chain = np.asarray(problem.initial), problem.args
    q, omega = y[:, :3], y[:, 3:]
    R, M = dense(chain, q)
    hanging = np.cumsum(np.asarray(chain.masses)[::-1])[::-1] * np.asarray(chain.lengths) * float(chain.gravity)
    right = -hanging[:, None] * np.cross(q, [0.0, 0.0, 1.0])
    for i in range(rods):
        for j in range(rods):
            right[i] += M[i, j] * (omega[j] @ omega[j]) * np.cross(q[i], q[j])
    omega_dot = np.linalg.solve(R, right.ravel()).reshape(rods, 3)
    rates = np.asarray(problem.field(0.0, problem.initial, chain)).reshape(rods, 6)
    np.testing.assert_array_equal(rates[:, 3:], omega)
    for found in (np.cross(rates[:, :3], q), pendulum_accelerations(problem.initial, chain)):
        np.testing.assert_allclose(found, omega_dot, rtol=0, atol=1e-13 * np.abs(omega_dot).max())


@pytest.mark.repeats
@pytest.mark.parametrize("rods", [1, 2, 7])
def test_the_hamiltonian_field_belongs_to_the_dense_hamiltonian(rods):
    """H = 1/2 pi . R(q)^-1 pi + U with the dense matrix, differentiated: q' = H_pi x q, pi' = H_q x q + H_pi x pi."""
    problem = generic(spherical_pendulum_hamiltonian, rods)
    y, chain = problem.initial, problem.args
    sums = np.cumsum(np.asarray(chain.masses)[::-1])[::-1]
    M = jnp.asarray(dense(chain, np.asarray(y[:, :3]))[1])

    def hamiltonian(q, momentum):
        hats = jax.vmap(lgsim.so3.hat)(q)
        R = jnp.einsum("ij,iba,jbc->iajc", M, hats, hats)
        R = R + jnp.einsum("ij,ia,jb->iajb", M * jnp.eye(rods), q, q)  # hat(q)^T hat(q) is 1 - q q^T
        velocity = jnp.linalg.solve(R.reshape(3 * rods, 3 * rods), momentum.ravel())
        heights = jnp.asarray(sums) * chain.lengths * q[:, 2]
        return 0.5 * momentum.ravel() @ velocity + chain.gravity * jnp.sum(heights)

    q, momentum = y[:, :3], y[:, 3:]
    np.testing.assert_allclose(hamiltonian(q, momentum), problem.invariants["energy"](y, chain), rtol=1e-14)
    by_q, by_momentum = jax.jit(jax.grad(hamiltonian, (0, 1)))(q, momentum)
    expected = np.cross(by_momentum, q), np.cross(by_q, q) + np.cross(by_momentum, momentum)
    rates = np.asarray(problem.field(0.0, y, chain)).reshape(rods, 6)
    found = np.cross(rates[:, 3:], q), np.cross(rates[:, :3], q) + np.cross(rates[:, 3:], momentum)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.slow
def test_both_forms_of_a_long_chain_agree():
    ends = [
        solve(generic(make, 20), 0.5, 200, drift=1e-9) for make in (spherical_pendulum, spherical_pendulum_hamiltonian)
    ]
    assert np.abs(ends[0][:, :3] - generic_start(20)[0]).max() > 0.2
    np.testing.assert_allclose(ends[0][:, :3], ends[1][:, :3], rtol=0, atol=1e-9)


def test_the_program_does_not_grow_with_the_chain():
    def text(rods):
        problem = generic(spherical_pendulum, rods)
        return len(jax.jit(problem.field).lower(0.0, problem.initial, problem.args).as_text())

    assert text(200) < 1.1 * text(4)


def test_tridiagonal_systems():
    rng = np.random.default_rng(3)
    for n in (1, 2, 9):
        low = np.concatenate([[5.0], rng.uniform(-1, 1, n - 1)])  # the first entry is not read
        diagonal, b = 2.0 + rng.random(n), rng.normal(size=n)
        A = np.diag(diagonal) + np.diag(low[1:], 1) + np.diag(low[1:], -1)
        x = tridiagonal.solve(jnp.asarray(diagonal), jnp.asarray(low), jnp.asarray(b))
        np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=0, atol=1e-14)


@pytest.mark.repeats
@BOTH
def test_gradients(make):
    rest = generic(make, 3, angular_velocities=np.zeros((3, 3)))
    hanging = make(masses=[1.0] * 3, directions=[[0.0, 0.0, -1.0]] * 3, angular_velocities=np.zeros((3, 3)))
    check_gradients(generic(make, 3), rest, hanging)


def test_named_problems():
    assert double_spherical_pendulum().initial.shape == (2, 6)
    planar = spherical_pendulum()
    np.testing.assert_allclose(planar.initial, np.tile([np.sqrt(0.5), 0, np.sqrt(0.5), 0, 1, 0], (2, 1)), rtol=1e-16)
    other = spherical_pendulum(masses=(2.0, 1.0), lengths=(1.0, 0.5))
    assert (planar.field, planar.action) == (other.field, other.action)  # so they share their programs


@pytest.mark.usefixtures("without_import_hook")
def test_bad_starts_are_named():
    with pytest.raises(ValueError, match=r"\(directions, angular_velocities\): .*\|q\| = 1 fails by 0\.1"):
        spherical_pendulum(directions=[[1.1, 0.0, 0.0], [0.0, 1.0, 0.0]], angular_velocities=np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"q \. omega / \(1 \+ \|omega\|\) = 0 fails by 0\.5.*project"):
        spherical_pendulum(directions=[[1.0, 0.0, 0.0]] * 2, angular_velocities=[[1.0, 0.0, 0.0]] * 2)
    with pytest.raises(ValueError, match="lengths: expected numbers above zero"):
        spherical_pendulum(lengths=(1.0, -1.0))
    with pytest.raises(ValueError, match=r"directions: expected shape \(3, 3\), got \(2, 3\)"):
        spherical_pendulum(masses=(1.0, 1.0, 1.0), directions=np.zeros((2, 3)))
    for masses in ([], 1.0, [[1.0, 1.0]]):
        with pytest.raises(ValueError, match="masses: expected a list of one number or more, got shape"):
            spherical_pendulum_hamiltonian(masses=masses)


@pytest.mark.slow
@pytest.mark.float32
@BOTH
def test_problems_follow_the_dtype(make):
    problem = generic(make, 4, jnp.float32)
    solution = lgsim.integrate(
        lgsim.CF4, problem.action, problem.field, problem.initial, dt=0.01, steps=10, args=problem.args
    )
    leaves = jax.tree.leaves((problem.initial, problem.args, solution.ys))
    assert {leaf.dtype for leaf in leaves} == {jnp.dtype("float32")}
    energies = jax.vmap(problem.invariants["energy"], (0, None))(solution.ys, problem.args)
    assert np.abs(energies - energies[0]).max() < 1e-4
