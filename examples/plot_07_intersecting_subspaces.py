"""
What if the subspaces cross?
============================

Where two subspaces meet, near samples belong to different clusters. Everything that trusts distances (k-means, spectral
clustering, the Gaussian kernel) is lost there; coefficients that ask "which samples *explain* this one?" are not. The
hardest common test: five subspaces of dimension 6 in only 9 dimensions, any two of which share at least 3.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import NearestNeighbors

from subspaces import KTRR, SC, TRR, EnSC
from subspaces.datasets import make_subspaces
from subspaces.inspection.plots import AffinityDisplay
from subspaces.metrics import accuracy

X, y = make_subspaces(5, dimension=6, ambient=9, n_samples=200, random_state=0)
nearest = NearestNeighbors(n_neighbors=5).fit(X).kneighbors(return_distance=False)
print(f"nearest neighbours in the same subspace: {100 * np.mean(y[nearest] == y[:, None]):.0f} % (chance: 20 %)")

# %%
# Two ways out. Coefficients that are sparse *and* exact (EnSC), or a polynomial kernel, which compares products of
# features: samples of one 6-dimensional subspace span 21 of the 45 products of pairs, so there is room again to tell
# subspaces apart. The kernel needs a small ``reg`` (nothing is noise here) and enough coefficients.
models = {
    "SC, 10 neighbours": SC(5, n_neighbors=10),
    "KTRR, Gaussian": KTRR(5),
    "TRR": TRR(5, reg=0.01, n_nonzero=20),
    "EnSC": EnSC(5),
    "KTRR, quadratic": KTRR(5, kernel="quadratic", reg=0.001, n_nonzero=20),
}
fitted = {name: model.fit(X) for name, model in models.items()}
scores = {name: 100 * accuracy(y, model.labels_) for name, model in fitted.items()}

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
bars = ax.barh(list(scores), list(scores.values()), color="#0072B2")
ax.bar_label(bars, fmt="%.0f", padding=3)
ax.invert_yaxis()
ax.set(xlabel="accuracy, %", xlim=(0, 108))
ax.axvline(20, color="gray", linestyle=":", label="chance")
ax.legend(loc="upper right")

# %%
# The graphs say why, ordered by the *true* subspaces. The share of the weight in the blocks is what a cut lives on.
fig, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
for ax, name in zip(axes, ("SC, 10 neighbours", "EnSC"), strict=True):
    AffinityDisplay.from_predictions(fitted[name].affinity_matrix_, y, ax=ax)
    W = fitted[name].affinity_matrix_.tocoo()
    inside = W.data[y[W.row] == y[W.col]].sum() / W.data.sum()
    ax.set_title(f"{name}: {100 * inside:.0f} % of the weight inside")

# sphinx_gallery_thumbnail_number = 2
