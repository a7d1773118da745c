# The public names and where they are: each is imported when it is used first.
from lgsim.scenarios.optimization import load_scenario as load_scenario
from lgsim.scenarios.recording_map import load_recording_map as load_recording_map
from lgsim.scenarios.study import load_study as load_study
from lgsim.support.scenario_error import ScenarioError as ScenarioError
