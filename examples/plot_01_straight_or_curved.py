"""
Are my clusters straight or curved?
===================================

A linear method writes each sample as a combination of others. That tells clusters apart when they lie on different
lines or planes through the origin, and fails when they are curves that span the same space. A kernel bends the space
so that curves become straight (the idea of the paper's Fig. 1). If you do not know which case you have, run
:class:`~subspaces.TRR` and :class:`~subspaces.KTRR` side by side: the difference is the answer.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from subspaces import KTRR, TRR
from subspaces.datasets import make_spheres, make_subspaces, make_three_curves
from subspaces.metrics import accuracy

# %%
# Two straight pieces in the plane, three curves, and two rings. In the rings every point of the plane is a combination
# of any two points of either ring, so there is nothing for a linear method to find.
data = {
    "lines": make_subspaces(2, dimension=1, ambient=2, n_samples=80, on_sphere=False, noise=0.02, random_state=4),
    "curves": make_three_curves(100, noise=0.003, random_state=0),
    "rings": make_spheres(2, dimension=1, n_samples=100, noise=0.04, random_state=0),
}
methods = {
    "k-means": lambda k: KMeans(k, n_init=10, random_state=0),
    "TRR (linear)": lambda k: TRR(k, n_nonzero=8),
    "KTRR (Gaussian kernel)": lambda k: KTRR(k, n_nonzero=8),
}

fig, axes = plt.subplots(len(data), len(methods), figsize=(9, 8.4), layout="constrained")
colors = np.array(["#0072B2", "#E69F00", "#009E73"])
for row, (name, (X, y)) in zip(axes, data.items(), strict=True):
    k = len(set(y))
    for ax, (method, make) in zip(row, methods.items(), strict=True):
        labels = make(k).fit_predict(X)
        ax.scatter(*X.T, s=8, color=colors[labels])
        ax.set(title=f"{method}: {100 * accuracy(y, labels):.0f} %", xticks=[], yticks=[])
    row[0].set_ylabel(name)

# %%
# The linear method is the right one for lines, the kernel for curves and rings, and k-means, which looks for balls,
# for neither. Real data are rarely as clear: run both (:doc:`/choosing`).
