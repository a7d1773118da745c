"""Constraints on states and controls, and their penalty terms."""
