"""BDR: the number of blocks is part of the problem, so it is asked for and tells fits apart."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from subspaces import BDR
from subspaces.engine.run import Cache, run


def test_number_of_blocks_tells_coefficients_apart(seed):
    X = np.random.default_rng(seed).normal(size=(30, 4))
    cache = Cache()
    for model in (BDR(2), BDR(3), BDR(3, n_blocks=2), BDR(3, n_init=5)):
        run(model.plan(X), X, cache=cache)
    assert len(cache._kept["coefficients"]) == 2, "the first and the third share theirs, the second and the fourth too"


def test_number_of_blocks_is_asked_for():
    with pytest.raises(ValueError, match="BDR needs n_clusters or n_blocks"):
        BDR(None, assign_labels="modularity").fit(np.eye(5))
    assert BDR(None, assign_labels="modularity", n_blocks=2).fit(np.kron(np.eye(2), np.ones((4, 1)))).n_clusters_ == 2


def test_both_variants(seed):
    X = np.kron(np.eye(3), np.random.default_rng(seed).normal(size=(15, 2)))
    for variant in ("Z", "B"):
        assert adjusted_rand_score(np.repeat(np.arange(3), 15), BDR(3, variant=variant).fit(X).labels_) == 1
