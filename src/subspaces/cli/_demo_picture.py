"""The picture of ``subspaces demo``: what is in each cluster, and the graph that was cut."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from subspaces.numerics.types import Array, Labels, Sparse

N_SAMPLES = 12
"""Images shown per cluster."""


def draw(stream: BinaryIO, images: Array, truth: Labels, labels: Labels, affinity: Sparse, method: str) -> None:
    """Draw sample images of each cluster beside the affinity matrix ordered by cluster.

    Parameters
    ----------
    stream : binary file
        Where the PNG goes.
    images : array of shape (n, height, width)
        The digits.
    truth, labels : array of shape (n,)
        The digit and the cluster of each image.
    affinity : sparse array of shape (n, n)
        The graph W.
    method : str
        Name for the title.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from subspaces.plots import AffinityDisplay, GalleryDisplay

    names, majority = _by_majority(truth, labels)
    members = [np.flatnonzero(names == name) for name in np.unique(names)]
    steps = [np.linspace(0, len(rows) - 1, min(N_SAMPLES, len(rows))).astype(int) for rows in members]
    shown = [rows[step] for rows, step in zip(members, steps, strict=True)]

    figure = Figure(figsize=(13, 6), layout="constrained")
    FigureCanvasAgg(figure)
    samples, graph = figure.subplots(1, 2, width_ratios=(1.2, 1))
    ink = images.max() - images.reshape(len(images), -1)  # dark on light, as written
    GalleryDisplay.from_predictions(
        ink, names, image_shape=images.shape[1:], exemplars=shown, framed=truth != majority, ax=samples
    )
    samples.set_title("Images of each cluster; framed: not the digit most of the cluster shows", fontsize=11)
    samples.set_xlabel("digit that most of the cluster shows, size of the cluster")
    AffinityDisplay.from_predictions(affinity, names, ax=graph)
    graph.set_title("The graph that was cut, images ordered by cluster", fontsize=11)
    figure.suptitle(f"Handwritten digits, clustered without their labels by {method}", fontsize=14)
    figure.savefig(stream, format="png", dpi=120)


def _by_majority(truth: Labels, labels: Labels) -> tuple[Array, Labels]:
    """Name and digit of each point's cluster: the digit that most of it shows; a second one of that digit is "3b"."""
    clusters, codes = np.unique(labels, return_inverse=True)
    digits = np.array([np.bincount(truth[codes == k]).argmax() for k in range(len(clusters))])
    before = [int((digits[:k] == digits[k]).sum()) for k in range(len(clusters))]
    names = [f"{digit}{chr(ord('a') + seen) if seen else ''}" for digit, seen in zip(digits, before, strict=True)]
    return np.array(names)[codes], digits[codes]
