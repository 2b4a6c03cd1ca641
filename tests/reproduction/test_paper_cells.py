"""Plans, points and cells: what is run, that it is what it says, and that nothing damaged is believed."""

from __future__ import annotations

import sys
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reproduction import cells, compute, plan, records
from reproduction.run import Settings
from subspaces import KTRR, registry
from subspaces.datasets import make_motions
from subspaces.datasets.loaders import NAMED
from subspaces.engine.run import run
from subspaces.metrics import accuracy

ROWS = plan.load_parameters()
DIGITS = {"name": "digits", "first": 2, "per_class": 12, "draw": 0}


def a_cell(kind="cut", method="ktrr", points=DIGITS, **parameters):
    cuts = [{"name": "cut", "restarts": 3, "init": "k-means++", "seeds": [0, 1]}]
    return {"kind": kind, "points": points, "method": method, "parameters": parameters, "cuts": cuts}


# ---------------------------------------------------------------- the experiments as they are shipped


def test_every_experiment_is_planned_and_every_published_number_has_its_place():
    for name in plan.experiment_names():
        experiment = plan.load_experiment(name)
        planned = plan.plan(experiment, ROWS)
        assert set(compute.data_needed(experiment)) <= {*NAMED, compute.HOPKINS}
        places = {(item.panel, item.row, item.x, metric) for item in planned for metric in experiment.metrics}
        assert set(records.read_paper(name)) <= places


def test_chosen_settings_are_the_best_of_grids_of_one_size():
    thirteen = plan.load_experiment("table3").panels[0]["rows"][:13]
    assert {len(list(plan.grid(ROWS[name]))) for name in thirteen} == {12}
    results = Path(__file__).parents[2] / "docs" / "reproduction" / "grid.csv"
    kept = records.from_csv(results.read_text(encoding="utf-8"))
    again = records.choose(plan.plan(plan.load_experiment("grid"), ROWS), kept)
    shipped = plan.read_chosen(plan.HERE / plan.CHOSEN)
    found, expected = (
        {
            (row, name): each["setting"]
            for row, by_data in all_.items()
            for name, each in by_data.items()
            if each["tried"]
        }
        for all_ in (again, shipped)
    )
    assert found == expected


def test_a_grid_into_a_folder_chooses_for_that_folder_alone(tmp_path):
    earlier = tmp_path / "earlier.toml"
    earlier.write_text('[ktrr.usps]\ntried = 12\nsetting = { graph = "column", reg = 0.25, affine = false }\n')
    records.write_chosen(tmp_path / plan.CHOSEN, earlier, [], [])  # a grid that is not whole
    setting = {"graph": "column", "reg": 0.25, "affine": False}
    assert plan.read_chosen(tmp_path / plan.CHOSEN) == {"ktrr": {"usps": {"tried": 12, "setting": setting}}}
    assert plan.load_parameters(chosen=Settings(tmp_path).chosen)["ktrr"]["chosen"]["usps"] == setting
    assert ROWS["ktrr"]["chosen"]["usps"] != setting


def test_settings_are_chosen_on_draws_that_no_table_reports():
    def draws(name):
        points = [item.cell["points"] for item in plan.plan(plan.load_experiment(name), ROWS)]
        return {(each["name"], key, each[key]) for each in points for key in ("draw", "noise_seed") if key in each}

    for name in ("table2", "table5", "table6", "table7", "fig7", "fig8"):
        assert draws(name)
        assert not draws("grid") & draws(name)


def test_every_method_takes_the_parameters_of_its_rows():
    """Of kept cells, too: a parameter that got another name would fail every cell of its rows."""
    for name in plan.experiment_names():
        for item in plan.plan(plan.load_experiment(name), ROWS):
            if item.cell["method"] in registry.names(*registry.SHALLOW):
                model = compute.make_model(item.cell["method"], compute.parameters(item.cell), n_clusters=3, seed=0)
                if not any(isinstance(value, dict) for value in compute.parameters(item.cell).values()):
                    model._validate_params()


def test_the_whole_protocol_is_asked_for_in_pieces():
    for name, runs in {"table3": 10, "table7": 10, "fig3": 50, "fig7": 50}.items():
        planned = plan.plan(plan.load_experiment(name), ROWS)
        planned = [item for item in planned if item.row == "KTRR" and item.panel != "(a)"]
        place = [item for item in planned if (item.panel, item.x) == (planned[0].panel, planned[0].x)]
        assert sum(len(item.cell["cuts"][0]["seeds"]) for item in place) == runs == place[0].runs
        assert [item.turn for item in place] == list(range(len(place)))


