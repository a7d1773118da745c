"""Operational-space control of prioritized tasks, each in the null space of those before it."""

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
    """The output of a ``TaskSpace`` controller at a state.

    Attributes:
        tau: Joint forces (nv,), N m or N.
        accelerations: The resulting v' (nv,) if nothing else acts.
        missing: The part of each task's desired acceleration that is not achieved (k,), in its units.
    """

    tau: Force
    accelerations: Velocity
    missing: tuple[Float[Array, " _"], ...]


class TaskSpace(ControlLaw):
    """Operational-space control: the first task gets its acceleration, each next one what the others leave free.

    With ``J_i`` and ``J_i' v`` of the tasks, N_1 = 1 and a_0 = 0,

        A_i = J_i N_i M^-1 J_i^T,    L_i = (A_i + give tr(J_i M^-1 J_i^T)/k_i)^-1,
        a_i = a_{i-1} + N_i M^-1 J_i^T L_i (x_i'' - J_i' v - J_i a_{i-1}),
        N_{i+1} = N_i - N_i M^-1 J_i^T (2 L_i - L_i A_i L_i) J_i N_i,    tau = M a + h:

    Khatib's operational-space forces ``J_i^T L_i (x_i'' - ...)`` in dynamically consistent null spaces, with the
    Coriolis forces and the gravity of the whole robot compensated. Joints that no task moves get the acceleration of
    least kinetic energy, without damping: let a ``Posture`` be the last task.

    ``give`` regularizes singular configurations. Let s be the mobility of a task along a direction, and m its mean
    mobility in the unconstrained robot. The task then gets the fraction ``s / (s + give m)`` of its acceleration: all
    but 1e-4 of it in well-conditioned configurations, half of it at s = give m, nothing where it cannot move. The
    joint accelerations stay finite in any configuration. Tasks of lower priority may use what is given up. In other
    directions they see the square of the missing fraction, so that they get at most about ``give`` of their demand
    there. With ``give=0`` all fractions are 1. Forces are then not finite where a task is singular, or leaves
    nothing to the next one, such as a ``Posture``.

    Attributes:
        tasks: ``FramePlace``, ``FrameTurn``, ``Posture`` or another ``Task``, in the order of priority.
        give: Regularization, at least 0, see above. It must exceed the rounding errors of the mobilities: take 1e-2
            in float32.

    Source: Khatib, A unified approach for motion and force control of robot manipulators, IEEE Journal on Robotics and
    Automation 3(1), 1987; Sentis and Khatib, Synthesis of whole-body behaviors through hierarchical control of
    behavioral primitives, International Journal of Humanoid Robotics 2(4), 2005, for priorities.
    """

    tasks: tuple[Task, ...] = eqx.field(converter=tuple)
    give: Number = 1e-4

    def __call__(self, t: Number, q: Configuration, v: Velocity, model: Model) -> Force:
        """The joint forces (nv,), N m or N.

        Raises:
            ModelError: the model has loops or a floating base, or there are no tasks.
            ValueError: there is no such frame, ``give`` is negative.
            TypeError: a task is not a ``Task``.
        """
        return self.forces(t, q, v, model).tau

    def forces(self, t: Number, q: Configuration, v: Velocity, model: Model) -> TaskForces:
        """The joint forces, the resulting accelerations, and the demand that is not met.

        Raises:
            ModelError: the model has loops or a floating base, or there are no tasks.
            ValueError: there is no such frame, ``give`` is negative.
            TypeError: a task is not a ``Task``.
        """
        self._check(model)
        with jax.default_matmul_precision("highest"):
            left = inverse_mass_matrix(model, q)
            inverse, a, motions = left, jnp.zeros_like(v), []
            for task in self.tasks:
                motion = task.motion(t, q, v, model)
                J = motion.jacobian
                # N M^-1 J^T, the mobility J N M^-1 J^T, and its regularized form A = L^-1
                pull = left @ J.T
                mean = jnp.trace(J @ inverse @ J.T) / len(J)
                mobility = J @ pull
                A = mobility + jnp.asarray(self.give, v.dtype) * mean * jnp.eye(len(J), dtype=v.dtype)
                # a_i = a_(i-1) + N M^-1 J^T L (x'' - J' v - J a_(i-1))
                a = a + pull @ jnp.linalg.solve(A, motion.wanted - motion.drift - J @ a)
                # N M^-1, which is symmetric, in place of N
                solved = jnp.linalg.solve(A, pull.T)
                left = left - 2 * pull @ solved + solved.T @ mobility @ solved
                left = 0.5 * (left + left.T)
                motions.append(motion)
        missing = tuple(motion.wanted - motion.drift - motion.jacobian @ a for motion in motions)
        return TaskForces(inverse_dynamics(model, q, v, a), a, missing)

    def _check(self, model: Model) -> None:
        """Check that the controller suits a model.

        Raises:
            ModelError: the model has loops or a floating base, or there are no tasks.
            ValueError: ``give`` is negative.
            TypeError: a task is not a ``Task``.
        """
        refuse_loops(model.topology, "TaskSpace", "its tasks ignore them", "take ComputedTorque(..., actuated=[...])")
        if model.topology.floats:
            raise ModelError(
                "model: expected a fully actuated model, got one with a floating base; take"
                " controls.Workspace or CentroidalFeedback for legged robots"
            )
        if not self.tasks:
            raise ModelError("tasks: expected at least one, got none")
        for task in self.tasks:
            if not isinstance(task, Task):
                raise TypeError(f"tasks: expected FramePlace, FrameTurn, Posture or another Task, got {task!r}")
        if not is_traced(self.give) and not np.all(np.asarray(self.give) >= 0):
            raise ValueError(f"give: expected a number of at least 0, got {self.give}")
