"""One motion in the conventions of lgsim, Pinocchio, MuJoCo and Drake: the tables of conventions_compared.md.

    python -m tests.formats.interop.conventions_compared    draws them anew; needs the extra `oracle`

A body that flies, a second one on it by a ball joint, a third one on that by a hinge. lgsim moves it; Pinocchio and
MuJoCo get the same machine and the converted state, and find accelerations, forces, twists and energies on their own.
Drake's column is what `lgsim.interop.drake` makes of lgsim's numbers by Drake's documentation.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin

import lgsim
from lgsim.formats import interop

PAGE = Path(__file__).parents[3] / "docs" / "conventions_compared.md"
BEGIN, END = "<!-- tables: python -m tests.formats.interop.conventions_compared -->", "<!-- end of the tables -->"
JOINTS = ("base", "ball", "elbow")
TIMES = (0.0, 0.4)
TOOLS = ("lgsim", "Pinocchio", "MuJoCo", "Drake")
ROWS = {"q": "q", "v": "v", "a": "acceleration", "tau": "forces"}


def placement(angle: float, *, along: tuple[float, float, float]) -> np.ndarray:
    """A pose that is turned about x by an angle, rad."""
    T = np.eye(4)
    T[1:3, 1:3] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    T[:3, 3] = along
    return T


def machine() -> lgsim.Model:
    """The machine of the tables."""
    bodies = {
        "base": (2.0, (0.05, 0.0, 0.02), (0.04, 0.05, 0.06)),
        "ball": (0.8, (0.0, 0.0, -0.15), (0.008, 0.008, 0.002)),
        "elbow": (0.5, (0.1, 0.0, 0.0), (0.001, 0.004, 0.004)),
    }
    kinds = {"base": lgsim.joints.Free(), "ball": lgsim.joints.Spherical(), "elbow": lgsim.joints.Revolute()}
    places = {
        "base": np.eye(4),
        "ball": placement(0.5, along=(0.1, 0.0, -0.05)),
        "elbow": placement(np.pi / 2, along=(0.0, 0.0, -0.3)),
    }
    builder, parent = lgsim.ModelBuilder(), "world"
    for name, (mass, center, moments) in bodies.items():
        builder.add_body(
            name, parent, kinds[name], placement=places[name], mass=mass, center=center, inertia=np.diag(moments)
        )
        parent = name
    return builder.build()


def motion(model: lgsim.Model) -> list[dict[str, jax.Array]]:
    """q, v, acceleration and forces at the times of the tables."""
    q = model.retract(model.neutral(), jnp.array([0.2, -0.1, 1.0, 0.3, -0.2, 0.4, 0.5, 0.1, -0.6, 0.7]))
    v = jnp.array([0.5, 0.0, 1.5, 0.4, -0.8, 0.6, 1.0, -0.5, 0.3, -2.0])
    tau = jnp.array([1.0, 0.0, 12.0, 0.1, -0.2, 0.0, 0.2, -0.1, 0.05, 0.3])
    steps = 400
    run = lgsim.rollout(model, q, v, dt=TIMES[1] / steps, steps=steps, torques=tau, save_every=steps, method=lgsim.MK4)
    return [
        {"q": q, "v": v, "a": lgsim.forward_dynamics(model, q, v, tau), "tau": tau}
        for q, v in zip(run.q[jnp.array([0, -1])], run.v[jnp.array([0, -1])], strict=True)
    ]


def converted(tool, model: lgsim.Model, state: dict[str, jax.Array]) -> dict[str, np.ndarray]:
    """The state in a tool's numbers."""
    q, v, a, tau = (state[name] for name in ("q", "v", "a", "tau"))
    found = tool.q_to(model, q), tool.v_to(model, q, v), tool.a_to(model, q, v, a), tool.tau_to(model, q, tau)
    return dict(zip(ROWS, map(np.array, found), strict=True))


def in_pinocchio(model: lgsim.Model) -> pin.Model:
    """The machine in Pinocchio."""
    theirs = pin.Model()
    theirs.gravity.linear = np.array(model.gravity)
    kinds = (pin.JointModelFreeFlyer(), pin.JointModelSpherical(), pin.JointModelRZ())
    for i, (name, kind) in enumerate(zip(JOINTS, kinds, strict=True)):
        T = np.array(model.placements[i])
        theirs.addJoint(i, kind, pin.SE3(T[:3, :3], T[:3, 3]), name)
        mass, lever, inertia = interop.pinocchio.inertia_to(model.inertias[i])
        theirs.appendBodyToJoint(
            i + 1, pin.Inertia(float(mass), np.array(lever), np.array(inertia)), pin.SE3.Identity()
        )
    return theirs


