"""``repr`` of a model: at most ten lines for all sizes, batches and traced models; all fields in a fingerprint."""

import jax
import jax.numpy as jnp
import numpy as np

import lgsim
from lgsim import joints
from lgsim.data import arm7, quadrotor
from lgsim.support.full_repr import full_reprs


def lines(model):
    found = repr(model).splitlines()
    assert len(found) <= 10 and max(map(len, found)) <= 120
    return found


def test_an_arm():
    assert lines(lgsim.load_urdf(arm7(), dtype=jnp.float64)) == [
        "Model on a fixed base, float64",
        "  bodies: 7 (link1, link2, link3, ...)",
        "  joints: 7 revolute (joint1, joint2, joint3, ...)",
        "  degrees of freedom: 7 (nq = 7, nv = 7)",
        "  loops: none",
        "  contacts: none",
        "  actuators: effort limits on 7 of 7 degrees of freedom",
        f"  mass: {float(lgsim.load_urdf(arm7()).inertias[:, 0].sum()):.6g} kg",
    ]


def test_a_floating_base():
    found = lines(lgsim.load_urdf(quadrotor(), floating_base=True))
    assert found[0].startswith("Model on a floating base ") and "1 free (root_joint)" in found[2]
    assert "nq = 7, nv = 6" in found[3]


def test_many_bodies_with_long_names():
    builder, parent = lgsim.ModelBuilder(), "world"
    for i in range(60):
        name = f"{i} {'x' * 200}\n\x1b[2J"
        joint = joints.Revolute() if i % 2 else joints.Prismatic()
        builder.add_body(name, parent, joint, mass=1.0, inertia=np.eye(3))
        parent = name
    builder.add_rod("rod", "world", parent, 1.0)
    builder.add_contact("tip", parent, lgsim.contacts.sphere(0.1), stiffness=1e4)
    found = lines(builder.build())
    assert "30 prismatic, 30 revolute" in found[2] and found[4] == "  loops: 1 (rod), 1 row"
    assert found[5] == "  contacts: 1 (tip)" and found[7] == "  mass: 60 kg"


def test_batched_traced_and_without_arrays():
    model = lgsim.load_urdf(arm7())
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), model)
    assert lines(batch)[-1].endswith("kg, batch of shape (2,)")
    shown = []
    jax.jit(lambda m: shown.extend(lines(m)) or m.gravity)(model)
    assert shown[-1] == "  mass: unknown, not a concrete array"
    axes = jax.tree.map(lambda x: 0, model)
    assert lines(axes)[0] == "Model on a fixed base" and lines(lgsim.trainable(model))


def test_fingerprints_have_all_fields():
    model = lgsim.load_urdf(arm7())
    with full_reprs():
        texts = repr(model), repr(model.replace(gravity=jnp.zeros(3)))
    assert texts[0] != texts[1] and "gravity=" in texts[0] and "topology=" in texts[0]
