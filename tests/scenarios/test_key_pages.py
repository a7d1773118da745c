"""docs/toml_keys.md lists the keys of all tables of TOML files, and no others."""

import pytest

from tests import key_pages as made

pytestmark = pytest.mark.slow


def test_keys_of_the_page_are_those_that_are_read():
    listed = made.listed_keys(made.PAGE.read_text(encoding="utf-8"))
    assert len(set(listed)) == len(listed)
    # a scenario's machine has the keys of a study's, and one more
    studies, scenarios = list(made.FILES)[:2]
    machine = {
        (scenarios, table, key) for kind, table, key in listed if kind == studies and table.startswith("machine")
    }
    assert set(listed) | machine == made.read_keys()


def test_every_table_is_seen():
    """A function that checks the keys of a table, and that no file here reaches, has keys that the page may lack."""
    assert set().union(*(found.functions for found in made.seen().values())) >= made.askers()
