"""Identities of the dynamics on random trees: a small one, and two in which every type of joint moves a body.

The small one flies and has a group, a screw, a joint that follows another and bodies of two fixed parts.
Every type of joint is held against Pinocchio by ``test_every_joint`` too.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.lie import se3
from lgsim.multibody.inertia import from_pseudo_inertia, mass_center_inertia, pseudo_inertia
from lgsim.multibody.joint import ScrewJoint
from lgsim.multibody.topology import WORLD
from tests.dynamics.machines import close
from tests.dynamics.quantities import quantities
from tests.multibody import trees

STATES = 2
STENCIL = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
"""Central differences of order eight: with this step they are good to some 1e-13."""
STEP = 4e-3
EPS = np.finfo(float).eps


class Machine:
    """A random tree, random states, and all quantities at nine points of a motion through each state."""

    def __init__(self, seed, floating, kinds, followers):
        self.seed, self.floating, self.kinds, self.followers = seed, floating, kinds, followers
        self.model = self.built()
        tree = self.model.topology
        self.frame = tree.bodies + int(np.random.default_rng(seed).integers(tree.bodies))
        q, v, a = trees.state(self.model, seed, batch=(STATES,))
        self.a = np.asarray(a)
        self.wrenches = np.random.default_rng(seed).normal(size=(STATES, tree.bodies, 6))
        s = STEP * np.arange(-4, 5)[None, :, None]
        self.v = np.asarray(v)[:, None] + s * self.a[:, None]
        self.q = np.asarray(self.model.retract(q[:, None], jnp.asarray(s * np.asarray(v)[:, None])))
        self.values = self.all(self.model, self.q, self.v, self.a, self.wrenches)

    def built(self, split=False):
        """The tree, with bodies of two parts as one or as two."""
        return trees.every_joint(self.seed, self.floating, split, self.kinds, self.followers)

    def all(self, model, q, v, a, wrenches):
        """Quantities by name (states, points, ...)."""
        fixed = (np.repeat(x, len(STENCIL), axis=0) for x in (a, wrenches))
        flat = (x.reshape(-1, x.shape[-1]) for x in (q, v))
        out = quantities(model, *flat, *fixed, self.frame)
        return {name: np.asarray(x).reshape(STATES, -1, *x.shape[1:]) for name, x in out.items()}

    def at(self, state):
        """Quantities at the states."""
        return {name: x[state, len(STENCIL) // 2] for name, x in self.values.items()}

    def rate(self, name, state):
        """The time derivative of a quantity at a state, by differences."""
        return np.tensordot(STENCIL, self.values[name][state], axes=(0, 0)) / STEP

    def same_rate(self, found, name, state, solves=False):
        """That `found` is the rate of a quantity, up to 1e-12 and the round-off that differences magnify."""
        x, rate = self.values[name][state], self.rate(name, state)
        lost = 1e-15 * np.linalg.cond(self.at(state)["mass matrix"]) if solves else 4 * EPS
        atol = 1e-12 * np.abs(rate).max() + lost * np.abs(x).max() * np.abs(STENCIL).sum() / STEP
        np.testing.assert_allclose(found, rate, rtol=0, atol=atol, err_msg=name)

    def solve_bound(self, state):
        """What is left of a product with the inverse mass matrix."""
        return max(1e-12, 1e-15 * np.linalg.cond(self.at(state)["mass matrix"]))


ESSENTIAL = ("free", "spherical", "helical")
CASES = [
    pytest.param((0, True, ESSENTIAL, 1), id="essential"),
    pytest.param((0, True, trees.KINDS, 2), marks=pytest.mark.exhaustive, id="floating 0"),
    pytest.param((1, False, trees.KINDS, 2), marks=pytest.mark.exhaustive, id="roots 1"),
]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=CASES)
def machine(request):
    return Machine(*request.param)


each_state = pytest.mark.parametrize("state", range(STATES))


def test_every_kind_of_joint_moves_a_body(machine):
    tree = machine.model.topology
    assert set(tree.joints) == {trees.KINDS[kind] for kind in machine.kinds}
    assert tree.floats is machine.floating
    assert sum(source is not None for source in tree.mimics) == machine.followers


@each_state
def test_equation_of_motion(machine, state):
    """``tau(a) - M a - h + J^T F = 0``; ``C v = h - g``; M is the slope of tau by a."""
    x, a, v = machine.at(state), machine.a[state], machine.v[state, 4]
    M, bias = x["mass matrix"], x["bias"]
    close(M, M.T, 4 * EPS)  # joints that mimic add columns and rows up in another order
    assert np.linalg.eigvalsh(M)[0] > 0
    close(x["inverse dynamics da"], M)
    close(x["inverse dynamics tau"], x["inverse dynamics"])
    close(x["Coriolis"] @ v, bias - x["gravity"])
    # the power of the wrenches is that of their joint forces
    tree = machine.model.topology
    power = np.sum(machine.wrenches[state] * x["twists"][: tree.bodies])
    free = x["inverse dynamics"] - M @ a - bias
    np.testing.assert_allclose(free @ v, -power, rtol=0, atol=1e-12 * np.abs(x["inverse dynamics"]).max() * 10)


@each_state
def test_forward_dynamics_is_the_inverse(machine, state):
    """``M a = x - (tau(y) - M y)`` for the accelerations a of forces x and any y, and ABA = M^-1."""
    x, force = machine.at(state), machine.a[state]
    M, bound = x["mass matrix"], machine.solve_bound(state)
    inverse = np.linalg.inv(M)
    close(x["inverse mass"], inverse, bound)
    close(x["forward dynamics dtau"], inverse, bound)
    close(x["forward dynamics a"], x["forward dynamics"], bound)
    close(x["solve"], inverse @ force, bound)
    close(x["forward dynamics"], inverse @ (force - (x["inverse dynamics"] - M @ force)), bound)


@each_state
def test_energies(machine, state):
    """``T = v^T M v/2``, ``g = dV/dq``, and the power of all forces is the rate of the energy."""
    x, v = machine.at(state), machine.v[state, 4]
    close(x["kinetic energy"], v @ x["mass matrix"] @ v / 2)
    potential = machine.rate("potential energy", state)
    scale = np.abs(x["gravity"]).max() * np.abs(v).max()
    np.testing.assert_allclose(x["gravity"] @ v, potential, rtol=0, atol=1e-12 * scale)
    power = x["inverse dynamics"] @ v + np.sum(machine.wrenches[state] * x["twists"][: machine.wrenches.shape[1]])
    rate = machine.rate("kinetic energy", state) + potential
    np.testing.assert_allclose(power, rate, rtol=0, atol=1e-12 * np.abs(x["inverse dynamics"] * v).max())


@each_state
def test_rates_along_the_motion(machine, state):
    """``M' = C + C^T``, ``T' = T hat(V)``, and the rates of twists, Jacobians, momenta and of the center of mass."""
    x = machine.at(state)
    C = x["Coriolis"]
    machine.same_rate(C + C.T, "mass matrix", state)
    machine.same_rate(x["poses"] @ np.asarray(se3.hat(jnp.asarray(x["twists"]))), "poses", state)
    machine.same_rate(x["center velocity"], "center", state)
    for name, rate in (
        ("twists", "accelerations"),
        ("jacobian", "jacobian rate"),
        ("momentum", "momentum rate"),
        ("momentum matrix", "momentum matrix rate"),
    ):
        machine.same_rate(x[rate], name, state)


@each_state
def test_jacobians_give_velocities(machine, state):
    """``V = J v``, ``V' = J a + J' v``, ``c' = J_c v``, ``h = A v``, ``h' = A a + A' v``."""
    x, v, a = machine.at(state), machine.v[state, 4], machine.a[state]
    close(x["jacobian"] @ v, x["twists"][machine.frame])
    close(x["jacobian"] @ a + x["jacobian rate"] @ v, x["accelerations"][machine.frame])
    close(x["center jacobian"] @ v, x["center velocity"])
    close(x["momentum matrix"] @ v, x["momentum"])
    close(x["momentum matrix"] @ a + x["momentum matrix rate"] @ v, x["momentum rate"])


