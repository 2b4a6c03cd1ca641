"""Many communities to few clusters: the better of two cuts, ties, few parts, pieces apart, order of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from boxes_data import touching_boxes
from subspaces import KTRR
from subspaces.kernels import RBF
from subspaces.metrics import accuracy, adjusted_rand
from subspaces.spectral import partition
from subspaces.spectral.partition import better_cut, cut_by_modularity, cut_to_number, merge_communities, modularity
from subspaces.utils.ordering import in_order


@pytest.fixture
def few_are_many(monkeypatch) -> None:
    monkeypatch.setattr(partition, "_MANY_POINTS", 100)


def without_loops(W: sparse.csr_array) -> sparse.csr_array:
    W.setdiag(0)
    W.eliminate_zeros()
    return W


def test_of_many_points_the_embedding_is_cut_as_well(rng, few_are_many):
    W, box, _ = touching_boxes(rng)
    W = without_loops(W)
    communities = cut_by_modularity(W, iterations=10)
    labels, merged = cut_by_modularity(W, 6, iterations=10), merge_communities(W, communities, 6)
    assert communities.max() > 20
    assert accuracy(box, labels) > max(0.98, accuracy(box, merged))
    assert modularity(W, labels) > modularity(W, merged)
    assert_array_equal(cut_by_modularity(W, 6, communities=communities, iterations=10), labels)
    assert_array_equal(labels, in_order(labels))


def test_of_few_points_communities_are_merged_only(rng):
    W, _, _ = touching_boxes(rng)
    W = without_loops(W)
    assert_array_equal(cut_by_modularity(W, 6), in_order(merge_communities(W, cut_by_modularity(W), 6)))


def test_of_equal_cuts_the_first_is_taken(rng):
    """One partition in two numberings: the order of the sums differs, and with it the last bit of the modularity."""
    W, box, _ = touching_boxes(rng, size=30)
    W.data *= rng.uniform(0.5, 1, len(W.data))
    W, halves = W + W.T, box // 3
    for _ in range(20):
        cuts = [rng.permutation(6)[box] for _ in range(3)]
        assert better_cut(W, cuts, 6) is cuts[0]
        assert better_cut(W, [halves, *cuts], 6) is cuts[0]
        assert better_cut(W, [rng.permutation(box), *cuts], 6) is cuts[0]
    assert better_cut(W, [halves, 1 - halves], 6) is halves


def test_nothing_is_embedded_without_a_surplus(rng):
    W, box, _ = touching_boxes(rng, size=30)
    asked = []

    def find(resolution: float, rounds: int) -> np.ndarray:
        asked.append((resolution, rounds))
        return box

    assert_array_equal(cut_to_number(W, box, 6, find), box)
    assert not asked
    assert_array_equal(cut_to_number(W, box // 3, 6, find, iterations=7), box)
    assert asked == [(1.5, 7)]


def test_small_pieces_apart_take_no_place(rng):
    """Three pairs of points that no edge ties to the boxes: less than a two-hundredth each."""
    W, box, _ = touching_boxes(rng)
    pairs = sparse.block_diag([np.ones((2, 2)) - np.eye(2)] * 3)
    W = sparse.csr_array(sparse.block_diag([without_loops(W), pairs]))
    labels = cut_to_number(W, cut_by_modularity(W), 6, lambda resolution, rounds: cut_by_modularity(W, resolution=64.0))
    assert accuracy(box, labels[: len(box)]) > 0.98
    assert len(set(labels[len(box) :].tolist())) == 1
    assert labels.max() == 5


def crossing_plates(rng, n=800) -> np.ndarray:
    """Three thin plates that meet in a line."""
    plate, (a, b, noise) = rng.integers(0, 3, n), rng.uniform(-1, 1, (3, n))
    angle = np.pi / 3 * plate
    return np.c_[(1.1 + a) * np.cos(angle), (1.1 + a) * np.sin(angle), 3 * b] + 0.02 * noise[:, None]


def test_order_of_rows_and_last_bits(rng, few_are_many, monkeypatch):
    X, gram = crossing_plates(rng), RBF.packed_gram
    expected = KTRR(3, assign_labels="modularity").fit_predict(X)
    order = rng.permutation(len(X))
    assert adjusted_rand(KTRR(3, assign_labels="modularity").fit_predict(X[order]), expected[order]) == 1

    def noisy(kernel, points):
        K = gram(kernel, points)
        np.multiply(K.half, 1 + rng.choice([-1, 0, 1], K.half.shape) * np.finfo(K.dtype).eps, out=K.half)
        return K

    monkeypatch.setattr(RBF, "packed_gram", noisy)
    assert_array_equal(KTRR(3, assign_labels="modularity").fit_predict(X), expected)
