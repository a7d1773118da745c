# The public names and where they are: each is imported when it is used first.
from lgsim.scenarios.machine import MachineFile
from lgsim.scenarios.optimization import Scenario, load_scenario
from lgsim.scenarios.recording_map import RecordingMap, load_recording_map
from lgsim.scenarios.study import MotionScenario, StudyScenario, load_motion, load_study
from lgsim.scenarios.study_store import StoredStudy, open_study
from lgsim.scenarios.tasks import Task
from lgsim.support.scenario_error import ScenarioError

__all__ = [
    "MachineFile",
    "MotionScenario",
    "RecordingMap",
    "Scenario",
    "ScenarioError",
    "StoredStudy",
    "StudyScenario",
    "Task",
    "load_motion",
    "load_recording_map",
    "load_scenario",
    "load_study",
    "open_study",
]
