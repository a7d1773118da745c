"""Checks of states with closed loops, with messages: open loops, inconsistent velocities, locked models."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.dynamics.loops.loop_functions import loop_rows
from lgsim.dynamics.loops.loop_gaps import described, loop_gaps, sizes
from lgsim.dynamics.loops.loop_units import turning
from lgsim.dynamics.loops.nearest_step import loop_misfits, machine_length
from lgsim.multibody.model import Model
from lgsim.support.check import is_traced
from lgsim.support.messages import listed

CLOSED = {"float64": 1e-6, "float32": 1e-4}
"""By dtype: tolerance of gaps relative to the length of the model, and of their rates to the fastest joint's."""
_DEPENDENT = {"float64": 1e-7, "float32": 1e-3}
"""By dtype: singular values of dependent rows, relative to the largest one."""
NEAR = 1e-2
"""Singular values, relative to the largest one, near a singular posture."""


class MeasuredLoops(NamedTuple):
    """Distance of a state from the closed set; of many states with a leading axis.

    Attributes:
        gap: Gap of each loop (loops, 2): distance, m, and angle, rad.
        torn: Rates of the gaps, m/s and rad/s.
        length: Characteristic length of the model, m.
        speed: Speed of the fastest joint, m/s; angular speeds times the length of the model.
    """

    gap: Float[Array, "*batch loops 2"]
    torn: Float[Array, "*batch loops 2"]
    length: Float[Array, "*batch"]
    speed: Float[Array, "*batch"]


def measured_loops(model: Model, q: Any, v: Any = None) -> MeasuredLoops:
    """Distance of one state from the closed set; the velocity is zero by default."""
    v = jnp.zeros(model.nv, model.dtype) if v is None else jnp.asarray(v, model.dtype)
    _, gap, torn, length = loop_gaps(model, jnp.asarray(q, model.dtype), v)
    return MeasuredLoops(gap, torn, length, jnp.max(jnp.abs(v) * jnp.where(turning(model.topology), length, 1)))


def check_start(model: Model, q: Any, v: Any = None) -> None:
    """``check_closed`` and ``check_mobile`` for the initial state of a simulation."""
    check_closed(model, q, v)
    check_mobile(model, q)


def check_closed(model: Model, q: Any, v: Any = None) -> None:
    """Check that a state lies on the closed set; skipped inside of ``jit`` and for models without loops.

    Args:
        q: Configuration (nq,).
        v: Velocity (nv,), rad/s or m/s; None for zero. A traced velocity is not checked.

    Raises:
        ValueError: as ``check_measured``.
    """
    if model.topology.loops and not is_traced(model, q):
        v = None if is_traced(v) else v
        with jax.ensure_compile_time_eval():
            check_measured(model, measured_loops(model, q, v))


def check_measured(model: Model, loops: MeasuredLoops) -> None:
    """Check that states lie on the closed set, up to ``CLOSED``; non-finite values are left to other checks.

    Raises:
        ValueError: a loop is open, or a velocity opens it; the message names the worst loop of the first such state.
    """
    share = CLOSED[str(model.dtype)]
    gap, torn, length, speed = (np.asarray(x, float) for x in loops)
    found = _worst(model, gap, length, np.asarray(share * length), "")
    if found is not None:
        at, what, size = found
        raise ValueError(
            f"q0{at}: {what}, more than {share:g} of the model's length of {size:.3g} m; lgsim.close_loops(model, q0)"
            " finds the nearest configuration that closes all loops"
        )
    found = _worst(model, torn, length, np.asarray(share * speed), "/s")
    if found is not None:
        at, what, size = found
        raise ValueError(
            f"v0{at}: {what}, more than {share:g} of the speed of the fastest joint (angles times {size:.3g} m);"
            " lgsim.close_loops(model, q0, v=v0) finds the nearest velocity that keeps all loops closed"
        )


