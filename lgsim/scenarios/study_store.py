"""Self-contained stores of studies: the samples with the study file and the model, as a report needs them."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import jax

from lgsim.montecarlo import Results
from lgsim.montecarlo.store import Store
from lgsim.multibody import Model
from lgsim.multibody.serialization import from_record, to_record
from lgsim.scenarios.study import StudyScenario, load_study
from lgsim.support import toml_lines
from lgsim.support.files import open_regular, read_json
from lgsim.support.messages import one_line
from lgsim.support.scenario_error import ScenarioError

STUDY, MACHINE = "study.toml", "machine.json"
"""Additional files of a store: the study, and the model with the path of its file."""


class StoredStudy(NamedTuple):
    """A study and the samples in its store.

    Attributes:
        scenario: The study, its model and the settings of its report.
        results: The samples and their statistics.
    """

    path: Path
    scenario: StudyScenario
    results: Results
    text: str


def describe_study(store: Store, scenario: StudyScenario, text: bytes) -> None:
    """Write the study file and the model into a store.

    Raises:
        OSError: a file cannot be written.
    """
    topology, numbers = to_record(scenario.machine.model)
    about = {
        "file": str(scenario.machine.path),
        "topology": topology,
        "numbers": {name: x.tolist() for name, x in numbers.items()},
    }
    store.write_file(STUDY, text)
    store.write_file(MACHINE, json.dumps(about).encode())


def changed_keys(path: Path, text: bytes) -> list[str]:
    """The keys of a study file that differ from the file in a store, such as "sampling.seed".

    They are empty if one of the files is invalid.
    """
    try:
        with open_regular(path / STUDY, links=False) as content:
            before, now = (_flat(toml_lines.parse(each.decode())) for each in (content.read(), text))
    except (OSError, ValueError, RecursionError):
        return []
    return sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))


def _flat(tree: Any, key: str = "") -> dict[str, Any]:
    """The values of nested tables and arrays by their dotted keys."""
    if not isinstance(tree, dict):
        return {key: tree}
    parts = [_flat(value, f"{key}.{name}" if key else name) for name, value in tree.items()]
    return {name: value for part in parts for name, value in part.items()}


def open_study(path: str | PathLike[str]) -> StoredStudy:
    """Open a store of ``lgsim montecarlo``, complete or not.

    The original files of the study and of the robot need not exist.

    Raises:
        ScenarioError: a ValueError: there is no such store, it is damaged, or its dtype is not enabled in JAX.
        ModuleNotFoundError: the package pyarrow is missing.
    """
    folder = Path(path)
    try:
        store = Store(folder)
        file, model = _stored_machine(folder / MACHINE)
        with open_regular(folder / STUDY, links=False) as content:
            text = content.read()
        kinds = {kind for kind, _ in store.metadata.columns.values()}
        if "float64" in kinds and not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
            raise ValueError("the store contains float64 values: set jax.config.update('jax_enable_x64', True) first")
        found = load_study(folder / STUDY, samples=store.metadata.samples, seed=store.metadata.seed, model=model)
        machine = found.machine._replace(path=file)
        results = Results.open(found.study, folder)
    except ScenarioError:
        raise
    except FileNotFoundError as error:
        missing = f"it has no {Path(error.filename).name}" if error.filename else one_line(error)
        if Store.exists(folder):
            missing += "; open a store of montecarlo.run with montecarlo.Results.open(study, path)"
        raise ScenarioError(folder, None, "", f"expected a store of lgsim montecarlo; {missing}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ScenarioError(folder, None, "", one_line(error).removeprefix(f"{folder}: ")) from error
    return StoredStudy(folder, found._replace(machine=machine), results, text.decode("utf-8"))


def _stored_machine(path: Path) -> tuple[Path, Model]:
    """The path of a robot's file and the model, from a store.

    Raises:
        ScenarioError: the file is damaged.
        ValueError: it is not JSON or not a regular file.
        OSError: it is missing or cannot be read.
    """
    about = read_json(path, links=False)
    try:
        return Path(about["file"]), from_record(about["topology"], about["numbers"])
    except Exception as error:  # various errors of Python and NumPy for damaged records
        raise ScenarioError(
            path, None, "", f"expected a model written by lgsim montecarlo, got {type(error).__name__}; copy the"
            " store again, or run the study into a new one",
        ) from error  # fmt: skip