def in_mujoco(model: lgsim.Model) -> mujoco.MjModel:
    """The machine in MuJoCo."""

    def numbers(values):
        return " ".join(repr(float(x)) for x in np.ravel(values))

    inner = ""
    kinds = ("<freejoint/>", '<joint type="ball"/>', '<joint type="hinge" axis="0 0 1"/>')
    for i in reversed(range(3)):
        mass, center, quaternion, moments = map(numbers, interop.mujoco.inertia_to(model.inertias[i]))
        x = interop.mujoco.frame_to(model.placements[i])
        inner = (
            f'<body name="{JOINTS[i]}" pos="{numbers(x[:3])}" quat="{numbers(x[3:])}">{kinds[i]}<inertial mass="{mass}"'
            f' pos="{center}" quat="{quaternion}" diaginertia="{moments}"/>{inner}</body>'
        )
    gravity = numbers(model.gravity)
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option gravity="{gravity}"/><worldbody>{inner}</worldbody></mujoco>'
    )


def numbers() -> dict[str, dict]:
    """What each tool has: parts of the states, and the twist of the last body with the energies, at each time."""
    model = machine()
    found: dict[str, dict] = {name: {"states": [], "twist": [], "energy": []} for name in TOOLS}
    for state in motion(model):
        q, v = state["q"], state["v"]
        T, J = lgsim.forward_kinematics(model, q)[-1], lgsim.frame_jacobian(model, q, "elbow")
        energy = [float(lgsim.kinetic_energy(model, q, v)), float(lgsim.potential_energy(model, q))]
        _keep(found["lgsim"], {name: np.array(x) for name, x in state.items()}, J @ v, energy)
        _keep(found["Pinocchio"], *_pinocchio(model, converted(interop.pinocchio, model, state)))
        _keep(found["MuJoCo"], *_mujoco(model, converted(interop.mujoco, model, state)))
        twist = interop.drake.twist_to(T, J @ v)
        _keep(found["Drake"], converted(interop.drake, model, state), twist, None)
    return found


def _keep(found, state, twist, energy):
    found["states"].append(state)
    found["twist"].append(np.array(twist))
    found["energy"].append(energy)


def _pinocchio(model, state):
    """The state with Pinocchio's own accelerations, its twist of the last body in that body's frame, its energies."""
    theirs = in_pinocchio(model)
    data, (q, v, tau) = theirs.createData(), (state[name] for name in ("q", "v", "tau"))
    state = state | {"a": pin.aba(theirs, data, q, v, tau).copy()}
    pin.forwardKinematics(theirs, data, q, v)
    twist = pin.getVelocity(theirs, data, 3, pin.ReferenceFrame.LOCAL).vector
    return state, twist, [pin.computeKineticEnergy(theirs, data, q, v), pin.computePotentialEnergy(theirs, data, q)]


def _mujoco(model, state):
    """The same of MuJoCo; its object's velocity is angular first, in world axes."""
    theirs = in_mujoco(model)
    theirs.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data = mujoco.MjData(theirs)
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = state["q"], state["v"], state["tau"]
    mujoco.mj_forward(theirs, data)
    twist = np.zeros(6)
    mujoco.mj_objectVelocity(theirs, data, mujoco.mjtObj.mjOBJ_XBODY, 3, twist, 0)
    return state | {"a": data.qacc.copy()}, twist, [float(data.energy[1]), float(data.energy[0])]


def parts(tool: str, name: str, values: np.ndarray) -> list[np.ndarray]:
    """The numbers of each joint."""
    ball = 3 if name != "q" or tool == "Drake" else 4
    base = 7 if name == "q" else 6
    assert len(values) == base + ball + 1, (tool, name)
    return [values[:base], values[base : base + ball], values[base + ball :]]


def shown(values: np.ndarray | list) -> str:
    """Numbers to three decimals; no minus before zero."""
    return ", ".join(f"{round(float(x), 3) + 0.0:.3f}" for x in values)


def table(columns: tuple[str, ...], rows: list[list[str]]) -> str:
    """A table of markdown."""
    lines = [list(columns), ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def tables() -> str:
    """All tables of the page."""
    found, out = numbers(), []
    for i, t in enumerate(TIMES):
        rows = []
        for name, what in ROWS.items():
            split = {tool: parts(tool, name, found[tool]["states"][i][name]) for tool in TOOLS}
            rows += [[f"{what}, {joint}", *(shown(split[tool][k]) for tool in TOOLS)] for k, joint in enumerate(JOINTS)]
        rows.append(["twist of the elbow", *(shown(found[tool]["twist"][i]) for tool in TOOLS)])
        energies = [found[tool]["energy"][i] for tool in TOOLS]
        rows.append(["kinetic, potential energy, J", *("-" if e is None else shown(e) for e in energies)])
        out.append(f"### The state at {t:g} s\n\n{table(('', *TOOLS), rows)}\n")
    return "\n".join(out)


def page() -> str:
    """The page as it should be."""
    text = PAGE.read_text(encoding="utf-8")
    return f"{text[: text.index(BEGIN)]}{BEGIN}\n\n{tables()}\n{text[text.index(END) :]}"


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    PAGE.write_text(page(), encoding="utf-8")
