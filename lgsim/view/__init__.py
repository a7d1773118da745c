"""Pictures of machines and motions: plots, a file that plays in any browser, a live scene.

The extras: ``pip install 'lgsim[plot]'`` for plots, ``pip install 'lgsim[view]'`` for scenes.
"""

from lgsim.view import plots, spreads
from lgsim.view.motion import Motion
from lgsim.view.scene import Live, live, to_html
from lgsim.view.shapes import Box, Capsule, Cylinder, Ellipsoid, Mesh, Shape, Sphere
from lgsim.view.skeleton import skeleton
from lgsim.view.visuals import read_visuals

__all__ = [
    "Box", "Capsule", "Cylinder", "Ellipsoid", "Live", "Mesh", "Motion", "Shape", "Sphere", "live", "plots",
    "read_visuals", "skeleton", "spreads", "to_html",
]  # fmt: skip