def _worst(
    model: Model, gap: np.ndarray, length: np.ndarray, allowed: np.ndarray, rate: str
) -> tuple[str, str, float] | None:
    """(sample, the loop and its gap as text, the length of the model) of the first state beyond tolerance, or None."""
    large = sizes(gap, length[..., None]) > allowed[..., None]
    if not large.any():
        return None
    at, number = (), ""
    if gap.ndim > 2:
        at = (int(np.argmax(large.any(axis=-1))),)
        number = f" of sample {at[0]}"
    size = float(length[at])
    loop = int(np.argmax(sizes(gap[at], np.asarray(size))))
    word = "opens at" if rate else "is open by"
    return number, f"the loop {model.loop_names[loop]!r} {word} {described(gap[at][loop], size, rate)}", size


def check_mobile(model: Model, q: Any) -> None:
    """Check that the loops leave the model at least one motion at q (nq,); skipped inside of ``jit``.

    Raises:
        ValueError: the rank of the loop rows equals the number of degrees of freedom.
    """
    if not model.topology.loops or is_traced(model, q):
        return
    rank = _independent_rows(model, q)
    if rank == model.nv:
        raise ValueError(
            f"model: its loops ({listed([repr(name) for name in model.loop_names])}) lock it: {rank} of their"
            f" {model.topology.loop_rows} rows are independent, as many as it has degrees of freedom, so that nothing"
            " moves; leave a loop more freedom, such as lgsim.joints.Spherical() in place of Revolute(), or remove one"
        )


def _independent_rows(model: Model, q: Any) -> int:
    """The rank of the loop rows at q (nq,), angles and lengths being scaled by the length of the model."""
    with jax.ensure_compile_time_eval():
        q = jnp.asarray(q, model.dtype)
        length = machine_length(model, q)
        J = np.asarray(loop_misfits(model, q, length)[1], float)
    values = np.linalg.svd(J * np.where(turning(model.topology), 1, float(length))[None], compute_uv=False)
    return int(np.sum(values > _DEPENDENT[str(model.dtype)] * values[0]))


def describe_singular_loop(model: Model, qs: Any) -> str:
    """A message if configurations (n, nq) of a motion come near a singular posture, with the remedy; else empty.

    At a singular posture, such as the flat posture of a parallelogram, the rank of the loop rows changes and the motion
    beyond it is not unique. The loop has the largest share in the combination of rows that nearly vanishes.
    """
    tree = model.topology
    if not tree.loops:
        return ""
    qs = jnp.asarray(qs, model.dtype)
    length = np.asarray(jax.vmap(machine_length, (None, 0))(model, qs), float)[:, None, None]
    rows_turn = np.concatenate([np.broadcast_to(loop.kind.row_turns, loop.kind.rows) for loop in tree.loops])
    # singular values of the rows, with angles and lengths scaled to be comparable
    J = np.asarray(jax.vmap(loop_rows, (None, 0))(model, qs), float)
    J = J * np.where(rows_turn[:, None], length, 1) * np.where(turning(tree), 1, length)
    shares, values, _ = np.linalg.svd(J, full_matrices=False)
    values = values / values[:, :1]
    rank = int(np.max(np.sum(values > _DEPENDENT[str(model.dtype)], axis=1)))
    if not rank:
        return ""
    at = int(np.argmin(values[:, rank - 1]))
    least = float(values[at, rank - 1])
    if least > NEAR:
        return ""
    squares = np.add.reduceat(shares[at, :, rank - 1] ** 2, tree.loop_row_starts[:-1])
    return (
        f"before that the loop {model.loop_names[int(np.argmax(squares))]!r} was near a singular posture, in which its"
        f" rows depend on each other (singular values of the loops' rows down to {least:.1g} of the largest), and past"
        " which the motion is ill-conditioned: keep a joint of the loop away from there with lgsim.with_stops or"
        " model.lock, or start elsewhere"
    )
