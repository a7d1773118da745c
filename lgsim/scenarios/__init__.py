"""Problems from TOML files: scenarios of trajectory optimization, Monte Carlo studies, maps of recordings.

- ``load_scenario(path)`` gives a ``Scenario``: ``optimize.solve(s.problem, s.us, solver=s.solver)``;
- ``load_study(path)`` gives a ``StudyScenario``: ``montecarlo.run(s.study)``; ``study_store.open_study(store)`` gives
  what the command ``lgsim montecarlo`` ran, with its samples;
- ``study.load_motion(path)`` gives a ``MotionScenario``, one motion or that of a study without its dispersions, for
  ``lgsim simulate file.toml``;
- ``load_recording_map(path, model)`` gives a ``RecordingMap``: ``map.read(path, model)`` is the recording,
  ``map.blocks(plant)`` are the unknowns.

A file that is wrong is a ``ScenarioError`` with file, line and key. ``lgsim.data`` has commented
files; that of a scenario has all keys.
"""

from lgsim.support.public_names import public_names

__getattr__, __dir__ = public_names(__name__, __file__)  # as listed in __init__.pyi
