"""Recordings like those of two real arms, simulated by Pinocchio: a UR10e's currents, a Panda's link-side torques.

Each seed is another arm: bodies differ from the file by tens of percent, some of them flat or thin, so that the best
consistent inertia lies on the boundary. The arms have friction, motor inertia and offsets, white and correlated noise,
and a ripple of the actuators that no model has. Position noise passes a zero-phase filter, as in the papers.
"""

import re
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pinocchio as pin
from scipy.signal import butter, lfilter, sosfiltfilt

from lgsim.formats import read_urdf
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.unknowns.body_blocks import Inertias
from lgsim.identify.unknowns.joint_blocks import JointParameter, TorqueOffset
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant

SPEED = 1e-5
"""Of lgsim's smooth dry friction, rad/s: so low that it is the sign for nearly all samples, as least squares have it.
At 1e-3 the two laws alone differ by 2 % in held-out residuals, to either side."""
FASTEST = 0.7
"""The highest harmonic of the motions, Hz."""
EDGE = 1.0
"""Seconds before and after a recording that only the filter sees."""


class Arm(NamedTuple):
    """Properties of a robot's recordings, as one value or one per joint.

    Attributes:
        file: Its URDF file in example-robot-data.
        rate: Samples a second.
        duration: Seconds of a recording.
        cutoff: Cutoff frequency of the position filter, Hz.
        gains: Torque for each unit of the signal: N m/A, or 1.
        noise: White noise of the signals, in their units.
        slow: Standard deviation of noise with a correlation time of 50 ms.
        ripple: Amplitude of the torque ripple.
        encoder: Standard deviation of the positions, rad.
        damping, friction, armature, offset: Magnitudes in the joints.
        speed: Largest speeds, rad/s.
    """

    file: str
    rate: float
    duration: float
    cutoff: float
    gains: tuple[float, ...]
    noise: tuple[float, ...]
    slow: tuple[float, ...]
    ripple: tuple[float, ...]
    encoder: float
    damping: tuple[float, ...]
    friction: tuple[float, ...]
    armature: tuple[float, ...]
    offset: float
    speed: tuple[float, ...]


UR10E = Arm(
    "ur_description/urdf/ur10_robot.urdf", 100.0, 30.0, 10.0,
    gains=(13.3, 13.3, 11.1, 10.6, 10.3, 10.3), noise=(0.16, 0.17, 0.12, 0.05, 0.05, 0.05),
    slow=(0.10, 0.10, 0.08, 0.03, 0.03, 0.03), ripple=(0.06, 0.06, 0.05, 0.02, 0.02, 0.02), encoder=2e-5,
    damping=(14.0, 14.0, 9.0, 2.5, 2.5, 2.5), friction=(10.0, 11.0, 7.0, 2.0, 2.2, 2.1),
    armature=(2.5, 2.5, 1.0, 0.25, 0.25, 0.25), offset=0.5, speed=(1.5, 1.2, 1.5, 2.0, 2.0, 2.0),
)  # fmt: skip
PANDA = Arm(
    "panda_description/urdf/panda.urdf", 1000.0, 21.0, 12.0,
    gains=(1.0,) * 7, noise=(0.10, 0.12, 0.10, 0.10, 0.06, 0.06, 0.06),
    slow=(0.08, 0.12, 0.08, 0.08, 0.04, 0.04, 0.04), ripple=(0.05, 0.08, 0.05, 0.05, 0.03, 0.03, 0.03), encoder=1e-5,
    damping=(0.3, 0.3, 0.3, 0.3, 0.15, 0.15, 0.15), friction=(0.5, 0.6, 0.5, 0.6, 0.3, 0.3, 0.3),
    armature=(0.15, 0.15, 0.15, 0.15, 0.05, 0.05, 0.05), offset=0.2, speed=(1.3, 1.2, 1.3, 1.3, 1.6, 1.6, 1.6),
)  # fmt: skip


