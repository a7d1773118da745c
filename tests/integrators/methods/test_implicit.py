"""Gauss Munthe-Kaas methods: order, symmetry, stiffness, and derivatives through the equations of a step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import actions
from lgsim.integrators import Cayley, Exponential, ImplicitMuntheKaas, ImplicitTableau, SecondKind
from lgsim.integrators import methods as named
from lgsim.integrators.hamiltonian import BodyMomentumHamiltonian, HamiltonianField
from lgsim.integrators.methods import IMPLICIT_METHODS
from lgsim.integrators.newton import Newton
from lgsim.systems import free_rigid_body_cotangent
from tests.integrators import cotangent, problems
from tests.integrators.derivatives import Derivatives
from tests.integrators.engines import EXHAUSTIVE, default
from tests.integrators.methods.test_orders import WINDOW, measured_order
from tests.integrators.problems import PROBLEMS, OnlyMove, flat
from tests.integrators.test_gradients import ACTION, ARGS, TIME, Y0, field, scalar

COUNTS = {2: [128, 181, 256, 362, 512], 4: [32, 45, 64, 91, 128, 181], 6: [16, 20, 25, 31, 39, 49, 61]}


# Order and symmetry.


ORDERS = [
    *(("MKGauss2", "free body"), ("MKGauss4", "pendulum"), ("MKGauss6", "heavy top")),
    *(("MKGauss4", "heavy top"), ("MKGauss6", "SE(3)"), ("MKGauss4", "product")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "problem"), default(ORDERS, ORDERS[:3]))
def test_order(name, problem):
    method = IMPLICIT_METHODS[name]
    assert abs(measured_order(method, PROBLEMS[problem](), COUNTS[method.order]) - method.order) < WINDOW


def test_order_in_cayley_coordinates():
    method = ImplicitMuntheKaas(lgsim.MKGauss4.tableau, coordinates=Cayley())
    assert abs(measured_order(method, problems.free_body(), COUNTS[4]) - 4) < WINDOW


@pytest.mark.parametrize("tableau", [method.tableau for method in IMPLICIT_METHODS.values()], ids=lambda t: t.name)
def test_tableaus_are_collocation_at_gauss_points(tableau):
    """Nodes of Legendre's polynomial and the integrals of Lagrange's, by numpy."""
    nodes, weights = np.polynomial.legendre.leggauss(tableau.stages)
    nodes = (nodes + 1) / 2
    np.testing.assert_allclose(tableau.c, nodes, rtol=0, atol=1e-15)
    np.testing.assert_allclose(tableau.b, weights / 2, rtol=0, atol=1e-15)
    for j in range(tableau.stages):
        lagrange = np.polynomial.Polynomial(np.atleast_1d(np.poly(np.delete(nodes, j)))[::-1])
        integral = (lagrange / lagrange(nodes[j])).integ()
        np.testing.assert_allclose([row[j] for row in tableau.a], integral(nodes) - integral(0), rtol=0, atol=1e-15)
    assert tableau.symmetric


def test_bad_tableaus():
    with pytest.raises(ValueError, match="Radau: order 4 is claimed, but"):
        ImplicitTableau("Radau", ((5 / 12, -1 / 12), (3 / 4, 1 / 4)), (3 / 4, 1 / 4), (1 / 3, 1.0), 4)
    radau = ImplicitTableau("Radau", ((5 / 12, -1 / 12), (3 / 4, 1 / 4)), (3 / 4, 1 / 4), (1 / 3, 1.0), 3)
    assert not radau.symmetric
    with pytest.raises(ValueError, match="a needs as many rows"):
        ImplicitTableau("short", ((0.5,),), (0.5, 0.5), (0.5, 0.5), 1)
    with pytest.raises(ValueError, match="row 0 of a adds up to"):
        ImplicitTableau("sum", ((0.4,),), (1.0,), (0.5,), 1)
    with pytest.raises(ValueError, match=r"coordinates: expected a map .* got SecondKind"):
        ImplicitMuntheKaas(lgsim.MKGauss4.tableau, coordinates=SecondKind())


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", [Exponential(), pytest.param(Cayley(), marks=EXHAUSTIVE)], ids=["exp", "cay"])
def test_a_step_back_undoes_a_step(coordinates):
    """Although the field depends on time, and at steps of a radian and more."""
    method = ImplicitMuntheKaas(lgsim.MKGauss4.tableau, coordinates=coordinates)
    there = lgsim.integrate(method, ACTION, field, Y0, t0=0.2, dt=0.5, steps=50, args=ARGS)
    end = jax.tree.map(lambda a: a[-1], there.ys)
    back = lgsim.integrate(method, ACTION, field, end, t0=there.ts[-1], dt=-0.5, steps=50, args=ARGS)
    assert np.abs(flat(end) - flat(Y0)).max() > 0.5
    np.testing.assert_allclose(flat(jax.tree.map(lambda a: a[-1], back.ys)), flat(Y0), rtol=0, atol=1e-10)


@pytest.mark.slow
def test_a_reversible_motion_keeps_its_energy_without_drift():
    """Long steps of a heavy top: what grows is nothing; explicit methods of the order lose a thousand times more."""
    problem = problems.top()
    inertia, weight_moment, up, arm = cotangent.top_numbers("asymmetric")

    def energy(R, w):
        return 0.5 * (inertia * w) @ w + weight_moment * (up @ (R @ arm))

    def errors(method):
        solution = lgsim.integrate(
            method,
            problem.action,
            problem.field,
            problem.initial,
            dt=0.1,
            steps=4000,
            args=problem.args,
            checkpoint=None,
        )
        found = np.asarray(jax.vmap(energy)(*solution.ys))
        return np.abs(found - found[0])[1:].reshape(4, 1000).max(axis=1)

    implicit, explicit = errors(named.MKGauss4), errors(lgsim.MK4)
    assert implicit[-1] < 1.5 * implicit[0] < 1e-2
    assert explicit[-1] > 10 * implicit[-1]


# Stiffness.


@pytest.mark.slow
def test_stiff_damping_does_not_bound_the_step():
    """Damping 1e5 times faster than the step: the rates settle to the exact equilibrium, where MK4 overflows."""
    action, target = (
        actions.Product(actions.RightTranslation(lgsim.SO3), actions.Translation(3)),
        jnp.array([0.3, 0.2, -0.1]),
    )

    def damped(t, y, rate):
        return jnp.concatenate([y[1], rate * (target - y[1])])

    start = (jnp.eye(3), target * (1 + 1e-3))
    for method in (named.MKGauss2, named.MKGauss4):
        solution = lgsim.integrate(method, action, damped, start, dt=0.1, steps=50, args=jnp.asarray(1e6))
        assert np.abs(np.asarray(solution.ys[1]) - np.asarray(target)).max() < 1.001e-3 * np.abs(target).max()
        exact = lgsim.so3.exp(5.0 * target)
        np.testing.assert_allclose(solution.ys[0][-1], exact, rtol=0, atol=1e-4)
    blown = lgsim.integrate(lgsim.MK4, action, damped, start, dt=0.1, steps=50, args=jnp.asarray(1e6))
    assert bool(blown.result == lgsim.RESULTS.nonfinite) or np.abs(np.asarray(blown.ys[1])).max() > 1e10


# Derivatives.


def objective(method, steps):
    def value(tangent, args, t0, dt):
        y0 = ACTION.move(tangent, Y0)
        ys = lgsim.integrate(method, ACTION, field, y0, t0=t0, dt=dt, steps=steps, args=args, save_every=steps).ys
        return scalar(*(leaf[-1] for leaf in ys))

    return value


def canonical_objective(method, steps):
    def value(tangent, top, dt):
        y0 = cotangent.T_SO3.move(tangent, cotangent.top_start("asymmetric"))
        ys = lgsim.integrate(
            method, cotangent.T_SO3, cotangent.EXPLICIT, y0, dt=dt, steps=steps, args=top, save_every=steps
        ).ys
        return scalar(*(leaf[-1] for leaf in ys))

    return value


CASES = {
    "MKGauss4": (objective, (jnp.zeros(6), ARGS, jnp.array(0.3), jnp.array(TIME / 5))),
    "MKGauss6": (objective, (jnp.zeros(6), ARGS, jnp.array(0.3), jnp.array(TIME / 5))),
    "SymplecticMidpoint": (canonical_objective, (jnp.zeros(6), cotangent.top_numbers("asymmetric"), jnp.array(0.2))),
    "SymplecticTripleJump4": (canonical_objective, (jnp.zeros(6), cotangent.top_numbers("asymmetric"), jnp.array(0.2))),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", default(CASES, ("MKGauss4", "SymplecticMidpoint")))
def test_reverse_is_forward_is_difference(name):
    """By the implicit function theorem, after five steps; the tangent moves the start on the group."""
    make, inputs = CASES[name]
    Derivatives(make(getattr(named, name), 5)).check(inputs)


@pytest.mark.exhaustive
def test_second_order():
    value = objective(named.MKGauss4, 2)
    hessian = jax.jit(jax.jacfwd(jax.grad(value)))(*CASES["MKGauss4"][1])
    gradient, inputs = jax.jit(jax.grad(value)), CASES["MKGauss4"][1]
    assert jnp.max(jnp.abs(hessian - hessian.T)) < 1e-11 * jnp.max(jnp.abs(hessian))
    for k in range(6):
        e = 1e-4 * jnp.eye(6)[k]
        column = (gradient(e, *inputs[1:]) - gradient(-e, *inputs[1:])) / 2e-4
        assert jnp.max(jnp.abs(hessian[:, k] - column)) < 1e-6 * jnp.max(jnp.abs(hessian))


FREE = {
    "written down": free_rigid_body_cotangent().field,
    "from the energy": HamiltonianField(
        lgsim.SO3, BodyMomentumHamiltonian(lgsim.SO3, lambda g, momentum, args: 0.5 * momentum @ (momentum / args))
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("field", default(FREE, ("written down",)))
def test_gradient_of_a_symplectic_step_at_rest(field):
    """A body at rest on T*SO(3) without forces: its attitude moves with the momentum at the rate dt/I."""
    inertia = jnp.array([0.9, 2.0, 2.7])

    def attitude(mu):
        y0 = (jnp.eye(3), mu)
        run = lgsim.integrate(
            named.SymplecticMidpoint, cotangent.T_SO3, FREE[field], y0, dt=0.25, steps=1, args=inertia
        )
        return lgsim.so3.vee(run.ys[0][-1])

    for slope in jax.jit(lambda mu: (jax.jacfwd(attitude)(mu), jax.jacrev(attitude)(mu)))(jnp.zeros(3)):
        np.testing.assert_allclose(slope, np.diag(0.25 / np.asarray(inertia)), rtol=0, atol=1e-15)


@pytest.mark.slow
@pytest.mark.float32
def test_gradient_at_rest(dtype):
    """A body at rest: the attitude moves with the velocity at the rate dt, not 0 and not NaN."""

    def attitude(w):
        action = actions.RightTranslation(lgsim.SO3)
        run = lgsim.integrate(
            named.MKGauss4, action, lambda t, y, w: w, jnp.eye(3, dtype=dtype), dt=0.25, steps=1, args=w
        )
        return lgsim.so3.vee(run.ys[-1])

    both = jax.jit(lambda w: (jax.jacfwd(attitude)(w), jax.jacrev(attitude)(w)))
    for slope in both(jnp.zeros(3, dtype)):
        assert jnp.allclose(slope, 0.25 * jnp.eye(3, dtype=dtype), rtol=0, atol=4 * np.finfo(dtype).eps)


@pytest.mark.slow
def test_gradient_by_the_control_through_implicit_steps():
    """Regression: MuJoCo Warp #1423, whose implicit integrator gave exactly zero for the derivative by the control."""
    arm = {"axis": [0, 1, 0], "mass": 1.2, "center": [0, 0, -0.4], "inertia": 0.05 * jnp.eye(3)}
    model = lgsim.ModelBuilder().add_body("arm", "world", lgsim.joints.Revolute(), **arm).build()

    def angle(torques):
        return lgsim.rollout(
            model, jnp.array([0.4]), jnp.zeros(1), dt=0.05, steps=8, torques=torques, method=named.MKGauss4
        ).q[-1, 0]

    torques, h = np.linspace(-0.4, 0.9, 8)[:, None], 1e-4
    shift = h * np.eye(8)[:, :, None]
    rows = jnp.asarray(np.concatenate([torques[None], torques + shift, torques - shift]))
    angles, gradients = jax.jit(jax.vmap(jax.value_and_grad(angle)))(rows)
    difference = (angles[1:9] - angles[9:]) / (2 * h)
    assert np.all(np.asarray(gradients)[0, :, 0] > 1e-4)
    np.testing.assert_allclose(gradients[0, :, 0], difference, rtol=1e-7)