@each_state
def test_derivatives_along_the_motion(machine, state):
    """``dtau/dq v + dtau/dv a`` is the rate of tau(q(s), v(s)), and likewise of forward dynamics."""
    x, v, a = machine.at(state), machine.v[state, 4], machine.a[state]
    for name in ("inverse dynamics", "forward dynamics"):
        found = x[name + " dq"] @ v + x[name + " dv"] @ a
        machine.same_rate(found, name, state, solves=name == "forward dynamics")


@each_state
def test_regressors(machine, state):
    """Forces and energies are linear in the ten parameters of the bodies, the armature apart."""
    x, model = machine.at(state), machine.model
    v, a, pi = machine.v[state, 4], machine.a[state], np.asarray(model.inertias).reshape(-1)
    armature = np.asarray(model.armature)
    # the regressor knows no wrenches, so from the mass matrix and the bias
    close(x["torque regressor"] @ pi, x["mass matrix"] @ a + x["bias"] - armature * a)
    close(x["kinetic regressor"] @ pi, x["kinetic energy"] - armature @ (v * v) / 2)
    close(x["potential regressor"] @ pi, x["potential energy"])


def wrench_about(point, T, wrench):
    """Wrenches in frames at T, about a point and in the world's axes."""
    force = np.einsum("bij,bj->bi", T[:, :3, :3], wrench[:, :3])
    moment = np.einsum("bij,bj->bi", T[:, :3, :3], wrench[:, 3:]) + np.cross(T[:, :3, 3] - point, force)
    return np.concatenate([force.sum(axis=0), moment.sum(axis=0)])


