"""Cassie's SDF file, and Pinocchio's model of it, read without lgsim."""

import xml.etree.ElementTree as ET

import numpy as np
import pinocchio as pin

from tests.formats.robots import FOLDER

CASSIE = FOLDER / "cassie_description" / "robots" / "cassie_v2.sdf"


def euler(x, y, z, roll, pitch, yaw):
    """Pinocchio's pose of six numbers: fixed axes x, y, z one after another."""
    return pin.SE3(pin.rpy.rpyToMatrix(roll, pitch, yaw), np.array([x, y, z]))


def numbers(element):
    return [float(x) for x in ("0 0 0 0 0 0" if element is None else element.text).split()]


def pinocchio_of_cassie(model):
    """(Pinocchio's model of the file, read here without lgsim, frames of the ball joints by (joint, end))."""
    root = ET.parse(CASSIE).getroot().find("model")
    links = {link.get("name"): link for link in root.findall("link")}
    at = {name: euler(*numbers(link.find("pose"))) for name, link in links.items()}
    twin, ids, off = pin.Model(), {}, {}

    def inertia(link):
        e = link.find("inertial")
        xx, xy, xz, yy, yz, zz = (
            float(e.find(f"inertia/{k}").text) for k in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        )
        own = pin.Inertia(float(e.find("mass").text), np.zeros(3), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        return euler(*numbers(e.find("pose"))).act(own)

    hinges = {j.get("name"): j for j in root.findall("joint") if j.get("type") == "revolute"}
    ids["pelvis"] = twin.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root_joint")
    twin.appendBodyToJoint(ids["pelvis"], inertia(links["pelvis"]), pin.SE3.Identity())
    for name in model.joint_names[1:]:  # parents first, as lgsim orders them
        joint = hinges[name]
        parent, child = joint.find("parent").text, joint.find("child").text
        axis = np.array(numbers(joint.find("axis/xyz")))
        # the joint's frame in the child's, which is where Pinocchio has the body's
        off[child] = euler(*numbers(joint.find("pose")))
        at[child] = at[child] * off[child]
        ids[child] = twin.addJoint(
            ids[parent], pin.JointModelRevoluteUnaligned(axis), at[parent].actInv(at[child]), name
        )
        twin.appendBodyToJoint(ids[child], inertia(links[child]), off[child].inverse())
    balls = {}
    for joint in root.findall("joint"):
        if joint.get("type") == "ball":
            parent, child = joint.find("parent").text, joint.find("child").text
            pose = at[child] * off[child].inverse() * euler(*numbers(joint.find("pose")))
            balls[joint.get("name")] = [(ids[link], at[link].actInv(pose)) for link in (parent, child)]
    return twin, balls
