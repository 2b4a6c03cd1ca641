"""
My data are not vectors. Can I still cluster them?
==================================================

Yes, if you can compare two of them. Everything after the kernel needs the kernel matrix only, so strings, sets, graphs
or time series go in through ``kernel="precomputed"`` (a positive semidefinite matrix) or a function of your own.
"""

import numpy as np
from sklearn.cluster import SpectralClustering

from subspaces import KTRR
from subspaces.inspection.plots import AffinityDisplay
from subspaces.metrics import score_table

# %%
# Sequences of four letters from three sources that use each letter equally often; they differ in which letter follows
# which. Their lengths differ too, so there is no table of features.
rng = np.random.default_rng(0)
letters = np.array(list("ACGT"))


def sequence(source):
    """Walk of 300 to 500 letters with the habits of one source."""
    state, out = rng.integers(4), []
    for _ in range(rng.integers(300, 500)):
        state = (state + source + 1) % 4 if rng.random() < 0.22 else rng.integers(4)
        out.append(letters[state])
    return "".join(out)


y = np.repeat([0, 1, 2], 60)
texts = [sequence(source) for source in y]
print(texts[0][:60], "...")

# %%
# How often each word of three letters occurs makes a distance between sequences (Hellinger's, which does not let
# frequent words decide alone), and a Gaussian of that distance is a kernel: positive semidefinite, which is what
# ``"precomputed"`` asks for.
words = {a + b + c: i for i, (a, b, c) in enumerate((a, b, c) for a in letters for b in letters for c in letters)}
counts = np.zeros((len(texts), len(words)))
for row, text in zip(counts, texts, strict=True):
    for i in range(len(text) - 2):
        row[words[text[i : i + 3]]] += 1
roots = np.sqrt(counts / counts.sum(axis=1, keepdims=True))
squared_distances = 2 - 2 * roots @ roots.T
K = np.exp(-squared_distances / squared_distances.mean())

model = KTRR(3, kernel="precomputed").fit(K)
peer = SpectralClustering(3, affinity="precomputed", random_state=0).fit(K)
print(score_table(y, {"KTRR": model.labels_, "spectral clustering on K": peer.labels_}))
AffinityDisplay.from_estimator(model)

# %%
# A trap worth knowing: had we centred the counts and given their products as the kernel, KTRR would fail (spectral
# clustering would not). Around a common centre clusters are directions, samples of *other* clusters get negative
# coefficients, and the graph keeps magnitudes. Kernels of distances have no such centre.
#
# New sequences need their kernel values with the old ones: ``model.predict(K_new)`` with one row per new sequence.
# Where samples are rows of numbers, a function ``kernel(X, Y)`` instead of a matrix saves you from computing them.
