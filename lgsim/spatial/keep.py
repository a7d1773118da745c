"""Values that reverse mode through a loop keeps at each step, because they are few and dear to compute again."""

from __future__ import annotations

import jax
from jax import Array
from jax.ad_checkpoint import checkpoint_name

_NAME = "lgsim: kept at each step"

kept = jax.checkpoint_policies.save_only_these_names(_NAME)
"""The policy of ``jax.checkpoint`` that keeps them."""


def keep(x: Array) -> Array:
    """x, to be kept. A derivative rule has to use what this returns in place of x."""
    return checkpoint_name(x, _NAME)
