"""Reference values that others published, and what lgsim finds for them.

    python -m tests.others_numbers       draws the tables of docs/others_numbers.md anew

Every value is a string with the digits that its source gives. `within` is how far lgsim may be from it: half a unit of
the last digit for values that a source rounded, a relative error where the source or the run's steps allow less.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import lgsim
from benchmarks.systems.three_body import three_body
from lgsim.multibody import joints

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "others_numbers.md"
BEGIN, END = "<!-- tables: python -m tests.others_numbers -->", "<!-- end of the tables -->"
DOWN = (0.0, -9.81, 0.0)
AXES = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}


@dataclass(frozen=True)
class Group:
    """Values of one source.

    Attributes:
        title: What is computed.
        source: Where the values stand.
        values: (what, digits as printed) of each.
        compute: What lgsim finds, in the same order.
        within: The largest relative difference that is allowed; None for agreement in every digit that is printed.
        slow: Whether it takes more than some seconds.
    """

    title: str
    source: str
    values: tuple[tuple[str, str], ...]
    compute: Callable[[], list[float]]
    within: float | None
    slow: bool = False

    @property
    def name(self) -> str:
        """The title's first words, as an identifier."""
        return "_".join(self.title.split()[:3]).lower().replace(",", "").replace("'", "")

    def holds(self, digits: str, found: float) -> bool:
        """Whether a number agrees with a printed one."""
        if self.within is None:
            return rounded(found, digits) == Decimal(digits)
        return abs(found - float(digits)) <= self.within * abs(float(digits))

    def shown(self, digits: str, found: float) -> str:
        """A number with the digits that were compared: those of the source, or those that `within` decides."""
        if self.within is None:
            return format(rounded(found, digits), "E" if "E" in digits else "f")
        return f"{found:.{max(0, -1 - int(np.floor(np.log10(self.within))))}e}"


def rounded(value: float, digits: str) -> Decimal:
    """A number rounded to the last digit of a printed one."""
    return Decimal(value).quantize(Decimal(digits))


def tree(*bodies) -> lgsim.Model:
    """A machine of hinges from (name, parent, axis, place of the joint, mass, center, central inertia's diagonal)."""
    builder = lgsim.ModelBuilder(gravity=DOWN)
    for name, parent, axis, place, mass, center, inertia in bodies:
        builder.add_body(name, parent, joints.Revolute(), axis=AXES[axis], placement=moved(place), mass=mass,
                         center=center, inertia=np.diag(inertia))  # fmt: skip
    return builder.build()


def moved(place) -> np.ndarray:
    """The pose of axes that are moved and not turned."""
    pose = np.eye(4)
    pose[: len(place), 3] = place
    return pose


def falls(model, q=None) -> list[float]:
    """The accelerations of a machine that is let go."""
    zero = jnp.zeros(model.nv)
    return np.asarray(lgsim.forward_dynamics(model, zero if q is None else jnp.array(q), zero, zero)).tolist()


ONE = (1.0, 1.0, 1.0)
X, Y, Z, ZERO = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)


def rbdl() -> list[float]:
    """The machines of RBDL's tests of dynamics."""
    a, b, c = ("a", "world", "z", ZERO, 1.0, X, ONE), ("b", "a", "z", X, 1.0, X, ONE), ("c", "b", "z", X, 1.0, X, ONE)
    heavy = ("a", "world", "z", ZERO, 1.0, (1.5, 1.0, 1.0), (1.0, 2.0, 3.0))
    limb = ("b1", "a", "y", X, 1.0, Y, ONE)
    other = [("c1", "b1", "x", Y, 1.0, Z, ONE), ("b2", "a", "y", (-0.5, 0.0, 0.0), 1.0, Y, ONE),
             ("c2", "b2", "x", (0.0, -0.5, 0.0), 1.0, Z, ONE)]  # fmt: skip
    turned = tree(
        ("a", "world", "z", ZERO, 0.0, ZERO, ZERO),
        ("b", "a", "y", ZERO, 0.0, ZERO, ZERO),
        ("c", "b", "x", ZERO, 1.0, (0, 0.5, 0), ONE),
    )
    return [
        *falls(tree(a)), *falls(tree(heavy)), *falls(tree(a, b)), *falls(tree(a, b, c)), falls(tree(a, limb))[0],
        *falls(tree(a, limb, *other)), falls(turned, (1.0, 0.0, 0.0))[0],
    ]  # fmt: skip


