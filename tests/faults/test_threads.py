"""The last digit of a graph, which changes with the number of threads, decides neither clusters nor their names."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from threadpoolctl import OpenBLASController, threadpool_info, threadpool_limits

from subspaces import KTRR, SampledClusterer, SubspaceClustering
from subspaces.datasets import make_subspaces
from subspaces.engine.plan import Cut
from subspaces.selection.graphs import plan_of_cut, recut
from subspaces.spectral.assign import cut_by_qr, cut_embedding
from subspaces.spectral.embedding import spectral_embedding, unit_rows
from subspaces.spectral.partition import cut_by_modularity
from subspaces.utils.blocks import map_blocks
from subspaces.utils.process import keep_threads, one_thread, quiet

CUTS = ["kmeans", "cluster_qr", "discretize", "modularity"]


def noisy(seed: int, n: int) -> np.ndarray:
    """Points so noisy that many lie between clusters."""
    return make_subspaces(4, dimension=3, ambient=30, n_samples=n // 4, noise=0.4, random_state=seed)[0]


def shaken(W: sparse.csr_array, rng: np.random.Generator) -> sparse.csr_array:
    """W with other last digits, symmetric as before."""
    factors = 1 + 1e-14 * rng.uniform(-1, 1, W.shape)
    return sparse.csr_array(W.multiply((factors + factors.T) / 2))


@pytest.mark.parametrize("cut", CUTS)
def test_last_digits_decide_nothing(cut, seed, rng):
    """58: the same labels, names included, of a graph whose weights differ by rounding."""
    X = noisy(seed, 200)
    W = KTRR(4).fit(X).affinity_matrix_
    plan = replace(KTRR(4).plan(X), cut=Cut("kmeans", 3, "k-means++"), seed=seed)
    found = []
    for graph in (W, shaken(W, rng), shaken(W, rng)):
        if cut == "modularity":
            found.append(cut_by_modularity(graph, 4, seed=seed))
        else:
            Y = unit_rows(spectral_embedding(graph, 4).vectors)
            found.append(cut_embedding(Y, 4, method=cut, seed=seed))
            found[-1] = np.stack([found[-1], recut(graph, plan_of_cut(plan, cut, 4))])
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


@pytest.mark.parametrize(("load", "n_threads"), [(2.5, 2), (2.6, 1)])
def test_a_busy_machine_gets_one_thread(load, n_threads, monkeypatch):
    """A fit of 800 samples took six times as long on two threads, of which one always waited for a core."""
    seen = []

    def kernel(X, Y):
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return X @ Y.T

    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("psutil.getloadavg", lambda: (load, 0.0, 0.0))
    with threadpool_limits(2, user_api="blas"):
        KTRR(4, kernel=kernel).fit(noisy(0, 60))
    assert max(seen) == n_threads  # a library that is loaded on the way may have one already


@pytest.mark.parametrize("method", [*(KTRR(4, assign_labels=cut) for cut in CUTS), SubspaceClustering(4)], ids=str)
def test_one_thread_and_two(method, seed):
    """58: whole fits and predictions with BLAS and OpenMP on one thread and on two."""
    X = noisy(seed, 440)
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            model = clone(method).fit(X[:400])
            found.append(np.concatenate([model.labels_, model.predict(X[400:])]))
    np.testing.assert_array_equal(found[0], found[1])


def n_threads(user_api: str) -> set[int]:
    """Threads of the libraries of a kind; a BLAS of another package may have none of its own, or OpenMP's."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == user_api]
    return {pool["num_threads"] for pool in pools if pool.get("threading_layer") not in ("openmp", "disabled")}


@contextmanager
def two_threads() -> Iterator[None]:
    """Two threads of BLAS and OpenMP, that any thread may change; else threadpoolctl 3.8 keeps the others from it."""
    with threadpool_limits(2):
        getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)(force=True)
        yield


