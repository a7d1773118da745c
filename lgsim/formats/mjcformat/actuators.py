"""Actuators of an MJCF file: motors, servos, muscles and others, with gears, couplings, filters and ranges."""

from __future__ import annotations

import os
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from lgsim.actuators import Actuators, AffineForce, Muscle, Saturation, Stage, Transmission
from lgsim.actuators.activation import Activation
from lgsim.actuators.actuators import ActuatorSum
from lgsim.formats.mjcformat import motors
from lgsim.formats.mjcformat.body_forces import body_forces
from lgsim.formats.mjcformat.compilation import CompiledFile, compile_file
from lgsim.formats.mjcformat.joints import BALL, FREE, SPEEDS, joint_chain
from lgsim.formats.mjcformat.motors import command_ranges, commands_of, kind_of
from lgsim.formats.mjcformat.tendons import coupling_row, is_spatial, passive_springs, tendon_fault, tendon_paths
from lgsim.formats.report import Finding
from lgsim.multibody.model import Model

_NOT_REPRESENTED = "is not represented"
_OTHER = (0.75, 1.05, 0.0, 0.0, 0.5, 1.6, 1.5, 1.3, 1.2)
"""Numbers of a muscle for actuators that are none, so that no curve of theirs is singular."""


def read_mjcf_actuators(
    model: Model, path: str | os.PathLike[str] | None = None, *, text: str | None = None, stops: float | None = None
) -> tuple[Actuators | ActuatorSum | None, tuple[Finding, ...]]:
    """The actuators of an MJCF file for its model, and findings about actuators that are not represented.

    Commands are MuJoCo's ``ctrl``, in the order of the file without the actuators that are not represented. Supported
    are ``motor``, ``position``, ``velocity``, ``intvelocity``, ``damper``, ``cylinder``, ``muscle``, ``dcmotor``, and
    ``general`` with fixed or affine gain, no or affine bias, and the dynamics none, integrator, filter and filterexact,
    on hinges, slides, sites and tendons, and ``orientation`` of ball joints; gear, ctrlrange, forcerange, actrange and
    the joints' ``actuatorfrcrange``. ``filterexact`` has the equation of ``filter``. Actuators with several commands
    have one name for each, "name:vel". Not represented are adhesion, slider-cranks, plugins, delays, ``pid``, limits of
    the rate of a command (slewmax), and actuators of the linear velocity of a free joint.

    Tendons' springs, dampers and dry friction, the polynomial parts of those of hinges and slides, ``gravcomp`` and the
    forces of a fluid (``density``, ``viscosity``), which the model does not have, are further terms without commands.

    Args:
        model: The model of the file, from ``load_mjcf``.
        text: The MJCF itself instead of a path.
        stops: See ``load_actuators``; the inertia at a tendon's stop is that at ``qpos0``.

    Returns:
        Actuators and springs, or None if there are none; findings.

    Raises:
        FileError, ImportError, TypeError: see ``load_mjcf``.
        ValueError: the model lacks a joint or a site of the file.

    Source: MuJoCo's documentation, chapter "Computation", section "Actuation model".
    """
    file = compile_file(path, text)
    faults = faults_of_actuators(file)
    used = [i for i in range(len(file.names["actuator"])) if i not in faults]
    remarks = [file.finding("actuator", i, text) for i, text in faults.items()]
    springs = passive_springs(file, joint_places(file, model), model, stops)
    terms: list[Actuators] = [*([] if springs is None else [springs]), *body_forces(file, model)]
    if used and file.enabled("ACTUATION"):
        terms = [_term(file, list(run), model) for _, run in groupby(used, partial(kind_of, file))] + terms
    found = ActuatorSum(tuple(terms)) if len(terms) > 1 else next(iter(terms), None)
    return found, tuple(remarks)


def _term(file: CompiledFile, used: list[int], model: Model) -> Actuators:
    """Actuators of one kind that follow each other in the file, so that the commands are in its order."""
    kind, at = kind_of(file, used[0]), np.array(used)
    if kind[:1] == ("orientation",):
        return motors.orientation_servo(file, used[0], model)
    if kind:
        before, after = motors.motor_stages(file, used, model)
        stages = [*before, *_saturation(_force_limits(file, at), model), *after]
    else:
        stages = _stages(file, at, model)
    names = [name for i in used for name in commands_of(file, i).values()]
    return Actuators(_transmission(file, at, model), *stages, names=names)


