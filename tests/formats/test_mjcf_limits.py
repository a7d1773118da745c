"""What MuJoCo would make of a file is counted before it is called, and the limit is said."""

import os

import pytest

from lgsim.formats import FileError, load_mjcf
from lgsim.formats.mjcformat.limits import check_expansions

mujoco = pytest.importorskip("mujoco")

BODY = '<body><joint/><geom size="1" contype="0" conaffinity="0"/></body>'


def file(*parts, before=""):
    return f"<mujoco>{before}\n<worldbody>{BODY}\n{''.join(parts)}</worldbody></mujoco>"


def replicated(*counts, inner=BODY):
    """Replicates within each other, each on a line of its own."""
    starts = "".join(f'\n<replicate count="{count}" offset="0 0 0.1">' for count in counts)
    return f"{starts}{inner}{'</replicate>' * len(counts)}"


ENDLESS = {
    "replicate": (file(replicated(10**9)), 4, "<replicate>", 10**9),
    "an empty one": (file('<replicate count="1000000000"/>'), 3, "<replicate>", 10**9),
    "within each other": (file(replicated(100, 100, 100, 100)), 6, "<replicate>", 10**6),
    "many": (file(*[replicated(1000)] * 20), 16, "joint", 50000),
    "a grid": (
        file('<flexcomp name="f" type="grid" count="1000 1000 1000" spacing="1 1 1"/>'), 3, "<flexcomp>", 10**9,
    ),
    "a cable": (file('<composite type="cable" count="100000000 1 1"/>'), 3, "<composite>", 10**8),
    "a replicated grid": (
        file(replicated(1000, inner='<flexcomp name="f" type="grid" count="10 10 1" spacing="1 1 1"/>')), 4,
        "<flexcomp>", 10**5,
    ),
    "keys": (file(before='<size nkey="2000000000"/>'), 1, "<size>", 2 * 10**9),
    "numbers of the user": (file(before='<size nuser_body="200000000"/>'), 1, "<size>", 2 * 10**8),
    "a cone": (
        file(before='<asset><mesh name="m" builtin="cone" params="100000000 1"/></asset>'), 1, "<mesh>", 10**16,
    ),
    "a plate": (
        file(before='<asset><mesh name="m" builtin="plate" params="100 100000"/></asset>'), 1, "<mesh>", 10**7,
    ),
    "a height field whose points are 2^32": (
        file(before='<asset><hfield name="h" nrow="65536" ncol="65537" size="1 1 1 1"/></asset>'), 1, "<hfield>",
        4 * 65536 * 65537,
    ),
    "a texture": (
        file(before='<asset><texture type="2d" builtin="flat" width="40000" height="40000"/></asset>'), 1, "<texture>",
        3 * 40000**2,
    ),
    "as exponent": (file(replicated("1e9")), 4, "<replicate>", 10**9),
    "infinite": (file(replicated("inf")), 4, "<replicate>", 10**18),
    "as references": (file(replicated("&#49;&#x30;00000000")), 4, "<replicate>", 10**9),
}  # fmt: skip


@pytest.mark.parametrize("kind", ENDLESS)
def test_what_has_no_end_is_refused_at_its_line(kind):
    """In a moment: MuJoCo takes hours, all memory, or ends the process."""
    text, line, tag, size = ENDLESS[kind]
    with pytest.raises(FileError) as caught:
        load_mjcf(text=text)
    assert caught.value.line == line and tag.strip("<>") in caught.value.message.partition(":")[0]
    said = "LGSIM_MAX_BYTES" if tag in ("<hfield>", "<texture>") else "LGSIM_MAX_BODIES"
    assert said in caught.value.message
    got = float(caught.value.message.partition("got ")[2].replace(",", ";").partition(";")[0])
    assert 0.99 * size <= got <= 1.1 * size


HIDDEN = {
    "behind a value with a comment's start": '<body name="<!--"/>{}<body name="-->"/>',
    "behind a doctype": "{}",
    "behind a comment of hyphens": "<!-- a -- b --->{}",
    "with spaces": "{}",
    "in single quotes": "{}",
    "behind an ampersand": '<body name="a & b"/>{}',
}


@pytest.mark.parametrize("kind", HIDDEN)
def test_none_is_hidden(kind):
    """MuJoCo's parser is no strict one; what it reads is counted, and its elements are as many as it makes."""
    inner = replicated(7, inner='<geom size="1"/>')
    if kind == "with spaces":
        inner = inner.replace("<replicate count=", "<  replicate\n\tcount =\n ")
    if kind == "in single quotes":
        inner = inner.replace('"7"', "'7'")
    text = file(HIDDEN[kind].format(inner))
    if kind == "behind a doctype":
        text = f'<!DOCTYPE mujoco [<!ENTITY a ">{text}">]><mujoco/>'
    if "ampersand" not in kind and "comment's start" not in kind:
        assert mujoco.MjModel.from_xml_string(text).ngeom == 8  # it is read
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LGSIM_MAX_BODIES", "10")
        with pytest.raises(FileError, match="LGSIM_MAX_BODIES"):
            check_expansions("<text>", text.encode(), False)
        patch.setenv("LGSIM_MAX_BODIES", "14")
        check_expansions("<text>", text.encode(), False)


def test_what_is_no_copy_is_not_counted(monkeypatch):
    """Bodies that the file has are as many as it has; comments, another root and counts below two are none."""
    monkeypatch.setenv("LGSIM_MAX_BODIES", "1")
    comment = f"<!-- {replicated(10)} -->"
    model = load_mjcf(text=file(*[BODY] * 20, comment, replicated(1), replicated(0)))
    assert model.nv == 22
    check_expansions("<text>", (file() + replicated(100)).encode(), False)
    check_expansions("<text>", (file(f"<![CDATA[{replicated(100)}]]>")).encode(), False)


