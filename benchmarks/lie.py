"""SE(3) primitives compared with jaxlie and Pinocchio: errors in units of round-off, and ns per element.

    python benchmarks/lie.py --quick      float64, few repeats
    python benchmarks/lie.py              float64 and float32, and a record in benchmarks/results

Needs the extra `oracle` (mpmath, jaxlie, pin). Every library gets the same twists in one process, in turns. Errors are
against 50-digit arithmetic at angles from 0 to 2 pi - 1e-3 with translations of size 1: a translation that shrinks with
the angle would hide the errors of small-angle switches.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lgsim._compile.spatial import Motion, Vec
from lgsim.lie import se3, se3_components
from lgsim.lie.ad_functions import DEXPINV, on_motion

jax.config.update("jax_enable_x64", True)

try:
    import jaxlie
    import mpmath
    import pinocchio
except ImportError as missing:
    sys.exit(f"benchmarks/lie.py: {missing.name} is missing; install it with: pip install 'lgsim[oracle]'")

ELEMENTS = 100_000
ANGLES = [
    0.0,
    *10.0 ** np.arange(-9.0, 0.0),
    1.01e-5,
    3e-3,
    3.3e-3,
    1.0,
    2.0,
    3.0,
    np.pi - 1e-6,
    4.0,
    5.0,
    2 * np.pi - 1e-3,
]
ROUNDING = {name: float(np.finfo(name).eps) for name in ("float64", "float32")}


def twists(dtype: str) -> np.ndarray:
    """One twist (v, w) for each angle, |v| about 1, in the dtype."""
    rng = np.random.default_rng(0)
    axes = rng.normal(size=(len(ANGLES), 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    translations = rng.normal(size=(len(ANGLES), 3))
    translations /= np.linalg.norm(translations, axis=1, keepdims=True)
    return np.hstack([translations, axes * np.array(ANGLES)[:, None]]).astype(dtype)


def exact(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """exp(u) and the body form dexpinv_{-u}, from power series of the 4x4 and 6x6 matrices in 50 digits."""
    with mpmath.workdps(50):
        v, w = ([mpmath.mpf(float(x)) for x in part] for part in (u[:3], u[3:]))
        hats = [mpmath.matrix([[0, -c, b], [c, 0, -a], [-b, a, 0]]) for a, b, c in (v, w)]
        twist, ad = mpmath.zeros(4), mpmath.zeros(6)
        twist[:3, :3], ad[:3, :3], ad[3:, 3:], ad[:3, 3:] = hats[1], hats[1], hats[1], hats[0]
        for i in range(3):
            twist[i, 3] = v[i]
        exponential = term = mpmath.eye(4)
        dexp = power = mpmath.eye(6)
        for n in range(1, 80):
            term = term * twist / n
            exponential += term
            power = power * (-ad) / (n + 1)
            dexp += power
        return tuple(np.array(m.tolist(), dtype=object) for m in (exponential, dexp**-1))


def error(found: Any, right: np.ndarray, dtype: str) -> float:
    """Largest entry of the difference, in rounding units of the norm of the exact matrix."""
    gaps = [abs(mpmath.mpf(float(a)) - b) for a, b in zip(np.asarray(found).ravel(), right.ravel(), strict=True)]
    norm = mpmath.sqrt(sum(x * x for x in right.ravel()))
    return float(max(gaps) / norm) / ROUNDING[dtype]


def errors(report: harness.Report, dtype: str) -> None:
    """Largest and typical errors of exp, of the translation through exp and log, and of the inverse Jacobian."""
    us = twists(dtype)
    rights = [exact(u) for u in us]
    turns = np.array(ANGLES) < np.pi
    T = jax.jit(se3.exp)(us)
    theirs = jax.jit(jaxlie.SE3.exp)(us)
    inverse = jax.jit(lambda u: se3.dexpinv(-u))(us)
    maps = {
        "lgsim": (T, jax.jit(se3.log)(T), inverse),
        "jaxlie": (
            theirs.as_matrix(),
            jax.jit(lambda g: g.log())(theirs),
            jax.jit(jax.vmap(lambda g: g.jlog()))(theirs),
        ),
    }
    if dtype == "float64":
        poses = [pinocchio.exp6(pinocchio.Motion(u)) for u in us]
        logs = [pinocchio.log6(pose).vector for pose in poses]
        maps["Pinocchio"] = ([p.homogeneous for p in poses], logs, [pinocchio.Jlog6(pose) for pose in poses])
    rows = []
    for name, (exps, logs, inverses) in maps.items():
        exp_errors = [error(a, right[0], dtype) for a, right in zip(exps, rights, strict=True)]
        # beyond pi the logarithm differs from the given twist
        log_errors = [error(a, u.astype(object), dtype) for a, u, keep in zip(logs, us, turns, strict=True) if keep]
        keep = turns if name != "lgsim" else np.array(ANGLES) < 6.0
        jacobian_errors = [error(a, right[1], dtype) for a, right, k in zip(inverses, rights, keep, strict=True) if k]
        rows.append([name, *map(max, (exp_errors, log_errors, jacobian_errors))])
        if name == "lgsim":
            report.bound(f"exp {dtype}, units of rounding", rows[-1][1], at_most=8)
            report.bound(f"dexpinv {dtype}, units of rounding", rows[-1][3], at_most=8)
    report.table(
        f"Largest error in rounding units of the norm, {dtype}, {len(ANGLES)} angles, |v| = 1",
        ["library", "exp", "log(exp), angle < pi", "inverse Jacobian"],
        rows,
    )
    report.figure(f"dexpinv {dtype}: lgsim", rows[0][3], "ulp")
    report.figure(f"jaxlie {dtype}", rows[1][3], "ulp")


def plot() -> None:
    """Error of the inverse Jacobian against the angle, both precisions: a figure of the home page."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(2)
    angles = 10.0 ** np.linspace(-8, np.log10(3.0), 45)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True, layout="constrained")
    for axis, dtype in zip(axes, ROUNDING, strict=True):
        us = np.hstack([rng.normal(size=(len(angles), 3)), [[0.6, 0.0, 0.8]] * angles[:, None]]).astype(dtype)
        rights = [exact(u)[1] for u in us]
        found = {
            "jaxlie": (jax.jit(jax.vmap(lambda u: jaxlie.SE3.exp(u).jlog()))(us), "#d95f02", "o"),
            "Pinocchio": ([pinocchio.Jlog6(pinocchio.exp6(pinocchio.Motion(u))) for u in us], "#7570b3", "s"),
            "lgsim": (jax.jit(lambda u: se3.dexpinv(-u))(us), "#1b9e77", "D"),
        }
        for name, (matrices, color, marker) in found.items():
            if name == "Pinocchio" and dtype == "float32":
                continue
            relative = [max(error(m, r, dtype), 0.05) * ROUNDING[dtype] for m, r in zip(matrices, rights, strict=True)]
            axis.loglog(angles, relative, marker=marker, markersize=4, linewidth=1, color=color, label=name)
        axis.axhline(ROUNDING[dtype], color="0.4", linewidth=0.8, linestyle=":")
        axis.set(title=dtype, xlabel="rotation angle, rad")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("relative error of dexpinv on SE(3)")
    axes[0].legend(frameon=False)
    axes[1].annotate("one rounding unit", (0.15, 1.5 * ROUNDING["float32"]), fontsize=8, color="0.4")
    harness.RESULTS.mkdir(parents=True, exist_ok=True)
    figure.savefig(harness.RESULTS / "lie_errors.png", dpi=140)
    plt.close(figure)