def faults_of_actuators(file: CompiledFile) -> dict[int, str]:
    """Reasons why actuators are not represented, by actuator index."""
    found = {i: text for i in range(len(file.names["actuator"])) if (text := _fault(file, i))}
    seen: dict[int, int] = {}
    run, last = 0, None
    for i in range(len(file.names["actuator"])):
        kind, bounded = kind_of(file, i), _bounded_joints(file, i)
        own = run + (kind != last)
        if i not in found and any(seen.get(joint, own) != own for joint in bounded):
            found[i] = f"{_NOT_REPRESENTED}: it shares a joint with actuatorfrcrange with one of another kind"
        if i not in found:
            run, last, seen = own, kind, seen | dict.fromkeys(bounded, own)
    return found


def _bounded_joints(file: CompiledFile, i: int) -> set[int]:
    """The joints with a range of the force of all actuators on which an actuator may act."""
    model, kinds, target = file.model, file.mujoco.mjtTrn, int(file.model.actuator_trnid[i, 0])
    limited = {*np.flatnonzero(model.jnt_actfrclimited).tolist()}
    if int(model.actuator_trntype[i]) in (int(kinds.mjTRN_JOINT), int(getattr(kinds, "mjTRN_SO3", -1))):
        return limited & {target}
    return limited


def _fault(file: CompiledFile, i: int) -> str:
    """The reason why an actuator is not represented; "" if it is."""
    model, kinds = file.model, file.mujoco
    dyn, gain, bias = (int(x[i]) for x in (model.actuator_dyntype, model.actuator_gaintype, model.actuator_biastype))
    if kind := kind_of(file, i):
        text = motors.fault_of_special(file, i)
        text = f"{_NOT_REPRESENTED}: {text}" if text else _fault_of_motor(file, i)
        uses_length = bool(kind[-1] or np.any(model.actuator_gainprm[i, 4:6]))
        return text or ("" if kind[0] == "orientation" else _fault_of_transmission(file, i, uses_length))
    if _entry(model, "actuator_ctrlnum", i, 1) != 1 or _entry(model, "actuator_outnum", i, 1) != 1:
        return f"{_NOT_REPRESENTED}: it has several commands or forces"
    if _is_muscle(file)[i]:
        return _fault_of_motor(file, i) or _fault_of_muscle(file, i)
    known = {
        "dynamics": (dyn, [kinds.mjtDyn.mjDYN_NONE, *_states_of(kinds)]),
        "gain": (gain, [kinds.mjtGain.mjGAIN_FIXED, kinds.mjtGain.mjGAIN_AFFINE]),
        "bias": (bias, [kinds.mjtBias.mjBIAS_NONE, kinds.mjtBias.mjBIAS_AFFINE]),
    }
    for what, (kind, fine) in known.items():
        if kind not in map(int, fine):
            return f"{_NOT_REPRESENTED}: its {what} is not supported"
    if _entry(model, "actuator_plugin", i, -1) >= 0:
        return f"{_NOT_REPRESENTED}: it is a plugin"
    if fault := _fault_of_motor(file, i):
        return fault
    if int(dyn) in map(int, _states_of(kinds)[:2]) and not model.actuator_dynprm[i, 0] > 0:
        return f"{_NOT_REPRESENTED}: its filter has no time constant"
    return _fault_of_transmission(file, i, bool(_uses_length(file, i)))


def _fault_of_motor(file: CompiledFile, i: int) -> str:
    """The reason why an actuator of any kind but a muscle is not represented; "" if it is."""
    model = file.model
    if int(getattr(model.opt, "disableactuator", 0)) >> int(model.actuator_group[i]) & 1:
        return f"{_NOT_REPRESENTED}: its group is disabled"
    several = _entry(model, "actuator_actnum", i, 0) > 1 and not kind_of(file, i)
    if several or np.any(_entry(model, "actuator_delay", i, 0)):
        return f"{_NOT_REPRESENTED}: it has a delay or several activations"
    # a DC motor's current of the next step is that of the continuous one
    if model.actuator_dyntype[i] and _entry(model, "actuator_actearly", i, 0) and not kind_of(file, i):
        return f"{_NOT_REPRESENTED}: its force uses the activation of the next step (actearly)"
    if any(np.any(_entry(model, f"actuator_{name}", i, 0)) for name in ("damping", "dampingpoly", "armature")):
        return f"{_NOT_REPRESENTED}: it has damping or armature of its own"
    return ""


