"""The error of the steps beside the true one: closed forms, scipy's DOP853, and MK8 at steps far smaller."""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial
from scipy.integrate import solve_ivp

import lgsim
from lgsim.multibody import joints
from lgsim.simulation import Trajectory, simulate, simulate_adaptive

# the module, which its function of the same name hides
SIMULATE = sys.modules["lgsim.simulation.simulate"]
G = 9.81


@pytest.fixture(autouse=True)
def short_programs(monkeypatch):
    """One program for any number of steps from 16 on."""
    monkeypatch.setattr(SIMULATE, "CHUNK", 16)


def oscillator(dtype=None, damping=0.0, stiffness=4.0):
    """1 kg on a spring: 2 rad/s without a damper."""
    builder = lgsim.ModelBuilder(gravity=np.zeros(3), dtype=dtype)
    builder.add_body("weight", "world", joints.Prismatic(), mass=1.0, stiffness=stiffness, damping=damping)
    return builder.build()


def arm(length=0.4, mass=0.9, links=2):
    builder = lgsim.ModelBuilder()
    for i in range(links):
        at = np.eye(4)
        at[2, 3] = -length * (i > 0)
        builder.add_body(
            f"link{i}", f"link{i - 1}" if i else "world", joints.Revolute(), axis=[0, 1, 0], placement=at, mass=mass,
            center=[0, 0, -length / 2], inertia=np.eye(3) * mass * length**2 / 12,
        )  # fmt: skip
    return builder.build()


@pytest.fixture(scope="module")
def two_links():
    return arm()


def two_link_reference(model, t, q0, control=None, length=0.4, mass=0.9):
    """Angles at the times t by DOP853 on the equations of two rods, written down here."""
    m, c, inertia = mass, length / 2, mass * length**2 / 12

    def field(t, y):
        q, v = y[:2], y[2:]
        a = inertia + m * c**2
        cos, sin = np.cos(q[1]), np.sin(q[1])
        M = np.array([[2 * a + m * length**2 + 2 * m * length * c * cos, a + m * length * c * cos], [0, a]])
        M[1, 0] = M[0, 1]
        h = m * length * c * sin * np.array([-(2 * v[0] * v[1] + v[1] ** 2), v[0] ** 2])
        low = m * G * c * np.sin(q[0] + q[1])
        pull = np.array([m * G * (c + length) * np.sin(q[0]) + low, low])
        tau = np.zeros(2) if control is None else control(q, v)
        return np.concatenate([v, np.linalg.solve(M, tau - h - pull)])

    found = solve_ivp(field, (0, t[-1]), [*q0, 0, 0], "DOP853", t, rtol=3e-14, atol=1e-14)
    assert found.success
    return found.y[:2].T


def holds(motion, exact, component=slice(None), factor=3.0, tight=30.0):
    """The true error is inside ``factor`` times the largest estimate, which is not ``tight`` times too large."""
    true = np.abs(motion.q[:, component] - exact).max()
    told = motion.step_error.error[:, : motion.model.nv][:, component].max()
    assert true <= factor * told and told <= tight * true, (true, told)
    return told


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LieEuler", "MK2", "MK4", "MK8", "MKGauss4"])
def test_oscillator_is_a_cosine(name):
    motion = simulate(oscillator(), jnp.array([0.7]), duration=6.0, dt=0.01, method=getattr(lgsim, name))
    told = holds(motion, 0.7 * np.cos(2 * motion.time)[:, None], tight=3.0 if name != "MK8" else 100.0)
    said = motion.step_error
    assert said.resolved == (name != "LieEuler") and said.claimed == lgsim.__dict__.get(name, said).order
    if name in ("MK2", "MK4", "MKGauss4"):
        assert abs(said.order - said.claimed) < 0.1 and np.isnan(said.rate) and said.until == pytest.approx(6.0)
        error, size, unit, joint = said.largest
        assert (error, unit, joint) == (told, "m", "q weight") and size == pytest.approx(1.4, rel=1e-3)
        assert str(said) == f"{told:.1g} m (of 1.4) in q weight"