# Andrews' squeezing mechanism: seven bodies in a plane, three loops; numbers of the test set for IVP solvers
MASSES = dict(K1=0.04325, K2=0.00365, K3=0.02373, K4=0.00706, K5=0.07050, K6=0.00706, K7=0.05498)
TURNS = dict(K1=2.194e-6, K2=4.410e-7, K3=5.255e-6, K4=5.667e-7, K5=1.169e-5, K6=5.667e-7, K7=1.912e-5)
FIXED, HELD, SPRING = (-0.06934, -0.00227), (-0.03635, 0.03273), (0.014, 0.072)  # A, B and C
START = (
    -0.0617138900142764496358948458001, 0.0, 0.455279819163070380255912382449, 0.487364979543842550225598953530,
    0.222668390165885884674473185609, 1.23054744454982119249735015568, -0.222668390165885884674473185609,
)  # fmt: skip
ORDER = (0, 1, 2, 4, 3, 6, 5)  # the test set lists Phi before delta and Omega before epsilon


@cache
def squeezer() -> lgsim.Model:
    """Angles as in the test set: beta, Theta, gamma, delta, Phi, epsilon, Omega."""
    builder = lgsim.ModelBuilder(gravity=ZERO)
    for name, parent, place, center in (
        ("K1", "world", (0.0, 0.0), (0.00092, 0.0)), ("K2", "K1", (0.007, 0.0), (-0.0115, 0.0)),
        ("K3", "world", HELD, (0.01043, -0.01874)), ("K5", "world", FIXED, (0.02308, 0.00916)),
        ("K4", "K5", (0.04, 0.0), (0.0, -0.02 + 0.01421)), ("K7", "world", FIXED, (0.00449, -0.01228)),
        ("K6", "K7", (0.0, -0.04), (0.02 - 0.01421, 0.0)),
    ):  # fmt: skip
        builder.add_body(name, parent, joints.Revolute(), axis=(0, 0, 1), placement=moved(place), mass=MASSES[name],
                         center=(*center, 0.0), inertia=TURNS[name] * np.eye(3))  # fmt: skip
    for name, body, place in (("P", "K2", (-0.028, 0)), ("P3", "K3", (0, -0.035)), ("P4", "K4", (0, -0.02)),
                              ("P6", "K6", (0.02, 0))):  # fmt: skip
        builder.add_frame(name, body, moved(place))
    for name in ("P3", "P4", "P6"):
        builder.add_loop(f"loop {name}", "P", name, joints.Revolute())
    return builder.build()


def squeeze(t, q, v, model):
    """0.033 N m on the crank, and the spring of 4530 N/m from C to a point of K3."""
    cos, sin, force = jnp.cos(q[2]), jnp.sin(q[2]), jnp.zeros(7).at[0].set(0.033)
    arm = jnp.array([0.02 * cos + 0.018 * sin, 0.02 * sin - 0.018 * cos])
    stretch = jnp.array(HELD) + arm - jnp.array(SPRING)
    length = jnp.linalg.norm(stretch)
    pull = -4530 * (length - 0.07785) / length * stretch
    return force.at[2].set(arm[0] * pull[1] - arm[1] * pull[0])


def squeezer_starts() -> list[float]:
    model, q, v = squeezer(), jnp.array(START), jnp.zeros(7)
    return np.asarray(lgsim.forward_dynamics(model, q, v, squeeze(0.0, q, v, model)))[:2].tolist()


