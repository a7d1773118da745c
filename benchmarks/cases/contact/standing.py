"""Cost of contact in accelerations, and steps per second of a standing robot, compared with MuJoCo."""

import harness

import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from peers import client, export

import lgsim
from cases.contact import quadruped
from cases.contact.motions import Peer, program
from lgsim.simulation.equations_of_motion import acceleration
from lgsim.simulation.motion_field import motion_jacobian

BATCH, SMALL = 1024, 256
DT = 1e-3
STIFF, MILD = 0.01, 0.25
"""Slip speeds, m/s: one that holds a foot, and one whose rate MK4 bears at 1 ms."""
FEW, TURN = 256, 8
"""Batch size and steps per call for slower libraries."""
PEERS = (
    ("mjx", "stand", "machine.mjb", "MJX"),
    ("jaxsim", "stand, soft", "", "JaxSim, soft"),
    ("jaxsim", "stand, relaxed", "", "JaxSim, relaxed"),
)
"""Worker, its scene, the file that it reads, and how the row is called."""
MOST = 2.5
"""Steps times rate that MK4 bears, of a limit of 2.8 where it becomes unstable."""


def states(batch):
    """(q, v) of a batch of standing robots with small random velocities: mm/s and mrad/s."""
    q = jnp.broadcast_to(quadruped.standing()[1], (batch, 19))
    return q, 1e-3 * jax.random.normal(jax.random.key(0), (batch, 18))


def acceleration_of(model, q, v):
    """Accelerations under the robot's springs, dampers and contacts, as in a simulation."""
    return acceleration(model, jnp.zeros(18), None, 0.0, q, v)


@jax.jit
def jacobian(model, y):
    """Jacobian of the rates of a state with respect to the state."""
    return motion_jacobian(jnp.zeros(()), y, ((model, None, None), None))[0]


def rate(model):
    """The fastest rate of the robot at rest, 1/s."""
    y = jnp.concatenate([quadruped.standing()[1], jnp.zeros(18)])
    return float(np.abs(np.linalg.eigvals(np.asarray(jacobian(model, y)))).max())


def accelerations(report):
    """Accelerations with contact and without."""
    batch = SMALL if report.quick else BATCH
    q, v = states(batch)
    programs = {}
    for name, model in {"without contact": quadruped.standing()[0], "four feet": quadruped.machine(STIFF)}.items():
        program, _ = harness.compiled(lgsim.tiled_vmap(acceleration_of, in_axes=(None, 0, 0)), model, q, v)
        programs[name] = partial(program, model, q, v)
    seconds = harness.interleave(programs, 15 if report.quick else 101)
    ratio = seconds["four feet"] / seconds["without contact"]
    report.table(
        f"Accelerations of ANYmal, batch {batch}", ["robot", "µs per state"],
        [[name, 1e6 * value / batch] for name, value in seconds.items()],
    )  # fmt: skip
    report.figure("contact on / off", ratio)
    report.bound("accelerations with four feet in those without", ratio, at_most=1.7)


