"""Descriptions of arguments and results of functions of a model: order, units and frames."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lgsim._compile.programs.targets import Described
from lgsim.dynamics.coriolis import coriolis_matrix
from lgsim.dynamics.forces import bias_forces, gravity_forces
from lgsim.dynamics.forward_dynamics import forward_dynamics, forward_dynamics_derivatives
from lgsim.dynamics.inverse_dynamics import inverse_dynamics, inverse_dynamics_derivatives
from lgsim.dynamics.kinematics import forward_kinematics
from lgsim.dynamics.mass_matrix import mass_matrix
from lgsim.multibody.model import Model
from lgsim.support.printable import comment_name

FORCES = "joint forces, N m or N, in the order of v"
_BY_Q = "with respect to q along the tangent: column j is the change with component j of the velocity"


class Parameter(NamedTuple):
    """A parameter that many functions share.

    Attributes:
        shape: Its shape for a model.
        about: Its description for a model, in lines.
    """

    shape: Callable[[Model], tuple[int, ...]]
    about: Callable[[Model], tuple[str, ...]]


def _velocities(model: Model) -> tuple[int, ...]:
    return (model.nv,)


PARAMETERS: dict[str, Parameter] = {
    "q": Parameter(lambda model: (model.nq,), lambda model: ("configuration:", *coordinates(model))),
    "v": Parameter(_velocities, lambda model: ("velocities, rad/s or m/s:", *velocities(model))),
    "a": Parameter(_velocities, lambda model: ("accelerations, the componentwise derivatives of v",)),
    "tau": Parameter(_velocities, lambda model: (FORCES,)),
    "dt": Parameter(lambda model: (), lambda model: ("step size, s",)),
    "t": Parameter(lambda model: (), lambda model: ("time, s",)),
}
"""The parameters of functions whose shape is known, by name."""

RESULTS: dict[Any, tuple[Described, ...]] = {
    inverse_dynamics: (Described("tau", (FORCES,)),),
    gravity_forces: (Described("tau", (FORCES,)),),
    bias_forces: (Described("tau", (FORCES,)),),
    forward_dynamics: (Described("a", ("accelerations, the componentwise derivatives of v",)),),
    mass_matrix: (Described("M", ("mass matrix of the kinetic energy v^T M v / 2, kg m^2, kg m or kg",)),),
    coriolis_matrix: (Described("C", ("Coriolis matrix: the Coriolis forces are C v",)),),
    forward_dynamics_derivatives: (
        Described("a", ("accelerations",)),
        Described("dq", (f"derivatives of a {_BY_Q}",)),
        Described("dv", ("derivatives of a with respect to v",)),
        Described("dtau", ("derivatives of a with respect to tau: the inverse mass matrix",)),
    ),
    inverse_dynamics_derivatives: (
        Described("tau", (FORCES,)),
        Described("dq", (f"derivatives of tau {_BY_Q}",)),
        Described("dv", ("derivatives of tau with respect to v",)),
        Described("da", ("derivatives of tau with respect to a: the mass matrix",)),
    ),
}
"""The results of functions that do not name them by the fields of a NamedTuple."""


def function_results(f: Callable, model: Model | None, shape: Any) -> tuple[Described, ...]:
    """The results of a function, from ``RESULTS`` or from the names of its fields.

    Args:
        shape: The structure of its result.
    """
    if f is forward_kinematics and model is not None:
        lines = [f"T[{i}]  {comment_name(name)}" for i, name in enumerate(model.frame_names)]
        return (Described("T", ("poses of the frames in the world, homogeneous matrices, m:", *lines)),)
    found = RESULTS.get(f)
    if found is not None:
        return found
    fields = getattr(shape, "_fields", None)
    if fields is not None:
        return tuple(map(Described, fields))
    if isinstance(shape, tuple):
        return tuple(Described(f"result{i}") for i in range(len(shape)))
    return (Described("result"),)


def parameters(f: Callable, after: int = 1) -> list[str]:
    """The names of a function's parameters after the model, without those with a default."""
    given = list(inspect.signature(f).parameters.values())[after:]
    return [p.name for p in given if p.default is p.empty and p.kind is not p.VAR_KEYWORD]


def coordinates(model: Model) -> list[str]:
    """The part of q of each joint."""
    return _joints(model, "q", model.q_slices)


def velocities(model: Model) -> list[str]:
    """The part of v of each joint."""
    return _joints(model, "v", model.v_slices)


def _joints(model: Model, letter: str, slices: Any) -> list[str]:
    lines, tree = [], model.topology
    for i, (name, joint, mimic) in enumerate(zip(model.joint_names, tree.joints, tree.mimics, strict=True)):
        shown = comment_name(name)
        if mimic is not None:
            ratio, offset = (float(x) for x in np.asarray(model.mimic)[i])
            if letter == "q":
                lines.append(
                    f"(none)  {shown} mimics {comment_name(model.joint_names[mimic])}: {ratio:g} q + {offset:g}"
                )
            continue
        part = slices[name]
        places = (
            f"{letter}[{part.start}]" if part.stop - part.start == 1 else f"{letter}[{part.start}..{part.stop - 1}]"
        )
        about = (type(joint).__doc__ or "").partition("\n")[0].replace("``", "").rstrip(".")
        lines.append(f"{places}  {shown} ({about})" if letter == "q" else f"{places}  {shown}")
    return lines
