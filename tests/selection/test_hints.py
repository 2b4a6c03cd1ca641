"""A few known labels, links and answers: they decide what the samples alone do not."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from subspaces import SubspaceClustering
from subspaces.datasets import make_subspaces


@pytest.fixture(scope="module")
def nested():
    """Three far groups of three near ones each: 3 and 9 are both right."""
    rng = np.random.default_rng(0)
    far, near = rng.normal(size=(3, 8)) * 30, rng.normal(size=(9, 8)) * 1.6
    fine = np.repeat(np.arange(9), 20)
    X = far[fine // 3] + near[fine] + rng.normal(size=(180, 8)) * 0.5
    return X, fine


def told(y, rows, unknown=None):
    """Labels of these rows, everything else unknown."""
    given = np.full(len(y), unknown, dtype=object)
    given[rows] = [f"kind {c}" for c in y[rows]]
    return given


def as_found(a, b):
    """Whether two labellings have the same groups."""
    return len(set(zip(a.tolist(), b.tolist(), strict=True))) == len(set(a.tolist())) == len(set(b.tolist()))


@pytest.fixture(scope="module")
def fitted(nested):
    return SubspaceClustering(effort="fast").fit(nested[0])


@pytest.mark.parametrize("level", [1, 3])
def test_labels_choose_the_level(nested, level):
    """Whichever of two right answers the labels follow, all other samples get it; each unknown is unknown."""
    X, fine = nested
    y = fine // level
    rows = np.random.default_rng(1).choice(180, 24, replace=False)
    model = SubspaceClustering(effort="fast").fit(X, told(y, rows))
    assert as_found(model.labels_, y)
    names = {c: f"kind {y[model.labels_ == c][0]}" for c in set(model.labels_[rows].tolist())}
    assert model.class_names_ == names
    assert np.array_equal(np.flatnonzero(model.known_), np.sort(rows))
    assert model.verdict_.startswith(f"24 known labels: {len(set(y))} groups fit them best")
    assert np.array_equal(model.predict(X), model.labels_)
    assert np.mean(model.predict(X + 1e-3) == model.labels_) > 0.9


@pytest.mark.parametrize("unknown", [-1, None, np.nan, "", pd.NA])
def test_every_way_to_say_unknown(nested, unknown):
    X, fine = nested
    rows = np.arange(0, 180, 10)
    model = SubspaceClustering(9, effort="fast").fit(X, told(fine, rows, unknown))
    assert model.known_.sum() == 18
    assert as_found(model.labels_, fine)


def test_known_samples_keep_their_label_and_new_classes_stay(nested):
    """A label against its surroundings is kept and moves nobody far; groups without a name keep their own cluster."""
    X, fine = nested
    rows = np.flatnonzero(np.isin(fine, (0, 1, 2)))[::4]
    given = told(fine, rows)
    given[rows[0]] = "kind 2"  # wrong
    model = SubspaceClustering(effort="fast").fit(X, given)
    assert model.class_names_[model.labels_[rows[0]]] == "kind 2"
    named = np.isin(model.labels_, list(model.class_names_))
    assert not named[fine > 2].any()
    assert named[fine < 3].all()


def test_links(nested, fitted):
    X, fine = nested
    first = [np.flatnonzero(fine == c)[0] for c in range(9)]
    apart = [(first[c], first[d]) for c in range(9) for d in range(c) if c // 3 == d // 3]
    assert as_found(SubspaceClustering(effort="fast").fit(X, cannot_link=apart).labels_, fine)
    together = SubspaceClustering(effort="fast").fit(X, must_link=apart)
    gain = adjusted_rand_score(fine // 3, together.labels_) - adjusted_rand_score(fine // 3, fitted.labels_)
    assert gain > 0.2
    assert together.verdict_.startswith("9 linked pairs: 3 groups fit them best")


@pytest.mark.parametrize("level", [1, 3])
def test_answers_choose_the_level(nested, fitted, level):
    fine = nested[1]
    y = fine // level
    model = pickle.loads(pickle.dumps(fitted))  # the search is made again: it is not saved
    for _ in range(12):  # the next question depends on the answer, and none is left where all that fits agrees
        model.answer([(i, j, bool(y[i] == y[j])) for i, j, _ in model.questions(1)])
    if level == 1:
        assert as_found(model.labels_, y)
    else:
        assert adjusted_rand_score(y, model.labels_) - adjusted_rand_score(y, fitted.labels_) > 0.1
    assert f"{len(model.answers_)} answers: {model.n_clusters_} groups fit them best" in model.verdict_


def test_doubt_changes_nothing_and_is_not_asked_again(nested, fitted):
    model = pickle.loads(pickle.dumps(fitted))
    asked = model.questions(3)
    assert len({(i, j) for i, j, _ in asked}) == 3
    change = model.answer([(i, j, None) for i, j, _ in asked])
    assert change.n_moved == 0
    assert np.array_equal(model.labels_, fitted.labels_)
    assert not {(i, j) for i, j, _ in asked} & {(i, j) for i, j, _ in model.questions(10)}


def test_contradictions_are_shown(nested, fitted):
    model = pickle.loads(pickle.dumps(fitted))
    change = model.answer([(0, 1, True), (1, 2, True), (0, 2, False)])
    assert change.contradictions == [(0, 2)]
    assert change.not_followed == [(0, 2)]
    assert "(0, 2)" in str(change)


def test_full_labels_are_ignored_with_a_word(nested, fitted):
    X, fine = nested
    with pytest.warns(UserWarning, match="use a classifier"):
        model = SubspaceClustering(effort="fast").fit(X, fine)
    assert np.array_equal(model.labels_, fitted.labels_)
    assert not model.known_.any()
    assert model.verdict_ == fitted.verdict_
    assert np.array_equal(clone(model).fit(X, np.full(180, -1)).labels_, fitted.labels_)


def test_copies_of_rows_and_a_sample_of_many(monkeypatch):
    """Known rows are looked at whatever the sample is; equal rows are one."""
    from subspaces.selection import search

    monkeypatch.setattr(search, "N_SEARCHED", 60)
    X, y = make_subspaces(3, dimension=2, ambient=10, n_samples=40, noise=0.01, random_state=0)
    X, y = np.concatenate([X, X[:20]]), np.concatenate([y, y[:20]])
    rows = np.arange(0, 140, 9)
    model = SubspaceClustering(effort="fast").fit(X, told(y, rows))
    assert as_found(model.labels_, y)


def test_an_answer_that_fits_moves_nobody_where_only_some_are_searched(monkeypatch):
    from subspaces.selection import search

    monkeypatch.setattr(search, "N_SEARCHED", 60)
    X, _ = make_subspaces(3, dimension=2, ambient=10, n_samples=40, noise=0.2, random_state=0)
    model = SubspaceClustering(3, effort="fast").fit(X)
    i, j = np.flatnonzero(model.labels_ == 0)[:2]
    assert model.answer([(i, j, True)]).n_moved == 0


@pytest.mark.parametrize(
    ("hints", "sentence"),
    [
        ({"y": [1, -1]}, r"y must have one entry for each of 180 samples"),
        ({"y": ["a"] * 5 + [""] * 175}, "all 5 known samples are 'a'. Name a sample of another class"),
        ({"y": [*range(9), *[-1] * 171]}, "got 9 classes and n_clusters=4. Ask for 9 or more"),
        ({"must_link": [(0, 180)]}, r"from 0 to 179 in each pair; got \(0, 180\)"),
        ({"cannot_link": [3, 4]}, r"cannot_link must be pairs of row numbers"),
        ({"must_link": [(0, 1), (1, 2)], "cannot_link": [(2, 0)]}, r"cannot_link has \(2, 0\), which must_link joins"),
        ({"y": [1, 2, *[-1] * 178], "must_link": [(0, 1)]}, r"must_link joins row 0 \(1\) and row 1 \(2\)"),
        ({"y": [1, 1, 2, *[-1] * 177], "cannot_link": [(0, 1)]}, "y calls both 1"),
    ],
)
def test_bad_hints(nested, hints, sentence):
    with pytest.raises(ValueError, match=sentence):
        SubspaceClustering(4).fit(nested[0], **hints)


def test_bad_answers(fitted):
    for answers in ([(0, 1)], [(0, 1, "yes")], [(0, 999, True)]):
        with pytest.raises(ValueError, match="answers must"):
            fitted.answer(answers)


def test_a_told_model_is_saved_and_loaded(nested, tmp_path):
    from subspaces.app.files.models import Reading, load_model, save_model

    X, fine = nested
    model = SubspaceClustering(effort="fast").fit(X, told(fine, np.arange(0, 180, 9)))
    save_model(tmp_path / "told.skops", model, Reading(8))
    loaded = load_model(tmp_path / "told.skops")[0]
    assert loaded.verdict_ == model.verdict_
    assert loaded.class_names_ == model.class_names_
    assert np.array_equal(loaded.predict(X), model.labels_)


def test_answers_are_corrected_and_taken_back(nested, fitted):
    """The last answer about a pair counts; with all taken back, everything is as it was, and may be asked again."""
    y = nested[1] // 3
    model = pickle.loads(pickle.dumps(fitted))
    asked = []
    for _ in range(8):
        asked += [(i, j) for i, j, _ in model.questions(1)]
        model.answer([(*asked[-1], bool(y[asked[-1][0]] == y[asked[-1][1]]))])
    told, (i, j) = model.labels_, asked[0]
    assert not np.array_equal(told, fitted.labels_)
    model.answer([(j, i, bool(y[i] != y[j]))])
    assert len(model.answers_) == len(asked)
    model.answer([(i, j, bool(y[i] == y[j]))])
    assert np.array_equal(model.labels_, told)
    model.forget(asked[1:])
    assert model.answers_ == [(i, j, bool(y[i] == y[j]))]
    change = model.forget()
    assert change.after == fitted.n_clusters_
    assert np.array_equal(model.labels_, fitted.labels_)
    assert model.verdict_ == fitted.verdict_
    assert model.questions(1)[0][:2] == asked[0]
    with pytest.raises(ValueError, match="nothing was answered about"):
        model.forget([(0, 1)])


def test_an_answer_moves_its_samples(nested, fitted):
    """One answer against all partitions moves one sample, and against two known labels none."""
    fine = nested[1]
    a, b = (int(np.flatnonzero(fine == k)[0]) for k in (0, 3))
    model = pickle.loads(pickle.dumps(fitted))
    assert model.answer([(a, b, True)]).n_moved == 1
    assert model.labels_[a] == model.labels_[b]
    rows = np.arange(0, 180, 5)
    model = SubspaceClustering(effort="fast").fit(nested[0], told(fine, rows))
    change = model.answer([(a, b, True)])
    assert change.n_moved == 0
    assert change.not_followed == [(a, b)]


def test_labels_of_no_clusters_leave_the_answer(rng):
    """One cloud with names drawn at random stays one group beside the known samples of the rarer class."""
    X = rng.normal(size=(150, 5))
    y = np.full(150, -1)
    y[:12] = [0] * 9 + [1] * 3
    open_ = SubspaceClustering(effort="fast").fit(X)
    assert open_.n_clusters_ == 1
    assert np.bincount(SubspaceClustering(effort="fast").fit(X, y).labels_).max() >= 140


def test_classes_that_are_no_clusters_are_learned(rng):
    """Two halves of one curve: no partition of few groups has them, their labels spread along it."""
    t = np.sort(rng.uniform(size=300))
    X = np.column_stack([np.cos(5 * t), np.sin(5 * t), t])
    y, rows = (t > 0.35).astype(int), rng.choice(300, 60, replace=False)
    model = SubspaceClustering(effort="fast").fit(X, told(y, rows))
    rest = np.setdiff1d(np.arange(300), rows)
    named = [model.class_names_.get(c, "") for c in model.labels_[rest].tolist()]
    assert np.mean(np.array(named) == [f"kind {c}" for c in y[rest]]) > 0.95
