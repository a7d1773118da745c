"""Discrete mechanics with input that is wrong: each message names what is wrong and what to do."""

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import actions
from lgsim.integrators import methods as named
from lgsim.integrators import suzuki
from lgsim.integrators.coordinates import Cayley, SecondKind
from lgsim.integrators.discrete.galerkin_scheme import LOBATTO3, MIDPOINT, TRAPEZOID, GalerkinScheme
from lgsim.integrators.discrete.problem_checks import check_mechanics
from lgsim.integrators.discrete.variational import Variational
from lgsim.integrators.newton import Newton
from tests.integrators import lagrangians
from tests.integrators.lagrangians import FREE_BODY, SPRING, SPRING_START, on, pendulum

pytestmark = pytest.mark.usefixtures("without_import_hook")
PLANE = on(lgsim.Euclidean(2))


def free(x, v, args):
    return 0.5 * jnp.sum(v * v)


def start(mechanics, y0, action=PLANE, method=named.VariationalTrapezoid, **more):
    lgsim.integrate(method, action, mechanics, y0, **{"dt": 0.1, "steps": 1, **more})


def held(*rows):
    """A point of the plane with constraints."""
    return lgsim.DiscreteMechanics(
        lgsim.Euclidean(2), free, constraints=lambda x, args: jnp.stack([row(x) for row in rows])
    )


X, P = jnp.array([1.0, 0.0]), jnp.array([0.0, 0.5])


def circle(x):
    return (x @ x - 1) / 2


CASES = {
    "violated": (held(circle), (1.1 * X, P), "y0: constraint row 0 is 0.105 there, 0.095 away from where it holds"),
    "second row violated": (held(lambda x: x[0] - 1, lambda x: x[1] - 0.2), (X, 0 * P), "constraint row 1 is -0.2"),
    "no slope": (held(lambda x: (x[0] - 1) ** 2), (X, P), "constraints: row 0 has a zero gradient at y0"),
    "depends": (
        held(circle, lambda x: 3 * (x @ x) - 3),
        (X, 0 * P),
        "constraints: row 1 depends on the rows before it",
    ),
    "across": (held(circle), (X, X + P), r"y0: its velocity leaves constraint row 0 at the rate 1.*project"),
    "not finite": (held(lambda x: jnp.log(x[1])), (X, P), "constraints: a value or derivative at y0 is not finite"),
    "massless": (
        lgsim.DiscreteMechanics(lgsim.Euclidean(2), lambda x, v, args: 0.5 * v[0] ** 2),
        (X, P),
        "lagrangian: its second derivatives with respect to v are singular",
    ),
    "no number": (
        lgsim.DiscreteMechanics(lgsim.Euclidean(2), lambda x, v, args: v),
        (X, P),
        "lagrangian: expected one number",
    ),
    "rows": (
        lgsim.DiscreteMechanics(lgsim.Euclidean(2), free, constraints=lambda x, args: circle(x)),
        (X, P),
        r"constraints: expected a vector \(rows,\), got shape \(\)",
    ),
    "force": (
        lgsim.DiscreteMechanics(lgsim.Euclidean(2), free, force=lambda x, v, args: v[0]),
        (X, P),
        r"force: expected shape \(2,\)",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_systems_and_starts(case):
    mechanics, y0, message = CASES[case]
    with pytest.raises(ValueError, match=message):
        start(mechanics, y0)


def test_what_is_no_mechanics():
    with pytest.raises(TypeError, match=r"field: .*DiscreteMechanics.*got function"):
        start(lambda t, y, args: jnp.zeros(4), (X, P))
    with pytest.raises(
        ValueError, match=r"field: its group Euclidean\(n=3\) has momenta of shape \(3,\), the state \(2,\)"
    ):
        start(SPRING, (X, P), action=PLANE)
    with pytest.raises(ValueError, match=r"field: its group is .*quaternion, that of the action .*so3"):
        quaternions = lgsim.DiscreteMechanics(lgsim.UnitQuaternion, free)
        check_mechanics(quaternions, on(lgsim.SO3), "a method")
    with pytest.raises(TypeError, match=r"action: a variational method needs a cotangent bundle.*RightTranslation"):
        start(FREE_BODY, jnp.eye(3), action=actions.RightTranslation(lgsim.SO3))
    with pytest.raises(TypeError, match=r"group: expected the group of configurations.*got int"):
        lgsim.DiscreteMechanics(3, free)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"constraints: expected a function, got float"):
        lgsim.DiscreteMechanics(lgsim.Euclidean(2), free, constraints=1.0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"Cayley"):
        group = lgsim.Tangent(lgsim.SO3)
        mechanics = lgsim.DiscreteMechanics(group, free)
        start(mechanics, (group.identity(), jnp.zeros(6)), on(group), Variational(MIDPOINT, coordinates=Cayley()))
    with pytest.raises(TypeError, match=r"mechanics: expected lgsim.DiscreteMechanics"):
        lgsim.discrete_momentum_map(free, P)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"generator: expected velocities \(3,\).*\(2,\)"):
        lgsim.discrete_momentum_map(SPRING, P)


