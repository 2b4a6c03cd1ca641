"""What is made of the runs of a table: means, the best, the paper's test, files."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from reproduction import entries, schedule, statistics, tables
from reproduction.runner import Outcome
from reproduction_data import a_cell


def records_of(samples, paper=None, metric="AC", tested=()):
    planned, outcome = [], Outcome()
    for row, values in samples.items():
        cell = a_cell(method=row)
        planned.append(schedule.Planned("panel", row, None, cell))
        outcome.results[entries.digest(cell)] = {"scores": {"k-means": {metric: values}}}
    experiment = schedule.Experiment("none", "t", "p", "table", [metric], [], {}, tested=list(tested))
    return experiment, statistics.make_records(experiment, planned, outcome)


def test_mean_spread_best_and_dagger(rng):
    high, low, near = rng.normal(90, 1, 10).tolist(), rng.normal(50, 1, 10).tolist(), rng.normal(60, 5, 10).tolist()
    _, records = records_of({"a": high, "b": low, "c": near})
    by_row = {record.row: record for record in records}
    assert by_row["a"].mean == pytest.approx(np.mean(high))
    assert by_row["a"].sd == pytest.approx(np.std(high, ddof=1))
    assert [record.best for record in records] == [True, False, False]
    assert not any(record.dagger for record in records)  # this experiment tests nothing


@pytest.fixture
def tested(monkeypatch):
    """Records of the paper's test: the first row against the others, printed numbers for all."""

    def make(rows):
        printed = {("panel", row, None, "AC"): (50.0, None) for row in rows}
        monkeypatch.setattr(statistics, "read_paper", lambda name: printed)
        return records_of(rows, tested=["AC"])

    return make


def test_dagger_is_the_papers_test_of_its_own_method(tested, rng):
    high, low = rng.normal(90, 1, 10).tolist(), rng.normal(50, 1, 10).tolist()
    _, records = tested({"KTRR": low, "b": high})  # the worse may differ, too
    assert [record.dagger for record in records] == [True, False]
    assert records[1].p == mannwhitneyu(low, high, method="exact").pvalue
    experiment, records = tested({"KTRR": low, "b": high, "c": [low[0] + 0.1, *low[1:]]})
    assert not records[0].dagger
    assert "KTRR is different from 1 of 2 rivals; not from c (p = 1)." in tables.markdown(experiment, records)
    _, records = tested({"KTRR": [1.0, 2.0, 3.0], "b": [7.0, 8.0, 9.0]})  # exactly p = 0.1: three cannot show anything
    assert (records[0].dagger, records[1].p) == (False, None)


def test_identical_repeats_count_as_one(tested):
    experiment, records = tested({"KTRR": [90.0] * 10, "b": [50.0] * 10})
    assert [(record.n, record.distinct, record.p) for record in records] == [(10, 1, None)] * 2
    assert not records[0].dagger
    assert "†" not in tables.markdown(experiment, records)
    said = "Test, panel, AC: the runs are too few, or too many of them the same, to tell KTRR from any rival."
    assert said in tables.markdown(experiment, records)


def test_missing_results_are_shown_as_missing():
    experiment, records = records_of({"a": [90.0, 80.0], "b": []})
    assert records[1].mean is None
    assert "| b | – |" in tables.markdown(experiment, records)
    assert "b & -- " in tables.latex(experiment, records)


def test_times_as_multiples_of_the_first_row():
    records = [
        statistics.Record("p", row, None, "c", metric, mean=mean, n=1, paper=paper)
        for row, time, printed in (("KTRR", 2.0, 10.0), ("SSC", 3.0, 50.0))
        for metric, mean, paper in (("t2", time, printed), (statistics.RATIO, None, None))
    ]
    statistics._fill_ratios(records)
    ratios = [(record.mean, record.paper) for record in records if record.metric == statistics.RATIO]
    assert ratios == [(1.0, 1.0), (1.5, 5.0)]


def test_csv_goes_there_and_back(rng):
    _, records = records_of({"a, b": rng.uniform(0, 100, 5).tolist(), "c": []})
    again = statistics.from_csv(statistics.to_csv(records))
    assert [record.row for record in again] == ["a, b", "c"]
    assert again[0].mean == pytest.approx(records[0].mean, rel=1e-4)
    assert again[1].mean is None


def test_latex_is_balanced_and_escaped():
    assert tables.escape("50% & η_1 {x}") == r"50\% \& $\eta$\_1 \{x\}"
    experiment, records = records_of({"a_b & c": [90.0, 80.0], "1/d²": [1.0, 2.0]})
    text = tables.latex(experiment, records)
    assert text.count("{") == text.count("}")
    assert text.count(r"\begin") == text.count(r"\end")
    assert text.isascii()


# ---------------------------------------------------------------- whole runs
