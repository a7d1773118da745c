"""Random machines, and the same machine in Pinocchio: an oracle that shares nothing with lgsim but the numbers."""

import jax.numpy as jnp
import numpy as np

from lgsim.multibody import joints
from lgsim.multibody.builder import ModelBuilder
from lgsim.multibody.joint import GroupJoint, Row

COMPOUND = joints.Compound((Row(True, 2), Row(False, 0), Row(True, 1)))


def kinds_of(register):
    """A joint of each type that moves, by the type's name."""
    return {kind.__name__.lower(): kind() for kind in register if kind is not joints.Fixed} | {"compound": COMPOUND}


KINDS = kinds_of(joints.JOINTS)


def rotation(rng):
    u = rng.normal(size=3)
    angle = np.linalg.norm(u)
    K = np.cross(np.eye(3), u / angle)
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def pose(rng, size=0.4):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = rotation(rng), rng.uniform(-size, size, 3)
    return T


def body(rng):
    """mass, center of mass and inertia of a body that can exist."""
    mass, R, d = rng.uniform(0.5, 3.0), rotation(rng), rng.uniform(0.002, 0.03, 3)
    return {"mass": mass, "center": rng.uniform(-0.15, 0.15, 3), "inertia": mass * R @ np.diag(d.sum() - d) @ R.T}


def unit(rng):
    a = rng.normal(size=3)
    return a / np.linalg.norm(a)


def axis(kind, rng):
    """A random axis for joints that have one; both of a universal joint at right angles."""
    if kind in ("revolute", "continuous", "prismatic", "helical", "cylindrical"):
        return unit(rng)
    if kind == "universal":
        return rotation(rng)[:2]
    return None


def build(kinds, parents, seed=0, armature=False, **options):
    """A machine with joints of the given kinds; `parents[i]` is the index of the body that carries body i, or -1."""
    rng = np.random.default_rng(seed)
    builder = ModelBuilder(**options)
    for i, (kind, parent) in enumerate(zip(kinds, parents, strict=True)):
        builder.add_body(
            f"body{i}",
            "world" if parent < 0 else f"body{parent}",
            KINDS[kind],
            joint_name=f"joint{i}",
            placement=pose(rng),
            axis=axis(kind, rng),
            pitch=rng.uniform(0.05, 0.3) if kind == "helical" else 0.0,
            armature=rng.uniform(0.01, 0.2, KINDS[kind].nv) if armature else 0.0,
            **body(rng),
        )
    return builder.build()


def every_joint(seed, floating, split=False, kinds=KINDS, followers=2, **options):
    """A random tree in which a joint of each of the kinds moves a body, and further joints follow others.

    Every body is made of two parts, and what it carries hangs on the second one. With ``split`` they are two bodies
    with a fixed joint between them, else one body with a frame where the second would be: the same machine.
    """
    rng = np.random.default_rng(seed)
    kinds = [str(kind) for kind in rng.permutation(sorted(kinds))]
    if floating:
        kinds.remove("free")
        kinds.insert(0, "free")
    single = [kind for kind in kinds if KINDS[kind].nv == 1]
    follows = {len(kinds) + i: int(kinds.index(rng.choice(single))) for i in range(followers)}
    kinds += [str(kind) for kind in rng.choice(single, followers)]
    builder, path, carried = ModelBuilder(**options), [-1], {-1: np.eye(4)}
    for i, kind in enumerate(kinds):
        # depth first, as models have it; a floating machine is one tree, another one has at least two
        parent = path[rng.integers(1, len(path))] if floating and i else path[rng.integers(len(path))] if i != 1 else -1
        path = [*path[: path.index(parent) + 1], i]
        joint, T, first, second = KINDS[kind], pose(rng), body(rng), body(rng)
        at, axes, pitches = pose(rng), rotation(rng)[[row.axis for row in joint.rows]], rng.uniform(0.05, 0.3, joint.nv)
        mimic = (f"joint{follows[i]}", rng.uniform(-2, 2), rng.uniform(-1, 1)) if i in follows else None
        builder.add_body(
            f"body{i}",
            "world" if parent < 0 else f"{'part' if split else 'body'}{parent}",
            joint,
            joint_name=f"joint{i}",
            placement=T if split else carried[parent] @ T,
            axis=None if floating and i == 0 else axes,
            pitch=pitches if joint.pitched else 0.0,
            mimic=mimic,
            armature=0.0 if floating and i == 0 else rng.uniform(0.01, 0.2, joint.nv),
            **(first if split else joined(first, second, at)),
        )
        carried[i] = at
        if split:
            builder.add_body(f"part{i}", f"body{i}", joints.Fixed(), placement=at, **second)
        else:
            builder.add_frame(f"part{i}", f"body{i}", at)
    return builder.build()


