"""``subspaces reproduce``: every kind of cell, curves, figures of real results, and the page of all results."""

from __future__ import annotations

import re
import shutil
import tomllib
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reproduction import claims, compute, data, entries, runner, schedule, tables
from reproduction.__main__ import main
from reproduction.experiment import Settings, run_experiment
from reproduction.findings import findings
from reproduction.page import REMARKS as REMARKS_FILE
from reproduction.page import write_page
from reproduction.statistics import PAPER, RATIO, Record, make_records, to_csv
from subspaces.io import FileError

POINTS = {"name": "digits", "first": 2, "per_class": 12, "draw": 0}
EXPERIMENT = """
title = "{title}"
paper = "{paper}"
style = "table"
metrics = ["AC", "t2"]
note = "What was done."
[[panels]]
name = "digits"
data = {{ name = "digits", first = 2 }}
rows = ["constant"]
[protocol]
cuts = [{{ name = "k-means", restarts = 1, runs = 1 }}]
"""
ROWS = """
[constant]
label = "constant label"
method = "constant"
deterministic = true
"""
REMARKS = """
introduction = "Read this."
reading = "How to."
open = "Unsaid."
commands = "Try."
words = { tiny = "An honest word." }
reasons = { any = "nobody knows" }
"""


def a_cell(kind, method="ktrr", **parameters):
    how = {"name": "fit", "restarts": 3, "init": "k-means++", "seeds": [0, 1]}
    return {"kind": kind, "points": POINTS, "method": method, "parameters": parameters, "cuts": [how]}


@pytest.fixture
def settings(tmp_path):
    folder = tmp_path / "experiments"
    folder.mkdir()
    (folder / "tiny.toml").write_text(EXPERIMENT.format(title="A tiny table", paper="Table 0"))
    (folder / "untried.toml").write_text(EXPERIMENT.format(title="Not now", paper="Table 1"))
    (tmp_path / "parameters.toml").write_text(ROWS)
    (tmp_path / "remarks.toml").write_text(REMARKS)
    (tmp_path / "out").mkdir()
    return Settings(tmp_path / "out", tmp_path / "cells", experiments=folder, parameters=tmp_path / "parameters.toml")


# ---------------------------------------------------------------- kinds of cells


@pytest.mark.parametrize(("method", "parameters"), [("constant", {}), ("k-means", {"scaling": "unit"}), ("lsr2", {})])
def test_cell_that_is_fitted_anew_for_every_seed(method, parameters):
    found = compute.compute(a_cell("fit", method, **parameters))
    scores = found["scores"]["fit"]
    assert {name: len(values) for name, values in scores.items()} == dict.fromkeys(
        ("AC", "NMI", "ARI", "F", "seconds"), 2
    )
    assert (found["n"], found["classes"]) == (24, 2)
    assert found["chosen"] == ([None, None] if method == "lsr2" else [])
    if method == "constant":
        assert scores["AC"] == [50.0, 50.0]


def test_automatic_choice_is_kept():
    found = compute.compute(a_cell("fit", reg="auto", n_nonzero=3))
    assert ["reg" in text for text in found["chosen"]] == [True, True]


def test_deep_methods_are_found_by_name(monkeypatch):
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install subspaces[deep]")
    from subspaces import registry

    fitted = []
    monkeypatch.setitem(compute.IMAGE_SHAPES, "digits", (8, 8))
    for name in registry.names("deep"):
        cls = registry.load(name)
        monkeypatch.setattr(cls, "fit", lambda self, X: fitted.append((type(self), X.shape)) or self)
        monkeypatch.setattr(cls, "labels_", np.arange(24) % 2, raising=False)
        found = compute.compute(a_cell("fit", name))
        assert len(found["scores"]["fit"]["AC"]) == 2
        assert fitted[-2:] == [(cls, (24, 8, 8))] * 2


