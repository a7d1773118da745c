"""Optimal control problems that a benchmark, a notebook and the tests share.

``TASKS[name](quick)`` is a ``Task``; quick tasks have short horizons.
"""

from collections.abc import Callable

from cases.control.design import link_lengths
from cases.control.flight import flip, perch
from cases.control.legs import quadruped
from cases.control.reach import arm7, panda
from cases.control.space import falling_cat, satellite
from cases.control.swing_up import cart_pole, pendulum
from cases.control.targets import targets
from cases.control.task import Task, steps_of

TASKS: dict[str, Callable[[bool], Task]] = {
    "pendulum": pendulum,
    "cart-pole": cart_pole,
    "Panda reach": panda,
    "arm7 reach": arm7,
    "flip": flip,
    "perch": perch,
    "satellite": satellite,
    "falling cat": falling_cat,
    "quadruped": quadruped,
    "targets": targets,
    "link lengths": link_lengths,
}

__all__ = ["TASKS", "Task", "steps_of"]
