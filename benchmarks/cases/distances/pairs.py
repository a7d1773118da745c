"""200 pairs of an arm's capsules with spheres, capsules and boxes, in 1024 states: values, and rows of derivatives."""

import harness

import ctypes
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import mujoco
import numpy as np
from peers import client

import lgsim
from lgsim.formats import read_mjcf

LINKS, BATCH, FEW, FAR = 10, 1024, 128, 10.0
BOUND = 3.0
AGREEMENT = 1e-5
"""The largest difference of distances that are apart, m; MuJoCo's search ends at 1e-6."""
SOURCE = Path(__file__).parent / "mujoco_loop.c"


def scene():
    """An arm of ten links with a capsule each, and 8 capsules, 6 spheres and 6 boxes around it, as MJCF."""
    rng = np.random.default_rng(5)
    links = "".join(
        f'<body name="b{i}" pos="0 0 {0.2 * (i > 0)}"><joint name="j{i}" axis="{"1 0 0" if i % 2 else "0 1 0"}"/>'
        f'<geom name="g{i}" type="capsule" fromto="0 0 0 0 0 0.2" size="0.04" mass="1"/>'
        for i in range(LINKS)
    )
    sizes = [("capsule", "0.08 0.2")] * 8 + [("sphere", "0.12")] * 6 + [("box", "0.08 0.12 0.16")] * 6
    around = rng.normal(size=(len(sizes), 3))
    around *= rng.uniform(0.7, 1.6, (len(sizes), 1)) / np.linalg.norm(around, axis=1, keepdims=True)
    obstacles = "".join(
        f'<geom name="o{k}" type="{kind}" size="{size}" pos="{x} {y} {z}" euler="{a} {b} 0"/>'
        for k, ((kind, size), (x, y, z), (a, b)) in enumerate(
            zip(sizes, around, rng.uniform(-180, 180, (len(sizes), 2)), strict=True)
        )
    )
    return f"<mujoco><worldbody>{obstacles}{links}{'</body>' * LINKS}</worldbody></mujoco>"


class Peer:
    """MuJoCo on the same scene, by a loop in C if there is a compiler."""

    def __init__(self, text, names):
        self.text, self.model = text, mujoco.MjModel.from_xml_string(text)
        self.data = mujoco.MjData(self.model)
        geom = mujoco.mjtObj.mjOBJ_GEOM
        places = [[mujoco.mj_name2id(self.model, geom, name) for name in side] for side in names]
        self.pairs = np.ascontiguousarray(np.array(places).T, np.int32)
        self.library = compiled_loop()

    def call(self, q, rows):
        """(distances, rows or None) of states (states, nq)."""
        count, nv = len(self.pairs), self.model.nv
        out = np.empty((len(q), count))
        slopes = np.empty((len(q), count, nv)) if rows else None
        if self.library is None:
            return self.slow(q, out, slopes), slopes
        room = np.empty((2, 3, nv))
        address = [None if x is None else x.ctypes.data_as(ctypes.c_void_p) for x in (q, self.pairs, out, slopes, room)]
        self.library.distances(
            ctypes.c_void_p(self.model._address), ctypes.c_void_p(self.data._address), address[0], len(q), address[1],
            count, ctypes.c_double(FAR), address[2], address[3], address[4],
        )  # fmt: skip
        return out, slopes

    def slow(self, q, out, slopes):
        """The same from Python."""
        ends, first, second = np.empty(6), np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        bodies = self.model.geom_bodyid
        for s, state in enumerate(q):
            self.data.qpos[:] = state
            mujoco.mj_kinematics(self.model, self.data)
            mujoco.mj_comPos(self.model, self.data)
            for k, (a, b) in enumerate(self.pairs):
                out[s, k] = mujoco.mj_geomDistance(self.model, self.data, a, b, FAR, ends)
                if slopes is not None:
                    mujoco.mj_jac(self.model, self.data, first, None, ends[:3], bodies[a])
                    mujoco.mj_jac(self.model, self.data, second, None, ends[3:], bodies[b])
                    n = (ends[3:] - ends[:3]) * np.sign(out[s, k])
                    slopes[s, k] = n @ (second - first) / max(np.linalg.norm(n), 1e-300)
        return out


