"""Crouch-Grossman methods, one stage value in each exponential. A new method is a single statement here.

The number in a name is the order.
"""

from __future__ import annotations

from lgsim.integrators.commutator_free import CommutatorFree
from lgsim.integrators.method import names_of_methods
from lgsim.integrators.tableau import crouch_grossman

CG2 = CommutatorFree(crouch_grossman("CG2", a=((), (1.0,)), b=(1 / 2, 1 / 2), c=(0.0, 1.0), order=2))
"""Heun's coefficients; the second-order CG and CF methods of Park and Chung 2005 are the same method."""

CG3 = CommutatorFree(
    crouch_grossman(
        "CG3", a=((), (3 / 4,), (119 / 216, 17 / 108)), b=(13 / 51, -2 / 3, 24 / 17), c=(0.0, 3 / 4, 17 / 24), order=3
    )
)
"""Park and Chung 2005, Table I(a), print 3/24 for the first coefficient.

Source: Crouch and Grossman 1993, Numerical integration of ordinary differential equations on manifolds.
"""

CG4 = CommutatorFree(
    crouch_grossman(
        "CG4",
        a=(
            (),
            (0.8177227988124852,),
            (0.3199876375476427, 0.0659864263556022),
            (0.9214417194464946, 0.4997857776773573, -1.0969984448371582),
            (0.3552358559023322, 0.2390958372307326, 1.3918565724203246, -1.1092979392113465),
        ),
        b=(0.1370831520630755, -0.0183698531564020, 0.7397813985370780, -0.1907142565505889, 0.3322195591068374),
        c=(0.0, 0.8177227988124852, 0.3859740639032449, 0.3242290522866937, 0.8768903263420429),
        order=4,
    )
)
"""The rationals of Park and Chung 2005, Table I(b), approximate these decimals to 1e-6 only.

Source: Jackiewicz, Marthinsen and Owren 2000, Construction of Runge-Kutta methods of Crouch-Grossman type of high
order, Adv. Comput. Math. 13.
"""

# Order 5 in nine stages, as many as Jackiewicz, Marthinsen, Owren (2000) use; the coefficients are lgsim's own. They
# solve the 38 independent conditions for 45 unknowns: damped Gauss-Newton from random starts, then along the solutions
# (seven dimensions) to the least norm of the residuals of order 6 with all nodes in [0, 1], to 37 digits, then rounded.
CG5 = CommutatorFree(
    crouch_grossman(
        "CG5",
        a=(
            (),
            (0.5038927391135274,),
            (
                -0.3627367525710853,
                1.236595113940352,
            ),
            (
                0.23542926375749443,
                0.12697923696869978,
                0.011397396729949683,
            ),
            (
                -0.13713365335714173,
                0.3595800849315851,
                0.10321175906708244,
                0.6076010526239274,
            ),
            (
                0.0020632534361185164,
                0.23525219348494117,
                0.06267923348836177,
                0.5344151076528361,
                0.062146851075064305,
            ),
            (
                0.26527584533164095,
                0.31324952876829165,
                0.08480344733242597,
                0.0029598849559077465,
                0.6715763958293466,
                -0.8884799064038201,
            ),
            (
                0.2580396187307961,
                0.12166674233148818,
                0.11958392624401652,
                -0.3159299394699565,
                0.42651538407487455,
                -0.6551108379914931,
                0.5508264496817703,
            ),
            (
                0.2594622971033341,
                0.06996952782454126,
                0.07458349236156275,
                -0.15510124718103566,
                0.6041417193903895,
                -0.8382012255182868,
                0.28659582033379355,
                0.1997665259878616,
            ),
        ),
        b=(
            0.11475559544998022,
            -0.13262809456115388,
            0.02393423767556309,
            0.6404489501156139,
            -0.33082811505670634,
            0.6614268200925125,
            -0.3036371758513714,
            -1.1333580854201355,
            1.4598858675556976,
        ),
        c=(
            0.0,
            0.5038927391135274,
            0.8738583613692668,
            0.3738058974561439,
            0.9332592432654532,
            0.8965566391373219,
            0.4493851958137928,
            0.5055913436014962,
            0.5012169103021604,
        ),
        order=5,
    )
)
"""Nine stages, as in Jackiewicz, Marthinsen and Owren 2000; the coefficients are lgsim's own."""

__all__ = names_of_methods(globals())  # pyright: ignore[reportUnsupportedDunderAll]
