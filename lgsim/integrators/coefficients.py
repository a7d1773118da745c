"""The tableaus of the shipped methods, with their sources. Every coefficient is the correctly rounded one."""

from __future__ import annotations

from decimal import Decimal, localcontext

from lgsim.integrators.group_words import Commutator, Exponentials
from lgsim.integrators.tableau import ButcherTableau, CommutatorFreeTableau, crouch_grossman

START = Exponentials(0, ())

# Classical Runge-Kutta methods, for the Munthe-Kaas form.

LIE_EULER_TABLEAU = ButcherTableau("Lie-Euler", a=((),), b=(1.0,), c=(0.0,), order=1)

# Heun's method: the second-order tableau of the tables of Park and Chung.
HEUN_TABLEAU = ButcherTableau("Heun", a=((), (1.0,)), b=(1 / 2, 1 / 2), c=(0.0, 1.0), order=2)

# Runge (1895): the explicit midpoint rule.
MIDPOINT_TABLEAU = ButcherTableau("midpoint", a=((), (1 / 2,)), b=(0.0, 1.0), c=(0.0, 1 / 2), order=2)

# Heun's third-order method: Park, Chung, Table III(a).
RK3_TABLEAU = ButcherTableau(
    "RK3", a=((), (1 / 3,), (0.0, 2 / 3)), b=(1 / 4, 0.0, 3 / 4), c=(0.0, 1 / 3, 2 / 3), order=3
)

# Kutta (1901): Park, Chung, Table III(b).
RK4_TABLEAU = ButcherTableau(
    "RK4",
    a=((), (1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0)),
    b=(1 / 6, 1 / 3, 1 / 3, 1 / 6),
    c=(0.0, 1 / 2, 1 / 2, 1.0),
    order=4,
)

# Butcher (1964), On Runge-Kutta processes of high order, J. Austral. Math. Soc. 4: six stages, order 5.
BUTCHER5_TABLEAU = ButcherTableau(
    "Butcher 5",
    a=(
        (),
        (1 / 4,),
        (1 / 8, 1 / 8),
        (0.0, -1 / 2, 1.0),
        (3 / 16, 0.0, 0.0, 9 / 16),
        (-3 / 7, 2 / 7, 12 / 7, -12 / 7, 8 / 7),
    ),
    b=(7 / 90, 0.0, 32 / 90, 12 / 90, 32 / 90, 7 / 90),
    c=(0.0, 1 / 4, 1 / 4, 1 / 2, 3 / 4, 1.0),
    order=5,
)

