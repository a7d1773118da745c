"""Closed configurations against closed forms: four-bars by intersections of circles, a Delta robot's arms likewise."""

import json
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import lgsim
from lgsim.dynamics.loops.assembly import CLOSE_RESULTS, close_loops, loop_branches
from lgsim.dynamics.loops.closure_checks import check_closed, check_mobile
from lgsim.multibody.joints import Fixed, Free, Prismatic, Revolute, Spherical
from lgsim.multibody.model import Model
from lgsim.support.verdict import Outcome

CRANK, COUPLER, ROCKER, GROUND = 0.3, 0.7, 0.5, 0.6
DATA = json.loads((Path(__file__).parents[2] / "data" / "loops.json").read_text())


def at(x=0.0, y=0.0, z=0.0):
    """A pose without a turn."""
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def body(length):
    """The mass of a link along x."""
    inertia = np.diag([0.002, 0.01 + length**2 / 12, 0.01 + length**2 / 12])
    return {"mass": 1.0 + length, "center": (length / 2, 0, 0), "inertia": inertia}


@cache
def four_bar(loop="hinge", length=None, dtype=None) -> Model:
    """A planar linkage: a crank and a rocker on the ground, and a coupler between them."""
    builder = lgsim.ModelBuilder(dtype=dtype)
    builder.add_body("crank", "world", Revolute(), axis=[0, 0, 1], **body(CRANK))
    if loop != "rod":
        builder.add_body("coupler", "crank", Revolute(), axis=[0, 0, 1], placement=at(CRANK), **body(COUPLER))
        builder.add_frame("coupler end", "coupler", at(COUPLER))
    builder.add_body("rocker", "world", Revolute(), axis=[0, 0, 1], placement=at(GROUND), **body(ROCKER))
    builder.add_frame("crank end", "crank", at(CRANK))
    builder.add_frame("rocker end", "rocker", at(ROCKER))
    if loop == "rod":
        return builder.add_rod("rod", "crank end", "rocker end", COUPLER if length is None else length).build()
    kinds = {"hinge": Revolute(), "ball": Spherical()}
    return builder.add_loop("ring", "coupler end", "rocker end", kinds[loop]).build()


def closed_form(theta, sign, lengths=(CRANK, COUPLER, ROCKER, GROUND)):
    """(crank, coupler, rocker) angles at a crank angle, by the intersection of two circles."""
    crank, coupler, rocker, ground = lengths
    P = jnp.stack([crank * jnp.cos(theta), crank * jnp.sin(theta)])
    across = jnp.stack([ground + 0 * theta, 0 * theta]) - P
    d = jnp.sqrt(across @ across)
    along = (coupler**2 - rocker**2 + d**2) / (2 * d)
    height = sign * jnp.sqrt(coupler**2 - along**2)
    unit = across / d
    Q = P + along * unit + height * jnp.stack([-unit[1], unit[0]])
    beta = jnp.arctan2(Q[1] - P[1], Q[0] - P[0])
    return jnp.stack([theta, beta - theta, jnp.arctan2(Q[1], Q[0] - ground)])


def turned(a, b):
    """The difference of angles, less whole turns."""
    return np.abs((np.asarray(a) - np.asarray(b) + np.pi) % (2 * np.pi) - np.pi)


solve = jax.jit(close_loops, static_argnames="hold")


# The nearest one.


@pytest.mark.repeats("0.4-ball", "1.9-hinge", "-2.5-ball")
@pytest.mark.parametrize("loop", ["hinge", "ball"])
@pytest.mark.parametrize("theta", [0.4, 1.9, -2.5])
def test_a_held_crank_gives_the_closed_form(loop, theta):
    for sign in (1, -1):
        exact = closed_form(theta, sign)
        start = exact + jnp.array([0, 0.3, -0.2])
        found = solve(four_bar(loop), start, hold=("crank",))
        assert found.verdict(four_bar(loop)).outcome is Outcome.CONVERGED
        assert float(found.q[0]) == float(start[0])
        assert turned(found.q, exact).max() < 1e-13
        assert np.abs(found.residual).max() < 1e-14
        assert np.abs(found.gap).max() < 1e-14