def _fault_of_muscle(file: CompiledFile, i: int) -> str:
    """The reason why a muscle is not represented; "" if it is."""
    model = file.model
    own, times = _MuscleNumbers(*model.actuator_gainprm[i, :9]), model.actuator_dynprm[i, :3]
    extent = model.actuator_lengthrange[i, 1] - model.actuator_lengthrange[i, 0]
    if not np.array_equal(model.actuator_gainprm[i, :9], model.actuator_biasprm[i, :9]):
        return f"{_NOT_REPRESENTED}: its active and passive forces have different parameters"
    if model.actuator_actlimited[i] and not (model.actuator_actrange[i, 0] <= 0 and model.actuator_actrange[i, 1] >= 1):
        return f"{_NOT_REPRESENTED}: its actrange is less than 0 to 1"
    proper = own.low < own.high and own.shortest < 1 < own.longest and own.eccentric > 1 and own.fastest > 0
    if not (proper and extent > 0 and times[0] > 0 and times[1] > 0):
        return f"{_NOT_REPRESENTED}: its length range, its curves or its time constants are empty"
    return _fault_of_transmission(file, i, True)


def _fault_of_transmission(file: CompiledFile, i: int, uses_length: bool) -> str:
    """The reason why the transmission of an actuator is not represented; "" if it is."""
    model, kinds = file.model, file.mujoco.mjtTrn
    kind, target = int(model.actuator_trntype[i]), int(model.actuator_trnid[i, 0])
    if kind in (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT)):
        joint = int(model.jnt_type[target])
        if joint in (FREE, BALL) and uses_length:
            return f"{_NOT_REPRESENTED}: its force depends on the position of a joint with a quaternion"
        if joint == FREE and (np.any(_gear(model, i)[:3]) or kind != int(kinds.mjTRN_JOINT)):
            return f"{_NOT_REPRESENTED}: it acts on a free joint along the world's axes"
        if joint == BALL and kind != int(kinds.mjTRN_JOINT):
            return f"{_NOT_REPRESENTED}: it acts on a ball joint about the parent's axes"
        return ""
    if kind == int(kinds.mjTRN_TENDON):
        others = (model.actuator_trntype == kind) & (model.actuator_trnid[:, 0] == target)
        if _tendon_limits(model, target) is not None and np.sum(others) > 1:
            return f"{_NOT_REPRESENTED}: it shares a tendon with actuatorfrcrange with another actuator"
        fault = tendon_fault(file, target)
        return f"{_NOT_REPRESENTED}: {fault}" if fault else ""
    if kind == int(kinds.mjTRN_SITE):
        if int(model.actuator_trnid[i, 1]) < 0:
            return f"{_NOT_REPRESENTED}: its force depends on a length that a site does not have" if uses_length else ""
        return f"{_NOT_REPRESENTED}: it acts between two sites"
    return f"{_NOT_REPRESENTED}: its transmission is not a joint, fixed tendon or site"


class _MuscleNumbers(NamedTuple):
    """The first parameters of a muscle's gain; low and high are the normalized lengths at the ends of its range."""

    low: float
    high: float
    force: float
    scale: float
    shortest: float
    longest: float
    fastest: float
    passive: float
    eccentric: float


def _is_muscle(file: CompiledFile) -> Bool[np.ndarray, " actuators"]:
    """True for each actuator with a muscle's activation, gain and bias."""
    model, kinds = file.model, file.mujoco
    kind = (model.actuator_dyntype, model.actuator_gaintype, model.actuator_biastype)
    of = (kinds.mjtDyn.mjDYN_MUSCLE, kinds.mjtGain.mjGAIN_MUSCLE, kinds.mjtBias.mjBIAS_MUSCLE)
    return np.all([x == int(each) for x, each in zip(kind, of, strict=True)], axis=0)


