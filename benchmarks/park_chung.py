"""The three-body study of Park and Chung 2005: Tables V to X, Figs. 4 to 8, and the time of a step.

    python benchmarks/park_chung.py --quick      h = 1 and 0.1 s, the long run, the cost
    python benchmarks/park_chung.py              also h = 0.01 and 0.001 s, Figs. 4 to 6, a record in benchmarks/results

J. Park, W.-K. Chung, Geometric integration on Euclidean group with application to articulated multibody systems,
IEEE Transactions on Robotics 21(5), 2005. The printed figures are in tests/data/park_chung.json.
"""

import harness  # first: it pins the core before JAX starts its threads

import json
import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from systems.three_body import three_body

import lgsim
from lgsim._compile.programs import read
from lgsim.lie.action import Action

jax.config.update("jax_enable_x64", True)

PAPER = json.loads((Path(__file__).parents[1] / "tests" / "data" / "park_chung.json").read_text(encoding="utf-8"))
PLOT = harness.RESULTS / "park_chung_long_run.png"
DRIFTS = harness.RESULTS / "park_chung_drifts.png"
METHODS = ("CG2", "CG3", "CG4", "CF2", "CF3", "CF4", "MK2", "MK3", "MK4")
EPS = float(np.finfo(np.float64).eps)

TABLES = {
    "kinetic_energy": "Table VI. Drift of the kinetic energy at t = 1 s, J",
    "linear_momentum": "Table VII. Drift of the linear momentum at t = 1 s, kg m/s",
    "angular_momentum": "Table VIII. Drift of the angular momentum at t = 1 s, kg m^2/s",
}
SHORT = three_body()
LONG = three_body(twist=(0.1, 0.1, 0.1, 0.3, 0.3, 0.3))
STEP, STEPS = 0.05, 4000  # of the long run


def compile_methods() -> tuple[dict[str, Callable], dict[str, float]]:
    """One program `states(initial, args, dt)` of 4000 steps for each method, and the seconds of its compilation.

    The same program computes the long run and, with other arguments and its first states, all entries of the tables.
    """
    programs, seconds = {}, {}
    for name in METHODS:
        programs[name], seconds[name] = harness.compiled(
            partial(states_of, getattr(lgsim, name)), LONG.initial, LONG.args, STEP
        )
    return programs, seconds


def states_of(method: lgsim.Method, initial, args, dt):
    """The states of 4000 steps."""
    settings = {"dt": dt, "steps": STEPS, "args": args, "checkpoint": None}
    return lgsim.integrate(method, LONG.action, LONG.field, initial, **settings).ys


@cache
def along(invariant: str) -> Callable:
    """The program that computes an invariant along states."""
    return jax.jit(jax.vmap(lambda y: LONG.invariants[invariant](y, LONG.args)))


def change(states, invariant: str) -> np.ndarray:
    """An invariant along the states, minus its first value."""
    values = np.asarray(along(invariant)(states))
    return values - values[0]


def drift(states, invariant: str) -> np.ndarray:
    """Absolute value or Euclidean norm of the change."""
    difference = change(states, invariant)
    return np.linalg.norm(difference.reshape(len(difference), -1), axis=1)


def printed(value: float) -> str:
    """Five digits, as the paper prints them."""
    mantissa, exponent = f"{value:.4e}".split("e")
    return f"{mantissa}E{int(exponent)}"


