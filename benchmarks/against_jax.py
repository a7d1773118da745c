"""Multibody dynamics compared with other JAX libraries: mjx, brax, jaxsim, adam and frax, in µs on one core.

    benchmarks/peers/setup                       once: an environment for each JAX that they need
    python benchmarks/against_jax.py --quick     forward dynamics of Panda
    python benchmarks/against_jax.py             all robots and tasks, and a record in benchmarks/results

Needs the extra `oracle` (example-robot-data). Each peer runs in a separate process on a version of JAX that it
supports, reads the same bodies, uses its own state convention, and takes turns with lgsim on one core, in float64. Its
model is a constant of the compiled program; lgsim's is an argument. A peer is timed only if its values agree with
lgsim's.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import math
import statistics
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import jax
import numpy as np
import robots
from peers import client, export

import lgsim
from lgsim.formats import read_urdf

jax.config.update("jax_enable_x64", True)

# Lower bounds of the speed-up over the fastest peer: forward dynamics at batch 1024, Jacobians at 64.
FORWARD = {"Panda": 6, "ANYmal": 4, "Talos": 4, "chain10": 8, "chain50": 8, "chain200": 8}
JACOBIANS = {"Panda": 50, "ANYmal": 60, "Talos": 80}
AGREEMENT = 1e-6
SHOWN = 4
BUILD = "build their environments with: benchmarks/peers/setup"


def fd(model, q, v, tau):
    return lgsim.dynamics.forward_dynamics(model, q, v, tau)


def joint_block(model, matrices):
    n = model.topology.nv - (6 if model.topology.floats else 0)
    return matrices[..., -n:, -n:]


def joint_jacobians(model, value):
    return np.stack([joint_block(model, np.asarray(part)) for part in (value.dq, value.dv, value.dtau)], axis=1)


# By task: the function of lgsim, its number of arguments among (q, v, x), and the part of its value without convention.
TASKS = {
    "forward_dynamics": (fd, 3, lambda model, value: value),
    "inverse_dynamics": (lgsim.inverse_dynamics, 3, lambda model, value: value[..., -len(joints(model)) :]),
    "mass_matrix": (lgsim.mass_matrix, 1, joint_block),
    "jacobians": (lgsim.forward_dynamics_derivatives, 3, joint_jacobians),
}


def joints(model):
    return [joint for joint in model.topology.joints if joint.nv == 1]


@dataclass
class Row:
    """One robot, task and batch: seconds of a call by library, or the reason why there are none."""

    robot: str
    batch: int
    cells: dict[str, float | str] = field(default_factory=dict)
    differences: dict[str, float | str] = field(default_factory=dict)
    compiling: dict[str, float | str] = field(default_factory=dict)

    def per_state(self, name):
        value = self.cells[name]
        return 1e6 * value / self.batch if isinstance(value, float) else value

    def ratio(self):
        """Time of the fastest peer relative to lgsim; NaN without a peer."""
        times = [self.cells[name] for name in client.ENVIRONMENTS if isinstance(self.cells[name], float)]
        return min(times) / self.cells["lgsim"] if times else float("nan")


class Study:
    """The workers of all peers, and the exported robots."""

    def __init__(self, report, folder, stack):
        self.repeats = 7 if report.quick else 15
        self.report, self.folder = report, Path(folder)
        self.peers = [stack.enter_context(client.Peer(*item)) for item in client.available().items()]
        self.stuck: dict[tuple[str, str], str] = {}
        self.notes: list[str] = []

    def versions(self):
        """Print the peers and their versions; one that cannot be imported fails here and in each row."""
        rows = []
        for peer in self.peers:
            try:
                rows.append([peer.name, *peer.about()])
            except client.PeerError as failure:
                rows.append([peer.name, "failed", ""])
                print(f"{peer.name}: {failure}")
        self.report.table("Peers", ["", "version", "JAX"], rows)

    def row(self, task, name, batch):
        """Measure one row of a table."""
        print(f"{task.replace('_', ' ')} of {name}, batch {batch}", file=sys.stderr, flush=True)
        model = robots.robot(name, "float64")
        place = export.write(self.folder / name, name, model)
        q, v, x = robots.state(model, batch)
        if model.topology.floats:
            x = x.at[:, :6].set(0.0)  # jaxsim and adam take no joint forces of the base, as no motor gives them
        states = place / f"states{batch}.npz"
        np.savez(states, q=q, v=v, x=x)
        f, count, seen = TASKS[task]
        args = (q, v, x)[:count]
        if batch == 1:
            args = tuple(part[0] for part in args)
        else:
            f = lgsim.tiled_vmap(f, in_axes=(None, *(0 for _ in args)))
        program, compiling = harness.compiled(f, model, *args)
        first = jax.tree.map(lambda part: part[None] if batch == 1 else part[:SHOWN], program(model, *args))
        expected = np.asarray(seen(model, first))
        row = Row(name, batch, dict.fromkeys(client.ENVIRONMENTS, "not built"), compiling={"lgsim": compiling})
        ready = [peer for peer in self.peers if self._prepared(peer, row, task, place, states, expected)]
        ours = {"lgsim": lambda: program(model, *args)}
        while "lgsim" not in row.cells:
            try:
                row.cells.update(client.interleave(ours, ready, self.repeats))
            except client.PeerError as failure:
                ready.remove(failure.peer)
                self._gave_up(row, task, failure)
        self._quiet(row, task, ready)
        return row

    def _quiet(self, row, task, ready):
        """Report other load on the core, which lengthens long calls (of the peers) more than short ones."""
        share = min((statistics.median(peer.shares) for peer in ready), default=1.0)
        if share < 0.9:
            where = f"{task} of {row.robot}, batch {row.batch}"
            self.notes.append(f"{where}: a peer had {share:.0%} of the core; other work makes the peers look slow")

    def _gave_up(self, row, task, failure):
        row.cells[failure.peer.name] = str(failure) if isinstance(failure, client.TimedOut) else "failed"
        self.notes.append(f"{failure.peer.name}, {task} of {row.robot}, batch {row.batch}: {failure}")

    def _prepared(self, peer, row, task, place, states, expected):
        """True if a peer is ready to be timed; otherwise the row gets the reason."""
        length = row.robot.startswith("chain") and (peer.name, task)
        if length in self.stuck:
            row.cells[peer.name] = f"not asked, see {self.stuck[length]}"
            return False
        try:
            row.compiling[peer.name] = peer.prepare(task, place, states, row.batch)
            value = peer.value()
        except client.PeerError as failure:
            self._gave_up(row, task, failure)
            if length:
                self.stuck[length] = row.robot
            return False
        if value.shape != expected[: len(value)].shape:
            raise ValueError(f"{peer.name}, {task}: expected shape {expected.shape}, got {value.shape}")
        difference = np.abs(value - expected[: len(value)]).max() / np.abs(expected).max()
        row.differences[peer.name] = float(difference)
        if not difference <= AGREEMENT:
            row.cells[peer.name] = f"wrong: {difference:.1g}"
        return bool(difference <= AGREEMENT)

    def table(self, title, rows):
        """Tables of times, compile times and differences between the peers' values."""
        names = list(client.ENVIRONMENTS)
        self.report.table(
            f"{title}, float64, µs per state",
            ["", "batch", "lgsim", *names, "fastest peer / lgsim"],
            [[r.robot, r.batch, *(r.per_state(name) for name in ("lgsim", *names)), r.ratio()] for r in rows],
        )
        self.report.table(
            f"{title}: seconds to load the robot, trace and compile (lgsim: to trace and compile)",
            ["", "batch", "lgsim", *names],
            [[r.robot, r.batch, *(r.compiling.get(name, "-") for name in ("lgsim", *names))] for r in rows],
        )
        self.report.table(
            f"{title}: largest relative difference from lgsim",
            ["", "batch", *names],
            [[r.robot, r.batch, *(r.differences.get(name, "-") for name in names)] for r in rows],
        )
        for note in self.notes:
            print(note)
        self.notes.clear()

    def bound(self, title, row, limits):
        """Check a row against its bound, if any peer has a time there."""
        if math.isnan(row.ratio()):
            print(f"{row.robot}: {title}: no peer has a result, so no bound is checked")
            return
        self.report.figure(f"{row.robot} {title}", row.ratio(), "x faster than the fastest peer")
        self.report.bound(f"{row.robot}: {title}, fastest peer / lgsim", row.ratio(), at_least=limits[row.robot])


