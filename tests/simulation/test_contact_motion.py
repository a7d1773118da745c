"""Motions with contacts against closed forms and an oracle made without lgsim, tests/data/contact.json."""

import json
from dataclasses import fields, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.multibody import ModelBuilder, contacts, joints
from lgsim.multibody.model import DRIVES, Model
from tests.dynamics.contact_machines import ball, drop

ORACLE = json.loads((Path(__file__).parents[1] / "data" / "contact.json").read_text())
G = 9.81
STORED = {field.name for field in fields(Model)}


def quaternion(R):
    """The unit quaternion (w, x, y, z) of a rotation matrix, w > 0."""
    w = 0.5 * np.sqrt(1 + np.trace(R))
    return np.array([w, *(np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * w))])


def last(model, q0, v0, dt, steps, method=lgsim.MK4):
    """(q, v) at the end of a motion."""
    out = lgsim.rollout(model, q0, v0, dt=dt, steps=steps, save_every=steps, method=method)
    return out.q[-1], out.v[-1]


@pytest.mark.slow
@pytest.mark.parametrize("method", [lgsim.MK4, lgsim.Rodas4], ids=["MK4", "Rodas4"])
def test_a_box_falls_on_its_corners_as_the_oracle_says(method):
    row = ORACLE["box"]
    builder = ModelBuilder().add_body("box", "world", joints.Free(), mass=row["mass"], inertia=np.diag(row["inertia"]))
    builder.add_contact(
        "corners", "box", contacts.box(*(2 * np.array(row["half_edges"])).tolist()), stiffness=row["k"],
        exponent=row["e"], dissipation=row["c"], friction=row["mu"], slip_speed=row["us"],
    )  # fmt: skip
    model = builder.build()
    R = np.array(row["R"]).reshape(-1, 3, 3)
    q0 = jnp.array([*row["p"][0], *quaternion(R[0])])
    v0 = jnp.array([*(R[0].T @ row["v_world"][0]), *row["w_body"][0]])
    out = lgsim.rollout(model, q0, v0, dt=2.5e-4, steps=2400, save_every=400, method=method)
    np.testing.assert_allclose(out.q[:, :3], row["p"], atol=1e-5)
    turned = np.array([[np.abs(np.asarray(x) @ quaternion(r))] for x, r in zip(out.q[:, 3:], R, strict=True)])
    np.testing.assert_allclose(turned, 1, atol=1e-9)
    np.testing.assert_allclose(out.v[:, 3:], row["w_body"], atol=2e-3)


DROPS = [row for row in ORACLE["drop"]["rows"] if row["e"] == 1.5]


@pytest.mark.slow
@pytest.mark.parametrize("row", DROPS, ids=lambda row: f"{row['h']} m")
def test_apexes_and_their_derivatives(row):
    """Value to 1e-7, slopes by height, the logarithm of stiffness, and dissipation to 3e-4, at 0.25 ms."""
    model = drop(stiffness=row["k"], exponent=row["e"], dissipation=row["c"])
    dt = 2.5e-4
    steps = round((np.sqrt(2 * row["h"] / G) + 0.13) / dt)

    def bounce(h, k, c):
        own = model.replace_contact("sole", stiffness=k, dissipation=c)
        q, v = last(own, h[None], jnp.zeros(1), dt, steps)
        return q[0] + v[0] ** 2 / (2 * G)

    numbers = [jnp.asarray(row[key]) for key in ("h", "k", "c")]
    found, slopes = jax.jit(jax.value_and_grad(bounce, argnums=(0, 1, 2)))(*numbers)
    np.testing.assert_allclose(found, row["apex"], atol=1e-7)
    unit = np.array([1.0, row["k"], 1.0])
    expected = np.array([row["dapex_dh"], row["dapex_dk"], row["dapex_dc"]])
    np.testing.assert_allclose(np.array(slopes) * unit, expected * unit, atol=3e-4)


RESTITUTIONS = [
    pytest.param(row, marks=[] if i == 6 else pytest.mark.exhaustive, id=f"c {row['c']}, {row['u_in']} m/s")
    for i, row in enumerate(ORACLE["restitution"]["rows"])
]


