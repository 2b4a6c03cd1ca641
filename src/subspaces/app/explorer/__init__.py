"""Look at clusters while parameters move: a page in the browser or in a notebook. Needs Panel (extra ``explore``).

`session` computes and knows no page; `app` is the page, `server` opens it in a browser.
"""

from __future__ import annotations

from typing import Any

from subspaces.app.explorer.session import Session, Settings
from subspaces.utils.progress import shown

__all__ = ["Session", "Settings", "explore"]


def explore(
    X: Any,
    y: Any = None,
    *,
    ids: Any = None,
    image_shape: tuple[int, ...] | None = None,
    max_points: int = 2000,
    seed: int = 0,
) -> Any:
    """Explore samples in a notebook: sliders for KTRR's parameters, the graph, a map and a gallery that follow them.

    It starts with what :class:`subspaces.SubspaceClustering` chooses for these samples. Clusters can be named and
    merged; labels and a report of what is shown can be saved.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : true classes, where they are known; used only to show the accuracy
    ids : name of each sample
    image_shape : (height, width) or (height, width, 3), where the samples are images
        None: square images are recognised by themselves, where neighbouring pixels are alike.
    max_points : of more samples a random subset of this size is explored, so that the page keeps up
    seed : of the subset and of k-means

    Returns
    -------
    panel.Column
        Shown by a notebook; ``.servable()`` puts it on a server. From a shell: ``subspaces explore data.npz``.
    """
    from subspaces.app.explorer.app import Explorer  # isort: skip  (says what to install where Panel is missing)
    import panel as pn

    pn.extension()  # a notebook needs Panel's scripts; elsewhere this does nothing
    with shown(lines=True):
        session = Session(X, y, ids=ids, image_shape=image_shape, max_points=max_points, seed=seed)
        return Explorer(session).view
