"""Distances between solids: one engine for all convex pairs, closed forms where they exist, sampled fields."""
