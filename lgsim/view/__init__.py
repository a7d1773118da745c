"""Pictures of machines and motions: plots, a file that plays in any browser, a live scene, reports as one HTML page.

The extras: ``pip install 'lgsim[plot]'`` for plots, ``pip install 'lgsim[view]'`` for scenes.
"""

from lgsim.support.public_names import public_names

__getattr__, __dir__ = public_names(__name__, __file__)  # as listed in __init__.pyi
