"""Cases 60 to 64: memory, disks, files and clusters. Most have their tests beside the code they belong to."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from method_data import GRAPH, METHODS, quiet
from subspaces import KTRR, LSR1, SC, SSC, TRR, EnSC
from subspaces.utils import memory

FREE = 4 * 2**30


@pytest.fixture
def little(monkeypatch):
    """A machine with 4 GiB free, and no array larger than 1 GiB may be asked for."""
    monkeypatch.setattr(memory, "available_bytes", lambda: FREE)


@pytest.mark.parametrize("cls", GRAPH)
@pytest.mark.usefixtures("little")
def test_case_60_too_many_points(cls):
    """60: refused before anything is allocated, with the bytes needed, the bytes free and what to do instead."""
    if not cls._n_squares or cls in (KTRR, TRR):
        pytest.skip("makes no n × n array")
    X = np.random.default_rng(0).standard_normal((200_000, 2)).astype(np.float32)
    with quiet(), pytest.raises(MemoryError, match=r"needs \d.* GiB of memory and 4 GiB are free\. \w"):
        cls(n_clusters=3).fit(X)


@pytest.mark.usefixtures("little")
def test_case_60_graphs_that_keep_everything(seed):
    """60: a graph of all pairs is refused also where the coefficients need no n × n array."""
    X = np.random.default_rng(seed).standard_normal((100_000, 2)).astype(np.float32)
    for model in (TRR(3, n_nonzero=None), LSR1(3), KTRR(3, kernel="linear", solver="low_rank", graph="row_space")):
        with quiet(), pytest.raises(MemoryError, match=r"edges each needs .* GiB"):
            model.fit(X)


@pytest.mark.parametrize("name", ["kasp", "nystrom", "akk", "lsc", "uspec", "sec"])
@pytest.mark.usefixtures("little")
def test_case_60_too_many_landmarks(name):
    """60: the p × p matrix of the methods for many points is refused as well."""
    X = np.random.default_rng(0).standard_normal((50_000, 2)).astype(np.float32)
    with quiet(), pytest.raises(MemoryError, match=r"50000 × 50000 matrix .* fewer landmarks"):
        METHODS[name](n_clusters=3, n_landmarks=10**6).fit(X)


@pytest.mark.parametrize("cls", [EnSC, SSC, SC, METHODS["tsc"], METHODS["smce"]])
def test_case_60_sparse_points_that_would_not_fit_dense(cls, monkeypatch):
    """60: methods that need dense points refuse sparse ones that have too many features."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 2**20)
    X = sparse.random_array((60, 10**6), density=1e-5, rng=np.random.default_rng(0), format="csr")
    with quiet(), pytest.raises(MemoryError, match=r"60 × 1000000 points as a dense array|matrix of"):
        cls(n_clusters=3).fit(X)


@pytest.mark.usefixtures("little")
def test_case_60_feature_maps_that_do_not_fit():
    """60: an explicit map asked for by name."""
    X = np.random.default_rng(0).standard_normal((3000, 2000)).astype(np.float32)
    with quiet(), pytest.raises(MemoryError, match=r"feature map of the quadratic kernel, 3000 × 2001000"):
        KTRR(3, kernel="quadratic", solver="low_rank").fit(X)
