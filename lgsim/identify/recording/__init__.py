"""Recorded motion: checks that mend or name what is wrong, delays, smoothing.

``check_recording`` does for recordings from elsewhere what ``read_recording`` does for files; ``smooth`` works with
``Spline`` or ``Butterworth``.
"""

from lgsim.identify.recording.filters import Butterworth as Butterworth
from lgsim.identify.recording.filters import Spline as Spline
from lgsim.identify.recording.plausibility import check_recording as check_recording
