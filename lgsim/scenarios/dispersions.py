"""Random inputs of a Monte Carlo study: distributions from the table `[dispersions]` of a study file."""

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
"""Parameters of degrees of freedom that may be negative; the others are nonnegative."""
PLAIN = ("axes", "pitches", "mimic", "gravity")
"""Other array parameters of a model."""
BODIES, POSES = ("masses", "inertias"), ("placements", "frames")
"""Keys of inertial parameters, and of poses."""
START = {"q": "q0", "v": "v0", "torque": "torques", "commands": "commands"}
"""Names in a rollout of the initial state and the actuation."""
MODULES = {"control": "control", "wind": "wrenches", "actuators": "actuators"}
"""Names in a rollout of the tables of controller, wind and actuators."""
FIXED = ("gusts", "t0", "dt", "heading")
"""Values of these modules that cannot be random here."""
_LARGEST = 1.0
"""The largest relative deviation of inertial parameters: a larger one is usually meant in percent."""
_SPREADS = ("std", "relative", "low", "high", "mean")


class Nominal(NamedTuple):
    """Nominal values of model parameters or of an initial state.

    Attributes:
        slices: Slice of each named part; None if the parts have no names.
        signed: True if the values may be negative.
        said: Noun for the values in messages.
    """

    value: Float[np.ndarray, " ..."]
    slices: Mapping[str, slice] | None = None
    signed: bool = True
    said: str = "the value"


def read_dispersions(table: Table, rollout: Rollout) -> dict[str, Distribution]:
    """The distributions of `[dispersions]`, by the names that a rollout gives to the random values.

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
    """The distribution of the initial configuration, the initial velocity, the joint forces or the commands."""
    model = rollout.model
    own = table.table(name)
    if name == "q":
        return _configuration(own, model, np.asarray(rollout.q0))
    if name == "torque" and rollout.torques is None:
        raise table.fault(name, "expected constant joint forces: set torque in [control]")
    if name == "torque" and rollout.torques is not None and rollout.torques.ndim > 1:
        raise table.fault(name, "expected constant joint forces, got a file of joint forces in [control]")
    if name == "commands":
        if rollout.actuators is None or rollout.commands is None:
            raise table.fault(name, 'expected actuators: set law = "actuators" in [control]')
        places = {actuator: slice(i, i + 1) for i, actuator in enumerate(rollout.actuators.names)}
        return _numbers(own, Nominal(np.asarray(rollout.commands), places))
    value = rollout.v0 if name == "v" else rollout.torques
    return _numbers(own, Nominal(np.asarray(value), model.v_slices))


def _configuration(table: Table, model: Model, q: Float[np.ndarray, " nq"]) -> Distribution:
    """The distribution of configurations: normal in the tangent space of the nominal one, or with uniform attitudes."""
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
    """The distribution of parameters of the model."""
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
    return _numbers(own, Nominal(value, model.v_slices if name in DRIVES else None, signed, f"the model's {name}"))


def _of_module(table: Table, root: str, rollout: Rollout) -> dict[str, Distribution]:
    """The distributions of parameters of the controller, the wind or the actuators, such as "control.damping".

    Args:
        root: Name of the module in a rollout.
    """
    module: Any = getattr(rollout, root)
    if module is None and root == "actuators":
        raise table.fault(None, 'expected actuators: set law = "actuators" in [control]')
    if module is None:
        raise table.fault(None, f"expected a table [{table.path[-1]}], which is missing")
    paths = [name.removeprefix(f"{root}.") for name in rollout.names() if name.startswith(f"{root}.")]
    table.only(*(path for path in paths if path not in FIXED))
    found = {}
    for path in table.values:
        value = module
        for part in path.split("."):
            value = value[int(part)] if part.isdigit() else getattr(value, part)
        value = np.asarray(value)
        # positions, air speeds and targets may be negative, gains may not
        signed = root == "actuators" or value.ndim > 0
        found[f"{root}.{path}"] = _numbers(table.table(path), Nominal(value, signed=signed))
    return found


def _numbers(table: Table, own: Nominal) -> Distribution:
    """Independent distributions about nominal values.

    ``std`` is a normal distribution, ``relative`` a log-normal one with that ratio of standard deviation to mean,
    ``low`` and ``high`` a uniform one.

    Raises:
        ScenarioError: the table has other keys, or a distribution includes negative values where they are invalid.
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
            raise table.fault("relative", f"{own.said} is negative; use std, or low and high")
        if not np.any((mean > 0) & (spread > 0)):
            raise table.fault(
                "relative", f"{own.said} is zero, so a relative deviation has no effect; use low and high"
            )
        return LogNormal.with_mean(mean, spread)
    std = _spread(table, "std", own)
    if not own.signed and np.any(std > 0):
        raise table.fault("std", "a normal distribution includes negative values; use relative, or low and high")
    return Normal(jnp.asarray(mean), std)


