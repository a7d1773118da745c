"""Tags and attributes of MJCF by MuJoCo's schema, and what becomes of them, for docs/file_elements.md.

MuJoCo compiles attributes to arrays of its model. While the readers read a file with all elements, these arrays are
watched: an attribute is read if an array of it is, and stated if only the parts of the readers that write the report
look at it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import mujoco as mujoco_module

from lgsim.formats import mjcf as reader
from lgsim.formats import read_mjcf
from lgsim.formats.actuator_files import read_actuators
from lgsim.formats.mjcformat import actuators, compilation, keyframes

mujoco: Any = mujoco_module
SPECIMEN = Path(__file__).parent / "formats" / "specimens" / "all.xml"
VERSION = f"The elements are those of MuJoCo {mujoco.__version__}."

Tag = tuple[str, ...]
"""Tags from the section to the element."""

ACTUATORS = (
    "general", "motor", "position", "velocity", "intvelocity", "orientation", "pid", "damper", "cylinder", "muscle",
    "adhesion", "dcmotor",
)  # fmt: skip
PREFIXES = {
    "option": ("opt.",), "flag": ("flag.",), "body": ("body_",), "inertial": ("body_i", "body_"),
    "joint": ("jnt_", "dof_"), "freejoint": ("jnt_",), "geom": ("geom_", "body_"), "site": ("site_",),
    "mesh": ("mesh_",), "hfield": ("hfield_",), "pair": ("pair_",), "exclude": ("exclude_",), "key": ("key_",),
    "spatial": ("tendon_",), "fixed": ("tendon_",),
    **dict.fromkeys(("connect", "weld", "tendon"), ("eq_",)), **dict.fromkeys(ACTUATORS, ("actuator_",)),
}  # fmt: skip
"""Prefixes of the arrays of elements."""
ALIASES = {
    "option": {"actuatorgroupdisable": "opt.disableactuator"},
    "body": {"mocap": "body_mocapid"},
    "inertial": {"diaginertia": "body_inertia", "fullinertia": "body_inertia"},
    "joint": {
        "ref": "qpos0", "springref": "qpos_spring", "springdamper": "jnt_stiffness", "actuatorfrclimited":
        "jnt_actfrclimited", "actuatorfrcrange": "jnt_actfrcrange", "actuatorgravcomp": "jnt_actgravcomp",
        "solreflimit": "jnt_solref", "solimplimit": "jnt_solimp", "solreffriction": "dof_solref", "solimpfriction":
        "dof_solimp",
    },
    "geom": {
        **dict.fromkeys(("density", "mass", "shellinertia", "fromto", "mesh", "fitscale"), "body_mass"),
        **dict.fromkeys(("pos", "quat", "size", "type"), "body_mass"),
        "hfield": "geom_dataid", "fluidshape": "geom_fluid", "fluidcoef": "geom_fluid", "material": "geom_matid",
    },
    "site": {"fromto": "site_pos", "mesh": "site_dataid", "material": "site_matid"},
    "mesh": {
        **dict.fromkeys(("vertex", "face", "file", "builtin", "params", "inertia", "refpos", "refquat", "scale",
                         "content_type"), "body_mass"),
        "maxhullvert": "mesh_graph", "material": "geom_matid", "smoothnormal": "mesh_normal",
    },
    "hfield": {"elevation": "hfield_data", "file": "hfield_data", "content_type": "hfield_data"},
    "pair": {"condim": "pair_dim"},
    "exclude": {"body1": "exclude_signature", "body2": "exclude_signature"},
    "tendons": {
        "springlength": "tendon_lengthspring", "actuatorfrclimited": "tendon_actfrclimited", "actuatorfrcrange":
        "tendon_actfrcrange", "solreflimit": "tendon_solref_lim", "solimplimit": "tendon_solimp_lim",
        "solreffriction": "tendon_solref_fri", "solimpfriction": "tendon_solimp_fri", "material": "tendon_matid",
    },
    "parts": dict.fromkeys(("site", "geom", "joint"), "wrap_objid") | dict.fromkeys(
        ("divisor", "coef", "sidesite"), "wrap_prm"),
    "equalities": {
        "active": "eq_active0", "anchor": "eq_data", "relpose": "eq_data", "polycoef": "eq_data",
        **dict.fromkeys(("body1", "site1", "joint1", "tendon1"), "eq_obj1id"),
        **dict.fromkeys(("body2", "site2", "joint2", "tendon2"), "eq_obj2id"),
    },
    "actuators": {
        **dict.fromkeys(("joint", "tendon", "site", "body"), "actuator_trnid"), "jointinparent": "actuator_trntype",
        "dampratio": "actuator_biasprm", "kp": "actuator_gainprm", "kv": "actuator_biasprm",
        "timeconst": "actuator_dynprm", "area": "actuator_gainprm", "diameter": "actuator_gainprm",
        "bias": "actuator_biasprm", "inheritrange": "actuator_ctrlrange", "actdim": "actuator_actnum",
        "input": "actuator_ctrlspec",
        **dict.fromkeys(("force", "scale", "lmin", "lmax", "vmax", "fpmax", "fvmax", "range"), "actuator_gainprm"),
        "tausmooth": "actuator_dynprm", "gain": "actuator_gainprm",
        **dict.fromkeys(("resistance", "motorconst", "nominal", "controller"), "actuator_gainprm"),
        **dict.fromkeys(("inductance", "thermal", "lugre"), "actuator_dynprm"),
        "cogging": "actuator_biasprm", "saturation": "actuator_forcerange",
        **dict.fromkeys(("ffrange", "velrange", "posrange"), "actuator_ctrlrange"),
    },
}  # fmt: skip
"""Arrays of attributes with other names, by element or by kind of element."""
TURNED = {"euler", "axisangle", "xyaxes", "zaxis"}
"""Attributes that MuJoCo compiles to a quaternion."""
OF_COMPILER = {"name", "class", "childclass"}
STATED = {
    "equalities": {"solref", "solimp", "torquescale"},
    "actuators": {"refsite", "cranksite", "slidersite", "cranklength", "nsample", "interp"},
}
"""Attributes whose elements are stated with them: soft loops, actuators between two sites, delays."""
WHOLE = {"pid", "adhesion", "plugin", "flex", "flexcomp"}
"""Elements that are stated as a whole; equalities of these are refused."""
WITHOUT_EFFECT = {
    ("body", "sleep"), ("body", "simple"), ("body", "fuse"), ("freejoint", "align"), ("freejoint", "group"),
    ("mesh", "normal"), ("mesh", "texcoord"),
}  # fmt: skip
"""Attributes that say how MuJoCo computes or draws, and that are no arrays by their names."""
KINDS = {
    **dict.fromkeys(("spatial", "fixed"), "tendons"), **dict.fromkeys(ACTUATORS, "actuators"),
    **dict.fromkeys(("connect", "weld"), "equalities"),
}  # fmt: skip
SHOWN = ("option", "body", "asset", "deformable", "contact", "tendon", "equality", "actuator", "keyframe")
"""Sections with elements that may act on a motion."""
NOT_SHOWN = {"texture", "material", "skin", "camera", "light", "config", "layer", "model", "attach", "instance"}


def schema() -> dict[Tag, list[str]]:
    """The attributes of all elements."""
    found: dict[Tag, list[str]] = {}
    at: Tag = ()
    for line in mujoco.mj_printSchema(False, True).splitlines():
        start = re.match(r"^( *)\(?(\w+)\)?\w* \((.)\)\s*(.*)$", line)
        if start:
            at = (*at[: len(start[1]) // 3], "body" if "(world)" in line else start[2])
            found[at[1:]] = start[4].split()
        elif line.strip():
            found[at[1:]] += line.split()
    return found


class Watched:
    """MuJoCo's model, or its options, with the names of the arrays that were read."""

    def __init__(self, model: Any, names: set[str], prefix: str = "") -> None:
        self.__dict__.update(_model=model, _names=names, _prefix=prefix)

    def __getattr__(self, name: str) -> Any:
        self._names.add(self._prefix + name)
        value = getattr(self._model, name)
        return Watched(value, self._names, "opt.") if name == "opt" else value


