"""Steps per second of an arm, compared with RK4 of MuJoCo in C on one core with the same initial states and bodies.

MuJoCo computes sample after sample, by `mj_step` with one model whose bodies are set for each sample, and by its
module `rollout` with a model per sample; the better one counts. Equal final states confirm that the simulations are
the same.
"""

import harness

import copy

import jax
import mujoco
import numpy as np
from mujoco import rollout
from peers import export

import lgsim
from cases.montecarlo import flops, studies
from lgsim import montecarlo as mc
from lgsim.multibody.inertia import mass_center_inertia

SPEED = {"start": 15.0, "start and inertias": 15.0}
"""Lower bounds of steps per second relative to MuJoCo, by the random inputs."""
AGREEMENT = 1e-9
"""The largest difference of the ends after `studies.STEPS` steps, rad and rad/s: later it is chaotic."""


class Native:
    """MuJoCo's model of an arm, and the first samples of a study."""

    def __init__(self, study, count):
        values = studies.drawn(study, count)
        self.steps, self.q = study.rollout.steps, values["q0"]
        self.machine = mujoco.MjModel.from_xml_string(export.mjcf(export.bodies(study.rollout.model)))
        self.machine.opt.integrator, self.machine.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, studies.DT
        self.data = mujoco.MjData(self.machine)
        self.bodies = _bodies(values["model.inertias"]) if "model.inertias" in values else None
        self.models = self.machine
        if self.bodies is not None:
            self.models = [copy.copy(self.machine) for _ in range(count)]
            for i, machine in enumerate(self.models):
                self._set(machine, i)

    def step(self):
        """Final (q, v) of all samples by ``mj_step``."""
        ends = []
        for i, q in enumerate(self.q):
            if self.bodies is not None:
                self._set(self.machine, i)
            mujoco.mj_resetData(self.machine, self.data)
            self.data.qpos[:] = q
            mujoco.mj_step(self.machine, self.data, nstep=self.steps)
            ends.append(np.concatenate([self.data.qpos, self.data.qvel]))
        return np.array(ends)

    def rollout(self):
        """The same by MuJoCo's module ``rollout``, which keeps all states."""
        zero = np.zeros_like(self.q[:, :1])
        start = np.concatenate([zero, self.q, np.zeros_like(self.q)], axis=1)
        return rollout.rollout(self.models, [self.data], start, nstep=self.steps)[0][:, -1, 1:]

    def _set(self, machine, i):
        mass, center, turn, moments = (x[i] for x in self.bodies)
        machine.body_mass[1:], machine.body_ipos[1:] = mass, center
        machine.body_iquat[1:], machine.body_inertia[1:] = turn, moments
        mujoco.mj_setConst(machine, self.data)


def _gap(study, count):
    """Largest difference of the final states of the first samples from those of both interfaces of MuJoCo."""
    ends, native = mc.Engine(study).chunk(0, study.tile).columns, Native(study, count)
    ours = np.concatenate([ends["final_q"], ends["final_v"]], axis=1)[:count]
    return max(np.abs(ours - end).max() for end in (native.step(), native.rollout()))


def _bodies(parameters):
    """Masses, centers, principal axes as quaternions and principal moments of bodies (samples, n, 10)."""
    mass, center, inertia = (np.asarray(x) for x in jax.vmap(jax.vmap(mass_center_inertia))(parameters))
    moments, axes = np.linalg.eigh(inertia)
    axes = axes * np.sign(np.linalg.det(axes))[..., None, None]
    return mass, center, np.asarray(lgsim.lie.conversions.quaternion_from_matrix(axes)), moments


def run(report):
    """One table."""
    steps, theirs = (studies.STEPS, 16) if report.quick else (1000, 64)
    model, calls, engines = studies.arm(), {}, {}
    for what in SPEED:
        tiles = 8 if jax.default_backend() == "cpu" else 4
        study = studies.of_arm(tiles * studies.of_arm(1, 1).tile, steps, "inertias" in what, model)
        native = Native(study, theirs)
        same = study if report.quick else studies.of_arm(study.tile, studies.STEPS, "inertias" in what, model)
        report.bound(f"{what}: difference of the ends from MuJoCo's", _gap(same, theirs), at_most=AGREEMENT)
        engine = engines[what] = mc.Engine(study)
        calls |= {(what, "mj_step"): native.step, (what, "rollout"): native.rollout}
        calls[what, "lgsim"] = lambda engine=engine: engine.chunk(0, engine.study.samples).columns
    seconds = harness.interleave(calls, 5 if report.quick else 9)
    rows, each = [], flops.of_step(model)
    for what, engine in engines.items():
        speed = {who: theirs * steps / seconds[what, who] for who in ("mj_step", "rollout")}
        best, ours = max(speed.values()), engine.study.samples * steps / seconds[what, "lgsim"]
        rows += [[f"MuJoCo RK4, {who}, {what}", value, value / best, "-", "-"] for who, value in speed.items()]
        rows.append([f"lgsim, {what}", ours, ours / best, 1e-9 * each * ours, flops.part_of_peak(each * ours)])
        report.figure(what, ours / best, "x MuJoCo RK4")
        report.bound(f"{what}: parts of MuJoCo's steps", ours / best, at_least=SPEED[what])
    report.table(
        f"Arm, {steps} steps of RK4, {each} operations each in lgsim, device {jax.devices()[0].device_kind}",
        ["", "steps/s", "of MuJoCo", "GFLOP/s", "of the device's peak"],
        rows,
    )
