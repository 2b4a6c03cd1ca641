"""
Which pictures show the same thing?
===================================

The 1797 handwritten digits of scikit-learn, clustered without their labels. The labels are used afterwards only, to
see how much was found, beside k-means, plain spectral clustering and one label for all.
"""

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from subspaces import KTRR
from subspaces.inspection.plots import ConfusionDisplay, GalleryDisplay
from subspaces.metrics import score_table

X, y = load_digits(return_X_y=True)

# %%
# Pictures of the same digit lie on a curved surface: slant and width of the stroke bend it. That is what the Gaussian
# kernel, KTRR's default, is for. Rows of length 1 take the thickness of the pen away; the cut by modularity suits
# clusters of similar size (:doc:`/pipeline`).
model = KTRR(n_clusters=10, scaling="unit", assign_labels="modularity").fit(X)

unit = normalize(X)  # the same input for everyone
others = {
    "k-means": KMeans(10, n_init=10, random_state=0).fit_predict(unit),
    "spectral clustering": SpectralClustering(
        10, affinity="nearest_neighbors", n_neighbors=10, random_state=0
    ).fit_predict(unit),
}
print(score_table(y, {"KTRR": model.labels_, **others}))

# %%
# What is in the clusters, most typical pictures first. No label is needed for this look.
fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
display = GalleryDisplay.from_estimator(model, image_shape=(8, 8), n_shown=8, ax=ax)

# %%
# Where it goes wrong: rows are the digits, columns the clusters.
display = ConfusionDisplay.from_predictions(y, model.labels_)
