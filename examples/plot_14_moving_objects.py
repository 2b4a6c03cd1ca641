"""
Which tracked points move together?
===================================

The classic use of subspaces. Follow points of moving rigid objects through the frames of a film and write each track as
one row. Under an affine camera the tracks of one object lie on an affine subspace of dimension 3 or less, whatever the
object looks like: motion segmentation is subspace clustering.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from subspaces import TRR
from subspaces.datasets import make_motions
from subspaces.datasets.completion import complete
from subspaces.inspection.plots import TracksDisplay
from subspaces.metrics import score_table

n_objects = 4
X, y = make_motions(n_objects, n_tracks=60, n_frames=20, noise=0.003, missing=0.1, random_state=1)
print(f"{len(X)} tracks, {np.isnan(X).mean():.0%} of their places hidden")

# %%
# Trackers lose points. All tracks together have a low rank, so what is hidden follows from what is seen; the rank is
# the one that predicts places best that were held out.
found = complete(X, group=2)
print(f"put in by a matrix of rank {found.rank}; places held out were met to {found.error:.4f}")

# %%
# All objects overlap in the picture, so positions say little. Tracks say nearly everything, to a method that knows that
# subspaces need not contain the origin: ``affine=True`` asks for coefficients that sum to one. The graph keeps rank 3
# for each object.
rank = {"subspace_dim": 3, "share": 1.0, "power": 6}
labels = {
    "k-means on tracks": KMeans(n_objects, n_init=10, random_state=0).fit_predict(found.X),
    "TRR": TRR(n_objects, reg=0.002, graph="dscnet", graph_params=rank).fit_predict(found.X),
    "TRR, affine": TRR(n_objects, affine=True, reg=0.002, graph="dscnet", graph_params=rank).fit_predict(found.X),
}
print(score_table(y, labels))

# %%
# First frame and the way of every point, coloured by cluster; hidden stretches are gaps.
fig, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
axes[0].scatter(*X[:, :2].T, s=10, color="gray")
axes[0].invert_yaxis()
axes[0].set(title="first frame", xticks=[], yticks=[], aspect="equal")
TracksDisplay.from_predictions(X, labels["TRR, affine"], ax=axes[1])
axes[1].set_title("tracks, coloured by cluster")
