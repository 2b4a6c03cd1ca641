"""
What if single features are broken?
===================================

Dead pixels, dropped readings written as -99, a sensor that spikes: a few entries of every sample are garbage. The
Gaussian kernel squares the distance, so one wild entry outweighs all others. The correntropy kernel judges each
feature on its own: a wild entry counts as "different" once, and no more.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from subspaces import KTRR
from subspaces.datasets import salt_and_pepper
from subspaces.metrics import accuracy

X, y = load_digits(return_X_y=True)
X, y = X[::3], y[::3]


# %%
# Pixels go from 0 to 16. A share of them becomes a number of size 100.
def spikes(X, share, random_state):
    """Replace a share of all entries by wild numbers."""
    rng = np.random.default_rng(random_state)
    return np.where(rng.random(X.shape) < share, 100 * rng.standard_normal(X.shape), X)


# %%
# One trap: the default bandwidth is the root mean squared distance, which the wild entries spoil as well. A robust
# width of a feature, the mean distance between its quartiles, hardly moves.
damaged = spikes(X, 0.05, random_state=0)
for name, points in {"clean": X, "damaged": damaged}.items():
    width = np.mean(np.subtract(*np.percentile(points, [75, 25], axis=0)))
    print(f"{name:<8} mean width of a feature {width:.1f}, standard deviation {points.std(axis=0).mean():.1f}")

# %%
# Accuracy as the damage grows, all methods on the same damaged samples.
models = {
    "KTRR, Gaussian": KTRR(10, assign_labels="modularity"),
    "KTRR, correntropy": KTRR(10, kernel="correntropy", assign_labels="modularity"),
    "KTRR, correntropy, width 6": KTRR(10, kernel="correntropy", bandwidth=6.0, assign_labels="modularity"),
    "k-means": KMeans(10, n_init=10, random_state=0),
}


def draw(corrupt, shares, name):
    """Draw a line of accuracies for each method."""
    ax = plt.subplots(layout="constrained")[1]
    damaged = [corrupt(X, share, random_state=0) for share in shares]  # the same for every method
    for (title, model), marker in zip(models.items(), "os^D", strict=False):
        ax.plot(
            shares, [accuracy(y, clone(model).fit_predict(points)) for points in damaged], marker=marker, label=title
        )
    ax.set(xlabel=name, ylabel="accuracy")
    ax.legend()


draw(spikes, [0, 0.01, 0.02, 0.05, 0.1, 0.2], "share of broken entries")

# %%
# With a width that the damage cannot reach, a twentieth of all entries may be garbage at little loss.
#
# The other kind of damage, pixels that turn black or white but stay within the range of the rest, is no case for it:
# on these small pictures the Gaussian kernel is as good.
models.pop("k-means")
draw(salt_and_pepper, [0, 0.1, 0.2], "share of black or white pixels")