def test_coefficients_and_similarities_for_a_picture():
    found = compute.compute(a_cell("coefficients", reg=0.5, n_nonzero=3, scaling="none"))
    C, W = np.array(found["C"]), np.array(found["W"])
    assert C.shape == W.shape == (24, 24)
    assert (C >= 0).all()
    assert np.count_nonzero(C) > 3 * 24 >= np.count_nonzero(W) / 2  # before and after the truncation
    np.testing.assert_array_equal(W, W.T)
    y = data.load_points(POINTS)[1]
    inside = 100 * W[y[:, None] == y].sum() / W.sum()
    assert found["scores"]["fit"]["weight inside"] == [pytest.approx(inside, abs=0.1)]


def test_samples_tell_what_the_noise_does(monkeypatch):
    monkeypatch.setitem(compute.IMAGE_SHAPES, "digits", (8, 8))
    points = {"name": "digits", "first": 2, "corruption": "salt_and_pepper", "level": 25, "noise_seed": 0}
    found = compute.compute({**a_cell("samples", "constant"), "points": points})
    scores = found["scores"]["fit"]
    assert 5 < scores["changed (%)"][0] < 25
    assert np.array(found["image"][0]).shape == (8, 8)


def test_gaussian_noise_has_the_level_that_was_asked_for():
    noisy = {"name": "digits", "first": 2, "corruption": "gaussian", "level": 20, "noise_seed": 0}
    clean, damaged = data.load_points({"name": "digits", "first": 2})[0], data.load_points(noisy)[0]
    assert 10 * np.log10(np.mean(clean**2) / np.mean((damaged - clean) ** 2)) == pytest.approx(20, abs=1)


def test_killed_worker_is_said_and_the_others_go_on(tmp_path, monkeypatch):
    class Pool:
        def __init__(self, *_, **__):
            self.n_asked = 0

        def submit(self, function, *arguments):
            future, self.n_asked = Future(), self.n_asked + 1
            if self.n_asked == 1:
                future.set_exception(BrokenProcessPool("killed"))
            else:
                future.set_result(function(*arguments))
            return future

        def shutdown(self, **_):
            pass

    monkeypatch.setattr(runner, "ProcessPoolExecutor", Pool)
    killed, good = a_cell("fit", "k-means"), a_cell("fit", "constant")
    outcome = runner.run_cells([killed, good], tmp_path, jobs=2)
    assert outcome.result(good) is not None
    (error,) = outcome.errors.values()
    assert "its worker was killed, perhaps for lack of memory; use fewer --jobs" in error


# ---------------------------------------------------------------- curves and figures


def test_curves_have_a_line_for_each_cut_and_for_the_paper():
    def record(x, cut, mean, paper=None):
        difference = None if None in (mean, paper) else mean - paper
        return Record("p", "KTRR", x, cut, "AC", mean, n=2, paper=paper, difference=difference)

    records = [record(1, "first", 90.0, 88.0), record(2, "first", None, 70.0), record(1, "second", 80.0)]
    experiment = schedule.Experiment("none", "t", "p", "curves", ["AC"], [], {})
    text, tex = tables.markdown(experiment, records), tables.latex(experiment, records)
    assert "| KTRR, first | AC | 90.0 | – |" in text
    assert "| KTRR, second | AC | 80.0 | – |" in text
    assert "| *paper* | | 88.0 | 70.0 |" in text
    assert "| *Δ* of the first | | +2.0 |  |" in text
    assert r"KTRR, first & AC & 90.0 & -- \\" in tex
    assert tex.count("{") == tex.count("}")


def test_numbers_of_the_paper_with_and_without_spread():
    records = [
        Record("p", row, None, "c", "AC", 90.0, 1.0, 89.0, 91.0, n, 88.0, paper_sd, 2.0, best, best, mark)
        for row, n, paper_sd, best, mark in (("a", 3, 0.5, True, ""), ("b", 1, None, False, "1 run"))
    ]
    experiment = schedule.Experiment("none", "t", "p", "table", ["AC"], [], {})
    text, tex = tables.markdown(experiment, records), tables.latex(experiment, records)
    assert "| a | **90.00 ± 1.00**† | 88.00 ± 0.50 | +2.0 |" in text
    assert "| b ‡ | 90.00 | 88.00 | +2.0 |" in text
    assert "‡ smaller than the paper's protocol: 1 run (b)." in text
    assert "† different from every rival of the paper" in text
    assert r"\textbf{90.00$\pm$1.00}$\dagger$" in tex
    assert r"\quad \textit{paper} & \textit{88.00 $\pm$ 0.50} \\" in tex


