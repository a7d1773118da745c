"""Estimated integration errors of trajectories and of values derived from them, their causes and remedies."""
