"""Distances of solids: one engine for all convex pairs, closed forms where there are any, sampled fields."""
