"""Plots show the motion's own numbers with names and units.

Oracles: the motion's arrays, and the energy and momentum of a point on a rod in closed form.
"""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import lgsim
from lgsim.view import plots
from tests.view import motions


def drawn(ax):
    """Label and points of each line of some axes, limits left out."""
    return {line.get_label(): line.get_xydata() for line in ax.get_lines() if len(line.get_xdata()) > 2}


@pytest.fixture(scope="module")
def pendulum():
    return motions.of_a_pendulum()


@pytest.fixture(scope="module")
def arm():
    return motions.of_the_arm(31, 3.0)


@pytest.fixture(scope="module")
def free():
    return motions.of_a_free_body()


@pytest.mark.slow
@pytest.mark.float32
@pytest.mark.quick
def test_each_joint_has_a_row_of_three(arm, tmp_path):
    figure = plots.joints(arm)
    axes = np.array(figure.axes).reshape(7, 3)
    for row, name in enumerate(arm.model.joint_names):
        assert axes[row, 0].get_title(loc="left") == name
        assert [ax.get_ylabel() for ax in axes[row]] == ["q (rad)", "v (rad/s)", "τ (N m)"]
        for column, values in enumerate((arm.q, arm.v, arm.tau)):
            (points,) = drawn(axes[row, column]).values()
            np.testing.assert_array_equal(points, np.stack([arm.time, values[:, row]], axis=1))
    assert [ax.get_xlabel() for ax in axes[-1]] == ["time (s)"] * 3
    figure.savefig(tmp_path / "joints.png")
    assert (tmp_path / "joints.png").stat().st_size > 10_000


def test_limits_are_drawn_where_the_motion_comes_near(arm):
    def dashed(motion):
        axes = np.array(plots.joints(motion, ["joint2"]).axes)
        return [line.get_ydata()[0] for line in axes[0].get_lines() if line.get_linestyle() == "--"]

    assert dashed(arm) == []
    near = SimpleNamespace(**{**vars(arm), "q": np.linspace(-1.0, 1.7, 31)[:, None] * np.ones((1, 7))})
    assert dashed(near) == [pytest.approx(1.7628)]


def test_free_joint_has_its_parts_apart(free):
    figure = plots.joints(SimpleNamespace(**{**vars(free), "tau": np.ones((len(free.time), 7))}))
    axes = np.array(figure.axes).reshape(3, 3)
    titles = [ax.get_title(loc="left") for ax in axes[:, 0]]
    assert titles == ["base (translation)", "base (rotation)", "slide"]
    labels = [[ax.get_ylabel() for ax in row] for row in axes]
    assert labels == [
        ["q (m)", "v (m/s)", "τ (N)"], ["q (1)", "v (rad/s)", "τ (N m)"], ["q (m)", "v (m/s)", "τ (N)"],
    ]  # fmt: skip
    quaternion = drawn(axes[1, 0])
    assert list(quaternion) == ["w", "x", "y", "z"]
    np.testing.assert_array_equal(quaternion["w"][:, 1], np.asarray(free.q)[:, 3])
    np.testing.assert_array_equal(quaternion["z"][:, 1], np.asarray(free.q)[:, 6])
    np.testing.assert_array_equal(drawn(axes[1, 1])["y"][:, 1], free.v[:, 4])
    np.testing.assert_array_equal(next(iter(drawn(axes[2, 0]).values()))[:, 1], np.asarray(free.q)[:, 7])
    # a legend stands once in a row, but the quaternion has entries of its own
    assert [text.get_text() for text in axes[0, 2].get_legend().get_texts()] == ["x", "y", "z"]
    assert axes[0, 0].get_legend() is None and axes[1, 0].get_legend() is not None


def test_energy_is_that_of_a_point_on_a_rod(pendulum):
    figure = plots.energy(pendulum)
    ax, below = figure.axes
    lines = drawn(ax)
    kinetic = 0.5 * 2.0 * 0.5**2 * 3.0**2 * np.ones(101)
    potential = -2.0 * 9.81 * 0.5 * np.cos(3.0 * pendulum.time)
    for name, values in (("kinetic", kinetic), ("potential", potential), ("total", kinetic + potential)):
        np.testing.assert_allclose(lines[name][:, 1], values, rtol=1e-12, atol=1e-12)
    assert (ax.get_ylabel(), below.get_ylabel(), below.get_xlabel()) == ("energy (J)", "change (J)", "time (s)")
    change, work = drawn(below).values()
    np.testing.assert_allclose(change[:, 1], potential - potential[0], atol=1e-12)
    # the torque holds the speed, so that its work is the change; trapezoids over steps of 0.01 s
    np.testing.assert_allclose(work[:, 1], change[:, 1], atol=2e-3)