def test_long_motions_are_compared_with_longer_steps(monkeypatch):
    """Beyond 2048 steps, where steps of 2 dt and 4 dt tell enough, and where 2 dt is unstable."""
    ratios = []
    from lgsim.simulation.fixed_steps import FixedSteps

    motion_of = FixedSteps.motion

    def seen(self, y, done, ratio=(1, 1), count=None, **more):
        ratios.append(ratio)
        return motion_of(self, y, done, ratio, count, **more)

    monkeypatch.setattr(FixedSteps, "motion", seen)
    slow = simulate(oscillator(), jnp.array([0.7]), duration=60.0, dt=0.02)
    holds(slow, 0.7 * np.cos(2 * slow.time)[:, None], tight=3.0)
    assert abs(slow.step_error.order - 4) < 0.1
    share = {ratio: ratios.count(ratio) / ratios.count((1, 1)) for ratio in set(ratios)}
    assert (7, 6) not in share and sum(share.values()) - 1 < 1.5
    ratios.clear()
    # a rate of 87 1/s beside one of 0.23 1/s: MK4 bears dt up to 0.032 s
    stiff = oscillator(damping=87.0, stiffness=20.0)
    fast = simulate(stiff, jnp.array([0.7]), duration=50.0, dt=0.02)
    a, b = np.roots([1, 87.0, 20.0])
    exact = 0.7 * (a * np.exp(b * fast.time) - b * np.exp(a * fast.time)) / (a - b)
    holds(fast, exact[:, None])
    assert fast.step_error.resolved
    share = {ratio: ratios.count(ratio) / ratios.count((1, 1)) for ratio in set(ratios)}
    assert share[(7, 6)] < 1.25 and share[(1, 2)] < 0.1 and sum(share.values()) - 1 < 1.5


def test_a_symmetric_body_precesses():
    """Without gravity the spin about the axis stays, and the rest of w turns about it at a rate known beforehand."""
    builder = lgsim.ModelBuilder(gravity=np.zeros(3))
    builder.add_body("top", "world", joints.Free(), mass=1.0, inertia=np.diag([0.03, 0.03, 0.05]))
    v0 = np.array([0.3, 0, 0, 1.0, 0.0, 4.0])
    motion = simulate(builder.build(), v0=jnp.asarray(v0), duration=5.0, dt=0.02)
    # I w1' = (I - I3) w2 w3 and I w2' = -(I - I3) w1 w3
    turn = (0.05 - 0.03) / 0.03 * 4.0 * motion.time
    exact = np.stack([np.cos(turn), np.sin(turn), 4.0 + 0 * turn], axis=1)
    true, told = np.abs(motion.v[:, 3:] - exact).max(), motion.step_error.error[:, 9:].max()
    assert true < 3 * told and told < 3 * true and motion.step_error.resolved
    assert motion.step_error.units == ("m",) * 3 + ("rad",) * 3 + ("m/s",) * 3 + ("rad/s",) * 3


@pytest.mark.slow
def test_a_driven_arm_with_steps_that_are_good_and_too_long(two_links):
    """The arm of a study that looked right: at 5 ms MK4 is beyond its stability, and the motion stays finite."""
    target, stiffness, damping = np.array([1.0, -0.5]), 40.0, 6.0
    control = lgsim.controls.PD(jnp.asarray(target), stiffness, damping)
    given = {"duration": 2.0, "control": control}
    bad = simulate(two_links, dt=5e-3, **given)
    assert bad.result == "" and np.isfinite(bad.q).all()
    said = bad.step_error
    assert not said.resolved and np.isnan(said.rate)
    assert str(said).startswith("not converged: ")
    assert "1/s at joint" in said.reason and "take a dt of 0.00" in said.reason and "Rodas4" in said.reason
    # the dt that it names is one
    named = float(said.reason.split("take a dt of ")[1].split(" s")[0])
    assert simulate(two_links, dt=named, **given).step_error.resolved
    good = simulate(two_links, dt=5e-4, **given)
    assert good.step_error.resolved
    feedback = lambda q, v: stiffness * (target - q) - damping * v  # noqa: E731
    holds(good, two_link_reference(two_links, good.time, [0, 0], feedback), tight=5.0)


