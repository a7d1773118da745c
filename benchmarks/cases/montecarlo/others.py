"""Steps per second of an arm by other JAX libraries, each at its best batch size, one core, float64.

Only their forward dynamics is used, in a Runge-Kutta 4 for q' = v, compiled as one loop, which is less work than
their own steps. Their models are constants of the programs, so that only initial states vary. Each peer is compiled at
one batch size with XLA's default vectors and with the 512-bit vectors that lgsim selects, and continues with the
better ones.
"""

import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from peers import client, export

from cases.montecarlo import studies
from cases.montecarlo.native import Native
from lgsim import montecarlo as mc

FASTER = 8.0
AGREEMENT = 1e-9
FIRST, BATCHES = 1024, (64, 256, 4096)
WIDTHS = {"": None, ", 512 bits": {"xla_cpu_prefer_vector_width": 512}}
BUILD = "absent; build it with: benchmarks/peers/setup"
SHOWN = 4


def run(report):
    """One table: a row for each peer."""
    built = client.available()
    quick = [name for name in ("frax", "adam", "mjx") if name in built][:1]
    names = quick if report.quick and quick else list(client.ENVIRONMENTS)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        rival = Rival(report.quick, folder)
        rows = []
        for name in names:
            if name not in built:
                rows.append([name, BUILD, "-", "-"])
                continue
            found = rival.tried(stack.enter_context(client.Peer(name, built[name])))
            best = max(found, key=lambda key: found[key]) if found else None
            rows.append([name, "failed", "-", "-"] if best is None else [name, best, found[best], min(found.values())])
    speeds = [row[2] for row in rows if row[2] != "-"]
    ours = statistics.median(rival.own) if rival.own else None
    ratios = [ours / row[2] if row[2] != "-" else "-" for row in rows]
    rows = [[*row, ratio] for row, ratio in zip(rows, ratios, strict=True)]
    if speeds:
        rows.append(["lgsim", str(rival.study.tile), ours, "-", 1.0])
        report.figure("best JAX peer", ours / max(speeds), "x")
        report.bound("start: steps relative to the best JAX peer", ours / max(speeds), at_least=FASTER)
    report.table(
        f"Arm, {studies.STEPS} steps of RK4: other JAX libraries",
        ["", "best batch", "steps/s", "at the worst batch", "lgsim / peer"],
        rows,
    )


class Rival:
    """The study with random initial states, and the same states for the peers."""

    def __init__(self, quick, folder):
        self.quick, self.own = quick, []
        self.study = studies.of_arm(max(FIRST, *BATCHES), studies.STEPS, inertias=False)
        self.expected = Native(self.study, SHOWN).step().reshape(SHOWN, 2, -1)
        self.place = export.write(Path(folder) / "arm", "Panda", self.study.rollout.model)
        q = studies.drawn(self.study, self.study.samples)["q0"]
        np.savez(self.place / "states.npz", q=q, v=np.zeros_like(q), x=np.zeros_like(q))
        self._engine = mc.Engine(self.study)
        self._engine.chunk(0, FIRST)

    def tried(self, peer):
        """Steps per second of a peer by batch and width; those of lgsim are stored in ``own``."""
        found = {}
        for width in ("",) if self.quick else WIDTHS:
            self._try(peer, FIRST, width, found)
        width = max(WIDTHS, key=lambda w: found.get(f"{FIRST}{w}", 0.0))
        for batch in () if self.quick else BATCHES:
            self._try(peer, batch, width, found)
        peer.kill()
        return found

    def _try(self, peer, batch, width, found):
        print(f"rollout of {peer.name}, batch {batch}{width}", file=sys.stderr, flush=True)
        try:
            peer.prepare("rollout", self.place, self.place / "states.npz", batch, WIDTHS[width])
            gap = np.abs(peer.value() - self.expected).max()
            if not gap <= AGREEMENT:
                raise client.PeerError(peer, f"its end differs from MuJoCo's by {gap:.1e}")
            seconds = client.interleave({"lgsim": self._ours}, [peer], 2)
        except client.PeerError as failure:
            print(f"{peer.name}, batch {batch}{width}: {failure}", file=sys.stderr, flush=True)
            return
        found[f"{batch}{width}"] = batch * studies.STEPS / seconds[peer.name]
        self.own.append(FIRST * studies.STEPS / seconds["lgsim"])

    def _ours(self):
        return self._engine.chunk(0, FIRST).columns
