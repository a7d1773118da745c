"""Machines with adaptive steps: closed forms, the tolerance, events, and how a motion ended."""

import itertools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial
from scipy.special import ellipj, ellipk

import lgsim
from lgsim.multibody import joints
from lgsim.simulation import Trajectory, events, simulate_adaptive
from tests.multibody import trees
from tests.multibody.twin import Twin
from tests.simulation.test_rollout import reference

pin = pytest.importorskip("pinocchio")
adaptive = pytest.importorskip("lgsim.integrators.adaptive")

G = 9.81
# the module, which its function of the same name hides
ADAPTIVE = sys.modules["lgsim.simulation.simulate_adaptive"]


def weight(dtype=None, mass=2.0):
    """A weight on a vertical rail, with a frame 0.25 m above it."""
    builder = lgsim.ModelBuilder(dtype=dtype)
    builder.add_body("weight", "world", joints.Prismatic(), joint_name="rail", axis=[0, 0, 1], mass=mass)
    lift = np.eye(4)
    lift[2, 3] = 0.25
    return builder.add_frame("hook", "weight", lift).build()


def pendulum():
    builder = lgsim.ModelBuilder()
    builder.add_body("bob", "world", joints.Revolute(), axis=[0, 1, 0], mass=1.0, center=[0, 0, -0.5],
                     inertia=0.01 * np.eye(3))  # fmt: skip
    return builder.build()


@pytest.fixture
def chunks(monkeypatch):
    """Looks at the motion after eight states or twenty steps, so that there is something to join."""
    monkeypatch.setattr(ADAPTIVE, "SAVED", 8)
    monkeypatch.setattr(ADAPTIVE, "STEPS", 20)


def swing(model=None, **options):
    """A pendulum that is released at 2 rad, until it hangs down."""
    model = pendulum() if model is None else model
    given = {"duration": 5.0, "rtol": 1e-10, "atol": 1e-12, "dt_out": 0.05} | options
    bottom = events.joint_reaches(model, "bob", 0.0)
    return simulate_adaptive(model, jnp.array([2.0]), **given, events=bottom)


def test_pendulum_is_jacobis_elliptic_function(chunks):
    """sin(theta / 2) = k sn(K - w t), between the steps too, until it first hangs down, at w t = K."""
    w, k, seen = np.sqrt(G * 0.5 / 0.26), np.sin(1.0), []
    quarter = ellipk(k**2)
    run = swing(progress=lambda *done: seen.append(done))
    assert len(seen) > 2 and seen == sorted(seen) and seen[-1] == (len(run) - 1, 101)
    assert run.result == f"event reached at {run.time[-1]:.9g} s: the joint 'bob' is 0 rad"
    np.testing.assert_allclose(run.time[-1], quarter / w, rtol=0, atol=1e-9)
    np.testing.assert_allclose(run.time[:-1], 0.05 * np.arange(len(run) - 1), rtol=1e-14)
    assert len(run) == 2 + int(quarter / w / 0.05)
    sn, cn, dn, _ = ellipj(quarter - w * run.time, k**2)
    np.testing.assert_allclose(run.q[:, 0], 2 * np.arcsin(k * sn), rtol=0, atol=1e-8)
    np.testing.assert_allclose(run.v[:, 0], -2 * k * w * cn * dn / np.sqrt(1 - (k * sn) ** 2), rtol=0, atol=1e-8)
    assert (run.method, run.version) == ("MK54, rtol 1e-10, atol 1e-12", lgsim.__version__) and np.isnan(run.dt)


def test_what_was_computed_is_kept(chunks, tmp_path, monkeypatch):
    """After an interrupt, too many steps, or a start whose acceleration is not finite; files keep the reason."""

    def stop(done, count):
        if done >= 3:
            raise KeyboardInterrupt

    some = swing(progress=stop)
    assert 3 <= len(some) < 10 and some.result == f"interrupted at {some.time[-1]:g} s of 5 s"
    calls, ended = itertools.count(), ADAPTIVE._ended

    def pressed(*args):
        if next(calls) == 2:
            raise KeyboardInterrupt
        return ended(*args)

    # within the third chunk: what was before it
    with monkeypatch.context() as patch:
        seen = []
        patch.setattr(ADAPTIVE, "_ended", pressed)
        some = swing(progress=lambda done, count: seen.append(done))
    assert len(seen) == 2 and len(some) in (seen[-1], seen[-1] + 1) and some.result.startswith("interrupted at")
    few = swing(max_steps=20, rtol=1e-12)
    assert few.result.startswith(f"stopped at {few.time[-1]:.9g} s of 5 s after 20 steps: raise max_steps")
    assert 0 < few.time[-1] < 0.35 and few.q[-1, 0] < few.q[-2, 0]
    heavy = pendulum().replace(damping=jnp.array([1e200]))
    none = swing(heavy, v0=jnp.array([1e200]))
    assert none.result.startswith("stalled at 0 s") and len(none) == 1 and none.v[0, 0] == 1e200
    with pytest.raises(ValueError, match="rtol, atol: expected a sum of at least"):
        swing(rtol=1e-20, atol=1e-20)
    weightless = swing(pendulum().replace(inertias=jnp.zeros((1, 10))))
    assert (
        weightless.result.startswith("stalled at 0 s") and "moves without inertia: give the link" in weightless.result
    )
    assert "the passive force of joint 'bob', body 'bob', is -inf" in none.result
    again = Trajectory.load(few.save(tmp_path / "run.npz"))
    assert again.result == few.result and np.isnan(again.dt)


