"""Points that all tests of the explorer look at."""

import pytest

from subspaces.app.explorer import Session
from subspaces.datasets import make_subspaces
from subspaces.selection.hints import Question

PAIRS = ((0, 60), (5, 6), (1, 100), (70, 80))


@pytest.fixture
def asks(monkeypatch):
    """Ask about these pairs, whichever the search would ask about."""

    def question(session):
        over = {answer[:2] for answer in session.answers}
        return next((Question(*pair, "of <two> groups") for pair in PAIRS if pair not in over), None)

    monkeypatch.setattr(Session, "question", question)
    return PAIRS


@pytest.fixture(scope="module")
def data():
    return make_subspaces(4, 2, 12, 30, noise=0.05, random_state=0)
