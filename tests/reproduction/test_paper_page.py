"""Records, tables, figures, claims and the page: what is made of the results."""

from __future__ import annotations

import pkgutil
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from reproduction import cells, claims, compute, how, page, plan, records, run, tables
from reproduction.__main__ import main
from reproduction.records import Record
from reproduction.run import Settings, progress, run_experiment
from subspaces.app.files import FileError

DOCS = Path(__file__).parents[2] / "docs"
EXPERIMENT = """
title = "A tiny table"
paper = "Table 0"
style = "table"
metrics = ["AC", "NMI", "t2"]
note = "What was done."
full = { runs = 3, restarts = 5 }
[[panels]]
name = "curves"
data = { name = "curves" }
rows = ["good", "constant", "k-means"]
[protocol]
cuts = [{ name = "k-means", restarts = 5, runs = 2 }]
"""
ROWS = """
[good]
label = "KTRR"
method = "ktrr"
common = { reg = 0.01 }
chosen = { curves = { n_nonzero = 8 } }
[constant]
label = "constant label"
method = "constant"
deterministic = true
[k-means]
label = "k-means"
method = "k-means"
"""
REMARKS = """
introduction = "Read this."
reading = "How to."
open = "Unsaid."
commands = "Try."
words = { tiny = "An honest word." }
reasons = { any = "nobody knows" }
"""


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "tiny.toml").write_text(EXPERIMENT)
    (tmp_path / "experiments" / "untried.toml").write_text(EXPERIMENT.replace("Table 0", "Table 1"))
    (tmp_path / "parameters.toml").write_text(ROWS)
    (tmp_path / "remarks.toml").write_text(REMARKS)
    return Settings(tmp_path / "out", home=tmp_path)


def an_experiment(style="table", **more):
    return plan.Experiment("none", "t", "p", style, ["AC"], [], {}, **more)


# ---------------------------------------------------------------- runs


def test_a_run_writes_everything_and_the_second_is_instant(settings):
    first = run_experiment("tiny", settings)
    assert (first.outcome.n_found, first.outcome.n_computed) == (0, 3)
    assert {file.name for file in settings.output.iterdir()} == {"tiny.csv", "tiny.md", "runs"}
    marks = {record.row: record.mark for record in first.records if record.metric == "AC"}
    assert marks == {"KTRR": "2 runs", "constant label": "", "k-means": "2 runs"}
    text = (settings.output / "tiny.csv").read_text()
    late = replace(settings, until=0.0)
    assert run_experiment("tiny", late).outcome.n_found == 3
    assert (settings.output / "tiny.csv").read_text() == text
    runs = settings.output / "runs" / "tiny.jsonl"
    runs.write_text(runs.read_text().replace('"AC":[', '"AC":[1,', 1))  # what was changed is not believed
    assert run_experiment("tiny", late).outcome.n_left == 1


def test_cells_of_other_code_are_told_and_made_again_where_asked(settings, monkeypatch):
    run_experiment("tiny", settings)
    monkeypatch.setattr(compute, "code_of", lambda method: "abc1234 other")
    monkeypatch.setattr(run, "code_of", lambda method: "abc1234 other")
    assert run_experiment("tiny", settings).outcome.n_computed == 0
    again = run_experiment("tiny", replace(settings, again=["good"])).outcome
    assert (again.n_computed, again.n_found) == (1, 2)
    assert progress(plan.load_experiment("tiny", settings.home), settings).codes["abc1234 other"] == 1
    assert run_experiment("tiny", replace(settings, again=["good"])).outcome.n_computed == 0


def test_the_command_runs_lists_and_writes_the_page(settings, capsys):
    places = ["--home", settings.home, "--output", settings.output]

    def command(*arguments):
        assert main([*map(str, [*arguments, *places])]) == 0
        return capsys.readouterr().out

    assert "0/3" in command()
    assert "tiny: 3 cells computed, 0 kept" in command("tiny", "page")
    assert f"page: {settings.output.parent.resolve() / 'reproduction.md'}" in command("page")
    assert "3/3" in command()


# ---------------------------------------------------------------- records


