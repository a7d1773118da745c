"""Step size and number of steps of the table `[time]`."""

from __future__ import annotations

from lgsim.support.toml_table import Table

LONGEST = 1_000_000
"""Largest number of steps."""
COUNTS = {"horizon": "a horizon, the number of steps", "steps": "a number of steps"}
"""Keys of the number of steps in scenarios and studies, with a description."""
SLACK = 1e-6
"""Tolerance for a duration that is a multiple of the step size, as a fraction of a step."""


def read_time_steps(table: Table, count: str) -> tuple[float, int]:
    """Step size, s, and number of steps of a table with the key ``dt`` and either ``duration`` or a number of steps.

    Args:
        count: Key of the number of steps, one of ``COUNTS``.

    Raises:
        ScenarioError: a key is missing, or the duration is not a multiple of the step size.
    """
    dt = table.needed_number("dt", above=0.0)
    if ("duration" in table) == (count in table):
        raise table.fault(None, f"expected either a duration, s, or {COUNTS[count]}")
    key = count if count in table else "duration"
    steps = float(table.whole(count, 1)) if count in table else table.needed_number(key, above=0.0) / dt
    # checked before rounding, because the quotient may be infinite
    if not steps <= LONGEST:
        raise table.fault(key, f"expected at most {LONGEST} steps, got {steps:.3g}")
    if abs(steps - round(steps)) > SLACK * max(steps, 1) or round(steps) < 1:
        raise table.fault(key, f"expected a whole number of steps of {dt:g} s, got {steps:.6g} steps")
    return dt, round(steps)
