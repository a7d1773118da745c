"""The methods that stand for their engines in the default run; those like them run with --exhaustive."""

import pytest

EXHAUSTIVE = pytest.mark.exhaustive
ENGINES = ("MK4", "MK4TwoCommutators", "CF43", "CG3")
"""One for each way through an explicit step: dexpinv, brackets, exponentials used again by a pair, one stage each."""


def default(cases, chosen=ENGINES):
    """The parameters of a test: the chosen cases, and the others marked exhaustive."""
    return [
        case if case in chosen else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=EXHAUSTIVE)
        for case in cases
    ]
