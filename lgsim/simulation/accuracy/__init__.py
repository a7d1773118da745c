"""Estimated integration errors: of trajectories and of numbers that come from them, their causes, and what helps."""