def tables(report: harness.Report, programs: dict[str, Callable]) -> None:
    """Tables VI to VIII, compared with the digits of the paper.

    An entry must equal all five digits where the last of them is larger than the round-off of the run, and must agree
    within that round-off elsewhere: 8 sqrt(steps) eps times the size of the invariant.
    """
    columns = [k for k, h in enumerate(PAPER["steps"]) if h >= 0.1 or not report.quick]
    counts = [round(1 / PAPER["steps"][k]) for k in columns]
    ends = {}
    for name in METHODS:
        for steps in counts:
            states = programs[name](SHORT.initial, SHORT.args, 1.0 / steps)
            ends[name, steps] = jax.tree.map(lambda leaf, end=steps: leaf[jnp.array([0, end])], states)
    exact, wrong, worst = 0, 0, 0.0
    for invariant, title in TABLES.items():
        size = np.linalg.norm(PAPER["invariants"][invariant])
        rows = []
        for name in METHODS:
            row = [name]
            for column, steps in zip(columns, counts, strict=True):
                ours = drift(ends[name, steps], invariant)[-1]
                paper = float(PAPER["tables"][invariant][name][column])
                round_off = 8.0 * np.sqrt(steps) * EPS * size
                mark = " "
                if 10.0 ** (np.floor(np.log10(paper)) - 4) > round_off:
                    exact += 1
                    if printed(ours) != printed(paper):
                        wrong += 1
                        mark = "!"
                else:
                    worst = max(worst, abs(ours - paper) / round_off)
                    mark = " " if printed(ours) == printed(paper) else "~"
                row += [printed(ours) + mark, printed(paper)]
            rows.append(row)
        headings = [heading for k in columns for heading in (f"h = {PAPER['steps'][k]:g} ", "paper")]
        report.table(title, ["method", *headings], rows)
    if not report.quick:
        print("~ the last digits are below the round-off of the run")
    report.figure("entries equal to the paper's five digits", exact - wrong, f"of {exact}")
    report.bound("table entries that differ from the paper", wrong, at_most=0)
    if not report.quick:
        report.bound("difference from the paper elsewhere, in units of round-off", worst, at_most=1.0)
        try:
            plot_drifts(ends)
        except ImportError:
            print("\nNo plot: matplotlib is missing (pip install 'lgsim[plot]').")
        else:
            print(f"\nFigs. 4 to 6: {os.path.relpath(DRIFTS)}")


class Counted(Action):
    """An action without effect that counts the calls of move and dexpinv."""

    tell: Callable[[str], None]

    @property
    def dim(self):
        return LONG.action.dim

    def move(self, xi, y):
        self.tell("exp")
        return y

    def dexpinv(self, sigma, xi):
        self.tell("dexpinv")
        return xi


def operations(name: str) -> dict[str, int]:
    """Calls of the field, of the exponential and of dexpinv in one step, counted while it runs op by op."""
    counts = {"field": 0, "exp": 0, "dexpinv": 0}

    def tell(kind):
        counts[kind] += 1

    def field(t, y, args):
        tell("field")
        return jnp.zeros(LONG.action.dim)

    time, step = jnp.zeros(()), jnp.full((), STEP)
    with jax.disable_jit():
        getattr(lgsim, name).step(Counted(tell), field, time, LONG.initial, step, LONG.args)
    return counts


def cost(report: harness.Report, programs: dict[str, Callable], compile_seconds: dict[str, float]) -> None:
    """Measured time of a step, with the operation counts of lgsim and of Table X."""
    runs = {name: partial(programs[name], LONG.initial, LONG.args, STEP) for name in METHODS}
    seconds = harness.interleave(runs, 5 if report.quick else 25)
    rows = []
    for name in METHODS:
        ours, paper = operations(name), PAPER["operations"][name]
        counted = [f"{ours[kind]} ({paper[kind]})" for kind in ("field", "exp", "dexpinv")]
        times = [f"{1e6 * seconds[name] / STEPS:.1f}", f"{seconds[name] / seconds['MK4']:.2f}"]
        rows.append([name, *counted, *times, f"{compile_seconds[name]:.1f}"])
        more = max(abs(ours[kind] - paper[kind]) for kind in ("field", "exp", "dexpinv"))
        report.bound(f"{name}: evaluations, exponentials and dexpinv other than in Table X", more, at_most=0)
    report.table(
        "Cost of one step: operations (in brackets those of Table X), and time on one core (medians, in turns)",
        ["method", "field", "exp", "dexpinv", "µs per step", "/ MK4", "compile, s"],
        rows,
    )
    report.figure("MK4", 1e6 * seconds["MK4"] / STEPS, "µs per step")


SCALARS = {"add": ("add", "sub"), "mult": ("mul",), "div": ("div",), "sqrt": ("sqrt",), "trig": ("sin", "cos")}
"""The columns of Table V, and the operations of a straight-line program that count as such."""


