"""Every kind of loop keeps its contract, and descriptions that no machine has are refused by name.

A kind added to ``loops.KINDS`` must be in ``SAMPLES``, and then is tested.
"""

import inspect
import re
from pathlib import Path

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from lgsim._compile.spatial import Motion, Vec, unpack_transform
from lgsim.lie import se3
from lgsim.multibody import ModelBuilder, ModelError, joints, loops
from lgsim.multibody.loops import KINDS, Coupling, JointTie, Loop, LoopKind, Rod
from lgsim.multibody.loops.closing_joints import CLOSING
from lgsim.multibody.loops.loop import FrameLoop, JointLoop, Relative
from tests.multibody.loop_machines import every_kind, link, machine, shifted

LENGTH = 0.7


def lets_through(kind, rng):
    """A pose (4, 4) of b in a in which a tie of that kind is closed, by its definition."""
    if isinstance(kind, Rod):
        direction = rng.normal(size=3)
        twist = rng.normal(size=6)
        T = np.array(se3.exp(jnp.asarray(twist)))
        T[:3, 3] = LENGTH * direction / np.linalg.norm(direction)
        return T
    assert isinstance(kind, JointTie)
    T = np.eye(4)
    for row in kind.joint.rows:
        twist = np.zeros(6)
        twist[3 * row.turns + row.axis] = rng.normal() * 2
        T = T @ np.asarray(se3.exp(jnp.asarray(twist)))
    return T


SAMPLES = {kind.__name__: (JointTie(kind()), []) for kind in CLOSING} | {
    "rod": (Rod(), [LENGTH]),
    "ratio": (Coupling(1, True), [0.2, -1.5]),
    "constant": (Coupling(0, False), [0.4]),
    "quartic": (Coupling(4, True), [0.2, -1.5, 0.3, 0.7, -0.2]),
}
"""(a kind, its numbers)."""
FRAMES = {name: sample for name, sample in SAMPLES.items() if isinstance(sample[0], FrameLoop)}
COUPLINGS = {name: sample for name, sample in SAMPLES.items() if isinstance(sample[0], JointLoop)}
WEIGHTS = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60
"""Of a first derivative by differences of sixth order."""
SECOND = np.array([2, -27, 270, -490, 270, -27, 2]) / 180
STEP = 2e-3


def each(samples):
    return pytest.mark.parametrize(("kind", "numbers"), samples.values(), ids=samples.keys())


def arrays(numbers):
    return [jnp.asarray(x) for x in numbers]


def residual(kind, numbers, T):
    return np.array(kind.residual(unpack_transform(jnp.asarray(T)), arrays(numbers)))


def matrix_of_rows(kind, numbers, T):
    """The rows (rows, 6) of the wrenches, (f, n) in b's axes."""
    found = kind.wrenches(unpack_transform(jnp.asarray(T)), arrays(numbers))
    return np.array([[*w.f, *w.n] for w in found])


def motion(u):
    return Motion(Vec(*jnp.asarray(u[:3])), Vec(*jnp.asarray(u[3:])))


def test_every_kind_is_tested():
    assert {type(kind) for kind, _ in SAMPLES.values()} == set(KINDS)
    found = {x for _, x in inspect.getmembers(loops, inspect.isclass) if issubclass(x, LoopKind)}
    assert set(KINDS) == {kind for kind in found if not inspect.isabstract(kind)}
    assert {type(kind.joint) for kind, _ in SAMPLES.values() if isinstance(kind, JointTie)} == set(CLOSING)


def test_a_kind_is_one_file_of_at_most_60_lines():
    files = [Path(inspect.getfile(kind)) for kind in KINDS]
    assert len(set(files)) == len(KINDS) and {file.parent for file in files} == {Path(loops.__file__).parent}
    for file in files:
        lines = len(file.read_text().splitlines())
        assert lines <= 60, f"{file.name} has {lines} lines; what kinds share has files of its own"


