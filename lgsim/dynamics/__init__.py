"""Algorithms of multibody dynamics, one a file; none knows a joint by name."""
