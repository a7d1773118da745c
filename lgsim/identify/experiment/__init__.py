"""Experiments that show unknown numbers: periodic motions, criteria, and their design."""
