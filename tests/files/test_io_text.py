"""Text files: dialects and headers, and where they are broken."""

from __future__ import annotations

import gzip
import re

import numpy as np
import pandas as pd
import pytest

from io_data import refusal, write
from subspaces.app.files import read_table
from subspaces.app.files.head import looks_like_header

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("x,y", "1,2", True),
        ("1,2", "3,4", False),
        ("5.1,setosa", "4.9,setosa", False),
        ("length,species", "4.9,setosa", True),
        ("0,1,species", "4.9,3,setosa", True),
        (",0,1", "0,4.9,3", True),
        (",1.5,2", "3,4.9,3", False),
        ("nan,1", "2,3", False),
        ("1e-3,+4.", "2,3", False),
        ("a,b", "c,d", True),
        ("2019_04,1", "2019_05,2", False),
    ],
)
def test_header_detection(first, second, expected):
    assert looks_like_header(first.split(","), second.split(",")) is expected


def test_header_can_be_forced(tmp_path):
    path = write(tmp_path / "x.csv", "0,1,2\n3,4,5\n6,7,8\n")
    data = read_table(path)
    assert data.X.shape == (3, 3)
    assert data.feature_names is None
    assert "header=True makes it names" in data.notes[0]
    data = read_table(path, header=True)
    np.testing.assert_array_equal(data.X, [[3, 4, 5], [6, 7, 8]])
    assert data.feature_names == ["0", "1", "2"]


def test_row_names_of_pandas_and_r_are_ids(tmp_path):
    pd.DataFrame([[1.5, 2], [3, 4]]).to_csv(tmp_path / "p.csv")
    data = read_table(tmp_path / "p.csv")
    np.testing.assert_array_equal(data.X, [[1.5, 2], [3, 4]])
    assert data.ids == ["0", "1"]
    path = write(tmp_path / "r.csv", '"","a","name"\n"1",1.5,"p"\n"2",3,"q"\n')
    data = read_table(path, id="name")
    assert data.ids == ["p", "q"]
    assert "left out" in data.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4\n",
        "a,b\r\n1,2\r\n3,4\r\n",
        "a,b\r1,2\r3,4",
        "\ufeffa,b\n1,2\n3,4",
        '"a","b"\n"1",2\n\n 3 , 4 \n\n\n',
        "a;b\n1;2\n3;4\n",
        "a,b\n1e0,2.0\n+3,0x4\n".replace("0x4", "4"),
    ],
)
def test_dialects(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode())
    data = read_table(path)
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
    assert data.feature_names == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ": the file is empty"),
        ("\n\n", ": the file is empty"),
        ("a,b\n", "line 1: there is a header but no rows"),
        ("a,b\n1,2\n1,2,3\n", "line 3: 3 cells where the first line has 2"),
        ("a,b\n1,2\n1\n", "line 3: 1 cell where the first line has 2"),
        ("a,b\n1,2\n\n1,\n", r"line 4, column 'b': missing value; .*\(ignore\)"),
        ("a,b\n1,2\nNA,2\n", "line 3, column 'a': missing value 'NA'"),
        ("a,b\n1,2\n1,nan\n", r"line 3, column 'b': missing value \(NaN\)"),
        ("a,b\n1,2\n1,-inf\n", "line 3, column 'b': -inf is not finite"),
        ("a,b\n1,2\n1,1e999\n", "line 3, column 'b': inf is not finite"),
        ("a,s\n1,cat\n", 'line 2, column \'s\': \'cat\' is not a number; use label="s", id="s" or ignore=\\["s"\\]'),
        ("a,b\n1,2\n3,cat\n", "line 3, column 'b': 'cat' is not a number; correct it, or empty the cell"),
        ("a,b\n1,2019_04\n", "line 2, column 'b': '2019_04' is not a number"),
        ('a,b\n1,2\n1,"2\n', "line 3: the quoting is broken"),
        ("a,[bold]\x1b[31m\n1,2\nx,\x07[red]\n", r"line 3, column 'a': 'x' is not a number"),
        ("a,[bold]\x1b[31m\n1,2\n1,\x07[/red]\n", r"column '\[bold\]\\x1b\[31m': '\\x07\[/red\]' is not"),
        ("a,b\n1,\x00\n", r"'\\x00' is not a number"),
    ],
)
def test_broken_text_is_located(tmp_path, text, expected):
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode())
    assert re.search(expected, refusal(path))


