"""Symplectic methods on T*G and g*: the printed step, orders, what they keep, and how they fail."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import actions
from lgsim.integrators import Symplectic, suzuki, triple_jump
from lgsim.integrators import methods as named
from lgsim.integrators.compositions import ThetaScheme, theta_scheme, with_adjoint
from lgsim.integrators.hamiltonian import HamiltonianField
from lgsim.integrators.methods import SYMPLECTIC_METHODS
from lgsim.integrators.newton import Newton
from lgsim.integrators.symplectic import SymplecticTheta
from tests.integrators import cotangent
from tests.integrators.cotangent import CANONICAL, T_SE3, T_SO3, reduced_top, top, top_energy, top_numbers, top_start
from tests.integrators.engines import default
from tests.integrators.methods.test_orders import WINDOW, measured_order
from tests.integrators.problems import advance, flat

COUNTS = {
    1: [256, 362, 512, 724, 1024],
    2: [128, 181, 256, 362, 512],
    4: [32, 45, 64, 91, 128, 181, 256],
    6: [24, 28, 34, 40, 48, 58, 70, 84],
}


def settings(problem, steps):
    return {"t0": problem.t0, "dt": problem.time / steps, "steps": steps, "args": problem.args}


def solve(method, problem, steps, **more):
    given = {**settings(problem, steps), **more}
    return lgsim.integrate(method, problem.action, problem.field, problem.initial, **given)


# The step.


@pytest.mark.slow
def test_the_step_is_the_printed_one():
    """Thetas inside and at the ends of [0, 1], forward and backward, one after the other as a composition."""
    substeps = ((0.0, 0.4), (0.3, 0.7), (1.0, -0.6), (0.5, 0.5))
    problem, h = cotangent.moving_frame(), 0.4
    solution = lgsim.integrate(
        Symplectic(ThetaScheme("mixture", substeps, 1)),
        problem.action,
        problem.field,
        problem.initial,
        t0=problem.t0,
        dt=h,
        steps=1,
    )
    t, state = problem.t0, tuple(np.asarray(leaf) for leaf in problem.initial)
    for theta, fraction in substeps:
        state = cotangent.printed_step(theta, fraction * h, t, *state)
        t += fraction * h
    np.testing.assert_allclose(flat(jax.tree.map(lambda a: a[-1], solution.ys)), flat(state), rtol=0, atol=1e-13)


@cache
def composition(length):
    """A compiled run(thetas, fractions, steps, dt) of ``top`` to its last state, for schemes of ``length`` substeps.

    A scheme with numbers that are not known yet skips the checks that those of the register have passed.
    """
    problem = top(field=CANONICAL if length == 1 else cotangent.EXPLICIT)

    @jax.jit
    def run(thetas, fractions, steps, dt):
        scheme = object.__new__(ThetaScheme)
        for name, value in (("name", "traced"), ("substeps", tuple(zip(thetas, fractions, strict=True))), ("order", 0)):
            object.__setattr__(scheme, name, value)
        method = Symplectic(scheme)

        def step(k, y):
            return method.step(problem.action, problem.field, k.astype(dt.dtype) * dt, y, dt, problem.args)[0]

        return jax.lax.fori_loop(0, steps, step, problem.initial)

    return run


@pytest.mark.repeats
@pytest.mark.parametrize("name", SYMPLECTIC_METHODS)
def test_order_on_the_cotangent_bundle_of_rotations(name):
    """All compositions by one program: substeps of no length at their end change nothing."""
    method = SYMPLECTIC_METHODS[name]
    substeps = method.tableau.substeps
    length = next(n for n in (1, 2, 10, 18) if n >= len(substeps))
    thetas, fractions = zip(*substeps, *[(0.5, 0.0)] * (length - len(substeps)), strict=True)

    def run(steps, dt):
        return composition(length)(thetas, fractions, jnp.asarray(steps), jnp.asarray(dt)), None

    assert abs(measured_order(method, top(), COUNTS[method.order], run) - method.order) < WINDOW


@pytest.mark.parametrize(
    "name", default(["SymplecticMidpoint", "SymplecticTripleJump6", "SymplecticSuzuki4"], ("SymplecticTripleJump6",))
)
def test_order_on_a_dual_algebra(name):
    """The heavy top on se(3)*, with its reference from the attitude's equations."""
    method = SYMPLECTIC_METHODS[name]
    assert abs(measured_order(method, reduced_top(), COUNTS[method.order]) - method.order) < WINDOW


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["SymplecticEuler", "SymplecticMidpoint", "SymplecticVerletTripleJump4"])
def test_order_with_displacements_and_time(name):
    """By default ``test_the_step_is_the_printed_one`` has both."""
    method = SYMPLECTIC_METHODS[name]
    found = measured_order(method, cotangent.moving_frame(), COUNTS[method.order])
    assert abs(found - method.order) < WINDOW


