"""Methods on data sets: what is run, what fails, and what the tables say of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import subspaces
from subspaces import TRR, Comparison, compare
from subspaces.datasets import load_named, make_subspaces
from subspaces.datasets.loaders import NAMED
from subspaces.metrics import CONSTANT, accuracy, score_table
from subspaces.metrics.significance import holm, rank_sum


class Noted(ClusterMixin, BaseEstimator):
    """Labels that depend on the seed; remembers how it was called."""

    calls: list[tuple[int, int]] = []  # noqa: RUF012

    def __init__(self, n_clusters=2, random_state=None):
        self.n_clusters, self.random_state = n_clusters, random_state

    def fit(self, X, y=None):
        self.calls.append((self.n_clusters, self.random_state))
        self.labels_ = np.random.default_rng(self.random_state).integers(self.n_clusters, size=len(X))
        return self


class FailsOnLarge:
    """Not even an estimator of scikit-learn."""

    def fit_predict(self, X):
        if len(X) > 50:
            raise RuntimeError("too\nlarge.")
        return np.arange(len(X)) % 3


@pytest.fixture
def data(seed):
    return {
        "small": make_subspaces(2, 2, 5, 20, random_state=seed),
        "large": make_subspaces(3, 2, 9, 20, random_state=seed),
    }


def test_what_is_run(data):
    Noted.calls.clear()
    told = []
    found = compare({"mine": Noted()}, data, n_runs=3, random_state=5, progress=lambda *args: told.append(args))
    assert Noted.calls == [(2, 5), (2, 6), (2, 7), (3, 5), (3, 6), (3, 7)]
    assert found.methods == ("mine", "k-means", CONSTANT)
    assert found.datasets == ("small", "large")
    assert list(found.scores) == ["AC", "NMI", "ARI", "F", "seconds"]
    assert told[0] == (0, 18, "mine on small")
    assert told[-1] == (18, 18, "")
    X, y = data["large"]
    expected = [accuracy(y, Noted(3, seed).fit_predict(X)) for seed in (5, 6, 7)]
    assert found.scores["AC"][0, 1].tolist() == expected
    assert found.mean("AC")[0, 1] == pytest.approx(np.mean(expected))
    assert found.sd("AC")[0, 1] == pytest.approx(np.std(expected, ddof=1))
    assert (found.scores["seconds"] >= 0).all()


def test_constant_and_kmeans_are_always_beside(data):
    found = compare("trr", data, n_runs=2)
    for j, (X, y) in enumerate(data.values()):
        assert found.mean("F")[2, j] == pytest.approx(score_table(y, y).rows[CONSTANT]["f_score"])
        expected = [accuracy(y, KMeans(len(set(y)), n_init=10, random_state=s).fit_predict(X)) for s in (0, 1)]
        assert found.scores["AC"][1, j] == pytest.approx(expected)


def test_failure_is_a_gap(data):
    found = compare({"odd|one": FailsOnLarge(), "mine": TRR()}, data, n_runs=2)
    assert found.gaps == {("odd|one", "large"): "RuntimeError: too large"}
    assert np.isnan(found.mean("AC")[0]).tolist() == [False, True]
    assert np.isfinite(found.mean("AC")[1:]).all()
    text = found.to_markdown()
    assert r"| odd\|one | – | – | – | – | – |" in text
    assert text.count("odd|one failed on large: RuntimeError: too large.") == 1
    assert "failed on large" in found.to_latex("AC")
    assert "failed on large" in str(found)
    with pytest.raises(ValueError, match="two data sets or more on which no method failed; there are 1 of 2"):
        found.ranking()


def test_wrong_labels_are_a_gap(data):
    class Short:
        def fit_predict(self, X):
            return [0]

    assert "ValueError" in compare({"short": Short()}, data, n_runs=1).gaps["short", "small"]


def test_pipelines_get_clusters_and_seeds(data):
    Noted.calls.clear()
    compare({"pipe": make_pipeline(StandardScaler(), Noted())}, {"large": data["large"]}, n_runs=1, random_state=9)
    assert Noted.calls == [(3, 9)]
    compare({"pipe": Noted(7)}, {"large": data["large"]}, n_runs=1, n_clusters=None)
    assert Noted.calls[-1] == (7, 0)


def test_estimators_are_not_changed(data):
    mine = TRR(n_clusters=9, random_state=4)
    compare({"mine": mine}, data, n_runs=1)
    assert (mine.n_clusters, mine.random_state) == (9, 4)
    assert not hasattr(mine, "labels_")


def table_of(scores, gaps=None):
    """A comparison from given accuracies (n_methods, n_datasets, n_runs)."""
    values = np.asarray(scores, dtype=float)
    names = (*(f"m{i}" for i in range(len(values) - 1)), CONSTANT)
    every = dict.fromkeys(("AC", "NMI", "ARI", "F", "seconds"), values)
    return Comparison(names, tuple(f"d{j}" for j in range(values.shape[1])), every, gaps or {})


def test_best_and_dagger():
    runs = np.arange(4) / 100
    found = table_of([[0.9 + runs], [0.5 + runs], [0.89 + runs * 0]])
    best, second, _ = found._column("AC", 0)
    assert best == ("91.5 ± 1.3", True, "†" if rank_sum(0.9 + runs, 0.89 + runs * 0).pvalue < 0.05 else "")
    assert second == ("51.5 ± 1.3", False, "")
    fastest = found._column("seconds", 0)
    assert [cell[1] for cell in fastest] == [False, True, False]  # the constant labelling is not called fast
    assert "**91.5 ± 1.3**" in found.to_markdown()
    assert r"\textbf{91.5 $\pm$ 1.3}" in found.to_latex()
    assert "91.5 ± 1.3*" in str(found)


def test_single_runs_have_no_spread():
    found = table_of([[[0.9]], [[0.5]], [[0.2]]])
    assert np.isnan(found.sd()).all()
    assert found._column("AC", 0)[0] == ("90.0", True, "")
    assert "±" not in found.to_markdown("AC")


def test_tables_of_one_metric():
    found = table_of(np.full((3, 2, 2), 0.5))
    lines = found.to_markdown("AC").splitlines()
    assert lines[0] == "**AC**"
    assert lines[2] == "|  | d0 | d1 |"
    assert lines[4] == "| m0 | **50.0 ± 0.0** | **50.0 ± 0.0** |"
    tex = found.to_latex("AC")
    assert tex.count(r"\begin{tabular}{l||ll}") == tex.count(r"\end{tabular}") == 1
    with pytest.raises(ValueError, match="metric must be one of AC, NMI, ARI, F, seconds; got 'acc'"):
        found.to_markdown("acc")


def test_pandas(data):
    pytest.importorskip("pandas")
    found = compare({"mine": TRR()}, data, n_runs=3)
    frame, runs = found.to_pandas(), found.to_pandas(runs=True)
    assert frame.loc[("large", "k-means"), ("AC", "mean")] == found.mean("AC")[1, 1]
    assert runs.loc[("large", "k-means", 2), "NMI"] == found.scores["NMI"][1, 1, 2]
    by_hand = runs.groupby(level=["dataset", "method"], sort=False)["AC"].std()
    np.testing.assert_allclose(frame["AC", "sd"], by_hand)


def test_tests_over_data_sets(rng):
    values = rng.random((4, 8, 3))
    found = table_of(values)
    means = values.mean(axis=2)
    expected = [stats.wilcoxon(means[0], means[i], method="exact").pvalue for i in (1, 2)]
    tests = found.signed_rank()
    assert list(tests) == ["m1", "m2"]
    assert [test.pvalue for test in tests.values()] == pytest.approx(holm(expected))
    assert found.ranking().pvalue == pytest.approx(stats.friedmanchisquare(*means[:3]).pvalue)
    assert found.ranking("seconds").ranks == pytest.approx(4 - found.ranking("AC").ranks)
    assert list(found.signed_rank(reference="m2")) == ["m0", "m1"]
    with pytest.raises(ValueError, match="reference must be one of m0, m1, m2"):
        found.signed_rank(reference="m9")


def test_gaps_are_left_out_of_tests(rng):
    values = rng.random((4, 8, 3))
    values[1, 0] = np.nan
    found = table_of(values)
    assert found.ranking().n_datasets == 7
    assert [test.n for test in found.signed_rank().values()] == [7, 8]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (({}, "curves"), "methods must name at least one method"),
        (({"k-means": TRR()}, "curves"), "must not name a row 'k-means'"),
        (({"mine": TRR}, "curves"), r"methods\['mine'\] must be an estimator with fit_predict"),
        (({"mine": 3}, "curves"), r"methods\['mine'\] must be an estimator with fit_predict"),
        (([TRR()], "curves"), "methods must be a mapping"),
        (("ktr", "curves"), "'ktr' is no method"),
        (("trr", "curvs"), "Did you mean 'curves'"),
        (("trr", []), "datasets must hold at least one data set"),
        (("trr", {"a": np.ones((3, 2))}), r"datasets\['a'\] must be a pair"),
        (("trr", {"a": (np.ones((3, 2)), [0, 1])}), r"one class for each of its 3 points; got y of \(2,\)"),
        (("trr", {"a": (np.ones((3, 2)), [0, 1, np.nan])}), r"datasets\['a'\] has classes that cannot be scored"),
        (("trr", "curves", 0), "n_runs must be a whole number of at least 1; got 0"),
    ],
)
def test_refusals(arguments, words):
    methods, datasets, *n_runs = arguments
    with pytest.raises((ValueError, TypeError, KeyError), match=words):
        compare(methods, datasets, n_runs=n_runs[0] if n_runs else 1)


def test_ways_to_give_data(data):
    pair = data["small"]
    assert compare("trr", pair, n_runs=1).datasets == ("data",)
    assert compare("trr", [pair, "curves"], n_runs=1).datasets == ("data 1", "curves")
    assert compare(["trr", "lsr1"], {"own": "curves"}, n_runs=1).methods[:2] == ("trr", "lsr1")


def test_bar(data, capsys, monkeypatch):
    compare("trr", data, n_runs=1, progress=True)  # nobody is watching
    compare("trr", data, n_runs=1)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    compare("trr", data, n_runs=1, progress=True)
    assert "compare" in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name, named in NAMED.items() if not named.needs_files])
def test_data_sets_of_the_catalogue(name):
    X, y = load_named(name)
    assert len(X) == len(y)
    assert len(np.unique(y)) > 1


def test_public_place():
    assert subspaces.compare is compare
    assert subspaces.Comparison is Comparison


def test_a_later_failure_is_a_gap_too(data):
    class Tired:
        calls = 0

        def fit_predict(self, X):
            self.calls += 1
            if self.calls == 2:
                raise MemoryError("no more")
            return np.zeros(len(X), dtype=int)

    found = compare({"tired": Tired()}, {"small": data["small"]}, n_runs=3)
    assert found.gaps == {("tired", "small"): "MemoryError: no more"}
    assert np.isnan(found.scores["AC"][0]).all()


def test_sparse_points_frames_and_names_of_classes(data):
    pandas = pytest.importorskip("pandas")
    X, y = data["small"]
    names = np.array(["oak", "elm"])[y]
    given = {"sparse": (sparse.csr_array(X), names), "frame": (pandas.DataFrame(X), pandas.Series(names))}
    found = compare("trr", given, n_runs=1)
    assert not found.gaps
    assert found.mean("AC")[0, 0] == found.mean("AC")[0, 1]


def test_dagger_says_which_test_was_used():
    """Ten runs against ten: exact without ties; with ties there are too many arrangements to count."""
    runs = np.arange(10) / 1000
    none = [0 * runs]  # the constant labelling, which is not tested
    exact, tied = (table_of([[0.9 + runs], [0.5 + other], none]) for other in (runs, 0 * runs))
    assert exact._column("AC", 0)[0][2] == "†"
    assert "† different from every other method at 0.05 by the exact rank-sum test" in exact.to_markdown()
    assert tied._column("AC", 0)[0][2] == "‡"
    assert "‡ different from every other method at 0.05 by the rank-sum test of the runs" in tied.to_markdown()
    assert "exact" not in tied.to_latex()


class Seeded(TRR):
    """Puts as many points into the wrong cluster as the seed modulo `period` says, and renames clusters by the seed."""

    def __init__(self, period=1, worse=0, n_clusters=2, random_state=0):
        self.period, self.worse, self.n_clusters, self.random_state = period, worse, n_clusters, random_state

    def fit_predict(self, X, y=None):
        labels = (np.arange(len(X)) >= len(X) // 2).astype(int)
        labels[: self.worse + self.random_state % self.period] = 1
        return labels if self.random_state % 2 else 5 - labels


def test_a_partition_found_again_is_no_further_observation():
    """Methods that ignore the seed are not tested, however often they are run; names of clusters do not matter."""
    data = {"d": (np.arange(40.0)[:, None], np.repeat([0, 1], 20))}
    found = compare({"good": Seeded(), "bad": Seeded(worse=5)}, data, n_runs=6)
    assert not {"†", "‡"} & {cell[2] for cell in found._column("AC", 0)}
    note = "No test of the scores of good, bad, k-means on d: all runs found the same partition."
    assert note in found.to_markdown()
    assert note in str(found)
    assert not found.repeated[:, :, 0].any()
    assert found.repeated[:, :, 1:].all()


def test_runs_that_differ_are_tested():
    """Four different partitions against four, each found twice: p = 2 / 70."""
    X, y = np.random.default_rng(0).normal(size=(400, 9)), np.repeat([0, 1], 200)
    found = compare({"good": Seeded(4), "bad": Seeded(4, worse=50)}, {"d": (X, y)}, n_runs=8)
    assert (~found.repeated[:2]).sum(axis=2).tolist() == [[4], [4]]
    assert "No test of" not in str(found)
    assert found._column("AC", 0)[0][1:] == (True, "†")
    assert "by the exact rank-sum test of the runs (for scores each partition counts once)" in str(found)
