"""Tables as people have them: decimal commas, titles, comments, trailing commas, columns of text."""

from __future__ import annotations

import numpy as np
import pytest

from io_data import refusal, write
from subspaces.app.files import FileError, read_table
from subspaces.app.files.cells import find_decimal
from subspaces.app.files.head import count_titles
from subspaces.app.files.text import find_delimiter


def read(tmp_path, text, name="x.csv", **options):
    return read_table(write(tmp_path / name, text), **options)


# ------------------------------------------------------------------ decimals


@pytest.mark.parametrize(
    "text",
    [
        "a;b\n1,5;-2,25\n3;4e2\n",
        "a\tb\n1,5\t-2,25\n3\t4e2\n",
        '"a","b"\n"1,5","-2,25"\n3,4e2\n',
        "1,5;-2,25\n3;4e2\n",
        "# by a device\na;b\n1,5;-2,25\n3;4e2\n",
    ],
)
def test_decimal_commas_are_found(tmp_path, text):
    data = read(tmp_path, text)
    np.testing.assert_array_equal(data.X, [[1.5, -2.25], [3, 400]])
    assert "numbers are written with decimal commas in this file" in data.notes


def test_decimal_commas_can_be_said(tmp_path):
    text = "a;b\n1,234;1\n2,345;2\n"
    told = "line 2, column 'a': '1,234' may be 1234 (decimal=\".\") or 1.234 (decimal=\",\"); say which"
    assert told in refusal(write(tmp_path / "x.csv", text))
    np.testing.assert_array_equal(read(tmp_path, text, decimal=".").X, [[1234, 1], [2345, 2]])
    np.testing.assert_array_equal(read(tmp_path, text, decimal=",").X, [[1.234, 1], [2.345, 2]])
    grouped = read(tmp_path, "a;b\n1.234.567,5;1.000\n2;3\n", decimal=",")
    np.testing.assert_array_equal(grouped.X, [[1234567.5, 1000], [2, 3]])
    with pytest.raises(ValueError, match=r"decimal must be '\.' or ','; got 'x'"):
        read(tmp_path, text, decimal="x")


def test_points_are_never_taken_for_thousands_unasked(tmp_path):
    assert "'1.234' may be" in refusal(write(tmp_path / "x.csv", "a;b\n1,5;2\n1.234;3\n"))
    assert find_decimal([["1.234", "1,5"]]) == "?"
    assert find_decimal([["1.234,5", "1,5", "1.234"]]) == ","
    assert find_decimal([["1,234", "12,345"]]) == ""
    assert find_decimal([["0,234"]]) == ","
    assert find_decimal([["a, b", ","]]) == ""


# ------------------------------------------------------------------ what separates cells


def test_text_files_find_what_separates_their_cells(tmp_path):
    for text in ("a b\n1 2\n3 4\n", "a\tb\n1\t2\n3\t4\n", "a,b\n1,2\n3,4", "a;b\n1;2\n3;4", "  a   b\n 1.0  2\n3 4\n"):
        data = read(tmp_path, text, "x.txt")
        np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
        assert data.feature_names == ["a", "b"]
    data = read(tmp_path, "1,5 2,5\n3,5 4,5\n", "x.txt")
    np.testing.assert_array_equal(data.X, [[1.5, 2.5], [3.5, 4.5]])


def test_what_separates_cells_is_what_makes_a_table():
    assert find_delimiter(["x,y,tags\n", "1,2,a;b\n", "3,4,c;d\n"], ",;\t") == ","
    assert find_delimiter(["Results, second week\n", "a;b;c\n", "1,5;2;3\n"], ",;\t") == ";"
    assert find_delimiter(["a\n", "1\n"], ",;\t") == ","
    assert find_delimiter([], ",;\t") == ","


# ------------------------------------------------------------------ above the table


@pytest.mark.parametrize(
    ("above", "told"),
    [
        ("# exported by Device 3000\n", "line 1 is a comment and was left out"),
        ('# 3" pipes\n#\n\n% more, of it\n', "lines 1 to 4 are comments and were left out"),
        ("Ward 3\n", "line 1, above the table, was left out ('Ward 3')"),
        ("Ward 3,,\n,,\n", "lines 1 to 2, above the table, were left out ('Ward 3', ...)"),
        ("Ward 3,,\nMay 2024,,\n,,\n", "lines 1 to 3, above the table, were left out ('Ward 3', ...)"),
        ("Ward 3\n\nmade,in May\n", None),
        ("Ward 3,,,\n\nmade,,May,\n", None),
    ],
)
def test_lines_above_the_table_are_left_out(tmp_path, above, told):
    table = "a,b,c\n1,2,3\n4,5,6\n" if told else "a,b,c,d\n1,2,3,9\n4,5,6,9\n"
    data = read(tmp_path, above + table)
    np.testing.assert_array_equal(data.X[:, :3], [[1, 2, 3], [4, 5, 6]])
    assert data.feature_names[:3] == ["a", "b", "c"]
    assert told is None or told in data.notes
    line = len((above + table).splitlines()) + 1
    assert f"line {line}, column 'a': 'x' is not a number; correct it" in refusal(
        write(tmp_path / "y.csv", above + table + "x" + table.splitlines()[-1][1:] + "\n")
    )


