"""What the rivals' own data need: sequences of tracks, and points as their authors' programs prepare them."""

from __future__ import annotations

import numpy as np
import pytest

from reproduction import compute, data, schedule
from reproduction.experiment import check_needs, needs_torch
from subspaces.datasets import make_motions


def write_films(folder, motions=(2, 3, 2)):
    arrays = {}
    for number, k in enumerate(motions):
        arrays[f"film{number}_X"], arrays[f"film{number}_y"] = make_motions(k, 20, 10, random_state=number)
    np.savez(folder / "hopkins155_part.npz", **arrays)


def film_cell(motions, **parameters):
    cuts = [{"name": "k-means", "restarts": 5, "init": "k-means++", "seeds": [0]}]
    points = {"name": data.FILMS, "motions": motions}
    return {"kind": "films", "points": points, "method": "lsa", "parameters": parameters, "cuts": cuts}


def test_every_film_with_so_many_motions_has_one_score(tmp_path):
    write_films(tmp_path)
    result = compute.compute(film_cell([2], rank={"a cluster": 4}), tmp_path)
    assert len(result["scores"]["k-means"]["AC"]) == 2
    assert result["classes"] == 2
    assert min(result["scores"]["k-means"]["AC"]) > 60
    assert len(compute.compute(film_cell([2, 3]), tmp_path)["scores"]["k-means"]["NMI"]) == 3


def test_a_parameter_may_be_so_much_a_cluster(tmp_path):
    write_films(tmp_path, motions=(3,))
    for_each, fixed = (compute.compute(film_cell([3], rank=rank), tmp_path) for rank in ({"a cluster": 4}, 12))
    assert for_each["scores"] == fixed["scores"]


def test_missing_films_are_told_before_anything_is_computed(tmp_path):
    experiment = schedule.load_experiment("rivals")
    with pytest.raises(FileNotFoundError, match=r"rivals needs Hopkins155: .*hopkins155_part.npz is not there"):
        check_needs(experiment, tmp_path)


def test_no_film_with_so_many_motions_is_told(tmp_path):
    write_films(tmp_path, motions=(3,))
    with pytest.raises(ValueError, match=r"no sequence .* has 2 motions"):
        data.load_films({"name": data.FILMS, "motions": [2]}, tmp_path)


def test_points_along_their_principal_axes_are_of_unit_length_before_axes_are_left_out():
    X = np.random.default_rng(0).normal(3, 1, (30, 6))
    whole = data.prepared(X, {"axes": 6, "unit": True})
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1)
    cosines = X @ X.T / np.outer(*2 * [np.linalg.norm(X, axis=1)])
    np.testing.assert_allclose(whole @ whole.T, cosines)
    part = data.prepared(X, {"axes": 2, "unit": True, "constant": True})
    np.testing.assert_allclose(part[:, :2], whole[:, :2])
    np.testing.assert_array_equal(part[:, 2], 1)
    assert data.prepared(X, {}) is X


def test_only_the_rows_that_are_networks_need_torch():
    assert needs_torch(schedule.load_experiment("rivals"))
    assert not needs_torch(schedule.load_experiment("rivals", quick=True))
    assert needs_torch(schedule.load_experiment("fig9", quick=True))
    assert not needs_torch(schedule.load_experiment("table4"))


def test_what_was_chosen_has_no_part_in_a_grid():
    grid = [{"reg": [0.1, 1.0]}, {"graph": ["mass"], "reg": [0.1]}]
    row = {"label": "a", "method": "lsr1", "common": {"affine": True}, "grid": grid}
    row["chosen"] = {"curves": {"graph": "mass", "reg": 10.0}}
    panel = {"name": "p", "data": {"name": "curves"}, "rows": ["a"], "grid": True}
    protocol = {"cuts": [{"name": "k-means", "runs": 1}]}
    experiment = schedule.Experiment("grid", "", "", "table", ["AC"], [panel], protocol)
    found = [item.cell["parameters"] for item in schedule.plan(experiment, {"a": row})]
    assert found == [{"affine": True, **rest} for rest in ({"reg": 0.1}, {"reg": 1.0}, {"graph": "mass", "reg": 0.1})]