def components(array: jax.Array) -> Motion:
    """The columns of twists as separate arrays."""
    columns = [jnp.array(array[:, i]) for i in range(6)]
    return Motion(Vec(*columns[:3]), Vec(*columns[3:]))


def total(tree: Any) -> jax.Array:
    """The sum of all entries, whose gradient is timed."""
    return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(tree))


def speed(report: harness.Report, dtype: str) -> None:
    """Nanoseconds per element of each primitive and its gradient, in turns."""
    u, other = jnp.asarray(np.random.default_rng(1).normal(size=(2, ELEMENTS, 6)).astype(dtype))
    T, parts = jax.jit(se3.exp)(u), components(u)
    pose = jax.jit(lambda u: jaxlie.SE3.exp(u).wxyz_xyz)(u)
    transforms = jax.jit(se3_components.exp)(parts)
    lie = jaxlie.SE3
    tasks: dict[str, dict[str, tuple[Callable, tuple]]] = {
        "exp": {
            "jaxlie": (lambda u: lie.exp(u).wxyz_xyz, (u,)),
            "arrays": (se3.exp, (u,)),
            "components": (se3_components.exp, (parts,)),
        },
        "log": {
            "jaxlie": (lambda p: lie(p).log(), (pose,)),
            "arrays": (se3.log, (T,)),
            "components": (se3_components.log, (transforms,)),
        },
        "compose": {
            "jaxlie": (lambda p: (lie(p) @ lie(p)).wxyz_xyz, (pose,)),
            "arrays": (lambda T: se3.compose(T, T), (T,)),
            "components": (lambda T: T @ T, (transforms,)),
        },
        "dexpinv, 6x6": {
            "jaxlie": (jax.vmap(lambda p: lie(p).jlog()), (pose,)),
            "arrays": (lambda u: se3.dexpinv(-u), (u,)),
        },
        "dexpinv of a vector": {
            "arrays": (se3.dexpinv_action, (u, other)),
            "components": (lambda u, v: on_motion(DEXPINV, u, v), (parts, components(other))),
        },
        "gradient of exp": {
            "jaxlie": (jax.grad(lambda u: total(lie.exp(u).wxyz_xyz)), (u,)),
            "arrays": (jax.grad(lambda u: total(se3.exp(u))), (u,)),
            "components": (jax.grad(lambda u: total(se3_components.exp(u))), (parts,)),
        },
        "gradient of log": {
            "jaxlie": (jax.grad(lambda p: total(lie(p).log())), (pose,)),
            "arrays": (jax.grad(lambda T: total(se3.log(T))), (T,)),
            "components": (jax.grad(lambda T: total(se3_components.log(T))), (transforms,)),
        },
        "gradient of dexpinv": {
            "arrays": (jax.grad(lambda u, v: total(se3.dexpinv_action(u, v))), (u, other)),
        },
    }
    limits = {("exp", "arrays"): 3.5, ("log", "arrays"): 3.5, ("exp", "components"): 8.0, ("log", "components"): 5.0}
    rows, compiling = [], {"jaxlie": 0.0, "arrays": 0.0, "components": 0.0}
    for task, makers in tasks.items():
        programs = {}
        for name, (function, args) in makers.items():
            program, seconds = harness.compiled(function, *args)
            programs[name] = lambda program=program, args=args: program(*args)
            compiling[name] += seconds
        seconds = harness.interleave(programs, repeats=15 if report.quick else 60)
        ns = {name: 1e9 * value / ELEMENTS for name, value in seconds.items()}
        ratios = {name: ns["jaxlie"] / value if "jaxlie" in ns else float("nan") for name, value in ns.items()}
        columns = ("jaxlie", "arrays", "components")
        times = [ns.get(name, "-") for name in columns]
        rows.append([task, *times, *(ratios[n] if n in ns and "jaxlie" in ns else "-" for n in columns[1:])])
        for name, ratio in ratios.items():
            if dtype == "float64" and (task, name) in limits:
                report.bound(f"{task}, {name}: times faster than jaxlie", ratio, at_least=limits[task, name])
                report.figure(f"{task} on {name}", ratio, "x")
    rows.append(["compile all, s", *compiling.values(), "-", "-"])
    report.table(
        f"ns per element, {ELEMENTS} elements, {dtype} (a pose is: jaxlie 7 numbers, arrays 4x4, components R and p)",
        ["", "jaxlie", "lgsim arrays", "lgsim components", "x arrays", "x components"],
        rows,
    )


def run(report: harness.Report) -> None:
    """All tables."""
    for dtype in ROUNDING:
        errors(report, dtype)
    for dtype in ("float64",) if report.quick else ROUNDING:
        speed(report, dtype)
    if not report.quick:
        plot()


if __name__ == "__main__":
    harness.main(run, "lie")