def _muscle(file: CompiledFile, at: np.ndarray, model: Model) -> Muscle:
    """The stage of the muscles; other actuators have the default values."""
    theirs, on = file.model, _is_muscle(file)[at]
    own = _MuscleNumbers(*np.where(on, theirs.actuator_gainprm[at, :9].T, [[x] for x in _OTHER]))
    start, end = np.where(on, theirs.actuator_lengthrange[at].T, [[0.75], [1.05]])
    length = (end - start) / (own.high - own.low)
    by_load = own.scale / np.where(theirs.actuator_acc0[at] > 0, theirs.actuator_acc0[at], np.inf)
    rise, fall, smoothing = np.where(on, theirs.actuator_dynprm[at, :3].T, [[0.01], [0.04], [0.0]])
    numbers = (np.where(own.force < 0, by_load, own.force), length, start - own.low * length, *own[4:], rise, fall,
               smoothing)  # fmt: skip
    muscles = None if on.all() else tuple(on.tolist())
    return Muscle(*(jnp.asarray(x, model.dtype) for x in numbers), muscles=muscles)


def _states_of(mujoco: Any) -> list[Any]:
    """Dynamics with one state: filters first."""
    return [mujoco.mjtDyn.mjDYN_FILTER, mujoco.mjtDyn.mjDYN_FILTEREXACT, mujoco.mjtDyn.mjDYN_INTEGRATOR]


def _uses_length(file: CompiledFile, i: int) -> bool:
    """True if the force of an actuator depends on its length."""
    model, kinds = file.model, file.mujoco
    gain = model.actuator_gaintype[i] == int(kinds.mjtGain.mjGAIN_AFFINE) and model.actuator_gainprm[i, 1]
    return bool(
        gain or (model.actuator_biastype[i] == int(kinds.mjtBias.mjBIAS_AFFINE) and model.actuator_biasprm[i, 1])
    )


def _stages(file: CompiledFile, at: np.ndarray, model: Model) -> list[Stage]:
    """Stages of the actuators: command range, activation, gain and bias, force range."""
    theirs, kinds = file.model, file.mujoco

    def numbers(x: Any) -> Any:
        return jnp.asarray(np.array(x, float), model.dtype)

    out = _saturation(command_ranges(file, [address for i in at.tolist() for address in commands_of(file, i)]), model)
    kind = theirs.actuator_dyntype[at]
    filters = np.isin(kind, [int(x) for x in _states_of(kinds)[:2]])
    integrates = kind == int(_states_of(kinds)[2])
    if np.any(filters | integrates):
        on = np.array(theirs.actuator_actlimited[at], bool) & (filters | integrates)
        lower, upper = (np.where(on, theirs.actuator_actrange[at, k], b) for k, b in ((0, -np.inf), (1, np.inf)))
        out.append(
            Activation(
                tuple(map(bool, filters)), tuple(map(bool, integrates)),
                numbers(np.where(filters, theirs.actuator_dynprm[at, 0], 1.0)), numbers(lower), numbers(upper),
                bool(on.any()),
            )
        )  # fmt: skip
    muscles = _is_muscle(file)[at]
    if muscles.any():
        out.append(_muscle(file, at, model))
    affine = theirs.actuator_gaintype[at] == int(kinds.mjtGain.mjGAIN_AFFINE)
    gain = np.where(affine[:, None] | (np.arange(3) == 0), theirs.actuator_gainprm[at, :3], 0.0)
    gain[muscles] = 1.0, 0.0, 0.0
    biased = theirs.actuator_biastype[at] == int(kinds.mjtBias.mjBIAS_AFFINE)
    bias = np.where(biased[:, None], theirs.actuator_biasprm[at, :3], 0.0)
    # lengths include the gear ratio, as shaft lengths here do
    out.append(AffineForce(numbers(gain), numbers(bias)))
    return out + _saturation(_force_limits(file, at), model)


def _saturation(bounds: Any, model: Model) -> list[Stage]:
    """Lower and upper bounds of a signal, if there are any."""
    lower, upper = bounds
    bounded = np.isfinite(lower) | np.isfinite(upper)
    return [Saturation(*(jnp.asarray(x, model.dtype) for x in (lower, upper)))] if bounded.any() else []


def _force_limits(file: CompiledFile, at: np.ndarray) -> Float[np.ndarray, "2 actuators"]:
    """Bounds of the actuators' forces: their own, and those of their tendons, which count before the gear."""
    model = file.model
    on = np.array(model.actuator_forcelimited[at], bool)
    bounds = np.where(on, np.array(model.actuator_forcerange[at], float).T, [[-np.inf], [np.inf]])
    for row, i in enumerate(at.tolist()):
        if int(model.actuator_trntype[i]) == int(file.mujoco.mjtTrn.mjTRN_TENDON):
            limits = _tendon_limits(model, int(model.actuator_trnid[i, 0]))
            if limits is not None:
                bounds[:, row] = max(bounds[0, row], limits[0]), min(bounds[1, row], limits[1])
    return bounds


