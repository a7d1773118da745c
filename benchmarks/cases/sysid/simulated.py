"""Identification without torques, velocities or accelerations, from motion by independent equations."""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import robots
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import lgsim
from lgsim.identify.estimators.records import Channel, SensorRecords
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.sensors import PositionSensor
from lgsim.identify.estimators.simulation_fit import SimulationFit
from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.fit import fit
from lgsim.identify.unknowns.body_blocks import Inertias, Masses
from lgsim.identify.unknowns.joint_blocks import JointParameter
from lgsim.identify.unknowns.parameters import Parameters

G = 9.81
PAYLOAD = (4.0, np.array([0.10, -0.05, 0.12]), np.diag([0.03, 0.05, 0.06]))
"""Mass, center in the base and inertia about it."""


def rods(second, damping):
    """A double pendulum of two rods."""
    down = np.eye(4)
    down[2, 3] = -1.0

    def rod(m):
        return {"mass": m, "center": [0, 0, -0.5], "inertia": 0.1 * m * np.eye(3), "damping": damping}

    hinge = {"axis": [0, 1, 0]}
    builder = lgsim.ModelBuilder().add_body("upper", "world", lgsim.joints.Revolute(), **hinge, **rod(1.0))
    return builder.add_body("lower", "upper", lgsim.joints.Revolute(), **hinge, placement=down, **rod(second)).build()


def equations(t, y, m, d):
    """Lagrange's equations of two rods by hand; m and d may be arrays of many systems."""
    q1, q2, v1, v2 = y
    a, b, c = 0.35 * np.ones_like(m), 0.35 * m, 0.5 * m
    m22, m12, m11 = b, b + c * np.cos(q2), a + b + m + 2 * c * np.cos(q2)
    h1, h2 = -c * np.sin(q2) * (2 * v1 * v2 + v2**2), c * np.sin(q2) * v1**2
    r1 = -h1 - G * ((0.5 + m) * np.sin(q1) + c * np.sin(q1 + q2)) - d * v1
    r2 = -h2 - G * c * np.sin(q1 + q2) - d * v2
    det = m11 * m22 - m12**2
    return np.array([v1, v2, (m22 * r1 - m12 * r2) / det, (m11 * r2 - m12 * r1) / det])


def swing(mass, damping, start, dt, steps):
    """Angles (steps + 1, 2) by DOP853."""
    times = dt * np.arange(steps + 1)
    given = (np.asarray(mass), np.asarray(damping))
    return solve_ivp(equations, (0, times[-1]), start, "DOP853", times, args=given, rtol=1e-11, atol=1e-11).y.T[:, :2]


def double_pendulum(noise=1e-3, seconds=5.0, dt=5e-3):
    """A Fit of mass and damping of a chaotic double pendulum from its angles only, and the truth."""
    q = swing(1.2, 0.05, [2.0, 1.0, 0.0, 0.0], dt, round(seconds / dt))
    q = q + noise * np.random.default_rng(0).standard_normal(q.shape)
    parameters = Parameters(rods(1.9, 0.02), [Masses(bodies=("lower",)), JointParameter("damping")])
    found = fit(
        parameters, SensorRecords(dt, {"angles": Channel(PositionSensor(), q, noise)}), SimulationFit(window_steps=50)
    )
    return found, [1.2, 0.05, 0.05]


def many_machines(count=100, noise=1e-3, dt=5e-3, steps=200):
    """(errors in standard errors (count, 3), seconds of the first and the second call) of many systems in one call."""
    rng = np.random.default_rng(1)
    truth = np.stack([rng.uniform(0.8, 2.0, count), rng.uniform(0.03, 0.1, count)], axis=1)
    q = np.array([swing(m, d, [*rng.uniform(-2, 2, 2), 0, 0], dt, steps) for m, d in truth])
    q = q + noise * rng.standard_normal(q.shape)
    parameters = Parameters(rods(1.4, 0.05), [Masses(bodies=("lower",)), JointParameter("damping")])
    estimator = SimulationFit(window_steps=50)
    one = SensorRecords(dt, {"angles": Channel(PositionSensor(), q[0], noise)})
    records = eqx.tree_at(lambda r: r.channels["angles"].values, one, jnp.asarray(q))
    axes = eqx.tree_at(lambda r: r.channels["angles"].values, jax.tree.map(lambda _: None, one), 0, is_leaf=_none)
    run = eqx.filter_jit(eqx.filter_vmap(lambda r: estimator.run(parameters, r), in_axes=(axes,)))
    seconds = []
    for _ in range(2):
        begin = time.perf_counter()
        found = jax.block_until_ready(run(records))
        seconds.append(time.perf_counter() - begin)
    true = np.stack([np.log(truth[:, 0] / 1.4), truth[:, 1] - 0.05, truth[:, 1] - 0.05], axis=1)
    deviations = np.sqrt(np.diagonal(found.covariance, axis1=1, axis2=2))
    return (np.asarray(found.x) - true) / deviations, *seconds


