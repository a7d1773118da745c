"""Another spanning tree for a closed kinematic loop: a joint of the tree becomes the loop, and the loop a joint.

The bodies from the loop's end up to the joint are re-rooted at the other end: their joints are reversed, parent for
child. The inverse of a screw motion is the motion of the opposite screw, ``exp(s q)^-1 = exp(-s q)``, so that a screw
joint keeps its coordinates; a joint with a group element g has ``g^-1`` and ``-Ad_g v``. A body's own frame is that of
its joint, which is now another one; its original frame is kept as an additional frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.lie import se3
from lgsim.multibody import configuration, edit
from lgsim.multibody.edit import Parts
from lgsim.multibody.joint import GroupJoint, Joint
from lgsim.multibody.joint_numbers import USUAL
from lgsim.multibody.joints import Compound, Fixed
from lgsim.multibody.loops import JointTie, Loop, loop_checks
from lgsim.multibody.loops.closing_joints import CLOSING
from lgsim.multibody.topology import ROOT, WORLD, ModelError, Topology
from lgsim.support.check import is_traced
from lgsim.support.messages import unknown_name

ACTING = ("armature", "damping", "friction", "stiffness", "limit_stiffness", "stribeck")
"""Parameters of a joint of the tree that a loop cannot have."""
MARK = "uncut"


class Ring(NamedTuple):
    """A loop and the joint at which it is cut.

    Attributes:
        joint: The joint that becomes the loop.
        loop: The loop that becomes a joint.
        path: The re-rooted bodies, from the loop's end up to the joint's body.
        stay: Name of the loop's frame that does not move, on which the new joint is.
        move: Name of its other frame, on the first body of the path.
        swapped: True if that is the loop's frame a.
    """

    joint: int
    loop: Loop
    kind: Joint
    path: tuple[int, ...]
    stay: str
    move: str
    swapped: bool


def cut(model: Parts, joint: str, loop: str | None) -> Parts:
    """See ``Model.cut``."""
    tree, numbers = model
    ring = _ring(model, joint, loop)
    own = _moved_frames(model, ring)
    back = {body: se3.inverse(T) for body, T in own.items()}
    frames, names, bodies = _frames(model, ring)
    poses = jnp.stack([_product(back[body], T) if body in back else T for body, T in zip(bodies, frames, strict=True)])
    inertias = numbers["inertias"]
    for body, T in back.items():
        inertias = inertias.at[body].set(edit.transformed(inertias[body], T))
    stay, stay_pose = edit.frame_of(model, ring.stay)
    parents, source = list(tree.parents), list(range(tree.bodies))
    placements = [
        _product(back[p], T) if p in back else T for p, T in zip(tree.parents, numbers["placements"], strict=True)
    ]
    for above, body in zip((None, *ring.path), ring.path, strict=False):
        parents[body] = stay if above is None else above
        source[body] = tree.bodies if above is None else above  # the joint of the loop, or that of the body above
        placements[body] = stay_pose if above is None else back.get(above, jnp.eye(4, dtype=stay_pose.dtype))
    if isinstance(ring.kind, Fixed):
        placements[ring.path[0]] = _product(stay_pose, se3.inverse(edit.frame_of(model, ring.move)[1]))
    changed, still = _joints(model, ring, source), _still(tree, ring, names)
    joined = replace(
        changed.topology,
        parents=tuple(parents),
        frame_names=names,
        frame_bodies=bodies,
        loops=_loops(tree, ring, names),
        contacts=tuple(
            replace(c, frame=still.get(c.frame, c.frame), against=still.get(c.against, c.against))
            for c in tree.contacts
        ),
        solids=tuple(replace(solid, frame=still.get(solid.frame, solid.frame)) for solid in tree.solids),
    )
    parts = Parts(joined, changed.numbers).changed(placements=jnp.stack(placements), inertias=inertias, frames=poses)
    parts = edit.arranged(parts, _depth_first(parents))
    if isinstance(ring.kind, Fixed):
        parts = edit.lock(parts, [ring.loop.name], jnp.zeros(parts.topology.nq, poses.dtype))
    return parts


def cut_state(model: Parts, joint: str, q: Any, v: Any, loop: str | None) -> tuple[Array, Array]:
    """See ``Model.cut_state``."""
    tree, numbers = model
    ring = _ring(model, joint, loop)
    dtype = numbers["placements"].dtype
    q = edit.checked_array("q", q, (tree.nq,), dtype)
    v = edit.checked_array("v", jnp.zeros(tree.nv, dtype) if v is None else v, (tree.nv,), dtype)
    turned = {body: kind for body in ring.path[:-1] if isinstance(kind := tree.joints[body], GroupJoint)}

    def poses(q: Array) -> list[Array]:
        group = [edit.matrix(kind.transform(list(q[tree.q_slice(body)]))) for body, kind in turned.items()]
        closed = _ring_pose(model, ring, q)
        inverse = ring.swapped and isinstance(ring.kind, GroupJoint)
        return [*(se3.inverse(T) for T in group), se3.inverse(closed) if inverse else closed]

    at, rates = jax.jvp(poses, (q,), (configuration.rate(tree, q, v),))
    new = {
        place: _coordinates(kind, T, rate)
        for place, kind, T, rate in zip((*turned, tree.bodies), (*turned.values(), ring.kind), at, rates, strict=True)
    }
    out: tuple[list[Array], list[Array]] = ([], [])
    order = cut(model, joint, loop).topology
    old = {name: i for i, name in enumerate(tree.joint_names)} | {ring.loop.name: tree.bodies}
    for name, mimic in zip(order.joint_names, order.mimics, strict=True):
        place = old[name]
        if mimic is not None:
            continue
        if place in new:
            own = new[place]
        else:
            own = q[tree.q_slice(place)], v[tree.v_slice(place)]
            if place in ring.path:
                rows = np.array(_turned(tree.joints[place])[1])
                own = own[0][rows], own[1][rows]
        for parts, part in zip(out, own, strict=True):
            parts.append(part)
    return jnp.concatenate(out[0]), jnp.concatenate(out[1])


def _ring(model: Parts, joint: str, name: str | None) -> Ring:
    """The loop to be cut, after checks."""
    tree, numbers = model
    if joint not in tree.joint_names:
        raise ModelError(unknown_name("cut: expected the name of a joint", joint, tree.joint_names))
    at = tree.joint_names.index(joint)
    names = [loop.name for loop in tree.loops]
    if name is not None and name not in names:
        raise ModelError(unknown_name("cut: expected the name of a loop", name, names))
    ties = [loop for loop in tree.loops if isinstance(loop.kind, JointTie) and at in tree.loop_joints(loop)]
    if name is not None:
        ties = [loop for loop in ties if loop.name == name]
        if not ties:
            raise ModelError(f"cut: joint {joint!r} is in no kinematic loop that a joint {name!r} closes")
    if not ties:
        raise ModelError(f"cut: joint {joint!r} is in no kinematic loop that a joint closes; the loops are {names}")
    if len(ties) > 1:
        raise ModelError(f"cut: joint {joint!r} is in the loops {[loop.name for loop in ties]}; choose one: loop=...")
    (loop,) = ties
    assert isinstance(loop.kind, JointTie)
    _check_joint(tree, numbers, at)
    if loop.name in tree.joint_names:
        raise ModelError(f"cut: the name of the loop {loop.name!r} is taken by a joint")
    if joint in names and joint != loop.name:
        raise ModelError(f"cut: the name of the joint {joint!r} is taken by a loop")
    bodies = {end: tree.frame_place(frame)[0] for end, frame in (("a", loop.a), ("b", loop.b))}
    end = next(end for end, body in bodies.items() if body != WORLD and tree.carried[body, at])
    path = [bodies[end]]
    while path[-1] != at:
        path.append(tree.parents[path[-1]])
    for body in path[:-1]:
        _check_turned(tree, numbers, body)
    frames = (loop.b, loop.a) if end == "a" else (loop.a, loop.b)
    return Ring(at, loop, loop.kind.joint, tuple(path), *frames, end == "a")


def _check_joint(tree: Topology, numbers: Any, joint: int) -> None:
    """Check that a loop can replace the joint."""
    name = tree.joint_names[joint]
    loop_checks.closing_joint(name, tree.joints[joint])
    for other, source in enumerate(tree.mimics):
        if source is not None and joint in (other, source):
            raise ModelError(f"cut: joint {name!r}: {tree.joint_names[other]!r} mimics {tree.joint_names[source]!r}")
    for loop in tree.loops:
        if not loop.kind.on_frames and name in (loop.a, loop.b):
            raise ModelError(f"cut: joint {name!r}: the loop {loop.name!r} couples it with another joint")
    found = _acting(tree, numbers, joint, ACTING)
    if found:
        raise ModelError(f"cut: joint {name!r} has {', '.join(found)}, which a loop cannot have; cut another joint")


def _check_turned(tree: Topology, numbers: Any, joint: int) -> None:
    """Check that the parameters of a reversed joint do not change."""
    kind = tree.joints[joint]
    if isinstance(kind, GroupJoint):
        found = _acting(tree, numbers, joint, list(USUAL))
        if found:
            raise ModelError(
                f"cut: joint {tree.joint_names[joint]!r} would be reversed, parent for child, but has"
                f" {', '.join(found)} about the axes of its child; cut another joint"
            )


def _acting(tree: Topology, numbers: Any, joint: int, names: Sequence[str]) -> list[str]:
    """Parameters of a joint that differ from the defaults, as far as they are concrete."""
    drives = numbers["drives"]
    if is_traced(drives) or tree.mimics[joint] is not None:
        return []
    columns, own = list(USUAL), np.asarray(drives)[tree.v_slice(joint)]
    return [name for name in names if np.any(own[:, columns.index(name)] != own.dtype.type(USUAL[name]))]


def _moved_frames(model: Parts, ring: Ring) -> dict[int, Array]:
    """The new own frames (4, 4) of the bodies of the path, in their old ones."""
    first, *_ = ring.path
    own = {body: model.numbers["placements"][below] for below, body in zip(ring.path, ring.path[1:], strict=False)}
    if not isinstance(ring.kind, Fixed):
        own[first] = edit.frame_of(model, ring.move)[1]
    return own


def _frames(model: Parts, ring: Ring) -> tuple[list[Array], tuple[str, ...], tuple[int, ...]]:
    """Poses, names and bodies of all frames: existing ones, original body frames, and the two of the new loop."""
    tree, numbers = model
    poses, names, bodies = list(numbers["frames"]), list(tree.frame_names), list(tree.frame_bodies)
    taken = {ROOT, *tree.body_names, *names}
    kind, rows = tree.joints[ring.joint], slice(tree.row_starts[ring.joint], tree.row_starts[ring.joint + 1])
    axes = jnp.eye(4, dtype=numbers["screws"].dtype).at[:3, :3].set(_axes_frame(kind, numbers["screws"][rows, :3]))
    new = [(f"{tree.body_names[body]}.{MARK}", body, jnp.eye(4, dtype=axes.dtype)) for body in _unframed(ring)]
    name = tree.joint_names[ring.joint]
    new.append((f"{name}.a", tree.parents[ring.joint], _product(numbers["placements"][ring.joint], axes)))
    new.append((f"{name}.b", ring.joint, axes))
    for name, body, pose in new:
        names.append(_free(name, taken))
        taken.add(names[-1])
        bodies.append(body)
        poses.append(pose)
    return poses, tuple(names), tuple(bodies)


def _unframed(ring: Ring) -> tuple[int, ...]:
    """The bodies whose own frames move."""
    return ring.path[isinstance(ring.kind, Fixed) :]


def _free(name: str, taken: set[str]) -> str:
    """The name, with a number appended if it is taken."""
    return next(x for x in (name, *(f"{name}.{i}" for i in range(2, len(taken) + 3))) if x not in taken)


def _still(tree: Topology, ring: Ring, names: tuple[str, ...]) -> dict[str, str]:
    """Frames at the original frames of bodies, by the bodies' names."""
    unframed = _unframed(ring)
    marks = names[len(tree.frame_names) : len(tree.frame_names) + len(unframed)]
    return {tree.body_names[body]: mark for body, mark in zip(unframed, marks, strict=True)}


