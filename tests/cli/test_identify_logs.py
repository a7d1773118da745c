"""``lgsim identify`` from logs of robots, and from several recordings at once."""

import re

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("rosbags")
pytest.importorskip("mcap_ros2")

from tests.cli.machines import lgsim as command
from tests.cli.machines import refused
from tests.cli.test_identify import CHANGEOVER, COUNT, DAMPING, DT, FRICTION, NOISE, TRUE, motion, numbers, torques
from tests.identify.logs import bags

KIND = "sensor_msgs/msg/JointState"
NAMES = ["elbow", "shoulder"]
"""As a driver may order them."""


def messages(time, late=0.0, clock=0, seed=0, fields=("position", "effort")):
    """JointStates of the plane arm of test_identify; efforts `late` behind the positions, stamps off by a clock."""
    rng = np.random.default_rng(seed)
    q, _, _ = motion(time)
    tau = torques(*motion(time - late)) + np.array(NOISE) * rng.normal(size=q.shape)
    q = q + 1e-5 * rng.normal(size=q.shape)
    found = []
    for i, t in enumerate(time):
        ns = bags.START + round(t * 1e9)
        arrays = {"position": q[i, ::-1].tolist(), "velocity": [], "effort": tau[i, ::-1].tolist()}
        arrays |= {field: [] for field in arrays if field not in fields}
        found.append((ns + 10**6, {"header": bags.header(ns + clock), "name": NAMES, **arrays}))
    return found


def near(folder, wide=1.0):
    """The numbers of the fit are those of the equations, within four deviations and a part of them."""
    true = {"m of upper, kg": TRUE[0], "m of fore, kg": TRUE[1]}
    for i, joint in enumerate(("shoulder", "elbow")):
        true[f"friction of {joint}, N m"] = FRICTION[i]
        true[f"damping of {joint}, N m s/rad"] = DAMPING[i]
        true[f"friction_speed of {joint}, rad/s"] = CHANGEOVER
    values = numbers(folder)
    assert set(values) == set(true)
    for name, (value, deviation) in values.items():
        assert abs(value - true[name]) < 4 * deviation + 0.02 * wide * true[name], name


@pytest.mark.slow
def test_two_bags_in_one_fit(files, tmp_path):
    """An MCAP file and a folder of a bag with the two halves of a motion: the same as from one file, and better."""
    time = DT * np.arange(COUNT)
    halves = [messages(part, seed=k) for k, part in enumerate((time[:250], time[250:]))]
    (tmp_path / "one.mcap").write_bytes(bags.write_mcap({"/joint_states": (KIND, halves[0])}))
    bags.write_rosbag(tmp_path / "two", {"/joint_states": (KIND, halves[1])})
    result = command(
        "identify", files / "arm.urdf", tmp_path / "one.mcap", tmp_path / "two", "--fit", "masses,friction,damping",
        "--out", tmp_path / "fit.npz", "--no-step-check",
    )  # fmt: skip
    said = " ".join(result.stderr.split())
    assert (
        "one.mcap: 250 samples in 2.49 s, of q, v, tau" in said and "two: 250 samples in 2.49 s, of q, v, tau" in said
    )
    near(tmp_path)


@pytest.mark.slow
def test_efforts_on_the_clock_of_another_computer(files, tmp_path):
    """Their stamps are years off and 7 ms late: brought together by the times of recording and by the motion."""
    time = DT * np.arange(COUNT)
    topics = {
        "/encoders": (KIND, messages(time, fields=("position",))),
        "/drives": (KIND, messages(time, late=7e-3, clock=-(10**17), fields=("effort",))),
    }
    (tmp_path / "run.mcap").write_bytes(bags.write_mcap(topics))
    result = command(
        "identify", files / "arm.urdf", tmp_path / "run.mcap", "--fit", "masses,friction,damping",
        "--out", tmp_path / "fit.npz", "--no-step-check",
    )  # fmt: skip
    said = " ".join(result.stderr.split())
    assert (
        "other clock, /drives (tau): its stamps are of another clock, with an offset of -1e+08 s from /encoders" in said
    )
    late = re.search(r"tau: stamps of another clock; estimated delay ([\d.]+) ms", said)
    # to some tenth of a step of 10 ms, by a model whose masses and friction are not known yet
    assert late and abs(float(late[1]) - 7) < 1.5, said
    near(tmp_path, wide=2.0)