def squeezer_ends() -> list[float]:
    model, steps = squeezer(), 12000
    run = jax.jit(lambda q, v: lgsim.simulation.rollout(
        model, q, v, dt=0.03 / steps, steps=steps, control=squeeze, save_every=steps))  # fmt: skip
    end = run(jnp.array(START), jnp.zeros(7))
    return [*np.asarray(end.q[-1])[list(ORDER)], *np.asarray(end.v[-1])[list(ORDER)]]


PARK_CHUNG = json.loads((ROOT / "tests" / "data" / "park_chung.json").read_text(encoding="utf-8"))
DRIFTS = tuple((table, method) for method in ("CG4", "CF4", "MK4") for table in PARK_CHUNG["tables"])


def park_chung() -> list[float]:
    """Drifts after one step of a second, and after ten of a tenth: the same program."""
    problem, found = three_body(), {}
    for method in ("CG4", "CF4", "MK4"):
        for column, (step, steps) in enumerate(((1.0, 1), (0.1, 10))):
            ends = lgsim.integrate(getattr(lgsim, method), problem.action, problem.field, problem.initial, dt=step,
                                   steps=10, args=problem.args).ys  # fmt: skip
            end = jax.tree.map(lambda leaf, k=steps: leaf[k], ends)
            for name in PARK_CHUNG["tables"]:
                value = problem.invariants[name]
                drift = value(end, problem.args) - value(problem.initial, problem.args)
                found[name, method, column] = float(np.linalg.norm(np.atleast_1d(drift)))
    return [found[name, method, column] for column in (0, 1) for name, method in DRIFTS]


def pendulum() -> list[float]:
    """K(1/2) from the time in which a pendulum falls from the horizontal to its lowest point, in units of sqrt(L/g)."""
    builder = lgsim.ModelBuilder(gravity=DOWN)
    builder.add_body("bar", "world", joints.Revolute(), axis=(0, 0, 1), mass=1.0, center=(0.0, -1.0, 0.0),
                     inertia=np.zeros((3, 3)))  # fmt: skip
    model, dt = builder.build(), 0.25e-3
    motion = lgsim.simulation.rollout(model, jnp.array([-jnp.pi / 2]), jnp.zeros(1), dt=dt, steps=2400, save_every=1)
    q, v = np.asarray(motion.q)[:, 0], np.asarray(motion.v)[:, 0]
    k = int(np.argmin(np.abs(q)))
    # there the acceleration is -9.81 q, so that the time to q = 0 is off by the third power of the rest
    return [(k * dt - q[k] / v[k]) * float(np.sqrt(9.81))]


def _park_chung_values():
    words = {
        "kinetic_energy": "kinetic energy",
        "linear_momentum": "linear momentum",
        "angular_momentum": "angular momentum",
    }
    return tuple(
        (f"drift of {words[name]}, {method}, h = {step} s", PARK_CHUNG["tables"][name][method][column])
        for column, step in enumerate(("1", "0.1"))
        for name, method in DRIFTS
    )