def test_whole_experiment_with_its_figure_is_the_same_file_again(tmp_path):
    pytest.importorskip("matplotlib")
    settings = Settings(tmp_path / "out", tmp_path / "cells", quick=True)
    run = run_experiment("fig1", settings)
    assert {file.suffix for file in run.files} == {".csv", ".md", ".tex", ".svg"}
    picture = tmp_path / "out" / "fig1-quick.svg"
    before = picture.read_bytes()
    assert b"three curves" in before
    assert run_experiment("fig1", settings).outcome.n_computed == 0
    assert picture.read_bytes() == before


def test_matrices_before_and_after_truncation_are_drawn():
    pytest.importorskip("matplotlib")
    from reproduction.figures import draw

    experiment = schedule.load_experiment("fig2", quick=True)
    planned = schedule.plan(experiment, schedule.load_parameters())
    outcome = runner.Outcome()
    values = np.arange(16.0).reshape(4, 4)
    scores = {"AC": [90.0], "NMI": [80.0], "weight inside": [70.0]}
    how = planned[0].cell["cuts"][0]["name"]
    outcome.results[entries.digest(planned[0].cell)] = {
        "scores": {how: scores},
        "C": values.tolist(),
        "W": values.tolist(),
    }
    records = make_records(experiment, planned, outcome)
    assert [record.mean for record in records[:3]] == [90.0, 80.0, 70.0]
    figure = draw(experiment, records, planned, outcome)
    assert [axes.get_title() for axes in figure.axes] == ["(a) |C| before truncation", "(b) W after it"]
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), values)


# ---------------------------------------------------------------- the page


def results():
    scores = ((90.0, 89.0), (50.0, 70.0), (80.0, 80.2))
    return [
        Record("digits", row, None, "c", "AC", ours, 1.0, ours - 2, ours + 2, 3, paper, None, ours - paper)
        for row, (ours, paper) in zip(("KTRR", "SSC", "LRR"), scores, strict=True)
    ] + [Record("digits", "KTRR", None, "c", "t2", 5.0, 0.0, 5.0, 5.0, 1, 60.0, None, -55.0)]


def test_page_sets_ours_beside_theirs(settings):
    (settings.output / "tiny.csv").write_text(to_csv(results()))
    (settings.output / "tiny.png").touch()
    page = write_page(settings, settings.output.parent / "remarks.toml")
    text = page.read_text()
    assert page == settings.output.resolve().parent / "reproduction.md"
    assert "Read this." in text
    assert "An honest word." in text
    assert "## Table 1: Not now\n\nNot run yet." in text
    assert "![A tiny table](out/tiny.png)" in text
    assert "All numbers: [csv](out/tiny.csv)" in text
    # three scores compared: in the middle −0.2; one is near; two of the paper's lie in the range of our runs
    assert "| Table 0 | 3 | -0.2 | 1 | 2 | 90.0 | 89.0 |" in text
    assert "| KTRR | 90.00 ± 1.00 | 89.00 | +1.0 |" in text


def test_page_of_times_alone_has_no_line_at_a_glance(settings):
    records = [Record("digits", "KTRR", None, "c", m, 2.0, 0.0, 2.0, 2.0, 1, 3.0, None, -1.0) for m in ("t2", RATIO)]
    (settings.output / "tiny.csv").write_text(to_csv(records))
    text = write_page(settings, settings.output.parent / "remarks.toml").read_text()
    glance = text.split("### At a glance")[1].split("###")[0]
    assert "| Table 0 |" not in glance
    assert "## Table 0: A tiny table" in text


def test_page_without_results_says_nothing_about_any(settings):
    text = write_page(settings, settings.output.parent / "remarks.toml").read_text()
    assert text.endswith("Read this.\n\nNothing has been run yet.\n")


