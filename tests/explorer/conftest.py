"""Points that all tests of the explorer look at."""

import pytest

from subspaces.datasets import make_subspaces


@pytest.fixture(scope="module")
def data():
    return make_subspaces(4, 2, 12, 30, noise=0.05, random_state=0)