def _uniform(table: Table, own: Nominal) -> Distribution:
    """Uniform distribution between ``low`` and ``high``."""
    _both_ends(table)
    if "mean" in table:
        raise table.fault("mean", "not allowed with low and high")
    ends = [_spread(table, key, own, own.value, signed=True) for key in ("low", "high")]
    if not own.signed and np.any(ends[0] < 0):
        raise table.fault("low", f"expected nonnegative values, got {ends[0].min():g}")
    if np.any(ends[1] < ends[0]):
        raise table.fault("high", "expected low to be at most high")
    return Uniform(*(jnp.asarray(end) for end in ends))


def _both_ends(table: Table) -> None:
    """Check that ``low`` and ``high`` occur together.

    Raises:
        ScenarioError: one of them is missing.
    """
    for key, other in (("low", "high"), ("high", "low")):
        if key in table and other not in table:
            raise table.fault(key, f"expected low and high, got only {key}")


def _spread(
    table: Table, key: str, own: Nominal, start: Float[np.ndarray, " ..."] | None = None, signed: bool = False
) -> Float[np.ndarray, " ..."]:
    """The value of a key in the shape of the nominal values: a number for all, a list, or numbers by name.

    Args:
        own: Nominal values.
        start: Values of names that are not in the table; zero by default.
        signed: True if the values may be negative; those of ``mean`` always may.
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
        raise table.fault(key, f"expected nonnegative values, got {found.min():g}")
    return found


def _by_body(
    table: Table, key: str, names: Sequence[str], start: Float[np.ndarray, " bodies"]
) -> Float[np.ndarray, " bodies"]:
    """A value for each body: one number for all, or ``{ body = number }`` for some and ``start`` for the others."""
    value = table.values.get(key)
    if not isinstance(value, dict):
        return start if value is None else np.full(len(names), table.needed_number(key))
    out, inner = start.copy(), table.table(key)
    for name in value:
        inner.known(name, name, names, "the name of a body")
        out[names.index(name)] = inner.needed_number(name)
    return out


def _masses(table: Table, model: Model) -> Distribution:
    """The distribution of masses; the shapes of the bodies stay."""
    table.only("relative", "low", "high")
    names, parameters = model.topology.body_names, np.asarray(model.inertias)
    _physical(table, names, parameters)
    own = parameters[:, 0]
    if "relative" in table:
        if len(table.values) > 1:
            raise table.fault(None, "expected either relative, or low and high")
        spread = _by_body(table, "relative", names, np.zeros(len(names)))
        with table.at("relative"):
            return MassDispersion(parameters, LogNormal.with_mean(own, spread))
    if not table.values:
        raise table.fault(None, "expected relative, or low and high")
    _both_ends(table)
    low, high = (_by_body(table, key, names, own) for key in ("low", "high"))
    if np.any(low[own > 0] <= 0):
        raise table.fault("low", f"expected positive masses, got {low[own > 0].min():g} kg")
    with table.at("low"):
        return MassDispersion(parameters, Uniform(jnp.asarray(low), jnp.asarray(high)))


_CHART = {"mass": slice(0, 1), "size": slice(1, 4), "shape": slice(4, 7), "center": slice(7, 10)}
"""Entries of each key among the ten parameters of ``Inertias``."""


def _inertias(table: Table, model: Model) -> Distribution:
    """The distribution of physically consistent inertial parameters, about those of the model or given ones."""
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
            raise table.fault(key, f"expected nonnegative values, got {each.min():g}")
        if np.any(each > _LARGEST):
            raise table.fault(
                key, f"expected relative deviations of at most {_LARGEST:g}, got {each.max():g}; 5 % is 0.05"
            )
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
    """Check that the inertial parameters are physically consistent.

    Raises:
        ScenarioError: those of a body are not.
    """
    for name, row in zip(names, parameters, strict=True):
        if (wrong := inertia.defect(row)) is not None:
            raise table.fault(None, f"the body {name!r} of the model {wrong}; fix its file, or name it in about")
