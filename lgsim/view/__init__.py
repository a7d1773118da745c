"""Visualization: plots of motions, 3D replays as HTML, a live scene, and reports as HTML pages.

Extras: ``pip install 'lgsim[plot]'`` for plots, ``pip install 'lgsim[view]'`` for scenes.
"""

from lgsim.support.public_names import public_names

__getattr__, __dir__ = public_names(__name__, __file__)  # listed in __init__.pyi
