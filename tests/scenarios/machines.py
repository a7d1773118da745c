"""Files of small machines: an arm of two links, a ball with a wheel and its shadow, a slider."""

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