# Dormand, Prince (1980), A family of embedded Runge-Kutta formulae: order 5(4); the last stage is the update.
DORMAND_PRINCE_TABLEAU = ButcherTableau(
    "Dormand-Prince 5(4)",
    a=(
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    b=(35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0),
    c=(0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
    order=5,
    b_embedded=(5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40),
    embedded_order=4,
)

# Butcher (1964), On Runge-Kutta processes of high order: seven stages, order 6.
BUTCHER6_TABLEAU = ButcherTableau(
    "Butcher 6",
    a=(
        (),
        (1 / 3,),
        (0.0, 2 / 3),
        (1 / 12, 1 / 3, -1 / 12),
        (-1 / 16, 9 / 8, -3 / 16, -3 / 8),
        (0.0, 9 / 8, -3 / 8, -3 / 4, 1 / 2),
        (9 / 44, -9 / 11, 63 / 44, 18 / 11, 0.0, -16 / 11),
    ),
    b=(11 / 120, 0.0, 27 / 40, 27 / 40, -4 / 15, -4 / 15, 11 / 120),
    c=(0.0, 1 / 3, 2 / 3, 1 / 3, 1 / 2, 1 / 2, 1.0),
    order=6,
)


def _surd(p: int, q: int, r: int) -> float:
    """(p + q sqrt(21)) / r, correctly rounded: in floats the cancellation in the numerator would cost two digits."""
    with localcontext() as context:
        context.prec = 40
        return float((p + q * Decimal(21).sqrt()) / r)


# Cooper, Verner (1972), Some explicit Runge-Kutta methods of high order, SIAM J. Numer. Anal. 9: 11 stages, order 8.
COOPER_VERNER_TABLEAU = ButcherTableau(
    "Cooper-Verner 8",
    a=(
        (),
        (1 / 2,),
        (1 / 4, 1 / 4),
        (1 / 7, _surd(-7, -3, 98), _surd(21, 5, 49)),
        (_surd(11, 1, 84), 0.0, _surd(18, 4, 63), _surd(21, -1, 252)),
        (_surd(5, 1, 48), 0.0, _surd(9, 1, 36), _surd(-231, 14, 360), _surd(63, -7, 80)),
        (
            _surd(10, -1, 42),
            0.0,
            _surd(-432, 92, 315),
            _surd(633, -145, 90),
            _surd(-504, 115, 70),
            _surd(63, -13, 35),
        ),
        (1 / 14, 0.0, 0.0, 0.0, _surd(14, -3, 126), _surd(13, -3, 63), 1 / 9),
        (
            1 / 32,
            0.0,
            0.0,
            0.0,
            _surd(91, -21, 576),
            11 / 72,
            _surd(-385, -75, 1152),
            _surd(63, 13, 128),
        ),
        (
            1 / 14,
            0.0,
            0.0,
            0.0,
            1 / 9,
            _surd(-733, -147, 2205),
            _surd(515, 111, 504),
            _surd(-51, -11, 56),
            _surd(132, 28, 245),
        ),
        (
            0.0,
            0.0,
            0.0,
            0.0,
            _surd(-42, 7, 18),
            _surd(-18, 28, 45),
            _surd(-273, -53, 72),
            _surd(301, 53, 72),
            _surd(28, -28, 45),
            _surd(49, -7, 18),
        ),
    ),
    b=(1 / 20, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 49 / 180, 16 / 45, 49 / 180, 1 / 20),
    c=(
        0.0,
        1 / 2,
        1 / 2,
        _surd(7, 1, 14),
        _surd(7, 1, 14),
        1 / 2,
        _surd(7, -1, 14),
        _surd(7, -1, 14),
        1 / 2,
        _surd(7, 1, 14),
        1.0,
    ),
    order=8,
)

# The Munthe-Kaas form with two commutators in all: Celledoni et al. (2021), section 2.2. The signs are for a left
# action exp(.) y; the bracket of a right translation is minus the group's, so an action brings its own sign.
RK4_TWO_COMMUTATORS_TABLEAU = ButcherTableau(
    "RK4 with two commutators",
    a=RK4_TABLEAU.a,
    b=RK4_TABLEAU.b,
    c=RK4_TABLEAU.c,
    order=4,
    commutators=(Commutator(2, -1 / 8, 0, 1), Commutator(4, -1 / 12, 0, 3)),
)

# Crouch-Grossman methods.

# Heun's coefficients; Park and Chung's second-order CG and CF methods are the same method.
CG2_TABLEAU = crouch_grossman("CG2", a=((), (1.0,)), b=(1 / 2, 1 / 2), c=(0.0, 1.0), order=2)
CF2_TABLEAU = crouch_grossman("CF2", a=((), (1.0,)), b=(1 / 2, 1 / 2), c=(0.0, 1.0), order=2)

# Crouch, Grossman (1993), Numerical integration of ordinary differential equations on manifolds. The text of Park,
# Chung, Table I(a), has 3/24 for the first coefficient.
CG3_TABLEAU = crouch_grossman(
    "CG3", a=((), (3 / 4,), (119 / 216, 17 / 108)), b=(13 / 51, -2 / 3, 24 / 17), c=(0.0, 3 / 4, 17 / 24), order=3
)

# Jackiewicz, Marthinsen, Owren (2000), Construction of Runge-Kutta methods of Crouch-Grossman type of high order, Adv.
# Comput. Math. 13: five stages. The rationals of Park, Chung, Table I(b), approximate these decimals to 1e-6 only.
CG4_TABLEAU = crouch_grossman(
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

# Order 5 in nine stages, as many as Jackiewicz, Marthinsen, Owren (2000) use; the coefficients are lgsim's own. They
# solve the 38 independent conditions for 45 unknowns: damped Gauss-Newton from random starts, then along the solutions
# (seven dimensions) to the least norm of the residuals of order 6 with all nodes in [0, 1], to 37 digits, then rounded.
CG5_TABLEAU = crouch_grossman(
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

# Commutator-free methods that reuse exponentials: Celledoni, Marthinsen, Owren (2003).

# Park, Chung, Table II(a): the update continues from Y_1.
CF3_TABLEAU = CommutatorFreeTableau(
    "CF3",
    stages=(START, Exponentials(0, ((1 / 3,),)), Exponentials(0, ((0.0, 2 / 3),))),
    update=Exponentials(1, ((-1 / 12, 0.0, 3 / 4),)),
    c=(0.0, 1 / 3, 2 / 3),
    order=3,
)

# Park, Chung, Table II(b), and Celledoni et al. (2021), (9): Y_3 continues from Y_1.
CF4_TABLEAU = CommutatorFreeTableau(
    "CF4",
    stages=(
        START,
        Exponentials(0, ((1 / 2,),)),
        Exponentials(0, ((0.0, 1 / 2),)),
        Exponentials(1, ((-1 / 2, 0.0, 1.0),)),
    ),
    update=Exponentials(0, ((1 / 4, 1 / 6, 1 / 6, -1 / 12), (-1 / 12, 1 / 6, 1 / 6, 1 / 4))),
    c=(0.0, 1 / 2, 1 / 2, 1.0),
    order=4,
)

# Celledoni et al. (2021), section 4.2.1, first pair of order 3(2): CF3 and an estimate with one exponential.
CF32A_TABLEAU = CommutatorFreeTableau(
    "CF32a",
    stages=CF3_TABLEAU.stages,
    update=CF3_TABLEAU.update,
    c=CF3_TABLEAU.c,
    order=3,
    embedded=Exponentials(0, ((0.0, 1 / 2, 1 / 2),)),
    embedded_order=2,
)

# Celledoni et al. (2021), section 4.2.1, second pair of order 3(2): the update continues from Y_2.
CF32B_TABLEAU = CommutatorFreeTableau(
    "CF32b",
    stages=(START, Exponentials(0, ((2 / 3,),)), Exponentials(0, ((5 / 12, 1 / 4),))),
    update=Exponentials(2, ((-1 / 6, -1 / 2, 1.0),)),
    c=(0.0, 2 / 3, 2 / 3),
    order=3,
    embedded=Exponentials(0, ((1 / 4, 0.0, 3 / 4),)),
    embedded_order=2,
)

# Celledoni et al. (2021), (34): CF4 and a third-order estimate with one stage of its own.
CF43_TABLEAU = CommutatorFreeTableau(
    "CF43",
    stages=CF4_TABLEAU.stages,
    update=CF4_TABLEAU.update,
    c=CF4_TABLEAU.c,
    order=4,
    embedded=Exponentials(0, ((1 / 3,), (-1 / 9, 1 / 3, 0.0, 0.0, 4 / 9))),
    embedded_order=3,
    embedded_stages=(Exponentials(0, ((0.0, 3 / 4),)),),
    embedded_c=(3 / 4,),
)
