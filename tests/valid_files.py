"""A small valid input of each reader of files."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import scipy.io

import lgsim
from lgsim import actuators, formats, identify, montecarlo, programs, scenarios, view
from lgsim._compile.programs import Program, ProgramFormatError
from lgsim.actuators import Actuators, Transmission
from lgsim.identify import model_files
from lgsim.identify.actuator_record import to_record
from lgsim.montecarlo.store import Chunk, Store, StoreMetadata
from lgsim.multibody import contacts, geometry, joints
from lgsim.scenarios import torque_file
from lgsim.scenarios.study import load_motion
from lgsim.scenarios.study_store import describe_study, open_study
from lgsim.simulation import Trajectory
from lgsim.simulation.accuracy.trajectory_error import StepError
from lgsim.support import toml_table
from lgsim.support.checkpoint import Checkpoint


class Reader(NamedTuple):
    """A reader with a valid input.

    Attributes:
        files: The content of each file, by its name in a folder.
        mutated: The names of those that are changed.
        read: Reads what is in a folder.
    """

    files: Mapping[str, bytes]
    mutated: tuple[str, ...]
    read: Callable[[Path], object]


def machine() -> lgsim.Model:
    """A small machine with most that a record of a model can hold."""
    build = lgsim.ModelBuilder()
    build.add_body("upper", "world", joints.Revolute(), joint_name="shoulder", axis=[0, 1, 0], mass=2.0,
                   center=[0, 0, 0.2], inertia=0.1 * np.eye(3))  # fmt: skip
    build.add_body("fore", "upper", joints.Revolute(), joint_name="elbow", axis=[0, 1, 0], mass=1.0,
                   center=[0, 0, 0.2], inertia=0.1 * np.eye(3), placement=_shift(0.4))  # fmt: skip
    build.add_body("cup", "fore", joints.Spherical(), joint_name="wrist", mass=0.5, center=[0, 0, 0.1],
                   inertia=0.01 * np.eye(3), placement=_shift(0.4))  # fmt: skip
    build.add_frame("tip", "cup", _shift(0.1))
    model = build.build().add_coupling("gear", "shoulder", "elbow", [0.0, 0.5])
    model = model.add_contact("touch", "tip", contacts.sphere(0.02), stiffness=1e4)
    return model.add_solids([("ball", "tip", geometry.Sphere(0.02), np.eye(4))])


def _shift(z: float) -> np.ndarray:
    T = np.eye(4)
    T[2, 3] = z
    return T


def arm() -> lgsim.Model:
    """Two joints, as logs have them."""
    return formats.read_urdf(text=URDF)[0]


def motion(model: lgsim.Model, n: int = 8) -> Trajectory:
    """Some motion, with an estimate of its error."""
    time = np.arange(n) / 8
    q = np.tile(np.asarray(model.neutral()), (n, 1))
    q[:, 0] = np.sin(time)
    v = np.zeros((n, model.nv))
    v[:, 0] = np.cos(time)
    names = tuple(f"x{i}" for i in range(2 * model.nv))
    error = StepError(value=np.full((n, 2 * model.nv), 1e-6), tolerance=np.full(2 * model.nv, 0.05), order=4.0,
                      size=np.ones(2 * model.nv), names=names, units=("rad",) * len(names), places=model.nv, claimed=4,
                      rate=float("nan"), until=1.0)  # fmt: skip
    return Trajectory(model, time, q, v, 2 * v, method="MK4", dt=0.125, version="0.1.0", step_error=error)


def _saved(write: Callable[[Path], object], ending: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x{ending}"
        write(path)
        return path.read_bytes()


def _alone(ending: str, content: bytes, read: Callable[[Path], object]) -> Reader:
    name = f"x{ending}"
    return Reader({name: content}, (name,), lambda folder: read(folder / name))


def _trajectory(ending: str) -> Reader:
    return _alone(ending, _saved(motion(machine()).save, ending), Trajectory.load)


def _fit() -> Reader:
    model = machine()
    stages = [actuators.DCMotor(resistance=0.5, torque_constant=0.1, back_emf=0.1), actuators.Saturation(-40.0, 40.0)]
    record, arrays = to_record(Actuators(Transmission.of_joints(model), *stages))
    arrays |= {f"signal.{name}": np.ones(model.nv) for name in ("scale", "offset", "stribeck", "stribeck_speed")}
    content = model_files.to_bytes("lgsim fit 1", {"actuators": record}, model, arrays)
    return _alone(".npz", content, identify.load_plant)


def _recording() -> Reader:
    run = motion(machine())
    made = identify.Recording(run.model, run.time, run.q, run.v, tau=run.tau, imu={"tip": np.ones((len(run), 6))},
                              source="a bench", history=("by hand",))  # fmt: skip
    return _alone(".npz", _saved(made.save, ".npz"), identify.Recording.load)


def _table(ending: str) -> Reader:
    run, model = motion(arm(), 40), arm()
    made = identify.Recording(model, run.time, run.q, run.v, tau=run.tau)
    content = _saved(made.save, ".npz" if ending == ".mat" else ending)
    if ending == ".npz":
        out = io.BytesIO()
        np.savez(out, time=run.time, q=run.q, v=run.v, joint_names=np.array(model.joint_names))
        content = out.getvalue()
    if ending == ".mat":
        out = io.BytesIO()
        scipy.io.savemat(out, {"log": {"time": run.time, "x": 1}, "q": run.q, "v": run.v}, do_compression=True)
        content = out.getvalue()
    columns = {"log.time": "time"} if ending == ".mat" else None
    return _alone(ending, content, lambda path: identify.read_recording(path, model, columns))


def _side_by_side() -> Reader:
    """Two files of white space, the second one without names."""
    run, model = motion(arm(), 40), arm()
    rows = [" ".join(map(str, row)) for row in np.column_stack([run.time, run.q]).tolist()]
    names = " ".join(["time", *(f"q_{name}" for name in model.joint_names)])
    files = {"x.txt": "\n".join([names, *rows]).encode(), "y.txt": "\n".join(rows).encode()}
    given = {"options": {"files": {"y.txt": ["t", *(f"v {name}" for name in model.joint_names)]}}}
    return Reader(files, tuple(files), lambda folder: identify.read_recording(folder / "x.txt", model, given))


def _ros1() -> Reader:
    from tests.identify.logs import bags

    model = arm()
    run = motion(model, 60)
    made = identify.Recording(model, run.time, run.q, run.v, tau=run.tau)
    with tempfile.TemporaryDirectory() as folder:
        content = bags.write_ros1(Path(folder) / "x.bag", made).read_bytes()
    return _alone(".bag", content, lambda path: identify.read_recording(path, model))


def _map(read: Callable[[Path, lgsim.Model], object]) -> Reader:
    run, model = motion(arm(), 40), arm()
    columns = {"t": run.time, "a": run.q[:, 0], "b": run.q[:, 1]}
    rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    files = {"map.toml": MAP.encode(), "x.csv": "\n".join(rows).encode()}
    return Reader(files, ("map.toml",), lambda folder: read(folder, model))


def _mcap(**settings: object) -> Reader:
    from tests.identify.logs import bags

    model = arm()
    run = motion(model, 60)
    made = identify.Recording(model, run.time, run.q, run.v, tau=run.tau)
    topics = {"/joint_states": ("sensor_msgs/msg/JointState", bags.joint_states(made))}
    content = bags.write_mcap(topics, **settings)
    return _alone(".mcap", content, lambda path: identify.read_recording(path, model))


def _mcap_plain() -> Reader:
    from mcap.writer import CompressionType

    return _mcap(compression=CompressionType.NONE, enable_crcs=False, chunk_size=1024)


def _mcap_zstd() -> Reader:
    from mcap.writer import CompressionType

    return _mcap(compression=CompressionType.ZSTD, enable_crcs=False, chunk_size=2048)


def _db3() -> Reader:
    from tests.identify.logs import bags

    model = arm()
    run = motion(model, 60)
    made = identify.Recording(model, run.time, run.q, run.v, tau=run.tau)
    topics = {"/joint_states": ("sensor_msgs/msg/JointState", bags.joint_states(made))}
    with tempfile.TemporaryDirectory() as folder:
        bag = bags.write_rosbag(Path(folder) / "bag", topics)
        content = next(bag.glob("*.db3")).read_bytes()
    return _alone(".db3", content, lambda path: identify.read_recording(path, model))


def _lerobot() -> Reader:
    from tests.identify.logs import test_lerobot

    build = lgsim.ModelBuilder()
    build.add_body("upper", "world", joints.Revolute(), joint_name="shoulder_pan", mass=1.0, inertia=np.eye(3))
    build.add_body("fore", "upper", joints.Revolute(), joint_name="elbow_flex", mass=1.0, inertia=np.eye(3))
    model = build.build()
    with tempfile.TemporaryDirectory() as folder:
        root = test_lerobot.new(Path(folder) / "set")
        files = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    return Reader(files, tuple(files), lambda folder: identify.read_recording(folder, model, test_lerobot.DEGREES))


def _torques() -> Reader:
    model = arm()
    rows = ["time,shoulder,tau elbow [N m]", *(f"{0.1 * i:g},{i},{-i}" for i in range(20))]

    def read(folder: Path) -> object:
        table = toml_table.read(folder / "x.toml")
        return torque_file.read_torques(table, "file", model, np.arange(10) / 10)

    return Reader({"torques.csv": "\n".join(rows).encode(), "x.toml": b'file = "torques.csv"'}, ("torques.csv",), read)


def _scenario() -> Reader:
    files = {"x.toml": SCENARIO.encode(), "path.csv": b"t,x,y,z\n0,0,0,1\n0.1,0.1,0,1\n0.2,0.2,0,1\n"}
    return Reader(files, tuple(files), lambda folder: scenarios.load_scenario(folder / "x.toml"))


def _study(read: Callable[[Path], object]) -> Reader:
    from tests.scenarios.studies import STUDY

    text = STUDY.replace('"arm.urdf"', '"x.urdf"').replace("samples = 200", "samples = 16")
    files = {"x.toml": text.encode(), "x.urdf": URDF.encode()}
    return Reader(files, ("x.toml",), lambda folder: read(folder / "x.toml"))


def _loops() -> Reader:
    model = arm()
    return _alone(".toml", LOOPS.encode(), lambda path: formats.loop_files.add_loops(model, path))


def _urdf() -> Reader:
    files = {"x.urdf": URDF.encode(), "box.stl": STL.encode()}
    return Reader(files, ("x.urdf",), lambda folder: formats.read_urdf(folder / "x.urdf", solids=True))


def _actuators() -> Reader:
    model = arm()
    return _alone(".urdf", URDF.encode(), lambda path: formats.load_actuators(model, path))


def _written() -> Reader:
    model = arm()
    return _alone(".urdf", URDF.encode(), lambda path: formats.write_urdf(path, model, path.parent / "out.urdf"))


def _sdf() -> Reader:
    return _alone(".sdf", SDF.encode(), lambda path: formats.read_sdf(path, solids=True))


def _mjcf() -> Reader:
    def read(path: Path) -> object:
        return formats.read_mjcf(path, solids=True), formats.load_actuators(lgsim.load_mjcf(path), path)

    return _alone(".xml", MJCF.encode(), read)


def _mesh(name: str, content: bytes, read: Callable[[Path], object]) -> Reader:
    files = {"x.urdf": URDF.replace("box.stl", name).encode(), name: content}
    return Reader(files, (name,), lambda folder: read(folder / "x.urdf"))


def _solids(path: Path) -> object:
    return formats.read_urdf(path, solids=True)


def _binary_stl() -> bytes:
    facet = np.dtype([("numbers", "<f4", 12), ("attribute", "<u2")])
    made = np.zeros(4, facet)
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
    for k, face in enumerate(([0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3])):
        made["numbers"][k, 3:] = corners[face].ravel()
    return bytes(80) + (4).to_bytes(4, "little") + made.tobytes()


def _checkpoint() -> Reader:
    """The state of some work."""
    state = {"x": np.arange(6.0).reshape(2, 3), "n": np.array(3), "done": np.array(False)}
    content = _saved(lambda path: Checkpoint(path, "0" * 16).write(state), ".npz")
    return _alone(".npz", content, lambda path: Checkpoint(path, "0" * 16).read(state))


def _program() -> Reader:
    """A program as it stands in the cache."""

    def read(path: Path) -> object:
        try:
            return Program.from_bytes(path.read_bytes())
        except ProgramFormatError as error:  # which knows of no file
            raise ValueError(f"{path}: {error}") from error

    made = programs.read(lambda x: np.float64(2.0) * jax.numpy.sin(x) + x[0], np.ones(3))
    return _alone(".bin", made.to_bytes(), read)


def _store(run: bool) -> Reader:
    """A store of a study; one that was run has the error of its steps too."""
    from tests.scenarios.studies import STUDY

    text = STUDY.replace('"arm.urdf"', '"x.urdf"').replace("samples = 200", "samples = 16")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "x.toml").write_text(text)
        (root / "x.urdf").write_text(URDF)
        study = scenarios.load_study(root / "x.toml")
        path = root / "store"
        if run:
            montecarlo.run(study.study, path, chunk=16)
            store = Store(path)
        else:
            columns = {name: (str(kind.dtype), kind.shape) for name, kind in study.study.columns().items()}
            store = Store.create(path, StoreMetadata("0" * 16, "", {}, 3, 16, 16, 16, columns, "cpu"))
            store.write(0, Chunk(0, {name: np.zeros((16, *shape), kind) for name, (kind, shape) in columns.items()}))
            store.finish(16)
        describe_study(store, study, text.encode())
        paths = [found for found in sorted(path.rglob("*")) if found.is_file() and found.name != "lock"]
        files = {str(found.relative_to(path)): found.read_bytes() for found in paths}
    return Reader(files, tuple(files), lambda folder: list(open_study(folder).results.chunks()))


URDF = """<?xml version="1.0"?>
<robot name="arm">
  <link name="base"/>
  <link name="upper">
    <inertial><origin xyz="0.02 0.03 0.2" rpy="0 0 0"/><mass value="2"/>
      <inertia ixx="0.05" iyy="0.04" izz="0.02" ixy="0" ixz="0.002" iyz="0"/></inertial>
    <visual><origin xyz="0 0 0.2"/><geometry><mesh filename="box.stl" scale="0.1 0.1 0.1"/></geometry></visual>
    <collision><origin xyz="0 0 0.2"/><geometry><mesh filename="box.stl" scale="0.1 0.1 0.1"/></geometry></collision>
    <collision><origin xyz="0 0 0.1"/><geometry><cylinder radius="0.05" length="0.2"/></geometry></collision>
  </link>
  <link name="fore">
    <inertial><origin xyz="0.01 -0.02 0.15"/><mass value="1.2"/>
      <inertia ixx="0.02" iyy="0.015" izz="0.01" ixy="0" ixz="-0.001" iyz="0"/></inertial>
    <collision><geometry><box size="0.1 0.1 0.3"/></geometry></collision>
  </link>
  <link name="tip"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="40" velocity="4"/><dynamics damping="0.1" friction="0.2"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0 0 0.4"/>
    <axis xyz="0 1 0"/><limit lower="-2.5" upper="2.5" effort="15" velocity="5"/></joint>
  <joint name="end" type="fixed"><parent link="fore"/><child link="tip"/><origin xyz="0 0 0.3"/></joint>
  <transmission name="t"><type>transmission_interface/SimpleTransmission</type>
    <joint name="elbow"><hardwareInterface>EffortJointInterface</hardwareInterface></joint>
    <actuator name="m"><mechanicalReduction>50</mechanicalReduction></actuator></transmission>
