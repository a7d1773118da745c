"""Munthe-Kaas methods in Cayley coordinates and in those of the second kind."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm, solve

import lgsim
from lgsim import actions
from lgsim.integrators import Cayley, Exponential, MuntheKaas, SecondKind, adaptive
from lgsim.integrators.methods import COORDINATE_METHODS
from lgsim.integrators.munthe_kaas import TruncatedDexpinv
from tests.integrators import problems
from tests.integrators import test_gradients as gradients
from tests.integrators.derivatives import Derivatives
from tests.integrators.engines import EXHAUSTIVE, default
from tests.integrators.methods.test_orders import COUNTS, WINDOW, measured_order
from tests.integrators.problems import PROBLEMS, OnlyMove, hat

TWIST = np.array([0.4, -0.7, 0.3, 0.5, 0.8, -0.6])


ORDERS = [
    *((name, problem) for name in COORDINATE_METHODS for problem in ("free body", "SE(3)")),
    ("MK4Cayley", "product"),
    ("MK4Cayley", "pendulum"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "problem"),
    default(ORDERS, [("MK4SecondKind", "SE(3)"), ("MK4Cayley", "product"), ("MK4Cayley", "pendulum")]),
)
def test_order(name, problem):
    method = COORDINATE_METHODS[name]
    assert abs(measured_order(method, PROBLEMS[problem](), COUNTS[4]) - 4) < WINDOW


@pytest.mark.repeats
@pytest.mark.parametrize("name", COORDINATE_METHODS)
def test_order_of_a_left_translation(name):
    """The sign of the inverse differential that is right on one side only costs two orders."""
    assert abs(measured_order(COORDINATE_METHODS[name], problems.moving_frame("left"), COUNTS[4]) - 4) < WINDOW


@pytest.mark.exhaustive
def test_order_six():
    method = MuntheKaas(lgsim.MK6.tableau, coordinates=Cayley())
    assert abs(measured_order(method, problems.free_body(), COUNTS[6]) - 6) < WINDOW


# The maps themselves.


def cayley(u):
    return solve(np.eye(4) - hat(u) / 2, np.eye(4) + hat(u) / 2)


def second_kind(u):
    out = np.eye(4)
    for k in range(6):
        out = out @ expm(hat(u[k] * np.eye(6)[k]))
    return out


@pytest.mark.parametrize(
    ("coordinates", "oracle"), [(Cayley(), cayley), (SecondKind(), second_kind)], ids=["cay", "2nd"]
)
def test_maps(coordinates, oracle):
    """On the group from the left, against the matrices."""
    found = coordinates.move(actions.LeftTranslation(lgsim.SE3), jnp.asarray(TWIST), jnp.asarray(problems.START_POSE))
    np.testing.assert_allclose(found, oracle(TWIST) @ problems.START_POSE, rtol=0, atol=1e-14)


SPHERE = jnp.array([0.6, 0.0, 0.8, 0.4, 1.3, -0.3])
QUATERNION = jnp.array([0.5, -0.5, 0.1, 0.7])
PLACES = {
    "left SE3": (actions.LeftTranslation(lgsim.SE3), jnp.asarray(problems.START_POSE)),
    "right SE3": (actions.RightTranslation(lgsim.SE3), jnp.asarray(problems.START_POSE)),
    "right quaternion": (actions.RightTranslation(lgsim.UnitQuaternion), QUATERNION),
    "coadjoint SE3": (actions.Coadjoint(lgsim.SE3), jnp.asarray(TWIST[::-1].copy())),
    "tangent sphere": (actions.TangentSphere(), SPHERE),
    "two of right SE2": (actions.Power(actions.RightTranslation(lgsim.SE2), 2), jnp.stack([jnp.eye(3)] * 2)),
    "product": (
        actions.Product(actions.LeftTranslation(lgsim.Product(lgsim.SO2, lgsim.SE2)), actions.Translation(2)),
        ((jnp.eye(2), jnp.eye(3)), jnp.ones(2)),
    ),
}


KINDS = {"Exponential": Exponential(), "Cayley": Cayley(), "SecondKind": SecondKind()}
# each kind of action has a Cayley map of its own; the others know them by their verbs alone
FEW = [("SecondKind", place) for place in ("right quaternion", "product")] + [("Exponential", "left SE3")]


@pytest.mark.repeats("Exponential-left SE3", "Cayley-coadjoint SE3", "Cayley-product", "SecondKind-product")
@pytest.mark.parametrize(
    ("kind", "place"),
    default([(kind, place) for kind in KINDS for place in PLACES], [*(("Cayley", place) for place in PLACES), *FEW]),
)
def test_the_rate_gives_the_velocity(kind, place):
    """phi(sigma(t)) . y with the rate of a velocity moves as the action's own generator of that velocity."""
    coordinates = KINDS[kind]
    action, y = PLACES[place]
    xi, sigma = jnp.asarray(TWIST[: action.dim]), 0.6 * jnp.asarray(TWIST[::-1][: action.dim].copy())
    assert xi.shape == (action.dim,)

    @jax.jit
    def both(sigma, xi):
        rate = coordinates.inverse_differential(action, sigma, xi)
        there, moving = jax.jvp(lambda s: coordinates.move(action, s, y), (sigma,), (rate,))
        s = jnp.zeros(())
        return moving, jax.jvp(lambda s: action.move(s * xi, there), (s,), (jnp.ones(()),))[1]

    chex.assert_trees_all_close(*both(sigma, xi), rtol=0, atol=1e-13)


