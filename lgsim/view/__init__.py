"""Pictures of machines and motions: plots, a file that plays in any browser, a live scene.

The extras: ``pip install 'lgsim[plot]'`` for plots, ``pip install 'lgsim[view]'`` for scenes.
"""

from lgsim.view import ensemble_plots as ensemble_plots
from lgsim.view import plots as plots
from lgsim.view.mjcf_visuals import read_mjcf_visuals as read_mjcf_visuals
from lgsim.view.motion import MotionLike as MotionLike
from lgsim.view.scene import Live as Live
from lgsim.view.scene import live as live
from lgsim.view.scene import to_html as to_html
from lgsim.view.shapes import Box as Box
from lgsim.view.shapes import Capsule as Capsule
from lgsim.view.shapes import Cylinder as Cylinder
from lgsim.view.shapes import Ellipsoid as Ellipsoid
from lgsim.view.shapes import Mesh as Mesh
from lgsim.view.shapes import Shape as Shape
from lgsim.view.shapes import Sphere as Sphere
from lgsim.view.skeleton import skeleton as skeleton
from lgsim.view.urdf_visuals import read_visuals as read_visuals
