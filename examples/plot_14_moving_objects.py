"""
Which tracked points move together?
===================================

The classic use of linear subspaces. Follow points of moving rigid objects through the frames of a film and write each
track as one row. Under an affine camera the tracks of one object lie in a subspace of dimension 4 or less, whatever the
object looks like: motion segmentation is subspace clustering.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from subspaces import SSC, TRR
from subspaces.metrics import score_table

rng = np.random.default_rng(1)
n_frames, n_objects, n_points = 24, 3, 60


def rotation(angles):
    """Rotation about the three axes, one after the other."""
    R = np.eye(3)
    for axis, angle in enumerate(angles):
        i, j = [k for k in range(3) if k != axis]
        G = np.eye(3)
        G[i, i] = G[j, j] = np.cos(angle)
        G[i, j], G[j, i] = -np.sin(angle), np.sin(angle)
        R = R @ G
    return R


tracks, y = [], []
for label in range(n_objects):
    shape = rng.uniform(-1, 1, (n_points, 3))
    turn, path = rng.normal(scale=0.06, size=3), rng.normal(scale=0.08, size=2)
    start = rng.uniform(-0.6, 0.6, 2)
    film = [(shape @ rotation(t * turn).T)[:, :2] + start + t * path for t in range(n_frames)]
    tracks.append(np.hstack(film))  # one row per point: x and y in every frame
    y += [label] * n_points
X = np.vstack(tracks) + rng.normal(scale=0.005, size=(n_objects * n_points, 2 * n_frames))
y = np.array(y)
print("rank of each object's tracks, without noise:", [int(np.linalg.matrix_rank(part)) for part in tracks])

# %%
# All objects overlap in the picture, so positions say little. Tracks say nearly everything.
labels = {
    "k-means on tracks": KMeans(3, n_init=10, random_state=0).fit_predict(X),
    "TRR": TRR(3, reg=0.001, n_nonzero=4).fit_predict(X),
    "SSC": SSC(3, alpha=200).fit_predict(X),
}
print(score_table(y, labels))

# %%
# First frame and the way of every point, coloured by TRR's clusters.
fig, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
film = X.reshape(len(X), n_frames, 2)
colors = np.array(["#0072B2", "#E69F00", "#009E73"])
axes[0].scatter(*film[:, 0].T, s=10, color="gray")
axes[0].set_title("first frame")
for track, label in zip(film, labels["TRR"], strict=True):
    axes[1].plot(*track.T, color=colors[label], linewidth=0.6)
axes[1].set_title("tracks, coloured by cluster")
for ax in axes:
    ax.set(xticks=[], yticks=[], aspect="equal")
