"""The description of a machine: joints, inertias, topology, and the model that holds all its numbers."""

from lgsim.multibody import contacts, geometry, inertia, joints
from lgsim.multibody import serialization as serialization  # makes a Model known to jax.export
from lgsim.multibody.builder import ModelBuilder
from lgsim.multibody.model import Model
from lgsim.multibody.tangent import tangent_grad, tangent_hessian, tangent_jacobian
from lgsim.multibody.topology import ModelError
from lgsim.multibody.trainable import trainable

__all__ = [
    "Model",
    "ModelBuilder",
    "ModelError",
    "contacts",
    "geometry",
    "inertia",
    "joints",
    "tangent_grad",
    "tangent_hessian",
    "tangent_jacobian",
    "trainable",
]
