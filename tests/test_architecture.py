"""lgsim keeps the floors of its design, and importing it leaves JAX alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture import FILES, LINES, violations
from tests.floors import FIGURE, figure

ROOT = Path(__file__).parents[1] / "lgsim"
BYTECODE = {name: os.environ[name] for name in ("PYTHONPYCACHEPREFIX",) if name in os.environ}

SOUND = {
    "__init__.py": '"""Front door."""\nfrom lgsim.lie.so3 import exp\n',
    "lie/__init__.py": '"""Groups."""\n',
    "lie/series.py": '"""Series."""\nimport jax\ndef s(x):\n    """s."""\n    return jax.lax.select(x < 1e-3, 1, x)\n',
    "lie/so3.py": '"""SO(3)."""\nfrom lgsim.lie import series\ndef exp(u):\n    """Exp."""\n    return series.s(u)\n',
    "integrators/__init__.py": '"""Methods."""\nfrom ..lie.so3 import exp\n',
    "dynamics/__init__.py": '"""Dynamics."""\nfrom lgsim.lie import so3\n',
}

FAULTS = {
    "upward arrow": (
        "lie/so2.py",
        '"""SO(2)."""\nimport lgsim.integrators\n',
        "so2.py:2: the import of lgsim.integrators",
    ),
    "relative upward arrow": (
        "lie/so2.py",
        '"""SO(2)."""\nfrom .. import dynamics\n',
        "import of lgsim.dynamics runs up",
    ),
    "arrow inside a function": (
        "lie/so2.py",
        '"""SO(2)."""\ndef f():\n    """F."""\n    from lgsim.dynamics import g\n',
        "so2.py:4: the import of lgsim.dynamics",
    ),
    "arrow to the front door": ("lie/so2.py", '"""SO(2)."""\nfrom lgsim import exp\n', "the import of lgsim runs up"),
    "sideways arrow": ("multibody/__init__.py", '"""M."""\nimport lgsim.integrators\n', "lgsim.integrators runs up"),
    "dynamics on integrators": ("dynamics/a.py", '"""D."""\nimport lgsim.integrators\n', "lgsim.integrators runs up"),
    "folder without __init__": ("multibody/model.py", '"""M."""\n', "multibody:1: the folder has no __init__.py"),
    "missing module": ("lie/so2.py", '"""SO(2)."""\nimport lgsim.lie.so4\n', "lgsim.lie.so4, which does not exist"),
    "unknown folder": ("stuff/__init__.py", '"""S."""\n', "the folder stuff is on no floor"),
    "loose module": ("stuff.py", '"""S."""\n', "stuff.py:1: lies on no floor"),
    "third party": ("lie/so2.py", '"""SO(2)."""\nimport scipy.linalg\n', "third-party package scipy"),
    "cycle": ("lie/series.py", '"""S."""\nfrom lgsim.lie import so3\ndef s(x):\n    """s."""\n', "cycle lie/s"),
    "long file": ("lie/so2.py", '"""SO(2)."""\n' + "\n" * LINES, f"more than {LINES} lines"),
    "adverb as a file": ("lie/along.py", '"""A."""\n', "along is no name of a file"),
    "participle as a file": ("lie/shifted.py", '"""A."""\n', "shifted is no name of a file"),
    "interpreter outside its room": (
        "lie/so2.py",
        '"""SO(2)."""\nfrom jax.interpreters import ad\n',
        "so2.py:2: imports jax.interpreters: what JAX does not promise",
    ),
    "primitive outside its file": ("lie/a.py", '"""A."""\nimport jax.extend.core\n', "belongs into _compile/xla/jax"),
    "parameters outside their file": (
        "lie/a.py",
        '"""A."""\n\nx = equation.params["a"]\n',
        "a.py:3: reads equation.params",
    ),
    "private JAX by attribute": ("lie/a.py", '"""A."""\nimport jax\nx = jax._src\n', "reads jax._src"),
    "XLA outside its room": ("lie/so2.py", '"""SO(2)."""\nimport jax.ffi\n', "belongs into _compile/xla/"),
    "no docstring of a module": ("lie/so2.py", "x = 1\n", "so2.py:1: the module is undocumented"),
    "no docstring of a function": ("lie/so2.py", '"""SO(2)."""\ndef log(g): ...\n', "so2.py:2: log is undocumented"),
    "no docstring of a class": ("lie/so2.py", '"""SO(2)."""\nclass A: ...\n', "so2.py:2: A is undocumented"),
    "no docstring of a method": (
        "lie/so2.py",
        '"""SO(2)."""\nclass A:\n    """A."""\n    def move(self): ...\n',
        "so2.py:4: A.move is undocumented",
    ),
    "no docstring of a method that no base documents": (
        "lie/so2.py",
        '"""SO(2)."""\nfrom lgsim.lie.so3 import Base\nclass A(Base):\n    """A."""\n    def other(self): ...\n',
        "so2.py:5: A.other is undocumented",
    ),
    "arguments described together": (
        "lie/so2.py",
        '"""SO(2)."""\ndef log(g, h):\n    """Log.\n\n    Args:\n        g, h: Two.\n    """\n',
        "so2.py:2: log: one line each for g, h",
    ),
    "an entry that is no argument": (
        "lie/so2.py",
        '"""SO(2)."""\ndef log(g, *, h):\n    """Log.\n\n    Args:\n        k: One.\n    """\n',
        "so2.py:2: log describes k and takes g, h",
    ),
    "attributes described together": (
        "lie/so2.py",
        '"""SO(2)."""\nclass A:\n    """A.\n\n    Attributes:\n        g, h: Two.\n    """\n',
        "so2.py:2: A: one line each for g, h",
    ),
    "small-angle branch": ("lie/so2.py", '"""SO(2)."""\nf = lambda t: 1 if abs(t) < 1e-8 else t\n', "small number"),
    "machine epsilon": ("lie/so2.py", '"""SO(2)."""\nf = lambda t, i: t > 4 * i.eps\n', "small number"),
    "hidden singularity": ("lie/so2.py", '"""SO(2)."""\nf = lambda t: 1 / (t + 1e-12)\n', "small number"),
    "clamped singularity": ("lie/so2.py", '"""SO(2)."""\nf = lambda t, m: 1 / m.maximum(t, 1e-9)\n', "small number"),
    "setting": ("lie/so2.py", '"""SO(2)."""\nimport jax\njax.config.update("jax_enable_x64", True)\n', "changes a s"),
    "assigned setting": ("lie/so2.py", '"""SO(2)."""\nimport jax\njax.config.jax_enable_x64 = True\n', "changes a s"),
    "environment": ("lie/so2.py", '"""SO(2)."""\nimport os\nos.environ["XLA_FLAGS"] = "x"\n', "changes a setting"),
}

PRIVATE = '''"""Names that need no docstring."""
class _Hidden:
    def move(self): ...
class Shown:
    """Shown."""
    @override
    def move(self): ...
    def _inner(self): ...
def outer():
    """Outer."""
    def inner(): ...
    return 1.0 < 2.0, 0 < outer, -1 + 1e-2
'''

# Settings are read before and after; then the backend must still be free to be configured, because an array that is
# made at import starts it, and keeps the precision that held at that moment.
FRESH = """
import os
import jax, equinox, optax, jaxtyping
before, environment = dict(jax.config.values), dict(os.environ)
import lgsim
for name in lgsim.__all__:
    getattr(lgsim, name)