</robot>
"""

SDF = """<?xml version="1.0"?>
<sdf version="1.8"><model name="arm">
  <link name="base"/>
  <link name="upper"><pose>0 0 0.1 0 0 0</pose>
    <inertial><pose>0 0 0.2 0 0 0</pose><mass>2</mass><inertia><ixx>0.05</ixx><iyy>0.04</iyy><izz>0.02</izz>
      <ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial>
    <collision name="c"><geometry><sphere><radius>0.1</radius></sphere></geometry></collision></link>
  <link name="fore"><pose relative_to="upper">0 0 0.4 0 0 0</pose>
    <inertial><mass>1.2</mass><inertia><ixx>0.02</ixx><iyy>0.02</iyy><izz>0.01</izz></inertia></inertial>
    <collision name="c"><geometry><box><size>0.1 0.1 0.3</size></box></geometry></collision></link>
  <joint name="fix" type="fixed"><parent>world</parent><child>base</child></joint>
  <joint name="shoulder" type="revolute"><parent>base</parent><child>upper</child>
    <axis><xyz>0 1 0</xyz><limit><lower>-2</lower><upper>2</upper><effort>40</effort></limit>
      <dynamics><damping>0.1</damping></dynamics></axis></joint>
  <joint name="elbow" type="revolute"><parent>upper</parent><child>fore</child>
    <axis><xyz>0 1 0</xyz><limit><lower>-2.5</lower><upper>2.5</upper></limit></axis></joint>
  <model name="tool" placement_frame="tip"><pose relative_to="fore">0 0 0.3 0 0 0</pose>
    <link name="cup"><inertial auto="true"><density>500</density></inertial>
      <collision name="c"><geometry><capsule><radius>0.1</radius><length>0.2</length></capsule></geometry></collision>
    </link><frame name="tip" attached_to="cup"><pose>0 0 0.1 0 0 0</pose></frame></model>
  <joint name="hold" type="fixed"><parent>fore</parent><child>tool::tip</child></joint>
