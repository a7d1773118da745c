"""Baselines of benchmarks/symbolic.py: generated C in a loop, Pinocchio without Python, adam's CasADi."""
