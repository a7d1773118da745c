"""Recorded motion: reading, checks that mend or name what is wrong, delays, smoothing."""

from lgsim.identify.recording.delays import estimate_delay as estimate_delay
from lgsim.identify.recording.delays import shift_signal as shift_signal
from lgsim.identify.recording.filters import Butterworth as Butterworth
from lgsim.identify.recording.filters import Smoother as Smoother
from lgsim.identify.recording.filters import Spline as Spline
from lgsim.identify.recording.joined_recordings import join_recordings as join_recordings
from lgsim.identify.recording.plausibility import check_recording as check_recording
from lgsim.identify.recording.reading import RecordingMapError as RecordingMapError
from lgsim.identify.recording.reading import read_recording as read_recording
from lgsim.identify.recording.recording import Recording as Recording
from lgsim.identify.recording.report import Finding as Finding
from lgsim.identify.recording.report import Report as Report
from lgsim.identify.recording.smoothing import smooth as smooth
