"""Bias, gravity and passive forces: against Pinocchio, and as parts of one equation of motion."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from lgsim.dynamics.energy import potential_energy, spring_energy
from lgsim.dynamics.forces import bias_forces, gravity_forces
from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.mass_matrix import mass_matrix
from lgsim.dynamics.passive_forces import passive_forces
from lgsim.multibody.tangent import tangent_grad
from tests.dynamics.machines import close, lanes, mimicking
from tests.multibody import trees
from tests.multibody.twin import Twin

ALWAYS = ["floating chain"]
REPEATED = ["two roots", "revolute chain", "screws", "groups", "floating", "one free body"]


@pytest.mark.parametrize("case", lanes(ALWAYS, REPEATED))
def test_equal_pinocchio(case):
    model = trees.build(*trees.CASES[case], armature=True)
    twin = Twin(model)
    q, v, _ = trees.state(model)
    close(bias_forces(model, q, v), twin.back(pin.nonLinearEffects(twin.pin, twin.data, twin.q(q), twin.v(v))))
    close(gravity_forces(model, q), twin.back(pin.computeGeneralizedGravity(twin.pin, twin.data, twin.q(q))))


MACHINES = {
    "mimic": mimicking(),
    "floating chain": trees.build(*trees.CASES["floating chain"], armature=True, gravity=(1.0, -2.0, 3.0)),
    "planar": trees.build(["planar", "prismatic"], [-1, 0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", lanes(["mimic", "floating chain"], ["planar"]))
def test_equation_of_motion_and_potential(name):
    """``tau(a) - M a - h = 0`` and ``g = dV/dq``."""
    model = MACHINES[name]
    q, v, a = trees.state(model)
    tau = inverse_dynamics(model, q, v, a)
    close(mass_matrix(model, q) @ a + bias_forces(model, q, v), tau)
    close(bias_forces(model, q, jnp.zeros_like(v)), gravity_forces(model, q))
    along = jax.jit(lambda q, v: jax.jvp(lambda q: potential_energy(model, q), (q,), (model.rate(q, v),)))
    _, power = along(q, v)
    close(gravity_forces(model, q) @ v, power)


@pytest.mark.slow
def test_gravity_is_the_gradient_of_the_potential():
    model = trees.build(["spherical", "helical"], [-1, 0])
    q, *_ = trees.state(model)
    gradient = jax.jit(lambda q: tangent_grad(lambda q: potential_energy(model, q), model, q))(q)
    close(gravity_forces(model, q), gradient)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [["planar", "helical", "spherical"], ["free", "prismatic"]])
def test_passive_forces(kinds):
    """Springs pull down their energy, dampers against the velocity; spherical and free joints have none."""
    rng = np.random.default_rng(6)
    model = trees.build(kinds, [-1, 0, 1][: len(kinds)])
    stiffness, rest, damping = (jnp.asarray(rng.uniform(1, 2, model.nv)) for _ in range(3))
    model = model.replace(stiffness=stiffness, rest=rest, damping=damping)
    q, v, _ = trees.state(model)
    still = jnp.zeros_like(v)
    close(passive_forces(model, q, v) - passive_forces(model, q, still), -damping * v)
    close(passive_forces(model, q, still), -tangent_grad(lambda q: spring_energy(model, q), model, q))
    rotations = [i for j, k in zip(model.joint_names, kinds, strict=True) if k in ("spherical", "free")
                 for i in range(*model.v_slices[j].indices(model.nv))]  # fmt: skip
    np.testing.assert_array_equal(passive_forces(model, q, still)[np.array(rotations)], 0)


@pytest.mark.slow
def test_dry_friction_and_stops():
    """Friction against the motion, of its full size at speed; a stop pushes back as its spring's energy says."""
    model = trees.build(["planar", "spherical", "revolute"], [-1, 0, 1])
    q, v, _ = trees.state(model)
    still, friction = jnp.zeros_like(v), jnp.arange(1.0, 8.0)
    rubbing = model.replace(friction=friction)
    close(passive_forces(rubbing, q, 50 * jnp.sign(v)), -friction * jnp.sign(v))
    slope = jax.jit(jax.jacfwd(lambda v: passive_forces(rubbing, q, v)))(still)
    close(slope, -jnp.diag(friction / 0.1))
    upper = model.upper.at[0].set(q[0] - 0.3).at[6].set(q[7] + 1.0)
    lower = model.lower.at[1].set(q[1] + 0.2)
    stopped = model.replace(upper=upper, lower=lower, limit_stiffness=jnp.full(7, 40.0), limit_damping=jnp.full(7, 5.0))
    close(passive_forces(stopped, q, still), -tangent_grad(lambda q: spring_energy(stopped, q), stopped, q))
    assert jnp.abs(passive_forces(stopped, q, still)[:2]).min() > 1 and passive_forces(stopped, q, v)[6] == 0
    lost = (passive_forces(stopped, q, v) - passive_forces(stopped, q, still)) @ v
    rate = stopped.rate(q, v)
    np.testing.assert_allclose(lost, -5.0 * (0.3 * rate[0] ** 2 + 0.2 * rate[1] ** 2), rtol=1e-12)
    leaves = jax.jit(jax.grad(lambda m: passive_forces(m, q, v) @ v))(stopped.replace(friction=friction))
    for name in ("friction", "friction_speed", "limit_stiffness", "limit_damping", "upper", "lower", "damping"):
        assert jnp.all(jnp.isfinite(getattr(leaves, name))) and jnp.any(getattr(leaves, name) != 0), name


def test_batches_are_single_states():
    model = trees.build(["revolute", "prismatic"], [-1, 0])
    model = model.replace(damping=jnp.arange(1.0 * model.nv), stiffness=jnp.ones(model.nv))
    q, v, _ = trees.state(model, batch=(2, 2))
    many = [bias_forces(model, q, v), gravity_forces(model, q), passive_forces(model, q, v)]
    for i in np.ndindex(2, 2):
        one = [bias_forces(model, q[i], v[i]), gravity_forces(model, q[i]), passive_forces(model, q[i], v[i])]
        for found, right in zip(many, one, strict=True):
            close(found[i], right, 1e-14)


@pytest.mark.float32
def test_float32():
    model = trees.build(*trees.CASES["revolute tree"], dtype=jnp.float32)
    twin = Twin(model)
    q, v, _ = trees.state(model)
    found = bias_forces(model, q, v)
    assert found.dtype == gravity_forces(model, q).dtype == passive_forces(model, q, v).dtype == jnp.float32
    close(found, twin.back(pin.nonLinearEffects(twin.pin, twin.data, twin.q(q), twin.v(v))), 1e-5)
