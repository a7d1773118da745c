"""Files of SDFormat 1.0 to 1.2, converted to version 1.3: attributes become elements."""

from __future__ import annotations

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

ROOT_TAG = "gazebo"
"""The root of these versions."""
VERSIONS = ("1.0", "1.1", "1.2")

_KEPT = frozenset({"name", "type", "version"})
"""Attributes that stay attributes."""
_TEXT = {"origin": "pose", "parent": "link", "child": "link"}
"""Elements with an attribute that is their content now."""
_RENAMED = {("link", "damping"): "velocity_decay", ("mesh", "filename"): "uri", ("include", "filename"): "uri"}
"""New names of elements by their parents."""
_OTHERS = frozenset({"visual", "sensor", "plugin", "light", "scene", "gui", "physics"})
"""Elements that do not affect the motion, or whose content is not read."""


def convert(root: etree._Element) -> None:
    """Convert the tree of a file to version 1.3, in place; new elements have the lines of their owners.

    Source: sdf/1.2/1_0.convert of libsdformat.
    """
    for node in list(root.iterchildren(etree.Element)):
        _convert(node)


def _convert(node: etree._Element) -> None:
    if node.tag in _OTHERS:
        return
    parent = node.getparent()
    node.tag = _RENAMED.get((str(parent.tag), str(node.tag)), node.tag)
    content = _TEXT.get(str(node.tag))
    if content is not None and content in node.attrib:
        node.text = node.attrib.pop(content)
        node.tag = "pose" if node.tag == "origin" else node.tag
    for child in list(node.iterchildren(etree.Element)):
        _convert(child)
    for name in [name for name in node.attrib if name not in _KEPT]:
        new = etree.SubElement(node, _RENAMED.get((str(node.tag), str(name)), name))
        new.text, new.sourceline = node.attrib.pop(name), node.sourceline
