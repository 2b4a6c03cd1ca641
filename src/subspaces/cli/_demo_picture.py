"""The picture of ``subspaces demo``: what is in each cluster, and the graph that was cut."""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np

from subspaces.numerics.types import Array, Labels, Sparse

N_SAMPLES = 12
"""Images shown per cluster."""

N_CELLS = 300
"""Rows and columns of the map of the graph: each cell sums the weights of about 6 x 6 pairs."""

WRONG = "#d55e00"
"""Frame of an image in the wrong cluster: vermillion of Okabe and Ito, told apart with any colour vision."""


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

    labels = np.unique(labels, return_inverse=True)[1]
    # Clusters in the order of the digit most of their images show.
    majority = [int(np.bincount(truth[labels == k]).argmax()) for k in range(labels.max() + 1)]
    clusters = np.argsort(majority, kind="stable")

    figure = Figure(figsize=(13, 6), layout="constrained")
    FigureCanvasAgg(figure)
    samples, graph = figure.subplots(1, 2, width_ratios=(1.2, 1))
    _draw_samples(samples, images, truth, labels, clusters, majority)
    _draw_affinity(graph, affinity, labels, clusters, majority)
    figure.suptitle(f"Handwritten digits, clustered without their labels by {method}", fontsize=14)
    figure.savefig(stream, format="png", dpi=120)


def _draw_samples(
    axes: Any, images: Array, truth: Labels, labels: Labels, clusters: Labels, majority: list[int]
) -> None:
    """One row of images per cluster, taken at equal steps; wrong ones framed."""
    from matplotlib.patches import Rectangle

    height, width = images.shape[1:]
    step_y, step_x = height + 3, width + 3
    for row, k in enumerate(clusters):
        members = np.flatnonzero(labels == k)
        shown = members[np.linspace(0, len(members) - 1, min(N_SAMPLES, len(members))).astype(int)]
        for column, i in enumerate(shown):
            x, y = column * step_x, row * step_y
            axes.imshow(images[i], cmap="gray_r", extent=(x, x + width, y + height, y))
            if truth[i] != majority[k]:
                corner = (x - 1, y - 1)
                axes.add_patch(Rectangle(corner, width + 2, height + 2, fill=False, ec=WRONG, lw=2))
        share = np.mean(truth[members] == majority[k])
        name = f"{len(members)} images,\n{int(100 * share)} % show {majority[k]}"
        axes.text(-3, row * step_y + height / 2, name, ha="right", va="center", fontsize=9)
    axes.set(xlim=(-2, N_SAMPLES * step_x), ylim=(len(clusters) * step_y - 1, -2))
    axes.set_axis_off()
    axes.set_title("One row per cluster; framed: not the digit most of the cluster shows", fontsize=11)


def _draw_affinity(axes: Any, affinity: Sparse, labels: Labels, clusters: Labels, majority: list[int]) -> None:
    """The graph as a matrix, points ordered by cluster: blocks on the diagonal are what was wanted."""
    from matplotlib.patches import Rectangle

    n = len(labels)
    rank = np.argsort(clusters)
    position = np.argsort(np.argsort(rank[labels], kind="stable"))
    W = affinity.tocoo()
    edges = np.arange(N_CELLS + 1) * n / N_CELLS
    cells, _, _ = np.histogram2d(position[W.row], position[W.col], bins=(edges, edges), weights=W.data)
    # The root brings up the few weak edges between clusters, which are what a cut has to overcome.
    shade = np.ma.masked_equal(cells, 0) ** 0.4
    axes.imshow(shade, cmap="Blues", vmin=-0.4 * shade.max(), extent=(0, n, n, 0), interpolation="nearest")

    ends = np.cumsum([np.sum(labels == k) for k in clusters])
    starts = np.concatenate(([0], ends[:-1]))
    for start, end in zip(starts, ends, strict=True):
        axes.add_patch(Rectangle((start, start), end - start, end - start, fill=False, ec="0.3", lw=0.8))
    names = [str(majority[k]) for k in clusters]
    axes.set_xticks((starts + ends) / 2, names)
    axes.set_yticks((starts + ends) / 2, names)
    axes.tick_params(length=0)
    axes.set_title("The graph that was cut, images ordered by cluster", fontsize=11)