def test_momentum_is_that_of_a_point(pendulum):
    figure = plots.momentum(pendulum)
    linear, angular = figure.axes
    angle = 3.0 * pendulum.time
    lines = drawn(linear)
    np.testing.assert_allclose(lines["x"][:, 1], -2.0 * 0.5 * 3.0 * np.cos(angle), atol=1e-12)
    np.testing.assert_allclose(lines["z"][:, 1], 2.0 * 0.5 * 3.0 * np.sin(angle), atol=1e-12)
    # about the world's origin, where the hinge is
    for axis, expected in zip("xyz", (0.0, 2.0 * 0.5**2 * 3.0, 0.0), strict=True):
        np.testing.assert_allclose(drawn(angular)[axis][:, 1], expected, atol=1e-12)
    assert [ax.get_ylabel() for ax in figure.axes] == ["momentum (kg m/s)", "momentum (kg m²/s)"]


def test_step_sizes():
    time = np.array([0.0, 0.1, 0.15, 0.4])
    (ax,) = plots.step_sizes(time).axes
    (stairs,) = ax.patches
    np.testing.assert_allclose(stairs.get_data().values, [0.1, 0.05, 0.25])
    np.testing.assert_array_equal(stairs.get_data().edges, time)
    assert (ax.get_yscale(), ax.get_ylabel(), ax.get_xlabel()) == ("log", "step size (s)", "time (s)")
    assert ax.get_title(loc="left") == "3 steps, 0.05 to 0.25 s"
    (even,) = plots.step_sizes(SimpleNamespace(time=np.linspace(0, 1, 11))).axes
    assert even.get_title(loc="left") == "10 steps, 0.1 s"


def test_phase_plane(arm):
    (ax,) = plots.phase(arm, "joint4").axes
    np.testing.assert_array_equal(ax.get_lines()[0].get_xydata(), np.stack([arm.q[:, 3], arm.v[:, 3]], axis=1))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("q (rad)", "v (rad/s)")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["start", "end"]


def test_joint_without_a_phase_plane_is_refused(free):
    assert plots.phase(free, "slide").axes[0].get_ylabel() == "v (m/s)"
    with pytest.raises(ValueError, match="velocities are the rates of its coordinates, got 'base'"):
        plots.phase(free, "base")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": np.zeros((31, 6))}, r"motion.q: expected shape \(31, 7\), one row for each time, got \(31, 6\)"),
        ({"tau": np.zeros((30, 7))}, r"motion.tau: expected shape \(31, 7\)"),
        ({"time": np.zeros(31)}, "motion.time: expected finite times that increase"),
        ({"time": np.zeros((31, 1))}, r"motion.time: expected an array \(N,\)"),
    ],
)
def test_fault_of_a_motion_is_named(change, message, arm):
    with pytest.raises(ValueError, match=message):
        plots.joints(SimpleNamespace(**{**vars(arm), **change}))


def test_unknown_joint_and_too_few_times_are_named(arm):
    with pytest.raises(ValueError, match=r"expected the name of a joint .*'joint1'.*, got 'knee'"):
        plots.joints(arm, ["knee"])
    with pytest.raises(ValueError, match="time: expected at least two times that increase"):
        plots.step_sizes(np.array([1.0]))


def test_missing_matplotlib_names_its_extra(arm, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"package matplotlib, which is missing: pip install 'lgsim\[plot\]'"):
        plots.joints(arm)


def test_joints_of_two_numbers_and_one_that_mimics():
    builder = lgsim.ModelBuilder()
    builder.add_body("a", "world", lgsim.joints.Cylindrical(), joint_name="both", mass=1.0, inertia=np.eye(3))
    builder.add_body("b", "a", lgsim.joints.Universal(), joint_name="cross", mass=1.0, inertia=np.eye(3))
    builder.add_body("c", "b", lgsim.joints.Revolute(), joint_name="follower", mass=1.0, mimic=("leader", 2.0, 0.0))
    builder.add_body("d", "b", lgsim.joints.Revolute(), joint_name="leader", mass=1.0, inertia=np.eye(3))
    model = builder.build()
    time = np.linspace(0, 1, 5)
    q = np.arange(25.0).reshape(5, 5)
    axes = np.array(plots.joints(motions.of(model, time, q, q, q)).axes).reshape(4, 3)
    titles = [ax.get_title(loc="left") for ax in axes[:, 0]]
    assert titles == ["both (translation)", "both (rotation)", "cross", "leader"]
    # a cylindrical joint has its angle first
    np.testing.assert_array_equal(drawn(axes[0, 0])["q"][:, 1], q[:, 1])
    np.testing.assert_array_equal(drawn(axes[1, 0])["q"][:, 1], q[:, 0])
    assert list(drawn(axes[2, 0])) == ["1", "2"]


