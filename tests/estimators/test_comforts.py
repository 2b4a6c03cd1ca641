"""What makes an estimator pleasant: its stages in a notebook, explanations, pipelines and searches."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.cluster import KMeans

from method_data import ESTIMATORS
from subspaces import EKTRR, KASP, KTRR, SC, SSC, SampledClusterer, SubspaceClustering
from subspaces.datasets import make_subspaces
from subspaces.engine.plan import STAGES
from subspaces.estimators.html_repr import boxes_html, boxes_of

UNREPRESENTED = ("sc", "lsa", "tsc")


@pytest.fixture(scope="module")
def data():
    return make_subspaces(3, 2, 9, 30, noise=0.01, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return KTRR(3, kernel="quadratic", reg=0.01).fit(data[0])


# ---------------------------------------------------------------- the boxes in a notebook


def test_boxes_tell_sizes_and_times(data, model):
    boxes = boxes_of(model)
    assert [box.title for box in boxes] == ["data", *STAGES, "labels"]
    assert boxes[0].detail == "90 points, 9 features"
    assert boxes[1].detail == "quadratic (low_rank)"
    assert f"λ = {model.penalty_:.3g}, {model.coefficients_.nnz} kept" in boxes[2].detail
    assert boxes[3].detail.startswith(f"{model.affinity_matrix_.nnz // 2} edges, {model.n_components_} component")
    assert boxes[4].detail.startswith(f"{len(model.eigenvalues_)} eigenvectors")
    assert boxes[5].detail == "kmeans"
    assert [box.seconds for box in boxes[1:-1]] == list(model.timings_.values())
    assert boxes[-1].detail.startswith("3 clusters of")


def test_fitted_estimator_shows_the_boxes_after_its_own_picture(data, model):
    html = model._repr_html_()
    assert "sk-container" in html
    assert html.count("subspaces-stages") == 1
    assert html.index("sk-container") < html.index("subspaces-stages")
    assert "subspaces-stages" in model._repr_mimebundle_()["text/html"]
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")


def test_unfitted_estimator_looks_as_ever():
    assert "subspaces-stages" not in KTRR(3)._repr_html_()
    assert "subspaces-stages" not in EKTRR(3)._repr_html_()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_method_has_boxes(data, name):
    model = ESTIMATORS[name](3).fit(data[0])
    html = boxes_html(model)
    assert html.count("<div") == html.count("</div>")
    boxes = boxes_of(model)
    assert [box.title for box in boxes] == ["data", *STAGES, "labels"]
    assert all(box.detail for box in boxes)
    assert (boxes[2].detail == "none: an affinity of the points") == (name in UNREPRESENTED)
    assert ("rank" in boxes[2].detail) == (name in ("lrr1", "lrr2", "latlrr", "klrr"))


def test_boxes_of_the_other_routes(data):
    X, _ = data
    chosen = SubspaceClustering(kernel="rbf").fit(X)
    assert boxes_of(chosen)[1].title == "choice"
    assert "settings tried" in boxes_of(chosen)[1].detail
    by_modularity = KTRR(3, assign_labels="modularity").fit(X)
    assert [box.title for box in boxes_of(by_modularity)] == ["data", *STAGES, "labels"]
    assert boxes_of(by_modularity)[4] == ("embedding", "not needed", None)
    large = EKTRR(3, n_landmarks=40).fit(X)
    assert [box.title for box in boxes_of(large)] == ["data", "sample", "cluster", "train", "classify", "labels"]
    assert "40 landmarks" in boxes_of(large)[1].detail
    with pytest.warns(UserWarning, match="equal"):
        same = KTRR(2).fit(np.ones((5, 2)))
    assert [box.title for box in boxes_of(same)] == ["data", "labels"]


def test_markup_in_a_name_stays_text(data):
    class Tags(HTMLParser):
        def __init__(self):
            super().__init__()
            self.found = set()

        def handle_starttag(self, tag, attrs):
            self.found.add(tag)

    model = KTRR(3).fit(data[0])
    model.assign_labels_ = "<img src=x onerror=alert(1)>"
    model.timings_["<script>alert(1)</script>"] = 0.1
    tags = Tags()
    tags.feed(boxes_html(model))
    assert tags.found == {"div", "b", "span"}


# ---------------------------------------------------------------- explain


def test_explanation_is_the_column(model):
    C = model.coefficients_.toarray()
    for i in (0, 17, 89):
        found = model.explain(i)
        kept = np.flatnonzero(C[:, i])
        assert set(found.points.tolist()) == set(kept.tolist())
        np.testing.assert_array_equal(found.coefficients, C[found.points, i])
        assert (np.diff(np.abs(found.coefficients)) <= 0).all()
        np.testing.assert_array_equal(found.labels, model.labels_[found.points])
        own = kept[model.labels_[kept] == model.labels_[i]]
        np.testing.assert_allclose(found.own_share, np.abs(C[own, i]).sum() / np.abs(C[:, i]).sum())


def test_explanation_prints_as_a_table(model):
    text = str(model.explain(4, n=2))
    assert repr(model.explain(4, n=2)) == text
    assert "the 2 strongest shown" in text
    assert len(text.splitlines()) == 4
    assert model.explain(4, n=2)._repr_html_().count("<tr>") == 3
    rows = model.explain(4).as_rows()
    assert list(rows[0]) == ["point", "coefficient", "share", "label"]
    np.testing.assert_allclose(sum(row["share"] for row in rows), 1)


def test_explanation_is_of_the_coefficients_as_the_paper_writes_them(data):
    """Column i of C (eq. 3.9) where it was kept, with sign: x_i ≈ Σ c_ji x_j."""
    X, _ = data
    model = KTRR(3, kernel="linear", reg=0.01, n_nonzero=4, graph="column", solver="dense").fit(X)
    K = X @ X.T
    inverse = np.linalg.inv(K + model.penalty_ * np.eye(90))
    for i in (0, 17, 89):
        found = model.explain(i)
        exact = -inverse[:, i] / inverse[i, i]
        exact[i] = 0
        np.testing.assert_allclose(found.coefficients, exact[found.points], rtol=1e-6)
        assert set(found.points) == set(np.argsort(-abs(exact))[:4])
    assert (model.coefficients_.data < 0).any()


def test_explanations_of_landmarks(data):
    large = EKTRR(3, n_landmarks=40).fit(data[0])
    i = int(large.landmark_indices_[5])
    found = large.explain(i)
    inner = large.clusterer_.explain(5)
    assert found.points.tolist() == large.landmark_indices_[inner.points].tolist()
    assert found.label == large.labels_[i]
    other = int(np.setdiff1d(np.arange(90), large.landmark_indices_)[0])
    with pytest.raises(ValueError, match="landmarks"):
        large.explain(other)


def test_what_cannot_be_explained(data, model):
    assert not hasattr(KASP(3, n_landmarks=40).fit(data[0]), "explain")
    for clusterer, explains in ((None, True), (SSC(3), True), (SC(3), False), (KMeans(3), False)):
        sampled = SampledClusterer(clusterer=clusterer, n_landmarks=40)
        assert hasattr(sampled, "explain") == explains
        assert hasattr(sampled.fit(data[0]), "explain") == explains
    with pytest.raises(ValueError, match=r"i must be .* from 0 to 89; got 90"):
        model.explain(90)
    with pytest.raises(ValueError, match="got -1"):
        model.explain(-1)
    with pytest.raises(ValueError, match="fitted"):
        KTRR(3).explain(0)
    alone = KTRR(3).fit(data[0])
    alone._coefficients = sparse.csc_array((90, 90))
    assert "no other point" in str(alone.explain(3))