</model></sdf>
"""

MJCF = """<mujoco model="arm">
  <compiler angle="radian"/>
  <option gravity="0 0 -9.81" timestep="0.002"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1"/>
    <body name="upper" pos="0 0 0.5">
      <joint name="shoulder" type="hinge" axis="0 1 0" range="-2 2" limited="true" damping="0.1"/>
      <geom name="g" type="capsule" size="0.04 0.2" mass="2"/>
      <body name="fore" pos="0 0 0.4">
        <joint name="elbow" type="hinge" axis="0 1 0" range="-2.5 2.5" limited="true"/>
        <geom name="h" type="box" size="0.05 0.05 0.15" mass="1.2"/>
        <site name="tip" pos="0 0 0.3"/>
      </body>
    </body>
  </worldbody>
  <equality><joint name="gear" joint1="shoulder" joint2="elbow" polycoef="0 1 0 0 0"/></equality>
  <actuator><motor name="m" joint="shoulder" gear="50" ctrlrange="-1 1" ctrllimited="true"/>
    <position name="p" joint="elbow" kp="20"/></actuator>
</mujoco>
"""

LOOPS = """[[loop]]
name = "gear"
joint_a = "shoulder"
joint_b = "elbow"
coefficients = [0, 0.02]

[[loop]]
name = "rod"
frame_a = "tip"
frame_b = "world"
placement_b = { xyz = [0.3, 0, 0.2], rpy = [0, 0, 0] }
length = 0.4
"""

MAP = """t = { quantity = "time", unit = "s" }
a = { joint = "shoulder", quantity = "q", sign = -1, unit = "rad" }
b = { joint = "elbow", quantity = "q", scale = 1.0, index = 0 }