def _none(x):
    return x is None


CENTRAL = np.array([[0.05, 0.004, -0.003], [0.004, 0.07, 0.002], [-0.003, 0.002, 0.06]])
BODY = (2.0, np.array([0.05, -0.02, 0.08]), CENTRAL)
"""Mass, center of mass and inertia about it of a body that floats without gravity."""


def newton_euler(t, y, push):
    """Motion of the body about its center of mass by hand: p, p', quaternion (w first), angular velocity."""
    m, c, inertia = BODY
    (f, n), (a, b), w = (push[:3], push[3:]), (y[6], y[7:10]), y[10:]
    turn = np.linalg.solve(inertia, n - np.cross(c, f) - np.cross(w, inertia @ w))
    R = Rotation.from_quat(y[6:10], scalar_first=True).as_matrix()
    return np.concatenate([y[3:6], R @ f / m, [-b @ w / 2], (a * w + np.cross(b, w)) / 2, turn])


def free_body(noise=1e-4, dt=0.02, steps=150):
    """A Fit of all inertial parameters of a floating body from poses under known thruster wrenches, and the truth."""
    m, c, _ = BODY
    rng = np.random.default_rng(2)
    pushes = rng.normal(size=(steps, 6)) * np.array([10, 10, 10, 1, 1, 1])
    y = np.concatenate([c, [0.1, 0.2, -0.1], [1, 0, 0, 0], [0.5, -1.0, 0.8]])
    rows = [y]
    for push in pushes:
        y = solve_ivp(newton_euler, (0, dt), y, "DOP853", args=(push,), rtol=1e-10, atol=1e-12).y[:, -1]
        y[6:10] /= np.linalg.norm(y[6:10])
        rows.append(y)
    y = np.array(rows)
    origin = y[:, :3] - Rotation.from_quat(y[:, 6:10], scalar_first=True).apply(c)

    def build(mass, center, central):
        builder = lgsim.ModelBuilder(gravity=[0, 0, 0])
        return builder.add_body(
            "body", "world", lgsim.joints.Free(), mass=mass, center=center, inertia=central
        ).build()  # fmt: skip

    prior = build(1.4 * m, np.zeros(3), 0.1 * np.eye(3))
    q = jnp.asarray(np.concatenate([origin, y[:, 6:10]], axis=1))
    q = np.asarray(prior.retract(q, jnp.asarray(noise * rng.standard_normal((steps + 1, 6)))))
    records = SensorRecords(dt, {"pose": Channel(PositionSensor(), q, noise)}, signals=pushes)
    found = fit(Parameters(prior, Inertias()), records, SimulationFit(window_steps=30))
    return found, np.asarray(build(*BODY).inertias[0])


def quadruped():
    """(lgsim's ANYmal without the payload, Pinocchio's model with it, its data, parameters of the base)."""
    model = robots.robot("ANYmal", np.float64)
    model = model.replace(**{n: jnp.zeros(model.nv) for n in ("damping", "friction", "armature")})
    twin = robots.Twin(model)
    twin.model.inertias[1] = twin.model.inertias[1] + pin.Inertia(*PAYLOAD)
    base = model.body_names[0]
    return model, twin.model, twin.model.createData(), Parameters(model, Inertias(bodies=(base,)))


def of_pinocchio(q):
    """Quaternions (x, y, z, w)."""
    return np.concatenate([q[..., :3], q[..., 4:7], q[..., 3:4], q[..., 7:]], axis=-1)


def of_lgsim(q):
    """Quaternions (w, x, y, z)."""
    return np.concatenate([q[..., :3], q[..., 6:7], q[..., 3:6], q[..., 7:]], axis=-1)


def with_payload(model):
    """The ten inertial parameters of the base with the payload."""
    m, c, inertia = PAYLOAD
    full = inertia + m * (c @ c * np.eye(3) - np.outer(c, c))
    added = [m, *(m * c), full[0, 0], full[0, 1], full[1, 1], full[0, 2], full[1, 2], full[2, 2]]
    return np.asarray(model.inertias[0]) + np.array(added)