@pytest.mark.slow
def test_on_a_dual_algebra_theta_drops_out():
    euler, midpoint = (
        solve(SYMPLECTIC_METHODS[name], reduced_top(), 50).ys for name in ("SymplecticEuler", "SymplecticMidpoint")
    )
    np.testing.assert_allclose(euler, midpoint, rtol=0, atol=1e-13)


def swing(t, y, args):
    """A pendulum on T*SO(2)."""
    (R, p) = y
    return jnp.concatenate([p, -jnp.sin(args) * R[1, :1]])


def spin(t, momentum, args):
    """A free body on so(3)*."""
    return -momentum / jnp.array([1.0, 2.0, 3.0])


PULL = jnp.array(0.7)


def last(action, field, start, args=PULL):
    """The state after 40 steps."""
    ys = lgsim.integrate(named.SymplecticMidpoint, action, field, start, dt=0.1, steps=40, args=args).ys
    return jax.tree.map(lambda a: a[-1], ys)


@pytest.mark.slow
def test_one_space_of_several():
    """A product takes the same steps as its parts."""
    spaces = (actions.LeftTranslation(lgsim.Cotangent(lgsim.SO2)), actions.Coadjoint(lgsim.SO3))
    starts = ((lgsim.so2.exp(jnp.array([1.1])), jnp.array([0.4])), jnp.array([0.8, 0.1, 1.1]))

    def both(t, y, args):
        return jnp.concatenate([swing(t, y[0], args), spin(t, y[1], args)])

    together = last(actions.Product(*spaces), both, starts)
    for found, space, field, start in zip(together, spaces, (swing, spin), starts, strict=True):
        alone = last(space, field, start)
        assert np.abs(flat(alone) - flat(start)).max() > 0.1
        np.testing.assert_allclose(flat(found), flat(alone), rtol=0, atol=1e-12)


@pytest.mark.slow
def test_a_power_is_a_product():
    space, starts = actions.Coadjoint(lgsim.SO3), jnp.array([[0.8, 0.1, 1.1], [-0.3, 0.7, 0.5]])

    def coupled(t, y, args):
        return jnp.concatenate([spin(t, y[0] + y[1], args), spin(t, y[1], args)])

    power = last(actions.Power(space, 2), coupled, starts)
    product = last(actions.Product(space, space), coupled, tuple(starts))
    assert np.abs(power - starts).max() > 0.1
    np.testing.assert_allclose(power, np.stack(product), rtol=0, atol=1e-12)


# What is kept.


