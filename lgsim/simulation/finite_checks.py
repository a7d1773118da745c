"""Debugging: the first quantity of a motion that is not finite, and the first such gradient in reverse mode.

Callbacks check the values of each part of the equations in the forward pass, and the gradients with respect to its
arguments in the backward pass. They are expensive; without them compiled programs contain no trace of the checks.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Shaped

from lgsim._compile.xla.host_calls import probe_gradient
from lgsim.multibody.model import DRIVES, Model
from lgsim.multibody.topology import Topology
from lgsim.support.check import is_traced


class CheckedQuantity(NamedTuple):
    """Description of a checked array, for messages.

    Attributes:
        topology: The topology of the model, with the names of joints and bodies.
        kind: The kind of objects that the entries belong to, a key of ``_OWNERS``.
        equation: The part of the equations of which the quantity is an argument.
    """

    topology: Topology
    name: str
    kind: str
    equation: str = ""


def check_finite(
    step: Int[Array, ""], t: Float[Array, ""], *quantities: tuple[CheckedQuantity, Shaped[Array, ...] | None]
) -> None:
    """Check in the forward pass that all entries of some arrays are finite.

    Args:
        step: The index of the step, for the error.
        t: Its time, s.
        quantities: The arrays with their descriptions; those that are None are skipped.

    Raises:
        FloatingPointError: an entry is not finite; the message names the first one. From a compiled program JAX's own
            error is raised, whose message ends with it.
    """
    names, arrays = zip(*((name, array) for name, array in quantities if array is not None), strict=True)
    if is_traced(arrays):
        jax.debug.callback(partial(_check_values, names), step, t, *arrays)
    else:
        _check_values(names, step, t, *arrays)


def check_gradient_finite(
    quantity: CheckedQuantity, step: Int[Array, ""], t: Float[Array, ""], x: Float[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """The unchanged array x; in reverse mode an error is raised if the gradient with respect to it is not finite.

    Args:
        step: The index of the step, for the error.
        t: Its time, s.
    """
    return probe_gradient(_check_gradient, quantity, x, step, t)


def check_model_gradient_finite(model: Model, step: Int[Array, ""], t: Float[Array, ""]) -> Model:
    """The model with ``check_gradient_finite`` on all its parameters."""
    found = {f.name: getattr(model, f.name) for f in fields(Model) if f.name != "topology"}
    numbers = {name: x for name, x in found.items() if x is not None}
    checked = {
        name: check_gradient_finite(CheckedQuantity(model.topology, name, name, "the model's numbers"), step, t, x)
        for name, x in numbers.items()
        if x is not None
    }
    return Model(model.topology, **checked)


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """A context that converts an error of the checks in a compiled program to a ``FloatingPointError``.

    Raises:
        FloatingPointError: a check failed in a compiled program.
    """
    try:
        with _without_logged_tracebacks():
            yield
    except jax.errors.JaxRuntimeError as error:
        _, mark, text = str(error).rpartition(f"{FloatingPointError.__name__}: ")
        if not mark:
            raise
        raise FloatingPointError(text.splitlines()[0]) from None


@contextlib.contextmanager
def _without_logged_tracebacks() -> Iterator[None]:
    """A context in which JAX does not log the traceback of a failed callback, whose error is raised anyway."""

    def keeps(record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], FloatingPointError))

    loggers = [logging.getLogger(f"jax._src.{name}") for name in ("debugging", "callback")]
    for logger in loggers:
        logger.addFilter(keeps)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(keeps)


def _check_values(names: tuple[CheckedQuantity, ...], step: Any, t: Any, *arrays: Any) -> None:
    """Raise FloatingPointError for the first entry of the arrays that is not finite."""
    for name, array in zip(names, arrays, strict=True):
        text = _describe_fault(name, np.asarray(array))
        if text:
            raise FloatingPointError(f"step {int(step)} (t = {float(t):.6g} s): {text}")


def _check_gradient(quantity: CheckedQuantity, gradient: Any, step: Any, t: Any) -> np.ndarray:
    """The unchanged gradient; raises FloatingPointError for its first entry that is not finite."""
    gradient = np.asarray(gradient)
    text = _describe_fault(quantity, gradient)
    if text:
        steps, times = np.ravel(step), np.ravel(t)
        raise FloatingPointError(
            f"reverse mode, step {int(steps[0])} (t = {float(times[0]):.6g} s): the gradient with respect to {text},"
            f" through {quantity.equation}"
        )
    return gradient


def _describe_fault(quantity: CheckedQuantity, array: Shaped[np.ndarray, ...]) -> str:
    """A description of the first entry that is not finite; empty if all are finite."""
    bad = np.argwhere(~np.isfinite(array))
    if not len(bad):
        return ""
    owner = _OWNERS[quantity.kind](quantity.topology, tuple(int(i) for i in bad[0]))
    return f"{quantity.name}{owner} is {array[tuple(bad[0])]}"


def _joint(tree: Topology, joint: int) -> str:
    """A description of a joint and its body, by their index in the topology."""
    return f" of joint {tree.joint_names[joint]!r}, body {tree.body_names[joint]!r},"


def _owner_of_q(tree: Topology, at: tuple[int, ...]) -> str:
    return _joint(tree, next(j for j in range(tree.bodies) if at[-1] < tree.q_starts[j + 1]))


def _owner_of_v(tree: Topology, at: tuple[int, ...]) -> str:
    return _joint(tree, next(j for j in range(tree.bodies) if at[-1] < tree.v_starts[j + 1]))


def _owner_of_state(tree: Topology, at: tuple[int, ...]) -> str:
    i = at[-1]
    if i < tree.nq:
        return f", configuration{_owner_of_q(tree, (i,))}"
    if i >= tree.nq + tree.nv:
        return f", state {i - tree.nq - tree.nv} of the actuators"
    return ", velocity" + _owner_of_v(tree, (i - tree.nq,))


def _owner_of_saved(tree: Topology, at: tuple[int, ...]) -> str:
    return f" number {at[-2]}{_owner_of_state(tree, at)}"


def _owner_of_drive(tree: Topology, at: tuple[int, ...]) -> str:
    return f", {DRIVES[at[-1]]}{_owner_of_v(tree, at[:-1])}"


def _owner_of_contact(tree: Topology, at: tuple[int, ...]) -> str:
    contact = tree.contacts[at[-2]]
    return f", {(*contact.columns, *[''] * (at[-1] + 1))[at[-1]]} of the contact {contact.name!r}"


_OWNERS = {
    "q": _owner_of_q,
    "v": _owner_of_v,
    "state": _owner_of_state,
    "saved": _owner_of_saved,
    "wrenches": lambda tree, at: f" on body {tree.body_names[at[-2]]!r}",
    "placements": lambda tree, at: _joint(tree, at[-3]),
    "screws": lambda tree, at: _joint(tree, int(tree.row_joint[at[-2]])),
    "inertias": lambda tree, at: f" of body {tree.body_names[at[-2]]!r}",
    "drives": _owner_of_drive,
    "mimic": lambda tree, at: _joint(tree, at[-2]),
    "frames": lambda tree, at: f", frame {tree.frame_names[at[-3]]!r}",
    "gravity": lambda tree, at: "",
    "contacts": _owner_of_contact,
    "heights": lambda tree, at: f" number {at[-1]}",
    "loops": lambda tree, at: f", {tree.loop_number(at[-1])},",
    "commands": lambda tree, at: f" number {at[-1]}",
    "actuators": lambda tree, at: f" number {at[-1]}",
}
"""For each kind a function of a topology and an entry's indices that returns a description of the entry's owner."""
