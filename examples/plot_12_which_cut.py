"""
K-means or modularity: how should the graph be cut?
===================================================

The same graph can be cut by k-means on its eigenvectors or into communities (modularity). The difference is often
larger than that between methods, in both directions: communities like equal sizes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from subspaces import KTRR
from subspaces.datasets import make_spheres, make_subspaces
from subspaces.metrics import accuracy

digits = load_digits()
data = {
    "digits": (digits.data, digits.target),
    "sizes 20 to 800": make_subspaces(5, 4, 30, [20, 50, 100, 300, 800], noise=0.02, random_state=0),
    "three spheres": make_spheres(3, noise=0.01, random_state=0),
}
cuts = ("kmeans", "cluster_qr", "discretize", "modularity")
scores = {
    name: [accuracy(y, KTRR(len(set(y)), graph=graph, assign_labels=cut).fit_predict(X)) for cut in cuts]
    for name, (X, y) in data.items()
    for graph in ["column" if name.startswith("sizes") else "symmetric"]
}

fig, ax = plt.subplots(figsize=(8, 3.8), layout="constrained")
place = np.arange(len(data))
for i, (cut, color) in enumerate(zip(cuts, ("#0072B2", "#56B4E9", "#009E73", "#E69F00"), strict=True)):
    bars = ax.bar(place + 0.2 * i, [100 * row[i] for row in scores.values()], width=0.19, label=cut, color=color)
    ax.bar_label(bars, fmt="%.0f", fontsize=8)
ax.set_xticks(place + 0.3, list(data))
ax.set(ylabel="accuracy, %", ylim=(0, 118))
ax.legend(ncols=4, loc="upper center")

# %%
# On digits, ten classes of about equal size, modularity wins by far. On clusters of very unequal size and on surfaces
# it splits what belongs together; k-means is the default for that reason. Without labels to look at,
# ``SubspaceClustering`` cuts by modularity where that finds about as many communities as clusters are wanted
# (:doc:`/automatic`).
