"""
Which labels can I trust, and why is this sample here?
======================================================

Every sample gets a label, the doubtful ones too. :func:`subspaces.engine.confidence.summarize` gives the probability
that each label is right, from the graph that was cut, and ``explain`` shows the samples that represent a sample.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from subspaces import KTRR
from subspaces.engine.confidence import summarize
from subspaces.metrics import best_matching

X, y = load_digits(return_X_y=True)
model = KTRR(10, scaling="unit", assign_labels="modularity").fit(X)
summary = summarize(model)

# %%
# Is the number worth anything? Here the truth is known: sort by confidence and see how many of the surest labels are
# right.
right = best_matching(y, model.labels_) == y
order = np.argsort(-summary.confidence)
share = np.arange(1, len(y) + 1) / len(y)

fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.plot(100 * share, 100 * np.cumsum(right[order]) / np.arange(1, len(y) + 1), color="#0072B2")
ax.axhline(100 * right.mean(), color="gray", linestyle=":", label="all points")
ax.set(xlabel="surest points kept, %", ylabel="of these labelled right, %")
ax.legend()
medians = [np.median(summary.confidence[some]) for some in (right, ~right)]
print("median confidence of right and of wrong labels: {:.2f}, {:.2f}".format(*medians))

# %%
# The surest labels are right. The step in the middle is a warning: a group of samples that sits wholly in the wrong
# cluster is sure of itself, since its walks do not leave that cluster. Confidence sees doubt, not common error.
#
# The clusters in a table: how tight they are, which one is nearest.
print("cluster  size  tightness  confidence  nearest  typical points")
for row in summary.as_rows():
    numbers = "{cluster:>7} {size:>5} {tightness:>10.2f} {confidence:>11.2f} {nearest:>8}  ".format(**row)
    print(numbers, *row["exemplars"][:4])

# %%
# One doubtful sample in detail: the least sure one, and the samples that represent it.
doubtful = int(np.argmin(summary.confidence))
why = model.explain(doubtful)
why

# %%
# The picture itself and its representers, with their coefficients.
shown = [doubtful, *why.points[:5]]
titles = [
    "in doubt",
    *(f"{c:.2f}, cluster {label}" for c, label in zip(why.coefficients, why.labels, strict=True)),
]
fig, axes = plt.subplots(1, len(shown), figsize=(9, 2), layout="constrained")
for ax, i, title in zip(axes, shown, titles, strict=False):
    ax.imshow(X[i].reshape(8, 8), cmap="gray_r")
    ax.set_title(title, fontsize=8)
    ax.set(xticks=[], yticks=[])

# sphinx_gallery_thumbnail_number = 2
