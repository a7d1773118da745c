"""A floating machine that stands on some of its frames: what its central body feels, and what its feet carry."""
