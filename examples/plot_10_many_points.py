"""
What about many samples?
========================

Dense methods need n² numbers and n³ operations: 3 GB at 20,000 samples. Above 10,000 samples KTRR takes a
route without an n × n matrix by itself. EKTRR, the paper's way, clusters a sample and lets a small network label the
rest: faster still, and rougher.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import MiniBatchKMeans

from subspaces import EKTRR, KTRR
from subspaces.metrics import accuracy

rng = np.random.default_rng(0)


def curved_pieces(n, n_clusters=8, dimension=3, ambient=20):
    """Curved three-dimensional pieces that all pass through the origin: random quadratic maps of a cube."""
    y = rng.integers(n_clusters, size=n)
    t = rng.uniform(-1, 1, (n, dimension))
    monomials = np.column_stack([t, t**2])
    maps = rng.normal(size=(n_clusters, monomials.shape[1], ambient))
    return np.einsum("ni,nij->nj", monomials, maps[y]).astype(np.float32), y


# %%
# The three routes as n grows. Time is one run each on the machine that built this page.
sizes = [2_000, 4_000, 12_000]
models = {
    "k-means": lambda: MiniBatchKMeans(8, n_init=10, random_state=0),
    "KTRR": lambda: KTRR(8, assign_labels="modularity"),
    "EKTRR": lambda: EKTRR(8),
}
seconds = {name: [] for name in models}
for n in sizes:
    X, y = curved_pieces(n)
    for name, make in models.items():
        start = perf_counter()
        model = make().fit(X)
        seconds[name].append(perf_counter() - start)
        route = f", {model.solver_}: {model.solver_reason_}" if name == "KTRR" else ""
        print(f"{n:>6} points  {name:<8} {seconds[name][-1]:5.1f} s  accuracy {accuracy(y, model.labels_):.2f}{route}")

fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for (name, values), marker in zip(seconds.items(), "sov", strict=True):
    ax.loglog(sizes, values, marker=marker, label=name)
ax.set(xlabel="samples", ylabel="seconds")
ax.legend()

# %%
# ``solver_`` says which route was taken and ``solver_reason_`` why; the routes are explained in
# :doc:`/large`. Data that do not fit one machine go to Dask: :doc:`/distributed`.
