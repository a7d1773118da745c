"""Every joint of the register against Pinocchio on random trees; one that is added without a peer there is told."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from lgsim.dynamics.forward_dynamics import forward_dynamics
from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.multibody import ModelBuilder, joints
from lgsim.multibody.joint import GroupJoint, ScrewJoint
from tests.dynamics import test_forward_dynamics, test_inverse_dynamics, test_kinematics, test_mass_matrix
from tests.dynamics.test_forward_dynamics import solved
from tests.dynamics.test_inverse_dynamics import largest, wrenches
from tests.multibody import trees
from tests.multibody.twin import PEERS, Twin, peer

# Unknown to Pinocchio: a joint of the plane that is no subclass of Planar, one that is, and a chain of screws.
Planted = dataclass(frozen=True)(
    type("Planted", (GroupJoint,), {name: f for name, f in vars(joints.Planar).items() if not name.startswith("__")})
)


@dataclass(frozen=True)
class PlantedChild(joints.Planar):
    pass


@dataclass(frozen=True)
class PlantedScrews(ScrewJoint):
    @property
    def rows(self):
        return joints.Cylindrical().rows


COMPARISONS = {
    "inverse dynamics": test_inverse_dynamics.test_equals_pinocchio,
    "forward dynamics": test_forward_dynamics.test_equals_pinocchio,
    "kinematics": test_kinematics.test_equal_pinocchio,
    "mass matrix": test_mass_matrix.test_equals_pinocchio,
}


def test_every_joint_has_a_peer():
    assert set(PEERS) == set(joints.JOINTS) - {joints.Fixed}


def test_every_joint_is_in_the_comparisons():
    """All of them run over these machines."""
    assert {name for names, _ in trees.CASES.values() for name in names} == set(trees.KINDS)
    assert sorted(trees.scattered(0)[0]) == sorted(trees.KINDS)
    for compare in COMPARISONS.values():
        (mark,) = [mark for mark in compare.pytestmark if mark.name == "parametrize"]
        assert {name for parameter in mark.args[1] for name in parameter.values} == set(trees.CASES)


def plant(planted, monkeypatch):
    """The machines of a register that has the type too; the one in which it is, and its name."""
    kinds = trees.kinds_of((*joints.JOINTS, planted))
    name, case = planted.__name__.lower(), "groups" if issubclass(planted, GroupJoint) else "screws"
    monkeypatch.setattr(trees, "KINDS", kinds)
    monkeypatch.setattr(trees, "CASES", trees.cases_of(kinds))
    assert name in trees.CASES[case][0] and name in trees.scattered(0)[0]
    return case, name


@pytest.mark.parametrize("planted", [Planted, PlantedChild, PlantedScrews])
def test_a_joint_without_a_peer_is_told(planted, monkeypatch):
    """A group that is a chain of screws nowhere, a type that only looks like its base, and new screws."""
    case, name = plant(planted, monkeypatch)
    message = rf"{planted.__name__}: no joint of Pinocchio .* PEERS"
    for machine in (trees.build([name], [-1]), trees.build(*trees.CASES[case])):
        with pytest.raises(NotImplementedError, match=message):
            Twin(machine)
    with pytest.raises(NotImplementedError, match=message):
        peer(planted())


@pytest.mark.parametrize("name", COMPARISONS)
def test_every_comparison_fails_on_it(name, monkeypatch):
    case, _ = plant(Planted, monkeypatch)
    with pytest.raises(NotImplementedError, match=r"Planted: no joint of Pinocchio"):
        COMPARISONS[name](case)


@pytest.mark.slow
def test_a_random_tree():
    """One joint of every kind, in any order and on any other one."""
    model = trees.build(*trees.scattered(0), armature=True)
    twin, external = Twin(model), wrenches(model)
    q, v, a = trees.state(model)
    tau = pin.rnea(twin.pin, twin.data, twin.q(q), twin.v(v), twin.v(a), twin.forces(external))
    assert largest(inverse_dynamics(model, q, v, a, external), twin.back(tau)) < 1e-12
    right, condition = solved(twin, q, v, a, external)
    assert largest(forward_dynamics(model, q, v, a, external), right) < max(1e-12, 1e-15 * condition)


def test_axes_that_a_peer_has_not_are_told():
    """Pinocchio's planar joint knows the axes of its frame alone."""
    rng = np.random.default_rng(0)
    turned = ModelBuilder().add_body("a", "world", joints.Planar(), axis=trees.rotation(rng), **trees.body(rng)).build()
    with pytest.raises(NotImplementedError, match=r"Planar: .* its own axes"):
        Twin(turned)


def test_compound_joints_that_advance():
    """The pitches of a chain are those of its turning rows."""
    rng = np.random.default_rng(1)
    builder = ModelBuilder().add_body(
        "a", "world", trees.COMPOUND, axis=trees.rotation(rng), pitch=np.array([0.2, 0.0, -0.1]), **trees.body(rng)
    )
    model = builder.build()
    twin, (q, v, a) = Twin(model), trees.state(model)
    tau = pin.rnea(twin.pin, twin.data, twin.q(q), twin.v(v), twin.v(a))
    assert largest(inverse_dynamics(model, q, v, a), twin.back(tau)) < 1e-12
    assert float(jnp.max(jnp.abs(model.pitches))) == 0.2