def test_the_limit_is_that_of_the_environment(monkeypatch):
    text = file(replicated(30))
    assert load_mjcf(text=text).nv == 31
    monkeypatch.setenv("LGSIM_MAX_BODIES", "119")  # 30 replicates, bodies, joints and geometries
    with pytest.raises(FileError, match="at most 119 elements, got 120"):
        load_mjcf(text=text)
    monkeypatch.setenv("LGSIM_MAX_BODIES", "120")
    assert load_mjcf(text=text).nv == 31
    monkeypatch.setenv("LGSIM_MAX_BODIES", "1e3")
    assert load_mjcf(text=text).nv == 31
    for wrong in ("many", "nan", "-1", "inf"):
        monkeypatch.setenv("LGSIM_MAX_BODIES", wrong)
        with pytest.raises(ValueError, match="LGSIM_MAX_BODIES: expected a number"):
            load_mjcf(text=text)


def test_numbers_that_are_none_are_for_mujoco_to_refuse():
    for count in ("many", "0x10", "3.7", "nan", ""):
        with pytest.raises(FileError, match=r"^<text>:\d+: MuJoCo:"):
            load_mjcf(text=file(replicated(count)))
    for text in ("<mujoco><worldbody>", "<mujoco><!-- ", '<mujoco><a b="></mujoco>', "<mujoco></a></mujoco>"):
        with pytest.raises(FileError, match="MuJoCo:"):
            load_mjcf(text=text)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with an included file and a model to attach, which copy too."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "included.xml").write_text(f'<x><include file="inner.xml"/>{BODY}</x>')
    (tmp_path / "sub" / "inner.xml").write_text(f"<x>{replicated(5)}</x>")
    (tmp_path / "model.xml").write_text(
        f'<mujoco model="m"><worldbody><body name="b">{replicated(5)}</body></worldbody></mujoco>'
    )
    return tmp_path


def test_what_files_include_is_counted(folder, monkeypatch):
    path = folder / "main.xml"
    path.write_text(file(replicated(10, inner='<include file="sub/included.xml"/>')))
    assert load_mjcf(path).nv == 61
    monkeypatch.setenv("LGSIM_MAX_BODIES", "200")  # 50 copies of a body of three elements, and more
    with pytest.raises(FileError, match=r"inner.xml:2: <\w+>: .*LGSIM_MAX_BODIES"):
        load_mjcf(path)


def test_what_files_attach_is_counted(folder, monkeypatch):
    path = folder / "main.xml"
    model = '<asset><model name="m" file="model.xml"/></asset>'
    attach = '<attach model="m" body="b" prefix="x"/>'
    path.write_text(file(replicated(10, inner=attach)).replace("</worldbody>", f"</worldbody>{model}"))
    assert load_mjcf(path).nv == 51
    monkeypatch.setenv("LGSIM_MAX_BODIES", "200")
    with pytest.raises(FileError, match=r"main.xml:4: <attach>: .*LGSIM_MAX_BODIES"):
        load_mjcf(path)


def test_models_of_models_of_models(tmp_path):
    """Twelve files, each with ten of the next: 10^12 bodies."""
    for i in range(12):
        inner = '<attach model="m" body="b" prefix="x"/>' if i < 11 else '<geom size="1"/>'
        asset = f'<asset><model name="m" file="{i + 1}.xml"/></asset>' if i < 11 else ""
        (tmp_path / f"{i}.xml").write_text(
            f'<mujoco model="m">{asset}<worldbody><body name="b"><joint/><geom size="1"/>{replicated(10, inner=inner)}'
            "</body></worldbody></mujoco>"
        )
    with pytest.raises(FileError, match="LGSIM_MAX_BODIES"):
        load_mjcf(tmp_path / "0.xml")


def test_a_model_that_attaches_itself(tmp_path):
    """MuJoCo ends the process by a segmentation fault."""
    text = '<mujoco model="{}"><asset>\n<model name="m" file="{}.xml"/></asset><worldbody/></mujoco>'
    for name, other in (("one", "one"), ("two", "three"), ("three", "two")):
        (tmp_path / f"{name}.xml").write_text(text.format(name, other))
    (tmp_path / "outer.xml").write_text('<mujoco><include file="two.xml"/></mujoco>')
    for name in ("one", "two", "outer"):
        with pytest.raises(FileError, match=r"\.xml:2: <model>: expected a file that does not contain itself"):
            load_mjcf(tmp_path / f"{name}.xml")
    for i in range(60):
        (tmp_path / f"{i}.xml").write_text(text.format(i, i + 1))
    with pytest.raises(FileError, match="nested 50 deep"):
        load_mjcf(tmp_path / "0.xml")


def test_files_that_are_not_there_or_no_files_are_for_mujoco(tmp_path):
    path = tmp_path / "main.xml"
    os.mkfifo(tmp_path / "pipe.xml")
    for name in ("nothing.xml", "", "main.xml", "sub", "a" * 5000):
        path.write_text(file(f'<include file="{name}"/>'))
        with pytest.raises(FileError, match="MuJoCo:"):
            load_mjcf(path)
    check_expansions(str(path), file('<include file="pipe.xml"/><include file="/dev/zero"/>').encode(), True)


def test_a_limit_that_is_none_is_named_with_the_file(monkeypatch):
    monkeypatch.setenv("LGSIM_MAX_BODIES", "many")
    with pytest.raises(FileError, match="LGSIM_MAX_BODIES: expected a number such as 4e9, got 'many'"):
        check_expansions("x.xml", b"<mujoco/>", False)
