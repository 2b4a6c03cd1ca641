"""
Two clusters, ten or twelve?
============================

Often more than one number is right: there are large groups, and smaller ones within. A fit keeps the whole tree
(:doc:`/tree`): its own clusters, coarser ones above and finer ones below, each split with what tells how clear it is.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from subspaces import KTRR
from subspaces.inspection.plots import TreeDisplay

X, y = load_digits(return_X_y=True)
model = KTRR(10, scaling="unit", assign_labels="modularity").fit(X)

# %%
# Read it from the top. The longer the way from one level to the next, the clearer the number of clusters there: the
# next split would cut many more edges than those above. Branches are as wide as they have samples.
TreeDisplay.from_estimator(model)
print("numbers of clusters that stand out:", *model.tree_.layers)

# %%
# Every level is there without another fit, and levels nest: a finer one splits one cluster of the coarser one and
# leaves the others alone. Which digits stay together longest?
for k in (2, 4, 6, 8, 10):
    labels = model.labels_at(k)
    digits = [np.flatnonzero(np.bincount(y[labels == c], minlength=10) > 0.1 * (labels == c).sum()) for c in range(k)]
    print(f"{k:2} clusters:", "  ".join("".join(map(str, some)) for some in digits))

# %%
# How clear is each split? The cut is the share of the lighter part's edges that cross to the other; the return is the
# chance of a walker who has just crossed to cross back at once, near 0 across a gap and about 0.3 where a border runs
# through one continuous piece.
tree = model.tree_
print("clusters  cut    return  sizes")
for k in range(1, 13):
    i = tree.split(k)
    sizes = sorted(tree.sizes[tree.merges[i]].tolist())
    print(f"{k:2} to {k + 1:2}  {tree.cut[i]:.3f}  {tree.returns[i]:.3f}   {sizes[1]} + {sizes[0]}")

# %%
# Below the ten digits, finer levels find ways of writing them: the mean image of each cluster at twenty.
labels = model.labels_at(20)
fig, axes = plt.subplots(2, 10, figsize=(9, 2.2), layout="constrained")
for cluster, ax in enumerate(axes.flat):
    ax.imshow(X[labels == cluster].mean(axis=0).reshape(8, 8), cmap="gray_r")
    ax.set_title((labels == cluster).sum(), fontsize=8)
    ax.set(xticks=[], yticks=[])

# sphinx_gallery_thumbnail_number = 1