def test_missing_data_and_networks_are_told_before_anything_is_computed(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"table3 needs Extended Yale B: .*Put .*yaleb_32x32\.npz"):
        compute.check_needs(plan.load_experiment("table3"), tmp_path)
    with pytest.raises(FileNotFoundError, match=r"rivals needs Hopkins155: .*hopkins155_part.npz is not there"):
        compute.check_needs(plan.load_experiment("rivals"), tmp_path)
    assert not compute.needs_torch(plan.load_experiment("table3"))
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(compute, "load_whole", lambda name, home: None)
    with pytest.raises(ImportError, match=r"fig9 trains networks: .*pip install subspaces"):
        compute.check_needs(plan.load_experiment("fig9"), None)


# ---------------------------------------------------------------- cells


def test_a_changed_input_is_another_cell_and_a_damaged_line_is_not_believed(tmp_path):
    base, other = a_cell(reg=0.01), a_cell(reg=0.02)
    digests = {cells.digest(cell) for cell in (base, other, a_cell("fit", reg=0.01), {**base, "code": 2})}
    assert len(digests) == 4
    assert cells.digest(dict(reversed(base.items()))) == cells.digest(base)
    path, result = tmp_path / "runs.jsonl", {"scores": {"cut": {"AC": [1.5]}}}
    cells.add_run(path, "a", result)
    cells.add_run(path, "b", {**result, "X": [1], "chosen": []})
    assert cells.read_runs(path) == {"a": result, "b": {**result, "X": [1]}}
    whole = path.read_bytes()
    for damaged in (whole.replace(b"1.5", b"9.5"), b"null\n[]\n\xff\n" + b"[" * 100_000):
        path.write_bytes(damaged)
        assert cells.read_runs(path) == {}


def test_a_cell_is_the_fit_it_describes():
    """The graph is computed once and cut with other seeds: the same labels as whole fits give."""
    cell = a_cell(points={"name": "curves"}, reg=0.01, n_nonzero=8)
    X, y = compute.load_points(cell["points"])
    result = compute.compute(cell)
    fitted = KTRR(3, reg=0.01, n_nonzero=8, n_init=3).plan(X)
    expected = [100 * accuracy(y, run(replace(fitted, seed=seed), X).labels) for seed in (0, 1)]
    assert result["scores"]["cut"]["AC"] == pytest.approx(expected, abs=1e-4)
    assert 0 <= result["t1"] <= result["t2"]
    assert (result["n"], result["classes"]) == (300, 3)


def test_a_class_of_ones_own_is_a_method_and_its_file_is_code(tmp_path, monkeypatch):
    module, codes = tmp_path / "own_module.py", []
    monkeypatch.syspath_prepend(tmp_path)
    for line in ("", "# another line\n"):
        module.write_text("from subspaces import KTRR\n\n\nclass Own(KTRR):\n    pass\n" + line)
        compute.code_of.cache_clear()
        result = compute.compute(a_cell("fit", "own_module:Own", reg=0.01))
        codes.append(result["made_by"])
        assert result["scores"]["cut"]["AC"] == compute.compute(a_cell("fit", "ktrr", reg=0.01))["scores"]["cut"]["AC"]
    assert codes[0] != codes[1]


def test_cells_that_are_fitted_anew_for_every_seed():
    found = [compute.compute(a_cell("fit", method)) for method in ("constant", "k-means", "lsr2")]
    assert [len(each["scores"]["cut"]["seconds"]) for each in found] == [2, 2, 2]
    assert found[0]["scores"]["cut"]["AC"] == [50.0, 50.0]
    automatic = compute.compute(a_cell("fit", "automatic"))
    assert all("reg" in text for text in automatic["chosen"])


def test_deep_methods_are_fitted_to_images(monkeypatch):
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install subspaces[deep]")
    monkeypatch.setitem(compute.IMAGE_SHAPES, "digits", (8, 8))
    fitted = []
    for name in registry.names("deep"):
        cls = registry.load(name)
        monkeypatch.setattr(cls, "fit", lambda self, X: fitted.append((type(self), X.shape)) or self)
        monkeypatch.setattr(cls, "labels_", np.arange(24) % 2, raising=False)
        compute.compute(a_cell("fit", name))
        assert fitted[-2:] == [(cls, (24, 8, 8))] * 2


