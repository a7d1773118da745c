"""Contact forces, contact energy, and suggested contact parameters."""
