"""The cut of the graph between groups, without files or processes: loops, and many communities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from boxes_data import touching_boxes
from subspaces import KTRR
from subspaces.distributed import _cut
from subspaces.kernels import RBF
from subspaces.metrics import accuracy
from subspaces.spectral.partition import cut_by_modularity, merge_communities, modularity


def test_pendants_stand_for_loops(rng):
    W = rng.random((12, 12)) * (rng.random((12, 12)) < 0.4)
    W = sparse.csr_array(W + W.T + np.diag(rng.random(12) * 3))
    labels = rng.integers(0, 4, 12)
    both = _cut.with_pendants(W)
    assert both.diagonal().sum() == 0
    assert modularity(both, np.tile(labels, 2)) == pytest.approx(modularity(W, labels))


def test_many_communities_become_few_clusters(rng):
    """Modularity finds ten communities in each box; merged pair by pair these join boxes and leave others halved."""
    W, box, places = touching_boxes(rng)
    plan = KTRR(6, solver="two_scale", assign_labels="modularity").plan(places)
    labels = _cut.cut_groups(plan, RBF(), W, lambda: W, np.ones(len(box)), places)
    assert accuracy(box, labels) > 0.98
    communities = cut_by_modularity(_cut.with_pendants(W), iterations=10)[: len(box)]
    assert communities.max() > 40
    merged = merge_communities(W, communities, 6)
    assert accuracy(box, merged) < 0.9
    assert modularity(W, labels) > modularity(W, merged)