def test_what_is_no_title():
    assert count_titles([["a", "b"], ["1", "2", "3"], ["1", "2", "3"]]) == 0
    assert count_titles([["a"], ["1", "5"], ["2", "5"]]) == 0  # a column with decimal commas
    assert count_titles([["a", "", ""], ["1", "2", "3"], ["1", "2", "3"]]) == 0
    assert count_titles([["7"], ["1", "2", "3"], ["1", "2", "3"]]) == 0
    gaps = [["Ann", "", "", ""], ["Ben", "", "", ""]]
    assert count_titles([*gaps, ["Cem", "1", "2", "3"], ["Dee", "1", "2", "3"]]) == 0


# ------------------------------------------------------------------ trailing commas


@pytest.mark.parametrize(
    "text", ["a,b,\n1,2,\n3,4,\n", "a,b\n1,2,\n3,4,\n", "a,b,\n1,2\n3,4\n", "a,b,,,\n1,2,,,\n3,4,,,\n", "1,2,\n3,4,\n"]
)
def test_trailing_commas_are_no_column(tmp_path, text):
    data = read(tmp_path, text)
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
    assert data.ids is None


def test_trailing_commas_with_something_behind_them(tmp_path):
    path = write(tmp_path / "x.csv", "a,b,\n" + "1,2,\n" * 60 + "1,2,3\n")
    assert "line 62: 3 cells where the first line has 2" in refusal(path)
    assert read(tmp_path, "a,b\n1,\n2,\n").notes == ("left out: b (empty)",)  # named, so a column


# ------------------------------------------------------------------ columns of text


ROWS = "sample,x,where,tissue,y\n" + "".join(
    f"S{i},{i / 7},bed {i % 4 + 1},{'liver' if i % 2 else 'lung'},{i * i}\n" for i in range(9)
)


def test_columns_of_text_are_refused_together(tmp_path):
    path = write(tmp_path / "x.csv", ROWS)
    with pytest.raises(FileError) as caught:
        read_table(path)
    expected = "2 columns hold text, not numbers ('where', 'tissue'); keep them out of the points with"
    assert f'{expected} label="tissue" and ignore=["where"]' in str(caught.value)
    assert caught.value.remedy == {"label": "tissue", "ignore": ["where"]}
    data = read_table(path, **caught.value.remedy)
    assert data.ids == [f"S{i}" for i in range(9)]
    assert data.feature_names == ["x", "y"]
    assert data.notes == ("left out: sample (id)",)


def test_names_must_differ_to_the_end(tmp_path):
    rows = [f"p{i},{i}\n" for i in range(80)]
    assert read(tmp_path, "name,x\n" + "".join(rows)).ids[-1] == "p79"
    text = refusal(write(tmp_path / "y.csv", "name,x\n" + "".join(rows) + rows[3]))
    assert "line 2, column 'name': 'p0' is not a number; use label=\"name\", id=\"name\" or" in text
    assert "'name'" in refusal(write(tmp_path / "z.csv", "name,x\n" + "".join(rows[:2])))  # two prove nothing


def test_parquet_columns_of_text(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"name": [f"p{i}" for i in range(80)], "x": list(range(80)), "t": ["a", "b"] * 40, "d": ["c"] * 80}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    assert "2 columns hold text, not numbers ('t', 'd')" in refusal(tmp_path / "x.parquet")
    data = read_table(tmp_path / "x.parquet", label="t", ignore=["d"])
    assert data.ids == columns["name"]
    assert data.notes == ("left out: name (id)",)
    pq.write_table(pa.table({**columns, "name": [*columns["name"][:-1], "p3"]}), tmp_path / "x.parquet")
    assert "column 'name': 'p0' is not a number" in refusal(tmp_path / "x.parquet", label="t", ignore=["d"])


@pytest.mark.parametrize("cell", ["n.d.", "nd", "N/D", "n.a.", "<NA>", "--", "–", ".", "missing"])
def test_what_people_write_for_nothing(tmp_path, cell):
    """A laboratory's "not determined" is a gap to settle, not a column of text to leave out."""
    text = f"a,b\n1,2\n{cell},3\n5,6\n"
    assert "missing" in refusal(write(tmp_path / "x.csv", text))
    np.testing.assert_array_equal(read(tmp_path, text, missing="mean").X, [[1, 2], [3, 3], [5, 6]])


@pytest.mark.parametrize("text", ["a;b\n79,3%;2\n12 %;3\n", "a,b\n79.3%,2\n12 %,3\n", "a;b\n79,3 %;2\n0,12;3\n"])
def test_per_cent_is_what_a_workbook_stores(tmp_path, text):
    np.testing.assert_allclose(read(tmp_path, text).X, [[0.793, 2], [0.12, 3]], rtol=1e-15)
