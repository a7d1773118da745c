"""Shared by the studies on manifolds: a program for any number of steps, the same motion in R^n, orders, figures."""

import harness

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.integrate import solve_ivp

import lgsim
from lgsim.actions import Action, Translation
from lgsim.systems import InitialValueProblem

ROWS = 600
DATA = Path(__file__).parents[3] / "tests" / "data"
MARKS = "osD^v<>Pp*Xhd8"
FAMILIES = {
    "Munthe-Kaas": "#3b3a6e",
    "commutator-free": "#1b9e77",
    "Crouch-Grossman": "#d95f02",
    "other coordinates": "#c2185b",
    "implicit": "#8c6d31",
}


def family(name: str) -> str:
    """The engine of a method, by its name."""
    if name in lgsim.COORDINATE_METHODS:
        return "other coordinates"
    if name in lgsim.IMPLICIT_METHODS:
        return "implicit"
    return {"CF": "commutator-free", "CG": "Crouch-Grossman"}.get(name[:2], "Munthe-Kaas")


@eqx.filter_jit
def _path(method: lgsim.Method, action: Action, field: Callable, y0: Any, args: Any, dt: Any, steps: Any, every: Any):
    rows = jax.tree.map(lambda leaf: jnp.zeros((ROWS + 1, *leaf.shape)).at[0].set(leaf), y0)

    def step(k, carry):
        y, rows = carry
        y = method.step(action, field, k * dt, y, dt, args)[0]
        row = jnp.where((k + 1) % every == 0, (k + 1) // every, ROWS + 1)
        return y, jax.tree.map(lambda all_, leaf: all_.at[row].set(leaf, mode="drop"), rows, y)

    return jax.lax.fori_loop(0, steps, step, (y0, rows))


def end(method: lgsim.Method, problem: InitialValueProblem, time: float, steps: int) -> Any:
    """The state at ``time``; neither a new number of steps nor new parameters of the problem recompile."""
    return _run(method, problem, time, steps, steps + 1)[0]


def path(
    method: lgsim.Method, problem: InitialValueProblem, time: float, steps: int, every: int = 1
) -> tuple[np.ndarray, Any]:
    """Times and states, each ``every``-th, in the program of ``end``; up to ROWS of them after the first."""
    saved = steps // every
    assert saved <= ROWS
    rows = _run(method, problem, time, steps, every)[1]
    return time / steps * every * np.arange(saved + 1), jax.tree.map(lambda leaf: leaf[: saved + 1], rows)


def _run(method, problem, time, steps, every):
    numbers = jnp.asarray(time / steps), jnp.asarray(steps), jnp.asarray(every)
    return _path(method, problem.action, problem.field, problem.initial, problem.args, *numbers)


def flat(y: Any) -> np.ndarray:
    """All entries of a state, or of each state of a path."""
    return np.asarray(ravel_pytree(y)[0])


def distance(y0: Any, y1: Any) -> float:
    """The Euclidean distance in the space of all entries, as the paper measures errors."""
    return float(np.linalg.norm(flat(y0) - flat(y1)))


def in_space(problem: InitialValueProblem) -> InitialValueProblem:
    """The same problem in the R^n of all entries, without the manifold, where MK4 is the classical RK4."""
    x = flat(problem.initial)
    rate = _rate(problem.action, problem.field, jax.tree.structure(problem.initial), _shapes(problem.initial))
    return InitialValueProblem(f"{problem.name}, in R^n", Translation(x.size), rate, jnp.asarray(x), problem.args, {})


@cache
def _rate(action: Action, field: Callable, structure: Any, shapes: tuple) -> Callable:
    """The compiled y' of all entries, one for all problems of a kind."""
    unravel = ravel_pytree(jax.tree.unflatten(structure, [jnp.zeros(shape) for shape in shapes]))[1]

    @jax.jit
    def rate(t, x, args):
        y = unravel(x)
        moved = jax.jvp(lambda s: action.move(s * field(t, y, args), y), (jnp.zeros(()),), (jnp.ones(()),))
        return ravel_pytree(moved[1])[0]

    return rate


def _shapes(y: Any) -> tuple:
    return tuple(leaf.shape for leaf in jax.tree.leaves(y))


def by_scipy(problem: InitialValueProblem, time: float, method: str = "DOP853", **settings: Any) -> Any:
    """Scipy's solution in the R^n of all entries; its strictest tolerance if none is given."""
    space = in_space(problem)
    settings = {"rtol": 2.3e-14, "atol": 1e-14, **settings}
    return solve_ivp(
        lambda t, x: np.asarray(space.field(t, x, space.args)),
        (0.0, time),
        np.asarray(space.initial),
        method,
        **settings,
    )


@dataclass(frozen=True)
class Orders:
    """Errors of a method over numbers of steps."""

    steps: np.ndarray
    errors: np.ndarray

    def slope(self, floor: float, ceiling: float) -> float:
        """The order: the slope over the four smallest steps whose errors are between both limits."""
        clean = np.flatnonzero((self.errors > floor) & (self.errors < ceiling))[-4:]
        if len(clean) < 3:
            return np.nan
        return -float(np.polyfit(np.log(self.steps[clean]), np.log(self.errors[clean]), 1)[0])


def orders(
    method: lgsim.Method, problem: InitialValueProblem, time: float, exact: Any, counts: Iterable[int], floor: float
) -> Orders:
    """Errors at ``time`` for more and more steps, until they fall below the floor."""
    steps, errors = [], []
    for n in counts:
        steps.append(n)
        errors.append(distance(end(method, problem, time, n), exact))
        if errors[-1] < floor:
            break
    return Orders(np.array(steps), np.array(errors))


def counts(least: int, most: int, a_doubling: int = 2) -> list[int]:
    """Numbers of steps, evenly on a logarithmic axis."""
    points = np.arange(0.0, np.log2(most / least) + 1e-9, 1 / a_doubling)
    return sorted({round(least * 2**k) for k in points})


class Page:
    """One page of figures: pictures in a folder, and an HTML file that shows them with their captions.

    Without a folder nothing is drawn.
    """

    def __init__(self, folder: Path | None, title: str):
        self.folder, self.title, self.sections, self.plt = folder, title, [], None
        if folder is None:
            return
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            print("\nNo figures: matplotlib is missing (pip install 'lgsim[plot]').")
            return
        plt.switch_backend("Agg")
        plt.rcParams.update(
            {"axes.grid": True, "grid.alpha": 0.25, "axes.spines.top": False, "axes.spines.right": False}
            | {"legend.frameon": False, "axes.titlesize": 11, "figure.constrained_layout.use": True}
        )
        self.plt = plt

    def add(self, name: str, caption: str, draw: Callable[[Any], Any]) -> None:
        """Draw a figure, ``draw(pyplot)``, into ``<name>.png``."""
        if self.plt is None:
            return
        figure = draw(self.plt)
        self.folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(self.folder / f"{name}.png", dpi=110)
        self.plt.close(figure)
        self.sections.append((name, caption))

    def write(self, lines: Mapping[str, str]) -> Path | None:
        """The page itself, with the bounds of the report below the pictures."""
        if self.plt is None:
            return None
        body = [f"<h1>{escape(self.title)}</h1>"]
        for name, caption in self.sections:
            body.append(
                f'<figure><img src="{name}.png" alt="{name}"><figcaption>{escape(caption)}</figcaption></figure>'
            )
        rows = "".join(f"<tr><td>{escape(k)}</td><td>{escape(v)}</td></tr>" for k, v in lines.items())
        body.append(f"<h2>What the figures are held to</h2><table>{rows}</table>")
        style = "body{font:15px sans-serif;max-width:1100px;margin:auto}img{max-width:100%}td{padding:1px 12px 1px 0}"
        head = f'<!doctype html><meta charset="utf-8"><title>{escape(self.title)}</title><style>{style}</style>'
        page = self.folder / "celledoni.html"
        harness.write_whole(page, head + "\n".join(body) + "\n")
        return page
