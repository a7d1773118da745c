"""Contact shapes and surfaces, one per file. A new one is a subclass of ``Shape`` or ``Surface``."""

from lgsim.multibody.contacts.boxes import box as box
from lgsim.multibody.contacts.capsules import capsule as capsule
from lgsim.multibody.contacts.contact import LAW as LAW
from lgsim.multibody.contacts.contact import Contact as Contact
from lgsim.multibody.contacts.contact import Shape as Shape
from lgsim.multibody.contacts.contact import Sized as Sized
from lgsim.multibody.contacts.contact import Surface as Surface
from lgsim.multibody.contacts.height_fields import height_field as height_field
from lgsim.multibody.contacts.planes import plane as plane
from lgsim.multibody.contacts.round_surfaces import round_surface as round_surface
from lgsim.multibody.contacts.spheres import sphere as sphere
from lgsim.multibody.contacts.vertices import vertices as vertices