@pytest.mark.slow
def test_a_rod_gives_the_closed_form():
    exact = closed_form(0.8, 1)
    found = solve(four_bar("rod"), jnp.array([0.8, exact[2] - 0.3]), hold=("crank",))
    assert turned(found.q, exact[jnp.array([0, 2])]).max() < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_nearest_one_has_the_least_distance_of_the_curve(seed):
    model = four_bar()
    theta, *off = np.random.default_rng(seed).uniform(-0.4, 0.4, 4)
    start = closed_form(jnp.asarray(1 + theta), 1) + jnp.array(off)
    M = lgsim.mass_matrix(model, start)

    def square(theta):
        x = closed_form(theta, 1) - start
        return float(x @ M @ x)

    best = minimize_scalar(square, bounds=(0.2, 1.8), method="bounded", options={"xatol": 1e-10})
    found = solve(model, start)
    assert abs(float(found.q[0]) - best.x) < 1e-7
    # and the way there stands on the curve, in the metric
    tangent = jax.jacfwd(lambda t: closed_form(t, 1))(found.q[0])
    x = found.q - start
    assert abs(float(tangent @ M @ x)) < 1e-12 * float(jnp.sqrt((x @ M @ x) * (tangent @ M @ tangent)) + 1)


def test_a_closed_configuration_stays():
    """To the rounding of its gap, some eps, which the inverse of the least singular value takes to angles."""
    exact = closed_form(0.4, 1)
    found = solve(four_bar(), exact)
    rows = np.linalg.svd(lgsim.loop_jacobian(four_bar(), exact), compute_uv=False)
    least = rows[rows > 1e-9].min()
    assert least > 0.1 and np.abs(found.q - exact).max() < 4 * np.finfo(float).eps / least


def test_whole_turns_are_not_made():
    exact = closed_form(0.4, 1) + 2 * np.pi * jnp.array([3.0, -1.0, 2.0])
    found = solve(four_bar(), exact + jnp.array([0, 0.05, 0]))
    assert np.abs(found.q - exact).max() < 0.1


def test_velocities_go_along_the_curve():
    model, exact = four_bar(), closed_form(0.4, 1)
    v = jnp.array([0.3, -1.0, 2.0])
    tangent = jax.jacfwd(lambda t: closed_form(t, 1))(jnp.asarray(0.4))
    M = lgsim.mass_matrix(model, exact)
    near = tangent * (tangent @ M @ v) / (tangent @ M @ tangent)
    assert np.abs(solve(model, exact, v=v).v - near).max() < 1e-13
    held = solve(model, exact, hold=("crank",), v=v).v
    assert float(held[0]) == 0.3
    assert np.abs(held - 0.3 * tangent).max() < 1e-13


@pytest.mark.slow
def test_half_turns_are_found_and_undone():
    """A hinge whose axes are opposite has no residual."""
    model = (
        lgsim.ModelBuilder()
        .add_body("top", "world", Spherical(), mass=1.0, inertia=np.diag([0.1, 0.2, 0.3]))
        .add_frame("end", "top", at(z=0.2))
        .add_frame("post", "world", at(z=0.2))
        .add_loop("bearing", "post", "end", Revolute())
        .build()
    )
    over = jnp.array([0.0, 1.0, 0.0, 0.0])
    # the position tells it here, and not where the axis alone is tied
    assert turned(np.asarray(close_loops(model, over).gap), 0).max() < 1e-9
    q = close_loops(model, over).q
    assert abs(float(q[1] ** 2 + q[2] ** 2)) < 1e-20


