"""Drift of energy and momenta over many steps: free bodies, a ball joint and an arm.

    python benchmarks/long_run.py --quick     10,000 steps; without the robot, MJX only for the ball joint
    python benchmarks/long_run.py             a million, with a record and a figure in benchmarks/results
    benchmarks/peers/setup                    once, for the rows of MJX: an environment with its own JAX

Needs the extra `oracle` (mujoco); the figure needs `plot`. lgsim's methods run through ``lgsim.rollout``. They are
compared with MuJoCo's implicitfast and RK4 on the same bodies (peers/export.py), with MJX's RK4, and with a naive
method: Runge-Kutta 4 on the coordinates of the state, with quaternions normalized after each step. MJX rotates by the
exponential of the rates of its stages without their brackets, which is of order two. The arm has no quaternions: there
both equal MuJoCo's RK4, and are left out. All runs have the same step size and initial state, and no friction; lgsim
computes all energies and momenta in float64 from the states.

A drift is the largest change along the run: of the energy relative to the largest kinetic energy, and of the linear
momentum and the angular momentum about the center of mass, in the world frame, relative to their magnitudes. The error
of the state is the error after ``early`` steps, against MK8 at the same step size. The arm starts near hanging, so that
round-off has no effect in its first 10 s. Later it is chaotic, like the ball joint: a million steps show only the order
of magnitude of the drift. For the ball joint, a change of 1e-13 at the start changes the drift by a factor of up to
three. MuJoCo stores the linear velocity of a free body in the world frame and lgsim in the body frame: a single body
moves straight in MuJoCo by construction, and in lgsim up to the error of the method. A run that diverged is ``nan``.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

if "--quick" in sys.argv:  # compilation dominates a short run, also for MJX, and no time is measured
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import jax
import jax.numpy as jnp
import numpy as np

try:
    import mujoco
except ImportError as missing:
    sys.exit(f"benchmarks/long_run.py: {missing.name} is missing; install it with: pip install 'lgsim[oracle]'")
from peers import client, export

import lgsim
from lgsim.lie.conversions import matrix_from_quaternion
from lgsim.multibody.inertia import mass_center_inertia

jax.config.update("jax_enable_x64", True)
mujoco.set_mju_user_warning(lambda text: None)  # otherwise it writes a file of warnings here; they are checked

PLOT = harness.RESULTS / "long_run.png"
OURS = ("MK4", "CF4", "MK8")
BEST, NAIVE = OURS[-1], "naive RK4"
NODES, WEIGHTS = np.array([0.0, 0.5, 0.5, 1.0]), np.array([1.0, 2.0, 2.0, 1.0]) / 6.0
THEIRS = {"MuJoCo RK4": "mjINT_RK4", "MuJoCo implicitfast": "mjINT_IMPLICITFAST"}
MJX, SETUP = "MJX RK4", "benchmarks/peers/setup"
PATIENCE = 900.0  # time limit of a run of MJX, s
QUANTITIES = {"energy": "energy", "linear": "linear momentum", "angular": "angular momentum"}
SHORT, LONG = 10_000, 1_000_000  # steps of a run; the short one is 10 s of the arm
STEPS, EVERY = 1000, 100  # steps of one call of a program, and between two saved states


@dataclass(frozen=True)
class Case:
    """A model, its initial state, and its steps."""

    name: str
    model: lgsim.Model
    q: jax.Array
    v: jax.Array
    dt: float
    early: int  # steps after which the states are compared

    @property
    def free(self) -> bool:
        """True if the model floats freely."""
        return self.model.topology.floats

    @property
    def turns(self) -> bool:
        """True if its state has quaternions."""
        return self.model.nq > self.model.nv


def cases(quick: bool) -> list[Case]:
    """The systems."""
    box = {"mass": 3.0, "inertia": np.diag([0.02, 0.05, 0.06])}
    body = lgsim.ModelBuilder(gravity=(0.0, 0.0, 0.0)).add_body("body", "world", lgsim.joints.Free(), **box).build()
    robot = (
        lgsim.ModelBuilder(gravity=(0.0, 0.0, 0.0))
        .add_body("base", "world", lgsim.joints.Free(), **box)
        .add_body("left", "base", lgsim.joints.Revolute(), placement=at(0.2, 0.1, 0.0), axis=[0, 1, 0], **limb(0.8))
        .add_body("right", "base", lgsim.joints.Revolute(), placement=at(-0.2, 0.1, 0.1), axis=[1, 1, 0], **limb(0.5))
        .add_body("hand", "left", lgsim.joints.Revolute(), placement=at(0.0, 0.0, -0.4), axis=[1, 0, 0], **limb(0.3))
        .build()
    )
    bob = {"mass": 1.0, "center": [0.0, 0.1, -0.5], "inertia": np.diag([0.02, 0.025, 0.012])}
    ball = lgsim.ModelBuilder().add_body("bob", "world", lgsim.joints.Spherical(), **bob).build()
    arm = lgsim.load_urdf(lgsim.data.arm7())
    arm = arm.replace(damping=jnp.zeros(arm.nv), friction=jnp.zeros(arm.nv))
    twist = [0.3, -0.2, 0.1, 2.0, -1.5, 1.0]
    found = [
        Case("free body", body, body.neutral(), jnp.array(twist), 0.01, 200),
        Case("free robot", robot, robot.neutral(), jnp.array([*twist, 1.0, -2.0, 1.5]), 0.005, 200),
        Case("ball joint", ball, lgsim.quaternion.exp(jnp.array([0.9, -0.4, 0.3])), jnp.arange(1.0, 4.0), 0.005, 200),
        Case("arm", arm, jnp.array([0.3, 2.6, 0.2, -0.5, 0.3, 0.6, 0.1]), jnp.zeros(7), 0.001, 500),
    ]
    return [case for case in found if not quick or case.name != "free robot"]


def at(*place: float) -> np.ndarray:
    """A pose without rotation."""
    return np.block([[np.eye(3), np.array(place)[:, None]], [np.zeros(3), 1.0]])


def limb(mass: float) -> dict:
    """A rod of 0.4 m below its joint."""
    return {"mass": mass, "center": [0.0, 0.02, -0.2], "inertia": mass * np.diag([0.014, 0.0135, 0.001])}


def naive(model: lgsim.Model, q0, v0, dt):
    """Runge-Kutta 4 on the coordinates (q, v); then each quaternion is divided by its norm."""
    ends = [part.stop for part in model.q_slices.values() if part.stop - part.start in (4, 7)]

    def field(y):
        q, v = y[: model.nq], y[model.nq :]
        return jnp.concatenate([model.rate(q, v), lgsim.forward_dynamics(model, q, v, jnp.zeros_like(v))])

    # each stage needs only the previous one, and in a loop the field is compiled once
    def stage(carry, x):
        y, k, total = carry
        node, weight = x
        k = field(y + node * dt * k)
        return (y, k, total + weight * k), None

    def step(y, _):
        nothing = jnp.zeros(model.nq + model.nv)
        y = y + dt * jax.lax.scan(stage, (y, nothing, nothing), (NODES, WEIGHTS))[0][2]
        for end in ends:
            y = y.at[end - 4 : end].divide(jnp.linalg.norm(y[end - 4 : end]))
        return y, None

    def saved(y, _):
        y = jax.lax.scan(step, y, length=EVERY)[0]
        return y, y

    states = jax.lax.scan(saved, jnp.concatenate([q0, v0]), length=STEPS // EVERY)[1]
    return states[:, : model.nq], states[:, model.nq :]


def program(name: str) -> Callable:
    """``(model, q, v, dt)``: the saved states of ``STEPS`` steps but the first, by a method of lgsim or naive."""
    if name == NAIVE:
        return naive
    settings = {"method": lgsim.METHODS[name], "steps": STEPS, "save_every": EVERY, "checkpoint": None}

    def ours(model, q, v, dt):
        motion = lgsim.rollout(model, q, v, dt=dt, **settings)
        return motion.q[1:], motion.v[1:]

    return ours


def follow(case: Case, compiled: Callable, steps: int) -> tuple[jax.Array, jax.Array]:
    """Saved states of a run, call after call of one program."""
    dt, pieces = jnp.asarray(case.dt), [(case.q[None], case.v[None])]
    for _ in range(steps // STEPS):
        pieces.append(compiled(case.model, *(x[-1] for x in pieces[-1]), dt))
    return tuple(jnp.concatenate(parts) for parts in zip(*pieces, strict=True))


class Peer:
    """MuJoCo on the bodies of a case, with states in lgsim's coordinates."""

    def __init__(self, case: Case, integrator: str):
        self.case = case
        falling = case.model.replace(gravity=jnp.asarray(export.GRAVITY))
        self.text = hanging(falling) if case.name == "ball joint" else export.mjcf(export.bodies(falling))
        self.model = mujoco.MjModel.from_xml_string(self.text)
        self.model.opt.gravity[:] = np.asarray(case.model.gravity)
        self.model.opt.integrator = getattr(mujoco.mjtIntegrator, integrator)
        self.model.opt.timestep = case.dt
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
        self.data = mujoco.MjData(self.model)

        self.R = np.asarray(matrix_from_quaternion(case.q[3:7])) if case.free else None

    def start(self) -> None:
        """Set the initial state of the case."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = self.case.q, self.case.v
        if self.case.free:
            self.data.qvel[:3] = self.R @ np.asarray(self.case.v[:3])

    def acceleration(self) -> np.ndarray:
        """The v' of lgsim at the start; of a base, from (R v)' = R (v' + w x v)."""
        self.start()
        mujoco.mj_forward(self.model, self.data)
        a, v = self.data.qacc.copy(), np.asarray(self.case.v)
        if self.case.free:
            a[:3] = self.R.T @ a[:3] - np.cross(v[3:6], v[:3])
        return a

    def run(self, steps: int) -> tuple[jax.Array, jax.Array]:
        """Saved states of a run, NaN after divergence, where MuJoCo would restart from its own initial state."""
        self.start()
        q, v = (np.full((steps // EVERY + 1, len(x)), np.nan) for x in (self.data.qpos, self.data.qvel))
        for k in range(len(q)):
            mujoco.mj_step(self.model, self.data, nstep=EVERY if k else 0)
            if self.data.warning.number.any():
                break
            q[k], v[k] = self.data.qpos, self.data.qvel
        return self.ours(q, v)

    def mjx(self, worker: client.Peer, steps: int) -> tuple[tuple, tuple]:
        """Saved states of a run of MJX's RK4 from the same state, and its state at the early time with half steps."""
        self.start()
        worker.load(self.text, self.model.opt.gravity.tolist(), STEPS, EVERY)
        start, dt = (self.data.qpos.tolist(), self.data.qvel.tolist()), self.case.dt
        states, finer = (self.ours(*worker.move(*start, *rest)) for rest in ((dt, steps), (dt / 2, STEPS)))
        return states, tuple(x[2 * self.case.early // EVERY] for x in finer)

    def ours(self, q: np.ndarray, v: np.ndarray) -> tuple[jax.Array, jax.Array]:
        """States of MuJoCo in lgsim's coordinates."""
        if self.case.free:
            R = np.asarray(matrix_from_quaternion(jnp.asarray(q[:, 3:7])))
            v[:, :3] = np.einsum("nji,nj->ni", R, v[:, :3])
        return jnp.asarray(q), jnp.asarray(v)


def hanging(model: lgsim.Model) -> str:
    """MJCF of one body on a ball joint at the origin, with the switches of peers/export.py."""
    mass, center, inertia = (np.asarray(x, float) for x in mass_center_inertia(model.inertias[0]))
    moments = [inertia[row, column] for _, row, column in export.MOMENTS]
    place, turns = (" ".join(repr(float(x)) for x in numbers) for numbers in (center, moments))
    return f"""<mujoco>
  <option><flag contact="disable" constraint="disable"/></option>
  <worldbody><body>
    <joint type="ball"/><inertial pos="{place}" mass="{float(mass)!r}" fullinertia="{turns}"/>
  </body></worldbody>
</mujoco>"""


@jax.jit
def conserved(model: lgsim.Model, q, v):
    """Energy, kinetic energy, and the momenta (linear, angular about the center of mass) along states."""
    kinetic = lgsim.kinetic_energy(model, q, v)
    momentum = lgsim.centroidal_momentum(model, q, v)
    return kinetic + lgsim.potential_energy(model, q), kinetic, momentum[:, :3], momentum[:, 3:]


def drifts(case: Case, q, v, scale: float) -> dict[str, np.ndarray]:
    """Relative changes along a run."""
    energy, _, *momenta = (np.asarray(x) for x in conserved(case.model, q, v))
    changes = {"energy": np.abs(energy - energy[0]) / scale}
    for name, p in zip(("linear", "angular"), momenta if case.free else (), strict=case.free):
        changes[name] = np.linalg.norm(p - p[0], axis=1) / np.linalg.norm(p[0])
    return changes


@jax.jit
def gap(model: lgsim.Model, first, second):
    """Distance of two states: rad or m, and their rates."""
    return jnp.linalg.norm(jnp.concatenate([model.difference(first[0], second[0]), first[1] - second[1]]))


@dataclass(frozen=True)
class Run:
    """Result of one method on one case."""

    drift: dict[str, np.ndarray]
    error: float

    def worst(self, quantity: str = "energy", steps: int | None = None) -> float:
        """The largest drift along the run, or up to a step."""
        return float(self.drift[quantity][: None if steps is None else steps // EVERY + 1].max())


@dataclass(frozen=True)
class Outcome:
    """Results of a case."""

    runs: dict[str, Run]
    apart: float  # difference of MuJoCo's initial acceleration from lgsim's, relative to it
    order: float | None  # order of MJX's RK4, from errors at the early time, the second with half steps
    missing: str  # reason why there is no run of MJX


def measured(case: Case, steps: int, worker: client.Peer | None) -> Outcome:
    """All methods on a case, with MJX if there is a worker."""
    states = {}
    for name in (*OURS, NAIVE) if case.turns else OURS:
        compiled, _ = harness.compiled(program(name), case.model, case.q, case.v, jnp.asarray(case.dt))
        states[name] = follow(case, compiled, steps)
    peers = {name: Peer(case, integrator) for name, integrator in THEIRS.items()}
    states |= {name: peer.run(steps) for name, peer in peers.items()}
    a = np.asarray(lgsim.forward_dynamics(case.model, case.q, case.v, jnp.zeros(case.model.nv)))
    apart = max(np.abs(peer.acceleration() - a).max() for peer in peers.values()) / np.abs(a).max()
    finer, missing = None, f"not built: {SETUP}"
    if worker:
        try:
            states[MJX], finer = peers["MuJoCo RK4"].mjx(worker, steps)
        except client.PeerError as failure:
            missing = f"failed: {failure}"
    scale = float(jnp.max(conserved(case.model, *states[BEST])[1]))
    early = {name: (q[case.early // EVERY], v[case.early // EVERY]) for name, (q, v) in states.items()}
    errors = {name: float(gap(case.model, early[BEST], x)) for name, x in early.items()}
    order = math.log2(errors[MJX] / float(gap(case.model, early[BEST], finer))) if finer else None
    runs = {name: Run(drifts(case, *x, scale), errors[name]) for name, x in states.items()}
    return Outcome(runs, apart, order, missing)


def bounds(report: harness.Report, case: Case, outcome: Outcome) -> None:
    """Check the bounds of a case: ratios in the first steps, which long and short runs share."""
    runs = outcome.runs
    where = f"{case.name}, {SHORT:,} steps of {1e3 * case.dt:g} ms"

    def ratio(other, quantity="energy"):
        value = runs["MK4"].worst(quantity, SHORT) / runs[other].worst(quantity, SHORT)
        report.bound(f"{where}: drift of {QUANTITIES[quantity]}, MK4 / {other}", value, at_most=1.1)
        return value

    if case.free:
        ratio("MuJoCo RK4", "angular")
    else:
        report.figure(f"{case.name}: energy drift of MK4", ratio("MuJoCo RK4"), "x MuJoCo RK4")
    if NAIVE in runs:
        ratio(NAIVE)
    if MJX in runs:
        # the energy of a free body is conserved as in MuJoCo: it does not depend on the pose
        quantity = "angular" if case.free else "energy"
        report.figure(f"{case.name}: drift of {QUANTITIES[quantity]}, MK4", ratio(MJX, quantity), f"x {MJX}")
        # near two only for equal bodies: otherwise the error would not decrease
        report.bound(f"{case.name}: order of {MJX}", outcome.order, at_least=1.8)
    for quantity in runs[BEST].drift:
        value = runs[BEST].worst(quantity)
        report.bound(f"{case.name}, whole run: drift of {QUANTITIES[quantity]}, {BEST}", value, at_most=1e-8)
    report.figure(f"{case.name}: {BEST}", runs[BEST].worst())


def plot(everything: dict[str, tuple[Case, dict[str, Run]]], steps: int) -> None:
    """The largest drift so far, over time."""
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    styles = {
        "MK4": ("#3b3a6e", "-", 2.4),
        "CF4": ("#1b9e77", (0, (5, 2)), 1.8),
        "MK8": ("#c2185b", "-", 2.0),
        NAIVE: ("#8c6d31", (0, (1, 1.5)), 2.2),
        "MuJoCo RK4": ("#d95f02", (0, (7, 2, 1, 2)), 1.6),
        MJX: ("#2b8cbe", "-", 2.0),
        "MuJoCo implicitfast": ("#777777", "-", 1.2),
    }
    panels = [(name, part) for name, (case, _) in everything.items() for part in ("energy", "angular")[: 1 + case.free]]
    figure, axes = plt.subplots(2, 3, figsize=(13, 7.6), layout="constrained")
    handles = {}
    for axis, (name, quantity) in zip(axes.flat, panels, strict=True):
        case, runs = everything[name]
        times = case.dt * EVERY * np.arange(1, steps // EVERY + 1)
        for method, result in runs.items():
            style = dict(zip(("color", "linestyle", "linewidth"), styles[method], strict=True))
            (handles[method],) = axis.loglog(times, np.maximum.accumulate(result.drift[quantity])[1:], **style)
        axis.set_title(f"{name}: {QUANTITIES[quantity]} (step {1e3 * case.dt:g} ms)", fontsize=11)
        axis.set_xlabel("time, s")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0)
    figure.supylabel("largest relative change so far", fontsize=11)
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=len(handles), frameon=False)
    figure.suptitle(f"Drift of what should stay constant, over {steps:,} steps", fontsize=13)
    PLOT.parent.mkdir(exist_ok=True)
    figure.savefig(PLOT, dpi=140)
    plt.close(figure)


def run(report: harness.Report) -> None:
    """All cases."""
    python = client.available().get("mjx")
    if python is None:
        print(f"{MJX}: not built; build its environment with: {SETUP}")
        cover(report, None)
        return
    with client.Peer("mjx", python, PATIENCE) as worker:
        cover(report, worker)


def cover(report: harness.Report, worker: client.Peer | None) -> None:
    """All cases, with MJX if there is a worker."""
    steps = SHORT if report.quick else LONG
    rows, everything = [], {}
    for case in cases(report.quick):
        print(f"{case.name} ...", flush=True)
        asked = case.turns and not (report.quick and case.free)  # its compilation dominates a short run
        outcome = measured(case, steps, worker if asked else None)
        runs = outcome.runs
        report.bound(f"{case.name}: acceleration at the start, difference of MuJoCo", outcome.apart, at_most=1e-9)
        bounds(report, case, outcome)
        everything[case.name] = case, runs
        for name, result in runs.items():
            cells = [result.worst(quantity) if quantity in result.drift else "" for quantity in QUANTITIES]
            early = [f"{case.early * case.dt:g}", "" if name == BEST else result.error]
            rows.append([case.name, name, 1e3 * case.dt, *cells, *early])
        if asked and MJX not in runs:
            rows.append([case.name, MJX, 1e3 * case.dt, outcome.missing, "", "", f"{case.early * case.dt:g}", ""])
    title = f"{steps:,} steps: largest relative drift; error of the state, rad or m and rates, at an early time"
    report.table(
        title, ["system", "method", "dt, ms", *QUANTITIES.values(), "early time, s", "error at early time"], rows
    )
    if report.quick:
        return
    try:
        plot(everything, steps)
        print(f"\nPlot: {os.path.relpath(PLOT)}")
    except ImportError:
        print("\nNo plot: matplotlib is missing (pip install 'lgsim[plot]').")


if __name__ == "__main__":
    harness.main(run, "long_run")
