"""Motions of machines with loops: closed to rounding, of the method's order, with gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.formats import read_sdf
from lgsim.lie.group import norm
from tests.dynamics import closed_machines as machines
from tests.formats.robots import FOLDER

RECORD = machines.REFERENCE["four_bar_motion"]


def start(name="four_bar_motion"):
    if name == "four_bar_motion":
        return jnp.asarray(RECORD["q"][0]), jnp.asarray(RECORD["v"][0])
    q, v, _, _ = next(machines.states(name))
    return q, v


def gaps(model, q, v):
    """(largest residual, largest rate)."""
    q, v = jnp.asarray(q), jnp.asarray(v)
    J = lgsim.loop_jacobian(model, q)
    return np.abs(lgsim.loop_residual(model, q)).max(), np.abs(jnp.einsum("...ij,...j->...i", J, v)).max()


def error(model, dt, seconds=3, **options):
    steps = round(seconds / dt)
    motion = lgsim.rollout(model, *start(), dt=dt, steps=steps, save_every=steps // (2 * seconds), **options)
    return np.abs(np.asarray(motion.q) - RECORD["q"][: 2 * seconds + 1]).max(), motion


@pytest.mark.slow
def test_the_four_bar_of_the_reference():
    model = machines.machine("four_bar_motion")
    coarse, _ = error(model, 1 / 320, 1)
    fine, motion = error(model, 1 / 640, 1)
    assert abs(np.log2(coarse / fine) - 4) < 0.15
    assert max(gaps(model, motion.q, motion.v)) < 1e-14
    finest, _ = error(model, 1e-3)
    assert finest < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("method", ["CF4", "RKMK4", "Rodas4", "MKGauss4"])
def test_other_methods_keep_their_order(method):
    chosen = getattr(lgsim, method, None) or lgsim.METHODS.get(method)
    if chosen is None:
        pytest.skip("there is no such method")
    model = machines.machine("four_bar_motion")
    coarse, _ = error(model, 1 / 160, 1, method=chosen)
    fine, motion = error(model, 1 / 320, 1, method=chosen)
    assert np.log2(coarse / fine) > 3.6
    assert max(gaps(model, motion.q, motion.v)) < 1e-14


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four_bar_motion", "delta", "ring_hinge"])
def test_ten_seconds_stay_closed(name):
    model = machines.machine(name)
    if name == "delta":  # damped, or its arms run through singular postures in which it is no machine
        model = model.replace(damping=0.05)
    q, v = start(name)
    motion = lgsim.rollout(model, q, v, dt=2e-3, steps=5000, save_every=10)
    residual, rate = gaps(model, motion.q, motion.v)
    assert residual < 1e-12
    assert rate < 1e-12 * max(1, np.abs(motion.v).max())


@pytest.mark.slow
def test_energy_is_kept():
    model = machines.machine("four_bar_motion")
    motion = lgsim.rollout(model, *start(), dt=1e-3, steps=3000, save_every=100)
    energy = lgsim.kinetic_energy(model, motion.q, motion.v) + lgsim.potential_energy(model, motion.q)
    assert np.abs(energy - RECORD["energy"][0]).max() < 1e-8


def cassie(*held):
    """Cassie from its file, the pelvis held aslant."""
    model, _ = read_sdf(FOLDER / "cassie_description" / "robots" / "cassie_v2.sdf")
    aslant = jnp.zeros(model.nv).at[3:6].set(jnp.array([0.2, 0.4, 0.0]))
    return model.lock(["root_joint", *held], model.retract(model.neutral(), aslant))


CRANKS = ("left-tarsus-crank-joint", "right-tarsus-crank-joint")


@pytest.mark.oracle
@pytest.mark.slow
def test_cassies_legs_stay_closed_for_ten_seconds():
    """The toes' motors are held, so that the rings have no rows that depend on each other but for the file's digits."""
    legs = cassie(*CRANKS)
    motion = lgsim.rollout(legs, legs.neutral(), jnp.zeros(legs.nv), dt=2e-3, steps=5000, save_every=10)
    assert np.abs(motion.q[:, legs.q_slices["left-pitch-op"]]).max() > 0.2  # they swing
    assert max(gaps(legs, motion.q, motion.v)) < 1e-12


@pytest.mark.oracle
@pytest.mark.slow
def test_cassies_toes_stay_as_closed_as_the_file_allows():
    """All joints of the legs, with the file's dampers, for ten seconds: at 0.5 ms, as its springs of light links ask.

    Ten rows are independent. An eleventh, of the right toe, has a singular value of 1e-8, as two hinges are parallel to
    the file's digits: no velocity closes it, and its gap stays where the start has it.
    """
    legs = cassie()
    q = legs.neutral()
    for side in ("left", "right"):
        for joint, angle in (("foot-op", -1.0), ("tarsus-crank-joint", -1.0), ("crank-rod-joint", 1.0)):
            q = q.at[legs.q_slices[f"{side}-{joint}"]].set(angle)
    start = lgsim.close_loops(legs, q, hold=["left-foot-op", "right-foot-op"]).q
    motion = lgsim.rollout(legs, start, jnp.zeros(legs.nv), dt=5e-4, steps=20000, save_every=100)
    J, r = (np.asarray(f(legs, motion.q)) for f in (lgsim.loop_jacobian, lgsim.loop_residual))
    U, s, _ = np.linalg.svd(J, full_matrices=False)
    independent = s > 1e-6
    assert np.all(np.sum(independent, axis=1) == 10)
    rates = np.einsum("sij,sj->si", J, np.asarray(motion.v))
    for off in (r, rates):
        assert np.abs(np.einsum("sij,si->sj", U, off) * independent).max() < 1e-12
    assert np.abs(r).max() < 2e-8 and np.abs(rates).max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["four_bar_motion", pytest.param("delta", marks=pytest.mark.exhaustive),
     pytest.param("cassie", marks=[pytest.mark.oracle, pytest.mark.exhaustive])],
)  # fmt: skip
def test_float32(name):
    if name == "cassie":
        model = cassie(*CRANKS)
        q, v = model.neutral(), jnp.zeros(model.nv)
    else:
        model, (q, v) = machines.machine(name), start(name)
    model, q, v = jax.tree.map(lambda x: x.astype(jnp.float32), (model, q, v))
    if name == "delta":
        model = model.replace(damping=0.05)
    motion = lgsim.rollout(model, q, v, dt=1e-3, steps=1000, save_every=10)
    assert motion.q.dtype == jnp.float32
    residual, rate = gaps(model, motion.q, motion.v)
    assert residual < 2e-6
    # Cassie's least independent row is one of 5e-5 of the largest, below what rates are told from rounding by
    assert rate < (2e-5 if name == "cassie" else 2e-6) * max(1, np.abs(motion.v).max())


@pytest.mark.slow
@pytest.mark.parametrize("mode", [jax.grad, lambda f: jax.jacfwd(f)])
def test_gradients_of_a_motion(mode):
    """By the torque, by a length of a link and by the place of the ground hinge, started closed."""
    model = machines.machine("four_bar")
    q, v, _, _ = next(machines.states("four_bar"))

    def cost(x):
        moved = model.replace(drives=model.drives, gravity=model.gravity * x[1])
        mass = moved.replace(inertias=moved.inertias.at[1].mul(x[2]), damping=x[3])
        motion = lgsim.rollout(mass, q, v, dt=1e-3, steps=200, torques=jnp.array([x[0], 0.0, 0.0]))
        return norm(motion.q[-1]) + jnp.sum(motion.v[-1] ** 2)

    x = jnp.array([0.7, 1.0, 1.0, 0.1])
    found = mode(cost)(x)
    for i in range(4):
        e = jnp.zeros(4).at[i].set(1e-3)
        y = [float(cost(x + s * e)) for s in (-2, -1, 1, 2)]
        expected = (y[0] - 8 * y[1] + 8 * y[2] - y[3]) / 12e-3
        assert abs(found[i] - expected) < 1e-6 * max(abs(expected), 1)


@pytest.mark.slow
def test_adaptive_steps_and_events_keep_it_closed():
    pytest.importorskip("diffrax")
    model = machines.machine("four_bar_motion")
    times = jnp.asarray(RECORD["t"])
    found = lgsim.simulate_adaptive(model, *start(), duration=3.0, rtol=1e-9, atol=1e-11, save_at=times)
    assert np.abs(np.asarray(found.q) - RECORD["q"]).max() < 1e-6
    assert max(gaps(model, found.q, found.v)) < 1e-12
    event = lgsim.events.joint_reaches(model, "link0", 2.0)
    ended = lgsim.simulate_adaptive(model, *start(), duration=3.0, events=event)
    assert abs(ended.q[-1][0] - 2.0) < 1e-6
    assert max(gaps(model, ended.q[-1], ended.v[-1])) < 1e-12
