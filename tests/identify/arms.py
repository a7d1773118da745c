"""Small machines that tests of identification share, with what is known of them in closed form."""

import functools

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import lgsim
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.unknowns.plant import Plant

LENGTH = 0.4

PLANAR = """<robot name="arm"><link name="base"/>
<link name="upper"><inertial><origin xyz="0.02 0.03 0.2"/><mass value="2"/>
  <inertia ixx="0.05" iyy="0.04" izz="0.02" ixy="0" ixz="0.002" iyz="0"/></inertial></link>
<link name="fore"><inertial><origin xyz="0.01 -0.02 0.15"/><mass value="1.2"/>
  <inertia ixx="0.02" iyy="0.015" izz="0.01" ixy="0" ixz="-0.001" iyz="0"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
  <limit lower="-2" upper="2" effort="40" velocity="4"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0 0 .4"/>
  <axis xyz="0 1 0"/><limit lower="-2.5" upper="2.5" effort="15" velocity="5"/></joint></robot>"""
"""Two links in the vertical plane."""


@functools.cache
def _read(dtype):
    return lgsim.formats.read_urdf(text=PLANAR, dtype=dtype)[0]


def planar(dtype=float, **numbers):
    """The arm of two links with numbers of its drives."""
    return _read(np.dtype(dtype).name).replace(**numbers)


def states(model, count=200, seed=0, speed=2.0):
    """Random (q, v, a), each (count, n), within the limits of the positions."""
    rng = np.random.default_rng([seed, 1])
    q = rng.uniform(model.lower, model.upper, (count, model.nv))
    v, a = (speed * rng.normal(size=(count, model.nv)) for _ in range(2))
    return tuple(jnp.asarray(x, model.dtype) for x in (q, v, 2 * a))


# one program for each number of states: what runs operation by operation compiles each of them
signals = eqx.filter_jit(Plant.signals)


def samples(plant, count=200, seed=0, noise=0.0, speed=2.0):
    """What a plant would record at random states, with white noise."""
    plant = plant if isinstance(plant, Plant) else Plant(plant)
    q, v, a = states(plant.model, count, seed, speed)
    clean = signals(plant, q, v, a)
    rng = np.random.default_rng(seed)
    return TorqueSamples(q, v, a, clean + jnp.asarray(noise * rng.normal(size=clean.shape), clean.dtype))