def overlapping(*contexts) -> None:
    """Enter each context in a thread of its own, the first first; then leave them, the first first again."""
    entered, leave = [[threading.Event() for _ in contexts] for _ in range(2)]

    def hold(context, i):
        with context:
            entered[i].set()
            assert leave[i].wait(30)

    threads = [threading.Thread(target=hold, args=(context, i)) for i, context in enumerate(contexts)]
    for thread, event in zip(threads, entered, strict=True):
        thread.start()
        assert event.wait(30)
    for thread, event in zip(threads, leave, strict=True):
        event.set()
        thread.join()


def test_limits_that_overlap_are_all_lifted():
    """58: the second finds what the first has set and must not restore that; BLAS and OpenMP do not mix either."""
    with two_threads():
        before = threadpool_info()
        overlapping(one_thread("blas"), one_thread("openmp"), one_thread("blas"), quiet())
        overlapping(one_thread("blas"), keep_threads)
        assert threadpool_info() == before
        with one_thread("blas"), one_thread("blas"):
            assert n_threads("blas") == {1}
            assert n_threads("openmp") == {2}
        with one_thread("openmp"):
            assert n_threads("openmp") == {1}
            assert n_threads("blas") == {2}
        with pytest.raises(KeyError), one_thread("blas"):
            raise KeyError
        assert threadpool_info() == before


def test_filters_that_overlap_are_all_lifted():
    """58: the filters are as before, whoever leaves last; also beside a thread that catches warnings itself."""
    before = list(warnings.filters)
    overlapping(quiet(), quiet(UserWarning), one_thread("blas"), quiet())
    assert warnings.filters == before
    with quiet(UserWarning):
        with warnings.catch_warnings():
            pass
        warnings.warn("not heard", UserWarning, stacklevel=1)
    assert warnings.filters == before


def test_silence_is_that_of_one_thread():
    """58: what another thread has to say is heard; threads that share the work of a silent one are silent too."""

    def warn(start=0, stop=1):
        warnings.warn(f"block {start}", UserWarning, stacklevel=1)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with quiet(UserWarning), ThreadPoolExecutor(1) as other:
            other.submit(warn, 7).result()
            with threadpool_limits(2, "openmp"):
                map_blocks(warn, [(i, i + 1) for i in range(4)])
            warn()
            warnings.warn("of another category", RuntimeWarning, stacklevel=1)
        warn(8)
    assert [str(warning.message) for warning in caught] == ["block 7", "of another category", "block 8"]


class Limiting(KMeans):
    """K-means that holds a limit of its own until it is told to go on, as scikit-learn's does while it computes."""

    entered = leave = None

    def fit(self, X, y=None, sample_weight=None):
        with threadpool_limits(1, "blas"):
            self.entered[self.random_state].set()
            assert self.leave[self.random_state].wait(30)
        return super().fit(X)


def test_limits_of_other_estimators_that_overlap_inside_fits_are_lifted(monkeypatch):
    """58: the second finds one thread and restores that, after the first has restored two."""
    X = noisy(0, 80)
    for name in ("entered", "leave"):
        monkeypatch.setattr(Limiting, name, [threading.Event() for _ in range(2)])
    with two_threads(), ThreadPoolExecutor(2) as pool:
        fits = []
        for i in range(2):
            fits.append(pool.submit(SampledClusterer(2, clusterer=Limiting(2, random_state=i)).fit, X))
            assert Limiting.entered[i].wait(30)
        for fit, leave in zip(fits, Limiting.leave, strict=True):
            leave.set()
            fit.result()
        assert n_threads("blas") == {2}


def test_automatic_fits_in_threads_leave_no_trace(seed):
    """58: after searches that overlap, BLAS has its threads and warnings are heard as before."""
    X = noisy(seed, 60)

    def fit(n_clusters):
        return SubspaceClustering(n_clusters, kernel="rbf", assign_labels="modularity").fit(X).labels_

    with two_threads():
        before, filters = threadpool_info(), list(warnings.filters)
        alone = fit(4)
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(fit, [4, 3, 4, 2, 4, 3]))
        assert threadpool_info() == before
    assert warnings.filters == filters
    np.testing.assert_array_equal(found[0], alone)