def test_a_swinging_arm(two_links):
    motion = simulate(two_links, jnp.array([0.8, 0.3]), duration=4.0, dt=5e-3)
    holds(motion, two_link_reference(two_links, motion.time, [0.8, 0.3]), tight=3.0)
    assert motion.step_error.resolved


@pytest.mark.slow
def test_chaos_is_told(two_links, monkeypatch):
    """Digits hold as long as it says, and neighbors part at the rate that it says."""
    monkeypatch.setattr(SIMULATE, "CHUNK", 512)
    q0 = jnp.array([2.5, 1.0])
    motion = simulate(two_links, q0, duration=20.0, dt=2e-3)
    said = motion.step_error
    assert not said.resolved and 1 < said.until < 15 and 1 < said.rate < 6
    assert said.reason == (f"accurate until {said.until:.3g} s of 20 s: Lyapunov exponent {said.rate:.2g} 1/s")
    seen = motion.time <= said.until + 3
    off = np.abs(motion.q[seen] - two_link_reference(two_links, motion.time[seen], q0)).max(axis=1)
    held = motion.time[seen] <= said.until
    told = said.error[seen][:, :2].max(axis=1)
    assert np.all(np.maximum.accumulate(off[held]) <= 3 * np.maximum.accumulate(told[held]) + 1e-12)
    assert off.max() > 0.05  # soon after it nothing is left of the digits
    runs = [simulate(two_links, q0 + x, duration=10.0, dt=1e-3, save_every=10, step_check=False) for x in (0, 1e-9)]
    apart = np.linalg.norm(np.concatenate([runs[1].q - runs[0].q, runs[1].v - runs[0].v], axis=1), axis=1)
    linear = np.logical_and.accumulate(apart < 1.0)
    rate = np.polyfit(runs[0].time[linear], np.log(apart[linear]), 1)[0]
    assert said.rate == pytest.approx(rate, rel=0.4)


@pytest.mark.parametrize("dt", [0.05, 1e-3])
def test_rounding_is_part_of_the_error_in_single_precision(dt):
    model = oscillator(np.float32)
    dt = float(np.float32(dt))
    motion = simulate(model, jnp.array([0.7], jnp.float32), duration=6000 * dt if dt < 0.01 else 6.0, dt=dt)
    time = dt * np.arange(len(motion))
    holds(motion, 0.7 * np.cos(2 * time)[:, None], tight=20.0)
    assert motion.step_error.resolved and motion.q.dtype == np.float32
    if dt < 0.01:
        assert motion.step_error.largest[0] > 1e-6  # a millionth of what its steps alone would leave


@pytest.mark.slow
@pytest.mark.parametrize("more", [0, 1])
def test_forces_of_each_step(two_links, more):
    """Rows that are held and nodes of straight lines, against MK8 at a sixteenth of the step with the same forces."""
    steps, dt, fine = 40, 0.02, 16
    rows = np.random.default_rng(0).normal(size=(steps + more, 2))
    motion = simulate(two_links, duration=steps * dt, dt=dt, torques=jnp.asarray(rows))
    if more:
        finer = np.stack(
            [np.interp(np.arange(steps * fine + 1) / fine, np.arange(steps + 1), x) for x in rows.T], axis=1
        )
    else:
        finer = np.repeat(rows, fine, axis=0)
    exact = simulate(two_links, duration=steps * dt, dt=dt / fine, torques=jnp.asarray(finer), method=lgsim.MK8,
                     save_every=fine, step_check=False)  # fmt: skip
    holds(motion, exact.q, tight=3.0)


