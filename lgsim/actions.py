"""How groups move manifolds: translations from left and right, coadjoint, the tangent sphere, products and powers."""

from lgsim.lie.action import Action as Action
from lgsim.lie.action import Coadjoint as Coadjoint
from lgsim.lie.action import LeftTranslation as LeftTranslation
from lgsim.lie.action import Product as Product
from lgsim.lie.action import RightTranslation as RightTranslation
from lgsim.lie.action import TangentSphere as TangentSphere
from lgsim.lie.action import Translation as Translation
from lgsim.lie.power import Power as Power
