"""Conditions on states and controls, and the penalties that stand for them."""
