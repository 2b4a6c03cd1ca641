"""``subspaces reproduce``: plans, cells, statistics, tables; what needs a process of its own is in the other file."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reproduction import choice, compute, data, entries, schedule, statistics
from reproduction.experiment import Settings, check_needs, list_experiments, run_experiment
from reproduction.runner import Outcome, run_cells
from reproduction_data import a_cell
from subspaces.datasets.named import NAMED

PARAMETERS = schedule.load_parameters()
EXPERIMENT = """
title = "A tiny table"
paper = "Table 0"
style = "table"
metrics = ["AC", "NMI"]
full = { runs = 3, restarts = 5 }

[[panels]]
name = "curves"
data = { name = "curves" }
rows = ["good", "constant", "k-means"]

[protocol]
cuts = [{ name = "k-means", restarts = 5, runs = 3 }]

[quick]
rows = ["good"]
runs = 1
"""
ROWS = """
[good]
label = "KTRR & friends_1"
method = "ktrr"
common = { reg = 0.01 }
[good.chosen]
curves = { n_nonzero = 8 }

[bad]
label = "bad"
method = "ktrr"
common = { reg = -1.0 }

[constant]
label = "constant label"
method = "constant"
deterministic = true

[k-means]
label = "k-means"
method = "k-means"
"""


@pytest.fixture
def settings(tmp_path):
    folder = tmp_path / "experiments"
    folder.mkdir()
    (folder / "tiny.toml").write_text(EXPERIMENT)
    (tmp_path / "parameters.toml").write_text(ROWS)
    return Settings(
        output=tmp_path / "out",
        cache=tmp_path / "cells",
        experiments=folder,
        parameters=tmp_path / "parameters.toml",
    )


# ---------------------------------------------------------------- experiments and parameters as they are shipped


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", schedule.experiment_names())
def test_every_experiment_is_planned(name, quick):
    experiment = schedule.load_experiment(name, quick=quick)
    planned = schedule.plan(experiment, PARAMETERS)
    assert planned
    assert len(planned) <= len(schedule.plan(schedule.load_experiment(name), PARAMETERS))
    assert all(item.cell["points"]["name"] in {*NAMED, data.FILMS} for item in planned)
    assert all(json.loads(entries.canonical(item.cell)) == item.cell for item in planned)


@pytest.mark.parametrize("name", [path.stem for path in sorted(statistics.PAPER.glob("*.csv"))])
def test_every_published_number_has_its_place(name):
    experiment = schedule.load_experiment(name)
    planned = {(item.panel, item.row, item.x) for item in schedule.plan(experiment, PARAMETERS)}
    for panel, row, x, metric in statistics.read_paper(name):
        assert (panel, row, x) in planned
        assert metric in experiment.metrics


def test_chosen_settings_are_the_best_of_their_grids():
    choices = choice.read_chosen(schedule.PARAMETERS.with_name(schedule.CHOSEN))
    grids = {name: list(schedule.grid(row)) for name, row in PARAMETERS.items() if "grid" in row}
    by_rule = [(row, name, each) for row, by_data in choices.items() for name, each in by_data.items() if each["tried"]]
    assert by_rule
    for row, name, each in by_rule:
        assert each["setting"] in grids[row], (row, name)
        assert each["tried"] == len(grids[row]), (row, name)
        assert schedule.chosen(PARAMETERS[row], {"name": name}).items() >= each["setting"].items()
    results = Path(__file__).parents[2] / "docs" / "reproduction" / "grid.csv"
    if results.exists():
        planned = schedule.plan(schedule.load_experiment("grid"), PARAMETERS)
        again = choice.choose(planned, statistics.from_csv(results.read_text(encoding="utf-8")))
        assert {(row, name): each["setting"] for row, name, each in by_rule} == {
            (row, name): each["setting"] for row, by_data in again.items() for name, each in by_data.items()
        }


def test_all_methods_of_the_paper_have_grids_of_one_size():
    thirteen = schedule.load_experiment("table3").panels[0]["rows"][:13]
    assert {len(list(schedule.grid(PARAMETERS[name]))) for name in thirteen} == {12}


def test_settings_are_chosen_on_draws_that_no_table_reports():
    def draws(name):
        cells = (item.cell["points"] for item in schedule.plan(schedule.load_experiment(name), PARAMETERS))
        return {
            (points["name"], key, points[key]) for points in cells for key in ("draw", "noise_seed") if key in points
        }

    chosen_on = draws("grid")
    assert {(name, key) for name, key, _ in chosen_on} == {
        *(("usps", "draw"), ("mnist", "draw"), ("yaleb", "noise_seed"), ("coil20", "noise_seed"))
    }
    for name in ("table2", "table5", "table6", "table7", "fig7", "fig8"):
        assert draws(name)
        assert not chosen_on & draws(name)


def test_tables_and_figures_ask_for_the_whole_protocol_in_pieces():
    for name, runs in {"table3": 10, "table5": 10, "table7": 10, "fig3": 50, "fig7": 50, "fig5": 50}.items():
        experiment = schedule.load_experiment(name)
        planned = [item for item in schedule.plan(experiment, PARAMETERS) if item.row == "KTRR" and item.panel != "(a)"]
        place = [item for item in planned if (item.panel, item.x) == (planned[0].panel, planned[0].x)]
        first = place[0].cell["cuts"][0]["name"]
        cuts = [cut for item in place for cut in item.cell["cuts"] if cut["name"] == first]
        assert sum(len(cut["seeds"]) for cut in cuts) == runs == place[0].runs
        assert len(place) > 1
        assert [item.turn for item in place] == list(range(len(place)))
        assert place[0].short == ""


def test_most_special_setting_wins():
    row = {"common": {"a": 1}, "chosen": {"yaleb": {"b": 1}, "yaleb-10": {"b": 2}, "yaleb-10-gaussian": {"b": 3}}}
    assert schedule.chosen(row, {"name": "yaleb"}) == {"a": 1, "b": 1}
    assert schedule.chosen(row, {"name": "yaleb", "first": 10}) == {"a": 1, "b": 2}
    assert schedule.chosen(row, {"name": "yaleb", "first": 10, "corruption": "gaussian"}) == {"a": 1, "b": 3}
    assert schedule.chosen(row, {"name": "coil20"}) == {"a": 1}


def test_unknown_experiment_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean table3"):
        schedule.load_experiment("tabel3")


# ---------------------------------------------------------------- cells


def test_name_follows_every_input(tmp_path):
    base = a_cell()
    changed = [
        a_cell(method="trr"),
        a_cell(parameters={"reg": 0.02, "n_nonzero": 8}),
        a_cell(points={"name": "digits"}),
        a_cell(version="2"),
        a_cell(code=2),
        a_cell(cuts=[{**base["cuts"][0], "seeds": [0, 2]}]),
    ]
    paths = {entries.cell_path(tmp_path, cell) for cell in [base, *changed]}
    assert len(paths) == 1 + len(changed)
    reordered = dict(reversed(base.items()))
    assert entries.cell_path(tmp_path, reordered) == entries.cell_path(tmp_path, base)


def test_a_damaged_file_is_not_believed(tmp_path):
    cell, result = a_cell(), {"scores": {"k-means": {"AC": [1.5]}}}
    assert entries.read_result(tmp_path, cell) is None
    entries.write_result(tmp_path, cell, result)
    assert entries.read_result(tmp_path, cell) == result
    path = entries.cell_path(tmp_path, cell)
    whole = path.read_text()
    for damaged in (whole[: len(whole) // 2], whole.replace("1.5", "9.5"), "", "[]", whole.replace("ktrr", "trr")):
        path.write_text(damaged)
        assert entries.read_result(tmp_path, cell) is None


def test_a_cell_is_the_fit_it_describes():
    """The graph is computed once and cut with other seeds: the same labels as whole fits give."""
    from subspaces import KTRR
    from subspaces.engine.run import run
    from subspaces.metrics import accuracy

    cell = a_cell(parameters={"reg": 0.01, "n_nonzero": 8})
    X, y = data.load_points(cell["points"])
    result = compute.compute(cell)
    plan = KTRR(3, reg=0.01, n_nonzero=8, n_init=3).plan(X)
    for seed, found in zip([0, 1], result["scores"]["k-means"]["AC"], strict=True):
        labels = run(replace(plan, seed=seed), X).labels
        assert found == pytest.approx(100 * accuracy(y, labels), abs=1e-4)
    assert 0 <= result["t1"] <= result["t2"]
    assert result["n"] == 300
    assert result["classes"] == 3


def test_constant_label():
    result = compute.compute(a_cell(method="constant", parameters={}))
    assert result["scores"]["k-means"]["AC"] == [pytest.approx(100 / 3, abs=1e-3)] * 2


def test_points_of_a_cell():
    X, y = data.load_points({"name": "digits", "first": 3, "per_class": 20, "draw": 1})
    assert np.bincount(y).tolist() == [20, 20, 20]
    same, _ = data.load_points({"name": "digits", "first": 3, "per_class": 20, "draw": 1})
    other, _ = data.load_points({"name": "digits", "first": 3, "per_class": 20, "draw": 2})
    assert np.array_equal(X, same)
    assert not np.array_equal(X, other)
    noisy = {"name": "digits", "first": 3, "corruption": "salt_and_pepper", "level": 25, "noise_seed": 0}
    clean, _ = data.load_points({"name": "digits", "first": 3})
    damaged, _ = data.load_points(noisy)
    assert 0.1 < np.mean(damaged != clean) <= 0.25
    with pytest.raises(ValueError, match="corruption must be"):
        data.load_points({**noisy, "corruption": "rain"})


def test_an_error_leaves_the_other_cells_alone(tmp_path):
    good, bad = a_cell(), a_cell(parameters={"reg": -1.0})
    outcome = run_cells([bad, good], tmp_path)
    assert outcome.result(good) is not None
    assert outcome.result(bad) is None
    assert ["'reg'" in error for error in outcome.errors.values()] == [True]
    again = run_cells([bad, good], tmp_path)
    assert (again.n_found, again.n_computed, len(again.errors)) == (1, 0, 1)


# ---------------------------------------------------------------- statistics and tables


def test_run_writes_everything_and_the_second_is_instant(settings):
    first = run_experiment("tiny", settings)
    assert (first.outcome.n_found, first.outcome.n_computed) == (0, 3)
    assert {file.suffix for file in first.files} == {".csv", ".md", ".tex"}
    assert all(file.exists() for file in first.files)
    second = run_experiment("tiny", settings)
    assert (second.outcome.n_found, second.outcome.n_computed) == (3, 0)
    assert statistics.to_csv(second.records) == statistics.to_csv(first.records)
    (line,) = list_experiments(settings)
    assert (line.n_cells, line.n_cached, line.data) == (3, 3, ["three curves"])


def test_runs_are_kept_beside_the_table_and_gone_on_with(settings):
    late = replace(settings, until=0.0)
    assert run_experiment("tiny", late).outcome.n_left == 3
    first = run_experiment("tiny", settings)
    kept = settings.output / "runs" / "tiny.jsonl"
    text = kept.read_text()
    assert len(text.splitlines()) == 3
    elsewhere = replace(late, cache=settings.cache / "other")
    again = run_experiment("tiny", elsewhere)
    assert (again.outcome.n_found, again.outcome.n_left) == (3, 0)
    assert statistics.to_csv(again.records) == statistics.to_csv(first.records)
    kept.write_text(text.replace('"AC":[', '"AC":[1,', 1) + "not json\n")  # what was changed is not believed
    assert run_experiment("tiny", elsewhere).outcome.n_left == 1


def test_rows_with_fewer_runs_than_the_paper_are_marked(settings):
    experiment = schedule.load_experiment("tiny", settings.experiments)
    planned = [
        replace(item, runs=4) for item in schedule.plan(experiment, schedule.load_parameters(settings.parameters))
    ]
    outcome = run_cells([item.cell for item in planned], settings.cache)
    marks = {record.row: record.mark for record in statistics.make_records(experiment, planned, outcome)}
    assert marks["KTRR & friends_1"] == "3 runs"


def test_quick_never_takes_the_place_of_the_real_thing(settings):
    run = run_experiment("tiny", Settings(**{**vars(settings), "quick": True}))
    assert {file.stem for file in run.files} == {"tiny-quick"}
    assert run.records[0].mark == "1 run"


def test_missing_data_says_what_to_do(tmp_path, settings):
    experiment = schedule.load_experiment("table3")
    with pytest.raises(FileNotFoundError, match=r"table3 needs Extended Yale B: .*Put .*yaleb_32x32\.npz"):
        check_needs(experiment, tmp_path)


def test_deep_experiment_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    experiment = schedule.load_experiment("fig9")
    monkeypatch.setattr(data, "load_whole", lambda name, home: None)
    with pytest.raises(ImportError, match=r"fig9 trains networks: .*pip install subspaces"):
        check_needs(experiment, None)


@pytest.mark.parametrize("name", ["fig1", "fig2", "fig4", "fig6", "fig7", "fig5", "fig9"])
def test_figures_are_drawn_even_of_nothing(name):
    pytest.importorskip("matplotlib")
    from reproduction.figures import draw

    experiment = schedule.load_experiment(name, quick=True)
    planned = schedule.plan(experiment, PARAMETERS)
    records = statistics.make_records(experiment, planned, Outcome())
    assert draw(experiment, records, planned, Outcome()) is not None


def test_real_data(data_home, tmp_path):
    """COIL20 as in Table 4, small: KTRR's row is the paper's within its spread."""
    settings = Settings(output=tmp_path / "out", cache=tmp_path / "cells", data_home=data_home, quick=True)
    run = run_experiment("table4", settings)
    ktrr = next(record for record in run.records if record.row == "KTRR" and record.metric == "AC")
    assert ktrr.difference is not None
    assert abs(ktrr.difference) < 3
