"""The description of a machine: joints, inertias, topology, and the model that holds all its numbers."""

from lgsim.multibody.model import Model

__all__ = ["Model"]