def symplectic_gap(method, action, field, start, dt, args):
    """By how much a step changes the symplectic form (13), in the frame (R_g xi, delta mu)."""
    group = action.group.base

    def moved(tangent):
        g, mu = start
        y = group.compose(group.exp(tangent[: group.dim]), g), mu + tangent[group.dim :]
        return method.step(action, field, jnp.asarray(0.2), y, jnp.asarray(dt), args)[0]

    def frame(tangent):
        g, mu = moved(jnp.zeros(2 * group.dim))
        g1, mu1 = moved(tangent)
        return jnp.concatenate([group.log(group.compose(g1, group.inverse(g))), mu1]), mu

    slope, mu = jax.jit(jax.jacfwd(frame, has_aux=True))(jnp.zeros(2 * group.dim))

    def form(mu):
        one = np.eye(group.dim)
        ads = np.asarray(jax.jit(jax.vmap(group.ad))(jnp.eye(group.dim)))  # ads[i] @ e_j = [e_i, e_j]
        return np.block([[-np.einsum("k,ikj->ij", mu, ads), one], [-one, 0 * one]])

    after = np.asarray(slope).T @ form(np.asarray(mu)) @ np.asarray(slope)
    return np.abs(after - form(np.asarray(start[1]))).max()


def pose_energy(pose, mu, stiffness):
    """A rigid body on a spring in a field, of the pose and the space momentum; no symmetry."""
    body = lgsim.se3.Ad_dual_action(pose, mu)
    place = pose[:3, 3]
    return 0.5 * jnp.sum(body**2 / jnp.arange(1.0, 7.0)) + stiffness * (place @ place) + pose[0, 1] - 2 * pose[2, 2]


@pytest.mark.slow
def test_the_symplectic_form_is_kept():
    problem = top()
    around = (lgsim.so3.exp(jnp.array([0.4, -0.9, 0.7])), problem.initial[1])
    rest = (T_SO3, problem.field, around, 0.3, problem.args)
    assert symplectic_gap(SymplecticTheta(0.3), *rest) < 1e-12
    assert symplectic_gap(lgsim.CF4, *rest) > 1e-6  # the check sees those that are not


@pytest.mark.exhaustive
def test_the_symplectic_form_is_kept_by_a_composition():
    problem = top(field=CANONICAL)
    around = (lgsim.so3.exp(jnp.array([0.4, -0.9, 0.7])), problem.initial[1])
    assert symplectic_gap(named.SymplecticVerletSuzuki4, T_SO3, problem.field, around, 0.3, problem.args) < 1e-12


@pytest.mark.exhaustive
def test_the_symplectic_form_is_kept_with_displacements():
    field = HamiltonianField(lgsim.SE3, pose_energy)
    start = (jnp.asarray(cotangent.START_POSE), jnp.asarray(cotangent.START_MOMENTUM))
    assert symplectic_gap(SymplecticTheta(0.5), T_SE3, field, start, 0.3, jnp.asarray(1.7)) < 1e-12


def entry_energy(g, mu, args):
    """Of all entries of an element and of the momentum, with no symmetry."""
    entries = jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(g)])
    return jnp.sum(jnp.sin(entries * jnp.arange(1.0, len(entries) + 1))) + 0.5 * mu @ mu + jnp.cos(mu[0] * entries[0])


