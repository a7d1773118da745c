"""Gaps of kinematic loops and their rates, as numbers and as text."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import batch_last
from lgsim.dynamics import row_tree
from lgsim.dynamics import rows as row
from lgsim.dynamics.loops import loop_ends
from lgsim.dynamics.loops.loop_residuals import placed, velocity
from lgsim.dynamics.loops.loop_units import machine_length
from lgsim.multibody.loops.loop import FrameLoop, JointLoop
from lgsim.multibody.model import Model

SMALL = 0.01
"""Relative size below which a part of a gap is left out of the text."""


def _gaps(model: Model, q: Array, v: Array) -> tuple[Array, Array, Array, Array]:
    q, v = row_tree.full(model, q, v)
    at, speeds = placed(model, q), row.speeds(model, v)
    kinds = loop_ends.kinds(model.topology)
    parts: list[Array] = []
    far, turned = [], []
    # residual c, gap (distance and angle) and its rate for each kind of loop
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
        # couplings: c = q_b - f(q_a), c' = v_b - f' v_a
        elif isinstance(ends.kind, JointLoop):
            a, b = ends.joint_rows
            f, slope, _, _ = ends.kind.values(at.x[a], numbers)
            parts.append(at.x[b] - f)
            own = jnp.abs(parts[-1]), jnp.abs(speeds[b] - slope * speeds[a])
            none = jnp.zeros_like(f), jnp.zeros_like(f)
            far.append(none if ends.kind.row_turns[0] else own)
            turned.append(own if ends.kind.row_turns[0] else none)
    # back to the order of the loops
    order = np.argsort(np.concatenate([ends.loops for ends in kinds]))
    gap, torn = (
        jnp.stack([jnp.concatenate([x[i] for x in part])[order] for part in (far, turned)], axis=1) for i in (0, 1)
    )
    residual = loop_ends.in_order(parts, [ends.rows.ravel() for ends in kinds])
    return residual, gap, torn, machine_length(model, at)


loop_gaps = batch_last(_gaps)
"""(residuals (m,), gaps of the loops (loops, 2), m and rad, their rates, model length, m) of one state."""


def angle(square: Array) -> Array:
    """The angle, rad, from the square that ``FrameLoop.gap`` returns.

    This is the squared sine of the angle, plus 4 or more beyond a quarter turn.
    """
    over = jnp.floor(square / 4)
    small = jnp.arcsin(jnp.minimum(jnp.sqrt(square - 4 * over), 1))
    return jnp.where(over > 0, np.pi - small, small)


def sizes(gap: Float[np.ndarray, "*batch 2"], length: Float[np.ndarray, "*#batch"]) -> Float[np.ndarray, "*batch"]:
    """Gaps as lengths, m; an angle counts as its arc at a radius."""
    return np.hypot(gap[..., 0], gap[..., 1] * length)


def described(gap: Float[np.ndarray, " 2"], length: float, rate: str = "") -> str:
    """A gap as text: mm, deg, or both where each is significant relative to the other at a length, m.

    ``rate`` is appended to the units.
    """
    far, turned = float(gap[0]), float(gap[1]) * length
    shown = [] if far < SMALL * turned else [f"{1e3 * far:.3g} mm{rate}"]
    if turned > SMALL * far:
        shown.append(f"{np.degrees(float(gap[1])):.3g} deg{rate}")
    return " and ".join(shown)


def _length(rows: list[Array], turns: tuple[bool, ...], kind: bool) -> Array:
    own = [x * x for x, turned in zip(rows, turns, strict=True) if turned is kind]
    return jnp.sqrt(sum(own[1:], own[0])) if own else jnp.zeros_like(rows[0])
