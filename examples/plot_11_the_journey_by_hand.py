"""
What happens between data and labels?
=====================================

Every method takes the same stages, and every stage is a plain function on arrays. This is KTRR's ``fit`` without the
class, one call per line, with a picture at each stage; at the end it has the same labels. The numbers
in brackets are the equations of the paper (:doc:`/maths`).
"""

import matplotlib.pyplot as plt
import numpy as np

from subspaces import KTRR
from subspaces.datasets import make_three_curves
from subspaces.engine import stages
from subspaces.engine.plan import Context
from subspaces.engine.run import run
from subspaces.engine.stages import Evidence
from subspaces.inspection.plots import AffinityDisplay, CoefficientsDisplay, EmbeddingDisplay
from subspaces.metrics import accuracy
from subspaces.utils.ordering import canonical_order, hash_rows, in_order, inverse_of

X, y = make_three_curves(100, noise=0.003, random_state=0)

# %%
# The plan: parameters and the shape of the samples decide everything, and nothing is computed yet.
plan = KTRR(3, n_nonzero=8).plan(X)
print(plan.kernel, plan.graph, plan.cut, sep="\n")
print(f"solver {plan.solver}: {plan.solver_reason}")

# %%
# The stages. They see the samples in an order that depends on the samples alone, so that the order of the rows decides
# nothing; at the end labels go back to their rows, and clusters are numbered by their first samples.
order = canonical_order(X, hash_rows(X))
points, scaling = stages.scaled(X[order], plan)
seen = stages.see(points, scaling, plan)  # bandwidth settled, half of the kernel matrix K (3.8)
C = plan.represent(seen.source, Context(seen.kernel, plan.seed, False))  # coefficients of all points (3.9)
graph = stages.graph(C, Evidence(scaling, seen.kernel), plan)  # the eight strongest of each point, W (3.11 to 3.13)
if stages.falls_apart(graph, plan):  # more pieces than clusters?
    graph = stages.join(graph, C, plan.n_clusters)
embedding = stages.embed(graph.W, plan.n_clusters)  # eigenvectors of its Laplacian (3.14), rows of length 1
labels = stages.cut(graph, embedding, plan)  # k-means on the rows
labels = in_order(labels[inverse_of(order)])

print(f"accuracy {accuracy(y, labels):.2f}")
print("the labels of the engine's run:", np.array_equal(labels, run(plan, X).labels))
print("the labels of the estimator:   ", np.array_equal(labels, KTRR(3, n_nonzero=8).fit_predict(X)))

# %%
# Data and kernel matrix. In the picture the samples are ordered by curve, so that blocks can be seen; no stage is told.
place = inverse_of(order)
fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
axes[0].scatter(*X.T, c=y, cmap="cividis", s=8)
axes[0].set_title("points")
axes[1].imshow(seen.source.whole()[np.ix_(place, place)], cmap="cividis")
axes[1].set_title("kernel matrix K")

# %%
# All coefficients of (3.9), and what truncation leaves of them; the sign stays.
fig, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
CoefficientsDisplay.from_predictions(C.dense(), y[order], ax=axes[0])
axes[0].set_title("all coefficients")
CoefficientsDisplay.from_predictions(graph.coefficients, y[order], ax=axes[1])
axes[1].set_title("8 kept per point")

# %%
# The graph, and the samples in the coordinates that are cut.
fig, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
AffinityDisplay.from_predictions(graph.W, y[order], ax=axes[0])
EmbeddingDisplay.from_predictions(embedding.rows, labels[order], ax=axes[1])

# sphinx_gallery_thumbnail_number = 2
