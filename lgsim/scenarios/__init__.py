"""Problems from TOML files: trajectory optimization, Monte Carlo studies, simulations and maps of recordings.

- ``load_scenario(path)`` returns a ``Scenario``: ``optimize.solve(s.problem, s.us, solver=s.solver)``;
- ``load_study(path)`` returns a ``StudyScenario``: ``montecarlo.run(s.study)``; ``study_store.open_study(store)``
  returns a study run by ``lgsim montecarlo``, with its samples;
- ``study.load_motion(path)`` returns a ``MotionScenario``, a single simulation or the nominal motion of a study, as
  ``lgsim simulate file.toml`` computes it;
- ``load_recording_map(path, model)`` returns a ``RecordingMap``: ``map.read(path, model)`` is the recording,
  ``map.blocks(plant)`` are the unknown parameters.

An invalid file raises ``ScenarioError`` with file, line and key. ``lgsim.data`` has commented examples; the example
scenario "reach" contains all keys.
"""

from lgsim.support.public_names import public_names

__getattr__, __dir__ = public_names(__name__, __file__)  # as listed in __init__.pyi
