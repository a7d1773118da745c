"""Recorded motion: reading, checks that mend or name what is wrong, delays, smoothing."""

from lgsim.identify.recording.delays import estimate_delay, shift_signal
from lgsim.identify.recording.filters import Butterworth, Smoother, Spline
from lgsim.identify.recording.joined_recordings import join_recordings
from lgsim.identify.recording.plausibility import check_recording
from lgsim.identify.recording.reading import RecordingMapError, read_recording
from lgsim.identify.recording.recording import Recording
from lgsim.identify.recording.report import Finding, Report
from lgsim.identify.recording.smoothing import smooth

__all__ = [
    "Butterworth",
    "Finding",
    "Recording",
    "RecordingMapError",
    "Report",
    "Smoother",
    "Spline",
    "check_recording",
    "estimate_delay",
    "join_recordings",
    "read_recording",
    "shift_signal",
    "smooth",
]
