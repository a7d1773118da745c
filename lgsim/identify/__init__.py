"""System identification: from recorded motion to a machine's numbers.

Recorded motion: ``read_recording`` gives a ``Recording`` with a ``Report`` of all that was found and mended, ``smooth``
its velocities and accelerations; ``check`` does for other recordings what reading does.
"""

from lgsim.identify.checking import check
from lgsim.identify.delays import estimate_delay, shift
from lgsim.identify.reading import read_recording
from lgsim.identify.recording import Recording
from lgsim.identify.report import Finding, Report
from lgsim.identify.smoothers import Butterworth, Smoother, Spline
from lgsim.identify.smoothing import smooth

__all__ = [
    "Butterworth",
    "Finding",
    "Recording",
    "Report",
    "Smoother",
    "Spline",
    "check",
    "estimate_delay",
    "read_recording",
    "shift",
    "smooth",
]
