"""Contacts from files of machines: solids of <collision> elements, geoms, vertices of meshes."""