after = dict(jax.config.values)
assert before == after, {k: (before.get(k), v) for k, v in after.items() if before.get(k) != v}
assert environment == dict(os.environ)
assert jax.config.jax_compilation_cache_dir is None and not jax.config.jax_enable_x64
jax.config.update("jax_num_cpu_devices", 2)
assert jax.device_count("cpu") == 2
"""


INHERITED = {
    "lie/base.py": '"""B."""\nclass Base:\n    """B."""\n    def move(self):\n        """Move."""\n',
    "lie/middle.py": '"""M."""\nfrom .base import Base as B\nclass Middle(B[int]):\n    """M."""\n',
    "lie/last.py": '"""L."""\nfrom . import middle\nclass L(middle.Middle):\n    """L."""\n    def move(self): ...\n',
}


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_lgsim_keeps_its_architecture():
    assert (ROOT / "__init__.py").exists()
    assert not (found := violations(ROOT)), "\n" + "\n".join(found)


def test_sound_tree_has_no_fault(tmp_path):
    assert violations(write(tmp_path / "lgsim", {**SOUND, **INHERITED, "lie/private.py": PRIVATE})) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_found(fault, tmp_path):
    name, text, message = FAULTS[fault]
    found = violations(write(tmp_path / "lgsim", {**SOUND, name: text}))
    assert len(found) == 1, found
    assert message in found[0]


def test_fault_of_a_stub_is_found(tmp_path):
    found = violations(write(tmp_path / "lgsim", {**SOUND, "lie/__init__.pyi": "from lgsim.dynamics import energy\n"}))
    assert len(found) == 1 and "lie/__init__.py:1: the import of lgsim.dynamics" in found[0], found


def test_crowded_folder_is_found(tmp_path):
    crowd = {f"lie/group{i}.py": '"""A group."""\n' for i in range(FILES + 1)}
    found = violations(write(tmp_path / "lgsim", {**SOUND, **crowd}))
    assert len(found) == 1 and "give it sub-folders" in found[0], found


def test_figure_shows_the_floors_as_they_are():
    assert FIGURE.read_text(encoding="utf-8") == figure(), "python -m tests.floors draws it anew"


def test_import_changes_no_setting(tmp_path):
    """Regression: jaxsim issues 109 and 322, where an import switched x64 and the compilation cache."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", FRESH],
        cwd=tmp_path,
        env={"PATH": "", "PYTHONPATH": str(ROOT.parent), "JAX_PLATFORMS": "cpu", **BYTECODE},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
def test_traced_way_enters_few_files():
    """What a reader has to know to follow a file to a machine, one solve by iLQR, one sample into a store, one fit."""
    # a process of its own, which has traced nothing before
    result = subprocess.run([sys.executable, "-m", "tests.traced_way"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]
    files = json.loads(result.stdout.splitlines()[-1])
    assert len(files["solve"]) <= 45, files["solve"]
    # the equations of motion and a rollout by them are two of these
    assert len(files["store"]) <= 51, files["store"]
    assert len(files["load"]) <= 25, files["load"]
    assert len(files["fit"]) <= 62, files["fit"]
