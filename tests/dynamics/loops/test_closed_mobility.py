"""The mobility of closed machines, ``G = J M^-1 J'``, by one elimination, beside dense linear algebra."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.dynamics import jacobian_products, linearization
from lgsim.dynamics.loops import closure, loop_ends, unit_wrenches
from lgsim.multibody import joints
from tests.dynamics import closed_machines as machines


def by_elimination(model, q):
    """G without M and without J, as the accelerations take it."""
    still = jnp.zeros_like(q[: model.nv])
    frozen = linearization.freeze(model, q, still, None)
    A, _, _ = linearization.accelerations(model.topology, frozen, still, None)
    ends = loop_ends.loop_ends(model, q, still, frozen, A, still)
    left = jacobian_products.eliminate(model, frozen, still)
    return closure.mobility(unit_wrenches.shares(model.topology, ends, frozen.S, left.gain), left.give)


MACHINES = {
    "four_bar": lambda: machines.machine("four_bar"),
    "ring_weld": lambda: machines.machine("ring_weld"),
    "rods": machines.rod_machine,
    "couplings": machines.coupled_machine,
}


@pytest.mark.repeats
@pytest.mark.parametrize("name", MACHINES)
def test_the_mobility_is_that_of_dense_algebra(name):
    model = MACHINES[name]().replace(armature=0.05)
    q = model.neutral() + jnp.asarray(np.random.default_rng(0).uniform(-0.5, 0.5, model.nq))
    found = np.asarray(jax.jit(by_elimination)(model, q))
    J, M = np.asarray(lgsim.loop_jacobian(model, q)), np.asarray(lgsim.mass_matrix(model, q))
    exact = J @ np.linalg.solve(M, J.T)
    assert np.abs(found - exact).max() < 1e-12 * np.abs(exact).max()


def pendulum(rods, end="tip"):
    """Two links in the plane, with a leaf that has no mass, and rods between the tip, or the leaf, and the world."""
    builder = lgsim.ModelBuilder()
    for i, up in enumerate(("world", "link0")):
        builder.add_body(
            f"link{i}", up, joints.Revolute(), axis=(0, 1, 0), placement=machines.pose((0.5 * i, 0, 0)), mass=1.0 + i,
            center=(0.25, 0, 0), inertia=np.diag([0.01, 0.03, 0.03]),
        )  # fmt: skip
    builder.add_frame("tip", "link1", machines.pose((0.5, 0, 0))).add_frame("post", "world", machines.pose((0, 0, 0.6)))
    builder.add_body("leaf", "link1", joints.Fixed(), placement=machines.pose((0.5, 0, 0)), mass=0.0)
    for i in range(rods):
        builder.add_rod(f"rod{i}", "post", end, 0.9)
    return builder.build()


@pytest.mark.slow
def test_rods_side_by_side_are_one_rod():
    """Rows that are the same twice leave accelerations alone and share the force; derivatives stay finite."""
    q, v, tau = jnp.array([0.4, 0.9]), jnp.array([0.0, 0.0]), jnp.array([0.3, -0.2])
    one, two = pendulum(1), pendulum(2)
    single, double = (lgsim.forward_dynamics(m, q, v, tau) for m in (one, two))
    assert np.abs(single - double).max() < 1e-12 * np.abs(single).max()
    f, shared = (lgsim.loop_forces(m, q, v, tau) for m in (one, two))
    assert np.abs(np.asarray(shared) - float(f[0]) / 2).max() < 1e-12 * abs(float(f[0]))
    found = [lgsim.forward_dynamics_derivatives(m, q, v, tau).dtau for m in (one, two)]
    assert np.abs(found[0] - found[1]).max() < 1e-12


@pytest.mark.slow
def test_a_tie_to_a_body_without_mass_is_that_to_what_carries_it():
    q, v, tau = jnp.array([0.4, 0.9]), jnp.zeros(2), jnp.array([0.3, -0.2])
    a, same = (lgsim.forward_dynamics(pendulum(1, end), q, v, tau) for end in ("tip", "leaf"))
    assert np.abs(same - a).max() < 1e-12 * np.abs(a).max()


def test_frames_are_mapped():
    """A batch of poses of an end, by ``vmap``, is what each is."""
    model = pendulum(1)
    q, v, tau = jnp.array([0.4, 0.9]), jnp.array([0.2, -0.1]), jnp.array([0.3, -0.2])
    at = model.topology.frame_names.index("post")
    shifts = jnp.array([0.0, 0.1, -0.2])

    def a(x):
        return lgsim.forward_dynamics(model.replace(frames=model.frames.at[at, 0, 3].add(x)), q, v, tau)

    many = jax.vmap(a)(shifts)
    assert np.abs(many - jnp.stack([a(x) for x in shifts])).max() < 1e-13 * np.abs(many).max()
    assert np.abs(many[0] - many[1]).max() > 1e-3
