"""
What happens between data and labels?
=====================================

Every method is the same journey, and every leg is a plain function on arrays. This is KTRR without the class, one call
per line, with a picture at each stop. The numbers in brackets are the equations of the paper (:doc:`/maths`).
"""

import matplotlib.pyplot as plt

from subspaces import KTRR
from subspaces.datasets import make_three_curves
from subspaces.embedding.spectral import spectral_embedding, unit_rows
from subspaces.graphs.affinity import affinity
from subspaces.graphs.truncation import truncate
from subspaces.kernels import fit_kernel, gram
from subspaces.metrics import accuracy
from subspaces.partition import cut_embedding
from subspaces.plots import AffinityDisplay, CoefficientsDisplay, EmbeddingDisplay
from subspaces.representation.ridge import ridge

X, y = make_three_curves(100, noise=0.003, random_state=0)

kernel = fit_kernel(X, "rbf")  # settles the bandwidth
K = gram(X, kernel)  # kernel matrix (3.8)
C = ridge(K, reg=1.0)  # coefficients of all points at once (3.9)
C_kept = truncate(C, 8, graph="symmetric")  # the eight strongest of each point (3.11, 3.12)
W = affinity(C_kept)  # graph (3.13)
Y = unit_rows(spectral_embedding(W, 3).vectors)  # eigenvectors of its Laplacian (3.14)
labels = cut_embedding(Y, 3)  # k-means on the rows

print(f"accuracy {accuracy(y, labels):.2f}")
print("the same clusters as the estimator's:", accuracy(labels, KTRR(3, n_nonzero=8).fit_predict(X)) == 1)

# %%
# Data and kernel matrix. The points are ordered by curve, so that blocks can be seen; no method is told the order.
fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
axes[0].scatter(*X.T, c=y, cmap="cividis", s=8)
axes[0].set_title("points")
axes[1].imshow(K, cmap="cividis")
axes[1].set_title("kernel matrix K")

# %%
# All coefficients of (3.9), and what truncation leaves of them.
whole = C.columns(0, len(X)).T
fig, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
CoefficientsDisplay.from_predictions(whole, y, ax=axes[0])
axes[0].set_title("all coefficients")
CoefficientsDisplay.from_predictions(C_kept, y, ax=axes[1])
axes[1].set_title("8 kept per point")

# %%
# The graph, and the points in the coordinates that are cut.
fig, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
AffinityDisplay.from_predictions(W, y, ax=axes[0])
EmbeddingDisplay.from_predictions(Y, labels, ax=axes[1])

# sphinx_gallery_thumbnail_number = 2
