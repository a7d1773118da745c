"""Linearly implicit methods, for stiff fields. A new method is a single statement here.

The number in a name is the order, a second one that of the embedded estimate.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

from lgsim.integrators.linearly_implicit import LinearlyImplicit
from lgsim.integrators.method import names_of_methods
from lgsim.integrators.rosenbrock_tableau import RosenbrockTableau, rosenbrock

_L_STABLE = 1 - sqrt(1 / 2)

ROS2 = LinearlyImplicit(
    rosenbrock("ROS2", _L_STABLE, alpha=((), (1.0,)), gammas=((), (-2 * _L_STABLE,)), b=(1 / 2, 1 / 2), order=2)
)
"""L-stable. Source: Verwer, Spee, Blom and Hundsdorfer 1999, SIAM J. Sci. Comput. 20."""

_A_STABLE = 1 / 2 + sqrt(3) / 6

ROS3P = LinearlyImplicit(
    rosenbrock(
        "ROS3P",
        _A_STABLE,
        alpha=((), (1.0,), (1.0,)),
        gammas=((), (-1.0,), (-_A_STABLE, 1 / 2 - 2 * _A_STABLE)),
        b=(2 / 3, 0.0, 1 / 3),
        order=3,
    )
)
"""A-stable, without order reduction on linear parabolic problems.

Source: Lang and Verwer 2001, ROS3P - an accurate third-order Rosenbrock solver designed for parabolic problems, BIT 41.
"""

Rodas43 = LinearlyImplicit(
    RosenbrockTableau(
        "Rodas 4(3)",
        gamma=1 / 4,
        a=(
            (),
            (1.544,),
            (0.9466785280815826, 0.2557011698983284),
            (3.314825187068521, 2.896124015972201, 0.9986419139977817),
            (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.687886036105895),
            (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.687886036105895, 1.0),
        ),
        c=(
            (),
            (-5.6688,),
            (-2.430093356833875, -0.2063599157091915),
            (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
            (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.7089089320616),
            (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
        ),
        m=(1.221224509226641, 6.019134481288629, 12.53708332932087, -0.687886036105895, 1.0, 1.0),
        order=4,
        m_embedded=(1.221224509226641, 6.019134481288629, 12.53708332932087, -0.687886036105895, 1.0),
        embedded_order=3,
    )
)
"""L-stable and stiffly accurate; the last stage is the difference to an L-stable embedded scheme of order 3.

Source: Hairer and Wanner, Solving ODEs II, the coefficients of the code RODAS.
"""

Rodas4 = LinearlyImplicit(replace(Rodas43.tableau, name="Rodas 4", m_embedded=None, embedded_order=None))
"""``Rodas43`` without the error estimate: L-stable and stiffly accurate.

Source: Hairer and Wanner, Solving ODEs II, the coefficients of the code RODAS.
"""

__all__ = names_of_methods(globals())  # pyright: ignore[reportUnsupportedDunderAll]
