"""How groups move manifolds: translations from left and right, coadjoint, the tangent sphere, products and powers."""

from lgsim.lie.action import (
    Action,
    Coadjoint,
    LeftTranslation,
    Product,
    RightTranslation,
    TangentSphere,
    Translation,
)
from lgsim.lie.power import Power

__all__ = [
    "Action", "Coadjoint", "LeftTranslation", "Power", "Product", "RightTranslation", "TangentSphere", "Translation",
]  # fmt: skip