def compiled_loop():
    """The loop in C; None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    package = Path(mujoco.__file__).parent
    libraries = sorted(package.glob("libmujoco*"))
    if compiler is None or not libraries:
        return None
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "loop.so"
        subprocess.run(
            [compiler, "-O3", "-march=native", "-shared", "-fPIC", f"-I{package / 'include'}", str(SOURCE), "-o",
             str(made), str(libraries[0]), f"-Wl,-rpath,{package}", "-lm"],
            check=True,
        )  # fmt: skip
        return ctypes.CDLL(str(made))


def table(report):
    """Time of all pairs of a state in µs, with and without rows of derivatives, and the largest difference."""
    text = scene()
    model, _ = read_mjcf(text=text, solids=True)
    first, second = model.solid_pairs([f"o{k}" for k in range(20)])
    assert len(first) == 200
    q = np.random.default_rng(0).uniform(-0.9, 0.9, (BATCH, LINKS))
    few = np.ascontiguousarray(q[: 32 if report.quick else 128])
    peer = Peer(text, (first, second))
    rows, seconds_of_compiling = [], 0.0
    for name, function, with_rows in (
        ("distances", lambda m, q: lgsim.distance(m, q, first, second), False),
        ("distances and rows of derivatives", lambda m, q: lgsim.distance_jacobian(m, q, first, second), True),
    ):
        program, took = harness.compiled(lgsim.tiled_vmap(function, in_axes=(None, 0)), model, q)
        seconds_of_compiling += took
        seconds = harness.interleave(
            {"lgsim": lambda f=program: f(model, q), "MuJoCo": lambda w=with_rows: peer.call(few, w)},
            5 if report.quick else 31,
            clock=time.process_time,
        )
        found, theirs = program(model, q), peer.call(few, with_rows)
        d = np.asarray(found[0] if with_rows else found)[: len(few)]
        apart = theirs[0] > 1e-3
        gap = np.abs(d - theirs[0])[apart].max()
        us = {key: 1e6 * s / (BATCH if key == "lgsim" else len(few)) for key, s in seconds.items()}
        rows.append([name, us["lgsim"], us["MuJoCo"], us["MuJoCo"] / us["lgsim"], gap])
        if with_rows:
            slopes = np.abs(np.asarray(found[1])[: len(few)] - theirs[1])[apart]
            report.figure("rows agree to (median of the largest)", float(np.median(slopes.max(axis=1))), "")
            report.figure("200 pairs with derivatives", us["lgsim"], "µs per state")
            report.bound("MuJoCo / lgsim, distances and derivatives", us["MuJoCo"] / us["lgsim"], at_least=BOUND)
        report.bound(f"{name}: largest difference", gap, at_most=AGREEMENT)
    how = "a loop in C" if peer.library is not None else "calls from Python, without a C compiler"
    report.table(
        f"200 pairs, batch {BATCH}, one core, µs per state; MuJoCo {mujoco.__version__} by {how}",
        ["quantity", "lgsim", "MuJoCo C", "MuJoCo / lgsim", "largest difference, m"],
        rows,
    )
    report.figure("compiling both", seconds_of_compiling, "s")
    if not report.quick:
        mjx(report, peer, q, lambda: program(model, q))


def mjx(report, peer, q, ours):
    """MJX's collisions of the same pairs with rows of derivatives, in a separate table."""
    python = client.available().get("mjx")
    if python is None:
        print("MJX: not built; its environment is built with: benchmarks/peers/setup")
        return
    model, few = mujoco.MjModel.from_xml_string(peer.text), q[:FEW]
    world = model.geom_bodyid == 0
    model.geom_contype[:], model.geom_conaffinity[:] = np.where(world, 1, 2), np.where(world, 2, 1)
    model.geom_margin[:] = FAR
    with tempfile.TemporaryDirectory() as folder, client.Peer("mjx", python, limit=600.0) as worker:
        file, numbers = Path(folder) / "scene.mjb", Path(folder) / "numbers.npz"
        mujoco.mj_saveModel(model, str(file))
        np.savez(numbers, q=few, first=peer.pairs[:, 0], second=peer.pairs[:, 1])
        try:
            compiling = worker.scene("distances", file, numbers)
            seconds = client.interleave({"lgsim": ours}, [worker], 3 if report.quick else 15)
            found = worker.value()
        except client.PeerError as failure:
            print(f"MJX: {failure}")
            return
    theirs, _ = peer.call(np.ascontiguousarray(few), False)
    gaps = np.where(theirs > 1e-3, np.abs(found[..., 0] - theirs), 0.0)
    us = {"lgsim": 1e6 * seconds["lgsim"] / BATCH, "MJX": 1e6 * seconds["mjx"] / FEW}
    report.bound("MJX / lgsim, distances and derivatives", us["MJX"] / us["lgsim"], at_least=BOUND)
    report.table(
        f"The same, and MJX's collisions with a margin of {FAR:g} m, batch {FEW}, one core, µs per state",
        ["quantity", "lgsim", "MJX", "MJX / lgsim", "MJX to compile, s", "errors above 1 mm", "not finite"],
        [["distances and rows of derivatives", us["lgsim"], us["MJX"], us["MJX"] / us["lgsim"], compiling,
          f"{np.nanmean(gaps > 1e-3):.0%}", f"{np.isnan(found).any(axis=(0, 2)).mean():.0%}"]],
    )  # fmt: skip
