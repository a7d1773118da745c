"""Gradients of forward dynamics by one of its arguments alone, of machines too large for a dense rule.

What does not move has to be zeros that are linear in what does: else reverse mode finds no transpose.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.dynamics import forward_dynamics, forward_dynamics_derivatives
from tests.dynamics.machines import close, lanes
from tests.multibody import trees

MACHINES = {
    "four legs": (["free"] + ["revolute"] * 12, [-1, 0, 1, 2, 0, 4, 5, 0, 7, 8, 0, 10, 11]),
    "chain": (["revolute"] * 14, list(range(-1, 13))),
}
LEAVES = ("gravity", "inertias", "armature")


@pytest.fixture(scope="module", params=MACHINES)
def machine(request):
    """(model, states, weights of the accelerations, a scalar of the dynamics by each argument alone)."""
    model = trees.build(*MACHINES[request.param], armature=True)
    assert model.nv > 12
    weights = jnp.asarray(np.random.default_rng(8).normal(size=model.nv))

    def heft(model, q, v, tau):
        return forward_dynamics(model, q, v, tau) @ weights

    alone = {
        "q": lambda q, v, tau: jax.grad(lambda x: heft(model, x, v, tau))(q),
        "v": lambda q, v, tau: jax.grad(lambda x: heft(model, q, x, tau))(v),
        "tau": lambda q, v, tau: jax.grad(lambda x: heft(model, q, v, x))(tau),
    }
    for name in LEAVES:
        alone[name] = lambda q, v, tau, name=name: jax.grad(
            lambda x: heft(model.replace(**{name: x}), q, v, tau)
        )(getattr(model, name))  # fmt: skip
    return model, trees.state(model, batch=(2,)), weights, heft, alone


@pytest.mark.slow
@pytest.mark.parametrize("machine", lanes(["chain"], ["four legs"]), indirect=True)
def test_equal_the_closed_form(machine):
    """Each a gradient by one argument, over a batch."""
    model, at, weights, heft, alone = machine
    found = {name: jax.jit(jax.vmap(slope))(*at) for name, slope in alone.items()}
    jacobians = jax.jit(forward_dynamics_derivatives)(model, *at)
    value = jax.jit(heft)
    for i, (q, v, tau) in enumerate(zip(*at, strict=True)):
        rates = jax.vmap(lambda e, q=q: model.rate(q, e))(jnp.eye(model.nv))
        bound = max(1e-12, 1e-15 * np.linalg.cond(jacobians.dtau[i]))
        close(rates @ found["q"][i], weights @ jacobians.dq[i], bound)
        close(found["v"][i], weights @ jacobians.dv[i], bound)
        close(found["tau"][i], weights @ jacobians.dtau[i], bound)
        for name in LEAVES:
            number = getattr(model, name)
            change = np.random.default_rng(3).normal(size=number.shape)
            # the acceleration is affine in gravity, so that a step of one is exact
            step = 1.0 if name == "gravity" else 1e-6
            ends = [float(value(model.replace(**{name: number + s * change}), q, v, tau)) for s in (step, -step)]
            wanted = (ends[0] - ends[1]) / (2 * step)
            along = np.sum(np.asarray(found[name][i]) * change)
            size = np.abs(np.asarray(found[name][i]) * change).max()
            np.testing.assert_allclose(along, wanted, rtol=0, atol=(1e-11 if name == "gravity" else 1e-6) * size)


@pytest.mark.repeats("chain-*", "four legs-inertias")
@pytest.mark.parametrize("name", ["q", "v", "tau", *LEAVES])
def test_is_differentiated_alone_one_at_a_time(machine, name):
    """Of a single state, not compiled: tracing alone is what failed."""
    model, at, _, _, alone = machine
    found = jax.eval_shape(alone[name], *(x[0] for x in at))
    shapes = {"q": (model.nq,), "v": (model.nv,), "tau": (model.nv,)}
    assert found.shape == (shapes[name] if name in shapes else getattr(model, name).shape)
    assert found.dtype == model.dtype
