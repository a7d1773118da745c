"""How groups move manifolds: translations from the left and right, coadjoint, on the tangent sphere, and products."""

from lgsim.lie.action import (
    Action,
    Coadjoint,
    LeftTranslation,
    Product,
    RightTranslation,
    TangentSphere,
    Translation,
)

__all__ = ["Action", "Coadjoint", "LeftTranslation", "Product", "RightTranslation", "TangentSphere", "Translation"]
