"""Actuators of MuJoCo 4 with several commands or states: DC motors and servos of an orientation."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from lgsim.actuators import Cogging, DCMotor, LuGreFriction, MotorController, OrientationServo, Stage
from lgsim.formats.mjcformat.compilation import CompiledFile
from lgsim.multibody.model import Model


def kind_of(file: CompiledFile, i: int) -> tuple[Any, ...]:
    """The kind of an actuator with stages of its own; () for the others."""
    gains, gain, dyn = file.mujoco.mjtGain, int(file.model.actuator_gaintype[i]), file.model.actuator_dynprm[i]
    # before MuJoCo 4 there are neither
    if gain == int(getattr(gains, "mjGAIN_SO3", -1)):
        return ("orientation", i)
    if gain != int(getattr(gains, "mjGAIN_DCMOTOR", -1)):
        return ()
    # with an integral, an inductance, heating, friction, cogging
    more = file.model.actuator_gainprm[i, 5], dyn[0], dyn[2], dyn[5], file.model.actuator_biasprm[i, 0]
    return ("dcmotor", *map(bool, more))


def fault_of_special(file: CompiledFile, i: int) -> str:
    """The property of a DC motor or an orientation servo that is not represented; "" without one."""
    model = file.model
    if kind_of(file, i)[0] == "orientation":
        if int(model.actuator_dyntype[i]) != int(file.mujoco.mjtDyn.mjDYN_NONE) or model.actuator_biasprm[i, 0]:
            return "it integrates its commands, or has a constant torque"
        return "it acts between two sites" if int(model.actuator_trnid[i, 1]) >= 0 else ""
    if model.actuator_dynprm[i, 7]:
        return "it limits the rate of a command (slewmax)"
    rubs = model.actuator_dynprm[i, 5] and not np.all(model.actuator_biasprm[i, 3:6] > 0)
    return "its friction is zero" if rubs else ""


def commands_of(file: CompiledFile, i: int) -> dict[int, str]:
    """Addresses of the commands of an actuator, and their names."""
    name, model = file.names["actuator"][i], file.model
    if not hasattr(model, "actuator_ctrladr"):  # before MuJoCo 4
        return {i: name}
    first, count = int(model.actuator_ctrladr[i]), int(model.actuator_ctrlnum[i])
    if count == 1:
        return {first: name}
    return {first + k: f"{name}:{file.mujoco.mj_actuatorInputName(model, i, k)}" for k in range(count)}


def command_ranges(file: CompiledFile, at: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of commands, infinite without one."""
    limited = np.array(file.model.actuator_ctrllimited[at], bool) & file.enabled("CLAMPCTRL")
    ranges = file.model.actuator_ctrlrange[at]
    return np.where(limited, ranges[:, 0], -np.inf), np.where(limited, ranges[:, 1], np.inf)


def orientation_servo(file: CompiledFile, i: int, model: Model) -> OrientationServo:
    """The actuator of an <orientation>."""
    theirs, own = file.model, commands_of(file, i)
    limit = theirs.actuator_forcerange[i, 1] if theirs.actuator_forcelimited[i] else np.inf
    numbers = theirs.actuator_gainprm[i, 0], -theirs.actuator_biasprm[i, 2], limit, *command_ranges(file, list(own))
    return OrientationServo(model, file.names["joint"][int(theirs.actuator_trnid[i, 0])], tuple(own.values()), *numbers)


def motor_stages(file: CompiledFile, at: list[int], model: Model) -> tuple[list[Stage], list[Stage]]:
    """Stages of DC motors of one kind before the range of their forces, and those after it."""
    theirs = file.model
    gain, bias, dyn = (x[at].T for x in (theirs.actuator_gainprm, theirs.actuator_biasprm, theirs.actuator_dynprm))
    _, integrates, has_current, heats, rubs, cogs = kind_of(file, at[0])

    def numbers(*values: Any) -> list[Any]:
        return [jnp.asarray(np.array(x, float), model.dtype) for x in values]

    kinds, spec = file.mujoco.mjtCtrlInput, theirs.actuator_ctrlspec[at]
    order = kinds.mjINPUT_POS, kinds.mjINPUT_VEL, kinds.mjINPUT_FF, kinds.mjINPUT_VOLTAGE
    taken = np.stack([spec & int(kind) > 0 for kind in order], axis=1)
    bounds = np.full((2, *taken.shape), [[[-np.inf]], [[np.inf]]])
    bounds[:, taken] = command_ranges(file, [address for i in at for address in commands_of(file, i)])
    largest_integral, volts, current_rate = (np.where(x > 0, x, np.inf) for x in (dyn[8], gain[7], dyn[1]))
    R, K, gains, volts, lower, upper = numbers(*gain[:2], gain[4:7].T, volts, *bounds)
    integral = numbers(largest_integral)[0] if integrates else None
    controller = MotorController(tuple(map(tuple, taken.tolist())), R, K, gains, volts, lower, upper, integral)
    heating = numbers(np.stack([dyn[2], dyn[3], gain[2], dyn[4] - gain[3]], axis=1))[0] if heats else None
    L = numbers(dyn[0] * gain[0])[0] if has_current else None
    motor = DCMotor(R, K, K, L, heating, *numbers(current_rate))
    friction = [LuGreFriction(*numbers(dyn[5], dyn[6], 0 * dyn[5], *bias[3:6]))] if rubs else []
    return [controller, motor], [*friction, *([Cogging(*numbers(*bias[:3]))] if cogs else [])]
