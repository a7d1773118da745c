# The public names, each imported on first use.
from lgsim.multibody.geometry import Box as Box
from lgsim.multibody.geometry import Capsule as Capsule
from lgsim.multibody.geometry import Cylinder as Cylinder
from lgsim.multibody.geometry import Ellipsoid as Ellipsoid
from lgsim.multibody.geometry import Mesh as Mesh
from lgsim.multibody.geometry import Sphere as Sphere
from lgsim.view import ensemble_plots as ensemble_plots
from lgsim.view import plots as plots
from lgsim.view import reports as reports
from lgsim.view.figures import panel_letters as panel_letters
from lgsim.view.figures import style as style
from lgsim.view.mjcf_visuals import read_mjcf_visuals as read_mjcf_visuals
from lgsim.view.scene import live as live
from lgsim.view.scene import to_html as to_html
from lgsim.view.shapes import Shape as Shape
from lgsim.view.skeleton_shapes import skeleton as skeleton
from lgsim.view.urdf_visuals import read_visuals as read_visuals
