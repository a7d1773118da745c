"""Discrete mechanics: methods that follow from a discrete action, or that keep energy and momenta by construction."""
