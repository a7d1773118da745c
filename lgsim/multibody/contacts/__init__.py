"""Contacts: shapes that touch surfaces, one a file. A new one subclasses ``Shape`` or ``Surface``, and that is all."""

from lgsim.multibody.contacts.boxes import Box, box
from lgsim.multibody.contacts.capsules import Capsule, capsule
from lgsim.multibody.contacts.contact import LAW, Contact, Shape, Sized, Surface
from lgsim.multibody.contacts.height_fields import HeightField, height_field
from lgsim.multibody.contacts.planes import Plane, plane
from lgsim.multibody.contacts.round_surfaces import RoundSurface, round_surface
from lgsim.multibody.contacts.spheres import Sphere, sphere
from lgsim.multibody.contacts.vertices import Vertices, vertices

__all__ = [
    "LAW",
    "Box",
    "Capsule",
    "Contact",
    "HeightField",
    "Plane",
    "RoundSurface",
    "Shape",
    "Sized",
    "Sphere",
    "Surface",
    "Vertices",
    "box",
    "capsule",
    "height_field",
    "plane",
    "round_surface",
    "sphere",
    "vertices",
]