def test_a_label_may_be_missing(tmp_path):
    """It is then one to be found, in every kind of file; classes are what is there."""
    path = write(tmp_path / "x.csv", "a,s\n1,none\n2,-\n")
    assert read_table(path, label="s").classes == ["none", "-"]
    path = write(tmp_path / "x.csv", "a,s\n1,cat\n2,\n")
    assert read_table(path, label="s").y.tolist() == [0, -1]
    assert "column 's': missing label, in every row" in refusal(write(path, "a,s\n1,\n2,\n"), label="s")
    np.savez(tmp_path / "x.npz", X=np.eye(3), y=[1, np.nan, 2])
    assert read_table(tmp_path / "x.npz", label="y").y.tolist() == [0, -1, 1]
    pq.write_table(pa.table({"a": [1, 2], "s": ["p", None]}), tmp_path / "x.parquet")
    assert read_table(tmp_path / "x.parquet", label="s").y.tolist() == [0, -1]
    write(tmp_path / "1.csv", "a,s\n1,p\n2,\n3,q\n")
    write(tmp_path / "2.csv", "a,s\n1,q\n2,\n3,r\n")
    several = read_table([tmp_path / "1.csv", tmp_path / "2.csv"], label="s")
    assert [several.classes[code] if code >= 0 else "" for code in several.y] == ["p", "", "q", "q", "", "r"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("pack", [False, True])
def test_encodings_are_found_by_content(tmp_path, encoding, pack):
    text = ("\ufeff" if encoding in ("utf-16-le", "utf-16-be") else "") + "größe;art\n1,5;é\n2,5;ü\n"
    path = tmp_path / ("x.csv.gz" if pack else "x.csv")
    path.write_bytes(gzip.compress(text.encode(encoding)) if pack else text.encode(encoding))
    data = read_table(path, label="art")
    np.testing.assert_array_equal(data.X, [[1.5], [2.5]])
    assert data.feature_names == ["größe"]
    assert data.classes == ["é", "ü"]
    assert ("the file is not UTF-8 and was read as Windows-1252" in data.notes) is (encoding == "cp1252")


def test_long_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("subspaces.app.files.text.MAX_LINE", 1000)
    path = write(tmp_path / "x.csv", "a,b\n" + "1" * 2000)
    assert "a line of more than 1000 bytes" in refusal(path)


PLAIN = "a,s,b\n" + "".join(f"{i / 3!r},{'xy'[i % 2]},{i / 7!r}\n" for i in range(300))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda text: text + "1,x\n", "line 302: 2 cells"),
        (lambda text: text + "1,x,2,3\n", "line 302: 4 cells"),
        (lambda text: text + "\n1,x,\n", "line 303, column 'b': missing value"),
        (lambda text: text + "1,x,2_0\n", "line 302, column 'b': '2_0' is not a number"),
        (lambda text: text + '1,"x\ny",nan\n', "line 303, column 'b': missing value"),
        (lambda text: text + '1,"x,2\n', "line 302: the quoting is broken"),
        (lambda text: text + "1,x,1e999\n", "line 302, column 'b': inf is not finite"),
    ],
)
def test_fast_and_exact_reading_agree(tmp_path, change, problem):
    """Plain tables go through pyarrow, all others row by row: numbers, lines and classes are the same."""
    plain = read_table(write(tmp_path / "x.csv", PLAIN), label="s", missing="drop")
    gap = read_table(write(tmp_path / "y.csv", PLAIN + "NA,x,1\n"), label="s", missing="drop")
    np.testing.assert_array_equal(plain.X, [[i / 3, i / 7] for i in range(300)])
    np.testing.assert_array_equal(plain.X, gap.X)
    np.testing.assert_array_equal(plain.lines, gap.lines[:-1])
    assert plain.y.tolist() == gap.y.tolist() == [i % 2 for i in range(300)]
    assert problem in refusal(write(tmp_path / "z.csv", change(PLAIN)), label="s")


def test_tables_without_pyarrow(tmp_path, monkeypatch):
    """They were called damaged."""
    monkeypatch.setattr("subspaces.app.files.tables.find_spec", lambda name: None)
    assert read_table(write(tmp_path / "x.csv", PLAIN), label="s").X.shape == (300, 2)


def test_points_know_their_lines(tmp_path):
    """As error messages count them: titles, blank lines, the header and dropped rows are counted too."""
    data = read_table(write(tmp_path / "x.csv", "a,b\n1,2\n\n3,4\nnan,5\n6,7\n"), missing="drop")
    assert data.places == {"line": [2, 4, 6]}
    assert data.names == ["line 2", "line 4", "line 6"]
    assert data.table["lines"].tolist() == [2, 4, 5, 6]
