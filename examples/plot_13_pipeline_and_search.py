"""
Does it work in a pipeline, with a grid search, on a data frame?
================================================================

Estimators pass scikit-learn's own checks, so they go where scikit-learn's go.
"""

from sklearn.datasets import load_wine
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from subspaces import KTRR, show
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
# A search with labels. A clustering is judged on the samples it was made from, so the only split is all samples, twice.
# Without labels use ``SubspaceClustering``, whose search was made for this (:doc:`/choosing`).
grid = {"ktrr__reg": [0.1, 1, 10], "ktrr__n_nonzero": [3, 5, 8, 12]}
everything = range(len(X))
search = GridSearchCV(pipe, grid, scoring=make_scorer(accuracy), cv=[(everything, everything)]).fit(X, y)
print(f"{search.best_params_}  accuracy {search.best_score_:.3f}")