def scalar_operations(name: str) -> dict[str, int]:
    """Scalar operations of one step of lgsim beyond those of the field, in the program that it compiles, by Table V.

    The field is a product of one component of the state and constants, so that the stages have different velocities;
    these multiplications are subtracted.
    """
    dim, method = LONG.action.dim, getattr(lgsim, name)

    def step(y, rates, t, dt):
        def field(t, y, rates):
            return rates * jax.tree.leaves(y)[0][0, 3]

        return method.step(LONG.action, field, t, y, dt, rates)[0]

    numbers = jnp.zeros(())
    counts = read(step, LONG.initial, jnp.zeros(dim), numbers, numbers).counts()
    found = {column: sum(counts.get(op, 0) for op in ops) for column, ops in SCALARS.items()}
    found["mult"] -= dim * operations(name)["field"]
    return found


def complexity(report: harness.Report) -> None:
    """Tables V and IX: operations of a step, and of 1000 and 100 steps of similar accuracy."""
    ours, paper = {name: scalar_operations(name) for name in METHODS}, PAPER["complexity"]
    rows = [[name, *(f"{ours[name][column]} ({paper[name][column]})" for column in SCALARS)] for name in METHODS]
    report.table("Table V. Scalar operations of a step without the dynamics, N = 2 (in brackets the paper's)",
                 ["method", *SCALARS], rows)  # fmt: skip
    print("lgsim's sines and cosines are polynomials, whose operations count under add and mult.")
    rows = []
    for family in ("CG", "CF", "MK"):
        for order, steps in ((3, 1000), (4, 100)):
            name = f"{family}{order}"
            stages = operations(name)["field"]
            cells = [f"{steps * ours[name][column]:,} ({steps * paper[name][column]:,})" for column in SCALARS]
            rows.append([f"{name} x {steps}", f"{steps * stages:,}", *cells])
        cheaper = ours[f"{family}3"]["mult"] * 1000 / (ours[f"{family}4"]["mult"] * 100)
        report.bound(f"{family}: multiplications of 1000 steps of order 3 over 100 of order 4", cheaper, at_least=3)
    report.table("Table IX. 1000 steps of third and 100 steps of fourth order (in brackets the paper's)",
                 ["method", "FDyn", *SCALARS], rows)  # fmt: skip