def test_states_that_are_saved_rarely(two_links):
    q0 = jnp.array([0.8, 0.3])
    every = simulate(two_links, q0, duration=1.6, dt=0.01)
    some = simulate(two_links, q0, duration=1.6, dt=0.01, save_every=8)
    last = simulate(two_links, q0, duration=1.6, dt=0.01, save_every=160)
    assert [len(x) for x in (every, some, last)] == [161, 21, 2]
    np.testing.assert_allclose(some.q, every.q[::8], rtol=0, atol=1e-13)
    np.testing.assert_array_equal(some.tau, every.tau[::8])
    for motion, step in ((some, 8), (last, 160)):
        assert motion.step_error.error.shape == (len(motion), 4)
        # nodes are other ones
        np.testing.assert_allclose(motion.step_error.error[-1], every.step_error.error[::step][-1], rtol=0.5)
    assert np.all(every.step_error.error[0] == 0)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_few_steps(steps):
    motion = simulate(oscillator(), jnp.array([0.7]), duration=0.2 * steps, dt=0.2)
    holds(motion, 0.7 * np.cos(2 * motion.time)[:, None], tight=3.0)
    assert motion.step_error.resolved


def test_what_does_not_move_has_no_error(two_links):
    still = simulate(oscillator(), duration=1.0, dt=0.01)
    assert still.step_error.resolved and np.all(still.step_error.error < 1e-13)
    hanging = simulate(two_links, duration=1.0, dt=0.01)
    assert hanging.step_error.resolved and np.all(hanging.step_error.error < 1e-13)
    constant = simulate(oscillator(stiffness=0.0), v0=jnp.array([1.0]), duration=1.0, dt=0.01)
    assert constant.step_error.resolved and constant.step_error.largest[0] < 1e-13


def test_it_can_be_left_out_and_is_left_out_where_the_motion_ended(two_links, monkeypatch):
    q0 = jnp.array([0.8, 0.3])
    assert simulate(two_links, q0, duration=0.3, dt=0.01, step_check=False).step_error is None
    diverged = simulate(oscillator(damping=-1e3), jnp.array([0.1]), duration=10.0, dt=0.1)
    said = diverged.step_error  # of the states before
    assert "diverged" in diverged.result and said.value.shape == (len(diverged), 2) and said.until < 10.0

    def stop(done, steps):
        if done >= 16:
            raise KeyboardInterrupt

    assert simulate(two_links, q0, duration=0.5, dt=0.01, progress=stop).step_error is None

    def pressed(*_):
        raise KeyboardInterrupt

    # within the check: the motion is whole
    monkeypatch.setattr(SIMULATE, "check_steps", pressed)
    whole = simulate(two_links, q0, duration=0.5, dt=0.01)
    assert whole.result == "" and len(whole) == 51 and whole.step_error is None