@pytest.mark.slow
def test_error_is_proportional_to_the_tolerance():
    """On a free base with a ball joint, against scipy on Pinocchio's accelerations."""
    model = trees.build(["free", "spherical"], [-1, 0])
    q0, v0, _ = trees.state(model)
    twin = Twin(model)
    right, speed = reference(model, q0, v0, 1.0)
    tolerances, errors = np.array([1e-5, 1e-7, 1e-9]), []
    for tolerance in tolerances:
        run = simulate_adaptive(model, q0, v0, duration=1.0, rtol=tolerance, atol=tolerance, save_at=[0.5, 1.0])
        assert run.result == "" and len(run) == 2 and run.constraint_error.max() < 1e-13
        gap = pin.difference(twin.pin, right, twin.q(run.q[1]))
        errors.append(np.abs(np.concatenate([gap, twin.v(run.v[1]) - speed])).max())
    assert np.all(np.abs(jax.jit(model.difference)(q0, jnp.asarray(run.q[0]))) > 1e-2)
    assert 0.8 < np.polyfit(np.log(tolerances), np.log(errors), 1)[0] < 1.2
    assert np.all(errors < 100 * tolerances)


@pytest.mark.slow
@pytest.mark.typed
@pytest.mark.float32
@pytest.mark.parametrize("dtype", [np.float32])
def test_falling_weight_meets_the_first_of_four_events(dtype):
    """q = -g t^2 / 2: a place, a height on the way down, a speed, and a condition that has no name."""
    model, speed = weight(dtype), Partial(lambda t, q, v, model: v[0])
    exact = 10 * np.finfo(dtype).eps

    def fall(place, height, fast, q0=0.0, v0=0.0):
        found = (
            events.joint_reaches(model, "rail", place),
            events.height_reaches(model, "hook", height, rising=False),
            events.threshold_event(speed, fast, name="the speed", unit="m/s"),
            adaptive.Event(last),
        )
        q0, v0 = (jnp.array([x], dtype) for x in (q0, v0))
        return simulate_adaptive(model, q0, v0, duration=1.0, dt_out=0.1, rtol=1e-5, atol=1e-6, events=found)

    run = fall(-0.9, -0.55, -20.0)
    np.testing.assert_allclose(run.time, [*(0.1 * np.arange(5)), np.sqrt(1.6 / G)], rtol=exact)
    np.testing.assert_allclose(run.q[:, 0], -G / 2 * run.time**2, rtol=0, atol=exact)
    np.testing.assert_allclose(run.v[:, 0], -G * run.time, rtol=0, atol=10 * exact)
    assert {a.dtype for a in (run.time, run.q, run.v, run.tau)} == {np.dtype(dtype)}
    assert run.result.endswith(" s: the height of the frame 'hook' is -0.55 m")
    # thrown up from below it passes the height twice; the way down counts
    run = fall(-0.9, -0.55, -20.0, q0=-0.85, v0=1.5)
    np.testing.assert_allclose(run.time[-1], (1.5 + np.sqrt(2.25 - 0.1 * G)) / G, rtol=4 * exact)
    assert fall(-0.25, -0.55, -20.0).result.endswith(" s: the joint 'rail' is -0.25 m")
    run = fall(-0.9, -0.55, -2.0)
    np.testing.assert_allclose(run.time[-1], 2 / G, rtol=exact)
    assert run.result.endswith(" s: the speed is -2 m/s")
    assert fall(-9.0, -9.0, -20.0).result.endswith(" s: events[3]")


def last(t, y, args):
    return t - 0.6