GROUPS = {
    "SE2": lgsim.SE2,
    "UnitQuaternion": lgsim.UnitQuaternion,
    "SO3 x R2": lgsim.Product(lgsim.SO3, lgsim.Euclidean(2)),
    "T SO2": lgsim.Tangent(lgsim.SO2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", default(GROUPS, ("UnitQuaternion",)))
def test_the_symplectic_form_is_kept_on_any_group(name, key):
    group = GROUPS[name]
    start = (group.random(key), jnp.linspace(-0.5, 0.8, group.dim))
    action, field = actions.LeftTranslation(lgsim.Cotangent(group)), HamiltonianField(group, entry_energy)
    assert symplectic_gap(SymplecticTheta(0.5), action, field, start, 0.1, None) < 1e-12


@pytest.mark.exhaustive
def test_a_million_steps_show_no_trend():
    """A regular motion: the largest error of the energy in each of 100 intervals, and the momentum about gravity."""
    args, start = top_numbers("celledoni"), top_start("celledoni")
    solution = lgsim.integrate(
        named.SymplecticMidpoint, T_SO3, CANONICAL, start, dt=0.001, steps=10**6, save_every=100, args=args,
        checkpoint=None,
    )  # fmt: skip
    R, mu = solution.ys
    energy = np.asarray(jax.vmap(lambda g, m: top_energy(g, g.T @ m, args))(R, mu))
    largest = np.abs(energy / energy[0] - 1)[1:].reshape(100, -1).max(axis=1)
    assert abs(np.polyfit(np.arange(100) * 10**4, largest, 1)[0]) < 1e-13 and largest.max() < 1e-7
    assert np.abs(mu[:, 2] - mu[0, 2]).max() < 1e-12 * np.linalg.norm(start[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", default(["SymplecticEuler", "SymplecticMidpoint"], ("SymplecticMidpoint",)))
def test_momentum_about_gravity_and_energy_of_a_heavy_top(name):
    """6000 steps of 0.01 s, at 1.5 rad each: Celledoni et al. 2021, figure 3, with the inertia as printed."""
    args, start = top_numbers("celledoni"), top_start("celledoni")
    solution = lgsim.integrate(
        SYMPLECTIC_METHODS[name], T_SO3, cotangent.EXPLICIT, start, dt=0.01, steps=6000, args=args, checkpoint=None
    )
    R, mu = solution.ys
    about = np.asarray(mu[:, 2])
    assert np.abs(about - about[0]).max() < 1e-12 * np.linalg.norm(start[1])
    energies = np.asarray(jax.vmap(lambda g, m: top_energy(g, g.T @ m, args))(R, mu))
    first, last = np.abs(energies / energies[0] - 1).reshape(-1)[:6000].reshape(2, 3000).max(axis=1)
    assert 0 < last < 1.05 * first < 1e-2
    # the axial component of the body momentum of a symmetric top
    axial = np.einsum("nij,ni->nj", R, mu)[:, 1]
    assert np.abs(axial / axial[0] - 1).max() < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", default(["SymplecticMidpoint", "SymplecticSuzuki4", "SymplecticVerlet"], ("SymplecticVerlet",))
)
def test_a_symmetric_method_runs_back_to_the_start(name):
    method = SYMPLECTIC_METHODS[name]
    assert method.tableau.symmetric
    there = solve(method, top(), 60)
    end = jax.tree.map(lambda a: a[-1], there.ys)
    back = lgsim.integrate(method, T_SO3, top().field, end, dt=-top().time / 60, steps=60, args=top().args)
    last = flat(jax.tree.map(lambda a: a[-1], back.ys))
    assert np.abs(flat(end) - flat(top().initial)).max() > 1
    np.testing.assert_allclose(last, flat(top().initial), rtol=0, atol=1e-12)


@pytest.mark.slow
def test_the_adjoint_undoes_a_step_that_is_not_symmetric():
    method = SymplecticTheta(0.3)
    undo = Symplectic(method.tableau.adjoint)

    @jax.jit
    def there_and_back(t, h, y):
        y1, _ = method.step(T_SO3, top().field, t, y, h, top().args)
        return undo.step(T_SO3, top().field, t + h, y1, -h, top().args)[0]

    y0 = there_and_back(jnp.asarray(0.0), jnp.asarray(0.1), top().initial)
    np.testing.assert_allclose(flat(y0), flat(top().initial), rtol=0, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("name", default(["SymplecticMidpoint", "SymplecticTripleJump4"], ("SymplecticMidpoint",)))
def test_coadjoint_orbits_are_kept(name):
    """Casimirs of se(3)* within the rounding of a step each, energies without drift.

    The motion is chaotic: in 100 s rounding grows to 1e-7 of the energy's error, in 400 s to all of it.
    """
    steps, problem = 4000, reduced_top()
    solution = lgsim.integrate(
        SYMPLECTIC_METHODS[name],
        problem.action,
        problem.field,
        problem.initial,
        dt=0.025,
        steps=steps,
        args=problem.args,
        checkpoint=None,
    )
    mu = np.asarray(solution.ys)
    for casimir in (np.sum(mu[:, :3] ** 2, axis=1), np.sum(mu[:, :3] * mu[:, 3:], axis=1)):
        assert np.abs(casimir - casimir[0]).max() < 4 * steps * np.finfo(float).eps
    energy = np.asarray(jax.vmap(cotangent.reduced_energy, (0, None))(solution.ys, problem.args))
    early, late = np.abs(energy - energy[0])[1:].reshape(2, -1).max(axis=1)
    assert 0 < late < 1.2 * early


# Newton's method.


@pytest.mark.slow
def test_a_step_that_is_not_solved_is_told():
    problem = top()
    lazy = Symplectic(theta_scheme(0.5), Newton(2))
    with pytest.raises(
        RuntimeError, match=r"theta = 0.5.*did not converge in step 0, at t = 0.*residual is .*smaller dt"
    ):
        solve(lazy, problem, 4)
    for told in (solve(lazy, problem, 4, throw=False), jax.jit(lambda: solve(lazy, problem, 4))()):
        assert bool(told.result == lgsim.RESULTS.not_converged)
        assert told.residuals.shape == (4,) and float(told.residuals[0]) > 1e-6
    fine = solve(named.SymplecticMidpoint, problem, 40, save_every=10)
    assert bool(fine.result == lgsim.RESULTS.successful)
    assert fine.residuals.shape == (40,) and float(jnp.max(fine.residuals)) < 1e-12
    assert solve(named.MK4, problem, 4).residuals is None


@pytest.mark.parametrize("theta", [-0.1, 1.5, float("nan")])
def test_theta_outside_its_range(theta):
    with pytest.raises(ValueError, match=f"theta: expected a number from 0 to 1, got {theta}"):
        SymplecticTheta(theta)


def test_bad_schemes():
    with pytest.raises(ValueError, match=r"symmetric one, got symplectic, theta = 0.*with_adjoint"):
        triple_jump(theta_scheme(0))
    with pytest.raises(ValueError, match="add up to"):
        ThetaScheme("short", ((0.5, 0.4), (0.5, 0.5)), 1)
    with pytest.raises(ValueError, match="iterations"):
        Newton(1)
    with pytest.raises(ValueError, match="tolerance"):
        Newton(tolerance=0.0)
    with pytest.raises(ValueError, match="tolerance"):
        Newton(tolerance=jnp.asarray(-1e-9))
    assert suzuki(suzuki(with_adjoint(theta_scheme(0)))).order == 6
    assert triple_jump(with_adjoint(theta_scheme(0.3))).symmetric and not theta_scheme(0.3).symmetric


@pytest.mark.parametrize(
    ("action", "part"),
    [
        (actions.LeftTranslation(lgsim.SO3), "no momenta"),
        (actions.RightTranslation(lgsim.SO3), "RightTranslation"),
        (actions.Product(T_SO3, actions.Translation(3)), "no momenta"),
    ],
)
def test_actions_without_momenta_are_refused(action, part):
    with pytest.raises(TypeError, match="action: a symplectic method needs .*Cotangent.*" + part):
        lgsim.integrate(named.SymplecticMidpoint, action, lambda t, y, a: y, jnp.eye(3), dt=0.1, steps=1)


@pytest.mark.slow
@pytest.mark.float32
def test_dtype_follows_the_state(dtype):
    args, (R, mu) = top_numbers("asymmetric", dtype), top_start("asymmetric", dtype)
    run = advance(
        named.SymplecticMidpoint, cotangent.Problem(T_SO3, cotangent.EXPLICIT, (R, mu), args, 0.0, 2.0, top().final)
    )
    (R1, mu1), _ = run(256, np.dtype(dtype).type(2 / 256))
    assert R1.dtype == mu1.dtype == dtype
    assert np.abs(flat((R1, mu1)) - top().final).max() < 5e-4
    told = lgsim.integrate(named.SymplecticMidpoint, T_SO3, cotangent.EXPLICIT, (R, mu), dt=0.05, steps=4, args=args)
    assert told.residuals.dtype == dtype
