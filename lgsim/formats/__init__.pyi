# The public names and where they are: each is imported when it is used first.
from lgsim.formats import interop as interop
from lgsim.formats.actuator_files import load_actuators as load_actuators
from lgsim.formats.actuator_files import read_actuators as read_actuators
from lgsim.formats.mjcf import load_mjcf as load_mjcf
from lgsim.formats.mjcf import read_mjcf as read_mjcf
from lgsim.formats.mjcformat.keyframes import Keyframe as Keyframe
from lgsim.formats.mjcformat.keyframes import load_keyframes as load_keyframes
from lgsim.formats.report import FileWarning as FileWarning
from lgsim.formats.report import Report as Report
from lgsim.formats.sdf import load_sdf as load_sdf
from lgsim.formats.sdf import read_sdf as read_sdf
from lgsim.formats.urdf import load_urdf as load_urdf
from lgsim.formats.urdf import read_urdf as read_urdf
from lgsim.formats.urdf_writer import write_urdf as write_urdf
from lgsim.formats.xacro_file import XacroFile as XacroFile
from lgsim.formats.xml import FileError as FileError
