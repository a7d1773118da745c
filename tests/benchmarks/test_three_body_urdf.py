"""The three bodies of Park and Chung from a file, through ``rollout``; and a body that a file gives in pieces."""

import json
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from systems.three_body import chain

import lgsim

DATA = Path(__file__).parents[1] / "data"
PAPER = json.loads((DATA / "park_chung.json").read_text())


@pytest.fixture(scope="module")
def model():
    return lgsim.load_urdf(DATA / "three_bodies.urdf", floating_base=True, gravity=(0.0, 0.0, 0.0))


def state(model, rng):
    q = model.retract(model.neutral(), jnp.asarray(rng.normal(size=model.nv)))
    return q, *jnp.asarray(rng.normal(size=(2, model.nv)))


def invariants(model, q, v):
    """Kinetic energy, linear momentum and angular momentum about the world's origin, as the paper has them."""
    momentum, center = lgsim.centroidal_momentum(model, q, v), lgsim.center_of_mass(model, q)
    angular = momentum[..., 3:] + jnp.cross(center, momentum[..., :3])
    return {
        "kinetic_energy": lgsim.kinetic_energy(model, q, v)[..., None],
        "linear_momentum": momentum[..., :3],
        "angular_momentum": angular,
    }


@pytest.mark.slow
def test_the_file_is_the_machine_of_the_system(model):
    assert model.joint_names == ("root_joint", "second", "third")

    @jax.jit
    def evaluate(model, q, v, tau):
        return (
            lgsim.forward_dynamics(model, q, v, tau),
            lgsim.kinetic_energy(model, q, v),
            lgsim.potential_energy(model, q),
        )

    twin = chain()
    np.testing.assert_array_equal(model.gravity, twin.gravity)
    for seed in range(3):
        x = state(model, np.random.default_rng(seed))
        for gravity in (model.gravity, jnp.asarray([0.3, -0.2, -9.81])):
            both = (evaluate(machine.replace(gravity=gravity), *x) for machine in (model, twin))
            for ours, theirs in zip(*both, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["MK4", "CF4"])
def test_drift_at_one_second_equals_the_printed_five_digits(model, method):
    """Tables VI, VII and VIII at h = 1 and h = 0.1: quaternions move as the paper's matrices do."""
    q0, v0 = model.neutral(), jnp.zeros(8).at[6:].set(0.4)

    @jax.jit
    def run(dt):
        # ten steps for both step sizes, so that both run the same compiled program
        out = lgsim.rollout(model, q0, v0, dt=dt, steps=10, method=lgsim.METHODS[method])
        return invariants(model, out.q, out.v)

    for step, steps in ((1.0, 1), (0.1, 10)):
        values = run(step)
        column = PAPER["steps"].index(step)
        for name, table in PAPER["tables"].items():
            np.testing.assert_allclose(np.squeeze(values[name][0]), PAPER["invariants"][name], rtol=0, atol=3e-14)
            drift = np.linalg.norm(values[name][steps] - values[name][0])
            assert f"{drift:.4e}" == f"{float(table[method][column]):.4e}", (name, step)


@pytest.mark.slow
def test_motion_reaches_the_reference_state(model):
    q0, v0 = model.neutral(), jnp.zeros(8).at[6:].set(0.4)
    out = jax.jit(partial(lgsim.rollout, dt=0.1, steps=10, method=lgsim.MK8))(model, q0, v0)
    expected = {name: np.asarray(value, float) for name, value in PAPER["state"].items()}
    q, v = np.asarray(out.q[-1]), np.asarray(out.v[-1])
    np.testing.assert_allclose(q[:3], expected["r"], rtol=0, atol=1e-14)
    np.testing.assert_allclose(Rotation.from_quat(q[[4, 5, 6, 3]]).as_matrix(), expected["R"], rtol=0, atol=1e-14)
    np.testing.assert_allclose(q[7:], expected["q"], rtol=0, atol=1e-14)
    np.testing.assert_allclose(v, np.concatenate([expected["V"], expected["qdot"]]), rtol=0, atol=1e-14)


