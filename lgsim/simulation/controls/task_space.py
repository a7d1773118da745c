"""Operational-space control: tasks in priority, each in what those before it leave free."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.inverse_mass import inverse_mass_matrix
from lgsim.integrators.method import Number
from lgsim.multibody.loops.refusal import refuse_loops
from lgsim.multibody.model import Model
from lgsim.multibody.topology import ModelError
from lgsim.simulation.controls.control_laws import Configuration, ControlLaw, Force, Velocity
from lgsim.simulation.controls.tasks import Task
from lgsim.support.check import is_traced


class TaskForces(NamedTuple):
    """What a ``TaskSpace`` asks for at a state.

    Attributes:
        tau: Joint forces (nv,), N m or N.
        accelerations: v' (nv,) that they give where nothing else acts.
        missing: Of each task the part of its wanted acceleration that it does not get (k,), in its units.
    """

    tau: Force
    accelerations: Velocity
    missing: tuple[Float[Array, " _"], ...]


class TaskSpace(ControlLaw):
    """Tasks in priority: the first gets its acceleration, the next what is possible without touching it, and so on.

    With ``J_i`` and ``J_i' v`` of the tasks, N_1 = 1 and a_0 = 0,

        A_i = J_i N_i M^-1 J_i^T,    L_i = (A_i + give tr(J_i M^-1 J_i^T)/k_i)^-1,
        a_i = a_{i-1} + N_i M^-1 J_i^T L_i (x_i'' - J_i' v - J_i a_{i-1}),
        N_{i+1} = N_i - N_i M^-1 J_i^T (2 L_i - L_i A_i L_i) J_i N_i,    tau = M a + h:

    Khatib's operational-space forces ``J_i^T L_i (x_i'' - ...)`` in dynamically consistent null spaces, with Coriolis
    forces and gravity of the whole machine compensated. Joints that no task moves get the acceleration of least kinetic
    energy, without damping: let a ``Posture`` be the last task.

    ``give`` is what happens at singular postures. Along a direction in which a task has the mobility s, beside the mean
    mobility m of the task in the machine alone, it gets the share ``s / (s + give m)`` of its acceleration: all but
    1e-4 of it in good postures, half of it at s = give m, nothing where it cannot move, and the acceleration of the
    machine stays finite for any posture. What it lets go the tasks behind it may use; of other directions they see the
    square of the share that it lacks, so that they get there at most about ``give`` of what they want. With ``give=0``
    all shares are 1 and forces are not finite where a task is singular or leaves nothing to the next one; a task behind
    one that is complete, such as a ``Posture``, is such a case.

    Attributes:
        tasks: ``FramePlace``, ``FrameTurn``, ``Posture`` or another ``Task``, the first being the most important.
        give: See above, at least 0. Rounding errors of the mobilities count beside it: in float32 take 1e-2.

    Source: Khatib, A unified approach for motion and force control of robot manipulators, IEEE Journal on Robotics and
    Automation 3(1), 1987; Sentis and Khatib, Synthesis of whole-body behaviors through hierarchical control of
    behavioral primitives, International Journal of Humanoid Robotics 2(4), 2005, for priorities.
    """

    tasks: tuple[Task, ...] = eqx.field(converter=tuple)
    give: Number = 1e-4

    def __call__(self, t: Number, q: Configuration, v: Velocity, model: Model) -> Force:
        """The joint forces (nv,), N m or N.

        Raises:
            ModelError: the machine has loops or a floating base, or there are no tasks.
            ValueError: there is no such frame, ``give`` is negative.
            TypeError: a task is none.
        """
        return self.forces(t, q, v, model).tau

    def forces(self, t: Number, q: Configuration, v: Velocity, model: Model) -> TaskForces:
        """The joint forces with what they do.

        Raises:
            ModelError: the machine has loops or a floating base, or there are no tasks.
            ValueError: there is no such frame, ``give`` is negative.
            TypeError: a task is none.
        """
        self._check(model)
        with jax.default_matmul_precision("highest"):
            left = inverse_mass_matrix(model, q)
            inverse, a, motions = left, jnp.zeros_like(v), []
            for task in self.tasks:
                motion = task.motion(t, q, v, model)
                J = motion.jacobian
                pull = left @ J.T
                mean = jnp.trace(J @ inverse @ J.T) / len(J)
                mobility = J @ pull
                A = mobility + jnp.asarray(self.give, v.dtype) * mean * jnp.eye(len(J), dtype=v.dtype)
                a = a + pull @ jnp.linalg.solve(A, motion.wanted - motion.drift - J @ a)
                # N M^-1, which is symmetric, in the place of N
                solved = jnp.linalg.solve(A, pull.T)
                left = left - 2 * pull @ solved + solved.T @ mobility @ solved
                left = 0.5 * (left + left.T)
                motions.append(motion)
        missing = tuple(motion.wanted - motion.drift - motion.jacobian @ a for motion in motions)
        return TaskForces(inverse_dynamics(model, q, v, a), a, missing)

    def _check(self, model: Model) -> None:
        """Check that the law suits a machine.

        Raises:
            ModelError: the machine has loops or a floating base, or there are no tasks.
            ValueError: ``give`` is negative.
            TypeError: a task is none.
        """
        refuse_loops(
            model.topology, "TaskSpace", "its tasks would not know them", "take ComputedTorque(..., actuated=[...])"
        )
        if model.topology.floats:
            raise ModelError(
                "model: expected a machine whose joints are all driven, got one with a floating base; take"
                " controls.Workspace or CentroidalFeedback for machines on feet"
            )
        if not self.tasks:
            raise ModelError("tasks: expected at least one, got none")
        for task in self.tasks:
            if not isinstance(task, Task):
                raise TypeError(f"tasks: expected FramePlace, FrameTurn, Posture or another Task, got {task!r}")
        if not is_traced(self.give) and not np.all(np.asarray(self.give) >= 0):
            raise ValueError(f"give: expected a number of at least 0, got {self.give}")