# Failures.


@pytest.mark.slow
def test_a_step_that_is_not_solved_is_told():
    """Also where the states are NaN; a method with more iterations solves it."""
    lazy = ImplicitMuntheKaas(lgsim.MKGauss4.tableau, Newton(2))
    with pytest.raises(RuntimeError, match=r"Gauss 4.*did not converge in step 0.*throw=False"):
        lgsim.integrate(lazy, ACTION, field, Y0, dt=0.5, steps=3, args=ARGS)
    nan = lgsim.integrate(named.MKGauss4, ACTION, field, Y0, dt=0.5, steps=3, args=jnp.nan * ARGS, throw=False)
    assert bool(nan.result == lgsim.RESULTS.not_converged)
    with pytest.raises(RuntimeError, match=r"step 0.*residual is nan"):
        lgsim.integrate(named.MKGauss4, ACTION, field, Y0, dt=0.5, steps=3, args=jnp.nan * ARGS)
    assert "residuals" in lgsim.RESULTS[nan.result]


def test_an_action_without_dexpinv_is_refused():
    with pytest.raises(TypeError, match=r"Gauss 4.*needs dexpinv, which OnlyMove"):
        lgsim.integrate(named.MKGauss4, OnlyMove(), lambda t, y, args: y, jnp.zeros(3), dt=0.1, steps=1)
