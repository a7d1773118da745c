"""Six faults added to records of Panda, and the faults that the check of a recording reports."""

import numpy as np

from cases.sysid import panda
from cases.sysid import panda_data as data
from lgsim.identify.recording.plausibility import check_recording
from lgsim.identify.recording.recording import Recording

SECONDS, EVERY = 5.0, 4
"""Of the record; every fourth of its samples is kept, 250 a second."""


def faults(time, q, tau):
    """Faults by description: (expected name of the finding, its place, time, positions, torques)."""
    rng = np.random.default_rng(0)
    n = len(time)

    def changed(array, joint, values):
        out = array.copy()
        out[:, joint] = values
        return out

    limit = 0.6 * np.max(np.abs(tau[:, 1]))
    stuck = np.where((np.arange(n) > n // 2) & (np.arange(n) < n // 2 + n // 5), q[n // 2, 3], q[:, 3])
    gone = np.where(rng.random(n) < 0.3, np.nan, q[:, 2])
    later = time + np.where(np.arange(n) > n // 3, 0.37, 0)
    return {
        "none": (None, None, time, q, tau),
        "two torques exchanged": ("shuffled columns", "tau panda_joint2", time, q, tau[:, [0, 3, 2, 1, 4, 5, 6]]),
        "a torque of the wrong sign": ("wrong sign", "tau panda_joint4", time, q, changed(tau, 3, -tau[:, 3])),
        "a torque cut off": (
            "saturated torque", "tau panda_joint2", time, q, changed(tau, 1, np.clip(tau[:, 1], -limit, limit))
        ),
        "30 % of an encoder's samples lost": ("missing values", "q panda_joint3", time, changed(q, 2, gone), tau),
        "an encoder stuck for 1 s": ("stuck encoder", "q panda_joint4", time, changed(q, 3, stuck), tau),
        "a clock set by 0.37 s": ("clock jump", "time", later, q, tau),
    }  # fmt: skip


def run(report):
    """A record without faults and records with one fault each; in a full run."""
    if report.quick:
        return
    model, raw = data.true_model(), data.record(panda.stored("bodies"), SECONDS)
    rows, right = [], 0
    cases = faults(raw.time[::EVERY], raw.q[::EVERY], raw.tau[::EVERY])
    for name, (kind, where, time, q, tau) in cases.items():
        report_of = check_recording(Recording(model, time, q, tau=tau)).report
        # encoders give no velocities, which is reported as well
        found = [f for f in report_of if f.kind != "missing velocity"]
        named = {f.kind for f in found} == {kind} and where in {f.where for f in found} if kind else not found
        right += named
        rows.append([name, "; ".join(f"{f.kind}: {f.where}" for f in found) or "nothing", "yes" if named else "no"])
    report.table("Faults in Panda's record of 5 s", ["fault", "found", "only this fault reported"], rows)
    report.bound("bad data: records whose fault is named, and nothing else", right, at_least=len(cases))