def test_no_word_of_the_page_is_a_typed_result():
    words = tomllib.loads(REMARKS_FILE.read_text(encoding="utf-8"))
    texts = [
        words["introduction"],
        words["reading"],
        words["open"],
        *words["words"].values(),
        *words["reasons"].values(),
    ]
    for text in texts:
        assert not re.search(r"\d\.\d(?!\d)(?!5)", text.replace("0.05", "")), text  # no score
        assert not re.search(r"\d+ (of \d+|points|times)", text), text


def test_page_that_is_kept_is_that_of_the_results_that_are_kept(tmp_path):
    docs = Path(__file__).parents[2] / "docs"
    if not (docs / "reproduction" / "table3.csv").exists():
        pytest.skip("the documentation is not here")
    shutil.copytree(docs / "reproduction", tmp_path / "reproduction")
    page = write_page(Settings(tmp_path / "reproduction", tmp_path / "none"))
    assert page.read_text(encoding="utf-8") == (docs / "reproduction.md").read_text(encoding="utf-8")


# ---------------------------------------------------------------- claims


@pytest.fixture(scope="module")
def printed():
    """Records that have the paper's numbers alone, as ours and as theirs."""
    parameters, found = schedule.load_parameters(), {}
    for file in PAPER.glob("*.csv"):
        experiment = schedule.load_experiment(file.stem)
        records = make_records(experiment, schedule.plan(experiment, parameters), runner.Outcome())
        found[file.stem] = [replace(record, mean=record.paper) for record in records]
    return found


def test_claims_by_the_papers_own_numbers(printed):
    judged = claims.judge(printed)
    assert len(judged) > 60
    assert all(each.paper == each.ours for each in judged if each.claim.printed)
    fails = {each.claim.text for each in judged if each.paper is not None and not each.paper.holds}
    # what an outside reading of the paper had found by hand
    assert {
        "Best on ExYaleB at λ = 0.1, η = 5.",
        "About 80 on COIL20 at 10 dB.",
        "KTRR is 17 / 17 / 26 / 24 points above TRR.",
        "KTRR is 21 points above TRR.",
        "KTRR is 31.78 points above TRR.",
        "All methods are worse than under Gaussian noise (5 % against 50 dB).",
        "It is at least two times faster than the others.",
    } <= fails
    holds = {each.claim.text for each in judged if each.paper is not None and each.paper.holds}
    assert {"Best on COIL20 at λ = 10, η = 4.", "KTRR is 6.13 points above TRR, the second best."} <= holds


def test_claims_without_results_cannot_be_judged():
    assert all(each.ours is None and each.paper is None for each in claims.judge({}))


def test_findings_name_who_is_ahead_and_who_is_below(printed):
    experiment = schedule.load_experiment("table3")
    records = [replace(r, difference=0.0) for r in printed["table3"]]
    (text, *_) = findings(experiment, records)
    assert text == "ExYaleB: KTRR has an accuracy of 84.8, the paper 84.8; it is ahead of all other rows of the paper."
    moved = [
        replace(r, mean=90.0, difference=20.0) if r.row == "TRR" else replace(r, mean=30.0, difference=-4.0)
        for r in records
        if r.row in ("TRR", "LSA")
    ]
    (text, *_) = findings(experiment, [records[0], *moved])
    assert text.endswith(
        "1 of the other rows is ahead of it: TRR 90.0. Below the paper (ours / printed): LSA 30.0 / 34.0."
    )


def test_page_of_a_damaged_table_names_it(settings):
    (settings.output / "tiny.csv").write_text("panel,row\na,b\n")
    with pytest.raises(FileError, match=r"tiny\.csv.*remove it and run the experiment again"):
        write_page(settings, settings.output.parent / "remarks.toml")


def test_page_list_and_run_from_the_command_line(settings, capsys):
    places = ["--home", settings.output.parent, "--output", settings.output, "--cache", settings.cache]

    def command(*arguments):
        assert main([*map(str, [*arguments, *places])]) == 0
        return capsys.readouterr().out

    assert "0/1" in command()
    assert "tiny: 1 cell computed, 0 from the cache" in command("tiny", "page")
    (line, said) = command("tiny", "page").splitlines()
    assert "0 cells computed, 1 from the cache" in line
    assert said == f"page: {settings.output.resolve().parent / 'reproduction.md'}"
    assert "1/1" in command()
