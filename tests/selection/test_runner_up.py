"""The runner-up of a search: the best answer that differs, and its sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from subspaces.selection.result import RunnerUp, Trial, sentence
from subspaces.selection.search import _runner_up
from subspaces.spectral.agreement import pairwise_agreement


def trial(score):
    return Trial(None, "rbf", 1.0, 5, False, "kmeans", 3, 1, 0.5, 0.1, 0.9, 0.0, score)


def test_runner_up_is_the_best_other_answer():
    one, two = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 0, 1, 2, 2])
    scores = [trial(0.5), trial(0.8), trial(0.79), trial(0.7), trial(float("nan"))]
    found = _runner_up(scores, pairwise_agreement([two, one, one, two, two])[1], 1)
    assert found == RunnerUp(scores[3], pytest.approx(np.exp(-0.1)), pytest.approx(found.similarity))
    assert not found.is_as_good
    assert _runner_up(scores[1:3], np.ones(2), 0) is None


def test_runner_up_in_words():
    assert str(RunnerUp(trial(0.8), 1.0, 0.4)).startswith(
        "As good: Gaussian (rbf) kernel on the data as it is, reg 1, 5"
    )
    assert str(RunnerUp(trial(0.8), 0.985, 0.4)).startswith("Nearly as good: Gaussian (rbf) kernel")
    assert str(RunnerUp(trial(0.8), 1.0, 0.89)).endswith("; its clusters differ (agreement 0.89 of 1).")
    assert str(RunnerUp(trial(0.8), 1.0, 0.9)).endswith("; its clusters differ a little (agreement 0.90 of 1).")
    assert [RunnerUp(trial(0.8), share, 0.4).is_as_good for share in (0.981, 0.979)] == [True, False]


def test_the_reason_says_how_well_subspaces_fit():
    assert "subspaces fit them (best of all)" in sentence(trial(0.9), 3, "")
    assert "subspaces fit them (within 5 % of the best)" in sentence(replace(trial(0.9), excess=0.05), 3, "")
