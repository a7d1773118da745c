"""Recorded motion: checks that repair or name faults, delay estimation, smoothing.

``check_recording`` validates recordings from other sources as ``read_recording`` does for files; ``smooth`` uses
``Spline`` or ``Butterworth``.
"""

from lgsim.identify.recording.filters import Butterworth as Butterworth
from lgsim.identify.recording.filters import Spline as Spline
from lgsim.identify.recording.plausibility import check_recording as check_recording
