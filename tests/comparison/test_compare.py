"""Methods on data sets: runs, failures, tests between methods, and the tables made of them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cli_data import run
from subspaces import KTRR, TRR, Comparison, compare
from subspaces.datasets import load_named, make_subspaces
from subspaces.datasets.loaders import NAMED
from subspaces.inspection.comparison import BEST
from subspaces.metrics import CONSTANT, accuracy, score_table
from subspaces.metrics.significance import holm


class Noted(ClusterMixin, BaseEstimator):
    """Labels that depend on the seed; remembers how it was called."""

    calls: list[tuple[int, int]] = []  # noqa: RUF012

    def __init__(self, n_clusters=2, random_state=None):
        self.n_clusters, self.random_state = n_clusters, random_state

    def fit(self, X, y=None):
        self.calls.append((self.n_clusters, self.random_state))
        self.labels_ = np.random.default_rng(self.random_state).integers(self.n_clusters, size=len(X))
        return self


@pytest.fixture
def data(seed):
    return {
        "small": make_subspaces(2, 2, 5, 20, random_state=seed),
        "large": make_subspaces(3, 2, 9, 20, random_state=seed),
    }


def test_every_method_is_run_and_scored(data):
    Noted.calls.clear()
    told, mine = [], Noted(9, random_state=4)
    found = compare({"mine": mine}, data, n_runs=3, random_state=5, progress=lambda *args: told.append(args))
    assert Noted.calls == [(2, 5), (2, 6), (2, 7), (3, 5), (3, 6), (3, 7)]
    assert (mine.n_clusters, mine.random_state, hasattr(mine, "labels_")) == (9, 4, False)
    assert found.methods == ("mine", "k-means", CONSTANT)
    assert list(found.scores) == ["AC", "NMI", "ARI", "F", "seconds"]
    assert (told[0], told[-1]) == (("Comparing methods", 0, 18), ("Comparing methods", 18, 18))
    X, y = data["large"]
    expected = [accuracy(y, Noted(3, seed).fit_predict(X)) for seed in (5, 6, 7)]
    assert found.scores["AC"][0, 1].tolist() == expected
    assert found.mean("AC")[0, 1] == pytest.approx(np.mean(expected))
    assert found.sd("AC")[0, 1] == pytest.approx(np.std(expected, ddof=1))
    assert (found.scores["seconds"] >= 0).all()
    by_kmeans = [accuracy(y, KMeans(3, n_init=10, random_state=s).fit_predict(X)) for s in (5, 6, 7)]
    assert found.scores["AC"][1, 1] == pytest.approx(by_kmeans)
    assert found.mean("F")[2, 1] == pytest.approx(score_table(y, y).rows[CONSTANT]["f_score"])


def test_pipelines_get_clusters_and_seeds(data):
    Noted.calls.clear()
    compare({"pipe": make_pipeline(StandardScaler(), Noted())}, {"large": data["large"]}, n_runs=1, random_state=9)
    found = compare({"pipe": Noted(7)}, {"large": data["large"]}, n_runs=1, n_clusters=None)
    assert Noted.calls == [(3, 9), (7, 0)]
    X, y = data["large"]  # k-means still knows the number of classes
    assert found.mean("AC")[1, 0] == accuracy(y, KMeans(3, n_init=10, random_state=0).fit_predict(X))


class Failing:
    """No estimator of scikit-learn; fails in the second call with many samples."""

    calls = 0

    def fit_predict(self, X):
        self.calls += len(X) > 50
        if self.calls == 2:
            raise MemoryError("too\nlarge.")
        return np.arange(len(X)) % 3


def test_failure_is_a_gap(data):
    found = compare({"odd|one": Failing(), "mine": TRR()}, data, n_runs=3)
    assert found.gaps == {("odd|one", "large"): "MemoryError: too large"}
    assert np.isnan(found.scores["AC"][0, 1]).all()
    assert np.isfinite(found.mean("AC")[1:]).all()
    assert found.to_markdown().count(r"| odd\|one | – | – | – | – | – |") == 1
    for text in (str(found), found.to_latex("AC")):
        assert "failed on large: MemoryError: too large." in text
    with pytest.raises(ValueError, match="two data sets or more on which no method failed; there are 1 of 2"):
        found.ranking()


def table_of(scores):
    """Make a comparison from given accuracies (n_methods, n_datasets, n_runs)."""
    values = np.asarray(scores, dtype=float)
    names = (*(f"m{i}" for i in range(len(values) - 1)), CONSTANT)
    every = dict.fromkeys(("AC", "NMI", "ARI", "F", "seconds"), values)
    return Comparison(names, tuple(f"d{j}" for j in range(values.shape[1])), every, {})


def test_the_best_is_bold_and_the_dagger_names_its_test():
    """Ten runs against ten: exact without ties; with ties there are too many arrangements to count."""
    runs = np.arange(10) / 1000
    none = [0 * runs]  # the constant labelling, which is not tested and not called fast
    exact, tied, same = (table_of([[0.9 + runs], [other], none]) for other in (0.5 + runs, 0.5 + 0 * runs, 0.9 + runs))
    assert "| m0 | **90.5 ± 0.3**† |" in exact.to_markdown()
    assert "| **0.50 ± 0.00**† |\n| constant" in exact.to_markdown()
    assert "† different from every other method at 0.05 by the exact rank-sum test" in exact.to_markdown()
    assert r"\textbf{90.5 $\pm$ 0.3}$\ddagger$" in tied.to_latex()
    assert "exact" not in tied.to_latex()
    assert "‡ different from every other method at 0.05 by the rank-sum test of the runs" in str(tied)
    assert str(same).count("90.5 ± 0.3*\n") == 0
    assert "90.5 ± 0.3*" in str(same)
    assert "†" not in str(same)
    repeated = replace(exact, repeated=np.broadcast_to(np.arange(10) > 0, (3, 1, 10)))  # of times every run counts
    assert ("†" in repeated.to_markdown("seconds"), "†" in repeated.to_markdown("AC")) == (True, False)


def test_single_runs_have_no_spread():
    found = table_of([[[0.9]], [[0.5]], [[0.2]]])
    assert np.isnan(found.sd()).all()
    assert "| m0 | **90.0** |" in found.to_markdown("AC")


def test_tables_of_one_metric():
    found = table_of(np.full((3, 2, 2), 0.5))
    assert found.to_markdown("AC").splitlines()[:3] == ["**AC**", "", "|  | d0 | d1 |"]
    with pytest.raises(ValueError, match="metric must be one of AC, NMI, ARI, F, seconds; got 'acc'"):
        found.to_markdown("acc")


def test_pandas(data):
    pytest.importorskip("pandas")
    found = compare({"mine": TRR()}, data, n_runs=3)
    frame, runs = found.to_pandas(), found.to_pandas(runs=True)
    assert runs.loc[("large", "k-means", 2), "NMI"] == found.scores["NMI"][1, 1, 2]
    assert frame.index[1] == ("small", "k-means")
    for metric in found.scores:
        np.testing.assert_allclose(frame[metric, "mean"], found.mean(metric).T.ravel())
        np.testing.assert_allclose(frame[metric, "sd"], found.sd(metric).T.ravel())


def test_tests_over_data_sets(rng):
    values = rng.random((4, 8, 3))
    found, means = table_of(values), values.mean(axis=2)
    expected = [stats.wilcoxon(means[0], means[i], method="exact").pvalue for i in (1, 2)]
    tests = found.signed_rank()
    assert list(tests) == ["m1", "m2"]
    assert [test.pvalue for test in tests.values()] == pytest.approx(holm(expected))
    assert found.ranking().pvalue == pytest.approx(stats.friedmanchisquare(*means[:3]).pvalue)
    assert found.ranking("seconds").ranks == pytest.approx(4 - found.ranking("AC").ranks)
    assert list(found.signed_rank(reference="m2")) == ["m0", "m1"]
    with pytest.raises(ValueError, match="reference must be one of m0, m1, m2"):
        found.signed_rank(reference="m9")
    values[1, 0] = np.nan  # gaps are left out
    assert table_of(values).ranking().n_datasets == 7
    assert [test.n for test in table_of(values).signed_rank().values()] == [7, 8]


@pytest.mark.parametrize(
    ("methods", "datasets", "words"),
    [
        ({}, "curves", "methods must name at least one method"),
        ({"k-means": TRR()}, "curves", "must not name a row 'k-means'"),
        ({"mine": TRR}, "curves", r"methods\['mine'\] must be an estimator with fit_predict"),
        ([TRR()], "curves", "methods must be a mapping"),
        ("kttr", "curves", "there is no method 'kttr'; did you mean ktrr"),
        ({f"a{BEST}": TRR(), "a": (TRR(), {"reg": [1.0]})}, "curves", "which the comparison has"),
        ({"a": (TRR(), {"lambda": [1.0]})}, "curves", "Invalid parameter 'lambda'"),
        ({"theirs": [0, 1]}, "curves", r"methods\['theirs'\] are no labels of 'curves': .* 300 and 2"),
        ({"theirs": [0, 1]}, ["curves", "digits"], r"methods\['theirs'\] must map names of data sets to labels"),
        ("trr", "curvs", "Did you mean 'curves'"),
        ("trr", [], "datasets must hold at least one data set"),
        ("trr", {"a": np.ones((3, 2))}, r"datasets\['a'\] must be a pair"),
        ("trr", {"a": (np.ones((3, 2)), [0, 1])}, r"one class for each of its 3 samples; got y of \(2,\)"),
        ("trr", {"a": (np.ones((3, 2)), [0, 1, np.nan])}, r"datasets\['a'\] has classes that cannot be scored"),
    ],
)
def test_refusals(methods, datasets, words):
    with pytest.raises((ValueError, TypeError, KeyError), match=words):
        compare(methods, datasets, n_runs=1)


def test_ways_to_give_data(data):
    pandas = pytest.importorskip("pandas")
    X, y = data["small"]
    with pytest.raises(ValueError, match="n_runs must be a whole number of at least 1; got 0"):
        compare("trr", (X, y), n_runs=0)
    assert compare("trr", (X, y), n_runs=1).datasets == ("data",)
    found = compare(["trr", "lsr1"], [(X, y), "curves"], n_runs=1)
    assert (found.methods[:2], found.datasets) == (("trr", "lsr1"), ("data 1", "curves"))
    names = np.array(["oak", "elm"])[y]
    given = {"sparse": (sparse.csr_array(X), names), "frame": (pandas.DataFrame(X), pandas.Series(names))}
    found = compare("trr", given, n_runs=1)
    assert not found.gaps
    assert found.mean("AC")[0, 0] == found.mean("AC")[0, 1]


@pytest.mark.parametrize("name", [name for name, named in NAMED.items() if not named.needs_files])
def test_data_sets_of_the_catalogue(name):
    X, y = load_named(name)
    assert len(X) == len(y)
    assert len(np.unique(y)) > 1


class Seeded(TRR):
    """Puts as many samples into the wrong cluster as the seed modulo `period` says; renames clusters by the seed."""

    def __init__(self, period=1, worse=0, n_clusters=2, random_state=0):
        self.period, self.worse, self.n_clusters, self.random_state = period, worse, n_clusters, random_state

    def fit_predict(self, X, y=None):
        labels = (np.arange(len(X)) >= len(X) // 2).astype(int)
        labels[: self.worse + self.random_state % self.period] = 1
        return labels if self.random_state % 2 else 5 - labels


def test_a_partition_found_again_is_no_further_observation():
    """Methods that ignore the seed are not tested, however often they are run; names of clusters do not matter."""
    X, y = np.random.default_rng(0).normal(size=(400, 9)), np.repeat([0, 1], 200)
    found = compare({"good": Seeded(), "bad": Seeded(worse=5)}, {"d": (X, y)}, n_runs=6)
    assert not {"†", "‡"} & set(found.to_markdown("AC"))
    assert "No test of the scores of good, bad" in str(found)
    assert "No test of" not in found.to_markdown("seconds")
    # four different partitions against four, each found twice: p = 2 / 70
    found = compare({"good": Seeded(4), "bad": Seeded(4, worse=50)}, {"d": (X, y)}, n_runs=8)
    assert (~found.repeated[:2]).sum(axis=2).tolist() == [[4], [4]]
    assert "No test of the scores of good" not in str(found)
    assert "**99.6 ± 0.3**†" in found.to_markdown("AC")


def test_what_is_not_installed_is_a_gap(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    found = compare({"deep": "DSCNet", "mine": "TRR"}, {"small": data["small"]}, n_runs=1)
    assert "DSCNet needs PyTorch" in found.gaps["deep", "small"]
    assert found.mean("AC")[1, 0] == accuracy(data["small"][1], TRR(2).fit_predict(data["small"][0]))


def test_labels_made_elsewhere_are_a_row(data):
    """They count as one partition, take no time, and may have any names."""
    y = data["small"][1]
    theirs = np.array(["b", "a"])[y]
    theirs[0] = "c"
    found = compare({"theirs": {"small": theirs}, "mine": Noted()}, data, n_runs=4)
    assert found.scores["AC"][0, 0].tolist() == [accuracy(y, theirs)] * 4
    assert np.isnan(found.scores["seconds"][0]).all()
    assert "No test of the scores of theirs" in str(found)
    assert found.gaps == {("theirs", "large"): "ValueError: no labels were given for it"}
    one = compare({"theirs": theirs.tolist()}, {"small": data["small"]}, n_runs=1)
    assert one.mean("AC")[0, 0] == accuracy(y, theirs)


def test_a_grid_shows_the_best_setting_beside_the_honest_one():
    """The setting chosen by the classes is named, in italics, and neither bold nor tested nor ranked."""
    X, y = np.random.default_rng(0).normal(size=(60, 9)), np.repeat([0, 1], 30)
    data = {"d": (X, y), "e": (X, y), "f": (X, 1 - y)}
    methods = {"mine": (Seeded(worse=9), {"worse": [20, 0, 4], "period": [1, 2]}), "other": Seeded(worse=12)}
    found = compare(methods, data, n_runs=2)
    assert found.methods == ("mine", f"mine{BEST}", "other", "k-means", CONSTANT)
    assert found.mean("AC")[:2, 0].tolist() == [51 / 60, 1.0]
    assert found.settings["mine" + BEST, "d"] == "period=1, worse=0, the best AC of 6 settings"
    assert set(found.settings) == {("mine" + BEST, name) for name in data}
    text = found.to_markdown("AC")
    assert "| mine | **85.0 ± 0.0** |" in text
    assert f"| mine{BEST} | *100.0 ± 0.0* |" in text
    assert f"Rows{BEST} have seen the classes" in text
    assert list(found.signed_rank()) == ["other", "k-means"]
    assert found.ranking().names == ("mine", "other", "k-means")
    broken = compare({"deep": (Broken(), {"a": [1, 2]})}, {"d": (X, y)}, n_runs=1)
    assert broken.gaps == {("deep", "d"): "ValueError: no", ("deep" + BEST, "d"): "ValueError: no"}
    half = compare({"mine": (Broken(), [{"a": [1]}, {"a": [2, 3]}])}, {"d": (X, y)}, n_runs=1)
    assert half.gaps == {("mine", "d"): "ValueError: no"}
    assert half.settings["mine" + BEST, "d"] == "a=3, the best AC of 1 setting that ran, 2 failed"


class Broken(ClusterMixin, BaseEstimator):
    def __init__(self, a=0):
        self.a = a

    def fit(self, X, y=None):
        if self.a < 3:
            raise ValueError("no")
        self.labels_ = np.zeros(len(X), dtype=int)
        return self


def test_a_comparison_goes_on_where_it_was_stopped(data, tmp_path):
    """Each run is kept when it is done, by what it depends on; what is damaged is computed again."""

    def seen(n_runs, X=data["small"][0], **parameters):
        Noted.calls.clear()
        methods = {"mine": Noted(**parameters)}
        return compare(methods, {"small": (X, data["small"][1])}, n_runs=n_runs, checkpoint=tmp_path), len(Noted.calls)

    whole, calls = seen(3)
    assert calls == 3
    again, calls = seen(3)
    assert calls == 0
    for metric, values in whole.scores.items():
        np.testing.assert_array_equal(again.scores[metric], values)
    np.testing.assert_array_equal(again.repeated, whole.repeated)
    assert [seen(n)[1] for n in (5, 2)] == [2, 0]
    assert seen(3, n_clusters=7)[1] == 3, "other parameters"
    assert seen(3, X=2 * data["small"][0])[1] == 3, "other samples"
    for path in tmp_path.iterdir():
        path.write_text(path.read_text().replace('"AC": ', '"AC": "'))
    assert seen(3)[1] == 3


def test_runs_of_a_class_of_a_notebook_are_kept_and_others_named_in_short(data, tmp_path, monkeypatch):
    class Own(TRR):
        __module__, __qualname__ = "__main__", "Own"

    monkeypatch.setattr(sys.modules["__main__"], "Own", Own, raising=False)
    methods = {"own": Own(), "nameless": KTRR(kernel=lambda a, b: a @ b.T)}
    found = compare(methods, {"small": data["small"]}, n_runs=1, n_jobs=2, checkpoint=tmp_path)
    assert found.gaps.keys() == {("nameless", "small")}
    assert "array(" not in found.gaps["nameless", "small"], "the samples are no message"


def test_several_processes_find_the_same(data):
    methods = {"mine": "trr", "random": KMeans(n_init=1)}
    one, two = (compare(methods, data, n_runs=2, n_jobs=n_jobs) for n_jobs in (None, 2))
    for metric in ("AC", "NMI", "ARI", "F"):
        np.testing.assert_array_equal(two.scores[metric], one.scores[metric])


def test_the_shell_runs_the_same_comparison(data, tmp_path):
    X, y = data["small"]
    names = np.array(["ash", "elm"])[y]
    table, labels, out = (tmp_path / name for name in ("trees.csv", "theirs.csv", "table.tex"))
    rows = (",".join(map(repr, map(float, row))) + f",{name}" for row, name in zip(X, names, strict=True))
    table.write_text("a,b,c,d,e,kind\n" + "\n".join(rows) + "\n")
    labels.write_text("cluster\n" + "\n".join(map(str, 1 - y)) + "\n")
    command = (
        "compare",
        table,
        labels,
        "--label",
        "kind",
        "-m",
        "TRR",
        "-m",
        "ssc",
        "--runs",
        2,
        "--checkpoint",
        tmp_path,
    )
    shown = json.loads(run(*command, "--json", "-o", out).output)
    found = compare({"TRR": TRR(), "ssc": "ssc", "theirs.csv": names}, {"trees.csv": (X, names)}, n_runs=2)
    assert list(shown["methods"]) == list(found.methods)
    for i, row in enumerate(shown["methods"].values()):
        assert row["AC"] == found.scores["AC"][i, 0].tolist()
    assert shown["methods"]["theirs.csv"]["AC"] == [1.0, 1.0]
    assert r"\toprule" in out.read_text()
    assert "--force" in run(*command, "-o", out).output
    assert "is needed with --method" in run("compare", table, "-m", "trr").output
    assert "did you mean trr" in run("compare", table, "--label", "kind", "-m", "trrr").output
    labels.write_text("line,cluster\n" + "\n".join(f"{i},0" for i in range(40, 0, -1)) + "\n")
    assert "its rows are not those of trees.csv in the same order" in run(*command).output
    table.write_text(table.read_text().replace(",ash", ",", 1))
    assert "the column has gaps" in run(*command).output
    table.write_text(table.read_text().replace(repr(float(X[1, 0])), "", 1).replace(",\n", ",ash\n", 1))
    assert "use --missing drop" in run("compare", table, "--label", "kind", "-m", "sc").output
    dropped = ("compare", table, "--label", "kind", "--missing", "median", "--ignore", "e", "-m", "sc", "--runs", 1)
    assert json.loads(run(*dropped, "--json").stdout)["methods"]["sc"]
