"""Each extra alone gives what it promises, and without it an error of one line names it.

In a process of its own nothing can be imported but the packages that lgsim's metadata name for one extra.
"""

import json
import subprocess
import sys
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HEAD = """
import sys
import sysconfig
from importlib.machinery import PathFinder

class Rest(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if path is None and name in MISSING:  # a package may bring it along in a folder of its own
            path = [each for each in sys.path if each != sysconfig.get_path("purelib")]
        return super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Rest
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
import lgsim
arm = lgsim.load_urdf(lgsim.data.cart_pole())
"""
MOTION = "motion = lgsim.simulate(arm, duration=0.1, dt=1e-2, step_check=False)\n"
STUDY = """
from lgsim import montecarlo
start = montecarlo.TangentNormal(arm, arm.neutral(), 0.05)
rollout = montecarlo.Rollout(arm, q0=arm.neutral(), dt=0.01, steps=5)
study = montecarlo.Study({"q0": start}, rollout, {"end": lambda run: run.q[-1]}, samples=8)
"""
PROBLEM = """
from lgsim import optimize
dynamics = optimize.MultibodyDynamics(arm, 0.1, selection=[[1.0], [0.0]])
goal = optimize.StateDistance(dynamics.action, dynamics.state([0.1, 0.0]))
problem = optimize.Problem(dynamics, dynamics.state(), horizon=5, terminal=goal)
"""

PROMISES = {
    "plot": MOTION + "from lgsim import view\nview.plots.energy(motion).savefig('energy.png')",
    "adaptive": "lgsim.simulate_adaptive(arm, duration=0.1, step_check=False)",
    "view": MOTION + "lgsim.view.to_html(motion, 'motion.html')",
    "data": MOTION + "motion.save('motion.parquet')\nlgsim.Trajectory.load('motion.parquet')",
    "logs": MOTION + "motion.save('motion.mcap')",
    "montecarlo": STUDY + "montecarlo.run(study, store='store')",
    "ray": STUDY
    + """
from lgsim.montecarlo import engine, ray_cluster
if __name__ == "__main__":
    made = engine.Engine(study)
    with engine.open_store(made, "store") as store:
        ray_cluster.fill(made, store, step_check=False)
""",
    "optimize": PROBLEM + "optimize.solve(problem, solver=optimize.ShootingMinimizer())",
    "mjcf": "lgsim.load_mjcf(text='<mujoco><worldbody><body><joint/><geom size=\"1\"/></body></worldbody></mujoco>')",
    "xacro": """
from pathlib import Path
hinge = "<link name='a'/><link name='b'/><joint name='c' type='fixed'><parent link='a'/><child link='b'/></joint>"
space = "xmlns:xacro='http://www.ros.org/wiki/xacro'"
Path("one.xacro").write_text(f"<robot name='r' {space}><xacro:arg name='n' default='1'/>{hinge}</robot>")
assert lgsim.load_urdf("one.xacro", floating_base=True, physical="report").nv == 6
""",
    "symbolic": "from lgsim import symbolic\nsymbolic.linearize(symbolic.model(arm))",
    "casadi": "from lgsim import symbolic\nsymbolic.compile(lgsim.mass_matrix, arm, symbolic.targets.Casadi())",
    "cli": "from lgsim.cli import main\nsys.argv = ['lgsim', 'info', str(lgsim.data.cart_pole())]\nmain()",
}
# XLA does what LLVM does; scipy, which these take, comes with JAX; samplers are called by the user
SILENT = {"fast", "identify", "posterior"}
NOT_FOR_USERS = {"all", "dev", "docs", "oracle", "cuda-aot"}


def distributions(extra):
    """The distributions that lgsim with an extra, or None, brings."""
    found, open_ = set(), [("lgsim", frozenset({extra or ""}))]
    while open_:
        name, extras = open_.pop()
        if (name, extras) in found:
            continue
        found.add((name, extras))
        try:
            wanted = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        for each in map(Requirement, wanted):
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras or {""}):
                open_.append((canonicalize_name(each.name), frozenset(each.extras) or frozenset({""})))
    return {name for name, _ in found}


def missing(extra):
    """The top-level modules of the environment that lgsim with an extra does not bring."""
    allowed = distributions(extra)
    owners = metadata.packages_distributions()
    return {module for module, of in owners.items() if not allowed & {canonicalize_name(each) for each in of}}


def run(code, without, folder):
    return subprocess.run(
        [sys.executable, "-c", f"MISSING = set({json.dumps(sorted(without))})\n{HEAD}{code}"],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip


def test_every_extra_is_looked_at():
    names = {canonicalize_name(each) for each in metadata.metadata("lgsim").get_all("Provides-Extra")}
    assert names == {*PROMISES, *SILENT, *NOT_FOR_USERS}
    assert {"diffrax", "viser", "pyarrow", "sympy"} <= missing(None) and "jax" not in missing(None)


@pytest.mark.slow
@pytest.mark.parametrize("extra", sorted(PROMISES))
def test_alone_it_gives_what_it_promises(extra, tmp_path):
    done = run(PROMISES[extra], missing(extra), tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("extra", sorted(PROMISES))
def test_without_it_one_line_names_it(extra, tmp_path):
    done = run(PROMISES[extra], missing(None), tmp_path)
    assert done.returncode == 1
    said = done.stderr.partition("\n--------------------\n")[0]  # below it JAX tells what it left out
    last = said.strip().splitlines()[-1]
    assert f"pip install 'lgsim[{extra}]'" in last, done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("extra", [None, *sorted(SILENT)])
def test_the_core_and_what_is_silent_work_alone(extra, tmp_path):
    code = MOTION + "from lgsim import identify\nidentify.Parameters(arm, [identify.JointParameter('damping')])"
    done = run(code, missing(extra), tmp_path)
    assert done.returncode == 0 and not done.stderr, done.stderr[-3000:]