@pytest.mark.repeats
@pytest.mark.parametrize("coordinates", [Cayley(), SecondKind()], ids=["cay", "2nd"])
def test_a_power_is_a_product(coordinates):
    """Parts of several dimensions with a coupled field: laid out in two ways, the same steps."""
    sphere, start = (
        actions.TangentSphere(),
        jnp.stack([SPHERE, PLACES["tangent sphere"][1][jnp.array([2, 0, 1, 5, 3, 4])]]),
    )
    method = MuntheKaas(lgsim.MK4.tableau, coordinates=coordinates)

    def field(t, y, args):
        pull = jnp.array([0.0, 0.0, 9.0])
        return jnp.concatenate([pull - y[1][:3], y[0][3:], pull + y[0][:3], y[1][3:]])

    power, product = (
        lgsim.integrate(method, action, field, y0, dt=0.1, steps=3).ys
        for action, y0 in ((actions.Power(sphere, 2), start), (actions.Product(sphere, sphere), tuple(start)))
    )
    assert np.abs(np.asarray(power[-1]) - np.asarray(start)).max() > 0.1
    np.testing.assert_allclose(power, np.stack(product, axis=1), rtol=0, atol=1e-14)


@pytest.mark.slow
def test_states_stay_on_the_group():
    problem = problems.moving_frame()
    for method in COORDINATE_METHODS.values():
        solution = lgsim.integrate(
            method, problem.action, problem.field, problem.initial, t0=problem.t0, dt=0.05, steps=200
        )
        R = np.asarray(solution.ys)[:, :3, :3]
        assert np.abs(np.swapaxes(R, 1, 2) @ R - np.eye(3)).max() < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("name", default(COORDINATE_METHODS, ("MK4Cayley",)))
def test_derivatives(name):
    inputs = (jnp.zeros(6), gradients.ARGS, jnp.array(0.3), jnp.array(gradients.TIME / 5))
    Derivatives(gradients.objective(COORDINATE_METHODS[name], 5)).check(inputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", COORDINATE_METHODS)
def test_gradient_at_rest(name):
    """A body at rest turns with the velocity at the rate dt."""

    def attitude(w):
        action = actions.RightTranslation(lgsim.SO3)
        method = COORDINATE_METHODS[name]
        return lgsim.so3.vee(
            lgsim.integrate(method, action, lambda t, y, w: w, jnp.eye(3), dt=0.25, steps=1, args=w).ys[-1]
        )

    for slope in jax.jit(lambda w: (jax.jacfwd(attitude)(w), jax.jacrev(attitude)(w)))(jnp.zeros(3)):
        np.testing.assert_allclose(slope, 0.25 * np.eye(3), rtol=0, atol=1e-15)


@pytest.mark.slow
@pytest.mark.float32
@pytest.mark.parametrize("name", COORDINATE_METHODS)
def test_dtype_follows_the_state(name, dtype):
    problem = problems.table()
    start = jnp.eye(3, dtype=dtype)
    found = lgsim.integrate(COORDINATE_METHODS[name], problem.action, problem.field, start, dt=1 / 16, steps=16).ys
    assert found.dtype == dtype
    assert np.abs(np.asarray(found[-1]).ravel() - problem.final).max() < 1e-5


@pytest.mark.parametrize("coordinates", [Cayley(), pytest.param(SecondKind(), marks=EXHAUSTIVE)], ids=["cay", "2nd"])
def test_adaptive_steps(coordinates):
    """Steps as usual; states between them lie on exponentials, which such a method does not know."""
    problem, method = problems.free_body(), MuntheKaas(lgsim.MK54.tableau, coordinates=coordinates)
    span = {"t1": problem.time, "args": problem.args, "rtol": 1e-8}
    found = adaptive.solve(method, problem.action, problem.field, problem.initial, **span)
    assert np.abs(problems.flat(found.y) - problem.final).max() < 1e-6
    with pytest.raises(ValueError, match=r"save_at, dense: .* exponential coordinates"):
        adaptive.solve(method, problem.action, problem.field, problem.initial, dense=True, **span)


class OwnCayley(OnlyMove):
    """An action that brings its own Cayley map."""

    def cay(self, sigma, y):
        return y + sigma

    def dcayinv(self, sigma, xi):
        return xi


@pytest.mark.parametrize(
    ("name", "action", "part"),
    [
        ("MK4Cayley", OnlyMove(), "needs cay and dcayinv, which OnlyMove does not define"),
        (
            "MK4Cayley",
            actions.LeftTranslation(lgsim.Cotangent(lgsim.SO3)),
            "cay and dcayinv, which the group Cotangent",
        ),
        ("MK4SecondKind", OnlyMove(), "needs dexpinv, which OnlyMove does not define"),
    ],
)
def test_actions_without_the_map_are_refused(name, action, part):
    with pytest.raises(TypeError, match=part):
        lgsim.integrate(COORDINATE_METHODS[name], action, lambda t, y, args: y, jnp.zeros(3), dt=0.1, steps=1)


def test_an_action_may_bring_its_own_map():
    found = lgsim.integrate(
        COORDINATE_METHODS["MK4Cayley"], OwnCayley(), lambda t, y, args: -y, jnp.ones(3), dt=0.01, steps=100
    )
    np.testing.assert_allclose(found.ys[-1], np.exp(-1), rtol=1e-9)


def test_a_series_is_for_exponentials():
    with pytest.raises(ValueError, match="correction: expected none with Cayley coordinates"):
        MuntheKaas(lgsim.MK4.tableau, TruncatedDexpinv(2), Cayley())
