"""The symplectic Euler step of machines against the equations of motion, and its derivatives against JAX's."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim._compile.linalg.dense import to_blocks, transpose
from lgsim._compile.xla import batch_last
from lgsim.optimize import ControlEffort, Problem, SymplecticEulerDynamics, solve, to_trajectory
from lgsim.optimize.dynamics import Dynamics


def machine_with(further):
    """A free body that carries a hinge, or a ball and a plate in a plane too, with springs, friction and stops."""
    builder = lgsim.ModelBuilder()
    inertia = np.diag([0.02, 0.03, 0.04])
    joints = lgsim.joints
    builder.add_body("base", "world", joints.Free(), mass=1.3, inertia=inertia, center=[0.1, 0, 0.05])
    builder.add_body("hinge", "base", joints.Revolute(), axis=[0, 1, 0], mass=0.5, inertia=inertia, center=[0, 0, 0.2])
    if further:
        builder.add_body("ball", "base", joints.Spherical(), mass=0.7, inertia=inertia, center=[0, 0.1, 0.2])
        builder.add_body("sheet", "hinge", joints.Planar(), mass=0.4, inertia=inertia, center=[0.1, 0.1, 0])
    model = builder.build()
    drives = {"damping": 0.3, "friction": 0.2, "stiffness": 1.5, "limit_stiffness": 40.0, "limit_damping": 3.0}
    model = model.replace(**{name: jnp.linspace(0.5, 1.5, model.nv) * value for name, value in drives.items()})
    return model.replace(lower=model.lower.at[6:].set(-0.3), upper=model.upper.at[6:].set(0.4))


FURTHER = [pytest.param(False, marks=pytest.mark.exhaustive, id="hinge"), pytest.param(True, id="ball and plate")]


@pytest.fixture(scope="module", params=FURTHER)
def machine(request):
    model = machine_with(request.param)
    rng = np.random.default_rng(3)
    S = jnp.asarray(rng.normal(size=(model.nv, 4)))
    dynamics = SymplecticEulerDynamics(model, 0.02, S)
    y, y_next = (dynamics.action.move(jnp.asarray(rng.normal(size=2 * model.nv)), dynamics.state()) for _ in range(2))
    return dynamics, y, y_next, jnp.asarray(rng.normal(size=4))


@pytest.fixture(scope="module")
def derivatives(machine):
    """A, B and c of the step by JAX, about a next node that is far from the step."""
    dynamics, y, y_next, u = machine
    return jax.jit(lambda y, u, y_next: Dynamics.linearized(dynamics, 0.0, y, u, y_next, None))(y, u, y_next)


@pytest.mark.slow
def test_the_step_is_semi_implicit(machine):
    """The change of v solves the equations of motion at (q, v), and q moves by the new v."""
    dynamics, y, _, u = machine
    model, dt = dynamics.model, float(dynamics.dt)

    @jax.jit
    def sides(y, u):
        """Forces by the inverse dynamics and as given, the next configuration as found and by its speed."""
        after = dynamics.step(0.0, y, u, None)
        q, v, v_next = y[: model.nq], y[model.nq :], after[model.nq :]
        tau = lgsim.inverse_dynamics(model, q, v, (v_next - v) / dt)
        given = dynamics.forces(u) + lgsim.passive_forces(model, q, v)
        return tau, given, after[: model.nq], model.retract(q, dt * v_next)

    tau, given, q_next, moved = sides(y, u)
    np.testing.assert_allclose(tau, given, rtol=0, atol=1e-10)
    np.testing.assert_allclose(q_next, moved, rtol=0, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("alone", [False, pytest.param(True, marks=pytest.mark.exhaustive)], ids=["batch", "alone"])
def test_the_factored_transition_multiplies_like_its_matrices(machine, derivatives, alone):
    """Congruence and transpose against products of NumPy with the matrices that JAX differentiates."""
    dynamics, y, y_next, u = machine
    A, B, _ = derivatives
    G, n = np.concatenate([A, B], axis=1), len(A)
    rng = np.random.default_rng(5)
    V, H = rng.normal(size=(n, n)), rng.normal(size=(len(G.T),) * 2)
    V, H, v = V + V.T, H + H.T, rng.normal(size=(n, 3))
    F = G.T @ V @ G + H
    wanted = (F[:n, :n], F[n:, :n], F[n:, n:]), ((G.T @ v)[:n], (G.T @ v)[n:])

    @batch_last
    def products(step, V, H, v):
        xx, ux, uu = step.congruence(to_blocks(V, dynamics.block_sizes), H)
        rows = [[xx[max(i, j)][min(i, j)] for j in range(len(xx))] for i in range(len(xx))]
        rows = [[transpose(X) if j > i else X for j, X in enumerate(row)] for i, row in enumerate(rows)]
        whole = jnp.concatenate([jnp.concatenate(row, axis=1) for row in rows])
        return (whole, ux, uu), step.pullback(v)

    def found(y, V, H, v):
        step = dynamics.transition(0.0, y, u, y_next, None)[0]
        return products(step, jnp.asarray(V), jnp.asarray(H), jnp.asarray(v))

    if alone:
        one = jax.jit(found)(y, V, H, v)
        chex.assert_trees_all_close(one, wanted, rtol=0, atol=1e-11 * np.abs(F).max())
        return
    sizes = np.array([1.0, 2.0, -1.0])[:, None, None]
    batch = jax.jit(jax.vmap(found, (None, 0, 0, 0)))(y, sizes * V, sizes * H, sizes * v)
    right = jax.tree.map(lambda w: sizes * w, wanted)
    chex.assert_trees_all_close(batch, right, rtol=0, atol=2e-11 * np.abs(F).max())


@pytest.mark.slow
def test_derivatives_are_those_of_the_step(machine, derivatives):
    """About a next node that is far from the step, so that dexpinv is not 1; a joint of each kind of group."""
    dynamics, y, y_next, u = machine
    found = jax.jit(lambda y, u, y_next: dynamics.linearized(0.0, y, u, y_next, None))(y, u, y_next)
    for a, b in zip(found, derivatives, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * float(jnp.max(jnp.abs(b))))


def test_a_solution_is_a_motion():
    """A rod is swung and held by its motor; the result says what made it."""
    model = lgsim.ModelBuilder().add_body(
        "rod", "world", lgsim.joints.Revolute(), axis=[0, 1, 0], mass=1.0, center=[0, 0, -0.5], inertia=np.eye(3) / 12
    ).build()  # fmt: skip
    dynamics = SymplecticEulerDynamics(model, 0.02)
    goal = lgsim.optimize.StateDistance(dynamics.action, jnp.array([1.0, 0.0]), 1e3)
    problem = Problem(dynamics, dynamics.state(), horizon=40, running=0.02 * ControlEffort(weight=0.1), terminal=goal)
    motion = to_trajectory(problem, solve(problem, jnp.zeros((40, 1))))
    assert motion.method == "symplectic Euler" and not motion.result
    np.testing.assert_allclose(motion.q[-1], [1.0], atol=1e-2)


def test_other_models_are_refused():
    model = machine_with(True)
    with pytest.raises(TypeError, match="model"):
        SymplecticEulerDynamics("arm", 0.02)
    with pytest.raises(ValueError, match="selection"):
        SymplecticEulerDynamics(model, 0.02, np.eye(3))
