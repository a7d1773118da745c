"""Links of files without inertia, or with one that no body has: named, refused by name, replaced on request."""

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import identify
from lgsim.formats import read_sdf, read_urdf
from lgsim.multibody import inertia
from tests.identify import arms

LINK = '<link name="{}">{}</link>'
POINT = (
    '<inertial><origin xyz="0 0 .1"/><mass value="0.5"/>'
    '<inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>'
)
PLATE = '<inertial><mass value="2"/><inertia ixx=".01" iyy=".02" izz=".03" ixy="0" ixz="0" iyz="0"/></inertial>'
ROD = '<inertial><mass value="2"/><inertia ixx=".01" iyy=".01" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>'
ODD = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="9" ixy="0" ixz="0" iyz="0"/></inertial>'
HOLLOW = '<inertial><mass value="0"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
BOX = '<inertial><mass value="1"/><inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial>'


def chain(*bodies, lengths=None):
    """Links a, b, c, ... in a row along z, each on a joint; lengths from joint to joint, m."""
    names = "abcdefgh"[: len(bodies)]
    lengths = [0.3] * len(bodies) if lengths is None else lengths
    links = "".join(LINK.format(n, b) for n, b in zip(names, bodies, strict=True))
    joints = "".join(
        f'<joint name="j{n}" type="continuous"><parent link="{p}"/><child link="{n}"/>'
        f'<origin xyz="0 0 {z}"/><axis xyz="0 {i % 2} {1 - i % 2}"/></joint>'
        for i, (n, p, z) in enumerate(zip(names, ("base", *names), [0, *lengths], strict=False))
    )
    return f'<robot name="r"><link name="base"/>{links}{joints}</robot>'


def extents(values):
    """Principal second moments of the mass about its center, kg m^2, from the textbook's moments of inertia."""
    mass, h, about = values[0], values[1:4], np.asarray(values)[inertia.PLACES]
    c = h / mass
    central = about - mass * (c @ c * np.eye(3) - np.outer(c, c))
    a = np.linalg.eigvalsh(central)
    return np.sort([(a.sum() - 2 * x) / 2 for x in a])


def test_links_with_mass_and_without_extent_are_named_at_load():
    _, report = read_urdf(text=chain(POINT, ROD, PLATE, BOX))
    assert [(f.subject, f.text.partition(":")[0]) for f in report.thin] == [
        ("link 'a'", "has all of its mass in a point"), ("link 'b'", "has all of its mass on a line"),
        ("link 'c'", "has all of its mass in a plane"),
    ]  # fmt: skip
    assert "whose mass is in a plane:\n    line 1: link 'a' has all of its mass in a point" in str(report)
    assert not read_urdf(text=arms.PLANAR)[1].thin and not report.inertias and not report.massless
    # a point that a fixed link completes is no point
    weld = '<joint name="w" type="fixed"><parent link="a"/><child link="tool"/></joint></robot>'
    joined = chain(POINT).replace("</robot>", LINK.format("tool", BOX) + weld)
    assert not read_urdf(text=joined)[1].thin


def test_sdf_reports_the_same():
    text = """<sdf version="1.9"><model name="m"><link name="a"><inertial><mass>2</mass><inertia><ixx>.01</ixx>
    <iyy>.02</iyy><izz>.03</izz></inertia></inertial></link><joint name="j" type="revolute"><parent>world</parent>
    <child>a</child><axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"""
    (found,) = read_sdf(text=text)[1].thin
    assert found.subject == "link 'a'" and "in a plane" in found.text


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_nearest_body_keeps_mass_and_center_and_gains_extent(dtype):
    model, _ = read_urdf(text=chain(POINT, ROD, PLATE, ODD, BOX), dtype=dtype)
    nearest = identify.nearest_consistent(model)
    before, after = (np.asarray(m.inertias, float) for m in (model, nearest))
    np.testing.assert_allclose(after[:, :4], before[:, :4], rtol=1e-6, atol=1e-9)
    ball = 0.5 * 0.15**2 / 5
    wanted = {
        0: [ball] * 3,  # a ball of 0.5 kg, as wide as the link is long
        1: [1e-4, 1e-4, 1e-2],  # a rod of length sqrt(12 * .01 / 2) about z
        2: [2e-4, 1e-2, 2e-2],
        3: [0.045, 4.5, 4.5],
    }
    for i, moments in wanted.items():
        np.testing.assert_allclose(extents(after[i]), moments, rtol=1e-4)
    np.testing.assert_array_equal(after[4], before[4])
    assert nearest.dtype == model.dtype
    identify.Parameters(nearest, identify.Inertias())
    again = identify.nearest_consistent(nearest)
    np.testing.assert_array_equal(again.inertias, nearest.inertias)