def test_no_column_of_zeros_and_no_noise_on_the_axes(arm):
    """Forces that are zero have no column; what moves by rounding alone is a flat line beside what moves."""
    rng = np.random.default_rng(0)
    q = arm.q.copy()
    q[:, 2] = 0.5 + 1e-13 * rng.standard_normal(31)
    axes = np.array(plots.joints(SimpleNamespace(**{**vars(arm), "q": q, "tau": 0 * arm.tau})).axes).reshape(7, 2)
    assert [ax.get_ylabel() for ax in axes[0]] == ["q (rad)", "v (rad/s)"]
    low, high = axes[2, 0].get_ylim()
    assert low < 0.5 < high and high - low > 0.05 * np.max(np.abs(q))
    assert axes[2, 0].get_lines()[0].get_ydata() is not None
    still = SimpleNamespace(**{**vars(arm), "v": 0 * arm.v, "tau": 0 * arm.tau})
    assert len(plots.joints(still).axes) == 7


def test_energy_that_stays_is_a_flat_line():
    """The change of a body at constant speed is rounding, and the axis shows more than that."""
    build = lgsim.ModelBuilder(gravity=[0, 0, 0])
    model = build.add_body("b", "world", lgsim.joints.Prismatic(), mass=2.0, inertia=np.eye(3)).build()
    time = np.linspace(0, 1, 50)
    v = np.full((50, 1), 3.0) + 4e-16 * np.arange(50)[:, None]
    below = plots.energy(motions.of(model, time, 3 * time[:, None], v)).axes[1]
    low, high = below.get_ylim()
    assert low < 0 < high and high - low >= 9.0 * 100 * np.finfo(float).eps


@pytest.mark.parametrize(
    ("tau", "held"),
    [
        (np.repeat(np.arange(6.0) ** 2, 5), True),  # held for five samples each
        (np.append(np.arange(29.0) ** 2, [29.0, 29.0]), True),  # a plan's controls, the last one repeated
        (np.sin(np.linspace(0, 3, 31)), False),
        (np.ones(31), False),
    ],
)
def test_held_forces_are_steps(arm, tau, held):
    time = np.linspace(0, 3, len(tau))
    columns = {name: getattr(arm, name)[: len(tau)] for name in ("q", "v")}
    motion = SimpleNamespace(model=arm.model, time=time, tau=np.outer(tau, np.ones(7)), **columns)
    lines = plots.joints(motion, ["joint1"]).axes[2].get_lines()
    assert lines[0].get_drawstyle() == ("steps-post" if held else "default")
    other = plots.joints(motion, ["joint1"], held=not held).axes[2].get_lines()
    assert other[0].get_drawstyle() == ("default" if held else "steps-post")


def test_many_joints_share_rows():
    """Of 20 joints six share a row, each with its name; a figure has the width that is asked for."""
    build = lgsim.ModelBuilder()
    for i in range(20):
        kind = lgsim.joints.Prismatic() if i == 13 else lgsim.joints.Revolute()
        build.add_body(
            f"b{i}", f"b{i - 1}" if i else "world", kind, joint_name=f"joint{i}", mass=1.0, inertia=np.eye(3)
        )
    model, time = build.build(), np.linspace(0, 1, 5)
    figure = plots.joints(motions.of(model, time, np.outer(time, 1.0 + np.arange(20))), width=10.0)
    axes = figure.axes
    assert figure.get_size_inches()[0] == 10.0
    named = [list(drawn(ax)) for ax in axes if ax.get_ylabel().startswith("q")]
    assert named[0] == [f"joint{i}" for i in range(6)] and named[1][-1] == "joint11"
    assert len(named) == 5 and [ax.get_title(loc="left") for ax in axes if list(drawn(ax)) == ["q"]] == [
        "joint12",
        "joint13",
    ]
    assert [ax.get_ylabel() for ax in axes if ax.get_ylabel().startswith("q")][3] == "q (m)"
    np.testing.assert_array_equal(drawn(axes[0])["joint4"][:, 1], 5 * time)
