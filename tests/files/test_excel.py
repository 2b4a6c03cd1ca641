"""Workbooks: read as they are stored, refused where they are traps, written without formulas."""

from __future__ import annotations

import datetime
import re
import zipfile

import numpy as np
import pytest

from io_data import refusal, refusal_and_peak, workbook, write_zip
from subspaces.app.files import FileError, read_table, write_labels
from subspaces.app.files import writing as module

openpyxl = pytest.importorskip("openpyxl")

SHEET = "xl/worksheets/sheet1.xml"


def book(path, *sheets):
    """A workbook with these sheets: title and rows."""
    made = openpyxl.Workbook(write_only=True)
    for title, rows in sheets:
        sheet = made.create_sheet(title)
        for row in rows:
            sheet.append(row)
    made.save(path)
    return path


def changed(path, member, change):
    """The same workbook with one part changed."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return write_zip(path, parts | {member: change(parts[member])})


ROWS = [["name", "a", "b", "kind"], ["p", 1.5, 2, "x"], ["q", 3, -4e-7, "y"], ["r", 0.1, 6, "x"]]


def test_sheets_are_tables(tmp_path):
    path = book(tmp_path / "x.xlsx", ("Data", ROWS))
    data = read_table(path, label="kind")
    np.testing.assert_array_equal(data.X, [[1.5, 2], [3, -4e-7], [0.1, 6]])
    assert data.ids == ["p", "q", "r"]
    assert data.classes == ["x", "y"]
    assert data.feature_names == ["a", "b"]
    assert data.notes == ("left out: name (id)",)


def test_titles_gaps_dates_and_errors_in_sheets(tmp_path):
    day = datetime.datetime(2024, 5, 3)
    rows = [["Ward 3"], [], ["day", "a", "b"], [day, 1, True], [day.replace(day=4), 2, False], [day.replace(day=5), 3]]
    path = book(tmp_path / "x.xlsx", ("Data", rows))
    data = read_table(path, missing="mean")
    np.testing.assert_array_equal(data.X, [[1, 1], [2, 0], [3, 0.5]])
    assert "left out: day (date)" in data.notes
    assert "line 1, above the table, was left out ('Ward 3')" in data.notes
    assert "line 6, column 'b': missing value" in refusal(path)
    path = book(tmp_path / "y.xlsx", ("Data", [["a", "b"], [1, "#DIV/0!"], [2, 3]]))
    assert "line 2, column 'b': missing value" in refusal(path)
    path = book(tmp_path / "z.xlsx", ("Data", [["a", "b"], [1, "2,5"], [2, "3,5"]]))  # numbers that are texts
    np.testing.assert_array_equal(read_table(path).X, [[1, 2.5], [2, 3.5]])


def test_sheets_by_name(tmp_path):
    path = book(tmp_path / "x.xlsx", ("Cover", []), ("Data", [[1, 2], [3, 4]]), ("More", [[5, 6], [7, 8]]))
    data = read_table(path)
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
    assert data.notes == ("of 3 sheets, 'Data' was read; sheet=\"Cover\" would read another",)
    np.testing.assert_array_equal(read_table(path, sheet="More").X, [[5, 6], [7, 8]])
    path = book(tmp_path / "y.xlsx", ("Notes", [["see the next sheet"]]), ("Data", [[i / 7, i * i] for i in range(9)]))
    assert read_table(path).notes == ("of 2 sheets, 'Data' was read; sheet=\"Notes\" would read another",)
    assert "of 2 sheets, 'Data' was read" in refusal(path, missing="drop", ignore=["x"])
    path = tmp_path / "x.xlsx"
    assert "sheet 'Mor' is not a sheet; the workbook has 'Cover', 'Data', 'More'" in refusal(path, sheet="Mor")
    assert "the workbook is empty" in refusal(book(tmp_path / "y.xlsx", ("Cover", [])))


def test_formulas_are_not_computed(tmp_path):
    data = read_table(write_zip(tmp_path / "x.xlsx", workbook()), label="c", missing="drop")
    assert data.X.tolist() == [[1, 2.5], [5, 1]]


def test_texts_that_are_stored_apart(tmp_path):
    """As Excel writes them."""
    path = write_zip(tmp_path / "x.xlsx", workbook())
    data = read_table(path, label="c", missing="mean")
    assert data.feature_names == ["a", "b"]
    np.testing.assert_array_equal(data.X, [[1, 2.5], [3, 1.75], [5, 1]])
    many = b"<si><t>x</t></si>" * 10**5
    change = lambda xml: xml.replace(b"</sst>", many + b"</sst>")  # noqa: E731
    text, peak = refusal_and_peak(changed(path, "xl/sharedStrings.xml", change), max_bytes=10**7)
    assert "the workbook needs" in text
    assert peak < 10**7


def test_other_workbooks_are_named(tmp_path):
    for suffix in (".xls", ".xlsb"):
        (tmp_path / f"x{suffix}").write_bytes(b"\xd0\xcf\x11\xe0")
        assert "save the table as .xlsx or .csv" in refusal(tmp_path / f"x{suffix}")


def test_missing_libraries_are_named(tmp_path, monkeypatch):
    path = book(tmp_path / "x.xlsx", ("Data", ROWS))
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    assert 'needs python-calamine: pip install "subspaces[app]" (or save the sheet as CSV)' in refusal(path)
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(FileError, match=r'needs openpyxl: pip install "subspaces\[app\]"'):
        write_labels(tmp_path / "y.xlsx", np.array([0, 1]))


def open_document(path, rows, *, times=1):
    """A workbook as LibreOffice writes it: cells and rows that come again are written once."""
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )
    empty = '<table:table-cell table:number-columns-repeated="16380"/>'
    xml = f"<office:document-content {names}><office:body><office:spreadsheet><table:table table:name='Data'>"
    for row in rows:
        xml += f'<table:table-row table:number-rows-repeated="{times}">'
        for cell in row:
            kind = "string" if isinstance(cell, str) else f'float" office:value="{cell}'
            xml += f'<table:table-cell office:value-type="{kind}"><text:p>{cell}</text:p></table:table-cell>'
        xml += f"{empty}</table:table-row>"
    xml += f'<table:table-row table:number-rows-repeated="1000000">{empty}</table:table-row>'
    xml += "</table:table></office:spreadsheet></office:body></office:document-content>"
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    return write_zip(path, {"mimetype": kind, "META-INF/manifest.xml": "<manifest/>", "content.xml": xml})


def test_open_documents(tmp_path):
    path = open_document(tmp_path / "x.ods", [["a", "b"], *([i / 8, i % 3] for i in range(9))])
    data = read_table(path, max_bytes=10**6)
    np.testing.assert_array_equal(data.X, [[i / 8, i % 3] for i in range(9)])
    assert data.feature_names == ["a", "b"]
    text, peak = refusal_and_peak(open_document(path, [[1.0, 2.0]], times=10**5), max_bytes=10**6)
    assert "the workbook needs" in text
    assert peak < 10**6


# ------------------------------------------------------------------ traps


def fill(opening, inside, closing):
    return lambda xml: opening + inside + closing


HEAD = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
STYLES = b'<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><cellXfs>'
BOMBS = {
    "cells": (SHEET, fill(HEAD + b"<sheetData><row>", b"<c/>" * 10**6, b"</row></sheetData></worksheet>")),
    "corners": (SHEET, lambda xml: xml.replace(b'r="A2"', b'r="XFD1048576"')),
    "unnumbered": (SHEET, lambda xml: xml.replace(b"<sheetData>", b'<sheetData><row r="999999"><c/></row>')),
    "column": (SHEET, lambda xml: xml.replace(b'r="A2"', b'r="ZZZZZZZ2"')),
    "row": (SHEET, lambda xml: xml.replace(b'r="A2"', b'r="A999999999999"')),
    "text": (SHEET, fill(HEAD + b"<sheetData><row><c><v>", b"1" * 10**8, b"</v></c></row></sheetData></worksheet>")),
    "styles": ("xl/styles.xml", fill(STYLES, b"<xf/>" * 10**5, b"</cellXfs></styleSheet>")),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_before_they_go_off(tmp_path, name):
    path = changed(book(tmp_path / "x.xlsx", ("Data", ROWS)), *BOMBS[name])
    assert path.stat().st_size < 10**6
    text, peak = refusal_and_peak(path, max_bytes=5 * 10**6)
    assert "only 5 MB of memory may be used" in text
    assert peak < 5 * 10**6


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda xml: b'<!DOCTYPE x [<!ENTITY a "aaaa">]>' + xml, "defines entities"),
        (lambda xml: xml.decode().encode("utf-16"), "the workbook is empty"),
        (lambda xml: b'<?xml version="1.0" encoding="cp037"?>' + xml, "damaged"),
        (lambda xml: xml[:-20], "damaged"),
    ],
)
def test_traps_are_refused(tmp_path, change, expected):
    plain = book(tmp_path / "x.xlsx", ("Data", ROWS))
    path = changed(plain, SHEET, lambda xml: change(re.sub(rb"^<\?xml.*?\?>", b"", xml)))
    assert expected in refusal(path)


def test_announced_dimensions_are_not_believed(tmp_path):
    path = book(tmp_path / "x.xlsx", ("Data", ROWS[:3]))
    told = b'<dimension ref="A1:XFD1048576"/><sheetData>'
    changed(path, SHEET, lambda xml: xml.replace(b"<sheetData>", told))
    assert read_table(path, label="kind", id="name").X.shape == (2, 2)


# ------------------------------------------------------------------ labels


def test_labels_are_written_without_formulas(tmp_path):
    ids = ["=1+1", "@x", "-3", "a\x01b", "plain", "\t=2"]
    values = {"confidence": np.array([1 / 3, 0.5, 1, 0, 0, 0]), "fits_nowhere": np.array([True] + [False] * 5)}
    write_labels(tmp_path / "y.xlsx", np.array([0, 1, 1, 0, 2, 2]), ids=ids, columns=values)
    sheet = openpyxl.load_workbook(tmp_path / "y.xlsx").active
    rows = list(sheet.iter_rows())
    assert [cell.value for cell in rows[0]] == ["id", "cluster", "confidence", "fits_nowhere"]
    assert [row[0].value for row in rows[1:]] == ["'=1+1", "'@x", "-3", "a\\x01b", "plain", "'\t=2"]
    assert [cell.value for cell in rows[1]][1:] == [0, 0.333333, 1]
    assert {cell.data_type for row in rows for cell in row} == {"s", "n"}  # and none a formula, "f"


def test_labels_of_rows_that_were_dropped_stay_empty(tmp_path):
    write_labels(tmp_path / "y.xlsx", np.array([0, 1]), rows=np.array([0, 2]), n_rows=3)
    values = list(openpyxl.load_workbook(tmp_path / "y.xlsx").active.values)
    assert values == [("row", "cluster"), (0, 0), (1, None), (2, 1)]


def test_more_labels_than_a_sheet_has_rows_are_refused(tmp_path):
    with pytest.raises(FileError, match=r"a sheet holds 1048575 labels at most, not 1048576; choose \.csv"):
        module.check_n_rows(tmp_path / "y.xlsx", 2**20)
    module.check_n_rows(tmp_path / "y.csv", 2**20)
