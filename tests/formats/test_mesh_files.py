"""Mesh files as others may write them: time is linear in their size, and what is wrong is one kind of error."""

import time

import numpy as np
import pytest

from lgsim.formats.solids.mesh_files import read_mesh

LINES = {
    "mesh.obj": {
        "empty": "\n",
        "spaces": " \t\n",
        "no numbers": "v\n",
        "texture": "vt 0 0\n",
        "comment": "# v 1 2 3\n",
    },
    "mesh.stl": {"empty": "\n", "spaces": " \t\n", "facet": "facet normal 0 0 1\n", "vertical": "vertexes\n"},
}
TRIANGLE = {
    "mesh.obj": "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n",
    "mesh.stl": "solid\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\n",
}


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kinds in LINES.items() for kind in kinds])
def test_time_is_linear_in_the_lines(tmp_path, name, kind):
    """The empty lines of 200 kB took 40 s: four times the lines took sixteen times the time."""

    def seconds(lines):
        path = tmp_path / name
        path.write_text(LINES[name][kind] * lines + TRIANGLE[name], newline="")
        found = []
        for _ in range(3):
            start = time.perf_counter()
            try:
                mesh = read_mesh(path)
                assert kind != "no numbers"
            except ValueError:
                assert kind == "no numbers"
            found.append(time.perf_counter() - start)
        assert kind == "no numbers" or len(mesh.vertices) == 3
        return min(found)

    assert seconds(40_000) < 9 * seconds(10_000) + 0.01


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "  \n"])
@pytest.mark.parametrize("name", TRIANGLE)
def test_ends_of_lines(tmp_path, name, end):
    path = tmp_path / name
    path.write_text("\n\n  " + TRIANGLE[name].replace("\n", end).replace("vertex ", "\tvertex   "), newline="")
    mesh = read_mesh(path)
    np.testing.assert_array_equal(mesh.vertices, [[0, 0, 0], [1, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(mesh.faces, [[0, 1, 2]])


WRONG = {
    "v 0 0\nv 1 0\nv 0 1\n": "expected three numbers of a vertex, got '0 0'",
    "v 0 0 zero\n": "expected three numbers of a vertex, got '0 0 zero'",
    "v 0 0 nan\nv 1 0 0\nv 0 1 0\n": "expected finite vertices",
    "v 0 0 0\nf 1 2 3\n": "expected faces of 1 vertices, got '1 2 3'",
    "v 0 0 0\nf 0 0 0\n": "expected faces of 1 vertices, got '0 0 0'",
    "v 0 0 0\nf a b c\n": "expected faces of 1 vertices, got 'a b c'",
    f"v 0 0 0\nf {'9' * 5000} 1 1\n": "expected faces of 1 vertices, got '999",
    "\n": "expected vertices, got none",
    "v 0 0 \udcff\n": "expected three numbers",
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_what_is_no_mesh(tmp_path, text):
    path = tmp_path / "mesh.obj"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError) as caught:
        read_mesh(path)
    assert str(caught.value).startswith(WRONG[text]) and len(str(caught.value)) < 200


def test_infinite_numbers_of_a_binary_file(tmp_path):
    facet = np.zeros(1, [("numbers", "<f4", 12), ("attribute", "<u2")])
    facet["numbers"][0, 5] = np.inf
    (tmp_path / "mesh.stl").write_bytes(bytes(80) + (1).to_bytes(4, "little") + facet.tobytes())
    with pytest.raises(ValueError, match="expected finite vertices"):
        read_mesh(tmp_path / "mesh.stl")