@pytest.mark.parametrize("ending", [".npz", ".parquet"])
def test_files_keep_it(two_links, tmp_path, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    motion = simulate(two_links, jnp.array([0.8, 0.3]), duration=0.5, dt=0.01)
    again = Trajectory.load(motion.save(tmp_path / f"run{ending}"))
    for name in ("error", "size"):
        np.testing.assert_array_equal(getattr(again.step_error, name), getattr(motion.step_error, name))
    assert str(again.step_error) == str(motion.step_error) and again.step_error.names == motion.step_error.names
    part = again[10:20]
    np.testing.assert_array_equal(part.step_error.error, motion.step_error.error[10:20])
    between = motion.resample([0.1, 0.105])
    np.testing.assert_array_equal(between.step_error.error[0], motion.step_error.error[10])
    assert (between.step_error.error[1] >= motion.step_error.error[11]).all()
    # a file without it, as lgsim wrote them before
    plain = simulate(two_links, jnp.array([0.8, 0.3]), duration=0.5, dt=0.01, step_check=False)
    assert Trajectory.load(plain.save(tmp_path / f"plain{ending}")).step_error is None


def test_tables_name_the_errors(two_links, tmp_path):
    motion = simulate(two_links, jnp.array([0.8, 0.3]), duration=0.5, dt=0.01)
    head = motion.save(tmp_path / "run.csv").read_text(encoding="utf-8").splitlines()[0]
    assert head.endswith("step error of q link0 [rad],step error of q link1 [rad],step error of v link0 [rad/s],"
                         "step error of v link1 [rad/s]")  # fmt: skip


def test_a_mistaken_order_is_seen():
    """A force that jumps within steps: the order falls to 1 or less, the estimate follows it."""

    def control(t, q, v, model):
        return jnp.where(jnp.sin(7.3 * t) > 0.3, 2.0, -1.0) * jnp.ones_like(v)

    model = oscillator()
    motion = simulate(model, jnp.array([0.7]), duration=5.0, dt=0.02, control=control)
    exact = simulate(model, jnp.array([0.7]), duration=5.0, dt=2e-5, save_every=1000, control=control, step_check=False)
    holds(motion, exact.q, tight=10.0)
    assert not motion.step_error.order > 2.5


@pytest.mark.slow
@pytest.mark.typed
def test_solutions_on_any_manifold():
    """A turn whose axis moves, a vector with a damper, backwards in time, and inputs of each step."""
    action, R = lgsim.actions.RightTranslation(lgsim.SO3), jnp.eye(3)

    def field(t, R, args):
        return jnp.array([jnp.cos(t), jnp.sin(2 * t), 0.5])

    fine = lgsim.integrate(lgsim.MK8, action, field, R, dt=0.005, steps=1600, save_every=20)
    for method in (lgsim.MK2, lgsim.CF4):
        run = lgsim.integrate(method, action, field, R, dt=0.1, steps=80)
        said = lgsim.solution_error(run, method, action, field, dt=0.1)
        true = np.abs(jax.vmap(action.difference)(run.ys, fine.ys)).max()
        assert said.resolved and abs(said.order - method.order) < 0.2
        assert said.error.max() / 3 < true < 3 * said.error.max()
    back = lgsim.integrate(lgsim.MK4, action, field, R, dt=-0.1, steps=80)
    assert lgsim.solution_error(back, lgsim.MK4, action, field, dt=-0.1).resolved
    flat = lgsim.actions.Translation(1)

    def driven(t, y, given):
        (rate, push) = given
        return -rate * y + push

    pushes = jnp.asarray(np.random.default_rng(1).normal(size=(30, 1)))
    for rate, good in ((2.0, True), (70.0, False)):
        args = jnp.asarray(rate)
        run = lgsim.integrate(lgsim.MK4, flat, driven, jnp.ones(1), dt=0.05, steps=30, args=args, inputs=pushes)
        said = lgsim.solution_error(run, lgsim.MK4, flat, driven, dt=0.05, args=args, inputs=pushes)
        assert said.resolved == good
        y, true = 1.0, 0.0
        for k in range(30):  # exactly, step by step
            u = float(pushes[k, 0]) / rate
            y = u + (y - u) * np.exp(-rate * 0.05)
            true = max(true, abs(y - float(run.ys[k + 1, 0])))
        assert not good or said.error.max() / 3 < true < 3 * said.error.max()
    with pytest.raises(ValueError, match="solution: expected a state after the start"):
        lgsim.solution_error(eqx.tree_at(lambda x: x.ts, run, run.ts[:1]), lgsim.MK4, flat, driven, dt=0.05, args=args)


@pytest.mark.slow
@pytest.mark.parametrize("rtol", [1e-4, pytest.param(1e-8, marks=pytest.mark.exhaustive)])
def test_adaptive_steps(two_links, rtol):
    pytest.importorskip("diffrax")
    q0 = [0.8, 0.3]
    motion = simulate_adaptive(two_links, jnp.array(q0), duration=4.0, rtol=rtol, atol=1e-3 * rtol, dt_out=0.05)
    holds(motion, two_link_reference(two_links, motion.time, q0), tight=20.0)
    assert motion.step_error.resolved and motion.step_error.error.shape == (81, 4)


@pytest.mark.slow
def test_adaptive_steps_with_events_and_few_states(two_links):
    pytest.importorskip("diffrax")
    q0 = jnp.array([0.8, 0.3])
    given = {"duration": 4.0, "rtol": 1e-6, "atol": 1e-9}
    down = lgsim.events.joint_reaches(two_links, "link0", 0.0)
    ended = simulate_adaptive(two_links, q0, events=down, dt_out=0.05, **given)
    exact = simulate_adaptive(two_links, q0, events=down, dt_out=0.05, duration=4.0, rtol=1e-12, atol=1e-14,
                              step_check=False)  # fmt: skip
    assert ended.result.startswith("event reached") and len(ended) == len(exact) and exact.step_error is None
    assert np.abs(ended.q - exact.q).max() <= 3 * ended.step_error.error[:, :2].max()
    last = simulate_adaptive(two_links, q0, save_at=[4.0], **given)
    true = np.abs(last.q[-1] - two_link_reference(two_links, np.array([0.0, 4.0]), [0.8, 0.3])[-1]).max()
    assert last.step_error.error.shape == (1, 4) and true <= 3 * last.step_error.error[:, :2].max()
    assert simulate_adaptive(two_links, q0, save_at=[0.0], **given).step_error is None
    assert simulate_adaptive(two_links, q0, max_steps=5, **given).step_error is None
    chaos = simulate_adaptive(two_links, jnp.array([2.5, 1.0]), duration=25.0, rtol=1e-6, dt_out=0.01)
    assert "Lyapunov exponent" in str(chaos.step_error)


def shake(w, t, q, v, model):
    return 50.0 * jnp.sin(w * t)[None]


@pytest.mark.repeats("200-*", "3000-400.0-0.01")
@pytest.mark.parametrize("rate, dt", [(399.9, 0.01), (400.0, 0.01), (400.9, 0.01), (1200.0, 0.01), (2000.0, 0.002)])
@pytest.mark.parametrize("steps", [200, 3000])
def test_a_vibration_that_steps_sample_alike(rate, dt, steps):
    """A mass of 1 kg under forces whose periods divide the step, or nearly.

    dt, dt/2 and 2 dt see the same force at each stage; other steps do not. The closed form is the oracle.
    """
    model, w = oscillator(stiffness=0.0), 2 * np.pi * rate
    found = simulate(model, jnp.zeros(1), duration=steps * dt, dt=dt, control=Partial(shake, jnp.asarray(w)))
    time = np.asarray(found.time)
    true = np.abs(found.q[:, 0] - 50.0 * (time / w - np.sin(w * time) / w**2)).max()
    told = found.step_error.error[:, 0].max()
    assert true > 1e-3 and true <= 3 * told and not found.step_error.resolved


def test_an_unbalanced_wheel():
    """24 000 rpm with a step of four turns, without any control: the point that it throws about moves on."""
    builder = lgsim.ModelBuilder(gravity=np.zeros(3))
    builder.add_body("frame", "world", joints.Prismatic(), axis=[1, 0, 0], mass=10.0)
    builder.add_body("wheel", "frame", joints.Revolute(), axis=[0, 1, 0], mass=1.0, center=[0.01, 0, 0],
                     inertia=1e-3 * np.eye(3))  # fmt: skip
    model, rate = builder.build(), 2 * np.pi * 400
    found = simulate(model, jnp.zeros(2), jnp.array([0.0, rate]), duration=2.0, dt=0.01)
    # the center of mass moves at the speed of the start, 1/11 of the wheel's (its offset along x has no speed there)
    fine = simulate(model, jnp.zeros(2), jnp.array([0.0, rate]), duration=2.0, dt=1e-4, save_every=100)
    true = np.abs(found.q[:, 0] - fine.q[:, 0]).max()
    assert fine.step_error.resolved and true > 1e-4
    assert true <= 3 * found.step_error.error[:, 0].max() and not found.step_error.resolved
