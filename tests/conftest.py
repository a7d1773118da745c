"""The settings under which every test runs.

float64 is on, ranks and dtypes never promote silently, warnings are errors (pyproject.toml). With `--typed` every
annotated function of lgsim checks the shapes and dtypes it is given, which takes a quarter of the time. `--float32`
switches to the float32 lane: x64 mode off, as in a process that never touched JAX's settings, and only the tests that
are marked `float32`.
"""

import gc
import os
import threading
import zlib
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path

import equinox.internal
import hypothesis
import jax
import jaxtyping
import numpy as np
import pytest
from jaxtyping import install_import_hook

from tests.typed import CALLED, uncalled

CACHE = Path(__file__).parents[1] / ".cache" / "jax"
HELD = 1 / 6
"""The share of the machine's memory above which a worker drops what JAX compiled."""
LEFT, CALLS, NEVER = (pytest.StashKey() for _ in range(3))


def pytest_addoption(parser):
    parser.addoption("--float32", action="store_true", help="run the float32 lane: x64 off, tests marked float32")
    parser.addoption(
        "--typed", action="store_true", help="check shapes and dtypes of all arguments of lgsim's functions"
    )
    parser.addoption("--exhaustive", action="store_true", help="run the tests marked exhaustive too")
    parser.addoption("--part", type=_part, default=(1, 1), metavar="K/N", help="run the K-th of N parts of the tests")
    parser.addoption(
        "--whole", action="append", default=[], metavar="NAME", help="with --part: all tests under this path or mark"
    )


def _part(text):
    """K and N of "K/N"."""
    part, parts = map(int, text.split("/"))
    if not 1 <= part <= parts:
        raise ValueError(text)
    return part, parts


def pytest_configure(config):
    os.environ.setdefault("MPLBACKEND", "Agg")
    os.environ.setdefault("LGSIM_CACHE_DIR", str(CACHE.parent / "programs"))
    jax.config.update("jax_enable_x64", not config.getoption("--float32"))
    jax.config.update("jax_numpy_rank_promotion", "raise")
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    _keep_context()
    _store_saved_states()
    if tuple(map(int, version("jaxlib").split(".")[:3])) < (0, 8, 0):
        jax.config.update("jax_enable_compilation_cache", False)  # as lgsim.cli.files says
    elif not os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        jax.config.update("jax_compilation_cache_dir", str(CACHE))
        # small programs too: half of what compiles is a single operation that other files and the other worker need
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    if config.getoption("--typed"):
        # before the first import of lgsim, or its functions would stay unchecked
        install_import_hook("lgsim", "tests.typed.check")
    # the same examples in every run; no deadline, because the first example compiles
    hypothesis.settings.register_profile("lgsim", derandomize=True, deadline=None, database=None)
    hypothesis.settings.load_profile("lgsim")


def _keep_context():
    """One context of MLIR a thread: JAX makes one for each program, which takes a tenth of the time of all tests."""
    mlir = jax._src.interpreters.mlir
    if make := getattr(mlir, "make_ir_context", None):
        kept = threading.local()

        def context():
            if mlir.ir.Context.current is not None:  # a program is made while another one is
                return make()
            if not hasattr(kept, "context"):
                kept.context = make()
            return kept.context

        mlir.make_ir_context = context


def _store_saved_states():
    """Diffrax checks the order of saved times by a call of Python, and no program with one is kept on disk.

    lgsim checks the order before.
    """
    check = equinox.internal.error_if
    equinox.internal.error_if = lambda x, bad, message, **more: (
        x if message.startswith("saveat.ts must") else check(x, bad, message, **more)
    )


