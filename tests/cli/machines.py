"""Files of machines, and the command in this process."""

import numpy as np
from typer.testing import CliRunner

LENGTH, CENTERS, MASSES, INERTIAS = 0.4, (0.2, 0.15), (2.0, 1.0), (0.03, 0.01)

ARM = f"""<robot name="arm"><link name="base"/>
<link name="upper"><inertial><origin xyz="0 0 {CENTERS[0]}"/><mass value="{MASSES[0]}"/>
  <inertia ixx=".03" iyy="{INERTIAS[0]}" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="fore"><inertial><origin xyz="0 0 {CENTERS[1]}"/><mass value="{MASSES[1]}"/>
  <inertia ixx=".01" iyy="{INERTIAS[1]}" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial>
  <visual><geometry><box size=".05 .05 .3"/></geometry></visual></link>
<link name="tip"/>
<joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0 0 {LENGTH}"/>
  <axis xyz="0 1 0"/><limit lower="-2" upper="1.5" velocity="5" effort="10"/></joint>
<joint name="weld" type="fixed"><parent link="fore"/><child link="tip"/><origin xyz="0 0 .3"/></joint>
</robot>"""

BALL = """<robot name="ball"><link name="base"/>
<link name="ball"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="odd"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="9" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="socket" type="spherical"><parent link="base"/><child link="ball"/></joint>
<joint name="wheel" type="continuous"><parent link="ball"/><child link="odd"/><axis xyz="0 0 1"/></joint>
<joint name="shadow" type="continuous"><parent link="ball"/><child link="last"/><axis xyz="1 0 0"/>
  <mimic joint="wheel" multiplier="2" offset="0.5"/></joint>
<link name="last"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
</robot>"""

SLIDER = """<mujoco><option gravity="0 0 -3"/><worldbody><body name="cart">
<joint name="rail" type="slide" axis="1 0 0"/>
<geom type="box" size=".1 .1 .1" mass="2"/></body></worldbody></mujoco>"""

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
