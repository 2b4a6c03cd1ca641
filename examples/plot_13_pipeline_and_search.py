"""
Does it work in a pipeline, with a grid search, on a data frame?
================================================================

Estimators pass scikit-learn's own checks, so they go where scikit-learn's go. For a search without labels
:mod:`subspaces.inspection.scorers` has scores that need no truth; with labels any metric does.
"""

from sklearn.datasets import load_wine
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from subspaces import KTRR, show
from subspaces.inspection.scorers import separation, whole
from subspaces.metrics import accuracy, score_table

X, y = load_wine(return_X_y=True)

# %%
# Wine has thirteen columns in different units. ``scaling="standard"`` inside the estimator and a scaler in a pipeline
# are two ways to the same labels.
inside = KTRR(3, scaling="standard").fit(X)
pipe = make_pipeline(StandardScaler(), KTRR(3)).fit(X)
print(score_table(y, {"unscaled": KTRR(3).fit_predict(X), "scaling=": inside.labels_, "pipeline": pipe[-1].labels_}))

# %%
# After ``fit`` a notebook shows what happened: sizes, choices and seconds of each stage.
inside

# %%
# One figure of everything that was found; it takes the pipeline as it is.
figure = show(pipe, X)

# %%
# A search without labels. A clustering is judged on the samples it was made from, so the only split is ``whole(X)``.
# The criterion prefers what the data separate; with the labels at hand we can see how far that carries.
grid = {"ktrr__reg": [0.1, 1, 10], "ktrr__n_nonzero": [3, 5, 8, 12]}
blind = GridSearchCV(pipe, grid, scoring=separation, cv=whole(X)).fit(X)
cheating = GridSearchCV(pipe, grid, scoring=make_scorer(accuracy), cv=whole(X)).fit(X, y)
for name, search in {"without labels": blind, "with labels": cheating}.items():
    labels = search.best_estimator_[-1].labels_
    print(f"{name:<15} {search.best_params_}  accuracy {accuracy(y, labels):.3f}")

# %%
# Note what the unlabelled search does: with more coefficients clusters look less separate, so *separation* alone
# favours a small ``n_nonzero``. Compare settings of one ``n_nonzero`` with it, or use ``SubspaceClustering``, whose
# rule was made for this (:doc:`/choosing`).
