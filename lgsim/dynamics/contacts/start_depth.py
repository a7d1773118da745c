"""A check for shapes that start too deep inside a surface."""

from __future__ import annotations

import jax
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.dynamics.contacts.contact_forces import contact_points
from lgsim.multibody.model import Model

_points = jax.jit(contact_points)


def check_start_depth(model: Model, q: Float[Array, " nq"]) -> None:
    """Check that no contact starts deeper than the radius of its shape, or else half of the shape's smallest extent.

    Raises:
        ValueError: a contact starts deeper, which would give unphysical contact forces.
    """
    if not model.topology.contacts:
        return
    depths = np.asarray(_points(model, q).depth)
    for contact, numbers in zip(model.topology.contacts, np.asarray(model.contacts, float), strict=True):
        sizes = dict(zip(contact.columns, numbers, strict=False))
        reach = contact.shape.reach({name: float(sizes[name]) for name in contact.shape.sizes})
        depth = float(np.max(depths[model.point_slices[contact.name]]))
        if reach is not None and depth > reach:
            raise ValueError(
                f"q0: the contact {contact.name!r} starts {depth:.3g} m deep, but its shape on {contact.frame!r} is"
                f" through the surface from {reach:.3g} m on; start at least {depth:.3g} m further along the surface's"
                f" normal, or check the frame {contact.against!r} of the surface"
            )
