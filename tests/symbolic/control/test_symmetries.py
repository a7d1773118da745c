"""Conserved momenta, against Lagrange's equations, textbooks, and motions of numbers."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy

import lgsim
from lgsim.multibody import joints
from lgsim.symbolic import conserved
from tests.symbolic import textbook


def test_cart_pole():
    (found,) = conserved(textbook.cart_pole(), names=["x", "theta"])
    text = textbook.REFERENCE["cart_pole"]["conserved"].partition(": ")[2]
    words = {x: sympy.Symbol(x, real=True) for x in ("mc", "mp", "r", "theta", "v1", "v2")}
    textbook.same([found.momentum], [sympy.sympify(text, words)])
    assert found.cyclic == (words_x := sympy.Symbol("x", real=True),) and words_x.name == "x"
    assert found.unforced == ("cart",) and list(found.symmetry) == [1, 0]


def test_double_pendulum_keeps_nothing_but_without_gravity():
    model = textbook.double_pendulum()
    assert conserved(model) == ()
    (found,) = conserved(replace(model, gravity=0 * model.gravity))
    # the angular momentum about the first joint; that joint has no force, and the elbow may have any
    M = textbook.reference("double_pendulum", "M")
    textbook.same([found.momentum], M[0, :] * sympy.Matrix(sympy.symbols("v1:3", real=True)))
    assert found.unforced == ("b1",) and found.cyclic == (sympy.Symbol("q1", real=True),)


def test_dampers_and_springs_break_symmetries_that_they_act_on():
    cart = lgsim.symbolic.model(
        lgsim.ModelBuilder()
        .add_body("cart", "world", joints.Prismatic(), axis=(1, 0, 0), mass=1.5)
        .add_body("pole", "cart", joints.Revolute(), axis=(0, 1, 0), damping=0.5, stiffness=2.0, **textbook.link())
        .build(),
        {},
    )
    assert len(conserved(cart)) == 1  # what is in the pole's hinge acts on the cart not at all
    for name in ("damping", "friction", "stiffness"):
        assert conserved(lgsim.symbolic.model(cart, {f"{name}.cart": "d"})) == ()


def test_equal_springs_across_keep_the_turn():
    def plane(stiffness):
        builder = lgsim.ModelBuilder(gravity=(0, 0, 0))
        builder.add_body("a", "world", joints.Planar(), stiffness=stiffness, **textbook.link())
        return conserved(lgsim.symbolic.model(builder.build(), {}))

    (found,) = plane([2.0, 2.0, 0.0])
    x, y, angle = sympy.symbols("q1:4", real=True)
    c, s = sympy.cos(angle), sympy.sin(angle)
    textbook.same(found.symmetry, sympy.Matrix([x * s - y * c, x * c + y * s, 1]))
    assert plane([2.0, 3.0, 0.0]) == ()


def machine(name):
    builder = lgsim.ModelBuilder(gravity=textbook.DOWN)
    if name == "arm about the vertical":
        return textbook.arm(2, axes=[(0, 0, 1), (0, 1, 0)])
    if name == "screw along gravity":
        return builder.add_body("a", "world", joints.Helical(), axis=[0, 0, 1], pitch=0.5, **textbook.link()).build()
    if name == "oblique slides":
        builder.add_body("a", "world", joints.Prismatic(), axis=[1, 0, 0], **textbook.link())
        return builder.add_body("b", "a", joints.Prismatic(), axis=[0, 0, 1], **textbook.link()).build()
    root = {"ball": joints.Spherical, "ball by angles": joints.SphericalAngles, "free": joints.Free,
            "plane": joints.Planar, "slides": joints.Translational}[name]  # fmt: skip
    builder.add_body("a", "world", root(), **textbook.link())
    if name != "ball by angles":
        builder.add_body("b", "a", joints.Revolute(), axis=[0, 1, 0], placement=textbook.up(0.5), **textbook.link())
    return builder.build()


# how many are kept: turns about the vertical, slides across it
COUNTS = {
    "arm about the vertical": 1, "screw along gravity": 0, "oblique slides": 1, "ball": 1, "ball by angles": 1,
    "free": 3, "plane": 3, "slides": 2,
}  # fmt: skip
SLOW = ("free", "ball by angles")


@pytest.mark.repeats
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in COUNTS])
def test_kept_by_motions_of_numbers(name):
    """A momentum's slope along forward dynamics is zero, with any force on the joints that may have one."""
    model = machine(name)
    found = conserved(lgsim.symbolic.model(model, {}))
    assert len(found) == COUNTS[name]
    rng = np.random.default_rng(5)
    q = model.retract(model.neutral(), jnp.asarray(rng.normal(size=model.nv)))
    v, tau = jnp.asarray(rng.normal(size=(2, model.nv)))
    for each in found:
        free = jnp.ones(model.nv)
        for joint in each.unforced:
            free = free.at[model.v_slices[joint]].set(0)
        a = lgsim.forward_dynamics(model, q, v, tau * free)
        symbols = (*sympy.symbols(f"q1:{model.nq + 1}", real=True), *sympy.symbols(f"v1:{model.nv + 1}", real=True))
        momentum = lgsim.symbolic.to_jax(each.momentum, symbols, limit=10_000)

        def value(q, v, momentum=momentum):
            return momentum(*q, *v)

        _, slope = jax.jvp(value, (q, v), (model.rate(q, v), a))
        assert abs(slope) < 1e-12 * max(1, abs(value(q, v))) + 1e-11
        # and it is no constant: another force changes it
        pushed = lgsim.forward_dynamics(model, q, v, tau + 1)
        assert abs(jax.jvp(value, (q, v), (model.rate(q, v), pushed))[1]) > 1e-3


def test_a_free_body_without_gravity_keeps_six():
    builder = lgsim.ModelBuilder(gravity=(0, 0, 0))
    model = builder.add_body("a", "world", joints.Free(), **textbook.link()).build()
    assert len(conserved(lgsim.symbolic.model(model, {}))) == 6


def test_a_wrong_sign_is_caught(monkeypatch):
    """Of the symmetry's velocity of a ball: nothing is proved of it."""
    from lgsim.symbolic import symmetries

    right = symmetries._whole

    def mirrored(found):
        return [sympy.Matrix([-a[0], *a[1:]]) for a in right(found)]

    monkeypatch.setattr(symmetries, "_whole", mirrored)
    assert conserved(lgsim.symbolic.model(machine("ball"), {})) == ()


def test_refused():
    with pytest.raises(ValueError, match="the symbol 'mp' occurs twice"):
        conserved(textbook.cart_pole(), names=["mp", "theta"])
    with pytest.raises(ValueError, match="expected 2 names"):
        conserved(textbook.cart_pole(), rates=["v"])
