"""Collision geometry of robot description files, for distances, contacts and visualization."""
