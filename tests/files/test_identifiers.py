"""Columns that are no measurements (identifiers, dates) are left out with a note; measurements stay."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

from subspaces.app.files import read_table

N = 60
RNG = np.random.default_rng(0)
SIZES = {"length": RNG.normal(size=N), "width": RNG.normal(size=N)}
RANDOM = RNG.choice(np.arange(1000, 9999), N, replace=False)
"""Different whole numbers in a wide range."""


def read(folder, columns, **options):
    pd.DataFrame(SIZES | columns).to_csv(folder / "x.csv", index=False)
    return read_table(folder / "x.csv", **options)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Ring", RANDOM),
        ("ring number", RANDOM),
        ("Proben-Nr.", RANDOM),
        ("Patient", RANDOM),
        ("CustomerID", RANDOM // 3),  # some of them twice
        ("count", np.arange(N)),
        ("any", 1000 + 10 * np.arange(N)),
        ("any", RNG.permutation(N) + 501),
        ("any", np.sort(RNG.choice(2 * N, N, replace=False))),
    ],
)
def test_identifiers_are_left_out_and_can_be_kept(tmp_path, name, values):
    data = read(tmp_path, {name: values})
    assert data.feature_names == ["length", "width"]
    assert data.notes == (f'left out: {name} (id); keep=["{name}"] uses it all the same',)
    assert data.ids == (values.tolist() if len(set(values)) == N else None)
    np.testing.assert_array_equal(read(tmp_path, {name: values}, keep=[name]).X[:, 2], values)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("id", RNG.normal(size=N)),  # an inner diameter
        ("heat index", RNG.integers(20, 45, N)),
        ("acid", RANDOM // 100),
        ("age", RNG.integers(20, 70, N)),
        ("NO", RNG.integers(0, 2 * N, N)),
        ("temperature", RNG.permutation(N) - 30),
    ],
)
def test_measurements_stay(tmp_path, name, values):
    data = read(tmp_path, {name: values})
    assert (data.feature_names, data.notes, data.ids) == (["length", "width", name], (), None)


def test_what_an_earlier_run_added_is_no_measurement(tmp_path):
    ours = {"cluster": RANDOM % 3, "confidence": RNG.random(N), "margin (before)": RNG.normal(size=N)}
    data = read(tmp_path, ours)
    assert data.feature_names == ["length", "width"]
    assert all(f"{name} (earlier result)" in data.notes[0] for name in ours)
    assert read(tmp_path, ours, label="cluster").feature_names == ["length", "width"]
    assert read(tmp_path, ours, keep=list(ours)).feature_names == ["length", "width", *ours]
    assert read(tmp_path, {"cluster": ours["cluster"], "margin": RNG.normal(size=N)}).X.shape[1] == 4


def test_different_numbers_in_a_wide_range_stay(tmp_path):
    data = read(tmp_path, {"income": RANDOM})
    assert data.feature_names == ["length", "width", "income"]


def test_ranks_stay(tmp_path):
    ranks = {f"rank{i}": RNG.permutation(N) + 1 for i in range(2)}
    assert read(tmp_path, ranks).feature_names == ["length", "width", *ranks]


def test_few_rows_prove_nothing(tmp_path):
    frame = pd.DataFrame({"dose": np.arange(7), "age": [31, 28, 35, 40, 29, 33, 38], "x": RNG.normal(size=7)})
    frame.to_csv(tmp_path / "x.csv", index=False)
    assert read_table(tmp_path / "x.csv").feature_names == ["dose", "age", "x"]


@pytest.mark.parametrize(
    "day", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%y", "%d %b %Y", "%B %d, %Y", "%Y-%m-%dT%H:%M:%S", "%d/%m/%Y %H:%M", "%H:%M"]
)
def test_dates_are_left_out(tmp_path, day):
    start = datetime.datetime(2024, 5, 3, 7, 30)
    days = [(start + datetime.timedelta(days=i // 2, minutes=i)).strftime(day) for i in range(N)]
    data = read(tmp_path, {"When": [*days[:-1], ""]})
    assert (data.feature_names, data.notes, data.ids) == (["length", "width"], ("left out: When (date)",), None)


def test_dates_and_ids_of_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    days = pd.date_range("2024-01-01", periods=N)
    pd.DataFrame(SIZES | {"Date": days, "Ring": RANDOM}).to_parquet(tmp_path / "x.parquet")
    data = read_table(tmp_path / "x.parquet")
    assert data.feature_names == ["length", "width"]
    assert data.notes == ('left out: Ring (id), Date (date); keep=["Ring"] uses it all the same',)
    assert data.ids == RANDOM.tolist()


def test_names_need_not_be_the_first_column_of_text(tmp_path):
    mails = [f"p{i}@x" for i in range(N)]
    data = read(tmp_path, {"PlantID": ["a", "b", "c"] * 20, "mail": mails, "note": mails})
    assert data.notes == ("left out: mail (id), PlantID (id), note (id)",)
    assert data.ids == mails


def test_a_constant_column_is_noted(tmp_path):
    assert read(tmp_path, {"version": np.full(N, 3)}).notes == ("1 column has one value only: 'version'",)


def test_files_are_read_as_the_first(tmp_path):
    """Whether numbers look like ids must not depend on the file they stand in."""
    frame = pd.DataFrame(SIZES | {"any": RNG.permutation(N)})
    frame[:40].to_csv(tmp_path / "a.csv", index=False)
    frame.assign(any=RANDOM)[40:].to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(ValueError, match="no such"):
        read_table([tmp_path / "a.csv", tmp_path / "c.csv"])
    data = read_table([tmp_path / "b.csv", tmp_path / "a.csv"])
    assert data.feature_names == ["length", "width", "any"]
    frame.assign(any=np.arange(N))[:40].to_csv(tmp_path / "a.csv", index=False)
    data = read_table([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert data.feature_names == ["length", "width"]
    assert data.ids == [str(i) for i in [*range(40), *RANDOM[40:]]]


def test_columns_of_a_file_without_names_are_numbered(tmp_path):
    table = np.column_stack([np.arange(N), RNG.normal(size=(N, 2))])
    np.savetxt(tmp_path / "x.csv", table, delimiter=",")
    data = read_table(tmp_path / "x.csv")
    assert data.feature_names == ["2", "3"]
    np.testing.assert_array_equal(read_table(tmp_path / "x.csv", columns=["3", "2"]).X, table[:, [2, 1]])