@pytest.mark.slow
def test_forces_of_control_and_constant_torques():
    """A weight on a spring with a damper, held by a constant force; then with a force that no step can pass."""
    model = weight()

    def pull(growing, t, q, v, model):
        return -8.0 * q - v + growing / (1.0 - t) ** 2

    def run(growing, **options):
        law = Partial(pull, jnp.array([growing]))
        options = {"rtol": 1e-9, "atol": 1e-9, "torques": np.array([2 * G]), "dt_out": 0.05} | options
        return simulate_adaptive(model, jnp.ones(1), duration=1.02, control=law, **options)

    out = run(0.0)
    assert (len(out), out.time[-1], out.result) == (21, 1.02, "")
    decay, w = 0.25, np.sqrt(4.0 - 0.25**2)
    turn = np.exp(-decay * out.time) * np.array([np.cos(w * out.time), np.sin(w * out.time)])
    np.testing.assert_allclose(out.q[:, 0], turn[0] + decay / w * turn[1], rtol=0, atol=1e-8)
    np.testing.assert_allclose(out.tau, 2 * G - 8 * out.q - out.v, rtol=0, atol=1e-12)
    out = run(2.0)
    assert out.result.startswith("stalled at 1 s: the steps shrank") and np.isfinite(out.v).all() and len(out) >= 20


