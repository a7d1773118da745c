"""Readers of robot description files, which return a model and a report of findings, and a URDF writer.

``interop`` converts coordinates, velocities and forces between the conventions of lgsim and of other tools.
"""

from lgsim.support.public_names import public_names

__getattr__, __dir__ = public_names(__name__, __file__)  # as listed in __init__.pyi
