"""The tables of docs/coming_from.md: names exist, and what stands side by side gives the same numbers."""

import copy
import importlib
import re
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import dynamics
from lgsim.dynamics import Reference
from lgsim.formats import interop
from tests.formats.interop import conventions_compared as compared

mujoco = pytest.importorskip("mujoco")
pin = pytest.importorskip("pinocchio")
pytestmark = pytest.mark.oracle

TEXT = (Path(__file__).parents[3] / "docs" / "coming_from.md").read_text(encoding="utf-8")
SECTIONS = {part.splitlines()[0]: part for part in re.split(r"(?m)^## ", TEXT)[1:]}
LEAST = {"Pinocchio": 30, "MuJoCo and MJX": 20, "brax": 8, "Drake": 8, "Crocoddyl": 8, "diffrax": 8}
PREFIXES = {"Pinocchio": "pinocchio.", "MuJoCo and MJX": "mujoco."}
RTOL = 1e-10


def table(section):
    """The names of each row, a tuple for each of its cells but the last."""
    lines = [line for line in SECTIONS[section].splitlines() if line.startswith("|")][2:]
    return [[tuple(re.findall(r"`([^`]+)`", cell)) for cell in line.strip("|").split("|")[:-1]] for line in lines]


def there(name):
    """Whether a dotted name leads to something, from its package on."""
    first, *words = name.split(".")
    if not installed(first):
        return False
    found = importlib.import_module(first)
    for i, word in enumerate(words, start=1):
        if hasattr(found, word):
            found = getattr(found, word)
        elif word in getattr(found, "__dataclass_fields__", {}):
            return i == len(words)
        elif hasattr(found, "__path__") and installed(f"{found.__name__}.{word}"):
            found = importlib.import_module(f"{found.__name__}.{word}")
        else:
            return False
    return True


@cache
def installed(name):
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


@pytest.mark.parametrize("section", LEAST)
def test_names_exist(section):
    rows = table(section)
    assert set(SECTIONS) == set(LEAST) and len(rows) >= LEAST[section]
    absent = [name for row in rows for name in row[-1] if not there(f"lgsim.{name}")]
    for k in range(len(rows[0]) - 1):
        names = [(PREFIXES.get(section, "") if k == 0 else "mujoco.") + name for row in rows for name in row[k]]
        assert k > 0 or all(row[0] for row in rows)
        if k > 0:
            assert sum(bool(row[k]) for row in rows) >= LEAST[section]
        packages = {"mujoco.mjx"} if k > 0 else {name.split(".")[0] for name in names}
        if all(map(installed, packages)):
            absent += [name for name in names if not there(name)]
    assert not absent


def test_an_absent_name_is_found():
    assert there("lgsim.mass_matrix") and there("pinocchio.Model.nq") and there("mujoco.MjData.qacc")
    for name in ("lgsim.mass_matrices", "lgsim.Model.nqs", "lgsim.dynamics.mass.x", "pinocchio.crbaa", "nothing.at"):
        assert not there(name)


class Machine:
    """A machine in lgsim, Pinocchio and MuJoCo, and one state of it in the numbers of each."""

    def __init__(self, model, in_pinocchio, in_mujoco, frame):
        rng = np.random.default_rng(1)
        self.model, self.frame = model, frame
        self.q = model.retract(model.neutral(), jnp.array(rng.uniform(-1, 1, model.nv)))
        self.v, self.a, self.tau, self.dv = (jnp.array(x) for x in rng.uniform(-1, 1, (4, model.nv)))
        self.q1 = model.retract(self.q, self.dv)
        self.pin, self.data = in_pinocchio, in_pinocchio.createData()
        self.theirs = np.array(interop.pinocchio.q_to(model, self.q))
        self.id = self.pin.getFrameId(frame)
        self.state = tuple(map(np.array, (self.v, self.a, self.tau)))
        self.mj, self.mjd = in_mujoco, mujoco.MjData(in_mujoco)
        self.mj.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
        self.mj.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        self.mjd.qpos[:] = interop.mujoco.q_to(model, self.q)
        self.mjd.qvel[:] = interop.mujoco.v_to(model, self.q, self.v)
        self.mjd.qfrc_applied[:] = interop.mujoco.tau_to(model, self.q, self.tau)
        mujoco.mj_forward(self.mj, self.mjd)
        mujoco.mj_subtreeVel(self.mj, self.mjd)
        mujoco.mj_energyVel(self.mj, self.mjd)
        self.body = mujoco.mj_name2id(self.mj, mujoco.mjtObj.mjOBJ_BODY, frame)
        # what only the others take, in numpy
        self.theirs1 = np.array(interop.pinocchio.q_to(model, self.q1))
        self.step, self.place = np.array(self.dv), np.array(self.pose)
        self.screw, self.qacc = pin.log6(pin.SE3(self.place)).vector, interop.mujoco.a_to(model, self.q, self.v, self.a)

    def to_mujoco(self, J):
        """A Jacobian for MuJoCo's velocities."""
        return interop.mujoco.jacobian_to(self.model, self.q, J)

    @property
    def pose(self):
        return lgsim.forward_kinematics(self.model, self.q)[self.index]

    @property
    def index(self):
        return self.model.frame_names.index(self.frame)


