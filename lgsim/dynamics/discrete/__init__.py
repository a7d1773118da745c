"""Discrete mechanics of machines: the momenta at both ends of a step, and the step that has a given momentum."""