def test_a_link_without_mass_becomes_a_ball_of_water_as_wide_as_the_link():
    """TX40 in public files: six links without an inertial, two of them without a length."""
    model, report = read_urdf(text=chain("", "", HOLLOW, "", lengths=[0.4, 0.2, 0.0, 0.0]))
    assert len(report.massless) == 4
    nearest = identify.nearest_consistent(model)
    masses = 1000 * np.pi / 6 * np.array([0.4, 0.2, 0.2, 0.2]) ** 3
    np.testing.assert_allclose(nearest.inertias[:, 0], masses)
    np.testing.assert_allclose(extents(nearest.inertias[0]), [masses[0] * 0.2**2 / 5] * 3)
    np.testing.assert_allclose(nearest.inertias[:, 1:4], 0)
    # its inertia of the file, of which the mass is missing, stays
    np.testing.assert_allclose(nearest.inertias[2][inertia.PLACES], np.eye(3), atol=1e-12)
    kept = identify.nearest_consistent(model, ["b"])
    assert kept.inertias[0, 0] == 0 and kept.inertias[1, 0] > 0
    with pytest.raises(ValueError, match="got 'x'"):
        identify.nearest_consistent(model, ["x"])
    short, _ = read_urdf(text=chain("", lengths=[0.0]))
    assert identify.nearest_consistent(short).inertias[0, 0] == pytest.approx(1000 * np.pi / 6 * 0.1**3)


@pytest.mark.parametrize(
    ("body", "text"),
    [("", "a, which has neither mass nor inertia"), (POINT, "a, which has its mass in a point"),
     (ODD, "a, which has a non-physical inertia"), (HOLLOW, "a, which has no mass but an inertia")],
)  # fmt: skip
def test_a_fit_names_the_link_its_fault_and_the_remedy(body, text):
    model, _ = read_urdf(text=chain(body, BOX))
    with pytest.raises(ValueError, match="nearest_consistent") as caught:
        identify.Parameters(model, identify.Inertias())
    assert text in str(caught.value) and "--physical nearest" in str(caught.value)
    identify.Parameters(model, identify.Inertias(["b"]))


@pytest.mark.parametrize("block", [identify.Masses, identify.CentersOfMass])
def test_ratios_to_a_mass_of_zero_are_refused(block):
    model, _ = read_urdf(text=chain("", BOX))
    with pytest.raises(ValueError, match=rf"{block.__name__}: expected bodies with mass, got a;"):
        identify.Parameters(model, block())
    identify.Parameters(model, block(["b"]))


def test_a_robot_without_inertia_is_not_simulated_and_the_record_not_blamed():
    model, _ = read_urdf(text=chain("", ""))
    q = np.zeros((20, 2))
    records = identify.SensorRecords(0.01, {"q": identify.Channel(identify.PositionSensor(), q, 1e-3)})
    unknowns = identify.Parameters(model, identify.JointParameter("damping"))
    with pytest.raises(ValueError, match="cannot be simulated, since joints 'ja', 'jb' move without inertia"):
        identify.fit(unknowns, records, identify.SimulationFit())


@pytest.mark.slow
def test_a_fit_from_the_nearest_bodies_finds_what_the_torques_show():
    """Torques of a whole arm whose file has links without inertial: predicted to the noise."""
    true = arms.planar()
    file, _ = lgsim.formats.read_urdf(text=arms.PLANAR)
    empty = file.replace(inertias=0 * file.inertias)
    records, held = (arms.samples(true, 200, seed=k, noise=0.05) for k in (0, 1))
    found = identify.fit(
        identify.Parameters(identify.nearest_consistent(empty), identify.Inertias()), records, validation=held
    )
    assert found.verdict.converged and np.all(np.isfinite(found.estimate.x))
    np.testing.assert_allclose(found.rmse(held), 0.05, rtol=0.15)
    assert np.all(np.linalg.eigvalsh(np.asarray(inertia.pseudo_inertia(jnp.asarray(found.model.inertias)))) > 0)
