"""How groups move manifolds: ``LeftTranslation``, ``RightTranslation``, ``Coadjoint``, ``TangentSphere``, ``Product``."""

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
