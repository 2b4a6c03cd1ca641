"""Look at groups, correct them and answer questions: a page in the browser or in a notebook. Needs Panel.

`session` holds what is shown and the steps of a person, and knows no page; `app` is the page, `cards` its pieces,
`server` opens it in a browser (extra ``explore``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from subspaces.app.explorer.session import Session, Settings
from subspaces.app.files import Dataset
from subspaces.selection.auto import SubspaceClustering
from subspaces.utils.progress import shown

__all__ = ["Session", "Settings", "explore", "session_of"]


def explore(
    X: Any,
    y: Any = None,
    *,
    n_clusters: int | None = None,
    ids: Any = None,
    image_shape: tuple[int, ...] | None = None,
    max_points: int = 2000,
    seed: int = 0,
) -> Any:
    """Explore samples in a notebook: the groups, a slider for their number, questions, names, and what can be saved.

    It starts with what :class:`subspaces.SubspaceClustering` finds in these samples.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : true classes, where they are known; used only to show the accuracy
    n_clusters : number of groups; None finds it
    ids : name of each sample
    image_shape : (height, width) or (height, width, 3), where the samples are images
        None: square images are recognised by themselves, where neighbouring pixels are alike.
    max_points : of more samples a random subset of this size is drawn on the map; all are clustered
    seed : of the search and of k-means

    Returns
    -------
    panel.Column
        Shown by a notebook; ``.servable()`` puts it on a server. From a shell: ``subspaces explore data.npz``.
    """
    from subspaces.app.explorer.app import Explorer  # isort: skip  (says what to install where Panel is missing)
    import panel as pn

    pn.extension()  # a notebook needs Panel's scripts; elsewhere this does nothing
    with shown(lines=True):
        session = session_of(X, y, n_clusters=n_clusters, ids=ids, image_shape=image_shape, seed=seed)
        return Explorer(session, max_points=max_points).view


def session_of(
    X: Any,
    y: Any = None,
    *,
    n_clusters: int | None = None,
    ids: Any = None,
    image_shape: tuple[int, ...] | None = None,
    seed: int = 0,
    **more: Any,
) -> Session:
    """Cluster samples and return a session on them; parameters as in :func:`explore`, `more` those of `Dataset`."""
    from subspaces.app.explorer.pictures import image_shape_of

    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    points = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=3)
    points = sparse.csr_array(points) if sparse.issparse(points) else points
    n = points.shape[0]
    for name, given in {"y": y, "ids": ids}.items():
        if given is not None and len(given) != n:
            raise ValueError(f"{name} must have one entry for each of the {n} samples; got {len(given)}.")
    seen = more.get("pixels", points)
    shape = image_shape or (None if more.get("texts") is not None else image_shape_of(seen))
    if shape is not None and int(np.prod(shape)) != seen.shape[1]:
        raise ValueError(f"image_shape={tuple(shape)} must hold the {seen.shape[1]} values of a sample.")
    classes, codes = (None, None) if y is None else np.unique(np.asarray(y), return_inverse=True)
    known: dict[str, Any] = {"feature_names": names, "image_shape": shape, "y": codes}
    known["classes"] = None if classes is None else [str(name) for name in classes.tolist()]
    known["ids"] = None if ids is None else [str(name) for name in ids]
    data = Dataset(points, Path("X"), **{**known, **more})
    return Session(SubspaceClustering(n_clusters, random_state=seed).fit(points), data)
