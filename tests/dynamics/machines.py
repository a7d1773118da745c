"""What tests of algorithms share: a bound, the machines of a comparison, one whose joints mimic, M by columns."""

import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.multibody import joints
from lgsim.multibody.builder import ModelBuilder
from tests.multibody import trees


def close(found, expected, relative=1e-12):
    """Equal up to a share of the largest entry."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=relative * np.abs(expected).max())


def cases(*always, quick=()):
    """Names of ``trees.CASES`` as parameters: `always` and `quick` run always, the others with ``--exhaustive``.

    Every algorithm is held against Pinocchio on a tree of all joints by ``test_identities``; what an algorithm compiles
    for one machine more takes seconds.
    """
    marks = {name: () for name in always} | {name: pytest.mark.quick for name in quick}
    return [pytest.param(name, marks=marks.get(name, pytest.mark.exhaustive)) for name in trees.CASES]


def lanes(always, exhaustive):
    """Names as parameters: the first ones run always, the others, which repeat their claim, with ``--exhaustive``."""
    return [*always, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in exhaustive)]


def mass_by_columns(model, q):
    """The mass matrix from inverse dynamics at rest without gravity, one unit acceleration after another."""
    still = model.replace(gravity=jnp.zeros_like(model.gravity))
    return inverse_dynamics(still, q, jnp.zeros(model.nv, q.dtype), jnp.eye(model.nv, dtype=q.dtype)).T


MIMIC = {2: ("joint0", -1.7, 0.3), 3: ("joint1", 0.5, -0.2)}


def mimicking(mimic=MIMIC, armature=0.1):
    """Four revolute joints, of which the third and fourth follow others where ``mimic`` says so."""
    rng = np.random.default_rng(3)
    builder = ModelBuilder()
    for i, parent in enumerate(["world", "body0", "body1", "body1"]):
        builder.add_body(
            f"body{i}",
            parent,
            joints.Revolute(),
            joint_name=f"joint{i}",
            placement=trees.pose(rng),
            axis=trees.unit(rng),
            mimic=mimic.get(i),
            armature=armature,
            **trees.body(rng),
        )
    return builder.build()
