"""``lgsim generate``: the command, and what lies beside the code that it writes."""

from lgsim.cli.generate.command import generate as generate