def arm():
    """The arm of seven joints, without what MuJoCo puts into its joints on its own."""
    text = Path(lgsim.data.arm7()).read_text(encoding="utf-8")
    theirs = mujoco.MjModel.from_xml_string(text)
    theirs.dof_damping[:] = theirs.dof_frictionloss[:] = 0
    theirs.jnt_limited[:] = 0
    return Machine(lgsim.load_urdf(text=text), pin.buildModelFromXML(text), theirs, "link7")


def free():
    """A body that flies with two others on it."""
    model = compared.machine()
    built = compared.in_pinocchio(model)
    built.addFrame(pin.Frame("last", 3, pin.SE3.Identity(), pin.FrameType.OP_FRAME))
    machine = Machine(model.add_frame("last", "elbow"), built, compared.in_mujoco(model), "last")
    machine.body = 3
    return machine


@pytest.fixture(scope="module", params=[arm, free])
def machine(request):
    return request.param()


# What a row's two names give: (theirs, ours) of a machine m.
L, P = lgsim, pin
PINOCCHIO = {
    "rnea": lambda m: (P.rnea(m.pin, m.data, m.theirs, *m.state[:2]), L.inverse_dynamics(m.model, m.q, m.v, m.a)),
    "aba": lambda m: (
        P.aba(m.pin, m.data, m.theirs, m.state[0], m.state[2]),
        L.forward_dynamics(m.model, m.q, m.v, m.tau),
    ),
    "crba": lambda m: (P.crba(m.pin, m.data, m.theirs), L.mass_matrix(m.model, m.q)),
    "nonLinearEffects": lambda m: (
        P.nonLinearEffects(m.pin, m.data, m.theirs, m.state[0]),
        L.bias_forces(m.model, m.q, m.v),
    ),
    "computeGeneralizedGravity": lambda m: (
        P.computeGeneralizedGravity(m.pin, m.data, m.theirs),
        L.gravity_forces(m.model, m.q),
    ),
    "computeCoriolisMatrix": lambda m: (
        P.computeCoriolisMatrix(m.pin, m.data, m.theirs, m.state[0]) @ m.state[0],
        dynamics.coriolis_matrix(m.model, m.q, m.v) @ m.v,
    ),
    "computeMinverse": lambda m: (
        P.computeMinverse(m.pin, m.data, m.theirs),
        dynamics.inverse_mass_matrix(m.model, m.q),
    ),
    "computeRNEADerivatives": lambda m: (
        P.computeRNEADerivatives(m.pin, m.data, m.theirs, *m.state[:2])[:2],
        tuple(L.inverse_dynamics_derivatives(m.model, m.q, m.v, m.a)[1:3]),
    ),
    "computeABADerivatives": lambda m: (
        P.computeABADerivatives(m.pin, m.data, m.theirs, m.state[0], m.state[2]),
        tuple(L.forward_dynamics_derivatives(m.model, m.q, m.v, m.tau)[1:]),
    ),
    "framesForwardKinematics": lambda m: (
        P.framesForwardKinematics(m.pin, m.data, m.theirs) or m.data.oMf[m.id].homogeneous,
        m.pose,
    ),
    "computeFrameJacobian": lambda m: (
        P.computeFrameJacobian(m.pin, m.data, m.theirs, m.id),
        L.frame_jacobian(m.model, m.q, m.frame),
    ),
    "ReferenceFrame.WORLD": lambda m: (
        P.computeFrameJacobian(m.pin, m.data, m.theirs, m.id, P.ReferenceFrame.WORLD),
        L.frame_jacobian(m.model, m.q, m.frame, Reference.SPACE),
    ),
    "ReferenceFrame.LOCAL_WORLD_ALIGNED": lambda m: (
        P.computeFrameJacobian(m.pin, m.data, m.theirs, m.id, P.ReferenceFrame.LOCAL_WORLD_ALIGNED),
        L.frame_jacobian(m.model, m.q, m.frame, Reference.WORLD),
    ),
    "frameJacobianTimeVariation": lambda m: (
        P.frameJacobianTimeVariation(m.pin, m.data, m.theirs, m.state[0], m.id, P.ReferenceFrame.LOCAL),
        dynamics.frame_jacobian_rate(m.model, m.q, m.v, m.frame),
    ),
    "getFrameVelocity": lambda m: (
        P.forwardKinematics(m.pin, m.data, m.theirs, m.state[0]) or P.getFrameVelocity(m.pin, m.data, m.id).vector,
        dynamics.frame_twists(m.model, m.q, m.v)[m.index],
    ),
    "getFrameAcceleration": lambda m: (
        P.forwardKinematics(m.pin, m.data, m.theirs, *m.state[:2])
        or P.getFrameAcceleration(m.pin, m.data, m.id).vector,
        dynamics.frame_accelerations(m.model, m.q, m.v, m.a)[m.index],
    ),
    "centerOfMass": lambda m: (P.centerOfMass(m.pin, m.data, m.theirs), L.center_of_mass(m.model, m.q)),
    "jacobianCenterOfMass": lambda m: (
        P.jacobianCenterOfMass(m.pin, m.data, m.theirs),
        dynamics.center_of_mass_jacobian(m.model, m.q),
    ),
    "computeCentroidalMomentum": lambda m: (
        P.computeCentroidalMomentum(m.pin, m.data, m.theirs, m.state[0]).vector,
        L.centroidal_momentum(m.model, m.q, m.v),
    ),
    "computeCentroidalMap": lambda m: (
        P.computeCentroidalMap(m.pin, m.data, m.theirs),
        L.centroidal_momentum_matrix(m.model, m.q),
    ),
    "dccrba": lambda m: (
        P.dccrba(m.pin, m.data, m.theirs, m.state[0]) is None or m.data.dAg,
        dynamics.centroidal_momentum_matrix_rate(m.model, m.q, m.v),
    ),
    "computeKineticEnergy": lambda m: (
        P.computeKineticEnergy(m.pin, m.data, m.theirs, m.state[0]),
        L.kinetic_energy(m.model, m.q, m.v),
    ),
    "computePotentialEnergy": lambda m: (
        P.computePotentialEnergy(m.pin, m.data, m.theirs),
        L.potential_energy(m.model, m.q),
    ),
    "computeJointTorqueRegressor": lambda m: (
        P.computeJointTorqueRegressor(m.pin, m.data, m.theirs, *m.state[:2]) @ m.parameters,
        L.torque_regressor(m.model, m.q, m.v, m.a) @ m.model.inertias.reshape(-1),
    ),
    "integrate": lambda m: (
        P.integrate(m.pin, m.theirs, m.step),
        interop.pinocchio.q_to(m.model, m.model.retract(m.q, m.dv)),
    ),
    "difference": lambda m: (
        P.difference(m.pin, m.theirs, m.theirs1),
        m.model.difference(m.q, m.q1),
    ),
    "interpolate": lambda m: (
        P.interpolate(m.pin, m.theirs, m.theirs1, 0.3),
        interop.pinocchio.q_to(m.model, m.model.interpolate(m.q, m.q1, 0.3)),
    ),
    "neutral": lambda m: (P.neutral(m.pin), interop.pinocchio.q_to(m.model, m.model.neutral())),
    "log6": lambda m: (P.log6(P.SE3(m.place)).vector, L.se3.log(m.pose)),
    "exp6": lambda m: (P.exp6(m.screw).homogeneous, L.se3.exp(L.se3.log(m.pose))),
    "exp3": lambda m: (P.exp3(m.step[:3]), L.so3.exp(m.dv[:3])),
    "log3": lambda m: (P.log3(m.place[:3, :3]), L.so3.log(m.pose[:3, :3])),
    "Jexp3": lambda m: (P.Jexp3(m.step[:3]), L.so3.dexp(-m.dv[:3])),
    "Jlog3": lambda m: (P.Jlog3(P.exp3(m.step[:3])), L.so3.dexpinv(-m.dv[:3])),
}


