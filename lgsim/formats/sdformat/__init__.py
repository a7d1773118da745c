"""SDF files: elements, nested models, and the tree of joints."""