GROUPS = (
    Group(
        "Joint accelerations of models released from rest, in rad/s^2",
        "RBDL (M. Felis, Autonomous Robots 41, 2017), `tests/DynamicsTests.cc`; the last value was made there with "
        "R. Featherstone's spatial_v1",
        (
            ("one body, center (1, 0, 0)", "-4.905"), ("one body, center (3/2, 1, 1)", "-2.3544"),
            ("chain of two, joint 1", "-5.88600000000000"), ("chain of two, joint 2", "3.92400000000000"),
            ("chain of three, joint 1", "-6.03692307692308"), ("chain of three, joint 2", "3.77307692307692"),
            ("chain of three, joint 3", "1.50923076923077"), ("chain of two in space, joint 1", "-3.92400000000000"),
            ("tree of five, joint 1", "-1.60319066147860"), ("tree of five, joint 2", "-0.534396887159533"),
            ("tree of five, joint 3", "4.10340466926070"), ("tree of five, joint 4", "0.267198443579767"),
            ("tree of five, joint 5", "5.30579766536965"),
            ("three revolute joints at a point, joint 1", "3.301932144386186"),
        ),
        rbdl, 1e-13,
    ),
    Group(
        "Andrews' squeezing mechanism: initial accelerations of the crank and K2 in rad/s^2",
        "Test Set for IVP Solvers, problem Andrews' squeezing mechanism; E. Hairer, G. Wanner, Solving Ordinary "
        "Differential Equations II, section VII.7",
        (("beta''", "14222.4439199541138705911625887"), ("Theta''", "-10666.8329399655854029433719415")),
        squeezer_starts, 1e-10,
    ),
    Group(
        "Andrews' squeezing mechanism after 0.03 s: angles in rad and rates in rad/s",
        "Test Set for IVP Solvers, reference solution of Andrews' squeezing mechanism",
        (
            ("beta", "15.81077119629904"), ("Theta", "-15.75637105984298"), ("gamma", "0.04082224013073101"),
            ("Phi", "-0.5347301163226948"), ("delta", "0.5244099658805304"), ("Omega", "0.5347301163226948"),
            ("epsilon", "1.048080741042263"), ("beta'", "1139.920302151208"), ("Theta'", "-1424.379294994111"),
            ("gamma'", "11.03291221937134"), ("Phi'", "19.29337464421385"), ("delta'", "0.5735699284790808"),
            ("Omega'", "-19.29337464421385"), ("epsilon'", "0.3231791658026955"),
        ),
        squeezer_ends, 1e-7, slow=True,
    ),
    Group(
        "Three bodies in free motion: errors of the methods after 1 s, in J, kg m/s and kg m^2/s",
        "J. Park, W.-K. Chung, Geometric integration on Euclidean group with application to articulated multibody "
        "systems, IEEE Transactions on Robotics 21(5), 2005, Tables VI, VII, VIII",
        _park_chung_values(), park_chung, None,
    ),
    Group(
        "Pendulum falling from the horizontal to its lowest point: time in units of sqrt(L/g)",
        "IFToMM benchmark A01 (start and length); the time is the complete elliptic integral K(m = 1/2), with the "
        "digits of GNU Octave's tests of `ellipke`, made there with Mathematica 3.0",
        (("K(1/2)", "1.8540746773013719184"),),
        pendulum, 1e-9,
    ),
)  # fmt: skip


def table(group: Group) -> str:
    """A group's section of the page."""
    bound = "in every digit that is given" if group.within is None else f"to {group.within:.0e} of the value"
    rows = [
        f"| {what} | {digits} | {group.shown(digits, found)} | {difference(digits, found)} |"
        for (what, digits), found in zip(group.values, group.compute(), strict=True)
    ]
    head = f"## {group.title}\n\nSource: {group.source}. They must agree {bound}.\n\n"
    return head + "| | published | lgsim | relative difference |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


def difference(digits: str, found: float) -> str:
    """The power of ten that a relative difference is below, 1e-14 at least: round-off is another on another machine."""
    part = abs(float(found) / float(digits) - 1)
    return f"< 1e{int(np.ceil(np.log10(max(part, 1e-15) * 1.000001)))}" if part >= 1e-14 else "< 1e-14"


def sections() -> dict[str, str]:
    """The tables that stand on the page, by their titles."""
    text = PAGE.read_text(encoding="utf-8")
    between = text[text.index(BEGIN) + len(BEGIN) : text.index(END)]
    parts = [part.strip() + "\n" for part in between.split("\n## ")[1:]]
    return {part.splitlines()[0]: "## " + part for part in parts}


def draw() -> None:
    """Write the tables into the page."""
    text = PAGE.read_text(encoding="utf-8")
    made = "\n".join(table(group) for group in GROUPS)
    PAGE.write_text(
        text[: text.index(BEGIN)] + BEGIN + "\n\n" + made + "\n" + text[text.index(END) :], encoding="utf-8"
    )


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    draw()