def round_trip(report):
    """Check the exported file: reading it back gives the same accelerations."""
    model = robots.robot("Panda", "float64")
    again, _ = read_urdf(text=export.urdf(export.bodies(model)), dtype="float64")
    state = robots.state(model, SHOWN)
    program = jax.jit(jax.vmap(fd, (None, 0, 0, 0)))
    ours, theirs = (np.asarray(program(machine, *state)) for machine in (model, again))
    report.bound("Panda: exported and read again", np.abs(ours - theirs).max() / np.abs(ours).max(), at_most=1e-12)


def peers(report, names, batches):
    """Tables of `names` at `batches` for forward dynamics; a full run adds Jacobians and Panda's other algorithms."""
    absent = [name for name in client.ENVIRONMENTS if name not in client.available()]
    if absent:
        print(f"not built: {', '.join(absent)}; {BUILD}")
    if len(absent) == len(client.ENVIRONMENTS):
        return
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        study = Study(report, folder, stack)
        study.versions()
        rows = []
        for name in names:
            small = not name.startswith("chain")
            rows += [study.row("forward_dynamics", name, batch) for batch in batches if small or batch == max(batches)]
        study.table("Forward dynamics", rows)
        for row in rows:
            if row.batch == 1024:
                study.bound("forward dynamics", row, FORWARD)
        if report.quick:
            return
        rows = [study.row("jacobians", name, 64) for name in names if name in JACOBIANS]
        study.table("All Jacobians of forward dynamics", rows)
        for row in rows:
            study.bound("Jacobians", row, JACOBIANS)
        # brax and adam have the bias only: their inverse dynamics is M a and the bias
        for task in ("inverse_dynamics", "mass_matrix"):
            study.table(f"{task.replace('_', ' ').capitalize()}", [study.row(task, "Panda", 1024)])


def run(report):
    """All tables."""
    round_trip(report)
    if report.quick:
        peers(report, ["Panda"], [1024])
    else:
        peers(report, list(FORWARD), [1, 64, 1024])


if __name__ == "__main__":
    try:
        harness.main(run, "peers")
    except PackageNotFoundError as missing:
        sys.exit(f"benchmarks/against_jax.py: {missing.name} is missing; install it with: pip install 'lgsim[oracle]'")
