"""
How do I label samples that arrive later?
=========================================

Scikit-learn's spectral clustering has no ``predict``. Every estimator here has one, with three rules to choose from:
the *neighbours* that represent the new sample vote, the cluster that explains it with the smallest *residual* wins, or
the small *network* of the paper decides.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from subspaces import KTRR
from subspaces.inspection.plots import EmbeddingDisplay
from subspaces.metrics import score_table

X, y = load_digits(return_X_y=True)
old, new, y_old, y_new = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)

# %%
# Fit on one half, label the other. ``out_of_sample`` does not change the fit, so the three rules start from the same
# clusters.
predicted = {}
for rule in ("neighbors", "residual", "network"):
    model = KTRR(10, scaling="unit", assign_labels="modularity", out_of_sample=rule).fit(old)
    predicted[rule] = model.predict(new)
print("training half\n", score_table(y_old, {"KTRR": model.labels_}), "\n", sep="")
print("new half\n", score_table(y_new, predicted), sep="")

# %%
# A training sample keeps its label under every rule, so ``predict`` after ``fit`` never contradicts ``labels_``.
print(np.array_equal(model.predict(old), model.labels_))

# %%
# ``transform`` puts new samples into the spectral embedding, at the mean of the samples that represent them.
display = EmbeddingDisplay.from_predictions(model.transform(new), model.predict(new))
