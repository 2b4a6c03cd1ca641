"""
What if I do not want to set anything?
======================================

``SubspaceClustering`` needs nothing. Several settings are tried on the samples alone; no label is looked at. The winner
is the setting whose clusters are confirmed by other settings and lie near flat pieces (:doc:`/automatic`).
"""

from sklearn.datasets import load_digits

from subspaces import KTRR, SubspaceClustering
from subspaces.inspection.plots import SelectionDisplay
from subspaces.metrics import score_table

X, y = load_digits(return_X_y=True)
X, y = X[::3], y[::3]

model = SubspaceClustering(10).fit(X)
print(model.selection_.reason)

# %%
# Everything that was tried, and the criterion for each setting. A flat surface means that the choice does not matter;
# a lone peak would be a reason for doubt.
SelectionDisplay.from_estimator(model)

# %%
# The settings in numbers; with pandas installed ``selection_.to_pandas()`` is the whole table.
for row in model.selection_.as_rows()[:3]:
    print({name: row[name] for name in list(row)[:6]})

# %%
# How much would a good guess by hand have given? Here, with the labels, we can say.
print(score_table(y, {"automatic": model.labels_, "defaults": KTRR(10).fit_predict(X)}))
