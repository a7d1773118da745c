# The public names and where they are: each is imported when it is used first.
from lgsim.scenarios.machine import MachineFile as MachineFile
from lgsim.scenarios.optimization import Scenario as Scenario
from lgsim.scenarios.optimization import load_scenario as load_scenario
from lgsim.scenarios.recording_map import RecordingMap as RecordingMap
from lgsim.scenarios.recording_map import load_recording_map as load_recording_map
from lgsim.scenarios.study import MotionScenario as MotionScenario
from lgsim.scenarios.study import StudyScenario as StudyScenario
from lgsim.scenarios.study import load_motion as load_motion
from lgsim.scenarios.study import load_study as load_study
from lgsim.scenarios.study_store import StoredStudy as StoredStudy
from lgsim.scenarios.study_store import open_study as open_study
from lgsim.scenarios.tasks import Task as Task
from lgsim.support.scenario_error import ScenarioError as ScenarioError
