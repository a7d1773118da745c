"""Dynamics of the central body of a legged robot on fixed feet, and the loads on the feet."""
