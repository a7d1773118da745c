"""``lgsim identify ROBOT MOTION --example``: print a map of a recording for a robot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lgsim.cli import files
from lgsim.cli.errors import BadInput, bad_input
from lgsim.cli.requests import IdentificationRequest
from lgsim.cli.terminal import echo_file
from lgsim.scenarios.map_example import example_map


def print_map(asked: IdentificationRequest, machine: Path, motions: Sequence[Path]) -> None:
    """Print the map of the first recording.

    Raises:
        BadInput: there is no such file, or it is no table.
    """
    model, _ = files.read_machine(machine, floating_base=asked.floating_base)
    try:
        with bad_input():
            echo_file(example_map(motions[0], model))
    except FileNotFoundError as error:
        raise BadInput(str(error)) from error
