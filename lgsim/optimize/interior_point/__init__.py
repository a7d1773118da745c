"""An interior-point method for optimal control, for constraints that must hold.

``kkt`` holds the conditions at the nodes of a trajectory and the Riccati equation of Newton's step, ``barrier`` that
step and its line search, ``method`` the solver ``InteriorPoint`` and its verdict.
"""