REFUSED = {
    "duration": ({"duration": 0.0}, r"duration: expected a positive number of seconds, got 0\.0"),
    "dt_out": ({"dt_out": np.nan}, "dt_out: expected a positive number of seconds, got nan"),
    "rtol": ({"rtol": -1.0}, r"rtol: expected a positive number, got -1\.0"),
    "method": ({"method": lgsim.MK4}, "method: .* has no error estimate, which adaptive steps need; take MK54, CF32a"),
    "torques": ({"torques": np.ones((3, 1))}, r"torques: expected shape \(1,\), constant over time, got \(3, 1\)"),
    "q0": ({"q0": np.ones(2)}, r"q0: expected shape \(1,\), that is nq, got \(2,\)"),
    "back": ({"save_at": [0.5, 0.1]}, r"save_at: expected increasing times from 0 to 1 s, got \[0\.5 0\.1\]"),
    "beyond": ({"save_at": [0.5, 1.1]}, r"save_at: expected increasing times from 0 to 1 s, got \[0\.5 1\.1\]"),
    "none": ({"save_at": []}, r"save_at: expected times of shape \(n,\), got shape \(0,\)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, without_import_hook):
    options, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        simulate_adaptive(weight(), **({"duration": 1.0} | options))


def test_refused_events(without_import_hook):
    model = trees.build(["free", "revolute"], [-1, 0])
    with pytest.raises(ValueError, match="joint: expected one of joint0, joint1, got 'knee'"):
        events.joint_reaches(model, "knee", 0.0)
    with pytest.raises(ValueError, match="a joint with one coordinate of its own, got 'joint0', which has 7; give"):
        events.joint_reaches(model, "joint0", 0.0)
    with pytest.raises(ValueError, match="frame: expected one of body0, body1, got 'tip'"):
        events.height_reaches(model, "tip", 0.0)
    with pytest.raises(ValueError, match="value: expected one finite number, got nan"):
        events.joint_reaches(model, "joint1", np.nan)
    with pytest.raises(TypeError, match=r"torques: expected float64, the dtype of the model, got float32"):
        simulate_adaptive(weight(), duration=1.0, torques=jnp.ones(1, jnp.float32))


def test_diffrax_is_an_extra():
    text = """
import sys
sys.modules["diffrax"] = None
import lgsim
from lgsim.simulation import events, simulate_adaptive
model = lgsim.ModelBuilder().add_body("a", "world", lgsim.joints.Revolute(), mass=1.0).build()
for call in (lambda: simulate_adaptive(model, duration=1.0), lambda: events.joint_reaches(model, "a", 1.0)):
    try:
        call()
    except ModuleNotFoundError as error:
        assert "pip install 'lgsim[adaptive]'" in str(error), error
    else:
        raise AssertionError("diffrax was found")
"""
    subprocess.run([sys.executable, "-c", text], check=True)


def push(pulse, t, q, v, model):
    """1000 N for a while: (start, length, whether they rise and fall as sin^2)."""
    start, length, rounded = pulse
    x = (t - start) / length
    shape = jnp.where(rounded == 1, jnp.sin(np.pi * x) ** 2, 1.0)
    return jnp.where((x > 0) & (x < 1), 1000.0 * shape, 0.0)[None]


@pytest.mark.parametrize("start, length", [(0.5031, 0.01), (0.7123, 0.05), (0.9, 0.2)])
@pytest.mark.parametrize("rounded", [True, False])
def test_pulses_are_not_stepped_over(start, length, rounded):
    """Of 10 to 200 ms on a mass at rest, on which every step would be accepted; the closed form is the oracle."""
    builder = lgsim.ModelBuilder(gravity=np.zeros(3))
    builder.add_body("cart", "world", joints.Prismatic(), axis=[1, 0, 0], mass=1.0)
    law = Partial(push, jnp.array([start, length, float(rounded)]))
    run = simulate_adaptive(builder.build(), duration=2.0, control=law)
    way = 1000.0 * length * (0.5 if rounded else 1.0) * (2.0 - start - length / 2)
    true = abs(run.q[-1, 0] - way)
    assert way > 5 and true < 1e-3 * way and true <= 3 * run.step_error.error[-1, 0]


def test_the_begin_and_the_end_of_a_short_pulse_are_jumps():
    """1000 N for a tenth of a millisecond between states half a second apart, against the closed form."""
    builder = lgsim.ModelBuilder(gravity=np.zeros(3))
    builder.add_body("cart", "world", joints.Prismatic(), axis=[1, 0, 0], mass=1.0)
    law, ends = Partial(push, jnp.array([0.5031, 1e-4, 0.0])), [0.5031, 0.5031 + 1e-4]
    run = simulate_adaptive(builder.build(), duration=2.0, dt_out=0.5, control=law, jump_times=ends)
    np.testing.assert_allclose(run.q[-1, 0], 0.1 * (2.0 - 0.5031 - 5e-5), rtol=1e-9)
    assert run.step_error.resolved and run.step_error.error[-1, 0] < 1e-6


def ball():
    """A ball that is thrown to 1 m, its speed, and when it passes 0.9 m on the way up."""
    v0 = np.sqrt(2 * G)
    return weight(), v0, (v0 - np.sqrt(v0**2 - 2 * G * 0.9)) / G


@pytest.mark.repeats("largest step", "one state")
@pytest.mark.parametrize(
    "given",
    [{"max_step": 2.0}, {}, {"dt_out": 2.0}, {"save_at": [2.0]}, {"save_at": [0.0, 0.4, 2.0]}],
    ids=["largest step", "usual", "one state", "the end", "three states"],
)
def test_two_crossings_within_a_step(given):
    """A ball passes 0.9 m twice; one step of its parabola is exact, whatever its length."""
    model, v0, time = ball()
    up = events.joint_reaches(model, "rail", 0.9)
    down = events.joint_reaches(model, "rail", 0.9, rising=False)
    run = simulate_adaptive(model, None, jnp.array([v0]), duration=2.0, events=up, **given)
    np.testing.assert_allclose(run.time[-1], time, rtol=1e-9)
    assert run.result.startswith("event reached") and run.step_error.resolved and (run.q[:, 0] < 0.9 + 1e-9).all()
    back = simulate_adaptive(model, None, jnp.array([v0]), duration=2.0, events=down, **given)
    np.testing.assert_allclose(back.time[-1], 2 * v0 / G - time, rtol=1e-9)


def test_two_crossings_and_another_event_within_a_step():
    """The last step ends beyond both crossings of one event and the crossing of another; a height that is touched."""
    model, v0, time = ball()
    up, low, touched = (events.joint_reaches(model, "rail", height) for height in (0.9, -1.0, 1.0))
    first = simulate_adaptive(model, None, jnp.array([v0]), duration=2.0, events=(low, up), max_step=2.0)
    np.testing.assert_allclose(first.time[-1], time, rtol=1e-9)
    grazed = simulate_adaptive(model, None, jnp.array([v0]), duration=2.0, events=touched, max_step=2.0)
    assert grazed.result == "" or abs(grazed.time[-1] - v0 / G) < 1e-6


def test_the_error_of_the_largest_step():
    """Where the largest step decides, and not the tolerance: the estimate is that of the steps."""
    model = pendulum()
    given = {"duration": 2.0, "dt_out": 0.1, "rtol": 1e-2, "atol": 1e-2}
    run = simulate_adaptive(model, jnp.array([2.0]), **given)
    fine = simulate_adaptive(model, jnp.array([2.0]), **given | {"rtol": 1e-11, "atol": 1e-12})
    true = np.abs(run.q - fine.q).max()
    assert true > 1e-8 and true <= 3 * run.step_error.error[:, 0].max()
    with pytest.raises(ValueError, match=r"max_step: expected a positive number, got 0\.0"):
        simulate_adaptive(model, duration=1.0, max_step=0.0)