@pytest.mark.slow
def test_moser_veselov_is_of_free_bodies():
    y0 = (jnp.eye(3), jnp.ones(3))
    args = lagrangians.heavy_top().args
    with pytest.raises(ValueError, match=r"depends on the attitude or is not quadratic"):
        start(lagrangians.TOP, y0, on(lgsim.SO3), lgsim.MoserVeselov(), args=args)
    pushed = lgsim.DiscreteMechanics(lgsim.SO3, lagrangians.body, force=lambda g, v, args: v)
    with pytest.raises(ValueError, match=r"requires a free body, got constraints or forces"):
        start(pushed, y0, on(lgsim.SO3), lgsim.MoserVeselov(), args=lagrangians.INERTIA)
    with pytest.raises(TypeError, match=r"rotating body"):
        start(SPRING, SPRING_START, on(lgsim.Euclidean(3)), lgsim.MoserVeselov())
    # a momentum that no step can carry: it is bounded by I/h
    with pytest.raises(RuntimeError, match=r"Moser-Veselov: Newton's method did not converge in step 0"):
        start(
            FREE_BODY,
            (jnp.eye(3), jnp.array([40.0, 0.0, 0.0])),
            on(lgsim.SO3),
            lgsim.MoserVeselov(),
            args=lagrangians.INERTIA,
        )


@pytest.mark.parametrize("dt", [0.0, float("nan"), float("inf")])
def test_steps_that_are_none(dt):
    with pytest.raises(ValueError, match=r"dt: expected a (step that is not zero|finite number)"):
        start(SPRING, SPRING_START, on(lgsim.Euclidean(3)), dt=dt)


def test_schemes():
    with pytest.raises(ValueError, match=r"iterations: expected at least 2, got 1"):
        Variational(TRAPEZOID, newton=Newton(1))
    with pytest.raises(
        ValueError, match=r"order: one step of midpoint has order 2, not 4; higher ones are compositions"
    ):
        GalerkinScheme("midpoint", MIDPOINT.nodes, MIDPOINT.points, MIDPOINT.weights, 4)
    with pytest.raises(ValueError, match=r"nodes: expected two or more from 0 to 1"):
        GalerkinScheme("short", (0.0, 0.5), (0.5,), (1.0,), 2)
    with pytest.raises(ValueError, match=r"one-sided: expected nodes and points that are symmetric"):
        GalerkinScheme("one-sided", (0.0, 1.0), (0.0,), (1.0,), 1)
    with pytest.raises(ValueError, match=r"add up to"):
        GalerkinScheme("long", (0.0, 1.0), (0.5,), (1.0,), 2, (0.5, 0.6))
    with pytest.raises(ValueError, match=r"not symmetric|symmetric one"):
        suzuki(GalerkinScheme("skew", (0.0, 1.0), (0.5,), (1.0,), 2, (0.3, 0.7)))
    with pytest.raises(ValueError, match=r"coordinates: .*SecondKind"):
        Variational(MIDPOINT, coordinates=SecondKind())
    assert suzuki(LOBATTO3).order == 6 and Variational(suzuki(LOBATTO3)).order == 6


def test_adaptive_steps_are_refused_with_the_reason():
    pytest.importorskip("diffrax")
    for method in (named.VariationalMidpoint, lgsim.EnergyMomentum(), lgsim.MoserVeselov(), named.SymplecticMidpoint):
        with pytest.raises(ValueError, match=r"takes no adaptive steps: .*destroy.*fixed dt"):
            lgsim.integrators.adaptive.solve(method, on(lgsim.Euclidean(3)), SPRING, SPRING_START, t1=1.0)


@pytest.mark.slow
def test_a_step_that_is_not_solved_is_told():
    problem = pendulum()
    with pytest.raises(RuntimeError, match=r"variational, trapezoid: Newton's method did not converge in step"):
        lgsim.integrate(
            named.VariationalTrapezoid,
            problem.action,
            problem.field,
            problem.initial,
            dt=2.0,
            steps=3,
            args=problem.args,
        )


@pytest.mark.slow
def test_a_rotation_beyond_pi_in_a_step_is_told():
    y0 = (jnp.eye(3), jnp.array([0.1, 0.2, 9.0]))  # 3 rad/s
    start(FREE_BODY, y0, on(lgsim.SO3), named.VariationalMidpoint, dt=1.0, args=lagrangians.INERTIA)
    with pytest.raises(RuntimeError, match=r"did not converge in step 0.*residual is inf.*smaller dt"):
        start(FREE_BODY, y0, on(lgsim.SO3), named.VariationalMidpoint, dt=1.1, args=lagrangians.INERTIA)


@pytest.mark.slow
def test_a_projected_start_is_taken():
    problem = pendulum()
    x, p = problem.initial
    y0 = problem.field.project((x, p + 1.0), problem.args)
    start(problem.field, y0, problem.action, args=problem.args)
    v = problem.field.velocity(y0, problem.args)
    np.testing.assert_allclose(problem.field.rows(x, problem.args) @ v, 0, atol=1e-14)