# An arm's rows; what else there is has nothing of its own there.
ARM = ("rnea", "aba", "crba", "computeRNEADerivatives", "framesForwardKinematics", "computeFrameJacobian")
ARM += ("centerOfMass", "computeKineticEnergy", "computePotentialEnergy", "integrate", "difference")


def parameters(m):
    """Pinocchio's dynamic parameters of all its bodies but the universe."""
    return np.concatenate([m.pin.inertias[i].toDynamicParameters() for i in range(1, m.pin.njoints)])


Machine.parameters = property(parameters)


def agree(theirs, ours, rtol=RTOL):
    theirs, ours = (tuple(x) if isinstance(x, tuple) else (x,) for x in (theirs, ours))
    assert len(theirs) == len(ours)
    for a, b in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=rtol * max(1, np.max(np.abs(a))))


def compare(machine, rows, rtol=RTOL):
    """Compare all rows; lgsim's side is one program."""
    theirs = {}

    def ours(arguments):
        traced = copy.copy(machine)
        vars(traced).update(arguments)
        found = {}
        for name, both in rows.items():
            theirs[name], found[name] = both(traced)
            # what Pinocchio gives is a view, which its next call overwrites
            theirs[name] = jax.tree.map(np.array, theirs[name])
        return found

    found = jax.jit(ours)({name: getattr(machine, name) for name in ("q", "v", "a", "tau", "dv", "q1")})
    for name, values in found.items():
        try:
            agree(theirs[name], values, rtol)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None