def test_cells_for_pictures():
    found = compute.compute(a_cell("coefficients", reg=0.5, n_nonzero=3, scaling="none"))
    C, W = np.array(found["C"]), np.array(found["W"])
    assert np.count_nonzero(C) > 3 * 24 >= np.count_nonzero(W) / 2  # before and after the truncation
    y = compute.load_points(DIGITS)[1]
    inside = 100 * W[y[:, None] == y].sum() / W.sum()
    assert found["scores"]["cut"]["weight inside"] == [pytest.approx(inside, abs=0.1)]
    noisy = {"name": "digits", "first": 2, "corruption": "salt_and_pepper", "level": 25, "noise_seed": 0}
    assert 5 < compute.compute(a_cell("samples", "constant", noisy))["scores"]["cut"]["changed (%)"][0] < 25


def test_points_of_a_cell():
    draws = [compute.load_points({**DIGITS, "first": 3, "draw": draw}) for draw in (1, 1, 2)]
    assert np.bincount(draws[0][1]).tolist() == [12, 12, 12]
    assert np.array_equal(draws[0][0], draws[1][0])
    assert not np.array_equal(draws[0][0], draws[2][0])
    clean, noisy = {"name": "digits", "first": 2}, {"corruption": "gaussian", "level": 20, "noise_seed": 0}
    (X, _), (damaged, _) = compute.load_points(clean), compute.load_points({**clean, **noisy})
    assert 10 * np.log10(np.mean(X**2) / np.mean((damaged - X) ** 2)) == pytest.approx(20, abs=1)
    with pytest.raises(ValueError, match="corruption must be"):
        compute.load_points({**clean, **noisy, "corruption": "rain"})
    whole = compute.prepared(X + 1, {"axes": 64, "unit": True})
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1)  # of unit length before axes are left out
    part = compute.prepared(X + 1, {"axes": 2, "unit": True, "constant": True})
    np.testing.assert_allclose(part, np.column_stack([whole[:, :2], np.ones(len(X))]))


def test_every_sequence_with_so_many_motions_has_one_score(tmp_path):
    sequences = {}
    for number, k in enumerate((2, 3, 2)):
        sequences[f"film{number}_X"], sequences[f"film{number}_y"] = make_motions(k, 20, 10, random_state=number)
    np.savez(tmp_path / "hopkins155_part.npz", **sequences)

    def scores(motions, rank):
        cell = a_cell("films", "lsa", {"name": compute.HOPKINS, "motions": motions}, rank=rank)
        cell["cuts"][0]["seeds"] = [0]
        return compute.compute(cell, tmp_path)["scores"]["cut"]["AC"]

    assert len(scores([2], {"a cluster": 4})) == 2
    assert len(scores([2, 3], 4)) == 3
    assert scores([3], {"a cluster": 4}) == scores([3], 12)
    with pytest.raises(ValueError, match=r"no sequence .* has 5 motions"):
        scores([5], 4)


def test_an_error_leaves_the_other_cells_alone(tmp_path):
    good, bad = a_cell(), a_cell(reg=-1.0)
    outcome = cells.run_cells([bad, good], tmp_path / "runs.jsonl")
    assert outcome.result(good) is not None
    assert "'reg'" in outcome.errors[cells.digest(bad)]
    again = cells.run_cells([bad, good], tmp_path / "runs.jsonl")
    assert (again.n_found, again.n_computed, len(again.errors)) == (1, 0, 1)


def test_a_killed_worker_is_reported_and_the_others_go_on(tmp_path, monkeypatch):
    class Pool:
        n_asked = 0

        def submit(self, function, *arguments):
            future, self.n_asked = Future(), self.n_asked + 1
            if self.n_asked == 1:
                future.set_exception(BrokenProcessPool("killed"))
            else:
                future.set_result(function(*arguments))
            return future

        def shutdown(self):
            pass

    monkeypatch.setattr(cells, "ProcessPoolExecutor", lambda *_, **__: Pool())
    killed, good = a_cell("fit", "k-means"), a_cell("fit", "constant")
    outcome = cells.run_cells([killed, good], tmp_path / "runs.jsonl", jobs=2)
    assert outcome.result(good) is not None
    assert "its worker was killed, perhaps for lack of memory" in outcome.errors[cells.digest(killed)]
