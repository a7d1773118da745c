"""Use of a model's joint limits by the samples of a study, as far as its outputs contain it."""

from __future__ import annotations

import numpy as np

from lgsim.montecarlo import outputs
from lgsim.montecarlo.results import Results
from lgsim.montecarlo.rollout import Rollout
from lgsim.simulation.limits import LimitUse, limit_uses


def study_limit_uses(results: Results) -> tuple[LimitUse, ...]:
    """The largest use of each limit by the samples of a study, as a fraction, without diverged samples.

    Positions are those of ``outputs.final_q``, speeds those of ``outputs.peak_speed``, joint torques those of
    ``outputs.peak_torque``, and positions and speeds of ``outputs.Subsampled``, if they are outputs of the study. The
    limits are those of the nominal model. Spherical joints have no positions here, since extremes of quaternion
    components are not rotations.

    Args:
        results: The results of a study of a ``Rollout``.

    Returns:
        The uses, without times; empty for other studies, and if all samples diverged.
    """
    rollout = results.study.rollout
    if not isinstance(rollout, Rollout) or results.running.diverged >= results.samples:
        return ()
    model = rollout.model
    turns = {i for i, joint in enumerate(model.topology.joints) if joint.nq != joint.nv}
    q, v, tau = [], [], []
    for name, output in results.study.outputs.items():
        moments = results.running.moments(name)
        extremes = np.stack([moments.low, moments.high])
        if output is outputs.final_q:
            q.append(extremes)
        elif output is outputs.peak_speed:
            v.append(extremes)
        elif output is outputs.peak_torque:
            tau.append(extremes)
        elif isinstance(output, outputs.Subsampled):
            # the extreme states of all times and samples, stacked
            states = np.concatenate(list(extremes))
            q.append(states[:, : model.nq])
            v.append(states[:, model.nq :])
    rows = [np.concatenate(found) if found else None for found in (q, v, tau)]
    for part in (model.topology.q_slice(i) for i in turns):
        if rows[0] is not None:
            rows[0][:, part] = np.nan
    return limit_uses(model, *rows)
