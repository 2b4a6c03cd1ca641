"""Tables as people send them: every case a file, what is read from it, and what is said about it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from io_data import refusal, write
from subspaces.app.files import FileError, read_labels, read_table, write_labels

openpyxl = pytest.importorskip("openpyxl")

NAMES = ["Sepal Length", "Sepal Width", "Petal Length", "Petal Width"]
X = np.round(np.random.default_rng(3).normal(5, 1, (60, 4)), 1)
BODY = X.tolist()
UNITS = "the row below the names was taken for units ('cm', 'cm', 'cm', 'cm')"
JOINED = "the names of the columns stand in 2 rows and were joined ('Sepal Length', 'Sepal Width', 'Petal Length', "


def book(path, rows, *, first=()):
    made = openpyxl.Workbook()
    made.active.title = "Data"
    for row in rows:
        made.active.append(row)
    for title, others in first:
        sheet = made.create_sheet(title, 0)
        for row in others:
            sheet.append(row)
    made.save(path)
    return path


def text(path, rows, separator=",", encoding="utf-8"):
    lines = [separator.join("" if cell is None else str(cell) for cell in row) for row in rows]
    path.write_bytes("\n".join([*lines, ""]).encode(encoding))
    return path


TOTALS = [["Mean", *X.mean(axis=0).tolist()], ["max:", 9, 9, 9, 9], ["* plants of 1936"]]
PLANTS = [["Plant", *NAMES], *([f"p{i}", *row] for i, row in enumerate(BODY))]
CASES = {
    "units": ([NAMES, ["cm"] * 4, *BODY], [UNITS]),
    "units in brackets": ([NAMES, ["(cm)", "[cm]", "cm", "cm"], *BODY], [UNITS]),
    "merged names": ([["Sepal", None, "Petal", None], ["Length", "Width"] * 2, *BODY], [f"{JOINED}'Petal Width')"]),
    "merged names above the last of three": (
        [
            ["Sepal", None, "Petal", None, None],
            [*["Length", "Width"] * 2, "x"],
            *([*row, row[0] * row[1]] for row in BODY),
        ],
        [f"{JOINED}'Petal Width' and 1 more)"],
    ),
    "repeated names": (
        [["Sepal", "Sepal", "Petal", "Petal"], ["Length", "Width"] * 2, *BODY],
        [f"{JOINED}'Petal Width')"],
    ),
    "merged names and units": (
        [["Sepal", None, "Petal", None], ["Length", "Width"] * 2, ["cm"] * 4, *BODY],
        [f"{JOINED}'Petal Width')", UNITS],
    ),
    "title": ([["Iris", None, None, None], NAMES, *BODY], ["line 1, above the table, was left out ('Iris')"]),
    "totals": ([*PLANTS, *TOTALS[:1]], ["line 62, below the table, was left out ('Mean')", "left out: Plant (id)"]),
    "totals and notes": (
        [*PLANTS, *TOTALS],
        ["lines 62 to 64, below the table, were left out ('Mean', ...)", "left out: Plant (id)"],
    ),
    "note": (
        [NAMES, *BODY, ["Source: Fisher 1936"]],
        ["line 62, below the table, was left out ('Source: Fisher 1936')"],
    ),
    "sum in a column of numbers": (
        [NAMES, *BODY, ["Sum", 1, 2, 3]],
        ["line 62, below the table, was left out ('Sum')"],
    ),
    "empty rows and columns": ([[*NAMES[:2], None, *NAMES[2:]], *([*row[:2], None, *row[2:]] for row in BODY)], []),
    "empty column": ([[*NAMES, "remarks"], *([*row, None] for row in BODY)], ["left out: remarks (empty)"]),
    "truths": ([[*NAMES, "ill"], *([*row, i % 3 == 0] for i, row in enumerate(BODY))], None),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_what_is_around_the_numbers(tmp_path, name, suffix):
    rows, notes = CASES[name]
    width = max(map(len, rows))
    rows = [[*row, *[None] * (width - len(row))] for row in rows]
    data = read_table((book if suffix == ".xlsx" else text)(tmp_path / f"x{suffix}", rows))
    np.testing.assert_array_equal(data.X[:, :4], X)
    assert data.feature_names[:4] == NAMES
    assert data.units == (dict.fromkeys(NAMES, "cm") if "units" in name else {})
    assert notes is None or data.notes == tuple(notes)
    if name == "truths":
        np.testing.assert_array_equal(data.X[:, 4], np.arange(60) % 3 == 0)


@pytest.mark.parametrize(
    ("cells", "expected", "told"),
    [
        (["1,234.50", "2.25"], [1234.5, 2.25], "'1,234.50' is 1234.5"),
        (["1.234,50", "2,25"], [1234.5, 2.25], "'1.234,50' is 1234.5"),
        (["1,234", "2.25"], [1234, 2.25], "'1,234' is 1234"),
        (["1'234.5", "-2"], [1234.5, -2], "'1'234.5' is 1234.5"),
        (["1 234,5", "-2"], [1234.5, -2], "'1 234,5' is 1234.5"),
        (["1,234,567", "-2"], [1234567, -2], "'1,234,567' is 1234567"),
        (["€ 3,50", "2,25 €"], [3.5, 2.25], "'€ 3,50' is 3.5"),
        (["-$3.50", "USD 7"], [-3.5, 7], "'-$3.50' is -3.5"),
        (["3,5", "2.25"], [3.5, 2.25], "'3,5' is 3.5"),
        (["−3.5", "2"], [-3.5, 2], "'−3.5' is -3.5"),
        (["12,5 %", "3"], [0.125, 3], None),
    ],
)
def test_numbers_are_understood_and_told(tmp_path, cells, expected, told):
    rows = [["a", "b"], *([cells[i % 2], i % 7] for i in range(60))]
    data = read_table(text(tmp_path / "x.csv", rows, ";"))
    np.testing.assert_array_equal(data.X[:2, 0], expected)
    assert any("understood" in note and (told or "?") in note for note in data.notes) is bool(told)


def test_only_some_spellings_are_told(tmp_path):
    cells = ["€ 1", "$ 2", "£ 3", "¥ 4", "1'000", "1 000", "2,000,000"]
    data = read_table(text(tmp_path / "x.csv", [["a", "b"], *([cells[i % 7], i % 3] for i in range(60))], ";"))
    assert data.notes[0].count("' is ") == 4


def test_text_and_numbers_in_one_column_of_a_workbook(tmp_path):
    rows = [[row[0], str(row[1]).replace(".", ",") if i % 2 else row[1], *row[2:]] for i, row in enumerate(BODY)]
    data = read_table(book(tmp_path / "x.xlsx", [NAMES, *rows]))
    np.testing.assert_array_equal(data.X, X)
    assert data.notes == ("some numbers are written as text with decimal commas or thousands separators",)


def test_what_could_not_be_measured_is_missing(tmp_path):
    path = text(
        tmp_path / "x.csv", [["a", "b"], *([i / 7, i % 3] for i in range(9)), ["<LOD", 1], ["< 0.05", 2], ["k.A.", 1]]
    )
    assert "line 11, column 'a': missing value '<LOD', the first of 3" in refusal(path)
    assert read_table(path, missing="drop").X.shape == (9, 2)
    assert (
        "2 values are beyond a limit of measurement ('<LOD'), and so missing" in read_table(path, missing="mean").notes
    )


@pytest.mark.parametrize(
    ("encoding", "separator"), [("cp1252", ";"), ("utf-16", "\t"), ("utf-16-le", "\t"), ("utf-16-be", "\t")]
)
def test_exports_of_excel(tmp_path, encoding, separator):
    german = [[str(cell).replace(".", ",") for cell in row] for row in BODY]
    data = read_table(text(tmp_path / "x.txt", [["Länge", "Breite", "Höhe", "Größe"], *german], separator, encoding))
    np.testing.assert_array_equal(data.X, X)
    assert data.feature_names[-1] == "Größe"


def test_line_breaks_in_the_first_name(tmp_path):
    """The first name was cut."""
    rows = "".join(f'"plant\n{i}",{i / 7},{i % 3}\n' for i in range(9))
    data = read_table(write(tmp_path / "x.csv", "name,a,b\n" + rows))
    assert data.ids == [f"plant\n{i}" for i in range(9)]
    assert data.lines.tolist() == list(range(3, 21, 2))


def test_what_only_looks_like_units_or_totals(tmp_path):
    rows = [["plant", "a", "b"], *([f"p{i}", i / 7, i % 3] for i in range(60))]
    assert read_table(text(tmp_path / "x.csv", [*rows, ["SD", 1, 2]])).ids[-1] == "SD"  # a state, where no mean is
    assert read_table(text(tmp_path / "x.csv", [*rows, ["Max", 1, 2], ["Total", 3, 4]])).ids[-1] == "p59"
    notes = [[f"note {i}"] for i in range(20)]
    assert read_table(text(tmp_path / "x.csv", [*rows, *notes])).X.shape == (60, 2)
    assert "line 62: 1 cell where" in refusal(text(tmp_path / "x.csv", [*rows, *notes, ["one more"]]))
    rows[1][1:] = "ca. 5", "5*"
    assert "line 2, column 'a': 'ca. 5' is not a number" in refusal(text(tmp_path / "x.csv", rows))
    assert read_table(text(tmp_path / "y.csv", [["a", "b"], ["cm", "g"], [1, 2]])).units == {"a": "cm", "b": "g"}
    phones = [["a", "phone"], *([i / 7, f"030 123 {100 + i // 2}"] for i in range(60))]
    assert "'030 123 100' is not a number" in refusal(text(tmp_path / "x.csv", phones))
    late = [["a", "", "b"], *([i / 7, "?" if i == 55 else "", i % 3] for i in range(60))]
    assert read_table(text(tmp_path / "x.csv", late)).notes == ("not used: the columns without a name, number 2",)


def test_units_in_the_cells_are_no_reason_to_drop_a_measurement(tmp_path):
    path = text(tmp_path / "x.csv", [["a", "b"], *([f"{i / 7} cm", i] for i in range(9))])
    with pytest.raises(FileError, match=r"'0.0 cm' is a number with its unit; write the unit into the first") as error:
        read_table(path)
    assert error.value.remedy == {}


def spelled(value, decimal, is_grouped):
    """A number as a person writes it."""
    plain = f"{value:,.3f}".rstrip("0").rstrip(".") if is_grouped else repr(value)
    return plain if decimal == "." else plain.translate(str.maketrans(",.", ".,"))


@pytest.mark.parametrize("seed", range(60))
def test_any_mixture_is_read_as_it_is_meant_or_refused(tmp_path, seed):
    rng = np.random.default_rng(seed)
    chance = lambda share: rng.random() < share  # noqa: E731
    m, scale, decimal, has_ids = int(rng.choice([2, 4, 6])), rng.choice([1, 300]), ",."[seed % 2], chance(0.5)
    values, is_grouped = (
        np.round(rng.normal(5, scale, (int(rng.choice([5, 60])), m)), int(rng.integers(1, 4))),
        chance(0.3),
    )
    names = [f"{part} {what}" for part in ("Leaf", "Root", "Stem") for what in ("length", "width")][:m]
    left = ["plant"] * has_ids
    rows = [[*left, *names]]
    if m > 2 and chance(0.5):
        rows = [left + [name.split()[0] if j % 2 == 0 else "" for j, name in enumerate(names)]]
        rows += [[""] * has_ids + ["length", "width"] * (m // 2)]
    rows += [[""] * has_ids + ["mg/l"] * m] * chance(0.4)
    rows = [["Field trial 2024", *[""] * (len(rows[0]) - 1)]] * chance(0.4) + rows
    is_book = chance(0.3)
    for i, row in enumerate(values.tolist()):
        cells = [x if is_book and chance(0.7) else spelled(x, decimal, is_grouped) for x in row]
        rows.append([f"P-{i}"] * has_ids + cells)
    if has_ids and chance(0.4):
        rows.append(["Mean", *(spelled(x, decimal, is_grouped) for x in values.mean(axis=0).tolist())])
    rows += [["Source: own work"]] * chance(0.2)
    path = tmp_path / ("x.xlsx" if is_book else "x.csv")
    source = book(path, rows) if is_book else text(path, rows, ";", ["utf-8", "utf-16"][seed % 3 % 2])
    try:
        data = read_table(source, keep=names)
    except FileError:
        assert "may be" in refusal(source, keep=names)
        data = read_table(source, keep=names, decimal=decimal)
    np.testing.assert_allclose(data.X, values, rtol=1e-9)
    assert data.feature_names == names
    assert data.units == (dict.fromkeys(names, "mg/l") if any("mg/l" in row for row in rows) else {})


def test_points_in_texts_of_a_workbook(tmp_path):
    """Numbers of a workbook say nothing of the signs in its texts."""
    cells = [[1.5, "2,5", "1.10"], [2.25, "1.234", "1.1"], *([i / 8, "3,5", "1.1"] for i in range(9))]
    path = book(tmp_path / "x.xlsx", [["a", "b", "part"], *cells])
    assert "line 3, column 'b': '1,234' may be" in refusal(path, label="part")
    data = read_table(path, label="part", decimal=",")
    assert (data.X[1, 1], data.classes) == (1234, ["1.10", "1.1"])


def test_texts_with_and_without_names(tmp_path):
    rows = [["who", "said", "kind"], *([f"p{i}", f"text {i}", "ab"[i % 2]] for i in range(5))]
    path = text(tmp_path / "x.csv", rows)
    named = read_table(path, text="said", label="kind")
    assert (named.texts[0], len(named.texts), named.classes) == ("text 0", 5, ["a", "b"])
    assert named.original["who"].tolist() == [f"p{i}" for i in range(5)]
    numbered = read_table(text(path, [["", *row[1:]] for row in rows]), text="2", id="1")
    assert (numbered.texts[0], len(numbered.texts)) == ("said", 6)
    named.original.to_parquet(tmp_path / "x.parquet")
    packed = read_table(tmp_path / "x.parquet", text="said", label="kind")
    assert (packed.texts, packed.original.equals(named.original)) == (named.texts, True)


# ------------------------------------------------------------------ files


def test_workbooks_that_nobody_can_open(tmp_path):
    start = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000)
    (tmp_path / "x.xlsx").write_bytes(start + "EncryptedPackage".encode("utf-16-le"))
    assert "protected by a password; save it without one" in refusal(tmp_path / "x.xlsx")
    (tmp_path / "x.xlsx").write_bytes(start)
    assert "of the old kind (.xls); save it as .xlsx" in refusal(tmp_path / "x.xlsx")


def test_the_first_sheet_that_holds_many_numbers(tmp_path):
    notes = [("Notes", [["made by", "n"], ["Ann", 2]])]
    data = read_table(book(tmp_path / "x.xlsx", [NAMES, *BODY], first=notes))
    np.testing.assert_array_equal(data.X, X)
    smaller = [("First", [["a", "b"], *([row[0], row[1]] for row in BODY[:40])])]
    assert read_table(book(tmp_path / "x.xlsx", [NAMES, *BODY], first=smaller)).X.shape == (40, 2)
    smaller[0][1][26:] = []
    assert read_table(book(tmp_path / "x.xlsx", [NAMES, *BODY], first=smaller)).X.shape == (60, 4)


def test_names_that_are_nearly_right(tmp_path):
    text(tmp_path / "Thirty.csv", [NAMES, *BODY])
    for name in ("thirty.csv", "Thirty.CSV", "Thity.csv"):
        if not (tmp_path / name).exists():
            assert "no such file; did you mean 'Thirty.csv'?" in refusal(tmp_path / name)
    assert "did you mean" not in refusal(tmp_path / "twenty.csv")
    assert "its folder does not exist" in refusal(tmp_path / "no" / "Thirty.csv")


def test_a_folder_of_tables_is_one_table(tmp_path):
    for i in range(3):
        text(tmp_path / f"part{i}.csv", [NAMES, *BODY[20 * i : 20 * i + 20]])
    text(tmp_path / ".hidden.csv", [["a"], [1]])
    text(tmp_path / "part1.csv", [[*NAMES, "remarks"], *([*row, None] for row in BODY[20:40])])
    data = read_table(tmp_path)
    np.testing.assert_array_equal(data.X, X)
    told = "3 files were read as one table (part0.csv 20, part1.csv 20, part2.csv 20)"
    assert data.notes == (told, "part1.csv: left out: remarks (empty)")
    files = [tmp_path / f"part{i}.csv" for i in (1, 0, 2)]
    assert read_table(files).X.shape == (60, 4)


@pytest.mark.parametrize(
    ("name", "advice"), [("x.xls", ".xlsx or .csv"), ("x.h5ad", "read_h5ad"), ("x.mtx.gz", "scipy.sparse.save_npz")]
)
def test_files_that_are_not_read_have_another_way(tmp_path, name, advice):
    (tmp_path / name).touch()
    assert advice in refusal(tmp_path / name)
    (tmp_path / "matrix.mtx.gz").touch()  # as 10x Genomics calls it
    assert "cells are clustered in Python" in refusal(tmp_path)


# ------------------------------------------------------------------ advice


def test_advice_is_tried_before_it_is_given(tmp_path):
    rows = [
        ["a", "b", "Iris species", "seen by"],
        *([i / 7, i % 5, "pq"[i % 2], "AnnBob"[i % 2 * 3 :][:3]] for i in range(60)),
    ]
    rows[50][0] = ""
    path = text(tmp_path / "x.csv", rows)
    with pytest.raises(FileError) as error:
        read_table(path)
    assert error.value.remedy == {"label": "Iris species", "ignore": ["seen by"], "missing": "drop"}
    assert read_table(path, **error.value.remedy).X.shape == (59, 2)
    gaps = [["a", "b"], *([i if i % 7 > 1 else "", i % 5 / 2] for i in range(60))]
    with pytest.raises(FileError) as error:
        read_table(text(tmp_path / "y.csv", gaps))
    assert error.value.remedy == {"missing": "median"}  # dropping would leave less than three quarters
    rows[55][1] = "about 3"
    with pytest.raises(FileError, match="2 columns hold text") as error:
        read_table(text(path, rows))
    assert error.value.remedy == {}
    assert "'about 3' is not a number; correct it, or empty the cell" in refusal(
        path, label="Iris species", ignore=["seen by"]
    )


# ------------------------------------------------------------------ the person's own columns


def own_table(path):
    rows = [["id", "Day", "ring", "Length", "cluster", "Width"], ["", "", "", "cm", "", "cm"]]
    rows += [[f"p{i}", f"2024-05-{i + 1:02d}", i % 4, i / 8, "ab"[i % 2], i % 3 + 0.5] for i in range(20)]
    rows[5][3] = ""
    return text(path, rows)


def test_all_columns_are_kept(tmp_path):
    data = read_table(own_table(tmp_path / "x.csv"), label="cluster", ignore=["ring"], missing="drop")
    frame = data.original
    assert list(frame.columns) == ["id", "Day", "ring", "Length", "cluster", "Width"]
    assert frame.iloc[1].tolist() == ["p1", "2024-05-02", 1, 1 / 8, "b", 1.5]
    assert frame["Length"].isna().tolist() == [i == 3 for i in range(20)]
    assert (len(data.X), data.n_rows, data.rows.tolist()[3]) == (19, 20, 4)
    assert data.units == {"Length": "cm", "Width": "cm"}
    filled = read_table(tmp_path / "x.csv", label="cluster", ignore=["ring"], missing="mean")
    assert np.isfinite(filled.X).all()
    pd.testing.assert_frame_equal(filled.original, frame)
    assert read_table(tmp_path / "x.csv", columns=["Width"], missing="drop").original.equals(frame)


def test_own_columns_of_several_files(tmp_path):
    own_table(tmp_path / "a.csv")
    frame = read_table(tmp_path / "a.csv", label="cluster", missing="mean").original
    frame[frame.columns[::-1]].assign(id=[f"q{i}" for i in range(20)]).to_csv(tmp_path / "b.csv", index=False)
    for rule in ("mean", "drop"):
        both = read_table([tmp_path / "a.csv", tmp_path / "b.csv"], label="cluster", missing=rule)
        assert both.original["Day"].tolist() == frame["Day"].tolist() * 2
        np.testing.assert_array_equal(both.original["Length"], frame["Length"].tolist() * 2)
    frame.to_parquet(tmp_path / "x.parquet")
    assert read_table(tmp_path / "x.parquet", label="cluster", missing="drop").original.equals(frame)


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".parquet", ".npy"])
def test_labels_are_written_beside_the_own_columns(tmp_path, suffix):
    data = read_table(own_table(tmp_path / "x.csv"), label="cluster", missing="drop")
    frame = data.original.rename(columns={"Day": "=1+1"})
    path, sure = tmp_path / f"y{suffix}", np.linspace(0, 1, 19)
    groups = {"groups": [["cluster", "=mean"], [0, 1 / 3]]}
    labels = np.arange(19) % 3
    write_labels(path, labels, columns={"confidence": sure}, **data.table, original=frame, sheets=groups)
    if suffix == ".npy":
        assert np.load(path).tolist() == [*labels[:3], -1, *labels[3:]]
        return
    assert read_labels(path).labels == [str(label) for label in labels]
    read = {".csv": pd.read_csv, ".xlsx": pd.read_excel, ".parquet": pd.read_parquet}[suffix](path)
    day = "=1+1" if suffix == ".parquet" else "'=1+1"
    assert list(read.columns) == ["id", day, "ring", "Length", "cluster (before)", "Width", "cluster", "confidence"]
    assert read["Length"][1] == 1 / 8
    assert read["cluster"].isna().tolist() == [i == 3 for i in range(20)]
    if suffix == ".xlsx":
        assert pd.read_excel(path, sheet_name="groups").columns.tolist() == ["cluster", "'=mean"]
    with pytest.raises(ValueError, match="original has 20 rows and the table 19"):
        write_labels(tmp_path / "z.csv", labels, original=frame)


def test_a_table_of_texts_is_told_how_texts_are_clustered(tmp_path):
    notes = [f"{word} in the {time}" for word in ("tea", "wine") for time in ("morning", "evening", "night")]
    rows = [["topic", "note"], *zip("ab" * 3, notes, strict=True)]
    assert refusal(text(tmp_path / "x.csv", rows)).endswith(
        'no column holds numbers; text="note" clusters texts by their words'
    )
    assert 'text="a"' not in refusal(text(tmp_path / "y.csv", [["a"], ["1"], ["2"], ["x"]]))
