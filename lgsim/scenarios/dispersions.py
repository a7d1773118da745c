"""The dispersions of a study file: what varies from sample to sample, as distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from lgsim.montecarlo import (
    Distribution,
    Haar,
    InertiaDispersion,
    LogNormal,
    MassDispersion,
    Normal,
    PoseDispersion,
    Rollout,
    TangentNormal,
    Uniform,
)
from lgsim.multibody import Model, inertia
from lgsim.multibody.model import DRIVES
from lgsim.support.toml_table import Table, shown

SIGNED = ("rest", "lower", "upper")
"""The numbers of degrees of freedom that may be negative; all others may not."""
PLAIN = ("axes", "pitches", "mimic", "gravity")
"""Further arrays of numbers of a model."""
BODIES, POSES = ("masses", "inertias"), ("placements", "frames")
"""The keys of inertial parameters, and of poses."""
START = {"q": "q0", "v": "v0", "torque": "torques", "commands": "commands"}
"""The names that a rollout has for the numbers of the start and of the drives."""
MODULES = {"control": "control", "wind": "wrenches", "actuators": "actuators"}
"""The names that a rollout has for the tables of control, wind and actuators."""
FIXED = ("gusts", "t0", "dt", "heading")
"""The numbers of these that do not vary here."""
_SPREADS = ("std", "relative", "low", "high", "mean")


class Nominal(NamedTuple):
    """The numbers of a machine or of its start as they are without dispersion.

    Attributes:
        slices: The places of their parts by name, or None where they have no names.
        signed: Whether they may be negative.
        said: The noun for them in messages.
    """

    value: Float[np.ndarray, " ..."]
    slices: Mapping[str, slice] | None = None
    signed: bool = True
    said: str = "the value"


def read_dispersions(table: Table, rollout: Rollout) -> dict[str, Distribution]:
    """The distributions of ``[dispersions]`` by the names that a rollout has for the numbers that they vary.

    Raises:
        ScenarioError: with file, line and key.
    """
    model = rollout.model
    table.only(*START, *BODIES, *DRIVES, *PLAIN, *POSES, *MODULES)
    if all(name in table for name in BODIES):
        raise table.fault("masses", "expected either masses or inertias: both are the bodies' inertial parameters")
    found: dict[str, Distribution] = {}
    for name in table.values:
        if name in MODULES:
            found |= _of_module(table.table(name), MODULES[name], rollout)
        elif name in START:
            found[START[name]] = _start(table, name, rollout)
        else:
            found["model.inertias" if name in BODIES else f"model.{name}"] = _of_model(table, name, model)
    return found


def _start(table: Table, name: str, rollout: Rollout) -> Distribution:
    """The distribution of the configuration or velocity at the start, or of the constant joint forces."""
    model = rollout.model
    own = table.table(name)
    if name == "q":
        return _configuration(own, model, np.asarray(rollout.q0))
    if name == "torque" and rollout.torques is None:
        raise table.fault(name, "there is none: give torque in [control]")
    if name == "torque" and rollout.torques is not None and rollout.torques.ndim > 1:
        raise table.fault(name, "the joint forces of [control] are those of a file, which change with time")
    if name == "commands":
        if rollout.actuators is None or rollout.commands is None:
            raise table.fault(name, 'there are none: give law = "actuators" in [control]')
        places = {actuator: slice(i, i + 1) for i, actuator in enumerate(rollout.actuators.names)}
        return _numbers(own, Nominal(np.asarray(rollout.commands), places))
    value = rollout.v0 if name == "v" else rollout.torques
    return _numbers(own, Nominal(np.asarray(value), model.v_slices))


def _configuration(table: Table, model: Model, q: Float[np.ndarray, " nq"]) -> Distribution:
    """The distribution of configurations: normal in the tangent space at the start, or of uniform attitudes."""
    table.only("std", "covariance", "uniform_attitudes")
    if len(table.values) != 1:
        raise table.fault(None, "expected one of std, covariance, uniform_attitudes")
    about = jnp.asarray(q, model.dtype)
    if "uniform_attitudes" in table:
        with table.at("uniform_attitudes"):
            return Haar(model, table.of("uniform_attitudes", list, []), about)
    if "covariance" in table:
        rows = table.rows("covariance", model.nv)
        with table.at("covariance"):
            return TangentNormal(model, about, covariance=rows)
    std = _spread(table, "std", Nominal(np.zeros(model.nv), model.v_slices))
    return TangentNormal(model, about, jnp.asarray(std, model.dtype))


def _of_model(table: Table, name: str, model: Model) -> Distribution:
    """The distribution of some numbers of the machine."""
    own = table.table(name)
    if name == "inertias":
        return _inertias(own, model)
    if name == "masses":
        return _masses(own, model)
    value = np.asarray(getattr(model, name))
    if name in POSES:
        own.only("position", "rotation")
        each = [own.number(key, 0.0, least=0.0) for key in ("position", "rotation")]
        return PoseDispersion(value, np.repeat(each, 3))
    signed = name in SIGNED or name in PLAIN
    return _numbers(own, Nominal(value, model.v_slices if name in DRIVES else None, signed, f"the machine's {name}"))


def _of_module(table: Table, root: str, rollout: Rollout) -> dict[str, Distribution]:
    """The distributions of numbers of the control, the wind or the actuators, by their names such as "control.damping".

    Args:
        root: The name that a rollout has for what the numbers belong to.
    """
    module: Any = getattr(rollout, root)
    if module is None and root == "actuators":
        raise table.fault(None, 'there are none: give law = "actuators" in [control]')
    if module is None:
        raise table.fault(None, f"there is none: give a table [{table.path[-1]}]")
    paths = [name.removeprefix(f"{root}.") for name in rollout.names() if name.startswith(f"{root}.")]
    table.only(*(path for path in paths if path not in FIXED))
    found = {}
    for path in table.values:
        value = module
        for part in path.split("."):
            value = value[int(part)] if part.isdigit() else getattr(value, part)
        value = np.asarray(value)
        # places, speeds of the air and targets may be negative, gains may not
        signed = root == "actuators" or value.ndim > 0
        found[f"{root}.{path}"] = _numbers(table.table(path), Nominal(value, signed=signed))
    return found


def _numbers(table: Table, own: Nominal) -> Distribution:
    """A distribution of independent numbers about those that are there.

    ``std`` is a normal distribution, ``relative`` a log-normal one of that relative standard deviation, ``low`` and
    ``high`` a uniform one.

    Raises:
        ScenarioError: the table says something else, or a distribution reaches below zero where none may.
    """
    table.only(*_SPREADS)
    kinds = [{"std"} & set(table.values), {"relative"} & set(table.values), {"low", "high"} & set(table.values)]
    if sum(map(bool, kinds)) != 1:
        raise table.fault(None, "expected one of std (normal), relative (log-normal), or low and high (uniform)")
    if "low" in table or "high" in table:
        return _uniform(table, own)
    mean = _spread(table, "mean", own, own.value) if "mean" in table else own.value
    if "relative" in table:
        spread = _spread(table, "relative", own)
        if np.any(mean < 0):
            raise table.fault("relative", f"{own.said} is negative; take std, or low and high")
        if not np.any((mean > 0) & (spread > 0)):
            raise table.fault("relative", f"{own.said} is zero, and so is any part of it; take low and high")
        return LogNormal(jnp.asarray(mean), spread)
    std = _spread(table, "std", own)
    if not own.signed and np.any(std > 0):
        raise table.fault("std", "a normal distribution has negative numbers; take relative, or low and high")
    return Normal(jnp.asarray(mean), std)


def _uniform(table: Table, own: Nominal) -> Distribution:
    """The uniform distribution between ``low`` and ``high``."""
    _both_ends(table)
    if "mean" in table:
        raise table.fault("mean", "not with low and high")
    ends = [_spread(table, key, own, own.value, signed=True) for key in ("low", "high")]
    if not own.signed and np.any(ends[0] < 0):
        raise table.fault("low", f"expected zero or more, got {ends[0].min():g}")
    if np.any(ends[1] < ends[0]):
        raise table.fault("high", "expected low to be at most high")
    return Uniform(*(jnp.asarray(end) for end in ends))


def _both_ends(table: Table) -> None:
    """Check that of ``low`` and ``high`` none stands alone: the other one would be the number of the machine.

    Raises:
        ScenarioError: one does.
    """
    for key, other in (("low", "high"), ("high", "low")):
        if key in table and other not in table:
            raise table.fault(key, f"expected low and high, got {key} alone")


def _spread(
    table: Table, key: str, own: Nominal, start: Float[np.ndarray, " ..."] | None = None, signed: bool = False
) -> Float[np.ndarray, " ..."]:
    """The value of a key in the shape of the nominal numbers: one number for all, a list, or numbers by name.

    Args:
        own: The nominal numbers.
        start: The values of what has no name in the table; zero by default.
        signed: Whether the values may be negative; those of ``mean`` always may.
    """
    like, value = own.value, table.values.get(key)
    begin = np.zeros(like.shape) if start is None else np.asarray(start)
    if value is None:
        return begin
    if isinstance(value, dict | list) and own.slices is not None:
        found, _ = table.by_joint(key, own.slices, begin)
    elif isinstance(value, list) and like.ndim == 1:
        found = table.vector(key, len(like))
    elif isinstance(value, dict | list):
        raise table.fault(key, f"expected a number{f' or {like.size} of them' * (like.ndim == 1)}, got {shown(value)}")
    else:
        found = np.full(like.shape, table.needed_number(key))
    found = np.asarray(found, like.dtype)
    if not signed and key != "mean" and np.any(found < 0):
        raise table.fault(key, f"expected zero or more, got {found.min():g}")
    return found


def _by_body(
    table: Table, key: str, names: Sequence[str], start: Float[np.ndarray, " bodies"]
) -> Float[np.ndarray, " bodies"]:
    """A number for each body: one for all, or ``{ body = number }`` for some; ``start`` for the others."""
    value = table.values.get(key)
    if not isinstance(value, dict):
        return start if value is None else np.full(len(names), table.needed_number(key))
    out, inner = start.copy(), table.table(key)
    for name in value:
        inner.known(name, name, names, "the name of a body")
        out[names.index(name)] = inner.needed_number(name)
    return out


def _masses(table: Table, model: Model) -> Distribution:
    """The distribution of the masses of bodies whose shapes stay."""
    table.only("relative", "low", "high")
    names, parameters = model.topology.body_names, np.asarray(model.inertias)
    _physical(table, names, parameters)
    own = parameters[:, 0]
    if "relative" in table:
        if len(table.values) > 1:
            raise table.fault(None, "expected either relative, or low and high")
        spread = _by_body(table, "relative", names, np.zeros(len(names)))
        with table.at("relative"):
            return MassDispersion(parameters, LogNormal(jnp.asarray(own), spread))
    if not table.values:
        raise table.fault(None, "expected relative, or low and high")
    _both_ends(table)
    low, high = (_by_body(table, key, names, own) for key in ("low", "high"))
    if np.any(low[own > 0] <= 0):
        raise table.fault("low", f"expected masses above zero, got {low[own > 0].min():g} kg")
    with table.at("low"):
        return MassDispersion(parameters, Uniform(jnp.asarray(low), jnp.asarray(high)))


_CHART = {"mass": slice(0, 1), "size": slice(1, 4), "shape": slice(4, 7), "center": slice(7, 10)}
"""For each key its entries among the ten numbers of ``Inertias``."""


def _inertias(table: Table, model: Model) -> Distribution:
    """The distribution of inertial parameters of bodies that can exist, about those of the machine or given ones."""
    table.only(*_CHART, "about")
    names, parameters = model.topology.body_names, np.array(model.inertias)
    given = table.table("about")
    for name in given.values:
        given.known(name, name, names, "the name of a body")
        parameters[names.index(name)] = _body(given.table(name))
    _physical(table, names, parameters)
    spread = np.zeros((len(names), 10))
    for key, part in _CHART.items():
        each = _by_body(table, key, names, np.zeros(len(names)))
        if np.any(each < 0):
            raise table.fault(key, f"expected zero or more, got {each.min():g}")
        spread[:, part] = each[:, None]
    return InertiaDispersion(jnp.asarray(parameters, model.dtype), spread)


def _body(table: Table) -> Float[np.ndarray, " 10"]:
    """The parameters of ``{ mass, center, inertia = [Ixx, Iyy, Izz, Ixy, Ixz, Iyz] }``, about the center of mass."""
    table.only("mass", "center", "inertia")
    mass, center = table.needed_number("mass"), table.point("center")
    found = table.need("inertia").vector("inertia", 3, 6)
    assert found is not None
    xx, yy, zz, xy, xz, yz = [*found, 0, 0, 0][:6]
    about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    body = np.asarray(inertia.parameters(jnp.asarray(mass), jnp.asarray(center), jnp.asarray(about)))
    if (wrong := inertia.defect(body)) is not None:
        raise table.fault("mass" if mass <= 0 else "inertia", f"the body {wrong}")
    return body


def _physical(table: Table, names: Sequence[str], parameters: Float[np.ndarray, "bodies 10"]) -> None:
    """Check that all bodies can exist.

    Raises:
        ScenarioError: one cannot.
    """
    for name, row in zip(names, parameters, strict=True):
        if (wrong := inertia.defect(row)) is not None:
            raise table.fault(None, f"the body {name!r} of the machine {wrong}; mend its file, or name it in about")
