"""Lie groups and their actions: pure functions on arrays, group objects, and the scalar series behind them."""

from lgsim.lie import (
    action,
    ad_functions,
    conversions,
    extended_pose,
    group,
    product,
    quaternion,
    se2,
    se3,
    series,
    so2,
    so3,
)

__all__ = [
    "action",
    "ad_functions",
    "conversions",
    "extended_pose",
    "group",
    "product",
    "quaternion",
    "se2",
    "se3",
    "series",
    "so2",
    "so3",
]
