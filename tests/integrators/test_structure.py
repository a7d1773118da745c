"""What a method keeps exactly (group, orbits, constant twists), what its stages see, how many exponentials it takes."""

import re
from functools import cache

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy.special import ellipk

import lgsim
from lgsim import actions
from lgsim.integrators.commutator_free import CommutatorFree
from lgsim.integrators.group_words import Exponentials
from lgsim.integrators.munthe_kaas import MuntheKaas
from lgsim.integrators.tableau import ButcherTableau, CommutatorFreeTableau
from lgsim.systems import euler_poisson, free_rigid_body
from tests.integrators import problems
from tests.integrators.engines import default

EVERY_METHOD = pytest.mark.parametrize("name", default(lgsim.METHODS))
SINGLE = default(["MK4", "MK8", "CF3", "CF4", "CG4"], ("MK4", "CF3"))

# A constant twist is integrated exactly by every method, at any step (Manifolds.jl #609).

SCREW = np.array([0.48, -0.64, 0.6, 0.36, 0.48, -0.8])  # both parts of size one
ANGLES = (1e-3, 0.7, 2.0)  # of rotation in a step


@cache
def displacement(twist, count):
    """exp(count twist) of the matrix, with 40 digits."""
    with mpmath.workdps(40):
        matrix = problems.hat(np.array([mpmath.mpf(x) for x in twist])) * count
        return np.array(mpmath.expm(mpmath.matrix(matrix.tolist())).tolist(), float)


def check_constant_twist(method, dtype):
    """Both translations at once, from a start that commutes with nothing, after 1 to 7 steps."""
    action = actions.Product(actions.LeftTranslation(lgsim.SE3), actions.RightTranslation(lgsim.SE3))
    start = problems.START_POSE.astype(dtype)
    twists = np.outer(ANGLES, SCREW).astype(dtype)

    def solve(twist):
        state = (jnp.asarray(start), jnp.asarray(start))
        return lgsim.integrate(
            method, action, lambda t, y, u: jnp.concatenate([u, u]), state, dt=1.0, steps=7, args=twist
        )

    solution = jax.vmap(solve)(jnp.asarray(twists))
    eps = np.finfo(dtype).eps
    for i, twist in enumerate(twists):
        for k in range(8):
            exact = displacement(tuple(map(float, twist)), k)
            allowed = 4 * eps * (k + 1) * max(1.0, np.abs(exact).max())
            left, right = (np.asarray(y[i, k], float) for y in solution.ys)
            assert np.abs(left - exact @ start).max() <= allowed
            assert np.abs(right - start @ exact).max() <= allowed
    if method.embedded_order is not None:
        assert np.max(solution.error_estimate) < 16 * eps


@pytest.mark.repeats
@EVERY_METHOD
def test_constant_twist_is_integrated_exactly(name):
    check_constant_twist(lgsim.METHODS[name], np.float64)


@pytest.mark.slow
@pytest.mark.float32
@pytest.mark.parametrize("name", SINGLE)
def test_constant_twist_is_integrated_exactly_in_float32(name):
    check_constant_twist(lgsim.METHODS[name], np.float32)


# The group's constraint without any projection.

STEPS = 100_000
FREQUENCIES = np.array([1.3, 0.7, 2.1, 0.9, 1.7, 0.6])


def gap_of_matrix(y):
    rotation = y[..., :3, :3]
    return np.abs(np.swapaxes(rotation, -1, -2) @ rotation - np.eye(3)).max()


def gap_of_quaternion(y):
    return np.abs(np.linalg.norm(y, axis=-1) - 1).max()