@pytest.mark.slow
def test_rows_of_pinocchio_agree(machine):
    listed = {name for row in table("Pinocchio") for name in row[0]}
    assert set(PINOCCHIO) <= listed and len(PINOCCHIO) >= 30
    compare(machine, {name: PINOCCHIO[name] for name in (PINOCCHIO if machine.pin.nq > machine.pin.nv else ARM)})


def full(m):
    M = np.zeros((m.mj.nv, m.mj.nv))
    try:
        mujoco.mj_fullM(m.mj, m.mjd, M)
    except TypeError:  # before MuJoCo 4
        mujoco.mj_fullM(m.mj, M, m.mjd.qM)
    return M


def jacobian(m):
    J = np.zeros((6, m.mj.nv))
    mujoco.mj_jac(m.mj, m.mjd, J[:3], J[3:], m.mjd.xpos[m.body], m.body)
    return J


def twist(m):
    V = np.zeros(6)
    mujoco.mj_objectVelocity(m.mj, m.mjd, mujoco.mjtObj.mjOBJ_XBODY, m.body, V, 0)
    return V


def com_jacobian(m):
    J = np.zeros((3, m.mj.nv))
    mujoco.mj_jacSubtreeCom(m.mj, m.mjd, J, 1 if m.mj.nv == 10 else 0)
    return J


def angular(m):
    A = np.zeros((3, m.mj.nv))
    mujoco.mj_angmomMat(m.mj, m.mjd, A, 1 if m.mj.nv == 10 else 0)
    return A


def inverse(m):
    data = mujoco.MjData(m.mj)
    data.qpos[:], data.qvel[:] = m.mjd.qpos, m.mjd.qvel
    data.qacc[:] = m.qacc
    mujoco.mj_inverse(m.mj, data)
    return data.qfrc_inverse


def times_mass(m):
    out = np.zeros(m.mj.nv)
    mujoco.mj_mulM(m.mj, m.mjd, out, m.mjd.qvel)
    return out