class Machine(NamedTuple):
    """One arm: a model of Pinocchio with its own bodies and actuators.

    Attributes:
        arm: Properties of its recordings.
        model: Pinocchio's model with the true bodies.
        drives: True damping, dry friction, armature and offset (4, nv).
        flat: Names of the bodies that are flat or thin.
        prior: lgsim's model of the file, with wrong masses and wrong drives.
    """

    arm: Arm
    model: pin.Model
    drives: np.ndarray
    flat: list[str]
    prior: object


def urdf_text(arm):
    """The file of the robot without mimic joints, and its path."""
    folder = distribution("example-robot-data").locate_file("cmeel.prefix/share/example-robot-data/robots")
    return re.sub(r"<mimic[^>]*/>", "", (Path(str(folder)) / arm.file).read_text(encoding="utf-8"))


def squashed(body, rng, directions):
    """A body whose mass lies near a plane or a line: a hundredth of the extent along some of its rotated axes."""
    sigma = 0.5 * np.trace(body.inertia) * np.eye(3) - body.inertia
    size, axes = np.linalg.eigh(sigma)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    axes = axes @ turn
    factor = np.where(np.isin(np.arange(3), rng.permutation(3)[:directions]), 1e-4, 1.0)
    sigma = axes @ np.diag(np.maximum(size, 0.1 * size.max()) * factor) @ axes.T
    return pin.Inertia(body.mass, body.lever, np.trace(sigma) * np.eye(3) - sigma)


def machine(arm, seed):
    """The arm of a seed."""
    rng = np.random.default_rng(seed)
    text = urdf_text(arm)
    model = pin.buildModelFromXML(text)
    prior, _ = read_urdf(text=text)
    fingers = [name for name in prior.joint_names if "finger" in name]
    if fingers:
        model = pin.buildReducedModel(model, [model.getJointId(name) for name in fingers], pin.neutral(model))
        prior = prior.lock(fingers, prior.neutral())
    nv, flat = model.nv, []
    for i in range(1, nv + 1):
        body = model.inertias[i]
        mass = body.mass * rng.uniform(0.8, 1.25)
        lever = body.lever + 0.02 * rng.normal(size=3)
        body = pin.Inertia(mass, lever, body.inertia * mass / body.mass * rng.uniform(0.8, 1.25))
        if rng.random() < 0.4:
            body = squashed(body, rng, rng.integers(1, 3))
            flat.append(model.names[i])
        model.inertias[i] = body
    sizes = np.array([arm.damping, arm.friction, arm.armature, [arm.offset] * nv])
    drives = sizes * rng.uniform(0.6, 1.4, (4, nv))
    drives[3] *= rng.choice([-1, 1], nv)
    factors = rng.uniform(0.7, 1.3, (len(prior.body_names), 1))
    prior = prior.replace(
        inertias=prior.inertias * jnp.asarray(factors), friction_speed=SPEED,
        damping=np.mean(arm.damping), friction=np.mean(arm.friction), armature=np.mean(arm.armature),
    )  # fmt: skip
    return Machine(arm, model, drives, flat, prior)


def motion(machine, seed):
    """Times, and a Fourier motion with its two derivatives (n, nv), within the velocity limits."""
    arm, nv = machine.arm, machine.model.nv
    rng = np.random.default_rng(seed)
    edge = round(arm.rate * EDGE)
    t = np.arange(-edge, round(arm.rate * arm.duration) + edge) / arm.rate
    w = 2 * np.pi / arm.duration * np.arange(1, round(FASTEST * arm.duration) + 1)
    a, b = rng.normal(size=(2, len(w), nv))
    wave, slope = np.cos(np.outer(t, w)), np.sin(np.outer(t, w))
    v = wave @ a + slope @ b
    scale = np.array(arm.speed) / np.abs(v).max(axis=0)
    a, b = a * scale, b * scale
    q = slope @ (a / w[:, None]) - wave @ (b / w[:, None])
    middle = (machine.model.upperPositionLimit + machine.model.lowerPositionLimit) / 2
    middle = np.where(np.abs(middle) < 10, middle, 0)
    return t, q - q.mean(axis=0) + middle, wave @ a + slope @ b, -slope @ (a * w[:, None]) + wave @ (b * w[:, None])


