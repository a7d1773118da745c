"""The Coriolis matrix: its forces against Pinocchio, and what makes it the connection of the mass matrix."""

import jax
import numpy as np
import pinocchio as pin
import pytest

from lgsim.dynamics.coriolis import coriolis_matrix
from lgsim.dynamics.mass_matrix import mass_matrix
from lgsim.multibody.joint import GroupJoint
from tests.dynamics.machines import close, lanes, mimicking
from tests.multibody import trees
from tests.multibody.twin import Twin


def commutator(model, v, w):
    """[v, w] of velocities: nothing for numbers, the bracket of the algebra for groups."""
    out = np.zeros(model.nv)
    for joint, start in zip(model.topology.joints, model.topology.v_starts, strict=False):
        for i, j, k, c in joint.brackets if isinstance(joint, GroupJoint) else ():
            out[start + k] += c * (v[start + i] * w[start + j] - v[start + j] * w[start + i])
    return out


@pytest.mark.slow
@pytest.mark.parametrize("case", lanes(["floating chain"], ["groups", "floating"]))
def test_forces_rate_and_torsion(case):
    model = trees.build(*trees.CASES[case])
    twin = Twin(model)
    q, v, w = trees.state(model)
    C = coriolis_matrix(model, q, v)
    x = twin.q(q)
    forces = pin.nonLinearEffects(twin.pin, twin.data, x, twin.v(v)) - pin.computeGeneralizedGravity(
        twin.pin, twin.data, x
    )
    close(C @ v, twin.back(forces))
    if case != "floating":  # the peer's matrix leaves out how screws move within a joint that it composes of others
        close(C @ v, twin.back(pin.computeCoriolisMatrix(twin.pin, twin.data, x, twin.v(v)) @ twin.v(v)))
    mass, rate = jax.jit(lambda q, v: jax.jvp(lambda q: mass_matrix(model, q), (q,), (model.rate(q, v),)))(q, v)
    bound = 1e-12 * np.abs(C).max() * 10
    np.testing.assert_allclose(C + C.T, rate, rtol=0, atol=bound)
    torsion = C @ w - coriolis_matrix(model, q, w) @ v
    np.testing.assert_allclose(torsion, mass @ commutator(model, v, w), rtol=0, atol=bound)


@pytest.mark.slow
def test_equals_christoffel_symbols():
    """``C_ij = 1/2 sum_k (d_k M_ij + d_j M_ik - d_i M_jk) v_k`` by differentiation, with joints that mimic too."""
    for model in (trees.build(["revolute", "helical", "prismatic"], [-1, 0, 1]), mimicking()):
        q, v, _ = trees.state(model)
        d = jax.jit(jax.jacfwd(lambda q, model=model: mass_matrix(model, q)))(q)
        symbols = 0.5 * (np.einsum("ijk->ijk", d) + np.einsum("ikj->ijk", d) - np.einsum("jki->ijk", d))
        close(coriolis_matrix(model, q, v), symbols @ v)


@pytest.mark.slow
def test_batch_is_one_by_one():
    model = trees.build(["spherical", "helical"], [-1, 0])
    q, v, _ = trees.state(model, batch=(2,))
    C = coriolis_matrix(model, q, v)
    for i in range(2):
        close(C[i], coriolis_matrix(model, q[i], v[i]), 1e-13)
