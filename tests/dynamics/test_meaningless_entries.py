"""Entries of a model that mean nothing: a change of them is ignored, and their gradient is zero.

Of the axes of a joint that is a group only a frame has a meaning, of ratios only those of joints that follow others, of
pitches only those of screws, of axes not their length.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.multibody import joints
from tests.multibody import trees

SMALL = [joints.Revolute(), joints.Spherical(), joints.Helical(), joints.Revolute()]
LARGE = [joints.Free(), joints.Spherical(), joints.Planar(), joints.Helical(), joints.Free(), joints.Revolute()]


def machine(kinds):
    """A tree whose last joint follows another one, its numbers at random."""
    rng = np.random.default_rng(0)
    builder = lgsim.ModelBuilder()
    for i, kind in enumerate([*kinds, joints.Revolute()]):
        base = i == 0 and isinstance(kind, joints.Free)
        builder.add_body(
            f"body{i}",
            f"body{(i - 1) // 2}" if i else "world",
            kind,
            joint_name=f"joint{i}",
            placement=trees.pose(rng),
            axis=None if base else trees.rotation(rng)[[row.axis for row in kind.rows]],
            pitch=0.1 if kind.pitched else 0.0,
            mimic=(f"joint{len(kinds) - 1}", -1.5, 0.3) if i == len(kinds) else None,
            armature=0.0 if base else 0.1,
            **trees.body(rng),
        )
    return builder.build()


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[SMALL, LARGE], ids=["small", "large"])
def case(request):
    """(a machine, accelerations and momenta as one number, their gradient by all numbers of the machine)."""
    model = machine(request.param)
    q, v, tau = trees.state(model)
    weights = jnp.asarray(np.random.default_rng(1).normal(size=model.nv))

    def number(model):
        a = lgsim.forward_dynamics(model, q, v, tau)
        return weights @ a + jnp.sum(jnp.sin(lgsim.forward_kinematics(model, q)))

    return model, jax.jit(number), jax.jit(jax.grad(number))(model)


def meaningless(model):
    """Masks of entries of screws and of ratios that mean nothing."""
    tree = model.topology
    screws = np.zeros(model.screws.shape, bool)
    screws[~tree.row_pitched, 3] = True
    for joint, bodies in tree.groups:
        for body in bodies:
            rows = range(tree.row_starts[body], tree.row_starts[body + 1])
            if tree.floats and body == 0:
                screws[rows, :3] = True
            last = {row.axis: place for row, place in zip(joint.rows, rows, strict=True)}
            screws[[place for place in rows if place not in (last[0], last[1])], :3] = True
    follows = np.array([mimic is not None for mimic in tree.mimics])
    return screws, np.repeat(~follows[:, None], 2, axis=1)


@pytest.mark.parametrize("leaf", ["screws", "mimic"])
def test_a_change_of_all_entries_is_what_the_gradient_says(case, leaf):
    model, number, gradient = case
    x, h = getattr(model, leaf), 1e-6
    way = jnp.asarray(np.random.default_rng(2).normal(size=x.shape))
    ends = [number(model.replace(**{leaf: x + step * way})) for step in (h, -h)]
    np.testing.assert_allclose(jnp.sum(getattr(gradient, leaf) * way), (ends[0] - ends[1]) / (2 * h), rtol=1e-6)


def test_entries_without_meaning_are_ignored(case):
    model, number, gradient = case
    rng = np.random.default_rng(3)
    for leaf, mask in zip(("screws", "mimic"), meaningless(model), strict=True):
        assert mask.any()
        assert not np.any(np.asarray(getattr(gradient, leaf))[mask])
        x = np.asarray(getattr(model, leaf))
        changed = model.replace(**{leaf: jnp.asarray(np.where(mask, rng.normal(size=x.shape), x))})
        np.testing.assert_allclose(number(changed), number(model), rtol=1e-13)


def test_the_length_of_an_axis_is_ignored(case):
    model, number, gradient = case
    np.testing.assert_allclose(jnp.sum(gradient.axes * model.axes, axis=1), 0, atol=1e-10)
    longer = model.replace(axes=model.axes * jnp.linspace(0.5, 2, len(model.axes))[:, None])
    np.testing.assert_allclose(number(longer), number(model), rtol=1e-11)