@pytest.mark.slow
def test_folded_hinges_are_found_and_undone():
    builder = lgsim.ModelBuilder()
    builder.add_body("top", "world", Spherical(), mass=1.0, inertia=np.diag([0.1, 0.2, 0.3]))
    model = builder.add_frame("end", "top").add_loop("bearing", "world", "end", Revolute()).build()
    folded = jnp.array([0.0, 1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"'bearing' is open by 180 deg"):
        check_closed(model, folded)
    found = close_loops(model, folded)
    assert found.verdict(model).converged
    assert float(found.q[1] ** 2 + found.q[2] ** 2) < 1e-20
    tilted = jnp.array([np.cos(0.4), np.sin(0.4), 0.0, 0.0])
    near = close_loops(model, tilted).q
    assert np.abs(near - jnp.array([1.0, 0, 0, 0])).max() < 1e-12


def test_stretched_starts_are_left():
    """All links along x: the gap cannot shrink at first order."""
    found = solve(four_bar(), jnp.zeros(3))
    assert found.verdict(four_bar()).outcome is Outcome.CONVERGED
    signs = [turned(found.q, closed_form(found.q[0], sign)).max() for sign in (1, -1)]
    assert min(signs) < 1e-9


@pytest.mark.slow
def test_a_rod_that_is_too_short_is_told():
    short = 0.05
    model = (
        lgsim.ModelBuilder()
        .add_body("left", "world", Revolute(), axis=[0, 0, 1], **body(0.2))
        .add_body("right", "world", Revolute(), axis=[0, 0, 1], placement=at(1.0), **body(0.3))
        .add_frame("left end", "left", at(0.2))
        .add_frame("right end", "right", at(0.3))
        .add_rod("tie", "left end", "right end", short)
        .build()
    )
    found = close_loops(model, jnp.array([0.3, 2.5]))
    assert bool(found.result == CLOSE_RESULTS.not_closed)
    missing = 1.0 - 0.2 - 0.3 - short
    # steps of Gauss and Newton converge slowly to a gap that stays; they are given up some 1e-4 rad beside its minimum
    assert abs(float(found.gap[0, 0]) - missing) < 1e-7
    assert turned(found.q, [0, np.pi]).max() < 1e-3
    verdict = found.verdict(model)
    assert verdict.outcome is Outcome.FAILED
    assert "loop 'tie' stays open by 450 mm. No configuration near the start closes the loops" in str(verdict)
    assert loop_branches(model, jnp.zeros(2), 2, jax.random.key(0)).q.shape == (0, 2)
    # long enough, it closes
    starts = model.loop_slices["tie"].start
    longer = model.replace(loops=model.loops.at[starts].set(0.6))
    assert close_loops(longer, jnp.array([0.3, 2.5])).verdict(longer).converged


@pytest.mark.slow
def test_couplings_are_closed():
    model = (
        lgsim.ModelBuilder()
        .add_body("wheel", "world", Revolute(), axis=[0, 0, 1], **body(0.2))
        .add_body("slide", "world", Prismatic(), axis=[1, 0, 0], **body(0.3))
        .add_coupling("cam", "wheel", "slide", [0.1, 0.0, 0.5])
        .build()
    )
    found = solve(model, jnp.array([7.0, 0.0]), hold=("wheel",))
    assert float(found.q[0]) == 7.0
    assert abs(float(found.q[1]) - (0.1 + 0.5 * 49)) < 1e-12
    M = np.asarray(lgsim.mass_matrix(model, jnp.zeros(2)))

    def square(x):
        return M[0, 0] * (x - 0.5) ** 2 + M[1, 1] * (0.1 + 0.5 * x**2 - 1.0) ** 2

    best = minimize_scalar(square, bounds=(0.3, 2.0), method="bounded", options={"xatol": 1e-10})
    free = solve(model, jnp.array([0.5, 1.0]))
    assert abs(float(free.q[0]) - best.x) < 1e-7
    by = jax.jacfwd(lambda c: close_loops(model.replace(loops=c), jnp.array([0.7, 0.0]), ("wheel",)).q)(model.loops)
    assert np.abs(by - np.array([[0, 0, 0], [1, 0.7, 0.49]])).max() < 1e-13


# Branches.


@pytest.mark.repeats("rod")
@pytest.mark.parametrize("loop", ["hinge", "rod"])
def test_the_four_bar_has_both_branches(loop):
    model, take = four_bar(loop), jnp.array([0, 2] if loop == "rod" else [0, 1, 2])
    exact = [np.asarray(closed_form(0.9, sign))[np.asarray(take)] for sign in (1, -1)]
    q = jnp.asarray(exact[1]) + jnp.array([0, *[0.1] * (len(take) - 1)])
    found = loop_branches(model, q, 4, jax.random.key(1), hold=("crank",))
    assert found.q.shape == (2, len(take))
    assert turned(found.q[0], exact[1]).max() < 1e-12
    assert turned(found.q[1], exact[0]).max() < 1e-12
    assert loop_branches(model, q, 1, jax.random.key(1), hold=("crank",)).q.shape == (1, len(take))
    with pytest.raises(ValueError, match=r"count: expected at least 1, got 0"):
        loop_branches(model, q, 0, jax.random.key(1))
    with pytest.raises(ValueError, match=r"got tracers: the number of assemblies depends"):
        jax.jit(lambda q: loop_branches(model, q, 1, jax.random.key(1)))(q)
    with pytest.raises(ValueError, match=r"q: expected shape \(\d,\) of one configuration, got \(2, \d\)"):
        loop_branches(model, jnp.stack([q, q]), 1, jax.random.key(1))


# Derivatives.


@pytest.mark.slow
def test_derivatives_are_those_of_the_closed_form():
    def held(model, theta):
        return close_loops(model, jnp.stack([theta, *closed_form(0.7, 1)[1:]]), ("crank",)).q

    model, theta = four_bar(), jnp.asarray(0.7)
    exact = jax.jacfwd(lambda t: closed_form(t, 1))(theta)
    for derivative in (jax.jacfwd, jax.jacrev):
        assert np.abs(derivative(held, 1)(model, theta) - exact).max() < 1e-12
    lengths = jnp.array([CRANK, COUPLER, ROCKER, GROUND])
    names = model.topology.frame_names

    def with_lengths(x):
        placements = model.placements.at[1, 0, 3].set(x[0]).at[2, 0, 3].set(x[3])
        frames = model.frames.at[names.index("coupler end"), 0, 3].set(x[1])
        return model.replace(placements=placements, frames=frames.at[names.index("rocker end"), 0, 3].set(x[2]))

    by_lengths = jax.jacfwd(lambda x: closed_form(0.7, 1, x))(lengths)
    assert np.abs(jax.jacrev(lambda x: held(with_lengths(x), theta))(lengths) - by_lengths).max() < 1e-12


@pytest.mark.slow
def test_derivatives_of_velocities_are_those_of_the_closed_form():
    def held(theta):
        q = jnp.stack([theta, *closed_form(0.7, 1)[1:]])
        return close_loops(four_bar(), q, ("crank",), jnp.ones(3)).v

    curve = jax.jacfwd(jax.jacfwd(lambda t: closed_form(t, 1)))(0.7)
    assert np.abs(jax.jacfwd(held)(0.7) - curve).max() < 1e-12
    assert np.abs(jax.jacrev(held)(0.7) - curve).max() < 1e-12


def differences(f, x, h=1e-4):
    """The derivative along each entry, of fourth order."""
    columns = []
    for e in np.eye(x.size).reshape(x.size, *x.shape):
        a, b, c, d = (f(x + s * h * e) for s in (1, -1, 2, -2))
        columns.append((8 * (a - b) - (c - d)) / (12 * h))
    return np.stack(columns, axis=-1).reshape(*columns[0].shape, *x.shape)


@pytest.mark.slow
def test_derivatives_of_the_nearest_one_are_those_of_differences():
    """Start, masses and velocities of a machine that keeps a freedom."""
    model = four_bar()
    start, v = closed_form(0.7, 1) + jnp.array([0.2, -0.3, 0.4]), jnp.array([1.0, 0.5, -0.7])

    @jax.jit
    def f(x):
        moved = model.replace(inertias=model.inertias * x[6:][:, None])
        found = close_loops(moved, x[:3], v=x[3:6])
        return jnp.concatenate([found.q, found.v])

    x = jnp.concatenate([start, v, jnp.ones(3)])
    exact = jax.jit(jax.jacfwd(f))(x)
    assert np.abs(exact - differences(f, x)).max() < 1e-8
    assert np.abs(exact - jax.jit(jax.jacrev(f))(x)).max() < 1e-12
    assert np.abs(exact[:, 6:]).max() > 1e-3


@pytest.mark.slow
def test_derivatives_on_groups_are_those_of_differences():
    model = delta()
    rng = np.random.default_rng(0)
    q, v = jnp.asarray(DATA["delta"]["states"][0]["q"]), jnp.asarray(rng.normal(size=model.nv))
    q = model.retract(q, 0.1 * jnp.asarray(rng.normal(size=model.nv)))
    dx, dv = (jnp.asarray(rng.normal(size=model.nv)) for _ in range(2))
    frames, masses = (rng.normal(size=s) for s in ((*model.frames.shape[:1], 3), model.inertias.shape[:1]))
    base = jax.jit(lambda: close_loops(model, q).q)()

    @jax.jit
    def f(s):
        moved = model.replace(
            frames=model.frames.at[:, :3, 3].add(s * frames), inertias=model.inertias * (1 + s * masses)[:, None]
        )
        found = close_loops(moved, model.retract(q, s * dx), v=v + s * dv)
        return jnp.concatenate([model.difference(base, found.q), found.v])

    exact = jax.jit(lambda s: jax.jvp(f, (s,), (jnp.ones_like(s),))[1])(jnp.asarray(0.0))
    h = 1e-5
    a, b, c, d = (f(jnp.asarray(s * h)) for s in (1, -1, 2, -2))
    other = (8 * (a - b) - (c - d)) / (12 * h)
    assert np.abs(exact - other).max() < 1e-8 * np.abs(exact).max()


# Many, and in float32.


@pytest.mark.slow
def test_a_batch_is_what_each_is():
    model = four_bar()
    starts = closed_form(0.5, 1)[None] + jnp.asarray(np.random.default_rng(3).uniform(-0.5, 0.5, (4, 3)))
    v = jnp.ones(3)
    many = solve(model, starts, v=v)
    mapped = jax.vmap(lambda q: close_loops(model, q, v=v))(starts)
    for i, start in enumerate(starts):
        one = solve(model, start, v=v)
        for found in (many, mapped):
            assert np.abs(found.q[i] - one.q).max() < 1e-10
            assert np.abs(found.v[i] - one.v).max() < 1e-9
        assert many.verdict(model, i).converged
    with pytest.raises(ValueError, match=r"index: expected one of the configurations of shape \(4,\)"):
        many.verdict(model)


@pytest.mark.slow
def test_float32_closes_to_its_rounding():
    model = four_bar(dtype=jnp.float32)
    exact = closed_form(0.4, 1)
    start = jnp.asarray(exact + jnp.array([0.0, 0.3, -0.2]), jnp.float32)
    found = solve(model, start, hold=("crank",))
    assert found.verdict(model).converged
    assert found.q.dtype == jnp.float32
    assert turned(found.q, exact).max() < 2e-6
    check_closed(model, found.q)


# A Delta robot.


@cache
def delta() -> Model:
    joints = {"revolute": Revolute, "free": Free}
    builder = lgsim.ModelBuilder()
    for x in DATA["delta"]["bodies"]:
        axis = {} if x["axis"] is None else {"axis": x["axis"]}
        builder.add_body(
            x["name"], x["parent"], joints[x["joint"]](), placement=np.array(x["placement"]), mass=x["mass"],
            center=x["center"], inertia=np.array(x["inertia"]), **axis,
        )  # fmt: skip
    for i, x in enumerate(DATA["delta"]["loops"]):
        builder.add_frame(f"a{i}", x["a"], np.array(x["A"])).add_frame(f"b{i}", x["b"], np.array(x["B"]))
        builder.add_loop(f"ball{i}", f"a{i}", f"b{i}", Spherical())
    return builder.build()


def arm_angles(arm, p):
    """Both angles of an arm for the platform at p without a turn: where a circle of elbows meets a sphere."""
    bodies = {x["name"]: x for x in DATA["delta"]["bodies"]}
    loop = next(x for x in DATA["delta"]["loops"] if x["b"] == f"rod{arm}l")
    base, elbow = np.array(bodies[f"arm{arm}"]["placement"]), np.array(bodies[f"cross{arm}l"]["placement"])[:3, 3]
    target = np.array(bodies["platform"]["placement"])[:3, 3] + p + np.array(loop["A"])[:3, 3]
    reach = np.linalg.norm(np.array(loop["B"])[:3, 3])
    own = base[:3, :3].T @ (target - base[:3, 3])
    axis = np.array(bodies[f"arm{arm}"]["axis"], float)
    flat, along = elbow - axis * (axis @ elbow), axis * (axis @ elbow)
    # |own - along - flat cos - (axis x flat) sin|^2 = reach^2
    d = own - along
    A, B = 2 * d @ flat, 2 * d @ np.cross(axis, flat)
    C = d @ d + flat @ flat - reach**2
    middle, spread = np.arctan2(B, A), np.arccos(C / np.hypot(A, B))
    return np.array([middle - spread, middle + spread])


@pytest.mark.slow
@pytest.mark.parametrize("p", [(0.0, 0.0, 0.0), (0.05, -0.03, 0.04)])
def test_the_arms_of_a_delta_robot_are_those_of_the_closed_form(p):
    model = delta()
    q = model.neutral().at[:3].set(jnp.array(p))
    exact = [arm_angles(arm, np.array(p)) for arm in range(3)]
    for branch in (0, 1):
        start = q
        for arm in range(3):
            start = start.at[model.q_slices[f"arm{arm}"]].set(exact[arm][branch] + 0.05)
        found = solve(model, start, hold=("platform",))
        assert found.verdict(model).converged
        assert np.array_equal(found.q[:7], start[:7])
        angles = [float(found.q[model.q_slices[f"arm{arm}"]][0]) for arm in range(3)]
        off = [min(turned(angle, x) for x in exact[arm]) for arm, angle in enumerate(angles)]
        assert max(off) < 1e-9


@pytest.mark.slow
def test_a_delta_robot_has_several_assemblies():
    """With its arms held the platform is where three spheres meet, above and below."""
    model = delta()
    p = np.array([0.02, -0.03, 0.04])
    q = model.neutral().at[:3].set(jnp.asarray(p))
    for arm in range(3):
        q = q.at[model.q_slices[f"arm{arm}"]].set(arm_angles(arm, p)[0])
    arms = tuple(f"arm{arm}" for arm in range(3))
    found = loop_branches(model, q, 6, jax.random.key(2), hold=arms)
    assert len(found.q) >= 2
    assert np.all(np.abs(found.gap) < 1e-12)
    upright = [x for x in np.asarray(found.q) if abs(abs(x[3]) - 1) < 1e-9]
    assert len(upright) >= 1
    assert any(np.abs(x[:3] - p).max() < 1e-9 for x in upright)
    for x in upright:
        for arm in range(3):
            angle = float(q[model.q_slices[f"arm{arm}"]][0])
            assert min(turned(angle, y) for y in arm_angles(arm, x[:3])) < 1e-8


# What cannot be.


def test_bad_arguments_are_named():
    model, q = four_bar(), closed_form(0.4, 1)
    tree = lgsim.ModelBuilder().add_body("link", "world", Revolute(), **body(1)).build()
    with pytest.raises(ValueError, match=r"close_loops: expected a model with loops, got one without; ModelBuilder"):
        close_loops(tree, jnp.zeros(1))
    with pytest.raises(ValueError, match=r"loop_branches: expected a model with loops"):
        loop_branches(tree, jnp.zeros(1), 1, jax.random.key(0))
    with pytest.raises(ValueError, match=r"hold: expected names of joints, got 'crnk'; did you mean 'crank'\?"):
        close_loops(model, q, ("crnk",))
    with pytest.raises(ValueError, match=r"hold: expected a sequence of joint names, got the string 'crank'"):
        close_loops(model, q, "crank")
    with pytest.raises(ValueError, match=r"q: expected shape"):
        close_loops(model, jnp.zeros(4))
    mimic = (
        lgsim.ModelBuilder()
        .add_body("first", "world", Revolute(), **body(1))
        .add_body("second", "first", Revolute(), placement=at(1.0), mimic=("first", 2.0, 0.0), **body(1))
        .add_body("third", "second", Revolute(), placement=at(1.0), **body(1))
        .add_coupling("tie", "first", "third", [0.0, 1.0])
        .build()
    )
    with pytest.raises(ValueError, match=r"hold: the joint 'second' mimics 'first'; hold 'first'"):
        close_loops(mimic, jnp.zeros(2), ("second",))
    found = close_loops(mimic, jnp.array([0.3, 0.0]), ("first",))
    assert np.abs(found.q - 0.3).max() < 1e-14


def test_open_starts_are_refused():
    model, q = four_bar(), closed_form(0.4, 1)
    open_ = q.at[2].add(0.01)
    said = (
        r"q0: the loop 'ring' is open by 5 mm, more than 1e-06 of the model's length of .* m;"
        r" lgsim.close_loops\(model, q0\) finds the nearest configuration that closes all loops"
    )
    with pytest.raises(ValueError, match=said):
        lgsim.simulate(model, open_, duration=0.01, dt=0.001)
    with pytest.raises(ValueError, match=said):
        lgsim.rollout(model, open_, jnp.zeros(3), dt=0.001, steps=2)
    with pytest.raises(ValueError, match=said):
        lgsim.optimize.MultibodyDynamics(model, dt=0.01).state(open_)
    with pytest.raises(ValueError, match=said):
        # numbers that no tracer holds are known inside of jit too
        jax.jit(lambda v: lgsim.rollout(model, open_, v, dt=0.001, steps=2).q)(jnp.zeros(3))
    # gaps of rounding are none
    check_closed(model, q + 1e-8)
    jax.jit(lambda q: check_closed(model, q))(open_)


def test_tearing_velocities_are_refused():
    model, q = four_bar(), closed_form(0.4, 1)
    tangent = jax.jacfwd(lambda t: closed_form(t, 1))(0.4)
    check_closed(model, q, 3 * tangent)
    said = (
        r"v0: the loop 'ring' opens at 500 mm/s, more than 1e-06 of the speed of the fastest joint.*"
        r"lgsim.close_loops\(model, q0, v=v0\) finds the nearest velocity that keeps all loops closed"
    )
    with pytest.raises(ValueError, match=said):
        lgsim.simulate(model, q, jnp.array([0.0, 0, 1.0]), duration=0.01, dt=0.001)


def test_the_sample_of_a_study_is_named():
    from lgsim import montecarlo

    model, q = four_bar(), closed_form(0.4, 1)
    rollout = montecarlo.Rollout(model, q, dt=0.001, steps=2)
    outputs = {"end": lambda motion: motion.q[-1]}
    with pytest.raises(ValueError, match=r"q0 of sample 0: the loop 'ring' is open by .* mm"):
        montecarlo.Study({"q0": montecarlo.Normal(q, 0.01 * jnp.ones(3))}, rollout, outputs=outputs, samples=8, seed=1)


@pytest.mark.slow
def test_locked_machines_are_refused():
    builder = lgsim.ModelBuilder()
    q = closed_form(0.4, 1)
    builder.add_body("crank", "world", Revolute(), axis=[0, 0, 1], **body(CRANK))
    builder.add_body("coupler", "crank", Revolute(), axis=[0, 0, 1], placement=at(CRANK), **body(COUPLER))
    builder.add_body("rocker", "world", Revolute(), axis=[0, 0, 1], placement=at(GROUND), **body(ROCKER))
    builder.add_frame("coupler end", "coupler", at(COUPLER)).add_frame("rocker end", "rocker", at(ROCKER))
    builder.add_loop("ring", "coupler end", "rocker end", Revolute())
    check_mobile(builder.build(), q)
    builder.add_frame("post", "world", at(0, -1)).add_frame("crank end", "crank", at(CRANK))
    far = np.hypot(CRANK * np.cos(0.4), CRANK * np.sin(0.4) + 1)
    locked = builder.add_rod("prop", "post", "crank end", far).build()
    said = r"model: its loops \('ring', 'prop'\) lock it: 3 of their 6 rows are independent, as many as it has degrees"
    with pytest.raises(ValueError, match=said):
        check_mobile(locked, q)
    with pytest.raises(ValueError, match=said):
        lgsim.simulate(locked, q, duration=0.01, dt=0.001)


@pytest.mark.slow
def test_fixed_loops_close():
    builder = lgsim.ModelBuilder()
    builder.add_body("box", "world", Free(), mass=1.0, inertia=np.diag([0.1, 0.2, 0.3]))
    target = at(0.1, 0.2, 0.3)
    target[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    model = builder.add_frame("dock", "world", target).add_loop("weld", "dock", "box", Fixed()).build()
    for turn in ([1.0, 0, 0, 0], [0.0, 1, 0, 0], [0.5, -0.5, 0.5, 0.5]):
        found = solve(model, jnp.array([1.0, -1.0, 0.5, *turn]))
        assert found.verdict(model).converged
        T = lgsim.forward_kinematics(model, found.q)[model.frame_names.index("box")]
        assert np.abs(T - target).max() < 1e-12