def payload_in_flight(noise=1e-4, dt=5e-3, steps=120, inner=10):
    """A Fit of the base with its payload from base pose and encoders, with known torques of the legs, and the truth."""
    model, machine, data, parameters = quadruped()
    rng = np.random.default_rng(4)
    t = dt * np.arange(steps)[:, None]
    legs = model.nv - 6
    wave = sum(rng.uniform(-1, 1, legs) * np.sin(2 * np.pi * f * t + rng.uniform(0, 6, legs)) for f in (2.0, 5.0))
    tau = np.concatenate([np.zeros((steps, 6)), 4 * wave], axis=1)
    q, v = of_pinocchio(np.asarray(model.neutral())), np.concatenate([[0, 0, 3.0, 0.5, -1, 0.7], np.zeros(legs)])
    rows, h = [q], dt / inner
    for push in tau:
        for _ in range(inner):
            half = v + h / 2 * pin.aba(machine, data, q, v, push)
            middle = pin.integrate(machine, q, h / 2 * v)
            q, v = pin.integrate(machine, q, h * half), v + h * pin.aba(machine, data, middle, half, push)
        rows.append(q)
    q = of_lgsim(np.array(rows))
    off = noise * rng.standard_normal((steps + 1, model.nv))
    q = np.asarray(model.retract(jnp.asarray(q), jnp.asarray(off)))
    records = SensorRecords(dt, {"q": Channel(PositionSensor(), q, noise)}, signals=tau)
    return fit(parameters, records, SimulationFit(window_steps=30)), with_payload(model)


def payload_with_foot_wrenches(noise=0.5, count=400):
    """The same from states, torques and measured wrenches of the feet, and the truth; noise of the torques in N m."""
    model, machine, data, parameters = quadruped()
    rng = np.random.default_rng(5)
    q = np.asarray(model.retract(jnp.broadcast_to(model.neutral(), (count, model.nq)),
                                 jnp.asarray(0.4 * rng.standard_normal((count, model.nv)))))  # fmt: skip
    v, tau = rng.standard_normal((count, model.nv)), 10 * rng.standard_normal((count, model.nv))
    tau[:, :6] = 0
    feet = [i for i in range(len(model.body_names)) if i not in model.topology.parents]
    wrenches = np.zeros((count, len(model.body_names), 6))
    wrenches[:, feet] = rng.normal(size=(count, len(feet), 6)) * np.array([20, 20, 80, 1, 1, 1])
    a = np.empty_like(v)
    for i in range(count):
        outer = pin.StdVec_Force()
        for F in [np.zeros(6), *wrenches[i]]:
            outer.append(pin.Force(F[:3], F[3:]))
        a[i] = pin.aba(machine, data, of_pinocchio(q[i]), v[i], tau[i], outer)
    signals = tau + noise * rng.standard_normal(tau.shape)
    return fit(parameters, TorqueSamples(q, v, a, signals, wrenches=wrenches), TorqueFit(noise=noise)), with_payload(
        model
    )


def run(report):
    """In a full run."""
    if report.quick:
        return
    rows = []
    for name, task in TASKS.items():
        begin = time.perf_counter()
        found, truth = task()
        seconds = time.perf_counter() - begin
        values, deviations = (np.array(list(x.values())) for x in (found.values, found.deviations))
        far, error = np.max(np.abs(values - truth) / deviations), np.max(np.abs(values - truth)) / np.max(np.abs(truth))
        rows.append([name, len(values), 100 * error, far, seconds])
        # one of ten parameters has an error above four standard errors once in 1600 records
        report.bound(f"{name}: largest error, reported standard deviations", far, at_most=4.0)
        report.bound(f"{name}: largest error, % of the largest parameter", 100 * error, at_most=1.0)
    report.table(
        "From motion by other equations",
        ["task", "parameters", "largest error, % of the largest parameter", "largest error, standard deviations",
         "s, with compilation"],
        rows,
    )  # fmt: skip
    scores, first, again = many_machines()
    within = 100 * np.mean(np.abs(scores) <= 3)
    report.table(
        f"{len(scores)} double pendulums, each with its own parameters, in one vmapped call", ["quantity", "value"],
        [["mean square of the errors in reported deviations", np.mean(scores**2)],
         ["within three standard deviations, %", within], ["s, with compilation", first], ["s", again]],
    )  # fmt: skip
    report.bound("many systems: mean square of the errors in standard deviations", np.mean(scores**2), at_most=1.4)
    report.bound("many systems: within three standard deviations, %", within, at_least=98.5)
    report.figure(f"{len(scores)} systems by simulation in one call", again, "s")


TASKS = {
    "floating body, from poses": free_body,
    "double pendulum, from angles only": double_pendulum,
    "ANYmal with payload in flight, from base pose and encoders": payload_in_flight,
    "ANYmal with payload, from torques and foot wrenches": payload_with_foot_wrenches,
}
