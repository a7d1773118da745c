"""Keyframes of an MJCF file: named configurations with velocities and commands."""

from __future__ import annotations

import os
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.formats.interop import mujoco as theirs
from lgsim.formats.mjcformat.actuators import faults_of_actuators
from lgsim.formats.mjcformat.compilation import compile_file
from lgsim.formats.mjcformat.motors import commands_of
from lgsim.multibody.model import Model


class Keyframe(NamedTuple):
    """A named state of a file.

    Attributes:
        q: Configuration.
        v: Velocity, rad/s or m/s.
        command: Commands of the actuators of ``load_actuators``.
    """

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    command: Float[Array, " n"]


def load_keyframes(
    model: Model, path: str | os.PathLike[str] | None = None, *, text: str | None = None
) -> dict[str, Keyframe]:
    """The keyframes of an MJCF file by name, such as "home", for the model of that file.

    A keyframe without a name is named by its index, "key0". Times, activations and mocap poses are not read.

    Args:
        model: The model of the file, from ``load_mjcf``.
        text: The MJCF itself instead of a path.

    Raises:
        FileError, ImportError, TypeError: see ``load_mjcf``.
        ValueError: the model has another number of coordinates than the file.
    """
    file = compile_file(path, text)
    keys, found = file.model, {}
    if (keys.nq, keys.nv) != (model.nq, model.nv):
        raise ValueError(
            f"model: expected that of {file.file}, with nq = {keys.nq} and nv = {keys.nv}, got one with {model.nq} and"
            f" {model.nv}"
        )
    used = [i for i in range(len(file.names["actuator"])) if i not in faults_of_actuators(file)]
    addresses = np.array([address for i in used for address in commands_of(file, i)], int)
    for i in range(keys.nkey):
        name = file.mujoco.mj_id2name(keys, file.mujoco.mjtObj.mjOBJ_KEY, i) or f"key{i}"
        q, v, u = (jnp.asarray(np.array(x[i]), model.dtype) for x in (keys.key_qpos, keys.key_qvel, keys.key_ctrl))
        found[name] = Keyframe(theirs.q_from(model, q), theirs.v_from(model, q, v), u[addresses])
    return found
