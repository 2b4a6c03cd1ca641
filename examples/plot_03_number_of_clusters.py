"""
How many clusters are there?
============================

Nobody tells you. Two ways to find out: the cut by modularity stops by itself (``n_clusters=None``, one fit), and the
automatic choice looks for the number on which many different settings agree (``SubspaceClustering()``, many fits).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from subspaces import KTRR, TRR, SubspaceClustering
from subspaces.datasets import make_subspaces
from subspaces.inspection.plots import NumberOfClustersDisplay, SpectrumDisplay

# %%
# Six subspaces, not told. The spectrum of the graph shows the classical sign as well: six eigenvalues near zero, then
# a gap.
X, y = make_subspaces(6, dimension=4, ambient=30, n_samples=60, noise=0.02, random_state=0)
model = TRR(n_clusters=None, assign_labels="modularity", n_nonzero=20).fit(X)
print("modularity stops at", model.n_clusters_)
SpectrumDisplay.from_estimator(TRR(6, n_nonzero=20).fit(X))

# %%
# Real data have no such gap. On a third of the digits the automatic choice compares the partitions of several settings
# for every number, and trusts the number where they agree.
digits = load_digits().data[::3]
chosen = SubspaceClustering(scaling="unit", random_state=0).fit(digits)
print("digits:", chosen.n_clusters_)
NumberOfClustersDisplay.from_estimator(chosen)

# %%
# Where this fails, and you should say the number yourself: long curves. To modularity a helix is a chain of
# communities, so it reports many; given the number, the helices are separated.
turn, start = np.random.default_rng(0).uniform(0, 2, 300), np.repeat([0, 0.5], 150)
angle = 2 * np.pi * (turn + start)
X = np.column_stack([np.cos(angle), np.sin(angle), turn])
found = KTRR(n_clusters=None, assign_labels="modularity").fit(X)
told = KTRR(n_clusters=2).fit(X)
print(f"two helices: modularity reports {found.n_clusters_}")

fig = plt.figure(figsize=(8, 4), layout="constrained")
for position, (title, labels) in enumerate({"found": found.labels_, "told: 2": told.labels_}.items(), start=1):
    ax = fig.add_subplot(1, 2, position, projection="3d")
    ax.scatter(*X.T, c=labels, cmap="tab20", s=8)
    ax.set(title=title, xticks=[], yticks=[], zticks=[])

# sphinx_gallery_thumbnail_number = 2
