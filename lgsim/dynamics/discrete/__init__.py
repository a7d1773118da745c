"""Discrete mechanics: the momenta at both ends of a step, and the step for a given momentum."""
