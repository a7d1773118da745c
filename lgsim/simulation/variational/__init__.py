"""Variational integration of models, and the interface between ``rollout`` and methods with states of their own."""
