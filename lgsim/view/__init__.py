"""Pictures of machines and motions: plots, a file that plays in any browser, a live scene.

The extras: ``pip install 'lgsim[plot]'`` for plots, ``pip install 'lgsim[view]'`` for scenes.
"""

from lgsim.view import ensemble_plots, plots
from lgsim.view.mjcf_visuals import read_mjcf_visuals
from lgsim.view.motion import MotionLike
from lgsim.view.scene import Live, live, to_html
from lgsim.view.shapes import Box, Capsule, Cylinder, Ellipsoid, Mesh, Shape, Sphere
from lgsim.view.skeleton import skeleton
from lgsim.view.urdf_visuals import read_visuals

__all__ = [
    "Box",
    "Capsule",
    "Cylinder",
    "Ellipsoid",
    "Live",
    "Mesh",
    "MotionLike",
    "Shape",
    "Sphere",
    "ensemble_plots",
    "live",
    "plots",
    "read_mjcf_visuals",
    "read_visuals",
    "skeleton",
    "to_html",
]