[options]
quaternion = "wxyz"
twist = "body"
constants = { "v shoulder" = 0.5 }
"""

SCENARIO = """[machine]
file = "lgsim:cart_pole"
gravity = [0, 0, -9.81]

[start]
q = { slider = 0.0, hinge = 0.1 }

[time]
dt = 0.05
horizon = 4

[[posture]]
q = { slider = 0.1, hinge = 3.1 }
weight = 10.0

[[follow]]
frame = "tip"
file = "path.csv"

[weights]
effort = 1e-2
final_velocity = 1e3

[limits]
torque = { slider = 20 }
position = true

[solver]
max_iterations = 5
gradient_tolerance = 1e-3
"""

OBJ = (
    "o box\n"
    + "".join(f"v {x} {y} {z}\n" for x in (0, 1) for y in (0, 1) for z in (0, 1))
    + ("vn 0 0 1\nf 1 2 4 3\nf 5//1 6//1 8//1 7//1\nf -8 -7 -3 -4\nf 3 4 8 7\nf 1 3 7 5\nf 2/1/1 4/1/1 8/1/1 6/1/1\n")
)

STL = "solid x\n" + "".join(
    f"facet normal 0 0 1\nouter loop\n{a}{b}{c}endloop\nendfacet\n"
    for a, b, c in (
        ("vertex 0 0 0\n", "vertex 1 0 0\n", "vertex 0 1 0\n"), ("vertex 0 0 0\n", "vertex 1 0 0\n", "vertex 0 0 1\n"),
        ("vertex 0 0 0\n", "vertex 0 1 0\n", "vertex 0 0 1\n"), ("vertex 1 0 0\n", "vertex 0 1 0\n", "vertex 0 0 1\n"),
    )
) + "endsolid x\n"  # fmt: skip

DAE = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
 <asset><unit name="meter" meter="1"/><up_axis>Z_UP</up_axis></asset>
 <library_geometries><geometry id="g" name="g"><mesh>
  <source id="p"><float_array id="pa" count="9">0 0 0 1 0 0 0 1 0</float_array>
   <technique_common><accessor source="#pa" count="3" stride="3"><param name="X" type="float"/>
    <param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
  <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
  <triangles count="1"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p></triangles>
 </mesh></geometry></library_geometries>
 <library_visual_scenes><visual_scene id="s"><node id="n"><instance_geometry url="#g"/></node></visual_scene>
 </library_visual_scenes>
 <scene><instance_visual_scene url="#s"/></scene>
</COLLADA>
"""

