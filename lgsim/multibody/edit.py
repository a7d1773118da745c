"""Derived models: lock joints, add frames, attach tools and loads; differentiable in all parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.spatial import Transform, pack
from lgsim.lie import se3
from lgsim.multibody import inertia as ten
from lgsim.multibody.contacts import Contact, contact_edits
from lgsim.multibody.contacts.contact_checks import check_contacts, new_heights
from lgsim.multibody.contacts.sizes import rows
from lgsim.multibody.geometry import solid_edits
from lgsim.multibody.joint import GroupJoint
from lgsim.multibody.loops import Coupling, Loop, loop_checks
from lgsim.multibody.topology import ROOT, WORLD, ModelError, Topology
from lgsim.support import check
from lgsim.support.check import is_traced

BODIES = ("placements", "inertias", "mimic")
ROWS = ("screws",)
DEGREES = ("drives",)
"""Parameters of a model that are stacked over bodies, rows and degrees of freedom; then ``frames`` and ``gravity``."""


class Parts(NamedTuple):
    """Topology and arrays of a model."""

    topology: Topology
    numbers: Mapping[str, Any]

    def changed(self, **numbers: Any) -> Parts:
        """A copy with other arrays."""
        return Parts(self.topology, {**self.numbers, **numbers})


def lock(model: Parts, joints: Sequence[str], q: Any) -> Parts:
    """See ``Model.lock``."""
    tree, numbers = model
    locked = _locked(tree, joints)
    q = checked_array("q", q, (tree.nq,), numbers["placements"].dtype)
    if not locked:
        return model
    placements, inertias, frames = (numbers[name] for name in ("placements", "inertias", "frames"))
    placed = moved(model, sorted(locked), q)
    carrier, pose = {WORLD: WORLD}, {}  # new moving body of each body, and the pose of a locked body there
    for body, parent in enumerate(tree.parents):
        carrier[body] = carrier[parent] if body in locked else body
        if parent in locked:
            placements = placements.at[body].set(product(pose[parent], placements[body]))
        if body in locked:
            pose[body] = product(placements[body], *placed[body])
            if carrier[body] != WORLD:
                inertias = inertias.at[carrier[body]].add(transformed(numbers["inertias"][body], pose[body]))
    for i, body in enumerate(tree.frame_bodies):
        if body in locked:
            frames = frames.at[i].set(product(pose[body], frames[i]))
    frames = jnp.concatenate([frames, *(T[None] for T in pose.values())])
    topology = replace(
        tree,
        parents=tuple(carrier[parent] for parent in tree.parents),
        frame_names=tree.frame_names + tuple(tree.body_names[body] for body in pose),
        frame_bodies=tuple(carrier[body] for body in (*tree.frame_bodies, *pose)),
    )
    kept = [body for body in range(tree.bodies) if body not in locked]
    parts = arranged(Parts(topology, numbers).changed(placements=placements, inertias=inertias, frames=frames), kept)
    for loop in tree.loops:
        if loop.kind.on_frames and parts.topology.frame_place(loop.a)[0] == parts.topology.frame_place(loop.b)[0]:
            ring = ", ".join(tree.joint_names[joint] for joint in tree.loop_joints(loop))
            raise ModelError(
                f"lock: the loop {loop.name!r} would have both ends on one body: {ring} are locked; lock fewer of them"
            )
    topology, left = contact_edits.acting(parts.topology, parts.numbers["contacts"], parts.numbers["heights"])
    return Parts(topology, parts.numbers).changed(**left)


def add_frame(model: Parts, name: str, frame: str, placement: Any) -> Parts:
    """See ``Model.add_frame``."""
    tree, numbers = model
    if name in _frame_names(tree):
        raise ModelError(f"frame {name!r}: the name is taken")
    body, T = frame_of(model, frame)
    placement = np.eye(4) if placement is None else placement
    new = checked_array(f"frame {name!r}: placement", placement, (4, 4), T.dtype)
    frames = jnp.concatenate([numbers["frames"], product(T, new)[None]])
    topology = replace(tree, frame_names=(*tree.frame_names, name), frame_bodies=(*tree.frame_bodies, body))
    return Parts(topology, numbers).changed(frames=frames)


def attach(model: Parts, other: Parts, frame: str, prefix: str) -> Parts:
    """See ``Model.attach``."""
    tree, numbers = model
    tool, added = other
    body, T = frame_of(model, frame)
    if added["placements"].dtype != numbers["placements"].dtype:
        raise ModelError(
            f"attach: expected a model of {numbers['placements'].dtype}, got {added['placements'].dtype}; convert one"
        )
    joints, bodies, frames = (
        tuple(prefix + name for name in names) for names in (tool.joint_names, tool.body_names, tool.frame_names)
    )
    kinds = [("joint", tree.joint_names, joints), ("frame", _frame_names(tree), bodies + frames)]
    for kind in ("loop", "contact", "solid"):
        own, new = (tuple(entry.name for entry in getattr(t, kind + "s")) for t in (tree, tool))
        kinds.append((kind, own, tuple(prefix + name for name in new)))
    for kind, taken, names in kinds:
        for name in names:
            if name in taken:
                raise ModelError(f"attach: {kind} {name!r}: the name is taken; choose another prefix")

    def held(poses: Array, holders: Sequence[int]) -> Array:
        on_world = np.array([holder == WORLD for holder in holders], bool).reshape(-1, 1, 1)
        return jnp.where(on_world, product(jnp.broadcast_to(T, poses.shape), poses), poses)

    count = tree.bodies
    renamed = tuple(
        replace(
            loop,
            name=prefix + loop.name,
            a=frame if loop.kind.on_frames and loop.a == ROOT else prefix + loop.a,
            b=frame if loop.kind.on_frames and loop.b == ROOT else prefix + loop.b,
        )
        for loop in tool.loops
    )

    topology = Topology(
        joints=tree.joints + tool.joints,
        joint_names=tree.joint_names + joints,
        body_names=tree.body_names + bodies,
        parents=tree.parents + tuple(body if p == WORLD else p + count for p in tool.parents),
        mimics=tree.mimics + tuple(None if m is None else m + count for m in tool.mimics),
        frame_names=tree.frame_names + frames,
        frame_bodies=tree.frame_bodies + tuple(body if b == WORLD else b + count for b in tool.frame_bodies),
        stribeck=tree.stribeck or tool.stribeck,
        contacts=contact_edits.joined(tree.contacts, tool.contacts, frame, prefix),
        loops=tree.loops + renamed,
        **solid_edits.joined(tree, tool, frame, prefix),
    )
    ends = {name: [numbers[name], added[name]] for name in (*BODIES, *ROWS, *DEGREES)}
    ends["placements"] = [numbers["placements"], held(added["placements"], tool.parents)]
    ends["frames"] = [numbers["frames"], held(added["frames"], tool.frame_bodies)]
    joined: dict[str, Any] = {name: jnp.concatenate(parts) for name, parts in ends.items()}
    for name in ("loops", "heights"):
        found = [part[name] for part in (numbers, added) if part[name] is not None]
        joined[name] = jnp.concatenate(found) if found else None
    joined["contacts"] = contact_edits.joined_numbers(topology.contacts, numbers["contacts"], added["contacts"])
    joined |= solid_edits.joined_numbers(numbers, added)
    last = count if body == WORLD else 1 + int(np.flatnonzero(tree.carried[:, body])[-1])
    order = [*range(last), *range(count, count + tool.bodies), *range(last, count)]
    return arranged(Parts(topology, numbers).changed(**joined), order)


def add_loop(model: Parts, loop: Loop, own: Sequence[Any]) -> Parts:
    """The model with an additional loop, which has the parameters ``own``.

    Raises:
        ModelError: see ``loop_checks.check_loops``.
    """
    tree, numbers = model
    if isinstance(loop.kind, Coupling) and loop.b in tree.joint_names:
        rows = tree.joints[tree.joint_names.index(loop.b)].rows
        loop = replace(loop, kind=replace(loop.kind, turns=rows[0].turns))
    topology = replace(tree, loops=(*tree.loops, loop))
    dtype = numbers["placements"].dtype
    new = [x for x in (numbers["loops"], *(jnp.reshape(jnp.asarray(x, dtype), 1) for x in own)) if x is not None]
    joined = jnp.concatenate(new) if new else None
    known = joined is not None and not is_traced(joined)
    # traced lengths are unknown and pass the check
    values = np.asarray(joined) if known else np.ones(topology.loop_number_starts[-1])
    loop_checks.check_loops(topology, values)
    return Parts(topology, numbers).changed(loops=joined)


def add_contact(model: Parts, contact: Contact, own: Mapping[str, float], heights: Any = None) -> Parts:
    """The model with an additional contact, its values ``own`` by column name, and ``heights`` of its surface.

    Raises:
        ModelError: the name is taken; see ``contact_checks.check_contacts`` and ``new_heights``.
    """
    tree, numbers = model
    if contact.name in (known.name for known in tree.contacts):
        raise ModelError(f"contact {contact.name!r}: the name is taken")
    topology = replace(tree, contacts=(*tree.contacts, contact))
    check_contacts(topology)
    dtype, before = numbers["placements"].dtype, numbers["heights"]
    row = jnp.asarray(rows((contact,), (own,)), dtype)
    contacts = contact_edits.joined_numbers(topology.contacts, numbers["contacts"], row)
    new = new_heights(tree.contacts, before, contact, heights)
    found = [jnp.asarray(x, dtype) for x in (before, new) if x is not None]
    return Parts(topology, numbers).changed(contacts=contacts, heights=jnp.concatenate(found) if found else None)


def add_payload(model: Parts, frame: str, parameters: Any) -> Parts:
    """See ``Model.add_payload``."""
    inertias = model.numbers["inertias"]
    body, T = frame_of(model, frame)
    if body == WORLD:
        raise ModelError(f"payload on frame {frame!r}: expected a frame on a body, this one is fixed to the world")
    values = checked_array(f"payload on frame {frame!r}: parameters", parameters, (10,), inertias.dtype)
    fault = None if is_traced(values) else ten.defect(np.asarray(parameters, float))
    if fault:
        raise ModelError(f"payload on frame {frame!r} {fault}")
    return model.changed(inertias=inertias.at[body].add(transformed(values, T)))


def _locked(tree: Topology, joints: Sequence[str]) -> set[int]:
    """The joints with these names and all joints that mimic them."""
    if isinstance(joints, str):
        raise ModelError(f"lock: expected a list of names of joints, got the string {joints!r}")
    for name in joints:
        if name not in tree.joint_names:
            raise ModelError(f"joint {name!r}: there is no such joint; joints are {', '.join(tree.joint_names)}")
    locked = {tree.joint_names.index(name) for name in joints}
    for joint in locked:
        source = tree.mimics[joint]
        if source is not None and source not in locked:
            raise ModelError(
                f"joint {tree.joint_names[joint]!r}: it mimics {tree.joint_names[source]!r}; lock that one instead"
            )
    locked |= {joint for joint, source in enumerate(tree.mimics) if source in locked}
    for loop in tree.loops:
        held = [] if loop.kind.on_frames else sorted(locked.intersection(tree.loop_joints(loop)))
        if held:
            raise ModelError(
                f"joint {tree.joint_names[held[0]]!r}: it cannot be locked: the loop {loop.name!r} couples it with"
                f" {loop.b if loop.a == tree.joint_names[held[0]] else loop.a!r}"
            )
    if len(locked) == tree.bodies:
        raise ModelError("expected at least one joint that is not locked, got none")
    return locked


def moved(model: Parts, joints: Sequence[int], q: Array) -> dict[int, list[Array]]:
    """Poses (4, 4) whose product is the pose of each joint's child in the joint's frame."""
    tree, numbers = model
    of = {joint: np.arange(tree.row_starts[joint], tree.row_starts[joint + 1]) for joint in joints}
    rows = np.concatenate([np.zeros(0, int), *of.values()])
    place = {row: i for i, row in enumerate(rows)}
    axes, pitches = numbers["screws"][rows, :3], numbers["screws"][rows, 3:]
    axes = axes / jnp.linalg.norm(axes, axis=1, keepdims=True)
    k, b = numbers["mimic"][tree.row_joint[rows]].T
    turns = tree.row_turns[rows][:, None]
    screws = jnp.concatenate([jnp.where(turns, axes * pitches, axes), jnp.where(turns, axes, 0)], axis=1)
    turned = se3.exp(screws * (k * q[tree.row_q[rows]] + b)[:, None])
    out = {joint: [turned[place[row]] for row in own] for joint, own in of.items()}
    for joint in joints:
        kind = tree.joints[joint]
        if isinstance(kind, GroupJoint):
            named = {row.axis: axes[place[at]] for row, at in zip(kind.rows, of[joint], strict=True)}
            pose = matrix(kind.transform(list(q[tree.q_slice(joint)])))
            own = jnp.eye(4, dtype=q.dtype).at[:3, :3].set(jnp.stack([named[i] for i in range(3)], axis=1))
            out[joint] = [own, pose, own.T]
    return out


def matrix(T: Transform) -> Array:
    """The pose as a matrix (4, 4)."""
    return pack([*T.R.r0, T.p.x, *T.R.r1, T.p.y, *T.R.r2, T.p.z, 0.0, 0.0, 0.0, 1.0], (4, 4))


def arranged(model: Parts, order: Sequence[int]) -> Parts:
    """The bodies with these indices, in that order; parents and mimicked joints must be among them."""
    tree, numbers = model
    place = {WORLD: WORLD} | {body: i for i, body in enumerate(order)}
    rows, degrees = (
        np.concatenate([np.arange(starts[body], starts[body + 1]) for body in order])
        for starts in (tree.row_starts, tree.v_starts)
    )
    index = dict.fromkeys(BODIES, np.array(order)) | dict.fromkeys(ROWS, rows) | dict.fromkeys(DEGREES, degrees)
    sources = [tree.mimics[body] for body in order]
    topology = Topology(
        joints=tuple(tree.joints[body] for body in order),
        joint_names=tuple(tree.joint_names[body] for body in order),
        body_names=tuple(tree.body_names[body] for body in order),
        parents=tuple(place[tree.parents[body]] for body in order),
        mimics=tuple(None if source is None else place[source] for source in sources),
        frame_names=tree.frame_names,
        frame_bodies=tuple(place[body] for body in tree.frame_bodies),
        stribeck=tree.stribeck,
        contacts=tree.contacts,
        loops=tree.loops,
        solids=tree.solids,
        exclusions=tree.exclusions,
    )
    return Parts(topology, numbers).changed(**{name: numbers[name][at] for name, at in index.items()})


def _frame_names(tree: Topology) -> tuple[str, ...]:
    return (ROOT, *tree.body_names, *tree.frame_names)


def frame_of(model: Parts, name: str) -> tuple[int, Array]:
    """The body that a frame is fixed to, and the pose of the frame there."""
    tree, numbers = model
    names = _frame_names(tree)
    if name not in names:
        raise ModelError(f"frame {name!r}: there is no such frame; frames are {', '.join(names)}")
    place = names.index(name) - 1
    if place < tree.bodies:
        return place, jnp.eye(4, dtype=numbers["placements"].dtype)
    return tree.frame_bodies[place - tree.bodies], numbers["frames"][place - tree.bodies]


def checked_array(what: str, value: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """An array of that shape and dtype; finite, if it is concrete."""
    array = check.cast(what, value, dtype)
    if array.shape != shape:
        raise ModelError(f"{what}: expected shape {shape}, got {array.shape}")
    if not is_traced(array) and not np.all(np.isfinite(array)):
        raise ModelError(f"{what}: expected finite numbers, got {array.tolist()}")
    return array


def product(*matrices: Array) -> Array:
    """The matrix product in full precision on every device."""
    return reduce(partial(jnp.matmul, precision="highest"), matrices)


def transformed(parameters: Array, T: Array) -> Array:
    """The ten parameters in the frame in which the body's frame has the pose T: ``T J T^T`` of the pseudo-inertia."""
    return ten.from_pseudo_inertia(product(T, ten.pseudo_inertia(parameters), T.T))
