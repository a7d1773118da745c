"""Linear models and models affine in the input, against Lagrange's equations and against derivatives of numbers."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy
from systems import kwatny_blankenship

import lgsim
from lgsim.multibody import joints
from lgsim.multibody.topology import ModelError
from lgsim.symbolic import accessibility_rank, control_affine, controllability_rank, linearize
from tests.multibody.trees import KINDS
from tests.symbolic import textbook
from tests.symbolic.textbook import at_numbers, reference, same


def test_double_pendulum_upright():
    found = linearize(textbook.double_pendulum())
    same(found.A[2:, :2], reference("double_pendulum", "A21_at_zero"))
    same(found.B[2:, :], reference("double_pendulum", "B2_at_zero"))
    same(found.A[:2, :], sympy.Matrix.hstack(sympy.zeros(2), sympy.eye(2)))
    assert found.A[2:, 2:].is_zero_matrix and found.B[:2, :].is_zero_matrix and found.tau.is_zero_matrix


def test_a_wrong_sign_is_caught():
    """Of gravity in the model: the linear model is another one."""
    wrong = textbook.double_pendulum()
    wrong = replace(wrong, gravity=-wrong.gravity)
    with pytest.raises(AssertionError):
        same(linearize(wrong).A[2:, :2], reference("double_pendulum", "A21_at_zero"))


def test_cart_pole():
    model = textbook.cart_pole()
    found = linearize(model, actuated=["cart"], names=["x", "theta"])
    same(found.A[2:, :2], reference("cart_pole", "A21_at_zero"))
    same(found.B[2:, :], reference("cart_pole", "B2").subs(sympy.Symbol("theta", real=True), 0))
    assert controllability_rank(found.A, found.B) == 4
    hanging = linearize(model, {"theta": sympy.pi}, actuated=["cart"], names=["x", "theta"])
    g, mp, r, mc, J = (sympy.Symbol(x, real=True) for x in ("g", "mp", "r", "mc", "J"))
    same([hanging.A[3, 1]], [-g * mp * r * (mc + mp) / (J * (mc + mp) + mc * mp * r**2)])
    assert controllability_rank(hanging.A, hanging.B) == 4
    # a force on the pole's hinge alone leaves the common center of mass where it is
    inner = linearize(model, actuated=["pole"])
    assert controllability_rank(inner.A, inner.B) == 2


def test_cart_pole_solved_for_accelerations():
    model = textbook.cart_pole()
    found = control_affine(model, actuated=["cart"], names=["x", "theta"])
    names = {s.name: s for s in found.x}
    M, Cv, G = (reference("cart_pole", name) for name in ("M", "Cv", "G"))
    same(found.g[2:, :], reference("cart_pole", "B2"))
    same(M * found.f[2:, :] + Cv + G, sympy.zeros(2, 1))
    assert list(found.f[:2, :]) == [names["v1"], names["v2"]] and list(names) == ["x", "theta", "v1", "v2"]
    assert accessibility_rank(*found) == 4


def other(name):
    builder = lgsim.ModelBuilder(gravity=(0.25, -0.5, -9.81))
    if name == "spatial arm":
        builder.add_body("a", "world", joints.Revolute(), axis=[0, 0, 1], **textbook.link())
        builder.add_body(
            "b", "a", joints.Helical(), axis=[0, 1, 0], pitch=0.125, placement=textbook.up(0.5), **textbook.link()
        )
        builder.add_body("c", "b", joints.Prismatic(), axis=[1, 0, 0], placement=textbook.up(0.5), **textbook.link())
    elif name == "mimic":
        builder.add_body("a", "world", joints.Revolute(), axis=[0, 1, 0], **textbook.link())
        builder.add_body(
            "b",
            "a",
            joints.Revolute(),
            axis=[1, 0, 0],
            mimic=("a", 2.0, 0.0),
            placement=textbook.up(0.5),
            **textbook.link(),
        )
    elif name == "plane":
        builder.add_body("a", "world", joints.Planar(), **textbook.link())
        builder.add_body("b", "a", joints.Revolute(), axis=[1, 0, 0], **textbook.link())
    elif name == "ball by angles":
        builder.add_body("a", "world", joints.SphericalAngles(), **textbook.link())
        builder.add_body("b", "a", joints.Revolute(), axis=[1, 0, 0], placement=textbook.up(0.5), **textbook.link())
    else:
        kind = joints.Free if name == "free base" else joints.Spherical
        builder.add_body("a", "world", kind(), **textbook.link())
        builder.add_body("b", "a", joints.Revolute(), axis=[1, 0, 0], **textbook.link())
    return builder.build()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spatial arm", "mimic", "plane", "ball by angles", "ball", "free base"])
def test_equal_to_derivatives_of_numbers(name):
    """Of forward dynamics along the tangent, at configurations held by all joint forces, with dampers and springs."""
    model = other(name)
    numbers = np.linspace(0.25, 0.75, model.nv)
    model = model.replace(damping=0.5 * numbers, stiffness=8 * numbers, rest=numbers - 0.5)
    symbolic = lgsim.symbolic.model(model, {})
    rng = np.random.default_rng(3)
    q = model.retract(model.neutral(), jnp.asarray(rng.uniform(-0.6, 0.6, model.nv)))
    found = linearize(symbolic, [sympy.Float(float(x), 30) for x in q])
    zero = jnp.zeros(model.nv)
    tau = lgsim.inverse_dynamics(model, q, zero, zero) - lgsim.passive_forces(model, q, zero)
    np.testing.assert_allclose(np.array(found.tau.tolist(), float)[:, 0], tau, rtol=0, atol=1e-12)

    def acceleration(dq, v, dtau):
        at = model.retract(q, dq)
        return lgsim.forward_dynamics(model, at, v, tau + dtau + lgsim.passive_forces(model, at, v))

    by_q, by_v, by_tau = jax.jacfwd(acceleration, (0, 1, 2))(zero, zero, zero)
    A, B = (np.array(x.evalf(25).tolist(), float) for x in (found.A, found.B))
    n = model.nv
    np.testing.assert_allclose(A[n:, :n], by_q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(A[n:, n:], by_v, rtol=0, atol=1e-12)
    np.testing.assert_allclose(B[n:], by_tau, rtol=0, atol=1e-10)


@pytest.mark.slow
def test_affine_model_equal_to_numbers():
    model = other("spatial arm").replace(damping=0.25, stiffness=[0.0, 3.0, 5.0], rest=[0.0, 0.5, -0.25])
    found = control_affine(lgsim.symbolic.model(model, {}))
    rng = np.random.default_rng(0)
    q, v, tau = jnp.asarray(rng.normal(size=(3, 3)))
    at = dict(zip((s.name for s in found.x), (*q.tolist(), *v.tolist()), strict=True))
    rate = at_numbers(found.f, at)[:, 0] + at_numbers(found.g, at) @ tau
    np.testing.assert_allclose(rate[:3], v, rtol=1e-15)
    tau = tau + lgsim.passive_forces(model, q, v)
    np.testing.assert_allclose(rate[3:], lgsim.forward_dynamics(model, q, v, tau), rtol=1e-11)


def test_dry_friction_and_stops_are_left_out():
    plain = textbook.cart_pole()
    rough = lgsim.symbolic.model(plain, {"friction.cart": "f", "limit_stiffness.pole": "k"})
    assert linearize(rough) == linearize(plain)


REFUSED = {
    "no equilibrium": (
        {"equilibrium": {"theta": 1}},
        "gravity or a spring moves degree of freedom 1, which is not actuated",
    ),
    "coordinate": ({"equilibrium": {"phi": 0}}, "expected coordinates among x, theta, got phi"),
    "not finite": ({"equilibrium": {"theta": float("nan")}}, "equilibrium: expected finite entries, got nan"),
    "entries": ({"equilibrium": [0]}, "expected 2 entries, got 1"),
    "joint": ({"actuated": ["card"]}, "actuated: expected the name of a joint.*cart"),
    "names": ({"names": ["x"]}, "q: expected 2 names"),
    "clash": ({"names": ["x", "mp"]}, "the symbol 'mp' occurs twice"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    given, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        linearize(textbook.cart_pole(), **{"actuated": ["cart"], "names": ["x", "theta"], **given})


def test_many_joints_have_no_inverse_that_one_reads():
    with pytest.raises(ModelError, match=r"at most three degrees of freedom.*nv = 4.*forward_dynamics"):
        control_affine(textbook.arm(4))


@pytest.mark.slow
def test_a_singular_mass_matrix_is_told():
    """A bar without inertia about its axis, turned about it: the arm of the paper as it stands upright."""
    arm = kwatny_blankenship.six_joint_arm()
    with pytest.raises(ModelError, match=r"mass matrix is singular.*another configuration"):
        linearize(arm)
    assert linearize(arm, {"q2": sympy.Rational(1, 2)}).A.is_zero_matrix is False


@pytest.mark.slow
def test_every_joint_of_the_register():
    """One body on each: A and B are those of forward dynamics at the neutral configuration."""
    for name, joint in KINDS.items():
        if not joint.nv:
            continue
        options = {"pitch": 0.25} if joint.pitched else {}
        builder = lgsim.ModelBuilder(gravity=(0.25, -0.5, -9.81))
        model = builder.add_body("a", "world", joint, **options, **textbook.link()).build()
        found = linearize(lgsim.symbolic.model(model, {}))
        zero, q = jnp.zeros(model.nv), model.neutral()
        tau = lgsim.inverse_dynamics(model, q, zero, zero)
        np.testing.assert_allclose(np.array(found.tau.tolist(), float)[:, 0], tau, atol=1e-12, err_msg=name)

        def acceleration(dq, dtau, model=model, q=q, tau=tau, zero=zero):
            return lgsim.forward_dynamics(model, model.retract(q, dq), zero, tau + dtau)

        by_q, by_tau = jax.jacfwd(acceleration, (0, 1))(zero, zero)
        A, B = (np.array(x.evalf(25).tolist(), float)[model.nv :] for x in (found.A, found.B))
        np.testing.assert_allclose(A[:, : model.nv], by_q, rtol=0, atol=1e-9 * (1 + np.abs(by_q).max()), err_msg=name)
        np.testing.assert_allclose(B, by_tau, rtol=0, atol=1e-10 * (1 + np.abs(by_tau).max()), err_msg=name)
