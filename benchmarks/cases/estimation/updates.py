"""One update online, through JAX and in C, and the seconds to compile it."""

import harness

import ctypes
import shutil
import time

import jax
import jax.numpy as jnp
import numpy as np

from cases.estimation.flights import DENSITIES, NOISE, POSE, PROCESS, START, Flights
from lgsim import estimate
from lgsim.actions import RightTranslation
from lgsim.lie.extended_pose import SE23, ExtendedPoses
from lgsim.symbolic import compile, shared_library

BODY = RightTranslation(SE23)
KNOWN_BIASES = estimate.DiscreteProcess(
    BODY, lambda y, u, dt: PROCESS.step((y, jnp.zeros(6)), u, dt)[0],
    np.diag(np.repeat([DENSITIES[0] * 0.07, 1e-6, DENSITIES[1] * 0.07], 3)),
)  # fmt: skip
POSE_ALONE = estimate.Measurement(lambda y: (y[0], y[1][3:]), NOISE, group=ExtendedPoses(count=1), name="pose")
U, TURN, PLACE = np.array([0.1, 0.2, 9.81, 0.1, 0.2, 0.3]), np.eye(3), np.zeros(3)


def step(process, pose):
    """A step of a filter and the update by a pose after it, as a function of arrays."""
    return lambda state, u, reading: estimate.step(estimate.EKF(), process, state, 0.005, [(pose, reading)], u)


def online_step(R, x, factor, u, dt, turn, place):
    """A step of inertial navigation with known biases, and the pose that is read after it."""
    state = estimate.Gaussian((R, x), factor, BODY)
    after, (nis,) = estimate.step(estimate.EKF(), KNOWN_BIASES, state, dt, [(POSE_ALONE, (turn, place))], u)
    return *after.mean, after.factor, nis


def compiling(report):
    """Seconds to trace and compile a step, and a record of 1000 steps, in a process that has compiled nothing."""
    given = (START, jnp.asarray(U), (jnp.eye(3), jnp.zeros(3)))
    rows = [["step", harness.compiled(step(PROCESS, POSE), *given)[1]]]
    if not report.quick:
        rows.append(["record", harness.compiled(_last_of(Flights(1, 1000)), jnp.asarray(U))[1]])
    report.table("Compiling a filter of 15 components", ["program", "s"], rows)
    report.figure("compile a step", rows[0][1], "s")
    report.bound("seconds to compile a step", rows[0][1], at_most=2)


def _last_of(flights):
    poses = jax.tree.map(lambda a: a[0], flights.poses)
    return lambda u: flights.estimate(PROCESS, POSE, START, flights.inputs[0] + u, poses).last.factor


def online(report):
    """Microseconds of one update online: a step and the pose after it."""
    reading, u = (jnp.eye(3), jnp.zeros(3)), jnp.asarray(U)
    alone = estimate.Gaussian.from_deviations(SE23.identity(), 0.1, BODY)
    large, small = jax.jit(step(PROCESS, POSE)), jax.jit(step(KNOWN_BIASES, POSE_ALONE))
    empty = jax.jit(lambda state, u, reading: (state, u + reading[1].sum()))
    calls = {
        "JAX, 15 components": lambda: large(START, u, reading), "JAX, 9 components": lambda: small(alone, u, reading),
        "JAX, nothing but the call": lambda: empty(alone, u, reading),
    }  # fmt: skip
    seconds = harness.interleave(calls, repeats=5 if report.quick else 30, clock=time.process_time)
    rows = [[name, 1e6 * each] for name, each in seconds.items()]
    if shutil.which("cc") is None:
        print("note: without a C compiler its row is left out")
    else:
        rows.append(["C, 9 components", 1e6 * _in_c(report)])
        report.figure("online update in C", rows[-1][1], "µs")
        report.bound("microseconds of an online update in C", rows[-1][1], at_most=15)
    report.figure("online update in JAX", rows[0][1], "µs")
    report.table("One update online: a step and a pose", ["program", "µs"], rows)


def _in_c(report):
    """Seconds of a call of the step in C, from Python without conversions."""
    shapes = {"R": (3, 3), "x": (6,), "factor": (9, 9), "u": (6,), "dt": (), "turn": (3, 3), "place": (3,)}
    code = compile(online_step, None, shapes=shapes, results=("R", "x", "factor", "nis"))
    library = shared_library(code, flags=("-std=c99", "-O1"))
    given = [np.eye(3), np.zeros(6), 0.1 * np.eye(9), U, 0.005, TURN, PLACE]
    made = [np.empty(shape) for shape in ((3, 3), (6,), (9, 9), (1,))]
    function = library.library[code.name]
    args = [ctypes.c_double(x) if isinstance(x, float) else ctypes.c_void_p(x.ctypes.data) for x in given]
    args += [ctypes.c_void_p(x.ctypes.data) for x in made]
    call = {"c": lambda: function(*args)}
    return harness.interleave(call, repeats=9 if report.quick else 50, clock=time.process_time)["c"]