def _loops(tree: Topology, ring: Ring, names: tuple[str, ...]) -> tuple[Loop, ...]:
    """The loops of the model; ends on frames that move are replaced by frames that do not."""
    still, out = _still(tree, ring, names), []
    for loop in tree.loops:
        if loop is ring.loop:
            new = loop_checks.closing_joint(tree.joint_names[ring.joint], tree.joints[ring.joint])
            out.append(Loop(tree.joint_names[ring.joint], names[-2], names[-1], new))
        elif loop.kind.on_frames:
            out.append(replace(loop, a=still.get(loop.a, loop.a), b=still.get(loop.b, loop.b)))
        else:
            out.append(loop)
    return tuple(out)


def _joints(model: Parts, ring: Ring, source: list[int]) -> Parts:
    """The model with joint ``source[i]`` at body i, those of the path reversed."""
    tree, numbers = model
    dtype = numbers["screws"].dtype
    usual = np.eye(3)[[row.axis for row in ring.kind.rows]].reshape(-1, 3)
    screws = jnp.concatenate([numbers["screws"], jnp.asarray(np.pad(usual, [(0, 0), (0, 1)]), dtype)])
    columns = np.broadcast_to(list(USUAL.values()), (ring.kind.nv, len(USUAL)))
    drives = jnp.concatenate([numbers["drives"], jnp.asarray(columns, dtype)])
    kinds, names = (*tree.joints, ring.kind), (*tree.joint_names, ring.loop.name)
    starts = (*tree.row_starts, tree.rows + ring.kind.nv)
    degrees = (*tree.v_starts, tree.nv + ring.kind.nv)
    place = {joint: body for body, joint in enumerate(source)}
    joints, rows, signs, dofs, mimics = [], [], [], [], []
    for joint in source:
        turns = joint in ring.path if joint < tree.bodies else ring.swapped
        kind, order, sign = _turned(kinds[joint]) if turns else (kinds[joint], range(kinds[joint].nv), 1.0)
        joints.append(kind)
        rows += [starts[joint] + i for i in order]
        signs += [sign] * kind.nv
        dofs += [degrees[joint] + i for i in order if degrees[joint + 1] > degrees[joint]]
        mimic = tree.mimics[joint] if joint < tree.bodies else None
        mimics.append(None if mimic is None else place[mimic])
    ratios = jnp.concatenate([numbers["mimic"], jnp.array([[1.0, 0.0]], dtype)])
    sign = np.stack([signs, signs, signs, np.ones(len(signs))], axis=1).astype(dtype)
    topology = replace(
        tree, joints=tuple(joints), joint_names=tuple(names[joint] for joint in source), mimics=tuple(mimics)
    )
    return Parts(topology, numbers).changed(
        screws=screws[np.array(rows, int)] * sign, drives=drives[np.array(dofs, int)], mimic=ratios[np.array(source)]
    )