class Functions:
    """MuJoCo's module for a watched model."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(mujoco, name)
        if not name.startswith("mj_"):
            return found
        return lambda *args: found(*(x._model if isinstance(x, Watched) else x for x in args))


def watched(call: Callable[[], Any]) -> tuple[set[str], set[str]]:
    """(names of arrays and flags that a reader uses, those that it only looks at for its report)."""
    names: set[str] = set()
    stated: set[str] = set()
    compile_file, enabled = reader.compile_file, compilation.CompiledFile.enabled

    def watched_file(path: Any, text: Any) -> Any:
        found = compile_file(path, text)
        return dataclasses.replace(found, model=Watched(found.model, names), mujoco=Functions())

    def see_flags(self: Any, *flags: str) -> bool:
        names.update(f"flag.{flag.lower()}" for flag in flags)
        return enabled(self, *flags)

    def apart(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any) -> Any:
            before, found = set(names), function(*args)
            found = found if isinstance(found, dict | str) else list(found)
            stated.update(names)
            names.clear()
            names.update(before)
            return found

        return called

    faults = apart(actuators.faults_of_actuators)
    with ExitStack() as stack:
        for module in (reader, actuators, keyframes):
            stack.enter_context(mock.patch.multiple(module, compile_file=watched_file, faults_of_actuators=faults))
        stack.enter_context(mock.patch.object(reader, "_ignored", apart(reader._ignored)))
        stack.enter_context(mock.patch.object(compilation.CompiledFile, "enabled", see_flags))
        call()
    return names, stated - names


CALLS: dict[str, Callable[[], Any]] = {
    "": lambda: read_mjcf(SPECIMEN),
    "`contacts=`, `solids=`": lambda: (
        read_mjcf(SPECIMEN, solids=True), read_mjcf(SPECIMEN, contacts=["arm"], contact_law={"stiffness": 1e5})
    ),
    "`load_actuators`": lambda: read_actuators(read_mjcf(SPECIMEN)[0], SPECIMEN, stops=0.02),
    "`load_keyframes`": lambda: keyframes.load_keyframes(read_mjcf(SPECIMEN)[0], SPECIMEN),
}  # fmt: skip
"""What reads a file."""


def arrays_of(tag: Tag, attribute: str) -> list[str]:
    """The arrays of an attribute; none if it is for the compiler, or without effect."""
    last, parent = tag[-1], tag[0]
    kind = "parts" if parent == "tendon" and len(tag) > 2 else KINDS.get(last, last)
    if parent == "equality":
        kind, last = "equalities", "connect"
    attribute = "quat" if attribute in TURNED else attribute
    alias = ALIASES.get(kind, {}).get(attribute)
    if alias is not None:
        return [alias]
    names = [prefix + attribute for prefix in PREFIXES.get(last, ())]
    return [name for name in names if name.startswith("flag.") or hasattr(_MODEL, name.removeprefix("opt.")) or (
        name.startswith("opt.") and hasattr(_MODEL.opt, name.removeprefix("opt.")))]  # fmt: skip


_MODEL = mujoco.MjModel.from_xml_string("<mujoco/>")


def columns(tag: Tag, attributes: list[str], seen: dict[str, tuple[set[str], set[str]]]) -> tuple[str, str, str]:
    """The attributes of an element that are read, stated, and neither."""
    kind = "equalities" if tag[0] == "equality" else KINDS.get(tag[-1], "")
    cells: dict[str, list[str]] = {}
    for name in sorted(attributes):
        arrays = {*arrays_of(tag, name)}
        calls = [call for call, (used, _) in seen.items() if arrays & used]
        if WHOLE & {*tag}:
            key = "stated"
        elif name in OF_COMPILER:
            key = ""
        elif name in STATED.get(kind, ()):
            key = "stated"
        elif calls:
            key = calls[0]
        else:
            key = "stated" if any(arrays & stated for _, stated in seen.values()) else "unread"
        cells.setdefault(key, []).append(f"`{name}`")
    read = [f"{', '.join(cells[call])}{' by ' * bool(call)}{call}" for call in seen if call in cells]
    return "; ".join(read), ", ".join(cells.get("stated", ())), ", ".join(cells.get("unread", ()))


def table() -> str:
    """The table of MJCF's elements with an effect on a motion; those that are read alike have one row."""
    seen = {name: watched(call) for name, call in CALLS.items()}
    rows: dict[tuple[str, str, tuple[str, str, str]], list[str]] = {}
    for tag, attributes in schema().items():
        if tag and tag[0] in SHOWN and attributes and not NOT_SHOWN & {*tag} and tag[-1] != "plugin":
            if tag[0] == "equality" and tag[-1].startswith("flex"):
                cells = ("refused", "", "")
            else:
                cells = columns(tag, attributes, seen)
            rows.setdefault((tag[0], tag[-1], cells), []).append(tag[-2] if len(tag) > 1 else "")
    text = [VERSION, "", "| element | read | stated in the report | not read |", "|---|---|---|---|"]
    for (_, tag, cells), parents in rows.items():
        parent = parents[0] if len(parents) == 1 and parents[0] not in ("", "body", "asset") else ""
        text.append(f"| `<{tag}>`{f' in `<{parent}>`' * bool(parent)} | {' | '.join(cells)} |")
    return "\n".join([*text, ""])


def unmapped() -> list[tuple[str, str]]:
    """Attributes of elements in the table about which this file has no entry."""
    found = []
    for tag, attributes in schema().items():
        if not tag or tag[0] not in SHOWN or (NOT_SHOWN | WHOLE) & {*tag} or tag[-1].startswith("flex"):
            continue
        kind = "equalities" if tag[0] == "equality" else KINDS.get(tag[-1], "")
        for name in attributes:
            known = OF_COMPILER | STATED.get(kind, set())
            if name not in known and (tag[-1], name) not in WITHOUT_EFFECT and not arrays_of(tag, name):
                found.append(("/".join(tag), name))
    return found