@each_state
def test_momentum_changes_by_forces_from_outside(machine, state):
    """Wrenches, gravity and, in the first joints of each tree, the joint forces; about the world's origin.

    Of a floating machine without forces in its base the rate is that of the wrenches and gravity alone.
    """
    model, x = machine.model, machine.at(state)
    tree, center = model.topology, x["center"]
    mass = float(np.sum(model.inertias[:, 0]))
    weight = mass * np.asarray(model.gravity)
    # h_O = h_c + c x m c', which by differences of all points has the rate
    about_origin = np.array(
        [
            np.concatenate([h[:3], h[3:] + np.cross(c, h[:3])])
            for h, c in zip(machine.values["momentum"][state], machine.values["center"][state], strict=True)
        ]
    )
    rate = np.tensordot(STENCIL, about_origin, axes=(0, 0)) / STEP
    momentum = x["momentum rate"]
    expected = np.concatenate([momentum[:3], momentum[3:] + np.cross(center, momentum[:3])])
    close(rate, expected)
    np.testing.assert_allclose(mass * x["center velocity"], x["momentum"][:3], rtol=1e-12)
    if not machine.floating:
        return
    external = wrench_about(np.zeros(3), x["poses"][: tree.bodies], machine.wrenches[state])
    weight = np.concatenate([weight, np.cross(center, weight)])
    base = wrench_about(np.zeros(3), x["poses"][:1], x["inverse dynamics"][None, :6])
    close(rate, external + weight + base)
    # no force in the base: the motion of the base follows from the rest
    M, tau = x["mass matrix"], x["inverse dynamics"]
    free = -np.linalg.solve(M[:6, :6], tau[:6])
    there = x["momentum matrix"][:, :6] @ free + momentum
    there = np.concatenate([there[:3], there[3:] + np.cross(center, there[:3])])
    close(there, external + weight)


def test_bodies_of_two_parts(machine):
    """One body is the same as two that a fixed joint holds together (mujoco #3553)."""
    split = machine.built(split=True)
    assert split.topology == machine.model.topology
    same(machine.all(split, machine.q, machine.v, machine.a, machine.wrenches), machine)