def _tendon_limits(model: Any, tendon: int) -> Float[np.ndarray, " 2"] | None:
    """The range of the force of all actuators on a tendon; None without one."""
    if not _entry(model, "tendon_actfrclimited", tendon, False):
        return None
    return np.array(model.tendon_actfrcrange[tendon], float)


def _gear(model: Any, i: int) -> Float[np.ndarray, " 6"]:
    """The gear of an actuator with one force."""
    return np.array(model.actuator_gear[int(_entry(model, "actuator_outadr", i, i))])


def _transmission(file: CompiledFile, at: np.ndarray, model: Model) -> Transmission:
    """Couplings of the actuators with the degrees of freedom and the sites of a model."""
    theirs, kinds = file.model, file.mujoco.mjtTrn
    places = joint_places(file, model)
    coupling, on_sites, spatial = np.zeros((len(at), model.nv)), {}, {}
    for row, i in enumerate(at.tolist()):
        kind, target, gear = int(theirs.actuator_trntype[i]), int(theirs.actuator_trnid[i, 0]), _gear(theirs, i)
        if kind == int(kinds.mjTRN_TENDON):
            if is_spatial(file, target):
                spatial.setdefault(target, []).append((row, gear[0]))
            else:
                coupling[row] = gear[0] * coupling_row(file, target, places, model)
        elif kind == int(kinds.mjTRN_SITE):
            on_sites.setdefault(_frame(file, target, model), []).append((row, np.array(gear)))
        else:
            coupling[row, places[target]] = gear[: SPEEDS[int(theirs.jnt_type[target])]]
    wrenches = np.zeros((len(at), len(on_sites), 6))
    for k, rows in enumerate(on_sites.values()):
        for row, gear in rows:
            wrenches[row, k] = gear
    pulls = np.zeros((len(at), len(spatial)))
    for k, rows in enumerate(spatial.values()):
        for row, ratio in rows:
            pulls[row, k] = ratio
    lower, upper = _joint_ranges(file, places, model)
    numbers = [jnp.asarray(x, model.dtype) for x in (coupling, lower, upper, wrenches, pulls)]
    bounded = bool(np.isfinite(lower).any() or np.isfinite(upper).any())
    return Transmission(
        numbers[0], numbers[1] if bounded else None, numbers[2] if bounded else None, tuple(on_sites),
        numbers[3] if on_sites else None, tendon_paths(file, list(spatial), model) if spatial else None,
        numbers[4] if spatial else None,
    )  # fmt: skip


def joint_places(file: CompiledFile, model: Model) -> dict[int, slice]:
    """Slice of v for each joint of the file."""
    out = {}
    for body in range(1, file.model.nbody):
        for step in joint_chain(file, body)[0]:
            name = "+".join(file.names["joint"][j] for j in step.members)
            if name not in model.v_slices:
                raise ValueError(f"model: expected that of {file.file}, got one without the joint {name!r}")
            start = model.v_slices[name].start
            for j in step.members:
                stop = start + SPEEDS[int(file.model.jnt_type[j])]
                out[j] = slice(start, stop)
                start = stop
    return out


def _frame(file: CompiledFile, site: int, model: Model) -> str:
    """The name of the frame at a site."""
    name = file.names["site"][site]
    found = f"site:{name}" if name in file.names["body"] else name
    if found not in model.frame_names:
        raise ValueError(f"model: expected that of {file.file}, got one without the frame {found!r}")
    return found


def _joint_ranges(
    file: CompiledFile, places: dict[int, slice], model: Model
) -> tuple[Float[np.ndarray, " nv"], Float[np.ndarray, " nv"]]:
    """Lower and upper bounds of the joint forces of all actuators, infinite without a bound."""
    lower, upper = np.full(model.nv, -np.inf), np.full(model.nv, np.inf)
    for j, part in places.items():
        if file.model.jnt_actfrclimited[j]:
            lower[part], upper[part] = file.model.jnt_actfrcrange[j]
    return lower, upper


def _entry(model: Any, name: str, index: int, default: Any) -> Bool[np.ndarray, ""] | Any:
    """An entry of an array of MuJoCo's model, or a default if this version of MuJoCo lacks the array."""
    found = getattr(model, name, None)
    return default if found is None else found[index]