class Recorded(NamedTuple):
    """Record of an arm: times, filtered positions with their derivatives, and signals (n, nv)."""

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    signals: np.ndarray
    raw_q: np.ndarray

    @property
    def samples(self):
        """The record in the format of lgsim."""
        return TorqueSamples(self.q, self.v, self.a, self.signals)


def record(machine, seed):
    """Record of the arm on a random motion."""
    arm, model = machine.arm, machine.model
    rng = np.random.default_rng(seed + 10_000)
    t, q, v, a = motion(machine, seed)
    data = model.createData()
    damping, friction, armature, offset = machine.drives
    tau = np.stack([pin.rnea(model, data, *row) for row in zip(q, v, a, strict=True)])
    tau = tau + armature * a + damping * v + friction * np.sign(v) + offset
    size, pole = q.shape, np.exp(-1 / (0.05 * arm.rate))
    slow = lfilter([np.sqrt(1 - pole**2)], [1, -pole], rng.normal(size=size), axis=0)
    ripple = np.sin(20 * q + rng.uniform(0, 6, size[1]))
    signals = tau / np.array(arm.gains) + arm.noise * rng.normal(size=size) + arm.slow * slow + arm.ripple * ripple
    raw = q + arm.encoder * rng.normal(size=size)
    smooth = sosfiltfilt(butter(4, arm.cutoff / (arm.rate / 2), output="sos"), raw, axis=0)
    speed = np.gradient(smooth, 1 / arm.rate, axis=0)
    kept = slice(round(arm.rate * EDGE), len(t) - round(arm.rate * EDGE))
    arrays = (t, smooth, speed, np.gradient(speed, 1 / arm.rate, axis=0), signals, raw)
    return Recorded(*(x[kept] for x in arrays))


def unknowns(machine, **block):
    """All inertias, damping, dry friction, motor inertia and offsets."""
    drives = [JointParameter("damping"), JointParameter("friction"), JointParameter("armature"), TorqueOffset()]
    return Parameters(Plant(machine.prior, scale=machine.arm.gains), [Inertias(**block), *drives])


def regressor(machine, recorded):
    """Pinocchio's regressor of the joint forces, with columns for friction, motor inertia and offset (n, nv, p)."""
    model, data = machine.model, machine.model.createData()
    bodies = np.stack(
        [
            pin.computeJointTorqueRegressor(model, data, *row).copy()
            for row in zip(recorded.q, recorded.v, recorded.a, strict=True)
        ]
    )
    eye = np.eye(model.nv)
    columns = [recorded.v, np.sign(recorded.v), recorded.a, np.ones_like(recorded.v)]
    return np.concatenate([bodies, *(x[..., None] * eye for x in columns)], axis=-1)


def ordinary_least_squares(machine, fitted, held_out):
    """Held-out residuals (rms) of each joint, in the signals' units, by ordinary least squares for all parameters."""
    gains = np.array(machine.arm.gains)
    Y, tau = regressor(machine, fitted), fitted.signals * gains
    p = Y.shape[-1]
    H, g = np.einsum("tjp,tjq->pq", Y, Y), np.einsum("tjp,tj->p", Y, tau)
    scale = 1 / np.sqrt(np.maximum(np.diag(H), 1e-12 * np.diag(H).max()))
    values, vectors = np.linalg.eigh(scale[:, None] * H * scale)
    kept = values > 1e-10 * values[-1]
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    theta = scale * (inverse @ (scale * g))
    assert theta.shape == (p,)
    other = regressor(machine, held_out) @ theta / gains - held_out.signals
    return np.sqrt(np.mean(other**2, axis=0))
