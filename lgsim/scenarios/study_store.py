"""Stores of studies with the file that was run and the machine in them: all that a report needs, wherever they go."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import jax

from lgsim.montecarlo import Results
from lgsim.montecarlo.store import Store
from lgsim.multibody import Model
from lgsim.multibody.serialization import from_record, to_record
from lgsim.scenarios.study import StudyScenario, load_study
from lgsim.support.files import open_regular, read_json
from lgsim.support.messages import one_line
from lgsim.support.scenario_error import ScenarioError

STUDY, MACHINE = "study.toml", "machine.json"
"""The files in a store beside the samples: the study, and the machine with the place of its file."""


class StoredStudy(NamedTuple):
    """A study with the samples in its store.

    Attributes:
        scenario: The study, its machine and what a report shows of it.
        results: The samples and their statistics.
    """

    path: Path
    scenario: StudyScenario
    results: Results
    text: str


def describe_study(store: Store, scenario: StudyScenario, text: bytes) -> None:
    """Write the study file and the machine into a store.

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


def open_study(path: str | PathLike[str]) -> StoredStudy:
    """Open a store that ``lgsim montecarlo`` made, whether its study is done or not.

    The files of the study and of the machine may be gone; a path of the machine that is there no more is kept.

    Raises:
        ScenarioError: a ValueError: there is no such store, or it is damaged or has numbers of another type than JAX.
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
            raise ValueError("the store has numbers of float64: set jax.config.update('jax_enable_x64', True) before")
        found = load_study(folder / STUDY, samples=store.metadata.samples, seed=store.metadata.seed, model=model)
        machine = found.machine._replace(path=file)
        results = Results.open(found.study, folder)
    except ScenarioError:
        raise
    except FileNotFoundError as error:
        missing = f"it has no {Path(error.filename).name}" if error.filename else one_line(error)
        if Store.exists(folder):
            missing += "; that of montecarlo.run is opened by montecarlo.Results.open(study, path)"
        raise ScenarioError(folder, None, "", f"expected a store that lgsim montecarlo made; {missing}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ScenarioError(folder, None, "", one_line(error).removeprefix(f"{folder}: ")) from error
    return StoredStudy(folder, found._replace(machine=machine), results, text.decode("utf-8"))


def _stored_machine(path: Path) -> tuple[Path, Model]:
    """The place of a machine's file and the machine, of a store.

    Raises:
        ScenarioError: the file is damaged.
        ValueError: it is no JSON file or no regular file.
        OSError: it is not there or cannot be read.
    """
    about = read_json(path, links=False)
    try:
        return Path(about["file"]), from_record(about["topology"], about["numbers"])
    except Exception as error:  # what Python and NumPy make of damaged records
        raise ScenarioError(
            path, None, "", f"expected the machine that lgsim montecarlo wrote, got {type(error).__name__}; copy the"
            " store anew, or run the study into a new one",
        ) from error  # fmt: skip
