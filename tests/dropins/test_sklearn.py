"""What scikit-learn's tools ask of an estimator, asked of every method of the registry and of the front door."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from subspaces import SubspaceClustering, registry
from subspaces.datasets import make_subspaces
from subspaces.estimators import base
from subspaces.metrics import accuracy
from subspaces.spectral.hierarchy import cluster_tree

X, y = make_subspaces(3, 2, 8, 20, noise=0.01, random_state=0)
GRAPHS = (*registry.names("graph"), "front door")
SHALLOW = (*registry.names(*registry.SHALLOW), "front door")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning")


def method(name: str) -> Any:
    if name == "front door":
        return SubspaceClustering(3, effort="fast")
    few = {} if name in registry.names("graph") else {"n_landmarks": 30}
    return registry.load(name)(3, **few)


def pipeline(name: str) -> Any:
    return make_pipeline(StandardScaler(), method(name))


@pytest.mark.parametrize("name", SHALLOW)
def test_pipelines_copies_and_parameters(name: str) -> None:
    pipe = pipeline(name)
    labels = pipe.fit_predict(X)
    assert len(labels) == len(X)
    predicted = pipe.predict(X)
    # a method with landmarks that cuts a sample and classifies all points may classify one of the sample otherwise
    np.testing.assert_array_equal(predicted, labels) if name in GRAPHS else np.testing.assert_equal(
        predicted.shape, (60,)
    )
    again = clone(pipe)
    assert not hasattr(again[-1], "labels_")
    np.testing.assert_array_equal(again.fit_predict(X), labels)
    step = again.steps[-1][0]
    assert again.set_params(**{f"{step}__n_clusters": 2}).fit(X)[-1].labels_.max() == 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", GRAPHS)
def test_frames_come_out_with_names(name: str, library: str) -> None:
    frames = pytest.importorskip(library)
    columns = [f"x{i}" for i in range(X.shape[1])]
    frame = frames.DataFrame(dict(zip(columns, X.T, strict=True)))
    model = method(name).set_output(transform=library)
    first, new = model.fit_transform(frame), model.transform(frame[:5])
    assert isinstance(first, frames.DataFrame)
    assert isinstance(new, frames.DataFrame)
    expected = [f"{type(model).__name__.lower()}{i}" for i in range(first.shape[1])]
    assert list(first.columns) == list(new.columns) == list(model.get_feature_names_out()) == expected
    assert list(model.feature_names_in_) == columns
    np.testing.assert_allclose(first.to_numpy(), model.embedding_)
    if library == "pandas":
        frame.index = first.index = np.arange(len(X)) + 100
        assert list(model.fit_transform(frame).index) == list(frame.index)


@pytest.mark.parametrize("name", SHALLOW)
def test_searches(name: str) -> None:
    pipe = pipeline(name)
    grid = {f"{pipe.steps[-1][0]}__n_clusters": [2, 3]}
    found = GridSearchCV(pipe, grid, scoring=make_scorer(accuracy), cv=[(range(60), range(60))]).fit(X, y)
    assert len(found.best_estimator_.predict(X)) == len(X)


def test_a_notebook_shows_the_verdict_first_and_draws_the_tree(monkeypatch: Any) -> None:
    model = SubspaceClustering(3, effort="fast").fit(X)
    html = model._repr_html_()
    assert html.startswith(f"<p><b>{model.verdict_}</b></p>")
    assert html.count("─ cluster") == 3
    assert repr(model.tree_).splitlines()[0].startswith("60 points")
    assert sorted(line.partition("cluster ")[2] for line in repr(model.tree_).splitlines() if "cluster" in line) == [
        f"{i}: {size} points" for i, size in enumerate(np.bincount(model.labels_))
    ]
    assert method("ektrr").fit(X)._repr_html_().startswith("<p><b>3 groups.</b></p>")
    monkeypatch.setattr(base, "MANY", 59)
    assert model._repr_html_().startswith("<p><b>3 groups.</b></p>")
    assert "─ cluster" not in model._repr_html_()
    many = cluster_tree(sparse.csr_array(np.kron(np.eye(40), np.ones((2, 2)))), np.repeat(np.arange(40), 2))
    assert sum("cluster" in line for line in repr(many).splitlines()) == 30


def test_texts_and_sparse_features_go_in_as_they_are() -> None:
    about = ["star planet orbit moon", "bread flour oven dough", "court judge law trial"]
    texts = [f"{a} and {b} of the {c}" for words in about for a in words.split() for b in words.split() for c in "xy"]
    vectors = TfidfVectorizer().fit(texts)
    true = np.repeat([0, 1, 2], 32)
    for given, features in ((texts, None), (np.array(texts), "tfidf"), (texts, vectors.transform)):
        model = SubspaceClustering(3, features=features, effort="fast").fit(given)
        assert accuracy(true, model.labels_) == 1
        assert (model.predict(texts[::9]) == model.labels_[::9]).all()
    same = SubspaceClustering(3, effort="fast").fit(vectors.transform(texts))
    assert (model.labels_ == same.labels_).all()
    with pytest.raises(ValueError, match=r"features must return an array of shape \(96, m\)"):
        SubspaceClustering(3, features=lambda X: vectors.transform(X)[:5]).fit(texts)
    for wrong, words in (
        ("one text", "got one text"),
        ([], "Expected 2D array"),
        ([texts[:2]] * 3, "could not convert"),
    ):
        with pytest.raises(ValueError, match=words):
            SubspaceClustering().fit(wrong)