ROWS = {
    "Spherical": 3, "Revolute": 5, "Fixed": 6, "Prismatic": 5, "Cylindrical": 4, "Planar": 3, "Translational": 3,
    "rod": 1, "ratio": 1, "constant": 1, "quartic": 1,
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_rows_and_their_words(name):
    kind, numbers = SAMPLES[name]
    assert kind.rows == len(kind.row_names) == len(kind.row_turns) == ROWS[name]
    assert len(set(kind.row_names)) == kind.rows
    assert len(kind.number_names) == len(numbers) and len(set(kind.number_names)) == len(numbers)
    assert kind.on_frames == (name in FRAMES)
    assert hash(kind) == hash(SAMPLES[name][0]) and kind == eval(repr(kind), vars(joints) | vars(loops))


@each(FRAMES)
def test_residuals_are_zero_where_a_loop_is_closed_and_nowhere_near(kind, numbers):
    rng = np.random.default_rng(1)
    for _ in range(5):
        T = lets_through(kind, rng)
        pose = unpack_transform(jnp.asarray(T))
        np.testing.assert_allclose(residual(kind, numbers, T), 0, atol=1e-14)
        np.testing.assert_allclose(kind.gap(pose, arrays(numbers)), 0, atol=1e-14)
        J = matrix_of_rows(kind, numbers, T)
        assert np.linalg.matrix_rank(J) == kind.rows
        # along a direction that is forbidden it opens by what the rows say
        away = 1e-4 * np.linalg.pinv(J)[:, 0]
        opened = T @ np.asarray(se3.exp(jnp.asarray(away)))
        assert abs(residual(kind, numbers, opened)[0] - 1e-4) < 1e-7
        far, turned = kind.gap(unpack_transform(jnp.asarray(opened)), arrays(numbers))
        assert float(far + turned) > 1e-9


@pytest.mark.repeats
@each(FRAMES)
def test_rows_are_the_derivative_of_the_residual(kind, numbers):
    rng = np.random.default_rng(2)
    T = lets_through(kind, rng)
    J = matrix_of_rows(kind, numbers, T)
    for u in np.eye(6):
        values = [residual(kind, numbers, T @ np.asarray(se3.exp(jnp.asarray(i * STEP * u)))) for i in range(-3, 4)]
        np.testing.assert_allclose(WEIGHTS @ values / STEP, J @ u, atol=1e-11)


@each(FRAMES)
def test_rates_are_the_second_derivative_of_the_residual(kind, numbers):
    """Along a motion whose velocity (in b's axes, number by number) has a derivative, from a closed state."""
    rng = np.random.default_rng(3)
    T = lets_through(kind, rng)
    J = matrix_of_rows(kind, numbers, T)
    V, A = rng.normal(size=(2, 6))
    V = V - np.linalg.pinv(J) @ (J @ V)
    # exp(V t + A t^2/2) has the velocity V + A t + O(t^2)
    poses = [T @ np.asarray(se3.exp(jnp.asarray(V * t + A * t * t / 2))) for t in STEP * np.arange(-3, 4)]
    expected = SECOND @ [residual(kind, numbers, pose) for pose in poses] / STEP**2
    at = Relative(unpack_transform(jnp.asarray(T)), motion(V), motion(A))
    np.testing.assert_allclose(np.array(kind.rates(at, arrays(numbers))), expected, atol=1e-8)
    drift = kind.drift(at, arrays(numbers))
    assert kind.steady == (drift is None)


@pytest.mark.parametrize("kind", [joints.Revolute(), joints.Fixed(), joints.Prismatic(), joints.Planar()])
def test_half_turns_are_open(kind):
    """All residuals vanish, but the frames are turned by half a turn about an axis that the joint does not have."""
    about_x = jnp.asarray(np.diag([1.0, -1.0, -1.0, 1.0]))
    tie = JointTie(kind)
    np.testing.assert_allclose(residual(tie, [], about_x), 0, atol=1e-15)
    assert float(tie.gap(unpack_transform(about_x), [])[1]) >= 4


def test_full_turns_of_a_hinge_are_closed():
    tie = JointTie(joints.Revolute())
    for angle in np.linspace(-7, 7, 29):
        T = se3.exp(jnp.array([0, 0, 0, 0, 0, angle]))
        np.testing.assert_allclose(residual(tie, [], T), 0, atol=1e-15)
        np.testing.assert_allclose(tie.gap(unpack_transform(T), []), 0, atol=1e-15)
    ball = JointTie(joints.Spherical())
    far, turned = ball.gap(unpack_transform(se3.exp(jnp.array([0, 0, 0, 3.0, 0, 0]))), [])
    assert float(far) == float(turned) == 0


@each(COUPLINGS)
def test_values_of_couplings_are_a_polynomial_and_its_derivatives(kind, numbers):
    with mpmath.workdps(30):
        for x in (-1.3, 0.0, 0.4):
            found = kind.values(jnp.asarray(x), arrays(numbers))
            for order, value in enumerate(found):
                exact = mpmath.diff(lambda t: sum(c * t**i for i, c in enumerate(numbers)), mpmath.mpf(x), order)
                assert abs(float(value) - float(exact)) < 1e-13


def test_the_model_tells_its_loops():
    model = every_kind()
    assert model.loop_names == ("hinge", "rod", "gear")
    assert model.loop_slices == {"hinge": slice(0, 0), "rod": slice(0, 1), "gear": slice(1, 4)}
    tree = model.topology
    assert tree.loop_rows == 7 and tree.loop_row_starts == (0, 5, 6, 7)
    assert tree.loops[0] == Loop("hinge", "post", "tip", JointTie(joints.Revolute()))
    assert tree.loops[2].kind == Coupling(2, turns=False)
    np.testing.assert_array_equal(model.loops, [0.7, 0.1, 0.2, 0.3])
    assert [tree.loop_number(i) for i in (0, 3)] == ["length of loop 'rod'", "c2 of loop 'gear'"]
    assert [tree.loop_joints(loop) for loop in tree.loops] == [(0, 1, 2), (0, 1, 3), (0, 3)]
    assert machine("four_bar").loops is None and machine("four_bar").loop_names == ("loop0",)
    assert machine("delta").topology.loop_joints(machine("delta").topology.loops[0]) == (0, 1, 2, 3)


def test_loops_are_described_in_any_order():
    builder = ModelBuilder().add_coupling("gear", "a", "b", [0.0, 2.0]).add_rod("rod", "world", "tip", 1.0)
    builder.add_frame("tip", "b").add_body("b", "world", joints.Prismatic()).add_body("a", "world", joints.Revolute())
    model = builder.build()
    assert model.topology.loops == (
        Loop("gear", "a", "b", Coupling(1, turns=False)),
        Loop("rod", "world", "tip", Rod()),
    )
    np.testing.assert_array_equal(model.loops, [0.0, 2.0, 1.0])


def two():
    builder = ModelBuilder().add_body("arm", "world", joints.Revolute(), **link())
    builder.add_body("hand", "arm", joints.Revolute(), placement=shifted(0.5), **link())
    return builder.add_frame("tip", "hand", shifted(0.5)).add_frame("post", "world", shifted(0.6))


def pinned(*ends, joint=None, name="pin"):
    return lambda b: b.add_loop(name, *ends, joints.Spherical() if joint is None else joint)


ERRORS = {
    "a frame that is missing": (
        pinned("world", "tipp"), "loop 'pin': expected the name of a frame, got 'tipp'; did you mean 'tip'?"
    ),
    "a joint is no frame": (
        lambda b: b.add_body("door", "world", joints.Revolute(), joint_name="pivot").add_loop(
            "pin", "pivot", "tip", joints.Spherical()
        ),
        "loop 'pin': expected the name of a frame, got 'pivot'",
    ),
    "both ends on one body": (
        pinned("hand", "tip"),
        "loop 'pin': both ends, 'hand' and 'tip', are on 'hand'; expected frames of two bodies",
    ),
    "both ends on the world": (
        pinned("world", "post"),
        "loop 'pin': both ends, 'world' and 'post', are on 'world'; expected frames of two bodies",
    ),
    "both ends on one body through a fixed joint": (
        lambda b: b.add_body("pad", "hand", joints.Fixed(), **link()).add_rod("rod", "pad", "tip", 1.0),
        "loop 'rod': both ends, 'pad' and 'tip', are on 'hand'; expected frames of two bodies",
    ),
    "a universal joint": (
        pinned("post", "tip", joint=joints.Universal()),
        "loop 'pin': joint: expected one of Spherical, Revolute, Fixed, Prismatic, Cylindrical, Planar, Translational,"
        " got Universal(): the motions of a Universal joint are not a subgroup",
    ),
    "a free joint": (pinned("post", "tip", joint=joints.Free()), "got Free(): a Free joint has no constraints"),
    "a screw": (
        pinned("post", "tip", joint=joints.Helical()), "got Helical(): a Helical is not among them"
    ),
    "no joint": (
        pinned("post", "tip", joint="ball"),
        "loop 'pin': joint: expected a joint such as lgsim.joints.Revolute(), got 'ball'",
    ),
    "a name twice": (
        lambda b: b.add_rod("pin", "post", "tip", 1.0).add_loop("pin", "post", "tip", joints.Spherical()),
        "loop 'pin': the name is taken by another loop",
    ),
    "a rod of length zero": (
        lambda b: b.add_rod("rod", "post", "tip", 0.0),
        "loop 'rod': length: expected a positive number, m, got 0",
    ),
    "a rod of negative length": (
        lambda b: b.add_rod("rod", "post", "tip", -0.5),
        "loop 'rod': length: expected a positive number, m, got -0.5",
    ),
    "a rod of no length": (
        lambda b: b.add_rod("rod", "post", "tip", np.nan), "loop 'rod': length: expected finite numbers, got nan"
    ),
    "a rod of many lengths": (
        lambda b: b.add_rod("rod", "post", "tip", [1.0, 2.0]), "loop 'rod': length: expected shape (), got (2,)"
    ),
    "NaN in a frame": (
        lambda b: b.add_frame("bad", "hand", np.full((4, 4), np.nan)),
        "frame 'bad': placement: expected finite numbers, got [[nan",
    ),
    "no coefficients": (
        lambda b: b.add_coupling("gear", "arm", "hand", []),
        "loop 'gear': coefficients: expected a nonempty list of numbers, got shape (0,)",
    ),
    "a coefficient that is none": (
        lambda b: b.add_coupling("gear", "arm", "hand", [0.0, np.inf]),
        "c1 of loop 'gear': expected a finite number, got inf",
    ),
    "a joint that is missing": (
        lambda b: b.add_coupling("gear", "arm", "hnd", [0.0, 1.0]),
        "loop 'gear': expected the name of a joint, got 'hnd'; did you mean 'hand'?",
    ),
    "a coupled joint that mimics": (
        lambda b: b.add_body("door", "world", joints.Revolute(), mimic=("arm", 2.0, 0.0), **link()).add_coupling(
            "gear", "hand", "door", [0.0, 1.0]
        ),
        "loop 'gear': expected joints with one independent coordinate, 'door' mimics another one",
    ),
    "a coupled joint of three coordinates": (
        lambda b: b.add_body("door", "world", joints.Planar(), **link()).add_coupling("gear", "hand", "door", [1.0]),
        "loop 'gear': expected joints with one independent coordinate, 'door' has 3 coordinates",
    ),
    "a joint coupled with itself": (
        lambda b: b.add_coupling("gear", "arm", "arm", [0.0, 1.0]), "loop 'gear': expected two joints, got 'arm' twice"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    change, message = ERRORS[case]
    with pytest.raises(ModelError, match=re.escape(message)):
        change(two()).build()