def gaps(method, group, gap, start, dt):
    """The largest gap of 1e5 steps of two constant and of two changing twists, in units of eps."""
    action, dtype = actions.RightTranslation(group), start.dtype
    rng = np.random.default_rng(7)
    constant, amplitude = 0.7 * rng.normal(size=(2, 4, action.dim))
    amplitude[:2] = 0
    frequency = np.broadcast_to(FREQUENCIES[: action.dim], amplitude.shape)

    def solve(args):
        def twist(t, y, args):
            return args[0] + args[1] * jnp.sin(args[2] * t)

        settings = {"dt": dt, "steps": STEPS, "save_every": STEPS // 10, "checkpoint": None}
        return lgsim.integrate(method, action, twist, start, args=args, **settings).ys

    ys = np.asarray(jax.vmap(solve)(jnp.asarray(np.stack([constant, amplitude, frequency], axis=1), dtype)), float)
    eps = np.finfo(dtype).eps
    return gap(ys[:2]) / eps, gap(ys[2:]) / eps


@pytest.mark.parametrize(
    ("name", "group"),
    default(
        [("MK4", "SE3"), ("CF4", "SE3"), ("MK8", "SO3"), ("CF3", "SO3"), ("CG4", "SO3")],
        [("MK4", "SE3"), ("CF3", "SO3")],
    ),
)
def test_rotation_matrices_stay_orthogonal(name, group):
    """Within 2 N eps for any motion (5e-11 in float64), within 8 eps sqrt(N) where the twist changes."""
    space = getattr(lgsim, group)
    any_motion, changing = gaps(lgsim.METHODS[name], space, gap_of_matrix, space.identity(), 0.02)
    assert any_motion < 2 * STEPS
    assert changing < 8 * np.sqrt(STEPS)


@pytest.mark.parametrize("name", default(["MK4", "CF4"]))
def test_quaternions_stay_unit(name):
    start = jnp.array([0.5, -0.5, 0.1, 0.7])  # of norm one
    any_motion, changing = gaps(lgsim.METHODS[name], lgsim.UnitQuaternion, gap_of_quaternion, start, 0.02)
    assert any_motion < 2 * STEPS
    assert changing < 8 * np.sqrt(STEPS)


@pytest.mark.float32
@pytest.mark.parametrize("name", default(["MK4", "CF4"]))
def test_quaternions_stay_unit_in_float32(name):
    start = jnp.array([0.5, -0.5, 0.1, 0.7], jnp.float32)
    any_motion, changing = gaps(lgsim.METHODS[name], lgsim.UnitQuaternion, gap_of_quaternion, start, 0.02)
    assert any_motion < 2 * STEPS
    assert changing < 8 * np.sqrt(STEPS)


@pytest.mark.float32
@pytest.mark.parametrize("name", default(["MK4", "CF4", "CG4"], ("CF4",)))
def test_rotation_matrices_stay_orthogonal_in_float32(name):
    """2 N eps. Single precision resolves 1 - cos of a small angle coarsely, so its rounding is not always random."""
    start = jnp.eye(3, dtype=jnp.float32)
    any_motion, changing = gaps(lgsim.METHODS[name], lgsim.SO3, gap_of_matrix, start, 0.1)
    assert max(any_motion, changing) < 2 * STEPS


# Orbits of other actions.


@pytest.mark.repeats
@EVERY_METHOD
def test_orbits_are_kept_to_rounding(name):
    """Casimirs of the coadjoint action and the tangent sphere, at steps far too large for the motion."""
    top, swing = euler_poisson(), problems.pendulum()
    action = actions.Product(top.action, swing.action)

    def field(t, y, args):
        return jnp.concatenate([top.field(t, y[0], args[0]), swing.field(t, y[1], args[1])])

    start, steps = (top.initial, swing.initial), 60
    args = (top.args, swing.args)
    solution = lgsim.integrate(lgsim.METHODS[name], action, field, start, dt=0.2, steps=steps, args=args)
    mu, state = (np.asarray(y) for y in solution.ys)
    assert np.abs(state[-1] - state[0]).max() > 0.1
    size = np.abs(np.concatenate([mu, state], axis=1)).max()
    for values in (
        np.sum(mu[:, :3] ** 2, axis=1),  # |Gamma|^2
        np.sum(mu[:, :3] * mu[:, 3:], axis=1),  # Gamma . Pi
        np.sum(state[:, :3] ** 2, axis=1),  # |q|^2
        np.sum(state[:, :3] * state[:, 3:], axis=1),  # q . omega
    ):
        assert np.abs(values - values[0]).max() < 8 * steps * np.finfo(float).eps * max(1.0, size)


# What the stages see.


def record(method, start, t0, dt):
    """Times and points at which one step evaluates a field that depends on both, in order."""
    seen = []

    def field(t, y, args):
        jax.debug.callback(lambda t, y: seen.append((float(t), np.asarray(y))), t, y, ordered=True)
        return jnp.stack([1 + t, y[0, 1], 0.5 - y[2, 0] * t])

    step = jax.jit(lambda t, y, dt: method.step(actions.RightTranslation(lgsim.SO3), field, t, y, dt, None))
    jax.block_until_ready(step(jnp.asarray(t0), start, jnp.asarray(dt)))
    jax.effects_barrier()
    return seen


@EVERY_METHOD
def test_stages_are_evaluated_at_their_nodes(name):
    """Never at a later time: an explicit scheme must not use omega(t + h) for omega(t) (jaxsim #205)."""
    method, start = lgsim.METHODS[name], jnp.asarray(problems.START_POSE[:3, :3])
    seen = record(method, start, 0.3, 0.25)
    nodes = (*method.tableau.c, *getattr(method.tableau, "embedded_c", ()))
    np.testing.assert_allclose([t for t, _ in seen], 0.3 + 0.25 * np.array(nodes), rtol=0, atol=1e-15)
    np.testing.assert_array_equal(seen[0][1], start)


def test_lie_euler_uses_the_time_at_the_start_of_the_step():
    """With omega = t from t0 = 0 the first step does not move, and the third one turns by 2 dt^2."""
    solution = lgsim.integrate(
        lgsim.LieEuler,
        actions.RightTranslation(lgsim.SO3),
        lambda t, y, args: jnp.stack([t, 0 * t, 0 * t]),
        jnp.eye(3),
        dt=0.5,
        steps=3,
    )
    np.testing.assert_array_equal(solution.ys[1], np.eye(3))
    angles = np.arctan2(solution.ys[:, 2, 1], solution.ys[:, 1, 1])
    np.testing.assert_allclose(angles, [0, 0, 0.25, 0.75], rtol=0, atol=1e-15)


START = Exponentials(0, ())
NO_MOTION = {
    "Munthe-Kaas": MuntheKaas(ButcherTableau("zero stage", a=((), (0.0,)), b=(0.5, 0.5), c=(0.0, 0.0), order=1)),
    "one exponential": CommutatorFree(
        CommutatorFreeTableau(
            "zero stage", (START, Exponentials(0, ((0.0,),))), Exponentials(0, ((0.5, 0.5),)), c=(0.0, 0.0), order=1
        )
    ),
    "two exponentials": CommutatorFree(
        CommutatorFreeTableau(
            "zero stage",
            (START, Exponentials(0, ((0.0,), (0.0,)))),
            Exponentials(0, ((0.5, 0.5), (0.0, 0.0))),
            c=(0.0, 0.0),
            order=1,
        )
    ),
    "no exponential": CommutatorFree(
        CommutatorFreeTableau("zero stage", (START, START), Exponentials(0, ((0.5, 0.5),)), c=(0.0, 0.0), order=1)
    ),
}


@pytest.mark.parametrize("name", NO_MOTION)
def test_a_stage_with_zero_coefficients_is_the_start(name):
    """Exactly the identity on the group, not a matrix of zeros or a rounded one (jaxsim #192)."""
    start = lgsim.so3.exp(jnp.array([0.3, -1.2, 0.7]))
    seen = record(NO_MOTION[name], start, 0.3, 0.25)
    assert len(seen) == 2
    np.testing.assert_array_equal(seen[1][1], start)


@pytest.mark.parametrize("name", default(["MK4", "CF4", "CG4"]))
def test_flips_about_the_intermediate_axis_keep_the_elliptic_period(name):
    """omega_2 = w sn(lambda t, m) changes sign every 2 K(m)/lambda (brax #156).

    Source: Landau, Lifshitz, Mechanics, sec. 37.
    """
    inertia, modulus = [1.0, 2.0, 3.0], 0.999
    i1, i2, i3 = inertia
    first = np.sqrt(modulus * i3 * (i3 - i2) / (i1 * (i2 - i1)))  # with omega_3 = 1: near the separatrix
    rate = np.sqrt((i3 - i1) * (i3 - i2) / (i1 * i2))
    half_period = 2 * ellipk(modulus) / rate
    problem = free_rigid_body(inertia=inertia, angular_velocity=[float(first), 0.0, 1.0])
    steps, dt = 5000, 0.01
    solution = lgsim.integrate(
        lgsim.METHODS[name], problem.action, problem.field, problem.initial, dt=dt, steps=steps, args=problem.args
    )
    times, omega = np.asarray(solution.ts), np.asarray(solution.ys[1][:, 1])
    flips = []
    for j in np.flatnonzero(omega[1:-2] * omega[2:-1] < 0) + 1:
        cubic = np.polynomial.Polynomial.fit(times[j - 1 : j + 3], omega[j - 1 : j + 3], 3)
        flips += [float(r.real) for r in cubic.roots() if abs(r.imag) == 0 and times[j] <= r.real <= times[j + 1]]
    expected = half_period * np.arange(1, len(flips) + 1)
    assert len(flips) == int(times[-1] / half_period) >= 5
    np.testing.assert_allclose(flips, expected, rtol=1e-6)


# Exponentials in the compiled program. `sqrt` (of the squared angle) marks an exponential of SE(3).

EXPONENTIALS = {"CF2": 3, "CF3": 3, "CF4": 5, "CG2": 3, "CG3": 6, "CG4": 15, "CG5": 45, "MK4": 4, "MK8": 11}
POSES = actions.RightTranslation(lgsim.SE3)


def count_in_jaxpr(jaxpr):
    total = 0
    for equation in jaxpr.eqns:
        times = equation.params["length"] if equation.primitive.name == "scan" else 1
        total += equation.primitive.name == "sqrt"
        for part in jax.tree.leaves(list(equation.params.values())):
            body = getattr(part, "jaxpr", part)
            total += times * count_in_jaxpr(body) if hasattr(body, "eqns") else 0
    return total


def sqrts(function, *arguments):
    return count_in_jaxpr(jax.make_jaxpr(function)(*arguments).jaxpr)


def count_in_hlo(text):
    """`sqrt` in a compiled module, each times the trip counts of the loops around it."""
    bodies, entry, name = {}, None, None
    for line in text.splitlines():
        if head := re.match(r"(ENTRY )?%?([\w.\-]+) .*\{$", line):
            name = head[2]
            bodies[name] = []
            entry = name if head[1] else entry
        elif name:
            bodies[name].append(line)

    def count(computation):
        total = 0
        for line in bodies[computation]:
            total += len(re.findall(r" sqrt\(", line))
            trips = re.search(r'known_trip_count[^0-9]*"n":"(\d+)"', line)
            for kind, callee in re.findall(r"(body|calls|to_apply)=%?([\w.\-]+)", line):
                assert kind != "body" or trips, line
                total += count(callee) * (int(trips[1]) if kind == "body" else 1)
        return total

    return count(entry)


def one_step(method):
    def step(t, y, dt):
        return method.step(POSES, lambda t, y, args: y[:2, :3].ravel() * t, t, y, dt, None)[0]

    return step, (jnp.asarray(0.3), jnp.eye(4), jnp.asarray(0.1))


@pytest.mark.parametrize("name", EXPONENTIALS)
def test_number_of_exponentials(name):
    """Reuse is real: CF3 takes 3 exponentials and CF4 5; Munthe-Kaas methods one a stage."""
    method = lgsim.METHODS[name]
    step, arguments = one_step(method)
    xi = jnp.ones(6)
    exponential, correction = sqrts(POSES.move, xi, jnp.eye(4)), sqrts(POSES.dexpinv, xi, xi)
    assert exponential == 1
    corrections = method.tableau.stages * correction if isinstance(method, MuntheKaas) else 0
    assert sqrts(step, *arguments) - corrections == EXPONENTIALS[name] == method.tableau.exponentials


@pytest.mark.repeats
@pytest.mark.parametrize("name", [name for name in EXPONENTIALS if not name.startswith("MK")])
def test_number_of_exponentials_in_the_compiled_program(name):
    step, arguments = one_step(lgsim.METHODS[name])
    assert count_in_hlo(jax.jit(step).lower(*arguments).compile().as_text()) == EXPONENTIALS[name]
