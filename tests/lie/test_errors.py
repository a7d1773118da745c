"""Bad input gives an error that names the argument, what was expected and what came; never a silent broadcast."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import lie
from lgsim.lie.action import Coadjoint, LeftTranslation, Product, RightTranslation, TangentSphere
from lgsim.lie.extended_pose import SE23, ExtendedPoses
from lgsim.lie.group import SE3, SO3, Euclidean, UnitQuaternion
from lgsim.lie.product import Cotangent, Tangent
from lgsim.lie.product import Product as GroupProduct

ALGEBRA = {"so2": 1, "se2": 3, "so3": 3, "se3": 6, "quaternion": 3}
ELEMENT = {"so2": (2, 2), "se2": (3, 3), "so3": (3, 3), "se3": (4, 4), "quaternion": (4,)}
NAME = {"so2": "R", "se2": "T", "so3": "R", "se3": "T", "quaternion": "q"}
OF_ONE_VECTOR = ("hat", "exp", "ad", "ad_dual", "dexp", "dexpinv", "cay", "dcay", "dcayinv", "second_kind")
OF_TWO_VECTORS = ("bracket", "dexp_action", "dexpinv_action", "dcay_action", "dcayinv_action")
OF_ONE_ELEMENT = ("log", "inverse", "Ad", "Ad_dual", "cayinv", "second_kind_inverse")
PER_MODULE = pytest.mark.parametrize("module", ALGEBRA)


pytestmark = pytest.mark.usefixtures("without_import_hook")


def assert_message(failure, *parts):
    """Every part stands in the message as a word; a tuple of parts means any of them."""
    message = str(failure.value)
    for part in parts:
        choices = part if isinstance(part, tuple) else (part,)
        found = any(re.search(rf"(?<!\w){re.escape(c)}(?!\w)", message) for c in choices)
        assert found, f"{choices} missing in: {message}"


def shape_text(*shape):
    """A shape as Python writes it."""
    return str(shape)


@PER_MODULE
@pytest.mark.parametrize("function", OF_ONE_VECTOR)
def test_wrong_last_axis_of_a_vector(module, function):
    bad = ALGEBRA[module] + 1
    with pytest.raises(ValueError) as failure:
        getattr(getattr(lie, module), function)(jnp.zeros((5, bad)))
    assert_message(failure, "u", str(ALGEBRA[module]), shape_text(5, bad))


@PER_MODULE
@pytest.mark.parametrize("function", OF_TWO_VECTORS)
def test_wrong_last_axis_of_the_second_vector(module, function):
    bad = ALGEBRA[module] + 1
    with pytest.raises(ValueError) as failure:
        getattr(getattr(lie, module), function)(jnp.zeros((5, ALGEBRA[module])), jnp.zeros((5, bad)))
    assert_message(failure, "v", str(ALGEBRA[module]), shape_text(5, bad))


@PER_MODULE
@pytest.mark.parametrize("function", OF_ONE_ELEMENT)
def test_wrong_shape_of_an_element(module, function):
    bad = (5,) if module == "quaternion" else (5, 5)
    with pytest.raises(ValueError) as failure:
        getattr(getattr(lie, module), function)(jnp.zeros((7, *bad)))
    assert_message(failure, NAME[module], str(ELEMENT[module][-1]), shape_text(7, *bad))


@PER_MODULE
def test_a_scalar_and_a_vector_for_a_matrix(module):
    functions = getattr(lie, module)
    with pytest.raises(ValueError) as failure:
        functions.exp(jnp.zeros(()))
    assert_message(failure, "u", "()")
    if module != "quaternion":
        with pytest.raises(ValueError) as failure:
            functions.log(jnp.zeros(ELEMENT[module][-1]))
        assert_message(failure, NAME[module], shape_text(ELEMENT[module][-1]))


@PER_MODULE
def test_leading_axes_that_do_not_broadcast(module):
    functions = getattr(lie, module)
    u, v = jnp.zeros((2, ALGEBRA[module])), jnp.zeros((3, ALGEBRA[module]))
    for call in (
        lambda: functions.bracket(u, v),
        lambda: functions.dexp_action(u, v),
        lambda: functions.compose(functions.exp(u), functions.exp(v)),
        lambda: functions.Ad_action(functions.exp(u), v),
    ):
        with pytest.raises(ValueError) as failure:
            call()
        assert_message(failure, ("u", "p", NAME[module]), ("v", "S", "q"), "(2,)", "(3,)")


@PER_MODULE
@pytest.mark.parametrize("function", OF_ONE_VECTOR)
def test_integers(module, function):
    with pytest.raises(TypeError) as failure:
        getattr(getattr(lie, module), function)(jnp.zeros(ALGEBRA[module], jnp.int32))
    assert_message(failure, "u", "int32", ("float32", "float64", "floating", "floating-point", "float"))


@PER_MODULE
def test_integer_elements(module):
    functions = getattr(lie, module)
    g = functions.identity(jnp.float64).astype(jnp.int64)
    for call in (lambda: functions.log(g), lambda: functions.inverse(g), lambda: functions.compose(g, g)):
        with pytest.raises(TypeError) as failure:
            call()
        assert_message(failure, ("p", NAME[module]), "int64")


@PER_MODULE
def test_mixed_dtypes(module):
    """float32 beside float64 is refused: one of them would change its precision unseen."""
    functions = getattr(lie, module)
    u, v = jnp.zeros(ALGEBRA[module], jnp.float32), jnp.zeros(ALGEBRA[module], jnp.float64)
    g, h = functions.identity(jnp.float32), functions.identity(jnp.float64)
    for call in (
        lambda: functions.bracket(u, v),
        lambda: functions.dexpinv_action(u, v),
        lambda: functions.compose(g, h),
        lambda: functions.Ad_action(g, v),
        lambda: functions.Ad_dual_action(g, v),
        lambda: functions.interpolate(g, h, 0.5),
    ):
        with pytest.raises(TypeError) as failure:
            call()
        first = NAME[module]
        assert_message(
            failure, ("u", "p", first, f"{first}0"), ("v", "S", "q", "mu", f"{first}1"), "float32", "float64"
        )


def test_identity_and_random_refuse_integer_dtypes():
    key = jax.random.key(0)
    for call in (lambda: lie.so3.identity(jnp.int32), lambda: lie.se3.random(key, (), jnp.int32)):
        with pytest.raises(TypeError) as failure:
            call()
        assert_message(failure, "dtype", "int32")


CONVERSIONS = ("matrix_from_quaternion", "rotation_vector_from_quaternion")


@pytest.mark.parametrize("function", CONVERSIONS)
def test_zero_quaternion_outside_jit(function):
    convert = getattr(lie.conversions, function)
    with pytest.raises(ValueError) as failure:
        convert(jnp.zeros(4))
    assert_message(failure, ("q", "quaternion"), ("zero", "0", "0.0"), "norm")
    batch = jnp.stack([jnp.array([1.0, 0, 0, 0]), jnp.zeros(4)])
    with pytest.raises(ValueError):
        convert(batch)


@pytest.mark.parametrize("function", CONVERSIONS)
def test_zero_quaternion_inside_jit_is_nan(function):
    """Documented: inside jit nothing can be raised; the bad element is NaN, and only it."""
    convert = getattr(lie.conversions, function)
    batch = jnp.stack([jnp.array([1.0, 0, 0, 0]), jnp.zeros(4)])
    out = np.asarray(jax.jit(convert)(batch))
    assert np.all(np.isfinite(out[0])) and np.all(np.isnan(out[1]))
    assert "NaN" in convert.__doc__ + lie.conversions.__doc__


@pytest.mark.parametrize("function", CONVERSIONS)
def test_wrong_quaternion_shape(function):
    with pytest.raises(ValueError) as failure:
        getattr(lie.conversions, function)(jnp.zeros((2, 3)))
    assert_message(failure, ("q", "quaternion"), "4", shape_text(2, 3))


def test_wrong_matrix_and_vector_in_conversions():
    with pytest.raises(ValueError) as failure:
        lie.conversions.quaternion_from_matrix(jnp.zeros((2, 4, 4)))
    assert_message(failure, "3", shape_text(2, 4, 4))
    with pytest.raises(ValueError) as failure:
        lie.conversions.quaternion_from_rotation_vector(jnp.zeros((2, 4)))
    assert_message(failure, "3", shape_text(2, 4))
    with pytest.raises(TypeError) as failure:
        lie.conversions.matrix_from_quaternion(jnp.array([1, 0, 0, 0]))
    assert_message(failure, ("int32", "int64"))


GROUPS = {
    "SO3": (SO3, 3),
    "SE3": (SE3, 6),
    "UnitQuaternion": (UnitQuaternion, 3),
    "SE23": (SE23, 9),
    "Euclidean": (Euclidean(3), 3),
    "Product": (GroupProduct(SO3, Euclidean(2)), 5),
    "Tangent": (Tangent(SO3), 6),
    "Cotangent": (Cotangent(SE3), 12),
}


@pytest.mark.parametrize("name", GROUPS)
def test_groups_refuse_bad_vectors(name):
    group, dim = GROUPS[name]
    for call in (group.exp, group.dexp, lambda u: group.bracket(u, u), lambda u: group.dexpinv_action(u, u)):
        with pytest.raises(ValueError) as failure:
            call(jnp.zeros(dim + 1))
        assert_message(failure, "u", str(dim), shape_text(dim + 1))
        with pytest.raises(TypeError) as failure:
            call(jnp.zeros(dim, jnp.int32))
        assert_message(failure, "u", "int32")


def test_constructors_refuse_what_is_no_group():
    for call in (lambda: Euclidean(0), lambda: Euclidean(-1)):
        with pytest.raises(ValueError) as failure:
            call()
        assert_message(failure, "n")
    for call in (lambda: GroupProduct(SO3, 3), lambda: GroupProduct()):
        with pytest.raises(TypeError) as failure:
            call()
        assert_message(failure, "groups", "Lie groups")
    with pytest.raises(TypeError) as failure:
        Product(TangentSphere(), SO3)
    assert_message(failure, "actions", "expected")


@pytest.mark.parametrize("name", ["SE23", "Tangent"])
def test_pairs_refuse_what_is_none(name):
    """One array, three parts, or a vector of another length."""
    group, dim = GROUPS[name]
    R, x = group.identity(jnp.float64)
    for call in (group.log, group.inverse, group.project, lambda g: group.compose((R, x), g)):
        for bad, came in ((jnp.eye(5), "ArrayImpl"), ((R, x, x), "3 parts")):
            with pytest.raises(ValueError) as failure:
                call(bad)
            assert_message(failure, ("g", "h"), "a pair", came)
        with pytest.raises(ValueError) as failure:
            call((R, jnp.zeros(dim)))
        assert_message(failure, ("g[1]", "h[1]"), str(dim - 3), shape_text(dim))


def test_extended_poses_refuse_other_groups_and_counts():
    with pytest.raises(TypeError) as failure:
        ExtendedPoses(SE3)
    assert_message(failure, "base", "SO3", "UnitQuaternion", "se3")
    with pytest.raises(ValueError) as failure:
        ExtendedPoses(SO3, 0)
    assert_message(failure, "count", "at least 1", "0")


@pytest.mark.parametrize(
    "action, dim, y",
    [
        (LeftTranslation(SO3), 3, jnp.eye(3)),
        (RightTranslation(SE3), 6, jnp.eye(4)),
        (RightTranslation(SE23), 9, (jnp.eye(3), jnp.zeros(6))),
        (Coadjoint(SE3), 6, jnp.ones(6)),
        (TangentSphere(), 6, jnp.array([0.0, 0, 1, 1, 0, 0])),
        (Product(TangentSphere(), Coadjoint(SO3)), 9, (jnp.array([0.0, 0, 1, 1, 0, 0]), jnp.ones(3))),
    ],
    ids=["left", "right", "extended", "coadjoint", "sphere", "product"],
)
def test_actions_refuse_bad_vectors(action, dim, y):
    for call, argument in (
        (lambda a: action.move(a, y), "xi"),
        (lambda a: action.dexpinv(a, a), "sigma"),
        (lambda a: action.bracket(a, a), "a"),
    ):
        with pytest.raises(ValueError) as failure:
            call(jnp.zeros(dim + 1))
        assert_message(failure, argument, str(dim), shape_text(dim + 1))
    good = jnp.zeros(dim)
    bad = jax.tree.map(lambda leaf: jnp.zeros((*leaf.shape[:-1], leaf.shape[-1] + 1)), y)
    with pytest.raises(ValueError) as failure:
        action.move(good, bad)
    assert_message(failure, "y")


def test_public_aliases():
    """The front door shows the same objects."""
    assert lgsim.so3 is lie.so3 and lgsim.se3 is lie.se3 and lgsim.quaternion is lie.quaternion
    assert lgsim.SO3 is SO3 and lgsim.SE3 is SE3 and lgsim.SE23 is SE23
    assert lgsim.actions.LeftTranslation is LeftTranslation
