"""
Do I need any of this?
======================

Not always. On round, well separated blobs k-means is right and faster; on moons a graph of nearest neighbours is. Run
the simple methods beside the others, always: if they are as good, use them.
"""

import warnings
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits, load_iris, make_blobs, make_moons

from subspaces import KTRR, TRR
from subspaces.datasets import make_subspaces
from subspaces.metrics import accuracy

warnings.filterwarnings("ignore", message="Graph is not fully connected")  # of scikit-learn, on blobs
digits = load_digits()
data = {
    "blobs": make_blobs(400, centers=4, random_state=2),
    "iris": load_iris(return_X_y=True),
    "moons": make_moons(400, noise=0.06, random_state=0),
    "digits": (digits.data, digits.target),
    "subspaces": make_subspaces(4, 5, 12, 100, noise=0.01, random_state=0),
}
methods = {
    "k-means": lambda k: KMeans(k, n_init=10, random_state=0),
    "spectral clustering": lambda k: SpectralClustering(k, affinity="nearest_neighbors", random_state=0),
    "TRR": lambda k: TRR(k),
    "KTRR": lambda k: KTRR(k),
    "KTRR, modularity": lambda k: KTRR(k, assign_labels="modularity"),
}
scores, seconds = np.zeros((2, len(methods), len(data)))
for j, (X, y) in enumerate(data.values()):
    for i, make in enumerate(methods.values()):
        start = perf_counter()
        scores[i, j] = accuracy(y, make(len(set(y))).fit_predict(X))
        seconds[i, j] = perf_counter() - start

fig, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
ax.imshow(100 * scores, cmap="cividis", vmin=30, vmax=100, aspect="auto")
for (i, j), value in np.ndenumerate(scores):
    best = value >= scores[:, j].max() - 0.005
    ax.text(
        j, i, f"{100 * value:.0f}", ha="center", va="center",
        color="black" if value > 0.7 else "white", weight="bold" if best else "normal",
    )  # fmt: skip
ax.set_xticks(range(len(data)), list(data))
ax.set_yticks(range(len(methods)), list(methods))
ax.set_title("accuracy, %; the best of each column in bold")

# %%
# Defaults throughout, nothing tuned. The seconds of all five data sets together:
for name, row in zip(methods, seconds, strict=True):
    print(f"{name:<20} {row.sum():.2f} s")
