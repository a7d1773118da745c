"""Discrete mechanics: methods from a discrete action, or that preserve energy and momenta by construction."""
