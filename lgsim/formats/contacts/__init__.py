"""Contacts from robot description files: <collision> elements, geoms and mesh vertices."""
