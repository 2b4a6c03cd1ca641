"""Tables of counts that are large or sparse, and tables of scores."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse
from scipy.linalg import block_diag
from scipy.optimize import linear_sum_assignment

from metrics_data import KEYS, PRED, TRUE, as_table, labellings, properties, random_labels
from subspaces.metrics import CONSTANT, best_matching, clustering_scores, contingency, score_table, tables
from subspaces.metrics.scores import _scores as all_scores
from subspaces.metrics.tables import Contingency

# ---------------------------------------------------------------- large tables


def total_of_best_matching(counts):
    return counts[linear_sum_assignment(counts, maximize=True)].sum()


@properties
@given(labellings(max_size=60, max_labels=9))
def test_sparse_table_gives_the_dense_scores(pair):
    dense, expected = contingency(*pair), clustering_scores(*pair)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "DENSE_CELLS", 0)
        table = contingency(*pair)
        assert sparse.issparse(table.counts)
        np.testing.assert_array_equal(table.counts.toarray(), dense.counts)
        assert clustering_scores(*pair) == expected
        assert np.mean(best_matching(*pair) == np.asarray(pair[0])) == pytest.approx(expected["accuracy"])


@pytest.mark.parametrize("shape", [(1, 1), (6, 6), (4, 30), (30, 4), (40, 40)])
@pytest.mark.parametrize("density", [0.1, 0.4, 1.0])
@pytest.mark.parametrize("largest", [2, 50])
def test_sparse_matching_is_optimal(shape, density, largest):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        counts = rng.integers(1, largest, shape) * (rng.random(shape) < density)
        counts[0, 0] += 1
        rows, columns = counts.nonzero()
        for matched in (
            tables._match_sparse(rows, columns, counts[rows, columns]),
            tables.match(as_table(counts)),
            tables.match(Contingency(sparse.csr_array(counts), np.arange(shape[0]), np.arange(shape[1]))),
        ):
            assert len(set(matched[0])) == len(set(matched[1])) == len(matched[0])
            assert np.all(counts[matched] > 0)
            assert counts[matched].sum() == total_of_best_matching(counts)


def test_scipy_gets_what_stays_doubtful(monkeypatch):
    # Blocks [[5, 4], [4, 5]]: no cell outweighs both of its rivals
    left = []
    solve = tables._match_sparse
    monkeypatch.setattr(tables, "_match_sparse", lambda *cells: left.append(len(cells[0])) or solve(*cells))
    counts = sparse.csr_array(block_diag(*[[[5, 4], [4, 5]]] * 30, *[[[9]]] * 70))
    rows, columns = tables.match(Contingency(sparse.csr_array(counts), np.arange(130), np.arange(130)))
    assert left == [120]
    np.testing.assert_array_equal(np.sort(rows), np.arange(130))
    assert set(zip(rows.tolist(), columns.tolist(), strict=True)) == {(i, i) for i in range(130)}


def test_every_point_its_own_cluster():
    n = 50_000
    points = np.random.default_rng(0).permutation(n)
    table = contingency(points, points[::-1])
    assert sparse.issparse(table.counts)
    assert table.counts.nnz == n
    assert set(clustering_scores(points, points[::-1]).values()) == {1.0}
    scores = clustering_scores(points % 7, points)
    assert scores["accuracy"] == 7 / n
    assert scores["purity"] == 1.0
    assert scores["nmi"] == pytest.approx(math.log(7) / math.log(n), rel=1e-6)


@pytest.mark.parametrize("factor", [1, 10**5, 10**7, 10**9])
def test_large_counts_do_not_overflow(factor):
    counts = np.random.default_rng(1).integers(0, 50, (7, 7)) * factor + 3
    cells, classes, clusters, total = (
        sum(math.comb(int(s), 2) for s in sizes)
        for sizes in (counts.ravel(), counts.sum(axis=1), counts.sum(axis=0), [counts.sum()])
    )
    chance = Fraction(classes * clusters, total)
    scores = all_scores(as_table(counts))
    assert scores["precision"] == cells / clusters
    assert scores["recall"] == cells / classes
    assert scores["f_score"] == pytest.approx(2 * cells / (classes + clusters), rel=1e-15)
    ari = float((cells - chance) / (Fraction(classes + clusters, 2) - chance))
    assert scores["ari"] == pytest.approx(ari, rel=1e-14)
    small = all_scores(as_table(counts.astype(np.float64) / counts.sum() * 1e6 // 1))
    for key in ("accuracy", "nmi", "purity"):
        assert scores[key] == pytest.approx(small[key], abs=1e-4)
    assert scores["accuracy"] == total_of_best_matching(counts) / counts.sum()


def test_many_points_in_blocks():
    # More points than one block of the table
    true, pred = random_labels(1_300_000, 7, 5)
    np.testing.assert_array_equal(contingency(true, pred).counts, np.histogram2d(true, pred, bins=(7, 5))[0])


# ---------------------------------------------------------------- score table


def test_score_table_rows():
    table = score_table(TRUE, {"ours": PRED, "theirs": TRUE})
    assert list(table.rows) == ["ours", "theirs", CONSTANT]
    assert table.rows["ours"] == clustering_scores(TRUE, PRED)
    assert table.rows[CONSTANT] == clustering_scores(TRUE, [0] * 6)
    copy = table.to_dict()
    assert copy == table.rows
    copy["ours"]["nmi"] = 5.0
    assert table.rows["ours"]["nmi"] < 1


def test_score_table_of_one_array():
    assert list(score_table(TRUE, PRED).rows) == ["labels", CONSTANT]
    assert list(score_table(TRUE, {}).rows) == [CONSTANT]


def test_score_table_is_aligned():
    lines = str(score_table(TRUE, {"a": PRED, "a name that is rather long": TRUE})).splitlines()
    assert len(lines) == 4
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split() == ["%", *KEYS]
    assert lines[1].split() == ["a", "66.7", "42.1", "24.2", "44.4", "66.7", "33.3", "83.3"]
    assert lines[2].endswith("100.0   100.0   100.0")


def test_score_table_prints_no_minus_zero():
    true, pred = random_labels(20_000, 10, 10, seed=3)
    pred[:10] = true[:10]
    assert "-0.0" not in str(score_table(true, pred))
    assert f"{-0.0001:z.1f}" == "0.0"


def test_score_table_markdown():
    lines = score_table(TRUE, {"a|b": PRED}).to_markdown().splitlines()
    assert lines[0] == "| % | accuracy | nmi | ari | f_score | precision | recall | purity |"
    assert lines[1] == "| --- |" + " ---: |" * 7
    assert lines[2] == r"| a\|b | 66.7 | 42.1 | 24.2 | 44.4 | 66.7 | 33.3 | 83.3 |"
    assert lines[3].startswith("| constant label | 50.0 | 0.0 | 0.0 |")


def test_score_table_errors_name_the_row():
    with pytest.raises(ValueError, match=r"labels_true and labels_pred\['b'\] .* lengths 6 and 1"):
        score_table(TRUE, {"a": PRED, "b": [0]})
    with pytest.raises(ValueError, match="must not name a row 'constant label'"):
        score_table(TRUE, {CONSTANT: PRED})


def test_table_for_latex_and_pandas():
    table = score_table([0, 0, 1, 1], {"a_b": [1, 1, 0, 0]})
    tex = table.to_latex()
    assert tex.startswith(r"\begin{tabular}{l||rrrrrrr}")
    assert r"a\_b & 100.0" in tex
    assert r"\% & accuracy" in tex
    assert "f\\_score" in tex
    pytest.importorskip("pandas")
    frame = table.to_pandas()
    assert list(frame.index) == ["a_b", CONSTANT]
    assert frame.loc[CONSTANT].to_dict() == table.rows[CONSTANT]


def test_pandas_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_pandas needs pandas, which is not installed: pip install pandas"):
        score_table([0, 1], [0, 1]).to_pandas()