MUJOCO = {
    "mj_forward": lambda m: (
        m.mjd.qacc,
        interop.mujoco.a_to(m.model, m.q, m.v, L.forward_dynamics(m.model, m.q, m.v, m.tau)),
    ),
    "mj_inverse": lambda m: (
        inverse(m),
        interop.mujoco.tau_to(m.model, m.q, L.inverse_dynamics(m.model, m.q, m.v, m.a)),
    ),
    "mj_fullM": lambda m: (full(m), m.to_mujoco(m.to_mujoco(L.mass_matrix(m.model, m.q)).T)),
    "mj_mulM": lambda m: (
        times_mass(m),
        interop.mujoco.tau_to(m.model, m.q, L.generalized_momentum(m.model, m.q, m.v)),
    ),
    "mj_kinematics": lambda m: (m.mjd.xpos[m.body], m.pose[:3, 3]),
    "mj_jac": lambda m: (jacobian(m), m.to_mujoco(L.frame_jacobian(m.model, m.q, m.frame, Reference.WORLD))),
    "mj_objectVelocity": lambda m: (
        twist(m),
        interop.mujoco.twist_to(m.pose, dynamics.frame_twists(m.model, m.q, m.v)[m.index]),
    ),
    "mj_comPos": lambda m: (m.mjd.subtree_com[0], L.center_of_mass(m.model, m.q)),
    "mj_jacSubtreeCom": lambda m: (com_jacobian(m), m.to_mujoco(dynamics.center_of_mass_jacobian(m.model, m.q))),
    "mj_angmomMat": lambda m: (angular(m), m.to_mujoco(L.centroidal_momentum_matrix(m.model, m.q)[3:])),
    "mj_subtreeVel": lambda m: (m.mjd.subtree_angmom[0], L.centroidal_momentum(m.model, m.q, m.v)[3:]),
    "mj_energyPos": lambda m: (m.mjd.energy[0], L.potential_energy(m.model, m.q)),
    "mj_energyVel": lambda m: (m.mjd.energy[1], L.kinetic_energy(m.model, m.q, m.v)),
}


@pytest.mark.slow
def test_rows_of_mujoco_agree(machine):
    listed = {name for row in table("MuJoCo and MJX") for name in row[0]}
    assert set(MUJOCO) <= listed
    # before version 4 it turns a file's inertias to their principal axes to 1e-7 only
    compare(machine, MUJOCO, RTOL if int(mujoco.__version__.split(".")[0]) >= 4 else 2e-6)


@pytest.mark.slow
def test_free_bodies_of_mujoco_move_straight_as_the_page_says(machine):
    """`mj_integratePos` is `Model.retract` for an arm, and not for a free body."""
    theirs, dv = machine.mjd.qpos.copy(), interop.mujoco.v_to(machine.model, machine.q, machine.dv)
    mujoco.mj_integratePos(machine.mj, theirs, np.array(dv), 1.0)
    ours = interop.mujoco.q_to(machine.model, machine.q1)
    assert np.allclose(theirs, ours, atol=1e-10) == (machine.mj.nq == machine.mj.nv)


def blocks(section):
    """The code of a section: the others' and then lgsim's."""
    return re.findall(r"```(?:py|python)\n(.*?)```", SECTIONS[section], re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("section", "package", "tolerance"),
    [("Pinocchio", "pinocchio", 1e-10), ("MuJoCo and MJX", "mujoco", 1e-9), ("diffrax", "diffrax", 1e-8)],
)
def test_both_programs_give_the_same(section, package, tolerance):
    pytest.importorskip(package)
    code = blocks(section)
    theirs, ours = {}, {"jax": jax, "jnp": jnp, "lgsim": lgsim}
    exec(code[0], theirs)
    exec(code[-1], ours)
    shared = [name for name in ours if name in theirs and isinstance(theirs[name], np.ndarray | jax.Array)]
    assert len(shared) >= 1 and {"Pinocchio": "dq", "MuJoCo and MJX": "M", "diffrax": "R"}[section] in shared
    for name in shared:
        agree(theirs[name], ours[name], tolerance)


@pytest.mark.repeats
@pytest.mark.parametrize("section", ["Drake", "Crocoddyl"])
def test_programs_of_lgsim_run(section):
    found = {"jax": jax, "jnp": jnp, "lgsim": lgsim}
    exec(blocks(section)[-1], found)
    if section == "Crocoddyl":
        assert np.allclose(found["end"], [np.pi, 0], atol=0.05)
    else:
        q, v = found["q"], found["v"]
        assert np.allclose(found["h"], lgsim.inverse_dynamics(found["model"], q, v, jnp.zeros(7)), atol=1e-12)