def joined(first, second, T):
    """Mass, center and inertia of two bodies as one, the second one's frame at T in that of the first."""
    R, masses = T[:3, :3], [first["mass"], second["mass"]]
    centers = [first["center"], R @ second["center"] + T[:3, 3]]
    center = np.average(centers, axis=0, weights=masses)
    inertia = first["inertia"] + R @ second["inertia"] @ R.T
    for mass, at in zip(masses, centers, strict=True):
        x = at - center
        inertia = inertia + mass * (x @ x * np.eye(3) - np.outer(x, x))
    return {"mass": sum(masses), "center": center, "inertia": inertia}


def state(model, seed=0, batch=()):
    """Random q, v, a or tau."""
    rng = np.random.default_rng(seed + 1000)
    q = np.zeros((*batch, model.nq))
    for index in np.ndindex(*batch):
        q[index] = configuration(model, rng)
    return tuple(jnp.asarray(x, model.dtype) for x in (q, *rng.normal(size=(2, *batch, model.nv))))


def configuration(model, rng):
    q = rng.uniform(-2, 2, model.nq)
    for joint, start in zip(model.topology.joints, model.topology.q_starts, strict=False):
        if isinstance(joint, joints.Spherical | joints.Free):
            at = start + joint.nq - 4
            q[at : at + 4] = rng.normal(size=4)
            q[at : at + 4] /= np.linalg.norm(q[at : at + 4])
    return q


CHAIN = [-1, 0, 1, 2, 3, 4, 5]
BRANCHED = [-1, 0, 0, 1, 1, 2, 2]


def cases_of(kinds):
    """Machines that between them have a joint of every kind: one of none of those listed hangs on the others."""
    listed = {
        "revolute chain": (["revolute"] * 7, CHAIN),
        "revolute tree": (["revolute"] * 7, BRANCHED),
        "two roots": (["revolute", "prismatic", "revolute", "helical"], [-1, 0, -1, 2]),
        "screws": (
            ["helical", "prismatic", "cylindrical", "universal", "translational", "compound", "continuous"],
            BRANCHED,
        ),
        "groups": (["spherical", "planar", "free", "spherical", "revolute", "planar", "free"], BRANCHED),
        "floating": (["free", "revolute", "prismatic", "spherical", "helical", "planar", "universal"], BRANCHED),
        "floating chain": (["free", "revolute", "revolute", "spherical"], [-1, 0, 1, 2]),
        "one free body": (["free"], [-1]),
        "two free bodies": (["free", "free", "revolute"], [-1, -1, 1]),
    }
    known = {name for names, _ in listed.values() for name in names}
    for name in [name for name in kinds if name not in known]:
        case = "groups" if isinstance(kinds[name], GroupJoint) else "screws"
        names, parents = listed[case]
        listed[case] = [*names, name], [*parents, (len(parents) - 1) // 2]
    return listed


CASES = cases_of(KINDS)


def scattered(seed):
    """Kinds and parents of a random tree with one joint of every kind, in any order."""
    rng = np.random.default_rng(seed)
    kinds = [str(kind) for kind in rng.permutation(sorted(KINDS))]
    return kinds, [int(rng.integers(-1, i)) for i in range(len(kinds))]