def test_topics_of_a_map_are_checked_with_their_line(files, tmp_path):
    """Before the log is read where that is possible, and after it."""
    (tmp_path / "run.mcap").write_bytes(bags.write_mcap({"/joint_states": (KIND, messages(DT * np.arange(20)))}))
    (tmp_path / "map.toml").write_text('[topics]\n"/joint_states" = { unit = "kg" }\n')
    ask = ("identify", files / "arm.urdf", tmp_path / "run.mcap", "--map", tmp_path / "map.toml", "--check")
    assert "map.toml:2: topics./joint_states.unit: expected a unit of positions, rad" in refused(*ask)
    (tmp_path / "map.toml").write_text('[topics]\n"/joint_state" = { unit = "rad" }\n')
    assert "the log has no such topic; it has /joint_states" in refused(*ask)
    (tmp_path / "map.toml").write_text('[topics]\n"/joint_states" = { unit = "rad" }\n')
    assert command(*ask).exit_code == 0


def test_delay_of_an_imu(tmp_path):
    """By the size of its angular velocity, for nobody knows how it is mounted; MuJoCo says what it would measure."""
    import mujoco
    from scipy.spatial.transform import Rotation

    import lgsim
    from lgsim.cli.work.identify_preparation import in_step
    from lgsim.identify import Plant, Recording
    from lgsim.scenarios import load_recording_map
    from tests.identify.recording.motions import fourier

    model = lgsim.load_urdf(lgsim.data.arm7())
    model = model.add_frame("imu", model.body_names[4])
    machine = mujoco.MjModel.from_xml_path(str(lgsim.data.arm7()))
    machine.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT  # lgsim's arm has none
    data, body = mujoco.MjData(machine), machine.body(model.body_names[4]).id
    time, late = 2e-3 * np.arange(1500), 0.0131
    w, rng = np.zeros((1500, 3)), np.random.default_rng(0)
    velocity = np.zeros(6)
    for i, (q, v) in enumerate(zip(*fourier(time - late)[:2], strict=True)):
        data.qpos, data.qvel = q, v
        mujoco.mj_forward(machine, data)
        mujoco.mj_objectVelocity(machine, data, mujoco.mjtObj.mjOBJ_BODY, body, velocity, 1)
        w[i] = velocity[:3]
    mounted = Rotation.from_rotvec([0.3, 1.0, -0.5]).apply(w) + 0.01 * rng.standard_normal((1500, 3))
    q, v, _ = fourier(time)
    record = Recording(model, time, q, v, imu={"imu": np.concatenate([0 * mounted, mounted], axis=1)})
    (tmp_path / "map.toml").write_text('[delays]\n"imu imu" = "estimate"\n')
    moved = in_step(record, Plant(model), load_recording_map(tmp_path / "map.toml", model))
    said = float(moved.history[-1].removeprefix("imu imu shifted back by ").removesuffix(" s"))
    assert abs(said - late) < 2e-4
    noise = np.concatenate([0 * mounted, rng.standard_normal((1500, 3))], axis=1)
    from lgsim.scenarios import ScenarioError

    with pytest.raises(ScenarioError, match=r"imu imu.*the angular velocity does not match that of its frame"):
        in_step(
            Recording(model, time, q, v, imu={"imu": noise}), Plant(model),
            load_recording_map(tmp_path / "map.toml", model),
        )  # fmt: skip
