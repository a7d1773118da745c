"""The command in this process, and the files of machines."""

import numpy as np
from typer.testing import CliRunner

from tests.scenarios.machines import ARM, BALL, CENTERS, INERTIAS, LENGTH, MASSES, SLIDER

__all__ = ["ARM", "BALL", "CENTERS", "INERTIAS", "LENGTH", "MASSES", "SLIDER"]

LIGHT = ARM.replace('value="1.0"', 'value="0"').replace('ixx=".01" iyy="0.01" izz=".01"', 'ixx="0" iyy="0" izz="0"')
"""The arm whose fore arm has neither mass nor inertia."""

Q, TORQUE, GRAVITY = np.array([-0.5, 0.3]), np.array([0.7, -0.2]), 5.0


def lgsim(*arguments):
    """The command with its exit code and output."""
    from lgsim.cli.app import app

    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def refused(*arguments, code=2):
    """The one line of an error."""
    result = lgsim(*arguments)
    assert result.exit_code == code, result.output
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("error: "), lines
    return lines[0].removeprefix("error: ")


def textbook_acceleration(q, tau, gravity):
    """Of the arm at rest: the plane arm of two links with hand-written mass matrix and gravity."""
    (c, d), (m, n), (i, j) = CENTERS, MASSES, INERTIAS
    cross = n * LENGTH * d * np.cos(q[1])
    inner = j + n * d**2
    M = np.array([[i + m * c**2 + n * LENGTH**2 + inner + 2 * cross, inner + cross], [inner + cross, inner]])
    fore = n * d * np.sin(q[0] + q[1])
    slope = -gravity * np.array([(m * c + n * LENGTH) * np.sin(q[0]) + fore, fore])
    return np.linalg.solve(M, tau - slope)