def _turned(kind: Joint) -> tuple[Joint, list[int], float]:
    """The joint with parent and child exchanged, the permutation of its rows, and the sign of their axes."""
    order = list(range(kind.nv))
    if isinstance(kind, GroupJoint):
        return kind, order, 1.0
    if isinstance(kind, CLOSING):  # a subgroup of commuting screws
        return kind, order, -1.0
    rows = kind.rows[::-1]
    same = [row.turns for row in rows] == [row.turns for row in kind.rows] and not isinstance(kind, Compound)
    return kind if same else Compound(rows), order[::-1], -1.0


def _axes_frame(kind: Joint, axes: Array) -> Array:
    """The rotation (3, 3) from the usual axes of a joint's rows to their actual axes, (nv, 3)."""
    axes = axes / jnp.linalg.norm(axes, axis=1, keepdims=True)
    named = {row.axis: axis for row, axis in zip(kind.rows, axes, strict=True)}
    if len(named) < 3:
        ((k, z),) = named.items()
        # not along the smallest entry: if z itself is an axis, two are smallest, and round-off would choose
        beside = jnp.eye(3, dtype=z.dtype)[(jnp.argmax(jnp.abs(z)) + 1) % 3]
        x = jnp.cross(beside, z)
        x = x / jnp.linalg.norm(x)
        named |= {(k + 1) % 3: x, (k + 2) % 3: jnp.cross(z, x)}
    return jnp.stack([named[i] for i in range(3)], axis=1)