def records_of(samples, monkeypatch):
    """Records of the paper's test: the first row against the others, printed numbers for all."""
    planned, outcome = [], cells.Outcome()
    for row, values in samples.items():
        cell = {"method": row, "parameters": {}, "cuts": [{"name": "cut"}]}
        planned.append(plan.Planned("panel", row, None, cell))
        outcome.results[cells.digest(cell)] = {"scores": {"cut": {"AC": values}}}
    printed = {("panel", row, None, "AC"): (50.0, None) for row in samples}
    monkeypatch.setattr(records, "read_paper", lambda *_: printed)
    experiment = an_experiment(tested=["AC"])
    return experiment, records.make_records(experiment, planned, outcome)


def test_the_dagger_is_the_papers_test_of_its_own_method(rng, monkeypatch):
    high, low = rng.normal(90, 1, 10).tolist(), rng.normal(50, 1, 10).tolist()
    _, (own, rival) = records_of({"KTRR": low, "b": high}, monkeypatch)  # the worse may differ, too
    assert (own.mean, own.sd) == (pytest.approx(np.mean(low)), pytest.approx(np.std(low, ddof=1)))
    assert (own.dagger, own.best, rival.best) == (True, False, True)
    assert rival.p == mannwhitneyu(low, high, method="exact").pvalue
    experiment, found = records_of({"KTRR": low, "b": high, "c": [low[0] + 0.1, *low[1:]]}, monkeypatch)
    assert not found[0].dagger
    assert "KTRR is different from 1 of 2 rivals; not from c (p = 1)." in tables.markdown(experiment, found)
    _, found = records_of({"KTRR": [1.0, 2.0, 3.0], "b": [7.0, 8.0, 9.0]}, monkeypatch)  # p = 0.1: too few
    assert (found[0].dagger, found[1].p) == (False, None)


def test_identical_repeats_count_as_one(monkeypatch):
    experiment, found = records_of({"KTRR": [90.0] * 10, "b": [50.0] * 10}, monkeypatch)
    assert [(record.n, record.distinct, record.p) for record in found] == [(10, 1, None)] * 2
    assert "the runs are too few, or too many of them the same" in tables.markdown(experiment, found)


# ---------------------------------------------------------------- tables and figures


def test_tables_of_rows():
    rows = (("a_b & c", 3, 0.5, True, ""), ("1/d²", 1, None, False, "1 run"))
    found = [
        Record("p", row, None, "c", "AC", 90.0, 1.0, 89.0, 91.0, n, 88.0, paper_sd, 2.0, best, best, mark)
        for row, n, paper_sd, best, mark in rows
    ] + [Record("p", "missing", None, "c", "AC")]
    text = tables.markdown(an_experiment(), found)
    assert "| a_b &amp; c | **90.00 ± 1.00**† | 88.00 ± 0.50 | +2.0 |" in text
    assert "| 1/d² ‡ | 90.00 | 88.00 | +2.0 |" in text
    assert "| missing | – |  |  |" in text
    assert "‡ smaller than the paper's protocol: 1 run (1/d²)." in text
    again = records.from_csv(records.to_csv(found))
    assert again == found


def test_tables_of_curves():
    def record(x, cut, mean, paper=None):
        difference = None if None in (mean, paper) else mean - paper
        return Record("p", "KTRR", x, cut, "AC", mean, n=2, paper=paper, difference=difference)

    found = [record(1, "first", 90.0, 88.0), record(2, "first", None, 70.0), record(1, "second", 80.0)]
    text = tables.markdown(an_experiment("curves"), found)
    assert "|  |  | 1 | 2 |\n" in text
    assert "\n| KTRR, first | AC | 90.0 | – |\n| KTRR, second | AC | 80.0 | – |" in text
    assert "| *paper* |  | 88.0 | 70.0 |\n| *Δ* of the first |  | +2.0 |  |" in text


def test_figures_are_drawn_even_of_nothing():
    pytest.importorskip("matplotlib")
    from reproduction.figures import draw

    for name in ("fig1", "fig2", "fig4", "fig5", "fig6", "fig7", "fig9"):
        experiment, outcome = plan.load_experiment(name), cells.Outcome()
        planned = plan.plan(experiment, plan.load_parameters())
        assert draw(records.Run(experiment, planned, outcome, records.make_records(experiment, planned, outcome)))


def test_whole_experiment_with_its_figure_is_the_same_file_again(tmp_path):
    pytest.importorskip("matplotlib")
    settings = Settings(tmp_path)
    found = []
    for again in (settings, settings, replace(settings, until=0.0)):
        run_experiment("fig1", again)
        found.append([(tmp_path / f"fig1.{kind}").read_bytes() for kind in ("svg", "csv")])
    assert b"three curves" in found[0][0]
    assert found[0] == found[1] == found[2]