def same(found, machine, names=None):
    """Equal quantities to 1e-12 of the largest entry, or what the condition of the mass matrix leaves."""
    for state in range(STATES):
        right = machine.at(state)
        for name in names or right:
            solves = name.startswith("forward dynamics") or name in ("inverse mass", "solve")
            bound = machine.solve_bound(state) if solves else 1e-12
            scale = np.abs(right[name]).max()
            if name == "jacobian rate":  # zero but for rounding where nothing turns under the frame
                scale = max(scale, np.abs(right["jacobian"]).max() * np.abs(machine.v[state, 4]).max())
            np.testing.assert_allclose(found[name][state, 4], right[name], rtol=0, atol=bound * scale, err_msg=name)


def changes(machine):
    """For each body a pose of its present frame in a new one, such that coordinates stay what they are.

    A frame may turn anyhow, for its screws' axes turn with it; it may slide along the axis of a single screw, and where
    it likes with a joint that only slides by numbers. A floating base keeps its frame.
    """
    rng, tree, model = np.random.default_rng(7), machine.model.topology, machine.model
    for body, joint in enumerate(tree.joints):
        Q, R = np.eye(4), trees.rotation(rng)
        if not (machine.floating and body == 0):
            axes = np.asarray(model.axes[tree.row_starts[body] : tree.row_starts[body + 1]])
            Q[:3, :3] = R
            if isinstance(joint, ScrewJoint) and not any(row.turns for row in joint.rows):
                Q[:3, 3] = rng.normal(size=3)
            elif isinstance(joint, ScrewJoint) and len({row.axis for row in joint.rows}) == 1:
                Q[:3, 3] = R @ axes[0] * rng.normal()
        yield Q


def test_change_of_frames(machine):
    """Ploen and Park's Q: forces, mass matrix and accelerations do not ask in which frames the bodies are described."""
    model, tree = machine.model, machine.model.topology
    Q = np.stack(list(changes(machine)))
    back = np.linalg.inv(Q)
    carrier = np.array([np.eye(4) if parent == WORLD else Q[parent] for parent in tree.parents])
    other = model.replace(
        placements=jnp.asarray(carrier @ np.asarray(model.placements) @ back),
        axes=jnp.asarray(np.einsum("kij,kj->ki", Q[tree.row_joint][:, :3, :3], model.axes)),
        inertias=from_pseudo_inertia(jnp.asarray(Q) @ pseudo_inertia(model.inertias) @ jnp.asarray(Q).mT),
        frames=jnp.asarray(Q[list(tree.frame_bodies)] @ np.asarray(model.frames)),
    )
    # (f, n) in the old frame at its origin is Ad(Q^-1)^T (f, n) in the new one
    dual = np.asarray(se3.Ad_dual(jnp.asarray(back)))
    found = machine.all(other, machine.q, machine.v, machine.a, np.einsum("bij,sbj->sbi", dual, machine.wrenches))
    assert np.abs(found["poses"] - machine.values["poses"]).max() > 0.1
    moved = {"poses", "twists", "accelerations", "torque regressor", "kinetic regressor", "potential regressor"}
    same(found, machine, sorted(set(machine.values) - moved))
    tools = slice(tree.bodies, None)  # the frames of the parts are where they were
    for name in ("poses", "twists", "accelerations"):
        for state in range(STATES):
            close(found[name][state, 4, tools], machine.at(state)[name][tools])


UNITS = {"powers of two": (2.0**5, 2.0**-7, 2.0**3), "mm, g, ms": (1e3, 1e3, 1e3), "odd": (0.3048, 2.2046, 0.7)}
"""How many new units of length, mass and time the old ones are."""


