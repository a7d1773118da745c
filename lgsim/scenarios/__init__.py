"""Problems from TOML files: scenarios of trajectory optimization, Monte Carlo studies, maps of recordings.

- ``load_scenario(path)`` gives a ``Scenario``: ``optimize.solve(s.problem, s.us, solver=s.solver)``;
- ``load_study(path)`` gives a ``StudyScenario``: ``montecarlo.run(s.study)``; ``open_study(store)`` gives what the
  command ``lgsim montecarlo`` ran, with its samples;
- ``load_recording_map(path, model)`` gives a ``RecordingMap``: ``map.read(path, model)`` is the recording,
  ``map.blocks(plant)`` are the unknowns.

A file that is wrong is a ``ScenarioError`` with file, line and key. ``lgsim.data`` has commented files with all keys.
"""

from lgsim.scenarios.machine import MachineFile
from lgsim.scenarios.optimization import Scenario, load_scenario
from lgsim.scenarios.recording_map import RecordingMap, load_recording_map
from lgsim.scenarios.scenario_error import ScenarioError
from lgsim.scenarios.study import StudyScenario, load_study
from lgsim.scenarios.study_store import StoredStudy, open_study
from lgsim.scenarios.tasks import Task

__all__ = [
    "MachineFile",
    "RecordingMap",
    "Scenario",
    "ScenarioError",
    "StoredStudy",
    "StudyScenario",
    "Task",
    "load_recording_map",
    "load_scenario",
    "load_study",
    "open_study",
]