# ---------------------------------------------------------------- the page


def test_what_is_kept_is_made_again_from_the_runs_that_are_kept(tmp_path):
    """Every table with its means, deviations, best and tests, and the page with every sentence, to the byte."""
    if not (DOCS / "reproduction" / "runs").exists():
        pytest.skip("the documentation is not here")
    pytest.importorskip("torch", reason="PyTorch is not installed, whose networks say their parameters on the page")
    output = tmp_path / "reproduction"
    shutil.copytree(DOCS / "reproduction", output)
    names = [path.stem for path in (output / "runs").glob("*.jsonl")]
    assert len(names) >= 13
    for name in names:
        (output / f"{name}.csv").unlink()
        assert not run_experiment(name, Settings(output, until=0.0)).outcome.n_computed
        assert (output / f"{name}.csv").read_bytes() == (DOCS / "reproduction" / f"{name}.csv").read_bytes()
    (output / plan.CHOSEN).unlink()  # written anew with the grid
    assert page.write_page(Settings(output)).read_bytes() == (DOCS / "reproduction.md").read_bytes()


def test_every_row_says_how_it_was_made():
    rows, table5, settings = plan.load_parameters(), plan.load_experiment("table5"), Settings(Path("nowhere"))
    (line,) = how.made(table5, rows, settings)
    assert "KTRR: kernel rbf, σ 0.5, λ 1, η 3, graph column, scaling unit;" in line  # of the grid, and defaults
    assert (
        ": 10 × 1 × 500; k-means 10 × 1 × 20; KTRR, automatic 10 × 1 × its own. Chosen as the best of 12 by labels"
        in line
    )
    assert line.endswith(" on draws 100, 101: " + ", ".join(claims.METHODS) + ", KTRR, modularity.")
    assert all(rows[name]["label"] in line for name in table5.panels[0]["rows"] if name != "constant")
    fig3 = list(how.made(plan.load_experiment("fig3"), rows, settings))
    assert [("λ" in each, "η 5" in each) for each in fig3] == [(False, False), (False, True), (True, False)]
    assert all("connect False" in each and each.endswith(" 1 × 50 × 500 random.") for each in fig3)


def test_best_and_median_of_a_grid_beside_the_reported_row():
    rows, grid = plan.load_parameters(), plan.load_experiment("grid")
    found = records.from_csv((DOCS / "reproduction" / "grid.csv").read_text(encoding="utf-8"))
    tried = how.by_labels(plan.load_experiment("table5"), rows, grid, found)
    twelve = [r.mean for r in found if (r.panel, r.metric) == ("USPS", "AC") and r.row.startswith("LSA: ")]
    assert len(twelve) == 12
    assert tried["USPS", "LSA"] == (f"{max(twelve):.1f}", f"{np.median(twelve):.1f}")
    assert ("USPS", "k-means") not in tried
    experiment = an_experiment(tested=["AC"])
    text = tables.markdown(experiment, [Record("USPS", "LSA", None, "c", "AC", 70.0, n=1)], tried)
    assert "|  | AC | best by labels | median of its grid |" in text
    assert f"| LSA | 70.00 | {max(twelve):.1f} |" in text


def test_a_search_with_labels_names_its_best_setting():
    rows, search, panel = plan.load_parameters(), plan.load_experiment("best"), "Table 5 USPS"
    labels = dict.fromkeys(item.row for item in plan.plan(search, rows) if item.panel == panel)
    scores = {**dict.fromkeys(labels, 50.0), "KTRR: graph column, bandwidth 0.5, reg 1.0, n_nonzero 3": 59.0}
    scores["KTRR: graph column, bandwidth 0.5, reg 1.0, n_nonzero 4"] = 58.5
    found = [Record(panel, label, None, "c", "AC", score, n=4) for label, score in scores.items()]
    ((best, tried),) = how.searched(search, rows, found)
    assert (best.mean, len(tried)) == (59.0, len(labels))
    assert max(tried, key=lambda each: each[1])[0] == {"graph": "column", "bandwidth": 0.5, "reg": 1.0, "n_nonzero": 3}
    found[3].n = 3  # settings are compared on the same draws or not at all
    assert not list(how.searched(search, rows, found))