@pytest.mark.slow
@pytest.mark.parametrize("row", RESTITUTIONS)
@pytest.mark.parametrize("exponent", [1.5, 2.0])
def test_restitution_does_not_depend_on_the_spring(row, exponent):
    """Its closed form and both derivatives, in the order of the law, whatever stiffness and exponent.

    The force at the end of the contact has ``exponent`` derivatives there: where a step meets it is a matter of
    chance, and what holds is the order of the envelope, ``exponent + 1`` of the value and ``exponent`` of slopes.
    """
    c, u = float(row["c"]), float(row["u_in"])
    stiffness = 2e4 if exponent == 1.5 else 1e6
    model = drop(gravity=(0.0, 0.0, 0.0), stiffness=stiffness, exponent=exponent, dissipation=c)
    # three times half a wave of a spring that the same speed presses as deep; coarser steps go on in flight
    deep = (u**2 * (exponent + 1) / (2 * stiffness)) ** (1 / (exponent + 1))
    shortest, steps = 6 * deep / u / 64000, 64000

    @jax.jit
    def found(dt):
        def out(u, c):
            return last(model.replace_contact("sole", dissipation=c), jnp.zeros(1), -u[None], dt, steps)[1][0]

        value, slopes = jax.value_and_grad(out, argnums=(0, 1))(jnp.asarray(u), jnp.asarray(c))
        return jnp.stack([value, *slopes])

    exact = np.array([float(row[key]) for key in ("u_out", "du_out_du_in", "du_out_dc")])
    errors = {n: np.abs(np.asarray(found(n * shortest)) / exact - 1) for n in (1, 2, 3, 100, 110, 128)}
    fine, coarse = (np.max([errors[n] for n in some], axis=0) for some in ((1, 2, 3), (100, 110, 128)))
    assert (fine < ([1e-10, 3e-7, 3e-7] if exponent == 1.5 else [1e-11, 1e-8, 1e-8])).all(), fine
    order = np.log(coarse / np.maximum(fine, 1e-15)) / np.log(128 / 3)
    assert order[0] >= 2 and (order[1:] >= exponent - 0.3).all(), order


