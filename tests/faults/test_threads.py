"""The last digit of a graph, which changes with the number of threads, decides neither clusters nor their names."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans  # noqa: F401  (loads the libraries that are limited)
from threadpoolctl import threadpool_limits

from subspaces import KTRR
from subspaces.datasets import make_subspaces
from subspaces.embedding import spectral_embedding, unit_rows
from subspaces.partition import cut_by_modularity, cut_by_qr, cut_embedding
from subspaces.selection.cuts import cut_spectrally

CUTS = ["kmeans", "qr", "discretize", "modularity"]


def noisy(seed: int, n: int) -> np.ndarray:
    """Points so noisy that many lie between clusters."""
    return make_subspaces(4, dimension=3, ambient=30, n_points=n // 4, noise=0.4, random_state=seed)[0]


def shaken(W: sparse.csr_array, rng: np.random.Generator) -> sparse.csr_array:
    """W with other last digits, symmetric as before."""
    factors = 1 + 1e-14 * rng.uniform(-1, 1, W.shape)
    return sparse.csr_array(W.multiply((factors + factors.T) / 2))


@pytest.mark.parametrize("cut", CUTS)
def test_last_digits_decide_nothing(cut, seed, rng):
    """58: the same labels, names included, of a graph whose weights differ by rounding."""
    W = KTRR(4).fit(noisy(seed, 200)).affinity_matrix_
    found = []
    for graph in (W, shaken(W, rng), shaken(W, rng)):
        if cut == "modularity":
            found.append(cut_by_modularity(graph, 4, seed=seed))
        else:
            Y = unit_rows(spectral_embedding(graph, 4).vectors)
            found.append(cut_embedding(Y, 4, method=cut, seed=seed))
            found[-1] = np.stack([found[-1], cut_spectrally(graph, cut, 4, seed)[0]])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_qr_cut_finds_blocks(dtype, rng):
    """Rows near the axes go to their axes, in any rotation; a matrix of lower rank than columns is no error."""
    truth = rng.permutation(np.repeat(np.arange(5), 30))
    rotation = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    Y = (np.eye(5)[truth] + 0.05 * rng.standard_normal((150, 5))) @ rotation
    labels = cut_by_qr((Y / np.linalg.norm(Y, axis=1, keepdims=True)).astype(dtype))
    assert len(set(zip(truth.tolist(), labels.tolist(), strict=True))) == 5
    flat = np.zeros((20, 3), dtype=dtype)
    flat[:, 0] = 1
    assert cut_by_qr(flat).shape == (20,)


@pytest.mark.parametrize("parameters", [*({"partition": cut} for cut in CUTS), {"partition": "auto", "reg": "auto"}])
def test_one_thread_and_two(parameters, seed):
    """58: whole fits and predictions with BLAS and OpenMP on one thread and on two."""
    X = noisy(seed, 440)
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            model = KTRR(4, **parameters).fit(X[:400])
            found.append(np.concatenate([model.labels_, model.predict(X[400:])]))
    np.testing.assert_array_equal(found[0], found[1])
