"""Lie groups and their actions: pure functions on arrays, group objects, and the scalar series behind them."""

from lgsim.lie import action, conversions, extended_pose, group, phi, product, quaternion, se2, se3, series, so2, so3

__all__ = [
    "action", "conversions", "extended_pose", "group", "phi", "product", "quaternion", "se2", "se3", "series", "so2",
    "so3",
]  # fmt: skip