def pytest_collection_finish():
    """Tracing makes millions of objects that live as long as a test: a search for cycles among them takes a sixth."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 20)


def pytest_sessionfinish(session):
    """A worker tells the process that started it what it left out, and which functions it called."""
    config = session.config
    if (sent := getattr(config, "workeroutput", None)) is not None:
        sent.update(left=config.stash.get(LEFT, {}), called=sorted(CALLED))
    elif _whole_typed(config) and (never := uncalled(config.stash.get(CALLS, CALLED))):
        config.stash[NEVER] = never
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    stash, sent = node.config.stash, getattr(node, "workeroutput", {})
    stash[LEFT] = sent.get("left", {})
    stash[CALLS] = stash.get(CALLS, set()) | set(sent.get("called", ()))


def pytest_terminal_summary(terminalreporter, config):
    left = config.stash.get(LEFT, {})
    if config.option.markexpr == "not slow" and not config.getoption("--typed") and any(left.values()):
        told = [f"{count} {mark} (make {mark})" for mark, count in left.items() if count]
        terminalreporter.write_line(f"not run: {', '.join(told)}, types of arguments (make typed)")
    if never := config.stash.get(NEVER, []):
        terminalreporter.write_line(f"no test calls under --typed: {', '.join(never)}", red=True)


def _whole_typed(config):
    """Whether every test of make test was run with types."""
    return config.getoption("--typed") and config.getoption("--part") == (1, 1) and config.args == ["tests"]


def pytest_report_header(config):
    return f"jax {jax.__version__}, {'float32' if config.getoption('--float32') else 'float64'} lane"


def pytest_generate_tests(metafunc):
    if "dtype" not in metafunc.fixturenames or _names_dtype_itself(metafunc):
        return
    lane = [np.float32] if metafunc.config.getoption("--float32") else [np.float32, np.float64]
    metafunc.parametrize("dtype", lane, ids=lambda dtype: dtype.__name__, indirect=True)


@pytest.hookimpl(tryfirst=True)  # before pytest's own, which looks at -m
def pytest_collection_modifyitems(config, items):
    all_cases = not (config.getoption("--float32") or any("::" in argument for argument in config.args))
    # a lane's older or newer packages have other robots
    _leave_repeats(items, all_cases and config.getoption("--part") == (1, 1))
    marks = ("slow", "exhaustive")
    config.stash[LEFT] = {mark: sum(item.get_closest_marker(mark) is not None for item in items) for mark in marks}
    if config.getoption("--float32"):
        _deselect(config, items, lambda item: item.get_closest_marker("float32") is None)
    if not config.getoption("--exhaustive"):
        _deselect(config, items, lambda item: item.get_closest_marker("exhaustive") is not None)
    part, parts = config.getoption("--part")
    whole = config.getoption("--whole")
    _deselect(
        config, items,
        lambda item: zlib.crc32(_together(item).encode()) % parts != part - 1 and not _belongs(item, whole),
    )  # fmt: skip
    # what takes minutes begins first, so that no worker is left with it at the end
    items.sort(key=lambda item: item.path.name != "test_notebooks.py")
    needs_gpu = [item for item in items if item.get_closest_marker("gpu") is not None]
    if needs_gpu and jax.default_backend() == "cpu":
        for item in needs_gpu:
            item.add_marker(pytest.mark.skip(reason="JAX finds no accelerator"))


def _leave_repeats(items, all_cases):
    """Mark as slow the cases of a claim that make test need not see: see the mark ``repeats``.

    Where all cases were collected, a name that is that of none is refused: its claim would leave make test unseen.
    """
    seen, missed = set(), set()
    for item in items:
        mark = item.get_closest_marker("repeats")
        if mark is None or item.get_closest_marker("slow") is not None:
            continue
        function = item.nodeid.partition("[")[0]
        named = [id for id in mark.args if fnmatchcase(item.callspec.id, id)]
        if function not in seen:
            missed |= {(function, id) for id in mark.args}
        missed -= {(function, id) for id in named}
        if not (named or (not mark.args and function not in seen)):
            item.add_marker(pytest.mark.slow)
        seen.add(function)
    if missed and all_cases:
        lines = "\n".join(
            f"{function}: the mark 'repeats' names '{id}', which is no case" for function, id in sorted(missed)
        )
        raise pytest.UsageError(lines)


def _together(item):
    """The name under which a test is drawn into a part: its own, or that of the tests with which it shares programs."""
    group = item.get_closest_marker("xdist_group")
    return item.nodeid if group is None else f"{item.path.name} {group.args[0]}"


def _belongs(item, names):
    """Whether a test stands under one of these paths, or has one of these marks."""
    return any(
        item.nodeid == name or item.nodeid.startswith((f"{name}/", f"{name}::")) or item.get_closest_marker(name)
        for name in names
    )


def _deselect(config, items, unwanted):
    config.hook.pytest_deselected(items=[item for item in items if unwanted(item)])
    items[:] = [item for item in items if not unwanted(item)]


@pytest.fixture(scope="module", autouse=True)
def _room():
    """Compiled programs go once a worker holds much memory; until then the files that follow find theirs among them."""
    yield
    if _memory_share() > HELD:
        jax.clear_caches()


def _memory_share():
    """The share of the machine's memory that this process holds; 1 where the system does not say it."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) / os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return 1.0


@pytest.fixture(scope="module")
def lowered():
    """Names of the programs that JAX lowers, from now on; one listener, since none can be taken away."""
    names, on = [], [True]

    def took(event, *_, **more):
        if on and event == "/jax/core/compile/jaxpr_to_mlir_module_duration":
            names.append(more.get("fun_name", "a program"))

    jax.monitoring.register_event_duration_secs_listener(took)
    yield names
    on.clear()


@pytest.fixture
def dtype(request):
    """float32 and float64; in the float32 lane float32 alone."""
    return request.param


@pytest.fixture
def key():
    """A random key, the same in every run."""
    return jax.random.key(20250401)


@pytest.fixture
def without_import_hook():
    """What a user meets: the library's own checks."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


def _names_dtype_itself(metafunc):
    marks = metafunc.definition.iter_markers("parametrize")
    names = [mark.args[0] if mark.args else mark.kwargs["argnames"] for mark in marks]
    return any("dtype" in (n.replace(" ", "").split(",") if isinstance(n, str) else n) for n in names)
