"""Debugging: the first quantity of a motion that is not finite, and in reverse mode the first gradient that is not.

Callbacks look at the numbers, on the way forward at what each piece of the equations gives, backwards at the gradient
with respect to what it takes. They cost much; without them nothing is left in a program.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jax.core import Tracer

from lgsim.multibody.model import DRIVES, Model
from lgsim.multibody.topology import Topology
from lgsim.xla.gradient_probe import probe_gradient


class Place(NamedTuple):
    """What an array is, for words.

    Attributes:
        topology: Of the machine.
        what: Name of the quantity.
        kind: What its entries belong to, a key of ``_OWNERS``.
        through: The piece of the equations that it enters.
    """

    topology: Topology
    what: str
    kind: str
    through: str = ""


def check_finite(step: Array, t: Array, *found: tuple[Place, Array | None]) -> None:
    """On the way forward: an error that names the first of some arrays with an entry that is not finite.

    Raises:
        FloatingPointError: there is one; out of a compiled program as the end of the text of JAX's own error.
    """
    places, arrays = zip(*((place, array) for place, array in found if array is not None), strict=True)
    if any(isinstance(array, Tracer) for array in arrays):
        jax.debug.callback(partial(_forward, places), step, t, *arrays)
    else:
        _forward(places, step, t, *arrays)


def check_gradient_finite(place: Place, step: Array, t: Array, x: Array) -> Array:
    """x; in reverse mode an error where the gradient with respect to it is not finite."""
    return probe_gradient(_backward, place, x, step, t)


def check_model_gradient_finite(model: Model, step: Array, t: Array) -> Model:
    """``check_gradient_finite`` of all numbers of a model."""
    numbers = {f.name: getattr(model, f.name) for f in fields(Model) if f.name != "topology"}
    seen = {
        name: check_gradient_finite(Place(model.topology, name, name, "the model's numbers"), step, t, x)
        for name, x in numbers.items()
    }
    return Model(model.topology, **seen)


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """What the checks found in compiled programs as a ``FloatingPointError`` with nothing but its text."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        _, mark, text = str(error).rpartition(f"{FloatingPointError.__name__}: ")
        if not mark:
            raise
        raise FloatingPointError(text.splitlines()[0]) from None


def _forward(places: tuple[Place, ...], step: Any, t: Any, *arrays: Any) -> None:
    for place, array in zip(places, arrays, strict=True):
        text = _blame(place, np.asarray(array))
        if text:
            raise FloatingPointError(f"step {int(step)} (t = {float(t):.6g} s): {text}")


def _backward(place: Place, gradient: Any, step: Any, t: Any) -> np.ndarray:
    gradient = np.asarray(gradient)
    text = _blame(place, gradient)
    if text:
        steps, times = np.ravel(step), np.ravel(t)
        raise FloatingPointError(
            f"reverse mode, step {int(steps[0])} (t = {float(times[0]):.6g} s): the gradient with respect to {text},"
            f" through {place.through}"
        )
    return gradient


def _blame(place: Place, array: np.ndarray) -> str:
    """The first entry that is not finite, in words; empty where all are."""
    bad = np.argwhere(~np.isfinite(array))
    if not len(bad):
        return ""
    owner = _OWNERS[place.kind](place.topology, tuple(int(i) for i in bad[0]))
    return f"{place.what}{owner} is {array[tuple(bad[0])]}"


def _joint(tree: Topology, joint: int) -> str:
    return f" of joint {tree.joint_names[joint]!r}, body {tree.body_names[joint]!r},"


def _of_q(tree: Topology, at: tuple[int, ...]) -> str:
    return _joint(tree, next(j for j in range(tree.bodies) if at[-1] < tree.q_starts[j + 1]))


def _of_v(tree: Topology, at: tuple[int, ...]) -> str:
    return _joint(tree, next(j for j in range(tree.bodies) if at[-1] < tree.v_starts[j + 1]))


def _of_state(tree: Topology, at: tuple[int, ...]) -> str:
    i = at[-1]
    if i < tree.nq:
        return f", configuration{_of_q(tree, (i,))}"
    what = ", velocity" if i < tree.nq + tree.nv else ", force of the drive"
    return what + _of_v(tree, ((i - tree.nq) % tree.nv,))


def _of_saved(tree: Topology, at: tuple[int, ...]) -> str:
    return f" number {at[-2]}{_of_state(tree, at)}"


def _of_drive(tree: Topology, at: tuple[int, ...]) -> str:
    return f", {DRIVES[at[-1]]}{_of_v(tree, at[:-1])}"


_OWNERS = {
    "q": _of_q,
    "v": _of_v,
    "state": _of_state,
    "saved": _of_saved,
    "wrenches": lambda tree, at: f" on body {tree.body_names[at[-2]]!r}",
    "placements": lambda tree, at: _joint(tree, at[-3]),
    "screws": lambda tree, at: _joint(tree, int(tree.row_joint[at[-2]])),
    "inertias": lambda tree, at: f" of body {tree.body_names[at[-2]]!r}",
    "drives": _of_drive,
    "mimic": lambda tree, at: _joint(tree, at[-2]),
    "frames": lambda tree, at: f", frame {tree.frame_names[at[-3]]!r}",
    "gravity": lambda tree, at: "",
}
"""Of a topology and an entry the words for what the entry belongs to; the leading axes are batches."""