READERS: dict[str, Callable[[], Reader]] = {
    "trajectory npz": lambda: _trajectory(".npz"),
    "trajectory parquet": lambda: _trajectory(".parquet"),
    "fit": _fit,
    "recording npz": _recording,
    "table csv": lambda: _table(".csv"),
    "table npz": lambda: _table(".npz"),
    "table mat": lambda: _table(".mat"),
    "side by side": _side_by_side,
    "ros1": _ros1,
    "table parquet": lambda: _table(".parquet"),
    "map": lambda: _map(lambda folder, model: identify.read_recording(folder / "x.csv", model, folder / "map.toml")),
    "scenario map": lambda: _map(lambda folder, model: scenarios.load_recording_map(folder / "map.toml", model)),
    "mcap plain": _mcap_plain,
    "mcap zstd": _mcap_zstd,
    "db3": _db3,
    "lerobot": _lerobot,
    "torques": _torques,
    "scenario": _scenario,
    "study": lambda: _study(scenarios.load_study),
    "motion": lambda: _study(load_motion),
    "loops": _loops,
    "urdf": _urdf,
    "urdf actuators": _actuators,
    "urdf source": _written,
    "sdf": _sdf,
    "mjcf": _mjcf,
    "obj": lambda: _mesh("box.obj", OBJ.encode(), _solids),
    "stl": lambda: _mesh("box.stl", STL.encode(), _solids),
    "binary stl": lambda: _mesh("box.STL", _binary_stl(), _solids),
    "shown obj": lambda: _mesh("box.obj", OBJ.encode(), view.read_visuals),
    "shown dae": lambda: _mesh("box.dae", DAE.encode(), view.read_visuals),
    "checkpoint": _checkpoint,
    "program": _program,
    "store": lambda: _store(run=False),
    "store of a run": lambda: _store(run=True),
}
"""Makes each reader's input."""

COSTLY = {"study": 8, "store": 8, "store of a run": 0}
"""Readers that compile, and the variants of them that a quick test has time for."""