def steps(report):
    """Steps of 1 ms of standing robots."""
    batch, settling = (SMALL, 100) if report.quick else (BATCH, 500)
    q, v = states(batch)
    count, programs, rows = 8, {}, []
    for name, slip_speed in {"MK4": MILD, "Rodas4": STIFF}.items():
        model = quadruped.machine(slip_speed)
        run, compiling = program(name, batch)
        programs[name] = partial(run, model, q, v, jnp.asarray(DT), jnp.asarray(count))
        fastest = rate(model)
        rows.append([name, slip_speed, DT * fastest, compiling])
        if name == "MK4":
            report.bound("MK4: step times fastest rate", DT * fastest, at_most=MOST)
        end = run(model, q, v, jnp.asarray(DT), jnp.asarray(settling))
        report.bound(f"{name}: height lost in {settling} steps, m", _sunk(end), at_most=1e-5)
    peer = Peer(quadruped.standing()[0])
    peer.run(q[0], v[0], DT, 1000)
    many = 256
    programs["MuJoCo implicitfast"] = lambda: mujoco.mj_step(peer.model, peer.data, nstep=many)
    with ExitStack() as stack:
        workers = [] if report.quick else _workers(stack, peer, q, v, rows)
        seconds = client.interleave(programs, workers, 9 if report.quick else 41)
    each = {name: value / (count * batch) for name, value in seconds.items()}
    each["MuJoCo implicitfast"] = seconds["MuJoCo implicitfast"] / many
    for worker in workers:
        each[worker.label] = seconds[worker.label] / (FEW * TURN)
        report.bound(f"steps a second of MK4 in those of {worker.label}", each[worker.label] / each["MK4"], at_least=4)
    theirs = each["MuJoCo implicitfast"]
    rows.append(["MuJoCo implicitfast", "its own law", "-", 0.0])
    report.table(
        f"Steps of 1 ms of ANYmal, standing, batch {batch} (MuJoCo one by one, MJX and JaxSim batch 256)",
        ["method", "slip speed, m/s", "step x rate", "compile, s", "µs per step", "steps a second", "times MuJoCo"],
        [[*row, 1e6 * each[row[0]], 1 / each[row[0]], theirs / each[row[0]]] for row in rows],
    )  # fmt: skip
    report.figure("MK4 standing", theirs / each["MK4"], "x MuJoCo")
    report.figure("Rodas4 standing", theirs / each["Rodas4"], "x MuJoCo")
    report.bound("steps a second of MK4 in MuJoCo's", theirs / each["MK4"], at_least=1.5)


def _sunk(end):
    return float(np.abs(np.asarray(end[0])[:, 2] - float(quadruped.standing()[1][2])).max())


def _workers(stack, peer, q, v, rows):
    """MJX and JaxSim, ready for turns, if their environment is built; adds a row or a reason for each."""
    found, python = [], client.available()
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    machine = quadruped.machine(STIFF)
    frames = [machine.topology.frame_names.index(f"{foot} ball") for foot in quadruped.FEET]
    bodies = [machine.topology.frame_bodies[frame] for frame in frames]
    places = np.asarray(machine.frames)[frames]
    down = lgsim.forward_kinematics(machine, q[0])[jnp.asarray(frames), 2, :3]
    points = places[:, :3, 3] - quadruped.RADIUS * np.einsum("nij,nj->ni", places[:, :3, :3], down)
    advice = quadruped.feet_advice(machine)
    numbers = {"q": np.asarray(q[:FEW]), "v": np.asarray(v[:FEW]), "dt": DT, "steps": TURN}
    feet = {
        "bodies": bodies, "points": points, "stiffness": advice.stiffness, "dissipation": advice.dissipation,
        "friction": quadruped.FRICTION, "spring": quadruped.SPRING, "damper": quadruped.DAMPER,
        "rest": np.asarray(machine.rest)[6:],
    }  # fmt: skip
    mujoco.mj_saveModel(peer.model, str(folder / "machine.mjb"))
    export.write(folder, "ANYmal", quadruped.bare())
    np.savez(folder / "mjx.npz", **numbers)
    np.savez(folder / "jaxsim.npz", **numbers, **feet)
    for name, scene, file, label in PEERS:
        if name not in python:
            continue
        worker = stack.enter_context(client.Peer(name, python[name], limit=600.0, label=label))
        try:
            compiling = worker.scene(scene, folder / file, folder / f"{name}.npz")
            sunk = float(np.abs(worker.value() - float(q[0, 2])).max())
        except client.PeerError as failure:
            print(f"{label}: {failure}")
            continue
        found.append(worker)
        rows.append([label, "its own law", "-", compiling])
        print(f"{label}: height lost in {TURN} steps {sunk:.1e} m")
    return found
