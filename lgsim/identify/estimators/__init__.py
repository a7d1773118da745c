"""Estimators: records, losses, and ways to find the unknowns of a plant with their uncertainty."""
