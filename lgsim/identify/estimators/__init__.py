"""Estimators: records, losses, and algorithms that estimate the unknowns of a plant with their uncertainty."""
