"""Description of a multibody system: joints, inertias, topology, and the model that contains all parameters."""

from lgsim.multibody import contacts as contacts
from lgsim.multibody import geometry as geometry
from lgsim.multibody import inertia as inertia
from lgsim.multibody import joints as joints
from lgsim.multibody import serialization  # noqa: F401  (registers Model with jax.export)
from lgsim.multibody.builder import ModelBuilder as ModelBuilder
from lgsim.multibody.model import Model as Model
from lgsim.multibody.tangent import tangent_grad as tangent_grad
from lgsim.multibody.tangent import tangent_hessian as tangent_hessian
from lgsim.multibody.tangent import tangent_jacobian as tangent_jacobian
from lgsim.multibody.topology import ModelError as ModelError
from lgsim.multibody.trainable import trainable as trainable
