"""Variational motion of machines, and the contract by which ``rollout`` meets methods with states of their own."""
