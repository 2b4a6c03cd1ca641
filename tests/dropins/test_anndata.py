"""Clusters in an AnnData: what is written, that files keep it, and that scanpy goes on from there."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import subspaces.applications.anndata as ours
from subspaces import EKTRR, KTRR, TRR
from subspaces.datasets import make_subspaces
from subspaces.metrics import accuracy

anndata = pytest.importorskip("anndata")


def cells(n_samples: int = 40, **more: Any) -> Any:
    X, y = make_subspaces(3, 2, 12, n_samples, noise=0.01, random_state=0)
    data = anndata.AnnData(X.astype(np.float32), **more)
    data.obs["truth"] = [f"type {c}" for c in y]
    return data


def counts() -> Any:
    """Three kinds of cells, each with genes of its own, of very different depths; stored sparse."""
    rng = np.random.default_rng(0)
    kinds, depth = np.repeat(np.arange(3), 40), rng.lognormal(0, 1, 120)
    rates = np.where(np.arange(60) // 20 == kinds[:, None], 3.0, 0.2) * depth[:, None]
    data = anndata.AnnData(sparse.csr_matrix(rng.poisson(rates)))
    data.obs["truth"] = kinds
    return data


def test_writes_what_scanpy_would() -> None:
    data = cells()
    assert ours.ktrr(data) is None
    kept = data.obs["ktrr"]
    assert kept.dtype.name == "category"
    assert list(kept.cat.categories) == [str(c) for c in range(len(kept.cat.categories))]
    model = KTRR(None, assign_labels="modularity").fit(data.X)
    np.testing.assert_array_equal(kept.astype(int), model.labels_)
    np.testing.assert_allclose(data.obs["ktrr_confidence"], model.confidence_)
    graph = data.obsp["ktrr_connectivities"]
    assert sparse.issparse(graph)
    np.testing.assert_allclose(
        (graph * model.affinity_matrix_.max()).toarray(), model.affinity_matrix_.toarray(), rtol=1e-6
    )
    found = data.uns["ktrr"]
    assert found["connectivities_key"] == "ktrr_connectivities"
    assert found["params"]["kernel"] == "rbf"
    assert found["params"]["use_rep"] == "X"
    assert "group" in found["verdict"]


def test_principal_components_come_first() -> None:
    data = cells()
    data.obsm["X_pca"] = np.random.default_rng(0).normal(size=(data.n_obs, 5))
    ours.ktrr(data, 3)
    expected = KTRR(3, assign_labels="modularity").fit(data.obsm["X_pca"]).labels_
    np.testing.assert_array_equal(data.obs["ktrr"].astype(int), expected)
    assert data.uns["ktrr"]["params"]["use_rep"] == "X_pca"
    ours.ktrr(data, 3, n_pcs=2)
    assert data.uns["ktrr"]["params"]["n_pcs"] == 2
    ours.ktrr(data, 3, use_rep="X", key_added="of_genes")
    assert accuracy(data.obs["truth"], data.obs["of_genes"]) > 0.95


@pytest.mark.parametrize("where", ["X", "layer"])
def test_counts_are_seen_by_their_logarithms(where: str) -> None:
    data = counts()
    if where == "layer":
        data.layers["counts"], data.X = data.X, np.ones(data.shape)
    ours.ktrr(data, 3, layer="counts" if where == "layer" else None)
    assert accuracy(data.obs["truth"], data.obs["ktrr"]) > 0.95
    assert data.uns["ktrr"]["params"]["scaling"] == "log"


def test_any_method_and_by_default_the_front_door() -> None:
    data = cells()
    ours.cluster(data)
    assert accuracy(data.obs["truth"], data.obs["subspaces"]) > 0.95
    assert data.uns["subspaces"]["params"]["method"] == "SubspaceClustering"
    method = TRR(3)
    ours.cluster(data, method, key_added="trr")
    assert not hasattr(method, "labels_")
    ours.cluster(data, EKTRR(3), key_added="ektrr")  # which has no graph
    assert "ektrr_connectivities" not in data.obsp
    assert data.obs["ektrr_confidence"].between(0, 1).all()


def test_file_keeps_everything(tmp_path: Any) -> None:
    data = cells()
    ours.ktrr(data, graph_params={}, random_state=None)
    ours.cluster(data, TRR(3), key_added="trr")
    data.write_h5ad(tmp_path / "cells.h5ad")
    back = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert (back.obs["ktrr"] == data.obs["ktrr"]).all()
    assert back.uns["ktrr"]["params"]["n_nonzero"] == 5
    assert back.uns["ktrr"]["verdict"] == data.uns["ktrr"]["verdict"]
    assert (back.obsp["trr_connectivities"] != data.obsp["trr_connectivities"]).nnz == 0


def test_backed_files_and_views(tmp_path: Any) -> None:
    data = counts()
    data.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    ours.ktrr(backed, 3)
    ours.ktrr(data, 3)
    assert (backed.obs["ktrr"] == data.obs["ktrr"]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anndata says that the view becomes an object of its own
        part = data[:80]
        ours.ktrr(part, 2)
    assert len(part.obs["ktrr"].cat.categories) == 2


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"use_rep": "X_none"}, "use_rep='X_none' is neither"),
        ({"layer": "none"}, "layer='none' is not in"),
        ({"layer": "none", "use_rep": "X_pca"}, "two places"),
        ({"n_pcs": 13}, "n_pcs=13 must be between 1 and the 12 columns"),
        ({"n_pcs": 0}, "n_pcs=0 must be"),
    ],
)
def test_refuses_what_is_not_there(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ours.ktrr(cells(), 3, **asked)


def test_nothing_to_cluster() -> None:
    with pytest.raises(ValueError, match=r"adata\.X is None"):
        ours.ktrr(anndata.AnnData(obs={"a": np.arange(5)}), 2)


@pytest.mark.filterwarnings("ignore")
def test_scanpy_goes_on() -> None:
    scanpy = pytest.importorskip("scanpy")
    data = cells(60)
    scanpy.pp.pca(data, n_comps=8)
    ours.ktrr(data)
    scanpy.tl.umap(data, neighbors_key="ktrr", maxiter=20)
    assert data.obsm["X_umap"].shape == (180, 2)
    scanpy.tl.diffmap(data, n_comps=4, neighbors_key="ktrr")
    scanpy.tl.paga(data, groups="ktrr", neighbors_key="ktrr")
    assert data.uns["paga"]["connectivities"].shape[0] == len(data.obs["ktrr"].cat.categories)
    scanpy.tl.rank_genes_groups(data, "ktrr")
    scanpy.tl.dendrogram(data, "ktrr")
    pytest.importorskip("igraph")
    scanpy.tl.leiden(data, obsp="ktrr_connectivities", flavor="igraph", n_iterations=2, directed=False)
    assert accuracy(data.obs["ktrr"], data.obs["leiden"]) > 0.9
