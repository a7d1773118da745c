"""Readers of robots' description files, each of which gives a model and a report of what was odd, and a writer.

``interop`` converts coordinates, velocities and forces to and from other tools' conventions.
"""

from lgsim.support.public_names import public_names

__getattr__, __dir__ = public_names(__name__, __file__)  # as listed in __init__.pyi