def plot_drifts(ends: dict) -> None:
    """Figs. 4 to 6: drifts at t = 1 s over the step, of each family and order, with the paper's values as circles."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    families = {"CG": "Crouch-Grossman (Fig. 4)", "CF": "commutator-free (Fig. 5)", "MK": "Munthe-Kaas (Fig. 6)"}
    labels = {
        "kinetic_energy": "kinetic energy, J",
        "linear_momentum": "linear momentum, kg m/s",
        "angular_momentum": "angular momentum, kg m²/s",
    }
    colors = {2: "#d95f02", 3: "#1b9e77", 4: "#3b3a6e"}
    steps = PAPER["steps"]
    figure, axes = plt.subplots(3, 3, figsize=(10.5, 9.0), sharex=True, sharey="row", layout="constrained")
    for column, (family, title) in enumerate(families.items()):
        axes[0, column].set_title(title, fontsize=12)
        for row, (invariant, label) in enumerate(labels.items()):
            axis = axes[row, column]
            for order, color in colors.items():
                name = f"{family}{order}"
                ours = [drift(ends[name, round(1 / h)], invariant)[-1] for h in steps]
                printed_drifts = [float(PAPER["tables"][invariant][name][k]) for k in range(len(steps))]
                axis.loglog(steps, np.maximum(ours, 1e-17), color=color, marker=".", label=f"order {order}")
                axis.loglog(
                    steps, printed_drifts, color=color, linestyle="", marker="o", markersize=9, fillstyle="none"
                )
            axis.grid(alpha=0.25)
            axis.spines[["top", "right"]].set_visible(False)
            if column == 0:
                axis.set_ylabel(label)
        axes[2, column].set_xlabel("step h, s")
    axes[0, 0].legend(frameon=False, fontsize=9)
    figure.suptitle(
        "Drift of what should stay constant at t = 1 s: lgsim (dots), the paper's tables (rings)", fontsize=13
    )
    DRIFTS.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(DRIFTS, dpi=140)
    plt.close(figure)


def plot(runs: dict) -> None:
    """Figs. 7 and 8: drifts of the third- and of the fourth-order methods over 200 s."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    quantities = {
        "kinetic_energy": "kinetic energy\nchange, J",
        "linear_momentum": "linear momentum\ndrift, kg m/s",
        "angular_momentum": "angular momentum\ndrift, kg m²/s",
    }
    styles = {"CG": ("#d95f02", "-", 1.6), "CF": ("#1b9e77", "-", 2.6), "MK": ("#3b3a6e", (0, (4, 3)), 1.4)}
    families = {"CG": "Crouch-Grossman", "CF": "commutator-free", "MK": "Munthe-Kaas"}
    figure, axes = plt.subplots(3, 2, figsize=(10.5, 8.4), sharex=True, layout="constrained")
    for column, order in enumerate((3, 4)):
        axes[0, column].set_title(f"order {order} (Fig. {order + 4})", fontsize=12)
        for row, (invariant, label) in enumerate(quantities.items()):
            axis = axes[row, column]
            for family, (color, line, width) in styles.items():
                states = runs[f"{family}{order}"]
                values = (change if row == 0 else drift)(states, invariant)
                times = np.linspace(0.0, STEP * STEPS, len(values))
                name = f"{family}{order}  {families[family]}"
                axis.plot(times, values, color=color, linestyle=line, linewidth=width, label=name)
            axis.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2), useMathText=True)
            axis.grid(alpha=0.25)
            axis.spines[["top", "right"]].set_visible(False)
            axis.margins(x=0)
            if column == 0:
                axis.set_ylabel(label)
        axes[0, column].legend(frameon=False, fontsize=9)
        axes[2, column].set_xlabel("time, s")
    figure.align_ylabels()
    figure.suptitle(f"Drift of what should stay constant: three bodies in free motion, h = {STEP:g} s", fontsize=13)
    PLOT.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PLOT, dpi=140)
    plt.close(figure)


def long_run(report: harness.Report, programs: dict[str, Callable]) -> None:
    """200 s of free motion: drifts at the end, and the distance from SO(3)."""
    runs = {name: programs[name](LONG.initial, LONG.args, STEP) for name in METHODS}
    ends = {name: [drift(runs[name], invariant)[-1] for invariant in TABLES] for name in METHODS}
    rows = []
    for name in METHODS:
        rotations = np.asarray(runs[name][0][:, :3, :3])
        defect = np.abs(rotations @ rotations.transpose(0, 2, 1) - np.eye(3)).max()
        report.bound(f"{name}: |R R^T - 1| over the long run", defect, at_most=2 * STEPS * EPS)
        rows.append([name, *(f"{value:.1e}" for value in ends[name]), f"{defect:.0e}"])
    report.table(
        f"Long run of Figs. 7 and 8, h = {STEP:g} s: drifts at t = {STEP * STEPS:g} s, and orthogonality error of R",
        ["method", "energy, J", "linear, kg m/s", "angular, kg m^2/s", "max |R R^T - 1|"],
        rows,
    )
    for k, invariant in enumerate(TABLES):
        if k:
            ratio = ends["CG4"][k] / max(ends["CF4"][k], ends["MK4"][k])
            report.bound(f"{invariant}: drift of CG4 over that of CF4 and MK4 (Fig. 8)", ratio, at_least=1.5)
    try:
        plot(runs)
    except ImportError:
        print("\nNo plot: matplotlib is missing (pip install 'lgsim[plot]').")
    else:
        print(f"\nPlot of the long run: {os.path.relpath(PLOT)}")


def run(report: harness.Report) -> None:
    """All tables and figures."""
    print("Three bodies of 10 kg, two revolute joints, no forces: energy and momenta are constant.")
    print(f"Compiling {len(METHODS)} integrators ...", flush=True)
    programs, compile_seconds = compile_methods()
    print("Drift of each method: lgsim, and the digits that Park and Chung printed in 2005.")
    tables(report, programs)
    complexity(report)
    cost(report, programs, compile_seconds)
    long_run(report, programs)


if __name__ == "__main__":
    harness.main(run, "park_chung")