def test_why_ktrr_is_below_the_paper_and_what_its_runs_say_is_computed():
    found = {
        (r.panel, r.row): r.mean
        for r in records.from_csv((DOCS / "reproduction" / "best.csv").read_text(encoding="utf-8"))
    }
    lines = (DOCS / "reproduction.md").read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if line.startswith("| Table 5 USPS |"))
    reported = found["Table 5 USPS", "KTRR: graph column, bandwidth 0.5, reg 1.0, n_nonzero 3"]
    assert (
        f"the reported setting has {reported:.1f}; the printed mean has a standard error of 4.7" in line
    )  # 14.93 / √10
    (line,) = (line for line in lines if line.startswith("| Fig. 5 COIL100, 10 objects |"))
    assert "to 100.0" in line  # with the same setting, on ten other objects
    assert "no setting reaches the paper" in line
    pytest.importorskip("torch")
    said = list(how.of_runs(plan.load_experiment("fig9"), plan.load_parameters(), Settings(DOCS / "reproduction")))
    runs = cells.read_runs(DOCS / "reproduction" / "runs" / "fig9.jsonl").values()
    assert said[0].count("(") == len({*(str(each["chosen"]) for each in runs if each.get("chosen", [None]) != [None])})
    assert "DSC-Net-L2" in said[1]


def test_what_the_text_says_stands_where_the_page_says():
    for _, text, names, note in tomllib.loads((plan.HERE / "sentences.toml").read_text(encoding="utf-8"))["sentences"]:
        assert all(pkgutil.resolve_name(name) for name in names), text
        assert names or note


def test_a_page_of_nothing_of_little_and_of_a_damaged_table(settings):
    assert page.write_page(settings).read_text().endswith("Read this.\n\nNothing has been run yet.\n")
    settings.output.mkdir()
    scores = {"KTRR": (90.0, 89.0), "SSC": (50.0, 70.0), "LRR": (80.0, 80.2)}
    found = [
        Record("digits", row, None, "c", "AC", ours, 1.0, ours - 2, ours + 2, 3, paper, None, ours - paper)
        for row, (ours, paper) in scores.items()
    ]
    (settings.output / "tiny.csv").write_text(records.to_csv(found))
    text = page.write_page(settings).read_text()
    assert "## Table 1: A tiny table\n\nNot run yet." in text
    # three scores compared: in the middle −0.2; one is near; two of the paper's lie in our range
    assert "| Table 0 | 3 | -0.2 | 1 | 2 |" in text
    assert "| Table 0, digits | SSC | 50.0 | 70.0 | nobody knows |" in text
    (settings.output / "tiny.csv").write_text("panel,row\na,b\n")
    with pytest.raises(FileError, match=r"tiny\.csv.*remove it and run the experiment again"):
        page.write_page(settings)


@pytest.fixture(scope="module")
def printed():
    """Records that have the paper's numbers alone, as ours and as theirs."""
    rows, found = plan.load_parameters(), {}
    for file in (plan.HERE / "paper").glob("*.csv"):
        experiment = plan.load_experiment(file.stem)
        made = records.make_records(experiment, plan.plan(experiment, rows), cells.Outcome())
        found[file.stem] = [replace(record, mean=record.paper) for record in made]
    return found


def test_claims_by_the_papers_own_numbers(printed):
    judged = list(claims.judge(printed))
    assert len(judged) == 72
    assert all(each.paper == each.ours for each in judged)
    assert sum(each.paper is None for each in judged) == 10  # p-values, pictures and what nothing is about
    # what an outside reading of the paper had found by hand
    fails = {each.text for each in judged if each.paper is not None and not each.paper.holds}
    assert {
        "Best on ExYaleB at λ = 0.1, η = 5.",
        "About 80 on COIL20 at 10 dB.",
        "KTRR is 17 / 17 / 26 / 24 points above TRR.",
        "KTRR is 21 points above TRR.",
        "KTRR is 31.78 points above TRR.",
        "All methods are worse than under Gaussian noise (5 % against 50 dB).",
        "It is at least two times faster than the others.",
    } <= fails
    holds = {each.text for each in judged if each.paper is not None and each.paper.holds}
    assert {"Best on COIL20 at λ = 10, η = 4.", "KTRR is 6.13 points above TRR, the second best."} <= holds
    assert all(each.ours is None for each in claims.judge({}))
