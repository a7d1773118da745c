"""A primal-dual interior-point method for optimal control with hard constraints.

``kkt`` contains the constraint rows at the nodes and the Riccati factorization of the Newton step, ``barrier`` the
Newton step of the barrier problem and its line search, ``method`` the solver ``InteriorPoint`` with its convergence
criteria.
"""
