"""The step and the number of steps of the table ``[time]``."""

from __future__ import annotations

from lgsim.support.toml_table import Table

LONGEST = 1_000_000
"""The largest number of steps."""
COUNTS = {"horizon": "a horizon, the number of steps", "steps": "a number of steps"}
"""The keys that the number of steps has in scenarios and in studies, in words."""
SLACK = 1e-6
"""The largest distance of a duration from a whole number of steps, as a share of a step."""


def read_time_steps(table: Table, count: str) -> tuple[float, int]:
    """The step, s, and the number of steps of a table with the key ``dt`` and either ``duration`` or a number of steps.

    Args:
        count: The key of the number of steps, one of ``COUNTS``.

    Raises:
        ScenarioError: a key is missing, or the duration is no whole number of steps.
    """
    dt = table.needed_number("dt", above=0.0)
    if ("duration" in table) == (count in table):
        raise table.fault(None, f"expected either a duration, s, or {COUNTS[count]}")
    key = count if count in table else "duration"
    steps = float(table.whole(count, 1)) if count in table else table.needed_number(key, above=0.0) / dt
    # before the quotient is rounded, for it may be infinite
    if not steps <= LONGEST:
        raise table.fault(key, f"expected at most {LONGEST} steps, got {steps:.3g}")
    if abs(steps - round(steps)) > SLACK * max(steps, 1) or round(steps) < 1:
        raise table.fault(key, f"expected a whole number of steps of {dt:g} s, got {steps:.6g} of them")
    return dt, round(steps)