def _ring_pose(model: Parts, ring: Ring, q: Array) -> Array:
    """The pose (4, 4) of the loop's frame b in its frame a."""
    tree, numbers = model
    inside = tree.loop_joints(ring.loop)
    moved = edit.moved(model, inside, q)

    def pose(name: str) -> Array:
        body, T = edit.frame_of(model, name)
        while body in inside:
            T = _product(numbers["placements"][body], *moved[body], T)
            body = tree.parents[body]
        return T

    return _product(se3.inverse(pose(ring.loop.a)), pose(ring.loop.b))


def _coordinates(kind: Joint, T: Array, rate: Array) -> tuple[Array, Array]:
    """The configuration and the velocity of a loop-closing joint, from its pose (4, 4) and its rate."""
    twist, speed = se3.log(T), se3.vee(_product(se3.inverse(T), rate))
    places = np.array([3 * row.turns + row.axis for row in kind.rows], int)
    neutral = [jnp.asarray(x, T.dtype) for x in kind.neutral]
    q = kind.retract(neutral, list(twist[places]))
    return jnp.stack(q) if q else twist[:0], speed[places]


def _depth_first(parents: list[int]) -> list[int]:
    """The bodies with parents first, siblings by index."""
    order, stack = [], [WORLD]
    while stack:
        at = stack.pop()
        order.append(at)
        stack += [body for body in reversed(range(len(parents))) if parents[body] == at]
    return order[1:]


_product = edit.product
