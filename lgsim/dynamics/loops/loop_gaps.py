"""By how much loops are open and how fast they open, and the words for it."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import batch_last
from lgsim.dynamics import row_tree
from lgsim.dynamics import rows as row
from lgsim.dynamics.loops import loop_ends
from lgsim.dynamics.loops.loop_units import machine_length
from lgsim.dynamics.loops.misfits import placed, velocity
from lgsim.multibody.loops.loop import FrameLoop, JointLoop
from lgsim.multibody.model import Model

SMALL = 0.01
"""The share of a gap that is not worth a word."""


def _gaps(model: Model, q: Array, v: Array) -> tuple[Array, Array, Array, Array]:
    q, v = row_tree.full(model, q, v)
    at, speeds = placed(model, q), row.speeds(model, v)
    kinds = loop_ends.kinds(model.topology)
    parts: list[Array] = []
    far, turned = [], []
    for number, ends in enumerate(kinds):
        numbers = ends.numbers(model)
        if isinstance(ends.kind, FrameLoop):
            pose = at.ends[number].relative
            parts += ends.kind.residual(pose, numbers)
            squares = ends.kind.gap(pose, numbers)
            V = velocity(ends, at, number, speeds)
            rates = [T.power(V) for T in ends.kind.wrenches(pose, numbers)]
            torn = [_length(rates, ends.kind.row_turns, kind) for kind in (False, True)]
            far.append((jnp.sqrt(squares[0]), torn[0]))
            turned.append((angle(squares[1]), torn[1]))
        elif isinstance(ends.kind, JointLoop):
            a, b = ends.joint_rows
            f, slope, _, _ = ends.kind.values(at.x[a], numbers)
            parts.append(at.x[b] - f)
            own = jnp.abs(parts[-1]), jnp.abs(speeds[b] - slope * speeds[a])
            none = jnp.zeros_like(f), jnp.zeros_like(f)
            far.append(none if ends.kind.row_turns[0] else own)
            turned.append(own if ends.kind.row_turns[0] else none)
    order = np.argsort(np.concatenate([ends.loops for ends in kinds]))
    gap, torn = (
        jnp.stack([jnp.concatenate([x[i] for x in part])[order] for part in (far, turned)], axis=1) for i in (0, 1)
    )
    residual = loop_ends.in_order(parts, [ends.rows.ravel() for ends in kinds])
    return residual, gap, torn, machine_length(model, at)


loop_gaps = batch_last(_gaps)
"""(residuals (m,), gaps of the loops (loops, 2), m and rad, their rates, length of the machine, m) of one state."""


def angle(square: Array) -> Array:
    """The angle, rad, of the square that ``FrameLoop.gap`` gives.

    That is the square of its sine, with 4 or more added beyond a quarter turn.
    """
    over = jnp.floor(square / 4)
    small = jnp.arcsin(jnp.minimum(jnp.sqrt(square - 4 * over), 1))
    return jnp.where(over > 0, np.pi - small, small)


def sizes(gap: Float[np.ndarray, "*batch 2"], length: Float[np.ndarray, "*#batch"]) -> Float[np.ndarray, "*batch"]:
    """Gaps as lengths, an angle counting by its arc at a length, m."""
    return np.hypot(gap[..., 0], gap[..., 1] * length)


def described(gap: Float[np.ndarray, " 2"], length: float, rate: str = "") -> str:
    """A gap in words: mm, deg, or both where each counts beside the other at a length, m.

    ``rate`` is put behind them.
    """
    far, turned = float(gap[0]), float(gap[1]) * length
    shown = [] if far < SMALL * turned else [f"{1e3 * far:.3g} mm{rate}"]
    if turned > SMALL * far:
        shown.append(f"{np.degrees(float(gap[1])):.3g} deg{rate}")
    return " and ".join(shown)


def _length(rows: list[Array], turns: tuple[bool, ...], kind: bool) -> Array:
    own = [x * x for x, turned in zip(rows, turns, strict=True) if turned is kind]
    return jnp.sqrt(sum(own[1:], own[0])) if own else jnp.zeros_like(rows[0])