PIECES = (
    # place and turns (roll, pitch, yaw) in the first link; mass; center and moments in the piece's own axes
    ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 2.0, (0.1, -0.05, 0.02), (0.03, 0.05, 0.04)),
    ((0.3, 0.1, -0.2), (0.4, -0.7, 1.1), 1.5, (-0.02, 0.08, 0.05), (0.02, 0.015, 0.03)),
    ((-0.1, 0.4, 0.25), (-1.3, 0.2, 0.6), 0.7, (0.06, 0.01, -0.09), (0.01, 0.012, 0.008)),
)
FLAIL = ((0.05, -0.02, 0.1), (0.3, 0.5, -0.2))  # where the joint stands on the last piece


def link(name, mass, center, I):  # noqa: E741  the symbol of inertia
    moments = {"ixx": I[0, 0], "iyy": I[1, 1], "izz": I[2, 2], "ixy": I[0, 1], "ixz": I[0, 2], "iyz": I[1, 2]}
    return (
        f'<link name="{name}"><inertial><origin xyz="{written(center)}"/><mass value="{mass!r}"/><inertia '
        + " ".join(f'{key}="{float(value)!r}"' for key, value in moments.items())
        + "/></inertial></link>"
    )


def joint(name, kind, parent, child, place, turns):
    return (
        f'<joint name="{name}" type="{kind}"><origin xyz="{written(place)}" rpy="{written(turns)}"/>'
        f'<parent link="{parent}"/><child link="{child}"/><axis xyz="0 1 0"/></joint>'
    )


def written(numbers):
    return " ".join(repr(float(x)) for x in numbers)


def in_pieces():
    elements = [
        link(f"piece{i}", mass, center, np.diag(moments)) for i, (_, _, mass, center, moments) in enumerate(PIECES)
    ]
    # the second piece stands on the first, the third on the second
    for i in (1, 2):
        (p, turns), (base, base_turns) = PIECES[i][:2], PIECES[i - 1][:2]
        R = Rotation.from_euler("xyz", base_turns).inv()
        own = (R * Rotation.from_euler("xyz", turns)).as_euler("xyz")
        elements.append(joint(f"glue{i}", "fixed", f"piece{i - 1}", f"piece{i}", R.apply(np.subtract(p, base)), own))
    return [*elements, joint("hinge", "continuous", "piece2", "flail", *FLAIL)]


def whole():
    """The same pieces as one link: masses add up, moments by the parallel axis theorem."""
    turns = [Rotation.from_euler("xyz", piece[1]) for piece in PIECES]
    masses = np.array([piece[2] for piece in PIECES])
    centers = np.array([piece[0] + R.apply(piece[3]) for piece, R in zip(PIECES, turns, strict=True)])
    center = masses @ centers / masses.sum()
    total = np.zeros((3, 3))
    for piece, R, mass, c in zip(PIECES, turns, masses, centers - center, strict=True):
        total += R.as_matrix() @ np.diag(piece[4]) @ R.as_matrix().T + mass * (c @ c * np.eye(3) - np.outer(c, c))
    place, own = turns[2].apply(FLAIL[0]) + PIECES[2][0], turns[2] * Rotation.from_euler("xyz", FLAIL[1])
    elements = [link("piece0", float(masses.sum()), center, total)]
    return [*elements, joint("hinge", "continuous", "piece0", "flail", place, own.as_euler("xyz"))]


@pytest.mark.slow
def test_a_body_and_the_same_body_in_fixed_pieces_move_alike():
    flail = link("flail", 0.8, (0.0, 0.05, -0.3), np.diag([0.02, 0.02, 0.004]))
    models = [
        lgsim.load_urdf(text=f'<robot name="r">{"".join([*elements, flail])}</robot>', floating_base=True)
        for elements in (in_pieces(), whole())
    ]
    assert models[0].topology.joints == models[1].topology.joints
    v0 = jnp.asarray([0.3, -0.5, 0.2, 1.5, -2.0, 0.8, 3.0])
    runs = [
        # a model's names are no numbers: each compiles its own program
        jax.jit(partial(lgsim.rollout, dt=0.01, steps=100, save_every=10))(model, model.neutral(), v0)
        for model in models
    ]
    assert np.abs(runs[0].q[-1] - runs[0].q[0]).max() > 1.0
    np.testing.assert_allclose(runs[0].q, runs[1].q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(runs[0].v, runs[1].v, rtol=0, atol=1e-13)
