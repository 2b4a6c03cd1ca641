"""The table that most tests of the command line read."""

import pytest

from cli_data import write_rings


@pytest.fixture
def table(tmp_path):
    return write_rings(tmp_path)
