"""
My method beside others
=======================

A new method is worth a paper if it is better than others on several data sets, by more than chance.
:func:`~subspaces.compare` runs everything, with k-means and a constant labelling beside, and
:class:`~subspaces.inspection.plots.CriticalDifferenceDisplay` shows which methods can be told apart (:doc:`/own`).
"""

from sklearn.cluster import SpectralClustering

from subspaces import TRR, compare
from subspaces.datasets import make_subspaces
from subspaces.inspection.plots import CriticalDifferenceDisplay

# %%
# Twelve unions of subspaces, from easy to hard. Anything with ``fit_predict`` takes part, and a name such as "ensc"
# stands for a method of this package with its defaults. The number of clusters is set by itself.
data = {}
for i in range(12):
    data[f"union {i + 1}"] = make_subspaces(3, 2 + i % 3, 8, 25, noise=0.02 * (i // 3), random_state=i)
methods = {
    "mine": TRR(n_nonzero=6),
    "LSR1": "lsr1",
    "EnSC": "ensc",
    "SSC-OMP": "sscomp",
    "spectral": SpectralClustering(affinity="nearest_neighbors"),
}
found = compare(methods, data, n_runs=3)

# %%
# Friedman's test says whether the methods differ at all, Nemenyi's critical difference which ones do: those under one
# bar cannot be told apart on these data sets, however different their means look.
display = CriticalDifferenceDisplay.from_comparison(found, "NMI")

# %%
# Pairs of methods: Wilcoxon's signed-rank test over the data sets, corrected for their number (Holm).
for name, test in found.signed_rank("NMI").items():
    print(f"mine against {name}: p = {test.pvalue:.4f}, exact: {test.exact}")

# %%
# The tables; ``to_markdown``, ``to_latex`` and ``to_pandas`` take them to a paper. A method that fails on a data set
# leaves a gap, with its error below the table.
print("\n".join(str(found).splitlines()[:8]))