@pytest.mark.repeats("0.2 of the cone, 0.01 m/s", "0.99 of the cone, 0.001 m/s")
@pytest.mark.parametrize("row", ORACLE["creep"]["rows"], ids=lambda row: f"{row['r']} of the cone, {row['us']} m/s")
def test_creep_on_a_slope(row):
    """What friction holds creeps at ``slip_speed r / sqrt(1 - r^2)``, by steps of 5 ms."""
    mu = 0.8
    angle = np.arctan(row["r"] * mu)
    slope = np.eye(4)
    slope[:3, :3] = [[np.cos(angle), 0, -np.sin(angle)], [0, 1, 0], [np.sin(angle), 0, np.cos(angle)]]
    builder = ModelBuilder().add_frame("slope", "world", slope)
    rail = np.eye(4)
    # a body that slides along the slope and off it, and does not turn
    builder.add_body("carriage", "world", joints.Prismatic(), axis=slope[:3, 0], placement=rail)
    builder.add_body("block", "carriage", joints.Prismatic(), axis=slope[:3, 2], mass=2.0)
    builder.add_contact(
        "sole", "block", contacts.sphere(0.1), against="slope", stiffness=1e5, dissipation=1.0, friction=mu,
        slip_speed=row["us"],
    )  # fmt: skip
    model = builder.build()
    rest = (2.0 * G * np.cos(angle) / 1e5) ** (2 / 3)
    q0 = jnp.array([0.0, 0.1 - rest])
    _, v = last(model, q0, jnp.zeros(2), 5e-3, 4000, lgsim.Rodas4)
    np.testing.assert_allclose(v[0], -row["speed"], rtol=1e-6)
    np.testing.assert_allclose(v[1], 0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("friction", [0.2, 0.6])
def test_a_ball_that_slides_ends_rolling_at_five_sevenths(friction):
    row = ORACLE["rolling"]["rows"][0]
    radius, stiffness = 0.1, 1e5
    model = ball(radius, stiffness=stiffness, friction=friction, slip_speed=1e-3, dissipation=1.0)
    q0 = model.neutral().at[2].set(radius - (G / stiffness) ** (2 / 3))
    v0 = jnp.zeros(6).at[0].set(row["v0"])
    _, v = last(model, q0, v0, 1e-3, 1000, lgsim.Rodas4)
    np.testing.assert_allclose(np.linalg.norm(v[:3]), row["v"], rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(v[3:]) * radius, row["v"], rtol=1e-6)


@pytest.mark.slow
def test_a_bounce_without_dissipation_keeps_its_energy():
    model = drop(stiffness=1e4)
    run = lgsim.simulate(model, jnp.array([0.1]), duration=1.0, dt=1e-4, save_every=10, step_check=False)
    assert np.ptp(run.kinetic_energy) > 0.9 and (run.q < 0).any()
    np.testing.assert_allclose(run.energy, run.energy[0], atol=1e-9 * np.ptp(run.kinetic_energy))


@pytest.mark.slow
@pytest.mark.parametrize("row", ORACLE["two_balls"]["rows"], ids=lambda row: f"k {row['k']:g}, m2 {row['m2']}")
def test_two_balls_exchange_their_momentum(row):
    """The Jacobian of the linear law, whose onset is a kink, by steps that are split where it begins and ends."""
    builder = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    for name, mass in (("left", row["m1"]), ("right", row["m2"])):
        builder.add_body(name, "world", joints.Prismatic(), axis=(1.0, 0.0, 0.0), mass=float(mass))
    with pytest.warns(UserWarning, match="below 3/2"):
        builder.add_contact(
            "hit", "left", contacts.sphere(row["r"]), contacts.round_surface(row["r"]), against="right",
            stiffness=row["k"], exponent=1.0,
        )  # fmt: skip
    model = builder.build()
    masses = np.array([row["m1"], row["m2"]], float)
    lasts = np.pi * np.sqrt(masses.prod() / masses.sum() / row["k"])

    def end(x):
        touch = (x[1] - x[0] - 2 * row["r"]) / (x[2] - x[3])
        q, v = x[:2], x[2:]
        for time in (touch, jnp.asarray(lasts), row["T"] - touch - lasts):
            q, v = last(model, q, v, time / 400, 400)
        return jnp.concatenate([q, v])

    start = jnp.asarray(np.array(row["start"], float))
    found, slopes = jax.jit(lambda x: (end(x), jax.jacfwd(end)(x)))(start)
    np.testing.assert_allclose(found, np.array(row["end"], float), atol=1e-8)
    np.testing.assert_allclose(masses @ np.asarray(found[2:]), masses[0] * float(row["start"][2]), rtol=1e-12)
    np.testing.assert_allclose(slopes, np.array(row["jacobian"], float), atol=1e-6)
    if row["k"] == 1e4:
        fixed = jax.jit(jax.jacfwd(lambda x: jnp.concatenate(last(model, x[:2], x[2:], 1e-5, 200_000))))(start)
        np.testing.assert_allclose(fixed, np.array(row["jacobian"], float), atol=2e-2)
    if row["k"] == 1e6:
        exchange = [[0, 1, 0, row["T"]], [1, 0, row["T"], 0], [0, 0, 0, 1], [0, 0, 1, 0]]
        np.testing.assert_allclose(slopes, exchange, atol=2e-3)


def hopper():
    """A sledge with a hanging arm on two balls that falls, slides and swings, every kind of number in it."""
    builder = ModelBuilder()
    place = np.eye(4)
    place[:3, 3] = [0.0, 0.0, 0.02]
    inertia = np.diag([0.02, 0.03, 0.04])
    builder.add_body(
        "body", "world", joints.Free(), placement=place, mass=2.0, center=(0.01, 0.0, 0.02), inertia=inertia
    )
    hip = np.eye(4)
    hip[:3, 3] = [0.1, 0.05, 0.0]
    builder.add_body(
        "arm", "body", joints.Revolute(), axis=(0.0, 1.0, 0.1), placement=hip, mass=0.5, center=(0.0, 0.0, -0.1),
        inertia=1e-3 * np.eye(3), damping=0.02, stiffness=1.0,
    )  # fmt: skip
    for i, x in enumerate([(0.15, 0.1), (0.15, -0.1), (-0.15, 0.1), (-0.15, -0.1)]):
        foot = np.eye(4)
        foot[:3, 3] = [*x, -0.1]
        builder.add_frame(f"foot{i}", "body", foot)
        builder.add_contact(
            f"foot{i}", f"foot{i}", contacts.sphere(0.02), stiffness=2e4, dissipation=0.5, friction=0.7, viscous=5.0,
            slip_speed=0.05,
        )  # fmt: skip
    return builder.build()


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [lgsim.MK4, pytest.param(lgsim.Rodas4, marks=pytest.mark.exhaustive)], ids=["MK4", "Rodas4"]
)
def test_gradients_of_a_hop_by_every_leaf(method):
    model = hopper()
    q0 = model.neutral().at[2].set(0.2).at[7].set(0.3)
    v0 = jnp.array([0.5, 0.1, 0.0, 0.3, -0.2, 0.4, 1.0])
    dt, steps = 5e-4, 4000

    def goal(model, dq, dv):
        q, v = last(model, model.retract(q0, dq), v0 + dv, dt, steps, method)
        return jnp.sum(q[:3] * jnp.array([1.0, 2.0, 3.0])) + 0.1 * jnp.sum(v)

    zero = jnp.zeros(model.nv)
    value, slopes = jax.jit(jax.value_and_grad(goal, argnums=(0, 1, 2)))(model, zero, zero)
    assert np.isfinite(value)
    value_of = jax.jit(goal)
    rng = np.random.default_rng(0)
    leaves = ("placements", "screws", "inertias", "frames", "gravity", "contacts", "damping", "stiffness")
    h = 1e-7

    def both(change):
        return [float(value_of(*change(s))) for s in (h, -h)]

    for name in leaves:
        x = getattr(model, name)
        move = jnp.asarray(rng.normal(size=x.shape)) * (jnp.abs(x) + (1e-2 if name in ("placements", "frames") else 0))
        if name in ("placements", "frames"):
            move = move.at[..., 3, :].set(0)
        ahead, back = both(lambda s, name=name, x=x, move=move: (_with(model, name, x + s * move), zero, zero))
        slope = slopes[0].drives[:, DRIVES.index(name)] if name in DRIVES else getattr(slopes[0], name)
        np.testing.assert_allclose(jnp.sum(slope * move), (ahead - back) / (2 * h), rtol=1e-5, atol=1e-6, err_msg=name)
    for place, slope in ((1, slopes[1]), (2, slopes[2])):
        move = jnp.asarray(rng.normal(size=model.nv))
        ahead, back = both(
            lambda s, place=place, move=move: (model, *(s * move if i == place else zero for i in (1, 2)))
        )
        np.testing.assert_allclose(jnp.sum(slope * move), (ahead - back) / (2 * h), rtol=1e-5, atol=1e-6)


def _with(model, name, value):
    """The model with a number that may be no pose or axis of length one."""
    return replace(model, **{name: value}) if name in STORED else model.replace(**{name: value})


@pytest.mark.slow
def test_momentum_of_two_bodies_in_contact():
    builder = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    for name in ("a", "b"):
        builder.add_body(name, "world", joints.Free(), mass=1.0, inertia=0.01 * np.eye(3))
    builder.add_contact(
        "touch", "a", contacts.capsule(0.1, 0.3), contacts.round_surface(0.2), against="b", stiffness=1e3,
        dissipation=0.5, friction=0.5,
    )  # fmt: skip
    model = builder.build()
    q0 = model.neutral().at[7].set(0.35)
    v0 = jnp.array([1.0, 0.2, 0, 0.5, 0, 2.0, -0.5, 0, 0, 0, 1.0, 0])
    run = lgsim.simulate(model, q0, v0, duration=0.3, dt=1e-4, save_every=300, step_check=False)
    momentum = run.momentum
    assert np.abs(run.v[-1, :3] - v0[:3]).max() > 0.5, "they hit each other"
    np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], momentum.shape), atol=1e-12)
