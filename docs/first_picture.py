"""Draws ``first.png``, the picture at the top of the README: ``python docs/first_picture.py``.

Everything in it is computed: the digits of scikit-learn and two curves, clustered with nothing set.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from subspaces import SubspaceClustering
from subspaces.datasets import make_spheres

N_SHOWN = 9
COLORS = np.array([[0.0, 0.45, 0.70], [0.90, 0.60, 0.0]])


def main() -> None:
    """Cluster, draw, save."""
    digits = load_digits()
    model = SubspaceClustering().fit(digits.data)
    print(model.verdict_)
    figure = Figure(figsize=(10.4, 3.5), layout="constrained", facecolor="white")
    pile, groups, wrong, right = figure.subplots(1, 4, width_ratios=(1.25, 1.25, 1, 1))
    rows = np.random.default_rng(0).choice(len(digits.images), size=(model.n_clusters_, N_SHOWN), replace=False)
    show(pile, digits.images[rows], "a pile of images ...")
    sure = [
        np.flatnonzero(model.labels_ == k)[np.argsort(-model.confidence_[model.labels_ == k], kind="stable")]
        for k in range(model.n_clusters_)
    ]
    spread = [rows[np.linspace(0, len(rows) // 2, N_SHOWN).astype(int)] for rows in sure]
    show(groups, digits.images[np.array(spread)], f"... in the {model.n_clusters_} groups found")

    X, _ = make_spheres(2, dimension=1, n_samples=150, noise=0.04, random_state=0)
    for axes, labels, title in (
        (wrong, KMeans(2, n_init=10, random_state=0).fit_predict(X), "two curves, by k-means"),
        (right, SubspaceClustering(2).fit_predict(X), "and by subspaces"),
    ):
        axes.scatter(*X.T, s=7, c=COLORS[labels])
        axes.set(xticks=[], yticks=[], aspect="equal")
        axes.set_title(title, fontsize=11)
        axes.spines[:].set_visible(False)
    file = Path(__file__).with_name("first.png")
    figure.savefig(file, dpi=100)
    print(f"{file}: {file.stat().st_size / 1000:.0f} kB")


def show(axes: object, images: np.ndarray, title: str) -> None:
    """A grid of images, dark on light."""
    n_rows, n_columns, height, width = images.shape
    gap = 2
    sheet = np.zeros((n_rows * (height + gap), n_columns * (width + gap)))
    for i, row in enumerate(images):
        for j, image in enumerate(row):
            sheet[i * (height + gap) :, j * (width + gap) :][:height, :width] = image
    axes.imshow(sheet, cmap="gray_r", interpolation="nearest")
    axes.set_axis_off()
    axes.set_title(title, fontsize=11)


if __name__ == "__main__":
    main()
