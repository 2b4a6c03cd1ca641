"""Cluster cells in scanpy's manner: results are written to ``obs``, ``obsp`` and ``uns`` of an AnnData.

Install it with ``pip install subspaces[anndata]``; scanpy itself is not needed. What is written under a key is what
``sc.pp.neighbors`` and ``sc.tl.leiden`` write under theirs, so scanpy's tools and plots go on from there:
``sc.pl.umap(adata, color="ktrr")``, ``sc.tl.umap(adata, neighbors_key="ktrr")``, ``sc.tl.leiden(adata,
obsp="ktrr_connectivities")``, ``sc.tl.rank_genes_groups(adata, "ktrr")``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from subspaces.engine.confidence import summarize
from subspaces.estimators.ktrr import KTRR
from subspaces.graphs.affinity import edge_lengths
from subspaces.selection.auto import SubspaceClustering
from subspaces.utils.choices import AssignLabels
from subspaces.utils.types import Data

_PCA = ("X_pca", "pca")  # where scanpy and its successors keep principal components


def ktrr(
    adata: Any,
    n_clusters: int | str | None = None,
    *,
    key_added: str = "ktrr",
    use_rep: str | None = None,
    n_pcs: int | None = None,
    layer: str | None = None,
    assign_labels: AssignLabels = "modularity",
    copy: bool = False,
    **parameters: Any,
) -> Any:
    """Cluster cells by :class:`~subspaces.KTRR`; the number of clusters is found where it is not given.

    Parameters
    ----------
    adata : AnnData
    n_clusters : int, "auto" or None, default=None
        Number of clusters; None takes the partition of largest modularity.
    key_added : name under which results are written
    use_rep : str or None, default=None
        A key of ``adata.obsm``, or ``"X"``. None takes the principal components (``X_pca``) where there are some,
        else ``adata.X``.
    n_pcs : number of columns of the representation to use; None uses all
    layer : values of ``adata.layers`` to use in place of ``adata.X``
    assign_labels : how the graph is cut; see :class:`~subspaces.KTRR`
    copy : return a copy instead of writing to `adata`
    **parameters
        Of :class:`~subspaces.KTRR`. Where whole counts are clustered, `scaling` is ``"log"`` unless it is given.

    Returns
    -------
    AnnData or None
        The copy, or None. See :func:`cluster` for what is written.

    Examples
    --------
    ``subspaces.applications.anndata.ktrr(adata)`` after ``sc.pp.pca(adata)``; then ``sc.pl.pca(adata, color="ktrr")``.
    """
    if "scaling" not in parameters and _are_whole_counts(_representation(adata, use_rep, n_pcs, layer)[0]):
        parameters["scaling"] = "log"
    estimator = KTRR(n_clusters, assign_labels=assign_labels, **parameters)
    where: dict[str, Any] = {"use_rep": use_rep, "n_pcs": n_pcs, "layer": layer}
    return cluster(adata, estimator, key_added=key_added, **where, copy=copy)


def cluster(
    adata: Any,
    estimator: Any = None,
    *,
    key_added: str = "subspaces",
    use_rep: str | None = None,
    n_pcs: int | None = None,
    layer: str | None = None,
    copy: bool = False,
) -> Any:
    """Cluster cells by any method of this package; by default by the one that chooses everything by itself.

    Parameters
    ----------
    adata : AnnData
    estimator : any of this package's, default=None
        It is cloned, not changed. None is ``SubspaceClustering()``.
    key_added : name under which results are written
    use_rep, n_pcs, layer, copy
        As in :func:`ktrr`.

    Returns
    -------
    AnnData or None
        The copy, or None. Written to it are

        - ``obs[key_added]``: the clusters, a categorical of the strings ``"0"``, ``"1"``, ...
        - ``obs[key_added + "_confidence"]``: probability that each label is right
        - ``obsp[key_added + "_connectivities"]``: the graph that was cut, sparse, where the method cuts one; and
          ``obsp[key_added + "_distances"]``, the lengths of its edges
        - ``uns[key_added]``: ``params``, the names of these two, and the ``verdict`` in words where there is one.
    """
    from pandas import Categorical  # AnnData needs it

    X, source = _representation(adata, use_rep, n_pcs, layer)
    estimator = SubspaceClustering() if estimator is None else clone(estimator)
    labels = estimator.fit_predict(X)
    adata = adata.copy() if copy else adata
    names, codes = np.unique(labels, return_inverse=True)
    adata.obs[key_added] = Categorical.from_codes(codes, categories=[str(name) for name in names])
    adata.obs[f"{key_added}_confidence"] = summarize(estimator, X).confidence
    found: dict[str, Any] = {"params": _parameters(estimator) | source}
    graph = getattr(estimator, "affinity_matrix_", None)
    if graph is not None:
        found["params"].setdefault("n_neighbors", round(graph.nnz / graph.shape[0]))
        largest = graph.max() or 1.0  # weights of scanpy's graphs are from 0 to 1
        for name, matrix in {"connectivities": graph / largest, "distances": edge_lengths(graph, X)}.items():
            found[f"{name}_key"] = f"{key_added}_{name}"
            adata.obsp[found[f"{name}_key"]] = sparse.csr_matrix(matrix)
    if hasattr(estimator, "verdict_"):
        found["verdict"] = estimator.verdict_
    adata.uns[key_added] = found
    return adata if copy else None


def _representation(
    adata: Any, use_rep: str | None, n_pcs: int | None, layer: str | None
) -> tuple[Data, dict[str, Any]]:
    """Return the values to cluster, in memory, and what scanpy would record of their origin."""
    if layer is not None:
        if use_rep not in (None, "X"):
            raise ValueError(f"layer={layer!r} and use_rep={use_rep!r} name two places to read from: give one.")
        if layer not in adata.layers:
            raise ValueError(f"layer={layer!r} is not in adata.layers, which has {_keys(adata.layers)}.")
        values, source = adata.layers[layer], {"use_rep": "X", "layer": layer}
    else:
        if use_rep is None:
            use_rep = next((key for key in _PCA if key in adata.obsm), "X")
        if use_rep != "X" and use_rep not in adata.obsm:
            raise ValueError(f'use_rep={use_rep!r} is neither "X" nor in adata.obsm, which has {_keys(adata.obsm)}.')
        values, source = adata.X if use_rep == "X" else adata.obsm[use_rep], {"use_rep": use_rep}
    if values is None:
        raise ValueError("adata.X is None: name what to cluster by use_rep= or layer=.")
    values = _in_memory(values)
    if n_pcs is None:
        return values, source
    if not 1 <= n_pcs <= values.shape[1]:
        raise ValueError(f"n_pcs={n_pcs} must be between 1 and the {values.shape[1]} columns of {source['use_rep']}.")
    return values[:, :n_pcs], source | {"n_pcs": n_pcs}


def _in_memory(values: Any) -> Data:
    """Return values of a file-backed AnnData, a data frame or an array as floating-point numbers."""
    if hasattr(values, "to_memory"):
        values = values.to_memory()
    if sparse.issparse(values):
        values = sparse.csr_array(values)
    else:
        values = values[()] if hasattr(values, "chunks") and hasattr(values, "id") else values  # a dataset of h5py
        values = np.asarray(values)
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def _are_whole_counts(X: Data) -> bool:
    values = X.data if sparse.issparse(X) else X
    return values.size > 0 and bool((values >= 0).all() and (values == np.floor(values)).all())


def _keys(mapping: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, mapping)) or "no keys"


def _parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters of a fit as ``.h5ad`` can hold them: numbers and strings, and no None."""
    given = {"method": type(estimator).__name__, **estimator.get_params(deep=False)}
    plain = (bool, int, float, str)
    return {
        name: value if isinstance(value, plain) else str(value) for name, value in given.items() if value is not None
    }
