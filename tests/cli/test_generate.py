"""``lgsim generate``: files that a compiler takes, and what is refused before anything is written."""

import subprocess

import jax.numpy as jnp
import numpy as np
import pytest

from tests.cli.machines import lgsim, refused


def test_c_compiles_and_computes(files, tmp_path):
    import lgsim as library

    out = tmp_path / "code"
    words = ("--functions", "inverse_dynamics,forward_dynamics,step", "--language", "c", "--out", out)
    result = lgsim("generate", files / "arm.urdf", *words)
    assert result.exit_code == 0, result.stderr
    names = [f"{name}{end}" for name in words[1].split(",") for end in (".c", ".h")]
    assert sorted(x.name for x in out.iterdir()) == sorted([*names, "example.c", "README.txt"])
    assert "inverse_dynamics: " in result.stderr and str(out / "step.c") in result.stdout
    command = [
        "cc",
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        *sorted(map(str, out.glob("*.c"))),
        "-o",
        out / "example",
    ]
    run = subprocess.run([*command, "-lm"], capture_output=True, text=True)
    assert not run.returncode, run.stderr
    shown = subprocess.run([out / "example"], capture_output=True, text=True, check=True).stdout.splitlines()
    found = {line.partition(":")[0]: np.array(line.partition(":")[2].split(), float) for line in shown}
    model = library.load_urdf(files / "arm.urdf")
    zero = jnp.zeros(2)
    np.testing.assert_allclose(
        found["inverse_dynamics tau"], library.inverse_dynamics(model, zero, zero, zero), rtol=1e-8
    )
    a = np.asarray(library.forward_dynamics(model, zero, zero, zero))
    np.testing.assert_allclose(found["forward_dynamics a"], a, rtol=1e-8)
    np.testing.assert_allclose(found["step v_new"], 1e-3 * a, rtol=1e-3)
    assert "2 degrees of freedom" in result.stderr and "cc -std=c99" in (out / "README.txt").read_text()


@pytest.mark.parametrize(("language", "end"), (("numpy", ".py"), ("casadi", ".casadi")))
def test_other_languages(files, tmp_path, language, end):
    if language == "casadi":
        pytest.importorskip("casadi")
    words = ("--functions", "gravity_forces", "--language", language, "--out", tmp_path)
    assert lgsim("generate", files / "arm.urdf", *words).exit_code == 0
    assert sorted(x.name for x in tmp_path.iterdir()) == sorted(["README.txt", f"gravity_forces{end}"])


def test_single_precision(files, tmp_path):
    words = ("--functions", "mass_matrix", "--float32", "--out", tmp_path)
    assert lgsim("generate", files / "arm.urdf", *words).exit_code == 0
    assert "float *" in (tmp_path / "mass_matrix.c").read_text()
    assert "double" not in (tmp_path / "mass_matrix.c").read_text()


def test_bad_input(files, tmp_path):
    machine, out = files / "arm.urdf", ("--out", tmp_path / "none")
    assert "got 'mass_matrx'; did you mean 'mass_matrix'?" in refused(
        "generate", machine, "--functions", "mass_matrx", *out
    )
    assert "expected distinct names, got 'step' twice" in refused("generate", machine, "--functions", "step,step", *out)
    assert "--language: expected one of c" in refused("generate", machine, "--language", "fortran", *out)
    assert "--out: there is no folder" in refused("generate", machine, "--out", tmp_path / "no" / "folder")
    (tmp_path / "file").write_text("x")
    assert "--out: expected a folder, got the file" in refused("generate", machine, "--out", tmp_path / "file")
    result = lgsim("generate", machine, "--limit", 50, *out)
    assert result.exit_code == 2
    assert "--functions: inverse_dynamics: more than 50 operations; a larger limit allows them" in result.stderr
    assert not (tmp_path / "none").exists()