@pytest.mark.parametrize("units", UNITS)
def test_units(machine, units):
    """Numbers in other units of length, mass and time are those of the same machine; exactly, by powers of two."""
    L, m, t = UNITS[units]
    model, tree = machine.model, machine.model.topology
    slides = ~tree.row_turns
    free = [row for row in range(tree.rows) if tree.mimics[tree.row_joint[row]] is None]
    length = np.where(slides[free], L, 1.0)  # of each degree of freedom
    # a configuration's number is a length where a slide changes it
    E = jax.vmap(lambda v: model.rate(jnp.asarray(machine.q[0, 4]), v))(jnp.eye(model.nv))
    coordinate = np.where(np.any(np.asarray(E)[slides[free]] != 0, axis=0), L, 1.0)
    ten = m * np.array([1, *[L] * 3, *[L**2] * 6])
    rows, source = tree.row_joint, tree.row_source
    follows = np.array([row for row in range(tree.rows) if source[row] != row])
    ratio, offset = np.asarray(model.mimic).T.copy()
    for row in follows:
        own = L if slides[row] else 1.0
        ratio[rows[row]] *= own / (L if slides[source[row]] else 1.0)
        offset[rows[row]] *= own
    pose = np.where(np.arange(4) == 3, np.array([L, L, L, 1.0])[:, None], 1.0)
    scaled = {name: jnp.asarray(np.asarray(getattr(model, name)) * by) for name, by in (
        ("placements", pose), ("frames", pose), ("pitches", L), ("inertias", ten), ("gravity", L / t**2),
        ("armature", m * L**2 / length**2),
    )}  # fmt: skip
    other = model.replace(mimic=jnp.asarray(np.stack([ratio, offset], axis=1)), **scaled)
    force, moment = m * L / t**2, m * L**2 / t**2
    effort = moment / length
    wrench = np.array([*[force] * 3, *[moment] * 3])
    twist = np.array([*[L] * 3, *[1.0] * 3]) / t
    momentum = np.array([*[m * L] * 3, *[m * L**2] * 3]) / t
    per = np.array([*[L] * 3, *[1.0] * 3])
    inertia = m * L**2
    acceleration = length / t**2
    scales = {
        "poses": pose,
        "twists": twist,
        "accelerations": twist / t,
        "jacobian": per[:, None] / length,
        "jacobian rate": per[:, None] / length / t,
        "inverse dynamics": effort,
        "inverse dynamics tau": effort,
        "mass matrix": inertia / np.outer(length, length),
        "bias": effort,
        "gravity": effort,
        "Coriolis": inertia / np.outer(length, length) / t,
        "inverse mass": np.outer(length, length) / inertia,
        "center": L,
        "center velocity": L / t,
        "center jacobian": L / length,
        "momentum": momentum,
        "momentum rate": momentum / t,
        "momentum matrix": momentum[:, None] * t / length,
        "momentum matrix rate": momentum[:, None] / length,
        "kinetic energy": moment,
        "potential energy": moment,
        "torque regressor": (effort[:, None] / np.tile(ten, tree.bodies)),
        "kinetic regressor": moment / np.tile(ten, tree.bodies),
        "potential regressor": moment / np.tile(ten, tree.bodies),
        "inverse dynamics dq": effort[:, None] / length,
        "inverse dynamics dv": effort[:, None] / length * t,
        "inverse dynamics da": inertia / np.outer(length, length),
    }
    q, v = machine.q * coordinate, machine.v * (length / t)
    found = machine.all(other, q, v, machine.a * acceleration, machine.wrenches * wrench)
    solved = {
        "forward dynamics": acceleration,
        "forward dynamics a": acceleration,
        "solve": acceleration,
        "forward dynamics dq": acceleration[:, None] / length,
        "forward dynamics dv": acceleration[:, None] / length * t,
        "forward dynamics dtau": np.outer(length, length) / inertia,
    }
    forces = machine.all(other, q, v, machine.a * effort, machine.wrenches * wrench)
    back = {name: found[name] / scale for name, scale in scales.items()}
    back |= {name: forces[name] / scale for name, scale in solved.items()}
    assert set(back) == set(machine.values)
    if units == "powers of two":
        for name, x in back.items():
            np.testing.assert_array_equal(x, machine.values[name], err_msg=name)
    else:
        same(back, machine)


def test_the_bodies_can_exist(machine):
    """Masses and moments are positive, and the triangle inequality holds."""
    for ten in machine.model.inertias:
        mass, _, inertia = mass_center_inertia(ten)
        moments = np.linalg.eigvalsh(inertia)
        assert mass > 0 and moments[0] > 0 and moments[2] < moments[0] + moments[1]
